//! `cancel`: asks the operator to end a run or a Restore.

use std::time::Duration;

use crds::request::{Action, Request};
use crds::restore::RestorePhase;

use crate::cli::Cancel;
use crate::cluster::{Cluster, duration, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select::{self, find_run};
use crate::ui::Mark;
use crate::waiting::request::ask_to_cancel;
use crate::waiting::restore::wait_for_restore;
use crate::waiting::run::{AwaitedRun, wait_for_run};

/// Cancels.
///
/// # Errors
/// No such run; a run that has ended.
pub(crate) async fn run(context: &Context, args: &Cancel) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    if let Some(name) = select::restore_name(&args.name) {
        return restore(context, &cluster, args, name, timeout).await;
    }
    let (object, run) = find_run(&cluster, &args.name).await?.listed()?;
    if run.result.is_final() {
        return Err(Error::new(
            Exit::Other,
            format!("{} has ended already: {}", run.name, run.result.as_str()),
        ));
    }
    ask_to_cancel(context, &cluster, &object, &run, args.reason.as_deref()).await?;
    context.ui.line(&format!(
        "{} run/{} cancel requested",
        object.full_name(),
        run.name
    ))?;
    if !args.wait {
        return Ok(());
    }
    let awaited = AwaitedRun {
        object: &object,
        run: run.name,
        request: None,
        follow: false,
        timeout,
    };
    let run = wait_for_run(context, &cluster, awaited).await?;
    let text = crate::view::runs::outcome(&run, context.now());
    context
        .ui
        .progress(Mark::Good, &format!("{} {text}", run.name));
    Ok(())
}

/// Ends a Restore: it fails with reason Cancelled, and its Job is deleted.
async fn restore(
    context: &Context,
    cluster: &Cluster,
    args: &Cancel,
    name: &str,
    timeout: Duration,
) -> Result<()> {
    let object = select::restore(cluster, name).await?;
    let full_name = object.full_name();
    if let Some(phase) = object.restore_status().phase.filter(|p| p.is_final()) {
        let text = format!("{full_name} has ended already: {}", phase.as_str());
        return Err(Error::new(Exit::Other, text));
    }
    let id = fresh_id(&object.uid());
    let mut request = Request::new(Action::Cancel, &id, &cluster.user, context.now());
    request.reason = args.reason.clone().unwrap_or_default();
    let manager = crds::labels::PLUGIN_MANAGER;
    cluster.send(&object, &request, manager, false).await?;
    context.ui.line(&format!("{full_name} cancel requested"))?;
    if !args.wait {
        return Ok(());
    }
    let status = wait_for_restore(context, cluster, &object, false, timeout).await?;
    let mark = match status.phase {
        Some(RestorePhase::Succeeded) => Mark::Bad,
        _ => Mark::Good,
    };
    let text = crds::secret::mask(&status.message);
    context.ui.progress(mark, &format!("{name}: {text}"));
    Ok(())
}
