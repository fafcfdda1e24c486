//! `doctor`: what must be in place for backups to be made, checked one by one, with a remedy each.

mod installation;
mod objects;
mod operator;

use crds::verdict::State;

use crate::cli::Doctor;
use crate::cluster::Cluster;
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::report::{Report, render};

/// Examines.
///
/// # Errors
/// Status 1 if something is wrong.
pub(crate) async fn run(context: &Context, args: &Doctor) -> Result<()> {
    let mut report = Report::default();
    let mut outcome = Ok(());
    match context.cluster().await {
        Ok(cluster) => outcome = examine(context, &cluster, args, &mut report).await,
        Err(error) => report.failed(State::Critical, "configuration", &error),
    }
    context.ui.out(&render(
        &report,
        args.output,
        context.ui.ascii(),
        context.ui.color(),
    ))?;
    outcome?;
    if report.findings.iter().any(|f| f.verdict == State::Critical) {
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
        State::Good,
        format!(
            "configuration: context {:?}, namespace {:?}",
            cluster.place.context, cluster.namespace
        ),
        None,
    );
    match cluster.server_version().await {
        Ok(version) => report.add(
            State::Good,
            format!("API server: {version} at {}", cluster.place.server),
            None,
        ),
        Err(error) => {
            report.failed(State::Critical, "API server", &error);
            return Ok(());
        }
    }
    installation::namespace(cluster, report).await;
    installation::clock(context, cluster, report).await;
    installation::kinds(cluster, report).await;
    let accounts = installation::operator(cluster, report).await;
    let found = objects::find(cluster, args, report).await;
    operator::examine(context, cluster, &found, &accounts, report).await;
    installation::rights(cluster, report).await;
    objects::examine(context, cluster, args, &found, report).await
}
