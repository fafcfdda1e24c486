//! `doctor`: what must be in place for backups to be made, checked one by one, with a remedy each.

mod installation;
mod objects;

use crate::cli::Doctor;
use crate::cluster::Cluster;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::report::{Report, Verdict, render};

/// Examines.
///
/// # Errors
/// Status 1 if something is wrong.
pub(crate) async fn run(context: &Context, args: &Doctor) -> Result<()> {
    let mut report = Report::default();
    let mut outcome = Ok(());
    match context.cluster().await {
        Ok(cluster) => outcome = examine(context, &cluster, args, &mut report).await,
        Err(error) => report.failed(Verdict::Bad, "configuration", &error),
    }
    context.ui.out(&render(
        &report,
        args.output,
        context.ui.ascii(),
        context.ui.color(),
    ))?;
    outcome?;
    if report.findings.iter().any(|f| f.verdict == Verdict::Bad) {
        return Err(Error::silent(Exit::Other));
    }
    Ok(())
}

async fn examine(
    context: &Context,
    cluster: &Cluster,
    args: &Doctor,
    report: &mut Report,
) -> Result<()> {
    report.add(
        Verdict::Good,
        format!(
            "configuration: context {:?}, namespace {:?}",
            cluster.place.context, cluster.namespace
        ),
        None,
    );
    match cluster.server_version().await {
        Ok(version) => report.add(
            Verdict::Good,
            format!("API server: {version} at {}", cluster.place.server),
            None,
        ),
        Err(error) => {
            report.failed(Verdict::Bad, "API server", &error);
            return Ok(());
        }
    }
    installation::namespace(cluster, report).await;
    installation::clock(context, cluster, report).await;
    installation::kinds(cluster, report).await;
    installation::operator(cluster, report).await;
    installation::rights(cluster, report).await;
    objects::examine(context, cluster, args, report).await
}
