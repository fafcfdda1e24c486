//! What stands behind a run: its Job, pods, logs and events.

use chrono::{DateTime, Utc};
use futures::{AsyncBufReadExt, Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, LogParams};

use super::Cluster;
use super::fail::{Call, is_missing_object};
use crate::error::Result;

/// Label a Job's pods carry.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Which part of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogOptions {
    /// Container.
    pub(crate) container: Option<String>,
    /// Go on until the container ends.
    pub(crate) follow: bool,
    /// Newest lines; none for all.
    pub(crate) tail: Option<i64>,
    /// The previous try.
    pub(crate) previous: bool,
    /// With times.
    pub(crate) timestamps: bool,
}

/// True if the Job of this name controls it.
fn is_of_job(metadata: &ObjectMeta, job: &str) -> bool {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|o| o.controller == Some(true));
    owner.is_some_and(|o| o.kind == "Job" && o.api_version.starts_with("batch/") && o.name == job)
}

impl Cluster {
    fn core<'a>(verb: &'a str, resource: &'a str, namespace: &'a str) -> Call<'a> {
        Call {
            verb,
            resource,
            kind: None,
            namespace: Some(namespace),
        }
    }

    /// The Job of a run, if it is still there.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn job(&self, namespace: &str, name: &str) -> Result<Option<Job>> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), namespace);
        match api.get(name).await {
            Ok(job) => Ok(Some(job)),
            Err(e) if is_missing_object(&e) => Ok(None),
            Err(e) => Err(self.explain(&e, Self::core("get", "jobs", namespace))),
        }
    }

    /// The pods that the Job controls, oldest first. The label alone proves nothing: anybody who may
    /// make pods may write it.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn pods(&self, namespace: &str, job: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().labels(&format!("{JOB_NAME}={job}"));
        let mut pods = api
            .list(&params)
            .await
            .map_err(|e| self.explain(&e, Self::core("list", "pods", namespace)))?
            .items;
        pods.retain(|pod| is_of_job(&pod.metadata, job));
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|t| t.0));
        Ok(pods)
    }

    /// A pod, if it is still there.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        match api.get(name).await {
            Ok(pod) => Ok(Some(pod)),
            Err(e) if is_missing_object(&e) => Ok(None),
            Err(e) => Err(self.explain(&e, Self::core("get", "pods", namespace))),
        }
    }

    /// Lines of a pod's log.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn log(
        &self,
        namespace: &str,
        pod: &str,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = std::io::Result<String>> + Send + Unpin + use<>> {
        let client = if options.follow {
            &self.patient
        } else {
            &self.client
        };
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let params = LogParams {
            container: options.container.clone(),
            follow: options.follow,
            tail_lines: options.tail,
            previous: options.previous,
            timestamps: options.timestamps,
            ..LogParams::default()
        };
        let reader = api
            .log_stream(pod, &params)
            .await
            .map_err(|e| self.explain(&e, Self::core("get", "pods/log", namespace)))?;
        // Bytes that are no UTF-8 are shown as such instead of ending the log.
        let lines = futures::stream::unfold(Box::pin(reader), |mut reader| async move {
            let mut line = vec![];
            match reader.read_until(b'\n', &mut line).await {
                Ok(0) => None,
                Ok(_) => {
                    while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
                        line.pop();
                    }
                    Some((Ok(String::from_utf8_lossy(&line).into_owned()), reader))
                }
                Err(e) => Some((Err(e), reader)),
            }
        });
        Ok(lines.boxed())
    }

    /// Events about an object, oldest first.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn events(&self, namespace: &str, uid: &str) -> Result<Vec<Event>> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let mut events = api
            .list(&params)
            .await
            .map_err(|e| self.explain(&e, Self::core("list", "events", namespace)))?
            .items;
        events.sort_by_key(last_seen);
        Ok(events)
    }

    /// Version of the API server, such as `v1.35.4`.
    ///
    /// # Errors
    /// What the server refused.
    pub(crate) async fn server_version(&self) -> Result<String> {
        let call = Call {
            verb: "get",
            resource: "version",
            kind: None,
            namespace: None,
        };
        let info = self
            .client
            .apiserver_version()
            .await
            .map_err(|e| self.explain(&e, call))?;
        Ok(info.git_version)
    }
}

/// When an event was last seen.
pub(crate) fn last_seen(event: &Event) -> Option<DateTime<Utc>> {
    let series = event
        .series
        .as_ref()
        .and_then(|s| s.last_observed_time.as_ref());
    series
        .map(crds::time::from_micro)
        .or_else(|| event.last_timestamp.as_ref().map(crds::time::from_k8s))
        .or_else(|| event.event_time.as_ref().map(crds::time::from_micro))
        .or_else(|| {
            event
                .metadata
                .creation_timestamp
                .as_ref()
                .map(crds::time::from_k8s)
        })
}
