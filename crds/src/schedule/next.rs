//! From civil matches to slots: the first, and the newest in an interval.
//!
//! Between two zone changes the offset is fixed, so local time there is instants shifted by it and
//! civil matches map one to one. Each such stretch is searched by itself. A local time that a
//! change skips lies in no stretch and gives no slot; one that a change repeats lies in two and
//! gives two (CronJob rules 17 and 18). All times are whole seconds since the epoch.

use super::fields::{Fields, start_of_year, year_of};
use super::zone::{last_change, next_change, offset_at};
use super::{Kind, Schedule};

/// Local years that are searched beyond the start's own, as Kubernetes does (rule 14).
const HORIZON_YEARS: i32 = 5;

/// No schedule that fires at all pauses for longer: 29 February, 2096 to 2104.
const LONGEST_PAUSE_YEARS: i32 = 9;

/// No zone change moves the clock by more than a day.
const LONGEST_SHIFT: i64 = 86_400;

/// The first slot after `after`.
pub(super) fn next_after(schedule: &Schedule, after: i64, anchor: i64) -> Option<i64> {
    match &schedule.kind {
        Kind::Fields(fields) => next_match(schedule, fields, after.checked_add(1)?, HORIZON_YEARS),
        Kind::Every(width) => every_after(after, anchor, *width),
    }
}

/// The first slot after `after`, without the horizon of Kubernetes.
pub(super) fn first_after(schedule: &Schedule, after: i64, anchor: i64) -> Option<i64> {
    match &schedule.kind {
        Kind::Fields(fields) => {
            next_match(schedule, fields, after.checked_add(1)?, LONGEST_PAUSE_YEARS)
        }
        Kind::Every(width) => every_after(after, anchor, *width),
    }
}

/// The newest slot in `(after, until]`.
pub(super) fn newest_in(schedule: &Schedule, after: i64, until: i64, anchor: i64) -> Option<i64> {
    if until <= after {
        return None;
    }
    match &schedule.kind {
        Kind::Fields(fields) => newest_match(schedule, fields, after, until),
        Kind::Every(width) => {
            let newest =
                anchor.checked_add(every_number(until, anchor, *width)?.checked_mul(*width)?)?;
            (newest > after).then_some(newest)
        }
    }
}

/// The first slot of an interval after `after`: `anchor` + k · `width`, k at least 1.
fn every_after(after: i64, anchor: i64, width: i64) -> Option<i64> {
    let number = every_number(after, anchor, width).unwrap_or(0);
    anchor.checked_add(number.checked_add(1)?.checked_mul(width)?)
}

/// The number of the newest slot of an interval at or before `until`; the first has number 1.
pub(super) fn every_number(until: i64, anchor: i64, width: i64) -> Option<i64> {
    let number = until.checked_sub(anchor)?.div_euclid(width);
    (number >= 1).then_some(number)
}

/// The first match at or after the instant `from`, up to the end of the local year `years` later.
fn next_match(schedule: &Schedule, fields: &Fields, mut from: i64, years: i32) -> Option<i64> {
    let zone = schedule.zone;
    let last_year = year_of(from.checked_add(offset_at(zone, from))?)?.checked_add(years)?;
    let horizon = start_of_year(last_year + 1)?;
    loop {
        if let Some(slot) = made_up_slot(schedule, fields, from) {
            return Some(slot);
        }
        let offset = offset_at(zone, from);
        let civil = first_open(schedule, from).checked_add(offset)?;
        let slot = fields
            .next_civil(civil, last_year)
            .map(|civil| civil - offset);
        match next_change(zone, from, slot.unwrap_or(horizon - offset)) {
            Some(change) => from = change,
            None => return slot,
        }
    }
}

/// The newest match in `(after, until]`.
fn newest_match(schedule: &Schedule, fields: &Fields, after: i64, mut until: i64) -> Option<i64> {
    let zone = schedule.zone;
    let back = if schedule.once() { LONGEST_SHIFT } else { 0 };
    while until > after {
        let offset = offset_at(zone, until);
        let civil = until.checked_add(offset)?;
        let first_year = year_of(civil)?.saturating_sub(LONGEST_PAUSE_YEARS);
        let slot = fields
            .prev_civil(civil, first_year)
            .map(|civil| civil - offset);
        let slot = slot.filter(|slot| *slot > after);
        let change = last_change(zone, until, slot.unwrap_or(after).saturating_sub(back));
        let open = change.map_or(i64::MIN, |change| open_after(schedule, change));
        if let Some(slot) = slot.filter(|slot| *slot >= open) {
            return Some(slot);
        }
        let change = change.filter(|change| *change > after)?;
        if let Some(slot) = made_up_slot(schedule, fields, change) {
            return Some(slot);
        }
        until = change - 1;
    }
    None
}

/// The first instant from `from` on that may hold a slot of the stretch `from` lies in.
pub(super) fn first_open(schedule: &Schedule, from: i64) -> i64 {
    if !schedule.once() {
        return from;
    }
    last_change(schedule.zone, from, from.saturating_sub(LONGEST_SHIFT))
        .map_or(from, |change| open_after(schedule, change).max(from))
}

/// The first instant that may hold a slot of the stretch that begins at `change`. Where repeated
/// local times run only once, that is after the repeated ones.
fn open_after(schedule: &Schedule, change: i64) -> i64 {
    if !schedule.once() {
        return change;
    }
    change + (offset_at(schedule.zone, change - 1) - offset_at(schedule.zone, change)).max(0)
}

/// The instant `at`, if a zone change there skips a match that is to be made up for.
pub(super) fn made_up_slot(schedule: &Schedule, fields: &Fields, at: i64) -> Option<i64> {
    if !schedule.once() {
        return None;
    }
    let from = at.checked_add(offset_at(schedule.zone, at - 1))?;
    let to = at.checked_add(offset_at(schedule.zone, at))?;
    (fields.count_civil(from, to) > 0).then_some(at)
}
