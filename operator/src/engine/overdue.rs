//! When an object is overdue: a slot came due and nothing good came of it, or of a later one, in the
//! time it may take. Metrics and notices share the rule.

use chrono::{DateTime, TimeDelta, Utc};
use crds::ScheduleStatus;
use crds::bounds::LEAP_SECONDS;
use crds::run::{Run, RunResult};
use crds::schedule::Schedule;
use crds::time::{from_k8s, parse_rfc3339, plus_seconds};

use super::observed::{Object, Settings};

/// Least seconds that a slot is given.
const LEAST: i64 = 600;
/// Seconds given to the first run of an object with a short interval.
const FIRST_RUN: i64 = 3600;

/// What the rule speaks of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) schedule: &'a Schedule,
    /// What `@every` counts from.
    pub(crate) anchor: DateTime<Utc>,
    /// See [`since`].
    pub(crate) since: DateTime<Utc>,
    /// See [`newest_good`].
    pub(crate) good: Option<DateTime<Utc>>,
    /// Seconds that a start may take: spread and startup deadline.
    pub(crate) start_allowance: i64,
    /// Seconds the newest good run took.
    pub(crate) duration: Option<i64>,
    /// A run's container runs.
    pub(crate) running: bool,
}

impl Case<'_> {
    /// The first slot that waits for a good run, and the last instant it is given. A slot is given:
    /// spread, startup deadline and twice the duration of the newest good run, at least ten
    /// minutes. While the first run ever is running it is given the interval, at least an hour.
    pub(crate) fn due(&self, now: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let work = match self.duration {
            Some(seconds) => seconds.saturating_mul(2),
            None if self.running => interval(self.schedule, self.anchor, now).max(FIRST_RUN),
            None => 0,
        };
        let grace = LEAST.max(self.start_allowance.saturating_add(work));
        // What a clock wrote that was ahead is no good run.
        let end = plus_seconds(now, LEAP_SECONDS);
        let good = self.good.filter(|good| *good <= end);
        let from = good.map_or(self.since, |g| g.max(self.since));
        let slot = self.schedule.next_after(from, self.anchor)?;
        Some((slot, plus_seconds(slot, grace)))
    }
}

/// The newest instant from which slots count: creation, an edit of the schedule, a resumption, or
/// the end of what the user said to skip.
pub(crate) fn since(object: &Object, status: &ScheduleStatus) -> DateTime<Utc> {
    let skip = object.annotations.get(crds::labels::SKIP_SLOTS_UNTIL);
    let edited = status.schedule.as_ref().and_then(|s| s.since.as_ref());
    [edited, status.resumed_at.as_ref()]
        .into_iter()
        .flatten()
        .map(from_k8s)
        .chain(skip.and_then(|text| parse_rfc3339(text)))
        .fold(object.created, DateTime::max)
}

/// Seconds that a start may take: spread and startup deadline.
pub(crate) fn start_allowance(settings: &Settings) -> i64 {
    let spread = settings.jitter_seconds.max(0);
    settings.startup_deadline.saturating_add(spread)
}

/// Good runs, newest first.
pub(crate) fn good_runs(status: &ScheduleStatus) -> impl Iterator<Item = &Run> {
    let runs = status.runs.iter();
    runs.filter(|r| r.result == RunResult::Succeeded)
}

/// Slot, or start, of the newest good run.
pub(crate) fn newest_good(status: &ScheduleStatus) -> Option<DateTime<Utc>> {
    good_runs(status)
        .next()
        .and_then(|r| r.slot.as_ref().or(r.start_time.as_ref()))
        .or(status.last_successful_time.as_ref())
        .map(from_k8s)
}

/// Seconds a finished run took.
pub(crate) fn duration(run: &Run) -> Option<i64> {
    let (start, end) = (run.start_time.as_ref()?, run.completion_time.as_ref()?);
    Some((from_k8s(end) - from_k8s(start)).num_seconds().max(0))
}

/// Seconds between the newest slot up to `now` and the next; before the first slot, between the
/// next two.
pub(crate) fn interval(schedule: &Schedule, anchor: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
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
