//! `restore`: checks first, asks where something is replaced, then has the operator restore.

use std::time::Duration;

use crds::report::Reason;
use crds::restore::{RestorePhase, RestoreSpec, RestoreStatus};
use serde_json::json;

use crate::build::needs::Needs;
use crate::build::restore::{From, spec};
use crate::cli::{DryRun, Restore};
use crate::cluster::{Cluster, Object, Query, duration, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::RESTORE;
use crate::ui::Mark;
use crate::view::estimate::estimate;
use crate::view::recoverable::outlook;
use crate::waiting::restore::{failure, wait_and_report, wait_for_restore};
use crate::{presence, select};

/// How long a check that failed stays.
const CHECK_LIFETIME: chrono::Duration = chrono::Duration::hours(24);

/// Restores.
///
/// # Errors
/// What the check found, no consent, a restore that failed.
pub(crate) async fn run(context: &Context, args: &Restore) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    let mut needs = Needs::default();
    let mut status = None;
    let from = match &args.from {
        Some(name) => {
            let (object, run) = select::object_or_run(&cluster, name).await?;
            let storage = args.storage.as_deref();
            needs = presence::needs_to_read(&cluster, &object, storage).await?;
            status = Some(object.status());
            Some(From {
                kind: object.kind.kind,
                name: object.name(),
                run: run.map(|run| run.name),
            })
        }
        None => None,
    };
    let spec = spec(args, from.as_ref())?;
    let name = name(args, from.as_ref())?;
    // Who asked for the object gets that alone.
    let silent = args.change.output.is_some();
    let dry_run = args.change.dry_run;
    if dry_run != DryRun::Client {
        let whose = object(&cluster, &name, &spec)?;
        let needs = Needs::of_restore(&spec).and(needs);
        presence::check(context, &cluster, &whose, &needs).await?;
    }
    if dry_run != DryRun::None {
        if let (Some(status), Some(replay)) = (&status, &spec.replay) {
            context.ui.note(&outlook(status, replay));
        }
        let object = object(&cluster, &name, &spec)?;
        return create(context, &cluster, args, object).await.map(|_| ());
    }
    if args.check {
        let object = create(context, &cluster, args, object(&cluster, &name, &spec)?).await?;
        let status =
            wait_and_report(context, &cluster, &object, args.follow, timeout, silent).await?;
        estimated(context, &cluster, &spec, &status).await;
        return Ok(());
    }
    checked(context, &cluster, &name, &spec, timeout).await?;
    consent(context, args, &spec)?;
    let object = create(context, &cluster, args, object(&cluster, &name, &spec)?).await?;
    if !(args.wait || args.follow) {
        context
            .ui
            .hint(&format!("kubectl backup wait restore/{name}"));
        return Ok(());
    }
    wait_and_report(context, &cluster, &object, args.follow, timeout, silent)
        .await
        .map(drop)
}

fn name(args: &Restore, from: Option<&From>) -> Result<String> {
    if let Some(name) = &args.name {
        return match crate::build::bad_name(name) {
            Some(why) => Err(Error::usage(why)),
            None => Ok(name.clone()),
        };
    }
    let base = from.map_or("location", |from| from.name.as_str());
    let base: String = base.chars().take(40).collect();
    let id: String = fresh_id(&base).chars().take(8).collect();
    Ok(format!("{}-{id}", base.trim_end_matches(['-', '.'])))
}

fn object(cluster: &Cluster, name: &str, spec: &RestoreSpec) -> Result<Object> {
    let value = json!({
        "apiVersion": format!("{}/{}", RESTORE.group, RESTORE.version),
        "kind": RESTORE.kind,
        "metadata": { "name": name, "namespace": cluster.namespace },
        "spec": spec,
    });
    let object = serde_json::from_value(value).map_err(|e| Error::new(Exit::Other, e))?;
    Ok(Object {
        kind: &RESTORE,
        object,
    })
}

async fn create(
    context: &Context,
    cluster: &Cluster,
    args: &Restore,
    object: Object,
) -> Result<Object> {
    let change = &args.change;
    let created = match change.dry_run {
        DryRun::Client => object,
        where_ => {
            let server = where_ == DryRun::Server;
            cluster.create(&object, &args.writer.name, server).await?
        }
    };
    context.changed(&created, "created", change)?;
    Ok(created)
}

/// A Restore that writes nothing, to its end. It is removed if it found nothing.
async fn checked(
    context: &Context,
    cluster: &Cluster,
    name: &str,
    spec: &RestoreSpec,
    timeout: Duration,
) -> Result<()> {
    let dry = RestoreSpec {
        dry_run: true,
        ..spec.clone()
    };
    sweep(context, cluster).await;
    let mut check = object(cluster, &format!("{name}-check"), &dry)?;
    let labels = check.object.metadata.labels.get_or_insert_default();
    labels.insert(crds::labels::CHECK.to_owned(), "true".to_owned());
    let check = cluster
        .create(&check, crds::labels::PLUGIN_MANAGER, false)
        .await?;
    context
        .ui
        .progress(Mark::Action, &format!("{}: checking", check.full_name()));
    let status = wait_for_restore(context, cluster, &check, false, timeout).await?;
    if status.phase != Some(RestorePhase::Succeeded) {
        let error = failure(context, &check, &status);
        return Err(match Reason::parse(&status.reason) {
            Some(Reason::TargetNotEmpty | Reason::TargetIsSource) => error.hint(
                "restore elsewhere with --to and --database, or --to-volume, or add --overwrite",
            ),
            _ => error,
        });
    }
    context
        .ui
        .progress(Mark::Good, &crds::secret::mask(&status.message));
    estimated(context, cluster, spec, &status).await;
    if let Err(error) = cluster.delete(&check, false).await {
        context.ui.error(&error);
    }
    Ok(())
}

/// Says how long it may take, and by what that is known. Without the right to list Restores nothing is said.
async fn estimated(
    context: &Context,
    cluster: &Cluster,
    spec: &RestoreSpec,
    checked: &RestoreStatus,
) {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let Ok(found) = cluster.all_objects(&[&RESTORE], &query).await else {
        return;
    };
    let others: Vec<_> = found
        .iter()
        .map(|restore| {
            let spec = serde_json::from_value(restore.spec().clone()).unwrap_or_default();
            (restore.name(), spec, restore.restore_status())
        })
        .collect();
    if let Some(text) = estimate(spec, checked, &others) {
        context.ui.note(&text);
    }
}

/// Removes checks that ended a day ago: until then a failed one stays, with its log.
async fn sweep(context: &Context, cluster: &Cluster) {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        labels: Some(format!("{}=true", crds::labels::CHECK)),
        chunk: 500,
        ..Query::default()
    };
    let found = cluster.all_objects(&[&RESTORE], &query).await;
    let before = context.now() - CHECK_LIFETIME;
    for check in found.unwrap_or_default() {
        let ended = check.restore_status().completion_time;
        if ended.is_some_and(|at| crds::time::from_k8s(&at) < before)
            && let Err(error) = cluster.delete(&check, false).await
        {
            context.ui.error(&error);
        }
    }
}

/// Whoever replaces something types what.
fn consent(context: &Context, args: &Restore, spec: &RestoreSpec) -> Result<()> {
    if !args.overwrite {
        return Ok(());
    }
    let (text, word) = replaced(spec);
    context.ui.confirm_by_name(&text, &word)
}

/// What would be replaced, and the word that is typed for it.
fn replaced(spec: &RestoreSpec) -> (String, String) {
    if let Some(volume) = &spec.to.volume {
        let claim = volume.persistent_volume_claim.as_ref();
        let claim = claim.map(|c| c.claim_name.clone()).unwrap_or_default();
        let what = volume.path.as_ref().map_or_else(
            || "all that is".to_owned(),
            |path| format!("all that directory {path} holds"),
        );
        return (
            format!("This would replace {what} on volume claim {claim}."),
            claim,
        );
    }
    let host = spec.to.host.clone().unwrap_or_default();
    let word = spec.to.database.clone().unwrap_or_else(|| host.clone());
    let what = if crds::restore::from_archive(&spec.from) {
        "tables and keys of the same name, of PostgreSQL all that the database holds,"
    } else {
        "tables of the same name"
    };
    (
        format!("This would replace {what} in {word} at {host}."),
        word,
    )
}
