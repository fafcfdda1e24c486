//! Schedules exactly as a Kubernetes CronJob reads them, with one answer for operator, admission
//! and plugin.
//!
//! A schedule is five fields, a descriptor (`@daily`) or an interval (`@every 6h`), and a time
//! zone. A *slot* is one due instant, always a whole second. The rules are those of
//! robfig/cron v3 `ParseStandard` and of the API server's validation (CronJob rules 1 to 19).
//! Where that library trips over a zone change at local midnight or of half an hour, the wall
//! clock decides here: a slot is every instant whose local reading matches the fields.
//!
//! Everything is a pure function of its parameters. Zone data is compiled in, so a container
//! without `/usr/share/zoneinfo` gives the same answers.

mod count;
mod describe;
mod dst;
mod duration;
mod error;
mod fields;
mod next;
mod parse;
mod zone;

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use dst::{DstEffect, DstNote};
pub use duration::parse_go_duration;
pub use error::{Field, Problem, ScheduleError};
pub use zone::{ZONE_DATA_VERSION, parse_zone, zone_names};

use fields::Fields;

/// What to do when daylight saving skips or repeats the local time of a run. Kubernetes: as a CronJob, a skipped time does not run that day and a repeated one runs twice. Once: a skipped time runs right after the gap and a repeated one runs only the first time; schedules that run in every hour of the day are not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DstPolicy {
    /// As a CronJob: a skipped local time does not run that day, a repeated one runs twice
    /// (CronJob rules 17 and 18).
    #[default]
    Kubernetes,
    /// As Debian's cron: a repeated local time runs only the first time, a skipped one runs right
    /// after the gap. Schedules that run in every hour of the day have no fixed time of day and
    /// are left alone, else they would pause for an hour.
    Once,
}

/// A parsed Kubernetes schedule with its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    zone: Tz,
    policy: DstPolicy,
    kind: Kind,
}

/// The two sorts of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Wall-clock fields.
    Fields(Fields),
    /// A fixed number of seconds between slots, at least 1.
    Every(i64),
}

/// How many slots an interval holds, with its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCount {
    /// Number of slots.
    pub count: i64,
    /// The oldest of them.
    pub first: Option<DateTime<Utc>>,
    /// The newest of them.
    pub last: Option<DateTime<Utc>>,
}

impl Schedule {
    /// Parses `text` and `time_zone` as the API server does for a CronJob; `None` means UTC.
    ///
    /// # Errors
    /// Everything the API server refuses, with the field, the value, its limit and the remedy.
    pub fn parse(text: &str, time_zone: Option<&str>) -> Result<Self, ScheduleError> {
        let kind = parse::parse(text)?;
        let zone = time_zone.map_or(Ok(Tz::UTC), parse_zone)?;
        Ok(Self {
            text: text.to_owned(),
            zone,
            policy: DstPolicy::default(),
            kind,
        })
    }

    /// The same schedule under another rule for skipped and repeated local times.
    #[must_use]
    pub fn with_dst_policy(mut self, policy: DstPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The expression as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The zone's name as written, `UTC` if none was given.
    #[must_use]
    pub fn zone_name(&self) -> &'static str {
        self.zone.name()
    }

    /// The zone.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The rule for skipped and repeated local times.
    #[must_use]
    pub fn dst_policy(&self) -> DstPolicy {
        self.policy
    }

    /// The first slot strictly after `after`.
    ///
    /// `anchor` is what `@every` counts from: creation or the last run, cut to the second
    /// (CronJob rule 3); fields ignore it. `None` if nothing comes up to the end of the fifth
    /// local year after `after`, the horizon of Kubernetes (rule 14).
    #[must_use]
    pub fn next_after(&self, after: DateTime<Utc>, anchor: DateTime<Utc>) -> Option<DateTime<Utc>> {
        next::next_after(self, after.timestamp(), anchor.timestamp()).and_then(instant)
    }

    /// The newest slot in `(after, until]`, found from the end, whatever lies between.
    #[must_use]
    pub fn newest_in(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        anchor: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let (after, until) = (after.timestamp(), until.timestamp());
        next::newest_in(self, after, until, anchor.timestamp()).and_then(instant)
    }

    /// The number of slots in `(after, until]` with the first and the last, by arithmetic on days
    /// of the same kind: the time taken does not grow with the number of slots.
    #[must_use]
    pub fn count_in(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        anchor: DateTime<Utc>,
    ) -> SlotCount {
        let (after, until) = (after.timestamp(), until.timestamp());
        count::count_in(self, after, until, anchor.timestamp())
    }

    /// True if no slot ever comes (`0 0 30 2 *`). Such a schedule is valid (CronJob rule 14).
    #[must_use]
    pub fn never_fires(&self) -> bool {
        match &self.kind {
            Kind::Fields(fields) => fields.never_match(),
            Kind::Every(_) => false,
        }
    }

    /// The interval of an `@every` schedule.
    #[must_use]
    pub fn is_every(&self) -> Option<Duration> {
        match self.kind {
            Kind::Fields(_) => None,
            Kind::Every(seconds) => u64::try_from(seconds).ok().map(Duration::from_secs),
        }
    }

    /// What is to be said of an interval that is shorter than a run can be of use.
    #[must_use]
    pub fn too_often(&self) -> Option<String> {
        let seconds = self.is_every()?.as_secs();
        let text = self.text();
        if seconds < LEAST_SECONDS {
            return Some(format!(
                "{text:?} is shorter than the least interval of {LEAST_SECONDS}s: slots that come sooner are not started"
            ));
        }
        (seconds < 60).then(|| format!(
            "{text:?} starts a run every {seconds}s, and a pod alone takes some seconds to start: slots will find the run before still active; write @every 1m or longer"
        ))
    }

    /// The schedule in words, without the zone: `at 02:00 every day`.
    #[must_use]
    pub fn describe(&self) -> String {
        describe::describe(&self.kind)
    }

    /// Zone changes in `(from, until]` that skip, move or repeat a slot, oldest first.
    #[must_use]
    pub fn dst_notes(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Vec<DstNote> {
        dst::notes(self, from.timestamp(), until.timestamp())
    }

    /// True if zone changes are to be evened out for this schedule; see [`DstPolicy::Once`].
    fn once(&self) -> bool {
        match (&self.kind, self.policy) {
            (Kind::Fields(fields), DstPolicy::Once) => !fields.every_hour(),
            _ => false,
        }
    }
}

/// Least seconds between slots that are started: what comes sooner gives nobody a newer backup.
pub const LEAST_SECONDS: u64 = 10;

/// Whole seconds since the epoch as an instant; `None` outside chrono's years.
fn instant(seconds: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, 0)
}
