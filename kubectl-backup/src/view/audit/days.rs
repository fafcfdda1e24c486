//! The worst that came of each day of the period (PURE).

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use crds::run::{Run, Trigger};
use crds::time::from_k8s;
use crds::verdict::{State, of_run};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Period;
use super::slots::{Books, Slots};
use crate::view::calendar::{begins, day};
use crate::view::time::Zone;

/// What came of a day, from the best to the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing came due and nothing ran.
    #[default]
    NotDue,
    /// All that came due is good.
    Good,
    /// Something waits, is under way, or is not decided.
    Open,
    /// A slot fell into a suspension.
    Suspended,
    /// A slot was not started on purpose, or a run was ended on purpose.
    Skipped,
    /// Of a slot it is not known what became of it.
    Unknown,
    /// Nobody could start a slot.
    Missed,
    /// A run failed, or what it stored failed its verification.
    Failed,
}

impl Outcome {
    /// Every one.
    pub(crate) const ALL: [Self; 8] = [
        Self::NotDue,
        Self::Good,
        Self::Open,
        Self::Suspended,
        Self::Skipped,
        Self::Unknown,
        Self::Missed,
        Self::Failed,
    ];

    /// As it is shown.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NotDue => "NotDue",
            Self::Good => "Good",
            Self::Open => "Open",
            Self::Suspended => "Suspended",
            Self::Skipped => "Skipped",
            Self::Unknown => "Unknown",
            Self::Missed => "Missed",
            Self::Failed => "Failed",
        }
    }

    /// The worst outcome of slots.
    fn of(slots: &Slots) -> Self {
        let worst = [
            (slots.failed, Self::Failed),
            (slots.missed, Self::Missed),
            (slots.unknown, Self::Unknown),
            (slots.skipped + slots.ended, Self::Skipped),
            (slots.suspended, Self::Suspended),
            (slots.open + slots.pending, Self::Open),
            (slots.succeeded, Self::Good),
        ];
        let found = worst.into_iter().find(|(count, _)| *count > 0);
        found.map_or(Self::NotDue, |(_, outcome)| outcome)
    }
}

/// A day of the calendar. Counts that are 0 are left out of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CalendarEntry {
    /// The day.
    pub(crate) date: NaiveDate,
    /// The worst that came of it.
    pub(crate) outcome: Outcome,
    /// Its slots.
    pub(crate) slots: Slots,
    /// Runs that somebody asked for.
    pub(crate) manual: i64,
    /// Good runs whose artefact failed its verification.
    pub(crate) unverified: i64,
}

impl CalendarEntry {
    /// Its counts that are not 0, as JSON names them.
    pub(crate) fn counts(&self) -> Vec<(&'static str, i64)> {
        let mut all = vec![("due", self.slots.due)];
        all.extend(self.slots.outcomes());
        all.extend([("manual", self.manual), ("unverified", self.unverified)]);
        all.retain(|(_, count)| *count > 0);
        all
    }
}

impl Serialize for CalendarEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("date", &self.date.to_string())?;
        map.serialize_entry("outcome", self.outcome.as_str())?;
        for (name, count) in self.counts() {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}

/// The days of the period in a zone, oldest first. `books` is none of an object without a schedule.
pub(super) fn days(
    books: Option<&Books<'_>>,
    runs: &[Run],
    created: DateTime<Utc>,
    period: Period,
    zone: Zone,
) -> Vec<CalendarEntry> {
    let second = TimeDelta::seconds(1);
    let last = day(zone, period.until - second);
    let (mut date, mut all) = (day(zone, period.from), vec![]);
    while date <= last {
        let Some(next) = date.checked_add_days(Days::new(1)) else {
            break;
        };
        let after = begins(zone, date).max(period.from) - second;
        let until = begins(zone, next).min(period.until) - second;
        all.push(one(books, runs, created, date, (after, until)));
        date = next;
    }
    all
}

/// The day whose instants lie after the first of `span`, up to the other.
fn one(
    books: Option<&Books<'_>>,
    runs: &[Run],
    created: DateTime<Utc>,
    date: NaiveDate,
    span: (DateTime<Utc>, DateTime<Utc>),
) -> CalendarEntry {
    let (after, until) = span;
    let mut slots = books.map_or_else(Slots::default, |books| books.tally(after, until));
    let (mut manual, mut unverified) = (0, 0);
    let mut worst = Outcome::NotDue;
    let counted = books.map(|books| books.after);
    for run in runs {
        let at = run.slot.as_ref().or(run.start_time.as_ref()).map(from_k8s);
        let Some(at) = at.filter(|at| after < *at && *at <= until) else {
            continue;
        };
        let mut own = Slots::default();
        own.enter(run);
        if of_run(run).state == State::Critical {
            worst = Outcome::Failed;
            unverified += own.succeeded;
        }
        worst = worst.max(Outcome::of(&own));
        if run.trigger != Trigger::Schedule {
            manual += 1;
        } else if counted.is_none_or(|counted| at <= counted) {
            // Of the schedule before: how many of its slots there were is not known.
            own.due = 1;
            slots.add(&own);
        }
    }
    let former = counted.is_some_and(|counted| after.max(created) < until.min(counted));
    if former {
        worst = worst.max(Outcome::Unknown);
    }
    CalendarEntry {
        date,
        outcome: worst.max(Outcome::of(&slots)),
        slots,
        manual,
        unverified,
    }
}
