//! All that a Job is made from. PURE.

use std::collections::BTreeMap;

use crds::mounts::Mounts;
use k8s_openapi::api::batch::v1::{Job, JobSpec, PodFailurePolicy};
use k8s_openapi::api::core::v1::{EnvVar, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::pod::PodOptions;
use crate::engine::Object;

/// Labels or annotations.
pub(crate) type Pairs = BTreeMap<String, String>;

/// All that a Job is made from.
pub(crate) struct Parts<'a> {
    /// The object that controls it.
    pub(crate) object: &'a Object,
    /// API version of the object's kind.
    pub(crate) api_version: &'a str,
    /// Name of the Job.
    pub(crate) name: String,
    /// Labels of Job and pod, over the user's.
    pub(crate) labels: Pairs,
    /// Likewise annotations.
    pub(crate) annotations: Pairs,
    /// Annotations of the pod alone, which are files of it, beside those of `mounts`.
    pub(crate) inline: Pairs,
    pub(crate) backoff_limit: i32,
    pub(crate) active_deadline_seconds: Option<i64>,
    pub(crate) pod_failure_policy: Option<PodFailurePolicy>,
    pub(crate) pod: PodOptions,
    /// The pod runs our runner.
    pub(crate) own: bool,
    /// The environment in which the runner finds what it is to do.
    pub(crate) told: Vec<EnvVar>,
    /// The files that it is told of.
    pub(crate) mounts: Mounts,
    pub(crate) runner_image: &'a str,
    /// The image that has the clients, if the pod runs in it.
    pub(crate) client_image: Option<String>,
}

impl Parts<'_> {
    /// The Job.
    ///
    /// # Errors
    /// A message for the user if the parts can't be expressed as a Job.
    pub(crate) fn assemble(self) -> Result<Job, String> {
        let mut pod = self.pod;
        let user = pod.pod_metadata.take().unwrap_or_default();
        let (mut labels, mut annotations) = (user.labels, user.annotations);
        labels.extend(self.labels);
        annotations.extend(self.annotations);
        let mut of_pod = annotations.clone();
        of_pod.extend(self.mounts.annotations());
        of_pod.extend(self.inline);
        let (volumes, mounts) = self.mounts.finish();
        pod.volumes.extend(volumes);
        pod.volume_mounts.extend(mounts);
        let mut pod = pod.into_pod(self.runner_image, self.own, self.told)?;
        if let Some(image) = &self.client_image {
            crds::pod::run_in(&mut pod, image);
        }
        let object = self.object;
        Ok(Job {
            metadata: ObjectMeta {
                name: Some(self.name),
                namespace: Some(object.namespace.clone()),
                labels: Some(labels.clone()),
                annotations: Some(annotations),
                owner_references: Some(vec![OwnerReference {
                    api_version: self.api_version.to_owned(),
                    kind: object.kind.clone(),
                    name: object.name.clone(),
                    uid: object.uid.clone(),
                    controller: Some(true),
                    block_owner_deletion: Some(true),
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(JobSpec {
                backoff_limit: Some(self.backoff_limit),
                active_deadline_seconds: self.active_deadline_seconds,
                pod_failure_policy: self.pod_failure_policy,
                pod_replacement_policy: Some("Failed".to_owned()),
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: Some(labels),
                        annotations: Some(of_pod),
                        ..ObjectMeta::default()
                    }),
                    spec: Some(pod),
                },
                ..JobSpec::default()
            }),
            ..Job::default()
        })
    }
}
