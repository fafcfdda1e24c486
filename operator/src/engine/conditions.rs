//! What the table and the conditions show.

use crds::condition::{self, reason};
use crds::report::clean;
use crds::request::Action;
use crds::run::{MAX_MESSAGE, PENDING, Run, RunResult};
use crds::schedule::Schedule;
use crds::validate;
use k8s_openapi::api::core::v1::ObjectReference;

use super::fit::fit;
use super::outcome;
use super::plan::Draft;

/// Brings lists, scalars and conditions up to date.
pub(super) fn set(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let object = &draft.seen.object;
    draft.status.observed_generation = object.generation;
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
    accepted(draft);
    scheduled(draft, schedule);
    last_run(draft);
    ready(draft);
}

/// Ends the making of status.
pub(super) fn finish(draft: &mut Draft<'_>) {
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

fn accepted(draft: &mut Draft<'_>) {
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
            clean(&validate::join(&seen.problems), MAX_MESSAGE),
        )
    } else {
        ("True", reason::VALID, String::new())
    };
    let old = condition::get(&seen.status.conditions, condition::ACCEPTED);
    if status == "False" && old.is_none_or(|o| o.reason != reason || o.message != message) {
        let subject = format!("{:?}", seen.object.generation);
        draft.event(subject, reason, true, "Accept", message.clone());
    }
    put(draft, condition::ACCEPTED, status, reason, message);
}

fn scheduled(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let (status, reason) = match schedule {
        _ if !draft.accepted() => ("False", "NotAccepted"),
        None => ("False", "NoSchedule"),
        Some(schedule) if schedule.never_fires() => ("False", reason::NEVER_FIRES),
        Some(_) if draft.seen.settings.suspend => ("False", reason::SUSPENDED),
        Some(_) => ("True", reason::NEXT_SLOT),
    };
    let message = match (reason, schedule) {
        (reason::NEVER_FIRES, Some(s)) => {
            format!("{:?} never comes due; no backup will run", s.text())
        }
        _ => String::new(),
    };
    let old = condition::get(&draft.seen.status.conditions, condition::SCHEDULED);
    if reason == reason::NEVER_FIRES && old.is_none_or(|o| o.reason != reason) {
        let subject = format!("{:?}", draft.seen.object.generation);
        draft.event(subject, reason, true, "Schedule", message.clone());
    }
    put(draft, condition::SCHEDULED, status, reason, message);
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

fn ready(draft: &mut Draft<'_>) {
    let find = |type_| condition::get(&draft.status.conditions, type_).cloned();
    let (accepted, last) = (
        find(condition::ACCEPTED),
        find(condition::LAST_RUN_SUCCEEDED),
    );
    let bad = [accepted, last]
        .into_iter()
        .flatten()
        .find(|c| c.status == "False");
    let waits = |r: &&Run| !r.result.is_final() && r.phase.as_deref() == Some(PENDING);
    let pending = draft.status.runs.iter().find(waits).map(|run| {
        let message = format!("run {}: {}: {}", run.name, run.reason, run.message);
        clean(&message, MAX_MESSAGE)
    });
    match bad {
        None if pending.is_some() => put(
            draft,
            condition::READY,
            "False",
            reason::RUN_PENDING,
            pending.unwrap_or_default(),
        ),
        Some(bad) => put(draft, condition::READY, "False", &bad.reason, bad.message),
        None if draft.seen.settings.suspend => put(
            draft,
            condition::READY,
            "True",
            reason::SUSPENDED,
            String::new(),
        ),
        None => put(
            draft,
            condition::READY,
            "True",
            "AsScheduled",
            String::new(),
        ),
    }
}
