//! What a pod is doing, in a few words; and why nothing runs yet, in one place for whatever waits.

use crds::startup::{is_on_its_way, remedy};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Event, Pod, PodStatus};

/// Where the backup container of a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not yet running, and why.
    Waiting(String),
    /// Running; its how many'th start, from 0.
    Running(i32),
    /// Ended with this exit code.
    Ended(i32),
}

/// The backup program's container: ours by name, else the only or first one.
pub(crate) fn container(pod: &Pod) -> Option<String> {
    let containers = &pod.spec.as_ref()?.containers;
    containers
        .iter()
        .find(|c| c.name == crds::labels::CONTAINER)
        .or(containers.first())
        .map(|c| c.name.clone())
}

/// Where a container of the pod stands. `events` may be of others too; they tell what the pod's status
/// does not.
pub(crate) fn stage(pod: &Pod, container: &str, events: &[Event]) -> Stage {
    match begun(pod, container) {
        Some(stage) => stage,
        None => Stage::Waiting(said_of_pod(pod, container).unwrap_or_else(|| {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            said_by_events(uid, events).unwrap_or_else(|| on_its_way(pod, container))
        })),
    }
}

/// True if only events can tell why the container does not run.
pub(crate) fn needs_events(pod: &Pod, container: &str) -> bool {
    begun(pod, container).is_none() && said_of_pod(pod, container).is_none()
}

/// What events say of a Job that has no pod: why none can be made.
pub(crate) fn no_pod(job_uid: &str, events: &[Event]) -> Option<String> {
    said_by_events(job_uid, events)
}

/// The container runs, or has ended.
fn begun(pod: &Pod, container: &str) -> Option<Stage> {
    let status = pod.status.as_ref()?;
    let ours = of_name(status.container_statuses.as_deref(), container)
        .or_else(|| of_name(status.init_container_statuses.as_deref(), container))?;
    let state = ours.state.as_ref()?;
    if let Some(end) = &state.terminated {
        return Some(Stage::Ended(end.exit_code));
    }
    state
        .running
        .as_ref()
        .map(|_| Stage::Running(ours.restart_count))
}

fn of_name<'a>(all: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    all.unwrap_or_default().iter().find(|s| s.name == name)
}

/// What keeps the container from running, by the pod's status: the kubelet's words of an init
/// container or of this one, the scheduler's, or why the pod was ended.
fn said_of_pod(pod: &Pod, container: &str) -> Option<String> {
    let status = pod.status.as_ref()?;
    let before = status
        .init_container_statuses
        .as_deref()
        .unwrap_or_default();
    let ours = of_name(status.container_statuses.as_deref(), container);
    before
        .iter()
        .chain(ours)
        .find_map(|c| said_of_container(c, ours.is_some_and(|o| o.name == c.name)))
        .or_else(|| unscheduled(status))
        .or_else(|| {
            let reason = status.reason.as_deref()?;
            Some(words(reason, status.message.as_deref()))
        })
}

fn said_of_container(found: &ContainerStatus, ours: bool) -> Option<String> {
    let state = found.state.as_ref()?;
    match (waiting(state), &state.terminated) {
        (Some((reason, message)), _) if !is_on_its_way(reason) => {
            let last = found
                .last_state
                .as_ref()
                .and_then(|s| s.terminated.as_ref());
            let code = last.map(|end| format!(", it ended with status {}", end.exit_code));
            let text = words(reason, message);
            Some(format!("{text}{}", code.unwrap_or_default()))
        }
        (_, Some(end)) if !ours && end.exit_code != 0 => Some(format!(
            "init container {} failed with status {}; see its log: -c {}",
            found.name, end.exit_code, found.name
        )),
        _ => None,
    }
}

fn waiting(state: &ContainerState) -> Option<(&str, Option<&str>)> {
    let waiting = state.waiting.as_ref()?;
    Some((
        waiting.reason.as_deref().unwrap_or_default(),
        waiting.message.as_deref(),
    ))
}

/// Why the scheduler found no node.
fn unscheduled(status: &PodStatus) -> Option<String> {
    let mut conditions = status.conditions.as_deref().unwrap_or_default().iter();
    let blocked = conditions.find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    Some(words(
        blocked.reason.as_deref().unwrap_or("Unschedulable"),
        Some(blocked.message.as_deref().unwrap_or("no node yet")),
    ))
}

/// The newest warning about the object of this UID; `events` are oldest first.
fn said_by_events(uid: &str, events: &[Event]) -> Option<String> {
    let about = |e: &&Event| {
        e.type_.as_deref() == Some("Warning") && e.involved_object.uid.as_deref() == Some(uid)
    };
    let event = events.iter().rev().find(about)?;
    Some(words(
        event.reason.as_deref().unwrap_or("Warning"),
        event.message.as_deref(),
    ))
}

/// `Reason: message; what to do`, in one line and without what looks like a secret.
fn words(reason: &str, message: Option<&str>) -> String {
    let message = message.unwrap_or_default().trim();
    let text = match message {
        "" => reason.to_owned(),
        _ => format!("{reason}: {message}{}", remedy(message)),
    };
    crds::secret::mask(&crate::text::sanitise(&text))
}

/// Nothing keeps it.
fn on_its_way(pod: &Pod, container: &str) -> String {
    let status = pod.status.as_ref();
    let ours = status.and_then(|s| of_name(s.container_statuses.as_deref(), container));
    let state = ours.and_then(|c| c.state.as_ref());
    match state.and_then(waiting) {
        Some(("PodInitializing", _)) => "init container is running".to_owned(),
        Some(_) => "container is being created".to_owned(),
        None => "pod is being scheduled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        let pod = json!({
            "metadata": { "name": "p", "uid": "u1" },
            "spec": { "initContainers": [{ "name": "copy" }], "containers": [{ "name": "sidecar" }, { "name": "backup" }] },
            "status": status,
        });
        serde_json::from_value(pod).unwrap()
    }

    fn container_is(name: &str, state: Value) -> Value {
        json!({ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state })
    }

    fn event(uid: &str, type_: &str, reason: &str, message: &str) -> Event {
        let event = json!({
            "metadata": {}, "involvedObject": { "uid": uid }, "type": type_, "reason": reason, "message": message,
        });
        serde_json::from_value(event).unwrap()
    }

    /// Statuses and events as a cluster gave them, each with the words of who keeps the pod.
    #[test]
    fn u9_why_nothing_runs() {
        let waits = |reason: &str, message: &str| json!({ "waiting": { "reason": reason, "message": message } });
        let creating = json!({ "containerStatuses": [container_is("backup", json!({ "waiting": { "reason": "ContainerCreating" } }))] });
        let mount = event(
            "u1",
            "Warning",
            "FailedMount",
            "MountVolume.SetUp failed for volume \"backup-secrets\" : references non-existent secret key: pasword",
        );
        let other = event("u2", "Warning", "FailedMount", "of another pod");
        let normal = event("u1", "Normal", "Scheduled", "assigned prod/p to node-1");
        let quota =
            "exceeded quota: compute, requested: memory=1Gi, used: memory=8Gi, limited: memory=8Gi";
        for (status, events, expected) in [
            (
                json!({ "containerStatuses": [container_is("backup", waits("CreateContainerConfigError", "couldn't find key pasword in Secret prod/shop-db"))] }),
                vec![mount.clone()],
                "CreateContainerConfigError: couldn't find key pasword in Secret prod/shop-db".to_owned(),
            ),
            (creating.clone(), vec![normal.clone(), mount, other.clone()], "FailedMount: MountVolume.SetUp failed for volume \"backup-secrets\" : references non-existent secret key: pasword".to_owned()),
            (creating, vec![normal, other], "container is being created".to_owned()),
            (
                json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." }] }),
                vec![],
                "Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.".to_owned(),
            ),
            (
                json!({ "initContainerStatuses": [container_is("copy", waits("ImagePullBackOff", "Back-off pulling image \"nope\""))],
                        "containerStatuses": [container_is("backup", json!({ "waiting": { "reason": "PodInitializing" } }))] }),
                vec![],
                "ImagePullBackOff: Back-off pulling image \"nope\"".to_owned(),
            ),
            (
                json!({ "initContainerStatuses": [container_is("copy", json!({ "terminated": { "exitCode": 1 } }))],
                        "containerStatuses": [container_is("backup", json!({ "waiting": { "reason": "PodInitializing" } }))] }),
                vec![],
                "init container copy failed with status 1; see its log: -c copy".to_owned(),
            ),
            (json!({ "reason": "Evicted", "message": "The node was low on resource: memory." }), vec![], "Evicted: The node was low on resource: memory.".to_owned()),
            (json!({}), vec![event("u1", "Warning", "FailedCreate", quota)], format!("FailedCreate: {quota}; ask for less in resources, or raise the quota of the namespace")),
            (json!({}), vec![], "pod is being scheduled".to_owned()),
        ] {
            let pod = pod(status.clone());
            assert_eq!(stage(&pod, "backup", &events), Stage::Waiting(expected), "{status}");
        }
    }

    #[test]
    fn what_has_begun_waits_for_nothing() {
        let with =
            |state: Value| pod(json!({ "containerStatuses": [container_is("backup", state)] }));
        let warning = event("u1", "Warning", "Unhealthy", "of before");
        let stage_of = |state: Value| stage(&with(state), "backup", std::slice::from_ref(&warning));
        assert_eq!(stage_of(json!({ "running": {} })), Stage::Running(1));
        assert_eq!(
            stage_of(json!({ "terminated": { "exitCode": 3 } })),
            Stage::Ended(3)
        );
        assert!(!needs_events(&with(json!({ "running": {} })), "backup"));
        assert!(needs_events(&pod(json!({})), "backup"));
        assert_eq!(container(&pod(json!({}))).as_deref(), Some("backup"));
    }
}
