//! Reads the whole chain behind an object, for its description; what can't be read is said, not
//! fatal.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, Pod};

use crate::cluster::{Cluster, LogOptions, Object, current_run, last_seen};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select::{self, NamedRun};
use crate::view::describe::describe;
use crate::view::describe_run::describe_run;
use crate::view::page::{Inputs, Probe};
use crate::view::pod::{Stage, container};
use crate::view::{describe_endpoint, describe_restore};
use crate::{presence, startup};

/// Lines of the log that are shown.
const TAIL: i64 = 10;

/// The description of an object.
pub(crate) async fn of_object(context: &Context, cluster: &Cluster, object: &Object) -> String {
    let run = current_run(&object.status()).map(|run| run.name.clone());
    describe(&read(context, cluster, object, run).await)
}

/// The description of a run, as far as status, its Job or its pods are there.
///
/// # Errors
/// Nothing of it is there any more.
pub(crate) async fn of_run(
    context: &Context,
    cluster: &Cluster,
    found: NamedRun,
) -> Result<String> {
    let inputs = read(context, cluster, &found.object, Some(found.name.clone())).await;
    let silent = matches!(&inputs.job, Ok(None)) && inputs.pods.as_ref().is_ok_and(Vec::is_empty);
    if found.run.is_none() && silent {
        return Err(select::unlisted(&found.object, &found.name));
    }
    Ok(describe_run(&inputs, &found.name, found.run.as_ref()))
}

/// The description of a Restore.
pub(crate) async fn of_restore(context: &Context, cluster: &Cluster, object: &Object) -> String {
    let namespace = object.namespace();
    let status = object.restore_status();
    let pods = match &status.job {
        Some(job) => probe(cluster.pods(&namespace, job).await, "list pods"),
        None => Ok(vec![]),
    };
    let log = match pods.as_ref().ok().and_then(|pods| pods.last()) {
        Some(pod) => log(cluster, &namespace, pod).await,
        None => Ok(vec![]),
    };
    let events = events(cluster, object, status.job_uid.clone(), &pods).await;
    describe_restore::describe(&describe_restore::Inputs {
        name: (object.name(), namespace),
        created: object.created(),
        spec: serde_json::from_value(object.spec().clone()).unwrap_or_default(),
        status,
        pods,
        log,
        events,
        now: context.now(),
        ascii: context.ui.ascii(),
        color: context.ui.color(),
        zone: context.zone,
    })
}

/// The description of a Database or Storage.
pub(crate) async fn of_endpoint(context: &Context, cluster: &Cluster, object: &Object) -> String {
    let users = select::users(cluster, Some(object.namespace())).await;
    let events = events(cluster, object, None, &Ok(vec![])).await;
    describe_endpoint::describe(object, &users, &events, context.now(), context.ui.color())
}

/// Events of an object, of the Job behind it and of the Job's newest pod, oldest first.
async fn events(
    cluster: &Cluster,
    object: &Object,
    job: Option<String>,
    pods: &Probe<Vec<Pod>>,
) -> Probe<Vec<Event>> {
    let namespace = object.namespace();
    let own = cluster.events(&namespace, &object.uid()).await;
    let newest = pods.as_ref().ok().and_then(|pods| pods.last());
    let pod = newest.and_then(|pod| pod.metadata.uid.clone());
    let mut events = probe(own, "list events");
    if let Ok(events) = &mut events {
        for uid in job.into_iter().chain(pod) {
            events.extend(cluster.events(&namespace, &uid).await.unwrap_or_default());
        }
        events.sort_by_key(last_seen);
    }
    events
}

/// Reads what stands behind a run of an object.
async fn read<'a>(
    context: &Context,
    cluster: &Cluster,
    object: &'a Object,
    run: Option<String>,
) -> Inputs<'a> {
    let namespace = object.namespace();
    let (job, pods) = match &run {
        Some(run) => {
            let (job, pods) =
                tokio::join!(cluster.job(&namespace, run), cluster.pods(&namespace, run));
            (probe(job, "get jobs"), probe(pods, "list pods"))
        }
        None => (Ok(None), Ok(vec![])),
    };
    let newest = pods.as_ref().ok().and_then(|pods| pods.last());
    let log = match newest {
        Some(pod) => log(cluster, &namespace, pod).await,
        None => Ok(vec![]),
    };
    let job_uid = job
        .as_ref()
        .ok()
        .and_then(|j| j.as_ref())
        .and_then(|j| j.metadata.uid.clone());
    let events = events(cluster, object, job_uid, &pods).await;
    let unverified = unverified(cluster, object).await;
    let missing = presence::faults(&presence::references(cluster, object, false).await);
    Inputs {
        object,
        missing,
        job,
        pods,
        log,
        events,
        unverified,
        zone: context.zone,
        now: context.now(),
        ascii: context.ui.ascii(),
        color: context.ui.color(),
    }
}

/// The newest run whose verification by restore is due and has not started, and why.
async fn unverified(cluster: &Cluster, object: &Object) -> Option<(String, String)> {
    let runs = object.status().runs;
    let waits = runs
        .iter()
        .find(|run| run.verification.is_none() && run.verify_job.is_some())?;
    let job = waits.verify_job.as_deref()?;
    let namespace = object.namespace();
    let pods = cluster.pods(&namespace, job).await.ok()?;
    let why = match pods.last() {
        None => startup::of_job(cluster, &namespace, job).await?,
        Some(pod) => {
            let name = container(pod).unwrap_or_default();
            match startup::of_pod(cluster, &namespace, pod, &name).await {
                Stage::Waiting(why) => why,
                Stage::Running(_) | Stage::Ended(_) => return None,
            }
        }
    };
    Some((
        waits.name.clone(),
        format!("job/{job} has not started: {why}"),
    ))
}

async fn log(cluster: &Cluster, namespace: &str, pod: &Pod) -> Probe<Vec<String>> {
    let options = LogOptions {
        container: container(pod),
        tail: Some(TAIL),
        ..LogOptions::default()
    };
    let name = pod.metadata.name.clone().unwrap_or_default();
    match cluster.log(namespace, &name, &options).await {
        Ok(lines) => Ok(lines
            .filter_map(|l| std::future::ready(l.ok()))
            .take(100)
            .collect()
            .await),
        // A container that has not started has no log yet; its pod's line says so.
        Err(error) if error.kind == Exit::Other => Ok(vec![]),
        Err(error) => probe(Err(error), "read logs"),
    }
}

/// A link that could not be read, in a few words.
fn probe<T>(answer: Result<T>, what: &str) -> Probe<T> {
    answer.map_err(|error: Error| match error.kind {
        Exit::Denied => format!("(no permission to {what})"),
        _ => format!("({})", error.message),
    })
}
