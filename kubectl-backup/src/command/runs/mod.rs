//! `runs`: what ran, newest first, as status keeps it.

mod stored;

use std::collections::HashMap;

use crds::run::{Run, RunResult};
use crds::time::from_k8s;

use crate::cli::{Output, Runs};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::select;
use crate::view::output::{formatted, list};
use crate::view::recoverable;
use crate::view::runs::{OwnedRun, table, value};
use crate::view::stored::Line;
use crate::view::time::zone_or_utc;

/// Lists runs.
///
/// # Errors
/// What the server refused; a named object that does not exist.
pub(crate) async fn run(context: &Context, args: &Runs) -> Result<()> {
    let cluster = context.cluster().await?;
    let (objects, only, failed) = objects(context, &cluster, args).await?;
    if objects.is_empty()
        && let Some(failed) = failed
    {
        return Err(failed);
    }
    if args.stored {
        return stored(context, &cluster, args, &objects, &only, failed).await;
    }
    if args.recoverable {
        recoverable(context, args, &cluster, &objects)?;
        return failed.map_or(Ok(()), Err);
    }
    let statuses: Vec<_> = objects.iter().map(|o| (o, o.status())).collect();
    let mut runs: Vec<OwnedRun<'_>> = vec![];
    for (object, status) in &statuses {
        let zone = status
            .schedule
            .as_ref()
            .map(|s| zone_or_utc(&s.time_zone))
            .unwrap_or_default();
        for run in status.runs.iter().filter(|r| only.lets(object, &r.name)) {
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
    runs.retain(|owned| !args.failed || is_failure(owned.run));
    let started = |owned: &OwnedRun<'_>| owned.run.start_time.as_ref().map(from_k8s);
    // A run that has not started yet is the newest.
    runs.sort_by_key(|owned| {
        std::cmp::Reverse(started(owned).unwrap_or(chrono::DateTime::<chrono::Utc>::MAX_UTC))
    });
    print(context, args, &cluster, &runs, objects.len())?;
    failed.map_or(Ok(()), Err)
}

/// Lists what stored binary logs cover.
fn recoverable(
    context: &Context,
    args: &Runs,
    cluster: &Cluster,
    objects: &[Object],
) -> Result<()> {
    let of = |object: &Object| {
        let status = object.status();
        let zone = status.schedule.as_ref().map(|s| zone_or_utc(&s.time_zone));
        let name = object.kind.short_name(&object.name());
        let whose = (object.namespace(), name);
        recoverable::recoverable((&whose.0, &whose.1), zone.unwrap_or_default(), &status)
    };
    let all: Vec<_> = objects.iter().flat_map(of).collect();
    match &args.output {
        Output::Name => {
            let runs = all.iter().flat_map(|one| &one.runs);
            let names: String = runs.map(|run| format!("run/{run}\n")).collect();
            context.ui.out(&names)
        }
        Output::Print(format) => {
            let items = all.iter().map(recoverable::value);
            let list = list(items.collect());
            context
                .ui
                .out(&formatted(&list, format, args.headers.no_headers)?)
        }
        Output::Table | Output::Wide => {
            if objects.is_empty() {
                let namespace = (!args.all_namespaces).then_some(cluster.namespace.as_str());
                select::none_found(context, namespace);
            } else if all.is_empty() {
                context
                    .ui
                    .note("No binary logs are stored; kubectl backup set NAME --binlogs 5m has them pulled.");
            }
            let table = recoverable::table(
                &all,
                args.all_namespaces,
                args.names.len() != 1,
                context.zone,
                context.now(),
            );
            context.ui.table(&table, args.headers.no_headers)
        }
    }
}

/// A run that somebody ended is none.
fn is_failure(run: &Run) -> bool {
    run.result == RunResult::Failed && !run.ended_on_purpose()
}

/// Lists what is in the stores, one object after the other; a store that can't be listed is told
/// and keeps none back.
async fn stored(
    context: &Context,
    cluster: &Cluster,
    args: &Runs,
    objects: &[Object],
    only: &Only,
    mut failed: Option<Error>,
) -> Result<()> {
    let limit = crate::cluster::duration("--timeout", &args.timeout)?;
    let mut all = vec![];
    for object in objects {
        let (lines, error) = match stored::of(context, cluster, object, limit).await {
            Ok(listed) => listed,
            Err(error) => (vec![], Some(error)),
        };
        // A line without a key is of a storage, and may hide what is asked for.
        let wanted = |l: &Line| l.key.is_empty() || only.lets(object, &l.run);
        all.extend(lines.into_iter().filter(wanted));
        if let Some(error) = error {
            context.ui.error(&error);
            failed.get_or_insert(Error::silent(error.kind));
        }
    }
    match &args.output {
        Output::Name => {
            let keys = all.iter().filter(|l| !l.key.is_empty());
            let names: String = keys.map(|l| format!("{}\n", l.key)).collect();
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

/// Of objects that were named by runs alone, those runs.
#[derive(Default)]
struct Only(HashMap<String, Option<Vec<String>>>);

impl Only {
    /// The object was named, by this run or as a whole.
    fn add(&mut self, object: &Object, run: Option<String>) {
        let runs = self.0.entry(object.uid()).or_insert_with(|| Some(vec![]));
        match (runs.as_mut(), run) {
            (Some(runs), Some(run)) => runs.push(run),
            (_, None) => *runs = None,
            (None, Some(_)) => {}
        }
    }

    /// True if the run is wanted.
    fn lets(&self, object: &Object, run: &str) -> bool {
        let runs = self.0.get(&object.uid()).and_then(Option::as_ref);
        runs.is_none_or(|runs| runs.iter().any(|r| r == run))
    }
}

/// The objects whose runs are wanted, and the runs where some are named; what is missing is told and
/// keeps none back.
async fn objects(
    context: &Context,
    cluster: &Cluster,
    args: &Runs,
) -> Result<(Vec<Object>, Only, Option<Error>)> {
    if args.names.is_empty() {
        let all = select::objects(
            context,
            cluster,
            &[],
            args.all_namespaces,
            args.selector.as_deref(),
        )
        .await?;
        return Ok((all, Only::default(), None));
    }
    let (mut found, mut only, mut failed) = (vec![], Only::default(), None);
    for name in &args.names {
        let named = select::object_or_run(cluster, name).await;
        // The store knows runs that status does not; without it there is nothing to be shown.
        let named = named.and_then(|(object, run)| match run {
            Some(run) if !args.stored => run.listed().map(|(object, run)| (object, Some(run.name))),
            Some(run) => Ok((object, Some(run.name))),
            None => Ok((object, None)),
        });
        match named {
            Ok((object, run)) => {
                only.add(&object, run);
                if !found.iter().any(|o: &Object| o.uid() == object.uid()) {
                    found.push(object);
                }
            }
            Err(error) => {
                context.ui.error(&error);
                failed.get_or_insert(Error::silent(error.kind));
            }
        }
    }
    Ok((found, only, failed))
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
            let items = runs.iter().map(|o| value(o.run, &o.object, &o.namespace));
            context.ui.out(&formatted(
                &list(items.collect()),
                format,
                args.headers.no_headers,
            )?)
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
                args.output == Output::Wide,
                context.zone,
                context.now(),
            );
            context.ui.table(&table, args.headers.no_headers)
        }
    }
}
