//! `wait`: comes back to a run or a Restore and exits with its result.

use crate::cli::Wait;
use crate::cluster::duration;
use crate::context::Context;
use crate::error::Result;
use crate::select;
use crate::waiting::restore;
use crate::waiting::run::{AwaitedRun, report_result, wait_for_run};

/// Waits.
///
/// # Errors
/// No such run, a run that was not good, time is up.
pub(crate) async fn run(context: &Context, args: &Wait) -> Result<()> {
    let timeout = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    if let Some(name) = select::restore_name(&args.name) {
        let object = select::restore(&cluster, name).await?;
        return restore::wait_and_report(context, &cluster, &object, args.follow, timeout, false)
            .await
            .map(drop);
    }
    let (object, run) = select::find_run(&cluster, &args.name).await?.listed()?;
    let awaited = AwaitedRun {
        object: &object,
        run: run.name,
        request: None,
        follow: args.follow,
        timeout,
    };
    let run = wait_for_run(context, &cluster, awaited).await?;
    report_result(context, &object, &run, None)
}
