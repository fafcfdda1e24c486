//! `cancel`: asks the operator to end a run.

use crds::request::{Action, Request};
use crds::run::Run;

use super::run_now::{annotation, fresh_id};
use super::wait::find_run;
use crate::cli::Cancel;
use crate::cluster::{Cluster, Object, duration};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;
use crate::waiting::run::{Goal, attend};

/// Cancels.
///
/// # Errors
/// No such run; a run that has ended.
pub(crate) async fn run(context: &Context, args: &Cancel) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    let (object, run) = find_run(&cluster, &args.name).await?;
    if run.result.is_final() {
        return Err(Error::new(
            Exit::Other,
            format!("{} has ended already: {}", run.name, run.result.as_str()),
        ));
    }
    request(context, &cluster, &object, &run, args.reason.as_deref()).await?;
    context.ui.line(&format!(
        "{} run/{} cancel requested",
        object.full_name(),
        run.name
    ))?;
    if !args.wait {
        return Ok(());
    }
    let goal = Goal {
        object: &object,
        run: run.name,
        request: None,
        follow: false,
        timeout,
    };
    let run = attend(context, &cluster, goal).await?;
    let text = crate::view::runs::outcome(&run, context.now());
    context
        .ui
        .progress(Mark::Good, &format!("{} {text}", run.name));
    Ok(())
}

/// Asks for the end of one run.
///
/// # Errors
/// What the server refused.
pub(crate) async fn request(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    run: &Run,
    reason: Option<&str>,
) -> Result<()> {
    let id = fresh_id(&run.name);
    let mut request = Request::new(Action::Cancel, &id, &cluster.user, context.now());
    request.options.run = Some(run.name.clone());
    request.reason = reason.unwrap_or_default().to_owned();
    let patch = annotation(&request);
    cluster
        .merge_patch(object, &patch, crds::labels::PLUGIN_MANAGER, false)
        .await
        .map(|_| ())
}
