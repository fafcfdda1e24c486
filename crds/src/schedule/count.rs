//! How many slots an interval holds, by arithmetic.

use super::fields::Fields;
use super::next::{every_number, first_after, first_open, made_up_slot, newest_in};
use super::zone::{next_change, offset_at};
use super::{Kind, Schedule, SlotCount, instant};

/// The slots in `(after, until]`.
pub(super) fn count_in(schedule: &Schedule, after: i64, until: i64, anchor: i64) -> SlotCount {
    if until <= after {
        return SlotCount::default();
    }
    let count = match &schedule.kind {
        Kind::Fields(fields) => count_matches(schedule, fields, after, until),
        Kind::Every(width) => {
            let number = |at| every_number(at, anchor, *width).unwrap_or(0);
            number(until) - number(after)
        }
    };
    if count == 0 {
        return SlotCount::default();
    }
    let first = first_after(schedule, after, anchor);
    let last = newest_in(schedule, after, until, anchor);
    SlotCount {
        count,
        first: first.and_then(instant),
        last: last.and_then(instant),
    }
}

/// Adds up the stretches between zone changes; see [`super::next`].
fn count_matches(schedule: &Schedule, fields: &Fields, after: i64, until: i64) -> i64 {
    let mut total = 0;
    let mut from = after + 1;
    loop {
        let change = next_change(schedule.zone, from, until);
        let end = change.unwrap_or(until.saturating_add(1));
        let offset = offset_at(schedule.zone, from);
        let civil = |at: i64| at.saturating_add(offset);
        let open = first_open(schedule, from).min(end);
        total += fields.count_civil(civil(open), civil(end));
        // A match at the very instant is counted already.
        if made_up_slot(schedule, fields, from).is_some()
            && fields.count_civil(civil(from), civil(from) + 1) == 0
        {
            total += 1;
        }
        match change {
            Some(change) => from = change,
            None => return total,
        }
    }
}
