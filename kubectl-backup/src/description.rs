//! Reads the whole chain behind an object, for its description; what can't be read is said, not
//! fatal.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Event;

use crate::cluster::{Cluster, LogOptions, Object, current_run, last_seen};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::view::describe::describe;
use crate::view::describe_restore;
use crate::view::page::{Inputs, Probe};
use crate::view::pod::container;

/// Lines of the log that are shown.
const TAIL: i64 = 10;

/// The description of an object.
pub(crate) async fn of_object(context: &Context, cluster: &Cluster, object: &Object) -> String {
    describe(&read(context, cluster, object).await)
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
    let events = events(cluster, object, status.job_uid.clone()).await;
    describe_restore::describe(&describe_restore::Inputs {
        name: (object.name(), namespace),
        spec: serde_json::from_value(object.spec().clone()).unwrap_or_default(),
        status,
        pods,
        log,
        events,
        now: context.now(),
        ascii: context.ui.ascii(),
    })
}

/// Events of an object and of the Job behind it, oldest first.
async fn events(cluster: &Cluster, object: &Object, job: Option<String>) -> Probe<Vec<Event>> {
    let namespace = object.namespace();
    let own = cluster.events(&namespace, &object.uid()).await;
    let mut events = probe(own, "list events");
    if let (Ok(events), Some(uid)) = (&mut events, job) {
        events.extend(cluster.events(&namespace, &uid).await.unwrap_or_default());
        events.sort_by_key(last_seen);
    }
    events
}

async fn read<'a>(context: &Context, cluster: &Cluster, object: &'a Object) -> Inputs<'a> {
    let namespace = object.namespace();
    let status = object.status();
    let run = current_run(&status).map(|run| run.name.clone());
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
    let events = events(cluster, object, job_uid).await;
    Inputs {
        object,
        job,
        pods,
        log,
        events,
        zone: context.zone,
        now: context.now(),
        ascii: context.ui.ascii(),
    }
}

async fn log(
    cluster: &Cluster,
    namespace: &str,
    pod: &k8s_openapi::api::core::v1::Pod,
) -> Probe<Vec<String>> {
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
