//! Slots of a span by outcome, from the runs and the slots without a run that status lists (PURE). A slot
//! of which it lists neither is unknown.

use chrono::{DateTime, TimeDelta, Utc};
use crds::ScheduleStatus;
use crds::condition::reason;
use crds::run::{Run, RunResult, Trigger};
use crds::schedule::Schedule;
use crds::time::from_k8s;
use serde::Serialize;

/// Slots that come due are whole seconds.
const SECOND: TimeDelta = TimeDelta::seconds(1);
/// Reasons for which the operator books a slot as missed, beside a suspension. All others are a skip.
const MISSED: [&str; 3] = ["Outage", "DeadlineExceeded", reason::FAILED_CREATE];

/// Slots by outcome: `due` is the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slots {
    /// Came due.
    pub(crate) due: i64,
    /// Their run was good.
    pub(crate) succeeded: i64,
    /// Their run failed.
    pub(crate) failed: i64,
    /// Their run was ended on purpose: cancelled, or replaced by a newer one.
    pub(crate) ended: i64,
    /// Not started on purpose.
    pub(crate) skipped: i64,
    /// Nobody could start them.
    pub(crate) missed: i64,
    /// Fell into a suspension.
    pub(crate) suspended: i64,
    /// Their run waits or is under way.
    pub(crate) open: i64,
    /// The operator has not decided over them.
    pub(crate) pending: i64,
    /// Status no longer lists what became of them.
    pub(crate) unknown: i64,
}

impl Slots {
    /// The outcomes with their names, as JSON has them.
    pub(crate) fn outcomes(&self) -> [(&'static str, i64); 9] {
        [
            ("succeeded", self.succeeded),
            ("failed", self.failed),
            ("ended", self.ended),
            ("skipped", self.skipped),
            ("missed", self.missed),
            ("suspended", self.suspended),
            ("open", self.open),
            ("pending", self.pending),
            ("unknown", self.unknown),
        ]
    }

    /// Outcomes that there are, in words: `28 succeeded, 1 failed`.
    pub(crate) fn words(&self) -> String {
        let some = self.outcomes().into_iter().filter(|(_, count)| *count > 0);
        let words: Vec<String> = some
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        words.join(", ")
    }

    /// Adds those of another span or object.
    pub(crate) fn add(&mut self, other: &Self) {
        self.due += other.due;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.ended += other.ended;
        self.skipped += other.skipped;
        self.missed += other.missed;
        self.suspended += other.suspended;
        self.open += other.open;
        self.pending += other.pending;
        self.unknown += other.unknown;
    }

    /// Enters the run of a slot.
    pub(super) fn enter(&mut self, run: &Run) {
        let column = match run.result {
            RunResult::Succeeded => &mut self.succeeded,
            RunResult::Failed if run.ended_on_purpose() => &mut self.ended,
            RunResult::Failed => &mut self.failed,
            RunResult::Skipped => self.not_started(&run.reason),
            RunResult::Running | RunResult::Waiting => &mut self.open,
        };
        *column += 1;
    }

    /// Where slots are entered that were not started for a reason.
    fn not_started(&mut self, why: &str) -> &mut i64 {
        match why {
            reason::SUSPENDED => &mut self.suspended,
            why if MISSED.contains(&why) => &mut self.missed,
            _ => &mut self.skipped,
        }
    }
}

/// From when on status tells of each slot what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// From the first slot on that can be counted.
    All,
    /// From this slot on.
    Since(DateTime<Utc>),
    /// Of none, up to the end of the books.
    None,
}

/// Slots that status lists as not started.
struct Entry<'a> {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    count: i64,
    why: &'a str,
    /// Each slot within it that has no listed run is one of them. Otherwise runs lie within that are no
    /// longer listed, and which slots these were is not known.
    whole: bool,
}

/// What status tells of the slots of one object.
pub(super) struct Books<'a> {
    schedule: Schedule,
    anchor: DateTime<Utc>,
    /// Slots up to it can't be counted: they were of another schedule, or there was no object.
    pub(super) after: DateTime<Utc>,
    accounted: DateTime<Utc>,
    suspended_since: Option<DateTime<Utc>>,
    runs: Vec<(DateTime<Utc>, &'a Run)>,
    entries: Vec<Entry<'a>>,
}

impl<'a> Books<'a> {
    /// Of an object with this schedule.
    pub(super) fn of(
        schedule: Schedule,
        status: &'a ScheduleStatus,
        created: DateTime<Utc>,
    ) -> Self {
        let observed = status.schedule.as_ref();
        let time = |at: Option<&_>| at.map(from_k8s);
        let after = time(observed.and_then(|s| s.since.as_ref())).unwrap_or(created);
        let scheduled = status
            .runs
            .iter()
            .filter(|r| r.trigger == Trigger::Schedule);
        let mut books = Self {
            schedule,
            anchor: time(observed.and_then(|s| s.anchor.as_ref())).unwrap_or(created),
            after,
            accounted: time(status.accounted_until.as_ref()).unwrap_or(after),
            suspended_since: time(status.suspended_since.as_ref()),
            runs: scheduled
                .filter_map(|run| Some((from_k8s(run.slot.as_ref()?), run)))
                .collect(),
            entries: vec![],
        };
        let entries = status.missed.iter().map(|missed| {
            let (from, to) = (from_k8s(&missed.from), from_k8s(&missed.to));
            let slots = books.count(after.max(from - SECOND), to);
            let started = books.listed(from - SECOND, to, |run| run.result != RunResult::Skipped);
            Entry {
                from,
                to,
                count: missed.count,
                why: &missed.reason,
                whole: missed.count >= slots - started,
            }
        });
        books.entries = entries.collect();
        books
    }

    fn count(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> i64 {
        self.schedule.count_in(after, until, self.anchor).count
    }

    /// Listed runs of slots after an instant, up to another.
    fn listed(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        which: impl Fn(&Run) -> bool,
    ) -> i64 {
        let within =
            |(slot, run): &&(DateTime<Utc>, &Run)| after < *slot && *slot <= until && which(run);
        i64::try_from(self.runs.iter().filter(within).count()).unwrap_or(i64::MAX)
    }

    /// Slots of a span that no listed run has.
    fn without_run(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> i64 {
        (self.count(after, until) - self.listed(after, until, |_| true)).max(0)
    }

    /// How many slots of the span an entry tells of.
    fn of_entry(&self, entry: &Entry<'_>, after: DateTime<Utc>, until: DateTime<Utc>) -> i64 {
        let before = entry.from - SECOND;
        if entry.whole {
            return self.without_run(after.max(before), until.min(entry.to));
        }
        if before < after || entry.to > until {
            return 0;
        }
        let skipped = self.listed(before, entry.to, |run| run.result == RunResult::Skipped);
        (entry.count - skipped).clamp(0, self.without_run(before, entry.to))
    }

    /// The slots after an instant, up to another.
    pub(super) fn tally(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> Slots {
        let after = after.max(self.after);
        let mut slots = Slots::default();
        if until <= after {
            return slots;
        }
        for (slot, run) in &self.runs {
            if after < *slot && *slot <= until {
                slots.enter(run);
            }
        }
        for entry in &self.entries {
            *slots.not_started(entry.why) += self.of_entry(entry, after, until);
        }
        // What a suspension that lasts holds back is booked when it ends.
        let decided = self.accounted.clamp(after, until);
        let held = self.suspended_since.unwrap_or(until).clamp(decided, until);
        slots.pending += self.without_run(decided, held);
        slots.suspended += self.without_run(held, until);
        let known: i64 = slots.outcomes().iter().map(|(_, count)| count).sum();
        slots.due = self.count(after, until).max(known);
        slots.unknown = slots.due - known;
        slots
    }

    /// From when on the list reaches without a hole to the end of the books.
    pub(super) fn known(&self) -> Known {
        let (mut at, mut since) = (self.accounted, None);
        while let Some(slot) = self.schedule.newest_in(self.after, at, self.anchor) {
            let run = self.runs.iter().any(|(of, _)| *of == slot);
            let covers = |e: &&Entry<'_>| e.whole && e.from <= slot && slot <= e.to;
            // The first slot of an entry is one of the schedule before where that was edited meanwhile.
            at = match self.entries.iter().find(covers) {
                Some(entry) => {
                    let first = self.schedule.next_after(entry.from - SECOND, self.anchor);
                    since = Some(first.filter(|first| *first <= slot).unwrap_or(slot));
                    entry.from - SECOND
                }
                None if run => {
                    since = Some(slot);
                    slot - SECOND
                }
                None => return since.map_or(Known::None, Known::Since),
            };
        }
        Known::All
    }
}
