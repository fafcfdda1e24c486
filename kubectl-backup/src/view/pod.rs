//! What a pod is doing, in a few words.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};

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

fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|s| s.name == container)
}

/// Where a container of the pod stands.
pub(crate) fn stage(pod: &Pod, container: &str) -> Stage {
    let state = status(pod, container).and_then(|s| s.state.as_ref().map(|state| (s, state)));
    match state {
        Some((
            _,
            ContainerState {
                terminated: Some(end),
                ..
            },
        )) => Stage::Ended(end.exit_code),
        Some((
            s,
            ContainerState {
                running: Some(_), ..
            },
        )) => Stage::Running(s.restart_count),
        Some((
            _,
            ContainerState {
                waiting: Some(waiting),
                ..
            },
        )) => {
            let reason = waiting
                .reason
                .clone()
                .unwrap_or_else(|| "Waiting".to_owned());
            let words = match reason.as_str() {
                "ContainerCreating" => "container is being created".to_owned(),
                "PodInitializing" => "init container is running".to_owned(),
                _ => match &waiting.message {
                    Some(message) => format!("{reason}: {}", crds::secret::mask(message)),
                    None => reason,
                },
            };
            Stage::Waiting(words)
        }
        _ => Stage::Waiting(unscheduled(pod)),
    }
}

/// Why a pod has no container yet.
fn unscheduled(pod: &Pod) -> String {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    let blocked = conditions
        .into_iter()
        .flatten()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False");
    match blocked {
        Some(condition) => format!(
            "{}: {}",
            condition.reason.as_deref().unwrap_or("not scheduled"),
            condition.message.as_deref().unwrap_or("no node yet")
        ),
        None => "pod is being scheduled".to_owned(),
    }
}
