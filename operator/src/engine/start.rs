//! Starting runs: what is due, what holds it back.

use chrono::{DateTime, Duration, Utc};
use crds::names;
use crds::parts::ConcurrencyPolicy;
use crds::request::{Action, Options};
use crds::run::{Run, RunResult, Trigger};
use crds::schedule::Schedule;
use crds::status::MAX_OPEN_RUNS;
use crds::time::{from_k8s, plus_seconds, rfc3339, rfc3339_in, to_k8s};

use super::draft::{Draft, Seed, Step};
use super::failures;
use super::ledger;
use super::observed::JobDigest;
use super::reason;
use super::slots;

/// A held run is looked at again at least this often, should no event do it.
const RECHECK: Duration = Duration::seconds(30);

/// How long the previous leader's last writes may take to reach our caches.
const LAG: Duration = Duration::seconds(2);

/// Why a run may not start now.
#[derive(Debug, PartialEq)]
pub(super) struct Hold {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Starts the newest due slot; older ones are accounted as not started (CronJob rule 22, and 24
/// done exactly).
pub(super) fn due(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let Some(schedule) = schedule else {
        return immediate(draft);
    };
    let from = slots::accounted(&draft.status, draft.now);
    let anchor = slots::anchor(&draft.status, draft.seen);
    let Some(slot) = schedule.newest_in(from, draft.now, anchor) else {
        return;
    };
    if slots::skip_until(draft.seen).is_some_and(|until| slot <= until) {
        slots::drop_waiting(draft, Some(reason::SKIPPED_BY_USER));
        slots::pass_over(draft, schedule, slot, None, None);
        return;
    }
    let start = slots::start_of(draft.seen, schedule, slot);
    if draft.now < start {
        draft.wake_at(start);
        return;
    }
    // Runs that can't be made are tried by the object's backoff, not by its slots, and a schedule
    // of seconds is started by the least interval.
    if let Some(until) = slots::rests_until(draft, schedule).filter(|until| *until > draft.now) {
        draft.wake_at(until);
        return;
    }
    if !draft.seen.live && slot <= draft.seen.leading_since + LAG {
        draft.needs_live = true;
        return;
    }
    let passed = slots::why_passed(draft, schedule);
    slots::pass_over(draft, schedule, slot - Duration::seconds(1), None, passed);
    slots::drop_waiting(draft, None);
    if slots::too_late(draft.seen, slot, draft.now) {
        slots::pass_over(draft, schedule, slot, None, Some(reason::DEADLINE_EXCEEDED));
        return;
    }
    if let Some(hold) = start_slot(draft, schedule, slot) {
        let mut run = Run::new(
            slot_name(draft, slot),
            Trigger::Schedule,
            RunResult::Waiting,
        );
        run.slot = Some(to_k8s(slot));
        run.reason = hold.reason.to_owned();
        run.message.clone_from(&hold.message);
        report_waiting(draft, &run);
        draft.status.accounted_until = Some(to_k8s(slot));
        ledger::open(&mut draft.status, run);
    }
}

/// Tells once that a slot waits.
fn report_waiting(draft: &mut Draft<'_>, run: &Run) {
    let slot = run
        .slot
        .as_ref()
        .map_or_else(String::new, |s| rfc3339(from_k8s(s)));
    if failures::fails(run) {
        // One event a state, not one a slot or a try.
        let mut before = draft.seen.status.runs.iter().filter(|r| failures::fails(r));
        if before.any(|r| r.reason == run.reason) {
            return;
        }
    }
    let (event, warning) = match run.reason.as_str() {
        reason::FAILED_CREATE => (reason::FAILED_CREATE, true),
        reason::NAME_TAKEN => (reason::NAME_TAKEN, true),
        reason::MAX_ACTIVE_RUNS | reason::MAX_OPEN_RUNS => (reason::START_LIMITED, false),
        _ => (reason::JOB_ALREADY_ACTIVE, false),
    };
    let note = format!("the slot {slot} waits: {}", run.message);
    draft.event(run.name.clone(), event, warning, "Start", note);
}

/// Starts what waits, when nothing holds it back any more.
pub(super) fn waiting(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let until = slots::accounted(&draft.status, draft.now);
    let anchor = slots::anchor(&draft.status, draft.seen);
    let newer = schedule.is_some_and(|s| s.newest_in(until, draft.now, anchor).is_some());
    for index in 0..draft.status.runs.len() {
        let run = draft.status.runs[index].clone();
        if run.result != RunResult::Waiting {
            continue;
        }
        let hold = match (run.trigger, run.slot.as_ref().map(from_k8s), schedule) {
            (Trigger::Schedule, Some(slot), Some(schedule)) => {
                if draft.seen.settings.suspend || newer {
                    continue;
                }
                if slots::too_late(draft.seen, slot, draft.now) {
                    return slots::drop_waiting(draft, Some(reason::DEADLINE_EXCEEDED));
                }
                start_slot(draft, schedule, slot)
            }
            (Trigger::Manual, ..) => start_manual(draft, &run),
            (Trigger::Immediate, ..) if draft.seen.settings.suspend => None,
            (Trigger::Immediate, ..) => start_immediate(draft),
            _ => None,
        };
        if let Some(hold) = hold {
            let entry = &mut draft.status.runs[index];
            let fresh = entry.reason != hold.reason;
            hold.reason.clone_into(&mut entry.reason);
            entry.message = hold.message;
            let entry = entry.clone();
            if fresh && failures::fails(&entry) {
                report_waiting(draft, &entry);
            }
        }
    }
}

/// Plans the Job of a slot, or says what holds it back.
fn start_slot(draft: &mut Draft<'_>, schedule: &Schedule, slot: DateTime<Utc>) -> Option<Hold> {
    if let Some(hold) = blocked(draft, Trigger::Schedule) {
        if hold.reason == reason::REPLACING {
            replace(draft, slot);
        }
        return Some(hold);
    }
    let name = slot_name(draft, slot);
    let seed = Seed {
        slot: Some(slot),
        scheduled_at: Some(rfc3339_in(slot, schedule.zone())),
        after_failure: after_failure(draft),
        ..Seed::new(name, Trigger::Schedule)
    };
    if let Some(deadline) = draft.seen.settings.starting_deadline {
        // Should the POST fail without an answer, the slot is looked at when it is too late.
        draft.wake_at(plus_seconds(slot, deadline.saturating_add(1)));
    }
    create(draft, seed)
}

/// Plans a queued manual run.
fn start_manual(draft: &mut Draft<'_>, run: &Run) -> Option<Hold> {
    let id = run.request_id.as_deref()?;
    if let Some(hold) = blocked(draft, Trigger::Manual) {
        return Some(hold);
    }
    let seed = manual_seed(draft, id, Action::Backup, Options::default());
    create(draft, seed)
}

/// True if a good end of the run is a recovery somebody wants to hear of.
fn after_failure(draft: &Draft<'_>) -> bool {
    let failures = draft.status.consecutive_failures.unwrap_or(0);
    draft.seen.settings.notices.recovery && failures > 0
}

/// What a request's Job is for.
pub(super) fn manual_seed(draft: &Draft<'_>, id: &str, action: Action, options: Options) -> Seed {
    let object = &draft.seen.object;
    Seed {
        request_id: Some(id.to_owned()),
        action,
        options,
        after_failure: action == Action::Backup && after_failure(draft),
        ..Seed::new(
            names::manual_name(&object.name, &object.uid, id),
            Trigger::Manual,
        )
    }
}

/// The one run of an object without a schedule: only if it never had a run.
fn immediate(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let never =
        draft.status.runs.is_empty() && draft.status.totals.is_none_or(|t| t.due + t.manual == 0);
    if seen.settings.schedule.is_some() || draft.status.schedule.is_some() || !never {
        return;
    }
    if !seen.live {
        draft.needs_live = true;
        return;
    }
    if let Some(hold) = start_immediate(draft) {
        let name = names::immediate_name(&seen.object.name, &seen.object.uid);
        let mut run = Run::new(name, Trigger::Immediate, RunResult::Waiting);
        run.reason = hold.reason.to_owned();
        run.message = hold.message;
        report_waiting(draft, &run);
        ledger::open(&mut draft.status, run);
    }
}

/// Plans the Job of the one run of an object without a schedule.
fn start_immediate(draft: &mut Draft<'_>) -> Option<Hold> {
    let object = &draft.seen.object;
    let name = names::immediate_name(&object.name, &object.uid);
    let seed = Seed {
        after_failure: after_failure(draft),
        ..Seed::new(name, Trigger::Immediate)
    };
    create(draft, seed)
}

/// Adds the creation, unless one failed a moment ago: of this name, or of another run.
fn create(draft: &mut Draft<'_>, seed: Seed) -> Option<Hold> {
    let Some(failure) = failures::in_the_way(draft, Some(&seed.name)) else {
        draft.create_job(seed);
        return None;
    };
    let hold = Hold {
        reason: if failure.taken {
            reason::NAME_TAKEN
        } else {
            reason::FAILED_CREATE
        },
        message: if failure.taken {
            format!(
                "{}, and the run starts",
                failures::in_the_way_of(&failure.name)
            )
        } else {
            failures::refused(failure)
        },
    };
    let retry_at = failure.retry_at;
    draft.wake_at(retry_at.max(draft.now + Duration::seconds(1)));
    if retry_at <= draft.now {
        draft.create_job(seed);
    }
    Some(hold)
}

/// What keeps a Job that is no backup from being created.
pub(super) enum CreateBlock {
    /// Another's Job has the name; in words.
    NameTaken(String),
    /// It failed a moment ago; the object wakes when it is tried again.
    Later,
}

/// Looks whether a Job of this name may be created now.
pub(super) fn create_block(draft: &mut Draft<'_>, name: &str) -> Option<CreateBlock> {
    let failure = failures::failure(draft, name)?;
    if failure.taken {
        return Some(CreateBlock::NameTaken(failures::in_the_way_of(name)));
    }
    let at = failure.retry_at;
    (at > draft.now).then(|| {
        draft.wake_at(at);
        CreateBlock::Later
    })
}

/// The Job's name: the plain one, unless a foreign_job has it (CronJob rule 37); the one that is to be
/// tried next, if foreign_jobs have both.
fn slot_name(draft: &Draft<'_>, slot: DateTime<Utc>) -> String {
    let object = &draft.seen.object;
    let plain = names::slot_name(&object.name, &object.uid, slot);
    let hashed = names::hashed_slot_name(&object.name, &object.uid, slot);
    let taken = |name: &str| {
        failures::failure(draft, name)
            .filter(|f| f.taken)
            .map(|f| f.retry_at)
    };
    match (taken(&plain), taken(&hashed)) {
        (Some(first), Some(second)) if first <= second => plain,
        (Some(_), _) => hashed,
        (None, _) => plain,
    }
}

/// What keeps a run of this trigger from starting now (CronJob rule 34). A manual run neither
/// replaces nor is replaced.
pub(super) fn blocked(draft: &mut Draft<'_>, trigger: Trigger) -> Option<Hold> {
    let policy = draft.seen.settings.concurrency;
    if policy != ConcurrencyPolicy::Allow
        && let Some(hold) = concurrency_hold(draft, policy, trigger)
    {
        return Some(hold);
    }
    if running(draft) >= MAX_OPEN_RUNS {
        return Some(Hold {
            reason: reason::MAX_OPEN_RUNS,
            message: format!(
                "{MAX_OPEN_RUNS} runs of this object are active, the most there may be; it starts when one ends. Set concurrencyPolicy to Forbid, or find out why they do not end"
            ),
        });
    }
    let message = draft.seen.room.full()?;
    draft.wake_at(draft.now + RECHECK);
    Some(Hold {
        reason: reason::MAX_ACTIVE_RUNS,
        message,
    })
}

/// Runs whose Job exists or is planned.
fn running(draft: &Draft<'_>) -> usize {
    let planned =
        |s: &&Step| matches!(s, Step::CreateJob { seed, .. } if seed.action == Action::Backup);
    let open = |r: &&Run| r.result == RunResult::Running;
    draft.status.runs.iter().filter(open).count() + draft.steps.iter().filter(planned).count()
}

/// True if no more runs may wait: those somebody asked for are refused.
pub(super) fn too_many_open_runs(draft: &Draft<'_>) -> bool {
    let open = |r: &&Run| !r.result.is_final();
    draft.status.runs.iter().filter(open).count() >= MAX_OPEN_RUNS
}

/// What runs already, or is about to by this very plan.
fn concurrency_hold(
    draft: &Draft<'_>,
    policy: ConcurrencyPolicy,
    trigger: Trigger,
) -> Option<Hold> {
    let replaces = policy == ConcurrencyPolicy::Replace && trigger == Trigger::Schedule;
    let planned = draft.steps.iter().find_map(|s| match s {
        Step::CreateJob { seed, .. } if seed.action == Action::Backup => Some(seed.name.clone()),
        _ => None,
    });
    let hold = |name: &str, reason| Hold {
        reason,
        message: match reason {
            reason::REPLACING => {
                format!("run {name} is being stopped, concurrencyPolicy is Replace")
            }
            _ => format!("run {name} is active, concurrencyPolicy is {policy:?}"),
        },
    };
    if let Some(name) = planned {
        return Some(hold(&name, reason::CONCURRENCY_FORBID));
    }
    let mut active = draft
        .seen
        .jobs
        .iter()
        .filter(|j| j.is_active() && j.action == Action::Backup)
        // One whose outcome stands is held by another container of its pod alone.
        .filter(|j| {
            let mut runs = draft.status.runs.iter();
            !runs.any(|r| r.job_uid.as_deref() == Some(&*j.uid) && r.result.is_final())
        });
    let kept = |j: &&JobDigest| !replaces || j.trigger != Trigger::Schedule;
    let reason = |j: &JobDigest| {
        if kept(&j) {
            reason::CONCURRENCY_FORBID
        } else {
            reason::REPLACING
        }
    };
    let first = active.clone().find(kept).or(active.next())?;
    Some(hold(&first.name, reason(first)))
}

/// Writes the intent to replace into every active run of the schedule.
fn replace(draft: &mut Draft<'_>, slot: DateTime<Utc>) {
    for run in &mut draft.status.runs {
        if run.trigger == Trigger::Schedule
            && run.result == RunResult::Running
            && run.intent.is_none()
        {
            run.intent = Some(reason::REPLACED.to_owned());
            run.message = format!("replaced by the slot {}", rfc3339(slot));
        }
    }
}
