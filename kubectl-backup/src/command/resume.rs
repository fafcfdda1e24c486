//! `resume`: slots are started again, and it is said what becomes of those that were missed.

use crds::labels;
use crds::time::from_k8s;
use serde_json::Value;

use crate::build::suspension;
use crate::change::{Tally, apply, warn_owner};
use crate::cli::Resume;
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::select;
use crate::view::preview::next_run;

/// Resumes.
///
/// # Errors
/// The first failure; the others are resumed all the same.
pub(crate) async fn run(context: &Context, args: &Resume) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut tally = Tally::default();
    let by_list = args.targets.all || args.targets.selector.is_some();
    if args.suspended_by.is_some() && !by_list {
        return Err(Error::usage(
            "--suspended-by goes with --all or --selector; an object that is named is resumed, no matter who suspended it",
        ));
    }
    for object in select::many(
        context,
        &cluster,
        &args.targets,
        "resume",
        Some(&args.change),
    )
    .await?
    {
        let outcome = match object {
            Ok(object) if by_list && is_others(&cluster, args, &object) => {
                context.changed(&object, &left_suspended(&object), &args.change)?;
                Ok(false)
            }
            Ok(object) => one(context, &cluster, args, &object).await,
            Err(error) => Err(error),
        };
        tally.add(context, outcome)?;
    }
    tally.end(args.unchanged)
}

/// True if somebody else suspended it: a list ends only the suspensions that are meant.
fn is_others(cluster: &Cluster, args: &Resume, object: &Object) -> bool {
    let meant = args.suspended_by.as_deref().unwrap_or(&cluster.user);
    object.suspended()
        && meant != "any"
        && object.annotation(labels::SUSPENDED_BY).unwrap_or_default() != meant
}

fn left_suspended(object: &Object) -> String {
    match object.annotation(labels::SUSPENDED_BY) {
        Some(by) => format!(
            "left suspended: {by} suspended it; resume it by its name, or add --suspended-by {by}"
        ),
        None => "left suspended: nobody knows who suspended it; resume it by its name, or add --suspended-by any".to_owned(),
    }
}

async fn one(context: &Context, cluster: &Cluster, args: &Resume, object: &Object) -> Result<bool> {
    if !object.suspended() {
        context.changed(object, "unchanged (not suspended)", &args.change)?;
        return Ok(false);
    }
    let changed = apply(
        cluster,
        object,
        &patch(object, args, context.now()),
        &args.change,
        &args.writer,
    )
    .await?;
    let what = format!(
        "resumed; {}{}",
        next_run(object, context.zone, context.now()),
        missed(context, args, object)
    );
    context.changed(&changed, &what, &args.change)?;
    warn_owner(context, object, "resume");
    Ok(true)
}

/// What becomes of the slots since the suspension began.
fn missed(context: &Context, args: &Resume, object: &Object) -> String {
    let status = object.status();
    let annotated = object
        .annotation(labels::SUSPENDED_SINCE)
        .and_then(crds::time::parse_rfc3339);
    let since = status.suspended_since.as_ref().map(from_k8s).or(annotated);
    let (Some(since), Ok(schedule)) = (since, object.schedule()) else {
        return String::new();
    };
    let anchor = object.created().unwrap_or(since);
    match (
        schedule.count_in(since, context.now(), anchor).count,
        args.run_missed,
    ) {
        (0, _) => String::new(),
        (1, false) => "; 1 missed run will not be made up".to_owned(),
        (count, false) => format!("; {count} missed runs will not be made up"),
        (count, true) => {
            format!("; of {count} missed, the newest is made up if its deadline allows")
        }
    }
}

fn patch(object: &Object, args: &Resume, now: chrono::DateTime<chrono::Utc>) -> Value {
    let mut patch = suspension::resume(object, now);
    if args.run_missed {
        patch["metadata"]["annotations"][labels::SKIP_SLOTS_UNTIL] = Value::Null;
    }
    patch
}
