//! Zone changes that touch a schedule, for previews and warnings.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;

use super::fields::Fields;
use super::next::made_up_slot;
use super::zone::{next_change, offset_at};
use super::{DstPolicy, Kind, Schedule, instant};

/// What a zone change does to slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DstEffect {
    /// The local time does not exist that day and nothing runs in its place.
    Skipped,
    /// The local time does not exist that day; the run starts right after the gap.
    Moved,
    /// The local time comes twice and runs twice.
    Twice,
    /// The local time comes twice and runs the first time only.
    Once,
}

/// A zone change that touches a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DstNote {
    /// The instant of the change.
    pub at: DateTime<Utc>,
    /// The zone.
    pub zone: Tz,
    /// What happens.
    pub effect: DstEffect,
    /// The first local time concerned.
    pub local: NaiveDateTime,
    /// How many local times of the schedule are concerned.
    pub slots: i64,
}

impl fmt::Display for DstNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local, zone) = (self.local.format("%Y-%m-%d %H:%M"), self.zone.name());
        let (times, go, come) = match self.slots {
            1 => (local.to_string(), "does not exist", "comes twice"),
            n => (
                format!("{local} and {} more", n - 1),
                "do not exist",
                "come twice",
            ),
        };
        match self.effect {
            DstEffect::Skipped => write!(f, "{times} {go} in {zone} (clocks go forward): skipped"),
            DstEffect::Moved => {
                let at = self.at.with_timezone(&self.zone).format("%H:%M");
                write!(
                    f,
                    "{times} {go} in {zone} (clocks go forward): runs once, at {at}"
                )
            }
            DstEffect::Twice => write!(f, "{times} {come} in {zone} (clocks go back): runs twice"),
            DstEffect::Once => {
                write!(
                    f,
                    "{times} {come} in {zone} (clocks go back): runs the first time only"
                )
            }
        }
    }
}

/// The changes in `(from, until]` that touch the schedule, oldest first. A schedule that runs in
/// every hour of the day is not touched: its slots stay as far apart as on other days.
pub(super) fn notes(schedule: &Schedule, from: i64, until: i64) -> Vec<DstNote> {
    let mut notes = Vec::new();
    let Kind::Fields(fields) = &schedule.kind else {
        return notes;
    };
    if fields.every_hour() {
        return notes;
    }
    let mut at = from;
    while let Some(change) = next_change(schedule.zone, at, until) {
        notes.extend(note(schedule, fields, change));
        at = change;
    }
    notes
}

fn note(schedule: &Schedule, fields: &Fields, change: i64) -> Option<DstNote> {
    let before = change + offset_at(schedule.zone, change - 1);
    let after = change + offset_at(schedule.zone, change);
    let (low, high) = (before.min(after), before.max(after));
    let slots = fields.count_civil(low, high);
    if slots == 0 {
        return None;
    }
    let effect = match (before < after, schedule.policy) {
        (true, _) if made_up_slot(schedule, fields, change).is_some() => DstEffect::Moved,
        (true, _) => DstEffect::Skipped,
        (false, DstPolicy::Kubernetes) => DstEffect::Twice,
        (false, DstPolicy::Once) => DstEffect::Once,
    };
    let local = instant(fields.next_civil(low, i32::MAX)?)?.naive_utc();
    Some(DstNote {
        at: instant(change)?,
        zone: schedule.zone,
        effect,
        local,
        slots,
    })
}
