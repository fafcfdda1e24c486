//! `runs`: what ran, newest first, as status keeps it.

mod stored;

use crds::run::RunResult;
use crds::time::from_k8s;
use serde_json::Value;

use crate::cli::{Output, Runs};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::Target;
use crate::select;
use crate::view::output::{formatted, list};
use crate::view::runs::{OwnedRun, table};
use crate::view::time::zone_or_utc;

/// Lists runs.
///
/// # Errors
/// What the server refused; a named object that does not exist.
pub(crate) async fn run(context: &Context, args: &Runs) -> Result<()> {
    let cluster = context.cluster().await?;
    let (objects, failed) = objects(context, &cluster, args).await?;
    if objects.is_empty()
        && let Some(failed) = failed
    {
        return Err(failed);
    }
    if args.stored {
        return stored(context, &cluster, args, &objects, failed).await;
    }
    let statuses: Vec<_> = objects.iter().map(|o| (o, o.status())).collect();
    let mut runs: Vec<OwnedRun<'_>> = vec![];
    for (object, status) in &statuses {
        let zone = status
            .schedule
            .as_ref()
            .map(|s| zone_or_utc(&s.time_zone))
            .unwrap_or_default();
        for run in &status.runs {
            let request = status
                .requests
                .iter()
                .find(|r| Some(&r.id) == run.request_id.as_ref());
            runs.push(OwnedRun {
                namespace: object.namespace(),
                object: object.kind.short_name(&object.name()),
                zone,
                by: request.map(|r| r.by.clone()),
                run,
            });
        }
    }
    runs.retain(|owned| !args.failed || owned.run.result == RunResult::Failed);
    let started = |owned: &OwnedRun<'_>| owned.run.start_time.as_ref().map(from_k8s);
    // A run that has not started yet is the newest.
    runs.sort_by_key(|owned| {
        std::cmp::Reverse(started(owned).unwrap_or(chrono::DateTime::<chrono::Utc>::MAX_UTC))
    });
    print(context, args, &cluster, &runs, objects.len())?;
    failed.map_or(Ok(()), Err)
}

/// Lists what is in the stores, one object after the other; a store that can't be listed is told
/// and keeps none back.
async fn stored(
    context: &Context,
    cluster: &Cluster,
    args: &Runs,
    objects: &[Object],
    mut failed: Option<Error>,
) -> Result<()> {
    let limit = crate::cluster::duration("--timeout", &args.timeout)?;
    let mut all = vec![];
    for object in objects {
        match stored::of(context, cluster, object, limit).await {
            Ok(lines) => all.extend(lines),
            Err(error) => {
                context.ui.error(&error);
                failed.get_or_insert(Error::silent(error.kind));
            }
        }
    }
    match &args.output {
        Output::Name => {
            let names: String = all.iter().map(|l| format!("{}\n", l.key)).collect();
            context.ui.out(&names)?;
        }
        Output::Print(format) => {
            let items = all
                .iter()
                .map(|l| serde_json::to_value(l).unwrap_or_default());
            let list = list(items.collect());
            context
                .ui
                .out(&formatted(&list, format, args.headers.no_headers)?)?;
        }
        Output::Table | Output::Wide => {
            if objects.is_empty() {
                let namespace = (!args.all_namespaces).then_some(cluster.namespace.as_str());
                select::none_found(context, namespace);
            } else if all.is_empty() && failed.is_none() {
                context.ui.note("Nothing is stored.");
            }
            let table = crate::view::stored::table(
                &all,
                args.all_namespaces,
                args.names.len() != 1,
                context.zone,
                context.now(),
            );
            context.ui.table(&table, args.headers.no_headers)?;
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The objects whose runs are wanted; one that is missing is told and keeps none back.
async fn objects(
    context: &Context,
    cluster: &Cluster,
    args: &Runs,
) -> Result<(Vec<Object>, Option<Error>)> {
    if args.names.is_empty() {
        let all = select::objects(
            context,
            cluster,
            &[],
            args.all_namespaces,
            args.selector.as_deref(),
        )
        .await?;
        return Ok((all, None));
    }
    let (mut found, mut failed) = (vec![], None);
    for name in &args.names {
        match cluster.find(&Target::parse(name)?).await {
            Ok(object) => found.push(object),
            Err(error) => {
                context.ui.error(&error);
                failed.get_or_insert(Error::silent(error.kind));
            }
        }
    }
    Ok((found, failed))
}

fn print(
    context: &Context,
    args: &Runs,
    cluster: &Cluster,
    runs: &[OwnedRun<'_>],
    objects: usize,
) -> Result<()> {
    match &args.output {
        Output::Name => {
            let names: String = runs
                .iter()
                .map(|o| format!("run/{}\n", o.run.name))
                .collect();
            context.ui.out(&names)
        }
        Output::Print(format) => {
            let items: Vec<Value> = runs.iter().map(value).collect();
            context
                .ui
                .out(&formatted(&list(items), format, args.headers.no_headers)?)
        }
        Output::Table | Output::Wide => {
            if objects == 0 {
                let namespace = (!args.all_namespaces).then_some(cluster.namespace.as_str());
                select::none_found(context, namespace);
            } else if runs.is_empty() {
                context.ui.note("No runs found.");
            }
            let table = table(
                runs,
                args.all_namespaces,
                args.names.len() != 1,
                context.zone,
                context.now(),
            );
            context.ui.table(&table, args.headers.no_headers)
        }
    }
}

/// A run with the object it belongs to.
fn value(owned: &OwnedRun<'_>) -> Value {
    let mut value = serde_json::to_value(owned.run).unwrap_or_default();
    value["object"] = owned.object.clone().into();
    value["namespace"] = owned.namespace.clone().into();
    value
}
