//! A Job whose container does not run yet: what keeps it, in the words of who keeps it.
//!
//! What the scheduler and the kubelet say of a pod stands in the pod's status. That a pod is refused
//! (quota, admission, pod security) or can't get its volumes stands in events alone: they are
//! read for one Job or pod at a time, seldomer the longer it waits.

use chrono::{DateTime, Duration, Utc};
use crds::report::clean;
use crds::run::{MAX_MESSAGE, PENDING};
use crds::startup::{is_on_its_way, remedy};
use crds::time::plus_seconds;

use super::draft::Draft;
use super::observed::{JobDigest, Look, Obstacle, PodDigest, obstacle_of};
use super::outcome;
use super::reason;

/// Events are first looked at when a container should long have begun.
const FIRST_LOOK: Duration = Duration::seconds(5);
/// They are looked at again at least this often.
const LAST_LOOK: Duration = Duration::seconds(300);
/// Between two attempts of a Job its controller waits by itself.
const BETWEEN_ATTEMPTS: Duration = Duration::seconds(30);

/// The newest pod that has not come to its end.
fn alive<'a>(pods: &[&'a PodDigest]) -> Option<&'a PodDigest> {
    let alive = pods.iter().filter(|p| !p.gone && p.ended.is_none());
    alive.copied().max_by_key(|p| p.created)
}

/// True if the Job waits for its container to run.
pub(crate) fn waits(job: &JobDigest, pods: &[&PodDigest]) -> bool {
    job.is_active()
        && match alive(pods) {
            Some(pod) => !pod.started,
            // Its attempts have ended, and no other one begins.
            None => !job.ran || !pods.is_empty(),
        }
}

/// Why the Job's container does not run, if somebody says so: reason and message.
pub(crate) fn cause(
    known: &[Obstacle],
    job: &JobDigest,
    pods: &[&PodDigest],
) -> Option<(String, String)> {
    if job.suspended {
        let message = "spec.suspend of its Job is true: whoever set it has to set it to false";
        return Some((reason::JOB_SUSPENDED.to_owned(), message.to_owned()));
    }
    let pod = alive(pods);
    let trouble = pod.and_then(|p| p.trouble.as_ref());
    let definite = trouble.filter(|(reason, _)| !is_on_its_way(reason));
    let subject = pod.map_or(&*job.uid, |p| &*p.uid);
    let (reason, message) = match definite {
        Some(definite) => definite,
        None => obstacle_of(known, &job.uid, subject)?.words.as_ref()?,
    };
    let message = format!("{message}{}", remedy(message));
    Some((outcome::named(reason, reason::NOT_STARTED), message))
}

/// [`cause`], or that there is none.
pub(crate) fn cause_or_none(
    known: &[Obstacle],
    job: &JobDigest,
    pods: &[&PodDigest],
) -> (String, String) {
    cause(known, job, pods).unwrap_or_else(|| match alive(pods) {
        Some(pod) => (
            reason::NEVER_STARTED.to_owned(),
            format!(
                "pod {} did not start its container, and nothing said why; see `kubectl get events --field-selector involvedObject.name={}`",
                pod.name, pod.name
            ),
        ),
        None => (
            reason::NO_POD.to_owned(),
            format!(
                "no pod of Job {} was made, and nothing said why; see `kubectl get events --field-selector involvedObject.name={}`",
                job.name, job.name
            ),
        ),
    })
}

/// When the events of the Job or its pod are to be read, if they are to be read at all.
pub(crate) fn look(
    known: &[Obstacle],
    job: &JobDigest,
    pods: &[&PodDigest],
) -> Option<(Look, DateTime<Utc>)> {
    if job.suspended || job.deleting || !waits(job, pods) {
        return None;
    }
    let pod = alive(pods);
    let trouble = pod.and_then(|p| p.trouble.as_ref());
    if trouble.is_some_and(|(reason, _)| !is_on_its_way(reason)) {
        return None;
    }
    let look = Look {
        job_uid: job.uid.clone(),
        subject: pod.map_or(&job.uid, |p| &p.uid).clone(),
    };
    let ended = pods.iter().filter_map(|p| p.ended.as_ref()?.at).max();
    let begins = match (pod, ended) {
        (Some(pod), _) => pod.created,
        (None, Some(ended)) => ended + BETWEEN_ATTEMPTS,
        (None, None) => job.created,
    };
    let at = match obstacle_of(known, &look.job_uid, &look.subject) {
        None => begins + FIRST_LOOK,
        Some(before) => {
            let doubled = FIRST_LOOK * (1 << before.looks.min(6));
            before.looked + doubled.min(LAST_LOOK)
        }
    };
    Some((look, at))
}

/// Plans the reading of events, or wakes when it is due.
pub(super) fn watch(draft: &mut Draft<'_>, job: &JobDigest, pods: &[&PodDigest]) {
    let Some((look, at)) = look(&draft.seen.obstacles, job, pods) else {
        return;
    };
    if at > draft.now {
        draft.wake_at(at);
    } else {
        draft.looks.push(look);
    }
}

/// Why a Job that is no run is given up: its container does not run within startupDeadlineSeconds. Until
/// then its events are watched, and the object wakes when the time is over.
pub(super) fn given_up(
    draft: &mut Draft<'_>,
    job: &JobDigest,
    pods: &[&PodDigest],
) -> Option<(String, String)> {
    if job.ran || pods.iter().any(|p| p.started) {
        return None;
    }
    let seconds = draft.seen.settings.startup_deadline;
    let ends = startup_ends(job, seconds);
    if draft.now < ends {
        watch(draft, job, pods);
        draft.wake_at(ends);
        return None;
    }
    let (reason, message) = cause_or_none(&draft.seen.obstacles, job, pods);
    Some((reason, format!("not running within {seconds} s: {message}")))
}

/// Shows that a run has not started, and why; or that it has.
pub(super) fn note(draft: &mut Draft<'_>, index: usize, job: &JobDigest, pods: &[&PodDigest]) {
    watch(draft, job, pods);
    let cause = waits(job, pods)
        .then(|| cause(&draft.seen.obstacles, job, pods))
        .flatten();
    let run = &mut draft.status.runs[index];
    let Some((reason, message)) = cause else {
        let was = run.phase.as_deref() == Some(PENDING);
        if was && !waits(job, pods) {
            run.phase = None;
            run.reason.clear();
            run.message.clear();
        }
        return;
    };
    if run.intent.is_some() {
        return;
    }
    let message = clean(&format!("not started: {message}"), MAX_MESSAGE);
    let fresh = run.reason != reason || run.phase.as_deref() != Some(PENDING);
    run.phase = Some(PENDING.to_owned());
    run.reason.clone_from(&reason);
    run.message = message;
    if fresh {
        let note = format!("run {} is pending ({reason}): {}", run.name, run.message);
        let subject = format!("{} {reason}", run.name);
        draft.event(subject, reason::RUN_PENDING, true, "Start", note);
    }
}

/// When the run's pod must be running at the latest.
pub(super) fn startup_ends(job: &JobDigest, seconds: i64) -> DateTime<Utc> {
    plus_seconds(job.created, crds::bounds::startup_seconds(seconds))
}
