//! Jobs, pods and objects cut to what a plan needs. PURE.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::labels;
use crds::report::{MAX_BYTES, clean};
use crds::request::{Action, MAX_VALUE, TOO_LONG, is_id};
use crds::run::Trigger;
use crds::time::{from_k8s, parse_rfc3339};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answers::MOST;
use crate::engine::{Ended, ForeignJob, JobDigest, JobOutcome, Object, PodDigest};
use crate::kind::Kind;
use crate::ownership::{self, Key};

/// Annotations whose prefix is ours, and only so long, are kept.
const MAX_ANNOTATION: usize = MAX_VALUE;

/// A user's object as the store keeps it. Its serialised names are short because each object has
/// its own copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(rename = "o")]
    pub(crate) object: KeptMeta,
    #[serde(rename = "v")]
    pub(crate) resource_version: String,
    #[serde(rename = "s")]
    pub(crate) spec: Value,
    #[serde(rename = "t")]
    pub(crate) status: Value,
}

/// [`Object`] without its kind, which the store knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptMeta {
    #[serde(rename = "s")]
    namespace: String,
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "u")]
    uid: String,
    #[serde(rename = "g", skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(rename = "c")]
    created: DateTime<Utc>,
    #[serde(rename = "d", skip_serializing_if = "std::ops::Not::not")]
    deleting: bool,
    #[serde(rename = "a", skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    schedule_edited: Option<DateTime<Utc>>,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    suspend_edited: Option<(DateTime<Utc>, String)>,
    #[serde(rename = "w", skip_serializing_if = "Option::is_none")]
    status_written: Option<DateTime<Utc>>,
}

impl Kept {
    /// What is kept where there is no room for it: what tells it apart, its conditions, and why.
    pub(super) fn too_large(&self, why: &str) -> Self {
        let conditions = self.status.get("conditions").cloned().unwrap_or_default();
        Self {
            object: KeptMeta {
                annotations: BTreeMap::from([(labels::TOO_LARGE.to_owned(), why.to_owned())]),
                ..self.object.clone()
            },
            resource_version: self.resource_version.clone(),
            spec: Value::Null,
            status: serde_json::json!({"conditions": conditions}),
        }
    }
}

impl KeptMeta {
    /// Its key among those of its kind and all others.
    pub(crate) fn key(&self, kind: &str) -> Key {
        ownership::key(kind, &self.namespace, &self.name, &self.uid)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn into_object(self, kind: String) -> Object {
        Object {
            kind,
            namespace: self.namespace,
            name: self.name,
            uid: self.uid,
            cluster: String::new(),
            generation: self.generation,
            created: self.created,
            deleting: self.deleting,
            annotations: self.annotations,
            schedule_edited: self.schedule_edited,
            suspend_edited: self.suspend_edited,
            status_written: self.status_written,
        }
    }
}

/// Why an object is not read, with the remedy.
pub(crate) fn too_large(bytes: &str) -> String {
    match bytes.parse::<usize>() {
        Ok(bytes) => format!(
            "the object is too large: {} KiB of fields, metadata or status, and one of more than {} KiB is not read; shorten what is long in it (`kubectl get -o yaml` shows it)",
            bytes.div_ceil(1024),
            MOST / 1024
        ),
        Err(_) => "the object is too large for what is left of the room of its namespace: the backup objects there fill the operator's memory; delete or shorten some, then change this one".to_owned(),
    }
}

/// Cuts an object. `None` if it has no UID or name, which the API server never sends.
pub(crate) fn object(mut object: DynamicObject, kind: &dyn Kind) -> Option<Kept> {
    let paths = kind.managed_paths();
    let status = object.data.get_mut("status").map(Value::take);
    let spec = kind.take_spec(&mut object);
    let meta = object.metadata;
    let managers = meta.managed_fields.unwrap_or_default();
    let annotations = meta.annotations.unwrap_or_default().into_iter();
    // A request that is too long is answered, and taken off, without being kept.
    let kept = |(k, v): (String, String)| match v.len() {
        _ if !k.starts_with(labels::PREFIX) => None,
        n if n <= MAX_ANNOTATION => Some((k, v)),
        _ if k.starts_with(labels::REQUEST_PREFIX) => Some((k, TOO_LONG.to_owned())),
        _ => None,
    };
    Some(Kept {
        object: KeptMeta {
            namespace: meta.namespace.unwrap_or_default(),
            name: meta.name?,
            uid: meta.uid?,
            generation: meta.generation,
            created: meta
                .creation_timestamp
                .as_ref()
                .map(from_k8s)
                .unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            annotations: annotations.filter_map(kept).collect(),
            schedule_edited: newest(&managers, paths.schedule).map(|(at, _)| at),
            suspend_edited: newest(&managers, paths.suspend),
            status_written: status_written(&managers),
        },
        resource_version: meta.resource_version.unwrap_or_default(),
        spec,
        status: status.unwrap_or_default(),
    })
}

/// The newest write among the managers of these fields of the spec.
fn newest(managers: &[ManagedFieldsEntry], fields: &[&str]) -> Option<(DateTime<Utc>, String)> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let spec = entry.fields_v1.as_ref().and_then(|f| f.0.get("f:spec"));
        spec.is_some_and(|spec| fields.iter().any(|f| spec.get(f).is_some()))
    };
    let write = |entry: &ManagedFieldsEntry| {
        let manager = entry.manager.clone().unwrap_or_default();
        entry.time.as_ref().map(|at| (from_k8s(at), manager))
    };
    managers.iter().filter(owns).filter_map(write).max()
}

/// The newest write of status, as the API server stamped it.
fn status_written(managers: &[ManagedFieldsEntry]) -> Option<DateTime<Utc>> {
    let of_status = |entry: &&ManagedFieldsEntry| entry.subresource.as_deref() == Some("status");
    let stamps = managers.iter().filter(of_status);
    stamps
        .filter_map(|entry| entry.time.as_ref())
        .map(from_k8s)
        .max()
}

/// Annotations in which other programs note the slot of a Job.
const OTHERS_SLOTS: [&str; 2] = [
    "batch.tutorial.kubebuilder.io/scheduled-at",
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
];

/// Cuts a Job of another program.
pub(crate) fn foreign_job(meta: &ObjectMeta) -> Option<ForeignJob> {
    let notes = meta.annotations.as_ref();
    let slot = OTHERS_SLOTS.iter().find_map(|key| notes?.get(*key));
    Some(ForeignJob {
        name: meta.name.as_deref()?.into(),
        uid: meta.uid.as_deref()?.into(),
        scheduled_at: slot
            .filter(|text| parse_rfc3339(text).is_some())
            .map(|text| text.as_str().into()),
    })
}

/// Cuts a Job that carries our label.
pub(crate) fn job(job: &Job) -> Option<JobDigest> {
    let meta = &job.metadata;
    let note = |key: &str| {
        meta.annotations
            .as_ref()
            .and_then(|a| a.get(key))
            .map(String::as_str)
    };
    let slot = note(labels::SCHEDULED_AT).and_then(parse_rfc3339);
    let request_id = note(labels::REQUEST_ID).filter(|id| is_id(id));
    let trigger = note(labels::TRIGGER).and_then(Trigger::parse);
    let status = job.status.as_ref();
    let count = |n: Option<i32>| n.is_some_and(|n| n > 0);
    Some(JobDigest {
        name: meta.name.as_deref()?.into(),
        uid: meta.uid.as_deref()?.into(),
        slot,
        trigger: trigger.unwrap_or(if slot.is_some() {
            Trigger::Schedule
        } else {
            Trigger::Manual
        }),
        request_id: request_id.map(Into::into),
        action: note(labels::ACTION).map_or(Action::Backup, action),
        created: meta
            .creation_timestamp
            .as_ref()
            .map(from_k8s)
            .unwrap_or_default(),
        started: status.and_then(|s| s.start_time.as_ref()).map(from_k8s),
        suspended: job.spec.as_ref().and_then(|s| s.suspend) == Some(true),
        ran: status.is_some_and(|s| count(s.ready) || count(s.failed) || count(s.succeeded)),
        deleting: meta.deletion_timestamp.is_some(),
        failed: status.and_then(|s| s.failed).unwrap_or(0).max(0),
        attempts: attempts(job),
        outcome: outcome(job),
    })
}

/// Retries of a Job that does not say how many it wants, as batch/v1 has it.
const RETRIES: i32 = 6;

fn attempts(job: &Job) -> i32 {
    let retries = job.spec.as_ref().and_then(|s| s.backoff_limit);
    retries.unwrap_or(RETRIES).max(0).saturating_add(1)
}

fn action(text: &str) -> Action {
    serde_json::from_value(Value::String(text.to_owned())).unwrap_or(Action::Probe)
}

/// How a Job ended, from its conditions alone.
fn outcome(job: &Job) -> JobOutcome {
    let status = job.status.as_ref();
    let conditions = status
        .and_then(|s| s.conditions.as_deref())
        .unwrap_or_default();
    for condition in conditions.iter().filter(|c| c.status == "True") {
        let at = condition
            .last_transition_time
            .as_ref()
            .map(from_k8s)
            .unwrap_or_default();
        match condition.type_.as_str() {
            "Complete" => {
                let done = status
                    .and_then(|s| s.completion_time.as_ref())
                    .map(from_k8s);
                return JobOutcome::Complete {
                    at: done.unwrap_or(at),
                };
            }
            "Failed" => {
                return JobOutcome::Failed {
                    at,
                    reason: clean(condition.reason.as_deref().unwrap_or_default(), 64).into(),
                    message: clean(condition.message.as_deref().unwrap_or_default(), 256).into(),
                };
            }
            _ => {}
        }
    }
    JobOutcome::Active
}

/// Cuts a pod of a Job.
pub(crate) fn pod(pod: &Pod) -> Option<PodDigest> {
    let meta = &pod.metadata;
    let job = ownership::job_of(meta)?;
    let status = pod.status.as_ref();
    let containers = status
        .and_then(|s| s.container_statuses.as_deref())
        .unwrap_or_default();
    let container = containers.iter().find(|c| c.name == labels::CONTAINER);
    let before = status
        .and_then(|s| s.init_container_statuses.as_deref())
        .unwrap_or_default();
    let ran = container.and_then(end);
    // One that fails before it is all there is to be known.
    let failed = before.iter().filter_map(end).find(|e| e.exit_code != 0);
    let running = container
        .and_then(|c| c.state.as_ref())
        .is_some_and(|s| s.running.is_some());
    Some(PodDigest {
        name: meta.name.as_deref()?.into(),
        uid: meta.uid.as_deref()?.into(),
        job_uid: job.into(),
        created: meta
            .creation_timestamp
            .as_ref()
            .map(from_k8s)
            .unwrap_or_default(),
        started: running || ran.is_some(),
        trouble: trouble(pod, before.iter().chain(container)),
        held: held(pod, containers),
        failures: container
            .map_or(0, failures)
            .max(i32::from(failed.is_some())),
        ended: ran.or(failed),
        gone: false,
    })
}

/// The containers that still run although the backup's has come to its end.
fn held(pod: &Pod, containers: &[ContainerStatus]) -> Option<Box<str>> {
    let never = pod.spec.as_ref()?.restart_policy.as_deref() == Some("Never");
    let ends = |c: &ContainerStatus| c.state.as_ref()?.terminated.as_ref().map(|t| t.exit_code);
    let (ours, others): (Vec<_>, Vec<_>) =
        containers.iter().partition(|c| c.name == labels::CONTAINER);
    let code = ends(ours.first()?)?;
    // It would be started again.
    if code != 0 && !never {
        return None;
    }
    let names: Vec<&str> = others
        .iter()
        .filter(|c| ends(c).is_none())
        .map(|c| c.name.as_str())
        .collect();
    (!names.is_empty()).then(|| clean(&names.join(", "), 128).into())
}

/// The newest end of the container: its state, else the state before the restart.
fn end(container: &ContainerStatus) -> Option<Ended> {
    let of = |state: &Option<ContainerState>| state.as_ref().and_then(|s| s.terminated.clone());
    let end = of(&container.state).or_else(|| of(&container.last_state))?;
    let mut message = end.message.unwrap_or_default();
    if message.len() > MAX_BYTES * 4 {
        message = clean(&message, MAX_BYTES);
    }
    Some(Ended {
        exit_code: end.exit_code,
        reason: end.reason.unwrap_or_default().into(),
        message: message.into(),
        at: end.finished_at.as_ref().map(from_k8s),
    })
}

/// How often a container failed: each restart follows a failure, and it may have failed since.
fn failures(container: &ContainerStatus) -> i32 {
    let running = container
        .state
        .as_ref()
        .is_some_and(|s| s.running.is_some());
    let since = !running && end(container).is_some_and(|e| e.exit_code != 0);
    container
        .restart_count
        .max(0)
        .saturating_add(i32::from(since))
}

/// Why the container does not run, or one that is to end before it.
fn trouble<'a>(
    pod: &Pod,
    mut containers: impl Iterator<Item = &'a ContainerStatus>,
) -> Option<(Box<str>, Box<str>)> {
    let status = pod.status.as_ref()?;
    let waiting = containers.find_map(|c| c.state.as_ref()?.waiting.as_ref());
    if let Some(waiting) = waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or(
            "the container is not created yet: look at the pod's events for volumes and secrets",
        );
        return Some((reason.into(), clean(message, 256).into()));
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let unscheduled = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False");
    if let Some(condition) = unscheduled {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        let message = condition.message.as_deref().unwrap_or_default();
        return Some((reason.into(), clean(message, 256).into()));
    }
    let reason = status.reason.as_deref()?;
    let message = status.message.as_deref().unwrap_or_default();
    Some((reason.into(), clean(message, 256).into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn cut(init: Value, main: Value) -> PodDigest {
        let status = |name: &str, state: Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let found = json!({
            "metadata": {"name": "p", "uid": "u", "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j1", "controller": true}]},
            "status": {
                "initContainerStatuses": [status(labels::COPY_CONTAINER, init)],
                "containerStatuses": [status(labels::CONTAINER, main)],
            },
        });
        pod(&serde_json::from_value(found).unwrap()).unwrap()
    }

    /// A pod whose init container does not get through never runs its own: what is known of that
    /// one is all there is.
    #[test]
    fn what_keeps_an_init_container_is_what_keeps_the_pod() {
        let waiting = json!({"waiting": {"reason": "PodInitializing"}});
        let pull = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        let found = cut(pull, waiting.clone());
        assert_eq!(
            found.trouble,
            Some(("ImagePullBackOff".into(), "no such image".into()))
        );
        assert_eq!((found.started, found.ended), (false, None));

        let failed =
            json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "no space"}});
        let found = cut(failed, waiting);
        let ended = found.ended.unwrap();
        assert_eq!((ended.exit_code, &*ended.message), (1, "no space"));
        assert!(!found.started);

        let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let pull = json!({"waiting": {"reason": "ErrImagePull", "message": "none"}});
        let found = cut(done.clone(), pull);
        assert_eq!(found.trouble.unwrap().0, "ErrImagePull".into());
        assert_eq!(found.ended, None);
        let found = cut(done, json!({"running": {}}));
        assert!(found.started && found.trouble.is_none() && found.ended.is_none());
    }
}
