//! `cancel`: asks the operator to end a run.

use crate::cli::Cancel;
use crate::cluster::duration;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select::find_run;
use crate::ui::Mark;
use crate::waiting::request::ask_to_cancel;
use crate::waiting::run::{AwaitedRun, wait_for_run};

/// Cancels.
///
/// # Errors
/// No such run; a run that has ended.
pub(crate) async fn run(context: &Context, args: &Cancel) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
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
