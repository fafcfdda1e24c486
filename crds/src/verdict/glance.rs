//! The verdict on an object of which a list shows a few cells: that of the operator, which condition
//! Ready bears, and what the operator can't say itself, that it does not act.

use chrono::{DateTime, Utc};

use super::due::{not_started, spread};
use super::{FIRST_SIGHT, Reason, State};
use crate::condition::reason;
use crate::schedule::Schedule;
use crate::time::plus_seconds;

/// What a list shows of an object.
#[derive(Clone, Copy, Debug)]
pub struct Glance<'a> {
    /// Reason of condition Ready; empty if there is none.
    pub ready: &'a str,
    /// When the object was created.
    pub created: DateTime<Utc>,
    /// The next slot.
    pub next: Option<DateTime<Utc>>,
    /// Its schedule.
    pub schedule: Option<&'a Schedule>,
    /// Spread of starts, in seconds.
    pub jitter: i64,
}

/// State and reason of an object in a list.
pub fn glance(glance: &Glance<'_>, now: DateTime<Utc>) -> (State, Reason) {
    let ready = of_ready(glance.ready);
    if ready == Reason::Refused {
        return (State::Critical, ready);
    }
    if ready == Reason::Unseen {
        let late = plus_seconds(glance.created, FIRST_SIGHT) < now;
        let state = if late {
            State::Critical
        } else {
            State::Unknown
        };
        return (state, ready);
    }
    if let Some(slot) = glance.next {
        let next = glance
            .schedule
            .and_then(|s| s.next_after(slot, glance.created));
        let interval = next.map_or(i64::MAX, |next| (next - slot).num_seconds());
        let spread = spread(glance.jitter, None, interval);
        if let Some(state) = not_started(slot, spread, interval, now) {
            return (state, Reason::Overdue);
        }
    }
    let state = match ready {
        Reason::Ok | Reason::Suspended => State::Good,
        Reason::Pending => State::Warning,
        _ => State::Critical,
    };
    (state, ready)
}

/// What a reason of condition Ready is about. What is none of the operator's own is a run's.
fn of_ready(text: &str) -> Reason {
    match text {
        "" => Reason::Unseen,
        reason::AS_SCHEDULED => Reason::Ok,
        reason::SUSPENDED => Reason::Suspended,
        reason::INVALID_SPEC
        | reason::INVALID_SCHEDULE
        | reason::UNKNOWN_TIME_ZONE
        | reason::UNREADABLE
        | reason::FOREIGN_CONTROLLER
        | reason::POLICY_DENIED => Reason::Refused,
        reason::NEVER_FIRES
        | reason::ACCOUNTED_AHEAD
        | reason::NAME_TAKEN
        | reason::FAILED_CREATE
        | reason::SKIPPED_BY_USER => Reason::Held,
        reason::REFERENCE_MISSING => Reason::Missing,
        reason::VERIFICATION_FAILED => Reason::Unverified,
        reason::RUN_PENDING => Reason::Pending,
        reason::OVERDUE => Reason::Overdue,
        _ => Reason::Failed,
    }
}
