//! `runs --stored`: what is really in the store, listed there by a Job of the operator.

use std::time::Duration;

use crds::request::{Action, Options};
use futures::StreamExt;

use crate::cluster::{Cluster, LogOptions, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;
use crate::view::pod::container;
use crate::view::stored::{Line, Store, lines};
use crate::waiting::request::{ask, wait_for_end};

/// The lines of an object, and why they are not all: a storage that refuses keeps nothing of the others
/// back.
///
/// # Errors
/// No operator, nothing could be listed, a log that may not be read, time is up.
pub(crate) async fn of(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    limit: Duration,
) -> Result<(Vec<Line>, Option<Error>)> {
    let id = ask(context, cluster, object, Action::List, Options::default()).await?;
    let short = object.kind.short_name(&object.name());
    context.ui.progress(
        Mark::Action,
        &format!("{short}: list of the store requested (id {id})"),
    );
    let answer = wait_for_end(context, cluster, object, &id, limit).await?;
    let failed = answer.failed.map(|kind| Error::new(kind, answer.message));
    let log = match &answer.job {
        Some(job) => log(cluster, &object.namespace(), job).await,
        None => Err(Error::new(
            Exit::Other,
            format!("{short}: the operator named no job that lists the store"),
        )),
    };
    let (log, failed) = match (log, failed) {
        (Ok(log), failed) => (log, failed),
        // Why it failed says more than why there is no log.
        (Err(error), failed) => return Err(failed.unwrap_or(error)),
    };
    let status = object.status();
    let zone = status.schedule.as_ref().map(|s| s.time_zone.clone());
    let store = Store::of(log.iter().map(String::as_str));
    let lines = lines(
        (&object.namespace(), &short, &zone.unwrap_or_default()),
        &store,
        &status.runs,
    );
    Ok((lines, failed))
}

/// The log of the Job's newest pod.
async fn log(cluster: &Cluster, namespace: &str, job: &str) -> Result<Vec<String>> {
    let pod = cluster.pods(namespace, job).await?.pop().ok_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("the pod of job {job} is gone, and the list with it"),
        )
        .hint("send the request again: kubectl backup runs --stored")
    })?;
    let options = LogOptions {
        container: container(&pod),
        ..LogOptions::default()
    };
    let name = pod.metadata.name.unwrap_or_default();
    let mut stream = cluster.log(namespace, &name, &options).await?;
    let mut all = vec![];
    while let Some(line) = stream.next().await {
        all.push(line?);
    }
    Ok(all)
}
