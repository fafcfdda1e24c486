//! What stands behind the run that matters: its Job, its pods, the end of its log.

use crds::ScheduleStatus;
use crds::run::Run;
use crds::secret;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};

use super::log::readable;
use super::page::{Inputs, Page, Probe};
use super::time::{Zone, zone_or_utc};
use super::{duration, pod, runs};
use crate::cluster::current_run;

/// The run that matters, its Job, its pods, the end of its log.
pub(crate) fn chain(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus) {
    let Some(run) = current_run(status) else {
        return;
    };
    page.field(
        "Run",
        &format!("{}  {}", run.name, runs::outcome(run, inputs.now)),
    );
    let zone = status.schedule.as_ref().map(|s| s.time_zone.as_str());
    if let Some(engine) = runs::engine(run, inputs.zone, zone_or_utc(zone.unwrap_or("UTC"))) {
        page.field("Engine", &engine);
    }
    stored(page, run);
    behind(page, inputs, &run.name);
    if let Some((run, why)) = &inputs.unverified {
        page.field("Verifying", &format!("{run}  {why}"));
    }
}

/// Warnings of a run, and what it stored.
pub(crate) fn stored(page: &mut Page, run: &Run) {
    for warning in &run.warnings {
        page.field("Warning", &secret::mask(warning));
    }
    for artefact in &run.artefacts {
        let read = if artefact.read_back {
            "read back"
        } else {
            "not read back"
        };
        page.field(
            "Artefact",
            &format!(
                "{}  {}  {read}",
                artefact.key,
                duration::bytes(artefact.size)
            ),
        );
    }
}

/// The Job of the run of this name, its pods, the end of its log.
pub(crate) fn behind(page: &mut Page, inputs: &Inputs<'_>, name: &str) {
    let job = match &inputs.job {
        Ok(Some(job)) => job_line(job),
        Ok(None) => format!("job/{name} is gone"),
        Err(why) => why.clone(),
    };
    page.field("Job", &job);
    let uid = inputs
        .job
        .as_ref()
        .ok()
        .and_then(|j| j.as_ref()?.metadata.uid.as_deref());
    pods(
        page,
        uid,
        &inputs.pods,
        &inputs.log,
        &inputs.events,
        inputs.zone,
    );
}

/// Pods of the Job of this UID, and the end of the newest one's log.
pub(crate) fn pods(
    page: &mut Page,
    job_uid: Option<&str>,
    pods: &Probe<Vec<Pod>>,
    log: &Probe<Vec<String>>,
    events: &Probe<Vec<Event>>,
    zone: Zone,
) {
    let events = events.as_deref().unwrap_or_default();
    match pods {
        Ok(pods) if pods.is_empty() => {
            let why = job_uid.and_then(|uid| pod::no_pod(uid, events));
            page.field(
                "Pods",
                &why.map_or("<none>".to_owned(), |why| format!("<none>  {why}")),
            );
        }
        Ok(pods) => {
            for one in pods {
                page.field("Pod", &pod_line(one, events));
            }
        }
        Err(why) => page.field("Pods", why),
    }
    match log {
        Ok(lines) if lines.is_empty() => {}
        Ok(lines) => {
            let lines: Vec<String> = lines
                .iter()
                .map(|l| secret::mask(&readable(l, zone)))
                .collect();
            page.lines("Last log lines", &lines);
        }
        Err(why) => page.field("Log", why),
    }
}

fn job_line(job: &Job) -> String {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let status = job.status.clone().unwrap_or_default();
    let ended = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.status == "True");
    let state = ended.map_or_else(
        || format!("active: {}", status.active.unwrap_or(0)),
        |c| match &c.message {
            Some(message) if !message.is_empty() => format!("{}: {message}", c.type_),
            _ => c.type_.clone(),
        },
    );
    format!("job/{name}  {state}")
}

fn pod_line(one: &Pod, events: &[Event]) -> String {
    let name = one.metadata.name.as_deref().unwrap_or_default();
    let phase = one
        .status
        .as_ref()
        .and_then(|s| s.phase.as_deref())
        .unwrap_or("Unknown");
    let container = pod::container(one).unwrap_or_default();
    let stage = match pod::stage(one, &container, events) {
        pod::Stage::Waiting(why) => format!("  {why}"),
        pod::Stage::Running(_) => String::new(),
        pod::Stage::Ended(code) => format!("  exit code {code}"),
    };
    let node = one
        .spec
        .as_ref()
        .and_then(|s| s.node_name.as_deref())
        .unwrap_or("<none>");
    format!("pod/{name}  {phase}{stage}  node: {node}")
}
