//! The books: totals, missed slots, opening and closing of runs. Each slot is entered once.

use super::reason;
use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::run::{Run, RunResult, Trigger};
use crds::schedule::SlotCount;
use crds::status::{MAX_MISSED, MissedSlots, Totals};
use crds::time::{from_k8s, to_k8s};

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closing {
    pub(crate) result: RunResult,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) at: DateTime<Utc>,
}

pub(super) fn totals(status: &mut ScheduleStatus) -> &mut Totals {
    status.totals.get_or_insert_default()
}

/// Counts stay within their type, whatever was written into status.
fn add(count: &mut i64, more: i64) {
    *count = count.saturating_add(more);
}

/// Enters slots that were not started.
pub(super) fn pass(status: &mut ScheduleStatus, slots: SlotCount, why: &str, skipped: bool) {
    let (Some(from), Some(to)) = (slots.first, slots.last) else {
        return;
    };
    let totals = totals(status);
    add(&mut totals.due, slots.count);
    if skipped {
        add(&mut totals.skipped, slots.count);
    } else {
        add(&mut totals.missed, slots.count);
    }
    // The least interval is said once, as a condition; its slots would crowd out the others.
    if why != reason::LEAST_INTERVAL {
        note(status, from, to, slots.count, why);
    }
}

/// Takes slots after `now` off the books again, as far as they are listed as not started. `count`
/// tells how many come due from now up to an instant.
pub(super) fn give_back(
    status: &mut ScheduleStatus,
    now: DateTime<Utc>,
    count: impl Fn(DateTime<Utc>) -> i64,
) {
    let mut totals = status.totals.unwrap_or_default();
    for entry in &mut status.missed {
        let (from, to) = (from_k8s(&entry.from), from_k8s(&entry.to));
        if to <= now {
            continue;
        }
        let ahead = if from > now {
            entry.count
        } else {
            count(to).min(entry.count)
        };
        let skipped = entry.reason == reason::SKIPPED_BY_USER;
        let column = if skipped {
            &mut totals.skipped
        } else {
            &mut totals.missed
        };
        let back = ahead.min(*column).max(0);
        *column -= back;
        totals.due = totals.due.saturating_sub(back);
        entry.count = entry.count.saturating_sub(ahead);
        entry.to = to_k8s(now.max(from));
    }
    status.missed.retain(|m| m.count > 0);
    status.totals = Some(totals);
}

/// Lists slots that were not started, joined to the newest entry if no run lies between.
fn note(
    status: &mut ScheduleStatus,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    count: i64,
    reason: &str,
) {
    let ran_between = |since: DateTime<Utc>| {
        let slots = status.runs.iter().filter_map(|r| r.slot.as_ref());
        slots.map(from_k8s).any(|s| s > since && s < from)
    };
    let joins = status
        .missed
        .first()
        .is_some_and(|m| m.reason == reason && !ran_between(from_k8s(&m.to)));
    match status.missed.first_mut().filter(|_| joins) {
        Some(newest) => {
            newest.to = to_k8s(to.max(from_k8s(&newest.to)));
            add(&mut newest.count, count);
        }
        None => {
            let entry = MissedSlots {
                from: to_k8s(from),
                to: to_k8s(to),
                count,
                reason: reason.to_owned(),
            };
            status.missed.insert(0, entry);
            status.missed.truncate(MAX_MISSED);
        }
    }
}

/// Opens a run of a slot, which comes due by that, or of a request.
pub(super) fn open(status: &mut ScheduleStatus, run: Run) {
    match run.trigger {
        Trigger::Schedule => add(&mut totals(status).due, 1),
        Trigger::Manual | Trigger::Immediate => add(&mut totals(status).manual, 1),
    }
    status.runs.insert(0, run);
}

/// Opens a run of a slot that the books had closed as not started: a late write of a former
/// leader. The slot stays counted once.
pub(super) fn reopen(status: &mut ScheduleStatus, run: Run) {
    let slot = run.slot.as_ref().map(from_k8s);
    let totals = totals(status);
    if totals.missed > 0 {
        totals.missed -= 1;
    } else if totals.skipped > 0 {
        totals.skipped -= 1;
    } else {
        add(&mut totals.due, 1);
    }
    let covers =
        |m: &&mut MissedSlots| slot.is_some_and(|s| from_k8s(&m.from) <= s && s <= from_k8s(&m.to));
    if let Some(entry) = status.missed.iter_mut().find(covers) {
        entry.count = entry.count.saturating_sub(1);
    }
    status.missed.retain(|m| m.count > 0);
    status.runs.insert(0, run);
}

/// Closes the run at `index`.
pub(super) fn close(status: &mut ScheduleStatus, index: usize, closing: Closing) {
    let Some(run) = status.runs.get_mut(index).filter(|r| !r.result.is_final()) else {
        return;
    };
    run.result = closing.result;
    run.reason = closing.reason;
    run.message = closing.message;
    run.phase = None;
    // The end is told by the pod's clock, the start by the API server's.
    let start = run.start_time.as_ref().map(from_k8s);
    let at = start.map_or(closing.at, |start| closing.at.max(start));
    run.completion_time = Some(to_k8s(at));
    run.job_gone |= run.job_uid.is_none();
    let run = run.clone();
    if run.trigger == Trigger::Schedule {
        let totals = totals(status);
        match run.result {
            RunResult::Succeeded => add(&mut totals.succeeded, 1),
            RunResult::Skipped => add(&mut totals.skipped, 1),
            _ => add(&mut totals.failed, 1),
        }
    }
    scalars(status, &run, closing.at);
}

/// The summary fields a finished run moves.
fn scalars(status: &mut ScheduleStatus, run: &Run, at: DateTime<Utc>) {
    if run.result == RunResult::Skipped {
        if let Some(slot) = run.slot.as_ref().map(from_k8s) {
            note(status, slot, slot, 1, &run.reason);
        }
        return;
    }
    let wanted = run.ended_on_purpose().then_some(run.reason.as_str());
    status.last_result = Some(wanted.unwrap_or(run.result.as_str()).to_owned());
    let failures = status.consecutive_failures.get_or_insert(0);
    if run.result == RunResult::Succeeded {
        *failures = 0;
        let newest = status.last_successful_time.as_ref().map(from_k8s);
        status.last_successful_time = Some(to_k8s(newest.map_or(at, |n| n.max(at))));
        status.last_size = run.stored_bytes.map(size).or(status.last_size.take());
    } else if !run.ended_on_purpose() {
        *failures = failures.saturating_add(1);
    }
}

/// `1.8GiB`: binary units, one decimal below ten.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(super) fn size(bytes: i64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" || value >= 10.0 {
        format!("{value:.0}{unit}")
    } else {
        format!("{value:.1}{unit}")
    }
}
