//! How an object, a run, a Restore is: good or not, why, since when, and what to do next.
//!
//! This is the only rule. `list`, `describe`, `health`, `doctor`, `top`, the overview, condition Ready,
//! metrics and notices read it, so that all of them say the same. PURE: `now` is a parameter.

mod advice;
mod due;
mod facts;
mod glance;
mod restore;
mod run;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};

use crate::bounds::LONG_SECONDS;
use crate::condition::reason;
use crate::schedule::Schedule;
use crate::time::{plus_seconds, rfc3339};

pub use due::interval;
pub use facts::{Facts, Subject, Timing, duration, good_runs};
pub use glance::{Glance, glance};
pub use restore::of_restore;
pub use run::of_run;

/// Seconds that an operator may take to see a new object or Restore, or a new leader to go on.
pub const FIRST_SIGHT: i64 = 60;

/// How bad it is. The order is that of the worst of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing is wrong.
    #[default]
    Good,
    /// Nobody can know yet.
    Unknown,
    /// Worth a look.
    Warning,
    /// No backup that can be relied on is being made, or the newest is none.
    Critical,
}

impl State {
    /// As monitoring systems name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "OK",
            Self::Unknown => "UNKNOWN",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }

    /// As monitoring systems number it.
    pub fn number(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

/// What a verdict is about, in the order in which it is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The object is not accepted, or the Restore refused.
    Refused,
    /// No operator has seen it.
    Unseen,
    /// A slot was not started, or nothing good came of it or of a later one in the time it may take.
    Overdue,
    /// Slots will not be started.
    Held,
    /// Something that a run needs is not there.
    Missing,
    /// The newest run failed.
    Failed,
    /// The newest verification did not pass.
    Unverified,
    /// Nothing good was ever stored, and it should have been.
    Never,
    /// The newest good run is older than the asker allows.
    Stale,
    /// Events may be missing since the newest backup: binary logs were not pulled, or have a gap.
    Incomplete,
    /// Something keeps a run from starting.
    Pending,
    /// No slot is started because somebody wants it so, and nothing worse is known.
    Suspended,
    /// Nothing is wrong.
    #[default]
    Ok,
}

impl Reason {
    /// Every one.
    pub const ALL: [Self; 13] = [
        Self::Refused,
        Self::Unseen,
        Self::Overdue,
        Self::Held,
        Self::Missing,
        Self::Failed,
        Self::Unverified,
        Self::Never,
        Self::Stale,
        Self::Incomplete,
        Self::Pending,
        Self::Suspended,
        Self::Ok,
    ];

    /// As it is shown, and as a label of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unseen => "unseen",
            Self::Overdue => "overdue",
            Self::Held => "held",
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::Never => "never",
            Self::Stale => "stale",
            Self::Incomplete => "incomplete",
            Self::Pending => "pending",
            Self::Suspended => "suspended",
            Self::Ok => "ok",
        }
    }
}

/// The verdict on an object, a run or a Restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How bad it is.
    pub state: State,
    /// What it is about.
    pub reason: Reason,
    /// The reason behind it, CamelCase, as condition Ready bears it: AccessDenied, Overdue and others.
    pub cause: String,
    /// In words, without ages, so that it can stand in a condition. Empty if there is nothing to say.
    pub why: String,
    /// Since when it is so, where that is known.
    pub since: Option<DateTime<Utc>>,
    /// The run it is about.
    pub run: Option<String>,
    /// No slot is started, whatever else is wrong.
    pub suspended: bool,
    /// When the suspension began.
    pub suspended_since: Option<DateTime<Utc>>,
    /// How bad it is that a good run is missed, whatever else is worse.
    pub late: State,
    /// Seconds since the newest good run.
    pub age: Option<i64>,
    /// Values of `age` from which it is a warning, and critical.
    pub limits: Option<(i64, i64)>,
    /// When time alone makes it critical, if nothing good comes before.
    pub critical_at: Option<DateTime<Utc>>,
}

/// What stands in status as a reason of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cause {
    cause: String,
    why: String,
    since: Option<DateTime<Utc>>,
    run: Option<String>,
}

/// How an object is. `max_age` takes the place of what its schedule allows.
pub fn judge(
    facts: &Facts,
    schedule: Option<&Schedule>,
    max_age: Option<TimeDelta>,
    now: DateTime<Utc>,
) -> Verdict {
    let found = unsuspended(facts, schedule, max_age, now);
    if !facts.suspended || matches!(found.reason, Reason::Refused | Reason::Unseen) {
        return found;
    }
    // A suspension hides nothing: what is worse than it is said, and the suspension with it.
    let since = facts.suspended_since;
    let forgotten = since.is_some_and(|at| plus_seconds(at, LONG_SECONDS) < now);
    let state = if forgotten {
        State::Warning
    } else {
        State::Good
    };
    let found = Verdict {
        suspended: true,
        suspended_since: since,
        ..found
    };
    if found.state > state {
        return found;
    }
    Verdict {
        state,
        reason: Reason::Suspended,
        cause: reason::SUSPENDED.to_owned(),
        why: String::new(),
        since,
        run: None,
        ..found
    }
}

fn unsuspended(
    facts: &Facts,
    schedule: Option<&Schedule>,
    max_age: Option<TimeDelta>,
    now: DateTime<Utc>,
) -> Verdict {
    let lateness = lateness(facts, schedule, max_age, now);
    let not_started = facts.not_started(schedule, now);
    let late = not_started.map_or(State::Good, |(state, _)| state);
    let late = late.max(lateness.state(now).unwrap_or_default());
    let age = facts.success.map(|at| (now - at).num_seconds());
    let verdict = |state, reason, cause: Cause| Verdict {
        state,
        reason,
        cause: cause.cause,
        why: cause.why,
        since: cause.since,
        run: cause.run,
        late,
        age,
        limits: lateness.limits(facts),
        critical_at: lateness.critical,
        ..Verdict::default()
    };
    let stands = |wanted: Reason| {
        let found = facts.stands.as_deref().filter(|(r, _)| *r == wanted);
        found.map(|(_, cause)| cause.clone())
    };
    if let Some(refused) = stands(Reason::Refused) {
        return verdict(State::Critical, Reason::Refused, refused);
    }
    if !facts.seen {
        let late = plus_seconds(facts.created, FIRST_SIGHT) < now;
        let state = if late {
            State::Critical
        } else {
            State::Unknown
        };
        let cause = Cause {
            cause: String::new(),
            why: "no operator has seen it".to_owned(),
            since: Some(facts.created),
            run: None,
        };
        return verdict(state, Reason::Unseen, cause);
    }
    if let Some((state, slot)) = not_started {
        let never = match facts.starting_deadline {
            Some(deadline) if plus_seconds(slot, deadline) < now => {
                ", and will not be: startingDeadlineSeconds has passed"
            }
            _ => "",
        };
        let why = format!("the slot {} was not started{never}", rfc3339(slot));
        let cause = Cause {
            cause: reason::SLOT_NOT_STARTED.to_owned(),
            ..late_cause(why, slot)
        };
        return verdict(state, Reason::Overdue, cause);
    }
    if let Some(held) = facts.held(now) {
        return verdict(State::Critical, Reason::Held, held.clone());
    }
    for worse in [Reason::Missing, Reason::Failed, Reason::Unverified] {
        if let Some(cause) = stands(worse) {
            return verdict(State::Critical, worse, cause);
        }
    }
    if let Some(state) = lateness.state(now) {
        let why = match (lateness.slot, facts.success) {
            (None, Some(_)) => String::new(),
            (None, None) => "no good run yet".to_owned(),
            (Some(slot), Some(_)) => format!("nothing good came of the slot {}", rfc3339(slot)),
            (Some(slot), None) => {
                format!("no good run yet; the first slot was {}", rfc3339(slot))
            }
        };
        let reason = match (facts.success, lateness.slot) {
            (None, _) => Reason::Never,
            (_, None) => Reason::Stale,
            _ => Reason::Overdue,
        };
        let since = lateness.warning.unwrap_or(now);
        return verdict(state, reason, late_cause(why, since));
    }
    for less in [Reason::Incomplete, Reason::Pending] {
        if let Some(cause) = stands(less) {
            return verdict(State::Warning, less, cause);
        }
    }
    let why = match facts.success {
        None => "no good run yet".to_owned(),
        Some(_) => String::new(),
    };
    let cause = Cause {
        why,
        since: facts.success,
        ..Cause::default()
    };
    verdict(State::Good, Reason::Ok, cause)
}

fn late_cause(why: String, since: DateTime<Utc>) -> Cause {
    Cause {
        cause: reason::OVERDUE.to_owned(),
        why,
        since: Some(since),
        run: None,
    }
}

/// From when on a good run is missed.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    /// The slot that waits for a good run; none where the asker gave an age.
    slot: Option<DateTime<Utc>>,
    warning: Option<DateTime<Utc>>,
    critical: Option<DateTime<Utc>>,
}

impl Lateness {
    fn state(&self, now: DateTime<Utc>) -> Option<State> {
        let passed = |at: Option<DateTime<Utc>>| at.is_some_and(|at| now > at);
        match (passed(self.warning), passed(self.critical)) {
            (_, true) => Some(State::Critical),
            (true, false) => Some(State::Warning),
            (false, false) => None,
        }
    }

    /// The same as ages of the newest good run.
    fn limits(&self, facts: &Facts) -> Option<(i64, i64)> {
        let good = facts.success?;
        let age = |at: DateTime<Utc>| (at - good).num_seconds().max(0);
        Some((age(self.warning?), age(self.critical?)))
    }
}

fn lateness(
    facts: &Facts,
    schedule: Option<&Schedule>,
    max_age: Option<TimeDelta>,
    now: DateTime<Utc>,
) -> Lateness {
    if let Some(max_age) = max_age {
        let from = facts.success.unwrap_or(facts.created);
        let at = plus_seconds(from, max_age.num_seconds());
        return Lateness {
            slot: None,
            warning: Some(at),
            critical: Some(at),
        };
    }
    let Some(schedule) = schedule else {
        return Lateness::default();
    };
    let Some((slot, ends)) = facts.due(schedule, now) else {
        return Lateness::default();
    };
    // Whoever suspends lets slots pass on purpose: one is worth a look, two are a backup that is missed.
    let critical = if facts.suspended {
        schedule
            .next_after(slot, facts.anchor)
            .map(|next| plus_seconds(ends, (next - slot).num_seconds()))
    } else {
        Some(ends)
    };
    Lateness {
        slot: Some(slot),
        warning: Some(ends),
        critical,
    }
}
