//! Reads of events, seldom enough for any number of Jobs that do not start: a list of events is
//! answered from etcd, event by event.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// Shortest time between two reads.
const BETWEEN: TimeDelta = TimeDelta::milliseconds(250);
/// Who finds no turn comes again after this time.
pub(super) const AGAIN: TimeDelta = TimeDelta::seconds(2);

/// When the next read may be made.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<Option<DateTime<Utc>>>);

/// The right to one read.
pub(super) struct Turn;

impl Looks {
    /// A turn, if none was taken a moment ago. A clock that was set back waits for nobody.
    pub(super) fn turn(&self, now: DateTime<Utc>) -> Option<Turn> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last <= now && now - last < BETWEEN) {
            return None;
        }
        *last = Some(now);
        Some(Turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o10_events_are_read_four_times_a_second_at_most() {
        let looks = Looks::default();
        let begin = DateTime::<Utc>::UNIX_EPOCH;
        let at = |ms| begin + TimeDelta::milliseconds(ms);
        let turns = (0..100).filter(|n| looks.turn(at(n * 10)).is_some());
        assert_eq!(turns.count(), 4);
        assert!(looks.turn(at(-60_000)).is_some(), "the clock was set back");
    }
}
