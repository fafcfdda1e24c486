//! Why a Job's pod does not run yet, with its events read where its status does not say it.

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::Cluster;
use crate::view::pod::{Stage, needs_events, no_pod, stage};

/// Where a container of the pod stands. Events that may not be read make fewer words, no error.
pub(crate) async fn of_pod(
    cluster: &Cluster,
    namespace: &str,
    pod: &Pod,
    container: &str,
) -> Stage {
    let mut events = vec![];
    if let (true, Some(uid)) = (needs_events(pod, container), &pod.metadata.uid) {
        events = cluster.events(namespace, uid).await.unwrap_or_default();
    }
    stage(pod, container, &events)
}

/// Why the Job of this name has no pod, if somebody says so.
pub(crate) async fn of_job(cluster: &Cluster, namespace: &str, job: &str) -> Option<String> {
    let uid = cluster.job(namespace, job).await.ok()??.metadata.uid?;
    let events = cluster.events(namespace, &uid).await.ok()?;
    no_pod(&uid, &events)
}
