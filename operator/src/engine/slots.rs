//! Slots: what is due, what was missed, what belongs to the schedule before an edit.

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::labels::{SCHEDULE_SINCE, SKIP_SLOTS_UNTIL};
use crds::run::{RunResult, Trigger};
use crds::schedule::{LEAST_SECONDS, Schedule};
use crds::status::ObservedSchedule;
use crds::time::{from_k8s, parse_rfc3339, plus_seconds, to_k8s};

use super::draft::Draft;
use super::failures;
use super::ledger::{self, Closing};
use super::observed::{Observed, Settings};
use super::reason;

/// True if slots were not started for this reason because somebody wanted it so.
pub(super) fn by_wish(reason: &str) -> bool {
    let wishes = [
        reason::SUSPENDED,
        reason::SKIPPED_BY_USER,
        reason::SCHEDULE_CHANGED,
        reason::CANCELLED,
        reason::CONCURRENCY_FORBID,
        reason::REPLACING,
        reason::LEAST_INTERVAL,
    ];
    wishes.contains(&reason)
}

/// The schedule of the spec, if it parses.
pub(super) fn parse(settings: &Settings) -> Option<Schedule> {
    let schedule = Schedule::parse(settings.schedule.as_deref()?, settings.time_zone.as_deref());
    Some(schedule.ok()?.with_dst_policy(settings.dst_policy))
}

/// The schedule status speaks of, if it parses.
pub(super) fn stored(status: &ScheduleStatus, settings: &Settings) -> Option<Schedule> {
    let stored = status.schedule.as_ref()?;
    let schedule = Schedule::parse(&stored.text, Some(&stored.time_zone));
    Some(schedule.ok()?.with_dst_policy(settings.dst_policy))
}

/// The end of the accounted time.
pub(super) fn accounted(status: &ScheduleStatus, default: DateTime<Utc>) -> DateTime<Utc> {
    status.accounted_until.as_ref().map_or(default, from_k8s)
}

/// What `@every` counts from (CronJob rule 3).
pub(super) fn anchor(status: &ScheduleStatus, seen: &Observed) -> DateTime<Utc> {
    let stored = status.schedule.as_ref().and_then(|s| s.anchor.as_ref());
    stored.map_or(seen.object.created, from_k8s)
}

/// When the slot may start: the slot and its spread, which stays below the deadline and before the
/// next slot, the same for each (UID, slot).
pub(super) fn start_of(seen: &Observed, schedule: &Schedule, slot: DateTime<Utc>) -> DateTime<Utc> {
    let mut most = seen.settings.jitter_seconds;
    if most <= 0 {
        return slot;
    }
    if let Some(deadline) = seen.settings.starting_deadline {
        most = most.min(deadline);
    }
    let anchor = anchor(&seen.status, seen);
    if let Some(next) = schedule.next_after(slot, anchor) {
        most = most.min((next - slot).num_seconds().saturating_sub(1));
    }
    let hash = crds::names::short_hash(&[&seen.object.uid, &slot.timestamp().to_string()], 8);
    let part = i64::from_str_radix(&hash, 16).unwrap_or(0);
    let spread = if most > 0 {
        part % most.saturating_add(1)
    } else {
        0
    };
    plus_seconds(slot, spread)
}

/// True if the slot may not start any more. Whole seconds: a deadline of 0 means the very second
/// (CronJob rules 25 and 26).
pub(super) fn too_late(seen: &Observed, slot: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let deadline = seen.settings.starting_deadline;
    deadline.is_some_and(|d| now.timestamp() > slot.timestamp().saturating_add(d))
}

/// True if slots follow each other faster than runs are started.
pub(super) fn is_too_fast(schedule: &Schedule) -> bool {
    schedule
        .is_every()
        .is_some_and(|width| width.as_secs() < LEAST_SECONDS)
}

/// Until when no newer slot is looked at: a run that can't be made is tried again then, or the
/// least interval is over.
pub(super) fn rests_until(draft: &Draft<'_>, schedule: &Schedule) -> Option<DateTime<Utc>> {
    let newest = draft.status.last_schedule_time.as_ref().map(from_k8s);
    let least = newest
        .filter(|_| is_too_fast(schedule))
        .map(|at| plus_seconds(at, i64::try_from(LEAST_SECONDS).unwrap_or(0)));
    failures::retried_at(draft).max(least)
}

/// Why slots before the one that is looked at were not started, if it was not the operator's
/// absence.
pub(super) fn why_passed(draft: &Draft<'_>, schedule: &Schedule) -> Option<&'static str> {
    let mut runs = draft.seen.status.runs.iter();
    if runs.any(|r| r.trigger == Trigger::Schedule && failures::fails(r)) {
        return Some(reason::FAILED_CREATE);
    }
    is_too_fast(schedule).then_some(reason::LEAST_INTERVAL)
}

/// Begins the books: from the newest Job that is there, else from lastScheduleTime, else from
/// creation (CronJob rule 21).
pub(super) fn first_sight(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let Some(text) = &seen.settings.schedule else {
        return;
    };
    let last = draft.status.last_schedule_time.as_ref().map(from_k8s);
    let untouched = draft.status.totals.is_none_or(|t| t.due == 0) && draft.status.runs.is_empty();
    let behind = last.is_some_and(|l| l < accounted(&draft.status, l));
    if draft.status.accounted_until.is_some() && !(untouched && behind) {
        return;
    }
    let newest_job = seen.jobs.iter().filter_map(|j| j.slot).max();
    let origin = newest_job.max(last).unwrap_or(seen.object.created);
    draft.status.accounted_until = Some(to_k8s(origin));
    ledger::totals(&mut draft.status);
    let stored = draft.status.schedule.take();
    let keep = stored.filter(|s| !untouched && !s.text.is_empty());
    draft.status.schedule = Some(keep.unwrap_or_else(|| ObservedSchedule {
        text: text.clone(),
        time_zone: zone(&seen.settings),
        since: Some(to_k8s(origin)),
        anchor: Some(to_k8s(last.unwrap_or(seen.object.created))),
    }));
}

fn zone(settings: &Settings) -> String {
    settings.time_zone.clone().unwrap_or_else(|| "UTC".into())
}

/// An edit of schedule or zone: slots up to it are accounted under the schedule before, none of
/// them starts any more (deviation from CronJob rule 29).
pub(super) fn edits(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let (Some(text), Some(old)) = (&seen.settings.schedule, draft.status.schedule.clone()) else {
        return;
    };
    let zone = zone(&seen.settings);
    if old.text == *text && old.time_zone == zone {
        return;
    }
    let since = edited_at(draft, &old);
    if let Some(schedule) = stored(&draft.status, &seen.settings) {
        let suspended = draft.status.suspended_since.as_ref().map(from_k8s);
        pass_over(draft, &schedule, since, suspended.map(|s| (s, since)), None);
    }
    let until = accounted(&draft.status, since).max(since);
    draft.status.accounted_until = Some(to_k8s(until));
    draft.status.schedule = Some(ObservedSchedule {
        text: text.clone(),
        time_zone: zone,
        since: Some(to_k8s(since)),
        anchor: Some(to_k8s(since)),
    });
    drop_waiting(draft, Some(reason::SCHEDULE_CHANGED));
}

/// The instant of an edit: stamped by webhook or plugin, else of the schedule's manager, else now.
fn edited_at(draft: &Draft<'_>, old: &ObservedSchedule) -> DateTime<Utc> {
    let since = old.since.as_ref().map(from_k8s);
    let fits = |at: &DateTime<Utc>| *at <= draft.now && since.is_none_or(|s| *at > s);
    let stamp = draft.seen.object.annotations.get(SCHEDULE_SINCE);
    stamp
        .and_then(|text| parse_rfc3339(text))
        .filter(fits)
        .or(draft.seen.object.schedule_edited.filter(fits))
        .unwrap_or(draft.now)
}

/// Closes a slot that waits, because a newer one or an edit takes its place.
pub(super) fn drop_waiting(draft: &mut Draft<'_>, reason: Option<&str>) {
    let waits =
        |r: &crds::run::Run| r.result == RunResult::Waiting && r.trigger == Trigger::Schedule;
    while let Some(index) = draft.status.runs.iter().position(waits) {
        let run = &draft.status.runs[index];
        let failed = failures::fails(run);
        let closing = Closing {
            result: if failed {
                RunResult::Failed
            } else {
                RunResult::Skipped
            },
            reason: reason.filter(|_| !failed).unwrap_or(&run.reason).to_owned(),
            message: run.message.clone(),
            at: draft.now,
        };
        let (name, note) = (
            run.name.clone(),
            format!("{}: {}", closing.reason, closing.message),
        );
        let event = if failed {
            reason::BACKUP_FAILED
        } else {
            reason::SLOT_SKIPPED
        };
        draft.event(name, event, failed, "Schedule", note);
        ledger::close(&mut draft.status, index, closing);
    }
}

/// The annotation skip-slots-until.
pub(super) fn skip_until(seen: &Observed) -> Option<DateTime<Utc>> {
    parse_rfc3339(seen.object.annotations.get(SKIP_SLOTS_UNTIL)?)
}

/// Accounts every slot in (accounted, `until`] as not started, each with its reason, in time that
/// does not grow with their number.
pub(super) fn pass_over(
    draft: &mut Draft<'_>,
    schedule: &Schedule,
    until: DateTime<Utc>,
    suspended: Option<(DateTime<Utc>, DateTime<Utc>)>,
    newest: Option<&str>,
) {
    let from = accounted(&draft.status, until);
    let skip = skip_until(draft.seen);
    let anchor = anchor(&draft.status, draft.seen);
    let mut cuts = vec![from, until];
    cuts.extend(suspended.iter().flat_map(|(a, b)| [*a, *b]));
    cuts.extend(skip);
    cuts.retain(|c| (from..=until).contains(c));
    cuts.sort_unstable();
    cuts.dedup();
    let mut passed = 0;
    for pair in cuts.windows(2) {
        let (after, to) = (pair[0], pair[1]);
        let why = if skip.is_some_and(|s| to <= s) {
            reason::SKIPPED_BY_USER
        } else if suspended.is_some_and(|(a, b)| a < to && to <= b) {
            reason::SUSPENDED
        } else {
            newest.unwrap_or(reason::OUTAGE)
        };
        let slots = schedule.count_in(after, to, anchor);
        passed = slots.count.saturating_add(passed);
        let skipped = why == reason::SKIPPED_BY_USER || why == reason::LEAST_INTERVAL;
        ledger::pass(&mut draft.status, slots, why, skipped);
        if why != reason::LEAST_INTERVAL {
            tell(draft, slots, why);
        }
    }
    if passed > 0 {
        draft.status.accounted_until = Some(to_k8s(until));
    }
}

/// One event for slots that were not started.
fn tell(draft: &mut Draft<'_>, slots: crds::schedule::SlotCount, reason: &str) {
    let (Some(first), Some(last)) = (slots.first, slots.last) else {
        return;
    };
    let (first, last) = (crds::time::rfc3339(first), crds::time::rfc3339(last));
    let note = match slots.count {
        1 => format!("the slot {last} was not started: {reason}"),
        n => format!("{n} slots from {first} to {last} were not started: {reason}"),
    };
    let warning = reason != reason::SKIPPED_BY_USER && reason != reason::SUSPENDED;
    let event = if reason == reason::SKIPPED_BY_USER {
        reason::SLOTS_SKIPPED
    } else {
        reason::SLOTS_MISSED
    };
    draft.event(last, event, warning, "Schedule", note);
}
