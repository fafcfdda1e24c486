//! `runs --stored`: what is really in the store, listed there by a Job of the operator.

use std::time::Duration;

use crds::request::{Action, Options};
use futures::StreamExt;

use crate::cluster::{Cluster, LogOptions, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::ui::Mark;
use crate::view::pod::container;
use crate::view::stored::{Line, artefacts, lines};
use crate::waiting::request::{ask, wait_for_answer};

/// The lines of an object.
///
/// # Errors
/// No operator, a store that refuses, a log that may not be read, time is up.
pub(crate) async fn of(
    context: &Context,
    cluster: &Cluster,
    object: &Object,
    limit: Duration,
) -> Result<Vec<Line>> {
    let id = ask(context, cluster, object, Action::List, Options::default()).await?;
    let short = object.kind.short_name(&object.name());
    context.ui.progress(
        Mark::Action,
        &format!("{short}: list of the store requested (id {id})"),
    );
    let answer = wait_for_answer(context, cluster, object, &id, limit).await?;
    let job = answer.job.ok_or_else(|| {
        Error::new(
            Exit::Other,
            format!("{short}: the operator named no job that lists the store"),
        )
    })?;
    let log = log(cluster, &object.namespace(), &job).await?;
    let status = object.status();
    let zone = status.schedule.as_ref().map(|s| s.time_zone.clone());
    let found = artefacts(log.iter().map(String::as_str));
    Ok(lines(
        (&object.namespace(), &short, &zone.unwrap_or_default()),
        &found,
        &status.runs,
    ))
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
