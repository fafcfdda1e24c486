//! `run-now`: asks for a backup, and with `--wait` answers with the run's own result.

use std::time::Duration;

use crds::names;
use crds::request::{Action, Request};
use futures::{StreamExt, stream};

use crate::change::Tally;
use crate::cli::{DryRun, RunNow};
use crate::cluster::{Cluster, Object, duration, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::ui::Mark;
use crate::waiting::run::{AwaitedRun, report_result, wait_for_run};
use crate::{presence, select};

/// Asks, and waits if told to.
///
/// # Errors
/// The first failure; with `--wait`, a run that was not good.
pub(crate) async fn run(context: &Context, args: &RunNow) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    if args
        .id
        .as_ref()
        .is_some_and(|id| id.is_empty() || id.len() > 128)
    {
        return Err(Error::usage("--id must have 1 to 128 characters"));
    }
    let cluster = context.cluster().await?;
    let objects = select::many(context, &cluster, &args.targets, "run", Some(&args.change)).await?;
    if objects.is_empty() {
        // Who asked for runs and got none must not take it for success.
        return Err(Error::silent(Kind::NotFound));
    }
    let parallel = usize::from(args.max_parallel);
    let outcomes = stream::iter(objects)
        .map(|object| one(context, &cluster, args, object, timeout))
        .buffer_unordered(parallel);
    let outcomes: Vec<Result<bool>> = outcomes.collect().await;
    let mut tally = Tally::default();
    for outcome in outcomes {
        tally.add(context, outcome)?;
    }
    tally.end(args.unchanged)
}

async fn one(
    context: &Context,
    cluster: &Cluster,
    args: &RunNow,
    object: Result<Object>,
    timeout: Duration,
) -> Result<bool> {
    let object = object?;
    let id = args.id.clone().unwrap_or_else(|| fresh_id(&object.uid()));
    let run = names::manual_name(&object.name(), &object.uid(), &id);
    let status = object.status();
    let known = status.requests.iter().any(|r| r.id == id)
        || status
            .runs
            .iter()
            .any(|r| r.request_id.as_deref() == Some(id.as_str()));
    let waits = (args.wait || args.follow) && args.change.dry_run == DryRun::None;
    if !known && args.change.dry_run != DryRun::Client {
        presence::of_run(context, cluster, &object).await?;
    }
    if known {
        context.ui.progress(
            Mark::Action,
            &format!(
                "{}: request {id} was made before (run {run})",
                object.full_name()
            ),
        );
    } else {
        send(context, cluster, args, &object, &id).await?;
    }
    if object.suspended() {
        context.ui.warn(&format!(
            "{} is suspended; this run is made, its schedule stays suspended",
            object.full_name()
        ));
    }
    if !waits {
        let what = if known { "unchanged" } else { "requested" };
        context.changed(&object, &format!("run/{run} {what}"), &args.change)?;
        return Ok(!known);
    }
    context.ui.progress(
        Mark::Action,
        &format!("{}: run requested (id {id}, run {run})", object.full_name()),
    );
    let awaited = AwaitedRun {
        object: &object,
        run,
        request: Some(id),
        follow: args.follow,
        timeout,
    };
    let run = wait_for_run(context, cluster, awaited).await?;
    report_result(context, &object, &run, args.change.output.as_ref())?;
    Ok(true)
}

/// Writes the request onto the object.
async fn send(
    context: &Context,
    cluster: &Cluster,
    args: &RunNow,
    object: &Object,
    id: &str,
) -> Result<()> {
    let mut request = Request::new(Action::Backup, id, &cluster.user, context.now());
    request.reason = args.reason.clone().unwrap_or_default();
    request.options.queue = args.queue;
    if args.change.dry_run == DryRun::Client {
        return Ok(());
    }
    let server_dry_run = args.change.dry_run == DryRun::Server;
    cluster
        .send(object, &request, &args.writer.name, server_dry_run)
        .await
}
