//! When a slot is late: not started, or without a good run in the time it may take.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Facts, State};
use crate::bounds::LEAP_SECONDS;
use crate::schedule::Schedule;
use crate::time::plus_seconds;

/// Least seconds in which something good is to come of a slot.
const LEAST: i64 = 600;
/// Seconds given to the first run of an object with a short interval.
const FIRST_RUN: i64 = 3600;
/// Seconds after which a slot that was not started is told: a new leader, a busy API server.
const START: i64 = 30;
/// Seconds after which it is critical: an interval, but neither less nor more than these.
const START_LIMIT: (i64, i64) = (120, 900);

impl Facts {
    /// The first slot that waits for a good run, and the last instant it is given. A slot is given:
    /// spread, startup deadline and twice the duration of the newest good run, at least ten
    /// minutes. While the first run ever is running it is given the interval, at least an hour.
    pub fn due(
        &self,
        schedule: &Schedule,
        now: DateTime<Utc>,
    ) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let work = match self.duration {
            Some(seconds) => seconds.saturating_mul(2),
            None if self.running => interval(schedule, self.anchor, now).max(FIRST_RUN),
            None => 0,
        };
        let start = self.startup_deadline.saturating_add(self.jitter.max(0));
        let grace = LEAST.max(start.saturating_add(work));
        // What a clock wrote that was ahead is no good run.
        let end = plus_seconds(now, LEAP_SECONDS);
        let good = self.good.filter(|good| *good <= end);
        let from = good.map_or(self.counts_from, |g| g.max(self.counts_from));
        let slot = schedule.next_after(from, self.anchor)?;
        Some((slot, plus_seconds(slot, grace)))
    }

    /// The slot that status says comes next, if it is past and nobody has started it: no operator acts
    /// on the object. A slot that was started, or could not be, is not the next one any more.
    pub(super) fn not_started(
        &self,
        schedule: Option<&Schedule>,
        now: DateTime<Utc>,
    ) -> Option<(State, DateTime<Utc>)> {
        let slot = self.next.filter(|_| !self.suspended)?;
        let next = schedule.and_then(|s| s.next_after(slot, self.anchor));
        let interval = next.map_or(START_LIMIT.1, |next| (next - slot).num_seconds());
        let spread = spread(self.jitter, self.starting_deadline, interval);
        not_started(slot, spread, interval, now).map(|state| (state, slot))
    }
}

/// Most seconds by which the start of a slot is put off.
pub(super) fn spread(jitter: i64, starting_deadline: Option<i64>, interval: i64) -> i64 {
    jitter
        .min(starting_deadline.unwrap_or(i64::MAX))
        .min(interval.saturating_sub(1))
        .max(0)
}

/// How bad it is that `slot` is still the next one. Seconds.
pub(super) fn not_started(
    slot: DateTime<Utc>,
    spread: i64,
    interval: i64,
    now: DateTime<Utc>,
) -> Option<State> {
    let late = (now - slot).num_seconds().saturating_sub(spread);
    if late <= START {
        None
    } else if late <= interval.clamp(START_LIMIT.0, START_LIMIT.1) {
        Some(State::Warning)
    } else {
        Some(State::Critical)
    }
}

/// Seconds between the newest slot up to `now` and the next; before the first slot, between the
/// next two. 0 if there are none.
pub fn interval(schedule: &Schedule, anchor: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    if let Some(width) = schedule.is_every() {
        return i64::try_from(width.as_secs()).unwrap_or(i64::MAX);
    }
    let Some(next) = schedule.next_after(now, anchor) else {
        return 0;
    };
    let newest = schedule.newest_in(now - TimeDelta::days(10 * 366), now, anchor);
    let (from, to) = match newest {
        Some(newest) => (newest, next),
        None => match schedule.next_after(next, anchor) {
            Some(after) => (next, after),
            None => return 0,
        },
    };
    (to - from).num_seconds()
}
