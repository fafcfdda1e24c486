//! What the table and the conditions show.

use crds::condition;
use crds::labels;
use crds::report::clean;
use crds::request::Action;
use crds::run::{MAX_MESSAGE, Run, RunResult, Trigger};
use crds::schedule::Schedule;
use crds::time::{plus_seconds, rfc3339};
use crds::validate;
use crds::verdict::{self, Reason, State};
use k8s_openapi::api::core::v1::ObjectReference;

use super::ahead;
use super::binlogs;
use super::draft::Draft;
use super::failures;
use super::fit::fit;
use super::outcome;
use super::overdue;
use super::reason;
use super::runs;
use super::slots;

/// Brings lists, scalars and conditions up to date, and tells of what is new.
pub(super) fn set(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    draft.status.observed_generation = draft.seen.object.generation;
    derive(draft, schedule);
    tell(draft, condition::ACCEPTED, "Accept");
    let scheduled = condition::get(&draft.status.conditions, condition::SCHEDULED);
    if scheduled.is_some_and(|c| RINGS.contains(&&*c.reason)) {
        tell(draft, condition::SCHEDULED, "Schedule");
    }
}

/// Reasons of Scheduled that are told as events.
const RINGS: [&str; 3] = [
    reason::NEVER_FIRES,
    reason::SKIPPED_BY_USER,
    reason::ACCOUNTED_AHEAD,
];

/// One event for a condition that became False, or is so in other words.
fn tell(draft: &mut Draft<'_>, type_: &str, action: &'static str) {
    let seen = draft.seen;
    let Some(new) = condition::get(&draft.status.conditions, type_).cloned() else {
        return;
    };
    let old = condition::get(&seen.status.conditions, type_);
    let same = old.is_some_and(|o| o.reason == new.reason && o.message == new.message);
    if new.status == "False" && !same {
        let subject = format!("{:?}", seen.object.generation);
        draft.event(subject, &new.reason, true, action, new.message);
    }
}

/// What follows from runs, Jobs and spec alone: made again whenever status was cut.
fn derive(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let object = &draft.seen.object;
    // A finished Job stays until its outcome is known: both are told by one write.
    let open = |j: &super::JobDigest| {
        let run = |r: &&Run| r.job_uid.as_deref() == Some(&*j.uid) && !r.result.is_final();
        draft.status.runs.iter().any(|r| run(&r))
    };
    let closed = |j: &super::JobDigest| {
        let run = |r: &&Run| r.job_uid.as_deref() == Some(&*j.uid) && r.result.is_final();
        draft.status.runs.iter().any(|r| run(&r))
    };
    let active = |j: &&super::JobDigest| {
        j.action == Action::Backup && (j.is_active() && !closed(j) || open(j))
    };
    draft.status.active = draft
        .seen
        .jobs
        .iter()
        .filter(active)
        .map(|job| ObjectReference {
            api_version: Some("batch/v1".into()),
            kind: Some("Job".into()),
            name: Some(job.name.to_string()),
            namespace: Some(object.namespace.clone()),
            uid: Some(job.uid.to_string()),
            ..ObjectReference::default()
        })
        .collect();
    draft.status.active.sort_by(|a, b| a.name.cmp(&b.name));
    draft.status.active_count = i32::try_from(draft.status.active.len()).ok();
    draft.status.active.truncate(MAX_ACTIVE);
    accepted(draft, schedule);
    scheduled(draft, schedule);
    last_run(draft);
    binlogs::condition(draft);
    of_kind(draft);
    ready(draft, schedule);
}

/// The conditions that only this kind has.
fn of_kind(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    if seen.kind_conditions.is_empty() {
        // It refers to nothing any more.
        let old = &mut draft.status.conditions;
        old.retain(|c| c.type_ != condition::REFERENCES_RESOLVED);
        return;
    }
    for c in &seen.kind_conditions {
        let status = if c.status { "True" } else { "False" };
        put(draft, c.type_, status, c.reason, c.message.clone());
    }
}

/// Most rounds of cutting and deriving; two are the rule.
const ROUNDS: usize = 8;

/// Ends the making of status. What is cut changes what is derived from it: both are repeated until
/// they agree, so that the next plan finds nothing to write.
pub(super) fn finish(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let mut before = None;
    for _ in 0..ROUNDS {
        let cut = fit(&mut draft.status);
        runs::remember_counted(draft);
        if !cut || before.as_ref() == Some(&draft.status) {
            break;
        }
        before = Some(draft.status.clone());
        derive(draft, schedule);
    }
    fit(&mut draft.status);
    keep_gone(draft);
}

/// Most references in `status.active`; the count is exact.
const MAX_ACTIVE: usize = 10;

/// That a finished run's Job is gone is no reason to write status.
fn keep_gone(draft: &mut Draft<'_>) {
    let old = &draft.seen.status;
    let masked = |status: &crds::ScheduleStatus| {
        let mut status = status.clone();
        status.runs.iter_mut().for_each(|r| r.job_gone = false);
        status
    };
    if draft.status != *old && masked(&draft.status) == masked(old) {
        draft.status.clone_from(old);
    }
}

fn put(draft: &mut Draft<'_>, type_: &str, status: &str, reason: &str, message: String) {
    let generation = draft.seen.object.generation;
    let conditions = &mut draft.status.conditions;
    condition::set_status(
        conditions, type_, status, reason, message, generation, draft.now,
    );
}

fn accepted(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let seen = draft.seen;
    let (status, reason, message) = if let Some(foreign) = &seen.foreign {
        ("False", reason::FOREIGN_CONTROLLER, foreign.clone())
    } else if let Some(first) = seen.problems.first() {
        let reason = match first.path.as_str() {
            "spec.schedule" => reason::INVALID_SCHEDULE,
            "spec.timeZone" => reason::UNKNOWN_TIME_ZONE,
            crate::policy::PATH => reason::POLICY_DENIED,
            _ => reason::INVALID_SPEC,
        };
        (
            "False",
            reason,
            within_bytes(&validate::join(&seen.problems)),
        )
    } else {
        // It runs; what will not work out is said all the same.
        let said = schedule.and_then(Schedule::too_often);
        ("True", reason::VALID, said.unwrap_or_default())
    };
    put(draft, condition::ACCEPTED, status, reason, message);
}

fn scheduled(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let (status, reason, message) = match schedule {
        _ if !draft.accepted() => ("False", reason::NOT_ACCEPTED.to_owned(), String::new()),
        None => ("False", reason::NO_SCHEDULE.to_owned(), String::new()),
        Some(schedule) => next_slot(draft, schedule),
    };
    put(draft, condition::SCHEDULED, status, &reason, message);
}

/// Whether a next slot exists and will be started, with reason and message.
fn next_slot(draft: &Draft<'_>, schedule: &Schedule) -> (&'static str, String, String) {
    let seen = draft.seen;
    if schedule.never_fires() {
        let message = format!("{:?} never comes due; no backup will run", schedule.text());
        return ("False", reason::NEVER_FIRES.to_owned(), message);
    }
    if seen.settings.suspend {
        return ("False", reason::SUSPENDED.to_owned(), String::new());
    }
    if let Some(message) = ahead::says(draft) {
        return ("False", reason::ACCOUNTED_AHEAD.to_owned(), message);
    }
    let anchor = slots::anchor(&draft.status, seen);
    if let Some(until) = slots::skip_until(seen)
        && let Some(first) = schedule
            .next_after(draft.now, anchor)
            .filter(|first| *first <= until)
    {
        let message = format!(
            "slots up to {} are skipped, the first at {}, because annotation {} says so; remove it and they start again: kubectl annotate -n {} {}/{} {}-",
            rfc3339(until),
            rfc3339(first),
            labels::SKIP_SLOTS_UNTIL,
            seen.object.namespace,
            seen.object.kind.to_lowercase(),
            seen.object.name,
            labels::SKIP_SLOTS_UNTIL
        );
        return ("False", reason::SKIPPED_BY_USER.to_owned(), message);
    }
    let waits = |r: &&Run| r.trigger == Trigger::Schedule && failures::fails(r);
    if let Some(run) = draft.status.runs.iter().find(waits) {
        let message = format!("{} can't be made: {}", run.name, run.message);
        return ("False", run.reason.clone(), message);
    }
    let message = if slots::is_too_fast(schedule) {
        format!(
            "{:?} comes due faster than runs are started: at most one each 10 s is, the slots between count as skipped",
            schedule.text()
        )
    } else {
        String::new()
    };
    ("True", reason::NEXT_SLOT.to_owned(), message)
}

fn last_run(draft: &mut Draft<'_>) {
    let finished =
        |r: &&crds::run::Run| matches!(r.result, RunResult::Succeeded | RunResult::Failed);
    let key = |r: &&crds::run::Run| r.completion_time.as_ref().map(|t| t.0);
    let newest = draft
        .status
        .runs
        .iter()
        .rev()
        .filter(finished)
        .max_by_key(key)
        .cloned();
    let Some(run) = newest else {
        if condition::get(&draft.status.conditions, condition::LAST_RUN_SUCCEEDED).is_none() {
            put(
                draft,
                condition::LAST_RUN_SUCCEEDED,
                "Unknown",
                reason::NO_RUN_YET,
                String::new(),
            );
        }
        return;
    };
    let (status, otherwise) = match run.result {
        RunResult::Succeeded if run.reason == reason::EXIT_STATUS_ONLY => {
            ("True", reason::EXIT_STATUS_ONLY)
        }
        RunResult::Succeeded => ("True", reason::SUCCEEDED),
        _ => ("False", reason::FAILED),
    };
    let why = if status == "True" {
        otherwise.to_owned()
    } else {
        outcome::named(&run.reason, otherwise)
    };
    let message = if run.message.is_empty() {
        run.name.clone()
    } else {
        format!("{}: {}", run.name, run.message)
    };
    put(draft, condition::LAST_RUN_SUCCEEDED, status, &why, message);
}

/// The verdict, as far as the operator can say it: what makes the object no good makes Ready False.
fn ready(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let facts = overdue::facts(&draft.seen.object, &draft.seen.settings, &draft.status);
    let verdict = verdict::judge(&facts, schedule, None, draft.now);
    // What time alone makes of it is written when it comes.
    if let Some(at) = verdict.critical_at.filter(|at| *at >= draft.now) {
        draft.wake_at(plus_seconds(at, 1));
    }
    let (status, reason, message) = match (verdict.reason, verdict.state) {
        (Reason::Pending, _) | (_, State::Critical) => {
            ("False", verdict.cause.as_str(), verdict.why.as_str())
        }
        _ if draft.seen.settings.suspend => ("True", reason::SUSPENDED, ""),
        _ => ("True", reason::AS_SCHEDULED, ""),
    };
    let (reason, message) = (
        outcome::named(reason, reason::FAILED),
        clean(message, MAX_MESSAGE),
    );
    put(draft, condition::READY, status, &reason, message);
}

/// A message in at most [`MAX_MESSAGE`] bytes, not characters: for a condition that `fit` does not cut.
pub(super) fn within_bytes(message: &str) -> String {
    let mut message = clean(message, MAX_MESSAGE);
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE - "…".len()));
        message.push('…');
    }
    message
}
