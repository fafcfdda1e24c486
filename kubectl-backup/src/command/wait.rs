//! `wait`: comes back to a run and exits with its result.

use crds::run::Run;

use crate::cli::Wait;
use crate::cluster::{Cluster, Object, Query, duration};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{KINDS, Target};
use crate::waiting::run::{Goal, attend, conclude};

/// Waits.
///
/// # Errors
/// No such run, a run that was not good, time is up.
pub(crate) async fn run(context: &Context, args: &Wait) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    if let Some(name) = super::restore::named(&args.name) {
        return super::restore::wait(context, name, args.follow, timeout).await;
    }
    let cluster = context.cluster().await?;
    let (object, run) = find_run(&cluster, &args.name).await?;
    let goal = Goal {
        object: &object,
        run: run.name,
        request: None,
        follow: args.follow,
        timeout,
    };
    let run = attend(context, &cluster, goal).await?;
    conclude(context, &object, &run)
}

/// A run by its name, or the active or newest one of an object.
///
/// # Errors
/// Neither a run nor an object of that name; an object that never ran.
pub(crate) async fn find_run(cluster: &Cluster, text: &str) -> Result<(Object, Run)> {
    let (only_run, name) = match text.strip_prefix("run/") {
        Some(name) => (true, name),
        None => (false, text),
    };
    let mut missing = None;
    if !only_run {
        match cluster.find(&Target::parse(name)?).await {
            Ok(object) => {
                return match newest(&object) {
                    Some(run) => Ok((object, run)),
                    None => Err(never_ran(&object)),
                };
            }
            Err(error) if error.kind == Exit::NotFound && !name.contains('/') => {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    for object in cluster.all_objects(&KINDS, &query).await? {
        let run = object
            .status()
            .runs
            .into_iter()
            .find(|run| run.name == name);
        if let Some(run) = run {
            return Ok((object, run));
        }
    }
    Err(missing.unwrap_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("no run {name:?} in namespace {:?}", cluster.namespace),
        )
        .hint("kubectl backup list")
    }))
}

/// The active run of an object, else its newest.
pub(crate) fn newest(object: &Object) -> Option<Run> {
    let status = object.status();
    crate::view::describe::focus(&status).cloned()
}

/// The error for an object without runs.
pub(crate) fn never_ran(object: &Object) -> Error {
    let short = object.kind.short_name(&object.name());
    Error::new(
        Exit::NotFound,
        format!("{} has no run yet", object.full_name()),
    )
    .hint(format!("kubectl backup run-now {short} --wait"))
}
