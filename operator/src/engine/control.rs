//! Suspension and the ends somebody or something asked for.

use chrono::{DateTime, Utc};
use crds::labels::{RESUME_AT, SUSPENDED_SINCE};
use crds::report::clean;
use crds::run::MAX_MESSAGE;
use crds::time::{from_k8s, parse_rfc3339, to_k8s};

use super::draft::{Draft, Step};
use super::observed::{JobDigest, PodDigest};
use super::reason;
use super::{history, pending, slots};

/// Begin and end of suspension (CronJob rule 30): both are recorded; on resume the slots before
/// the newest are accounted, the newest is left to start.
pub(super) fn suspension(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    match (
        seen.settings.suspend,
        draft.status.suspended_since.as_ref().map(from_k8s),
    ) {
        (true, None) => {
            let since = suspended_at(draft);
            draft.status.suspended_since = Some(to_k8s(since));
        }
        (false, Some(since)) => {
            let edited = seen
                .suspend_time()
                .filter(|at| *at >= since && *at <= draft.now);
            resumed(draft, since, edited.unwrap_or(draft.now));
        }
        _ => {}
    }
    if seen.settings.suspend {
        resume_at(draft);
    }
}

/// Stamped by webhook or plugin, else the time of the field's manager, else now.
fn suspended_at(draft: &Draft<'_>) -> DateTime<Utc> {
    let resumed = draft.status.resumed_at.as_ref().map(from_k8s);
    let fits = |at: &DateTime<Utc>| *at <= draft.now && resumed.is_none_or(|r| *at > r);
    let stamp = draft.seen.object.annotations.get(SUSPENDED_SINCE);
    stamp
        .and_then(|text| parse_rfc3339(text))
        .filter(fits)
        .or(draft.seen.suspend_time().filter(fits))
        .unwrap_or(draft.now)
}

fn resumed(draft: &mut Draft<'_>, since: DateTime<Utc>, at: DateTime<Utc>) {
    if let Some(schedule) = slots::stored(&draft.status, &draft.seen.settings) {
        let from = slots::accounted(&draft.status, at);
        let anchor = slots::anchor(&draft.status, draft.seen);
        if let Some(newest) = schedule.newest_in(from, draft.now, anchor) {
            let before = newest - chrono::Duration::seconds(1);
            slots::pass_over(draft, &schedule, before, Some((since, at)), None);
        }
    }
    draft.status.suspended_since = None;
    draft.status.resumed_at = Some(to_k8s(at));
}

/// Ends the suspension at the time its annotation names. One that was honoured before and came
/// back is not: something else wants the object suspended.
fn resume_at(draft: &mut Draft<'_>) {
    // Told once, when the suspension is first seen.
    let fresh = draft.seen.status.suspended_since.is_none();
    let Some(text) = draft.seen.object.annotations.get(RESUME_AT) else {
        return;
    };
    let Some(at) = parse_rfc3339(text) else {
        if !fresh {
            return;
        }
        draft.event(
            text.clone(),
            reason::RESUME_AT_INVALID,
            true,
            "Resume",
            format!("annotation {RESUME_AT} is {text:?}, not an RFC 3339 time; it is ignored"),
        );
        return;
    };
    let honoured = draft
        .status
        .resumed_at
        .as_ref()
        .is_some_and(|r| from_k8s(r) >= at);
    if honoured && !fresh {
        return;
    }
    if honoured {
        let manager = draft
            .seen
            .object
            .suspend_edited
            .as_ref()
            .map_or("another client", |(_, m)| m);
        let note = format!(
            "the suspension ended at {text} and {manager} suspended the object again; it stays suspended. Change suspend where {manager} takes it from"
        );
        draft.event(text.clone(), reason::SUSPENDED_AGAIN, true, "Resume", note);
    } else if at <= draft.now {
        draft.steps.push(Step::Resume { at: text.clone() });
    } else {
        draft.wake_at(at);
    }
}

impl super::Observed {
    fn suspend_time(&self) -> Option<DateTime<Utc>> {
        self.object.suspend_edited.as_ref().map(|(at, _)| *at)
    }
}

/// Stops runs: those whose intent stands in status lose their Job; those that do not start in time
/// get the intent.
pub(super) fn ends(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    for job in seen.jobs.iter().filter(|j| j.is_active() && !j.deleting) {
        let mut runs = seen.status.runs.iter();
        let run = runs.find(|r| r.job_uid.as_deref() == Some(&*job.uid));
        // Its outcome stands although another container goes on: its log stays for a while.
        let closed = run.filter(|r| r.result.is_final());
        if let Some(ended) = closed.and_then(|r| r.completion_time.as_ref()) {
            let at = from_k8s(ended) + history::FENCE;
            if draft.now < at {
                draft.wake_at(at);
                continue;
            }
        }
        if run.is_some_and(|r| r.intent.is_some() || r.result.is_final()) {
            draft.steps.push(Step::DeleteJob {
                name: job.name.to_string(),
                uid: job.uid.to_string(),
                foreground: true,
            });
        } else {
            startup(draft, job);
        }
    }
}

/// A Job whose container does not run within startupDeadlineSeconds.
fn startup(draft: &mut Draft<'_>, job: &JobDigest) {
    let pods: Vec<&PodDigest> = draft
        .seen
        .pods
        .iter()
        .filter(|p| p.job_uid == job.uid)
        .collect();
    if job.ran || pods.iter().any(|p| p.started) {
        return;
    }
    let ends = pending::startup_ends(job, draft.seen.settings.startup_deadline);
    if draft.now < ends {
        draft.wake_at(ends);
        return;
    }
    let uid = Some(&*job.uid);
    let run = draft
        .status
        .runs
        .iter_mut()
        .find(|r| r.job_uid.as_deref() == uid && r.intent.is_none());
    let Some(run) = run else { return };
    let seconds = draft.seen.settings.startup_deadline;
    let (reason, message) = pending::cause_or_none(&draft.seen.obstacles, job, &pods);
    run.intent = Some(reason::NEVER_STARTED.to_owned());
    run.reason = reason;
    run.message = clean(
        &format!("not running within {seconds} s: {message}"),
        MAX_MESSAGE,
    );
}
