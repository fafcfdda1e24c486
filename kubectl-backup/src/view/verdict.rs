//! The verdict on an object, asked for and put into words. The rule is in [`crds::verdict`].

use chrono::{DateTime, Duration, Utc};
use crds::labels::SKIP_SLOTS_UNTIL;
use crds::time::parse_rfc3339;
use crds::verdict::{Facts, Reason, State, Subject, Timing, Verdict, judge};
use serde_json::Value;

use super::duration::{age, human};
use crate::cluster::Object;
use crate::text::sanitise;

/// How an object is. `max_age` takes the place of what its schedule allows; `missing` is what a run
/// needs and is not there, as far as it was looked for.
pub(crate) fn of(
    object: &Object,
    max_age: Option<Duration>,
    missing: &[String],
    now: DateTime<Utc>,
) -> Verdict {
    let status = object.status();
    let facts = Facts::of(&Subject {
        status: &status,
        created: object.created().unwrap_or(now),
        suspended: object.suspended(),
        skip_until: object.annotation(SKIP_SLOTS_UNTIL).and_then(parse_rfc3339),
        timing: timing(object.spec()),
        missing,
    });
    judge(&facts, object.schedule().ok().as_ref(), max_age, now)
}

/// The times of a spec, of any kind.
fn timing(spec: &Value) -> Timing {
    let field = |name: &str| {
        let places = [spec, &spec["schedule"], &spec["job"]];
        places.into_iter().find_map(|place| place[name].as_i64())
    };
    let usual = Timing::default();
    Timing {
        jitter: crds::bounds::jitter_seconds(field("jitterSeconds").unwrap_or(usual.jitter)),
        starting_deadline: field("startingDeadlineSeconds").map(crds::bounds::seconds),
        startup_deadline: crds::bounds::startup_seconds(
            field("startupDeadlineSeconds").unwrap_or(usual.startup_deadline),
        ),
    }
}

/// The verdict in one line, with ages.
pub(crate) fn words(verdict: &Verdict, now: DateTime<Utc>) -> String {
    let mut parts = found(verdict);
    if verdict.suspended {
        parts.push(match verdict.suspended_since {
            Some(at) => format!("suspended for {}", age(at, now)),
            None => "suspended".to_owned(),
        });
    }
    parts.join("; ")
}

/// What was found, beside a suspension.
pub(crate) fn found(verdict: &Verdict) -> Vec<String> {
    let mut parts = vec![];
    let by_age = matches!(verdict.reason, Reason::Ok | Reason::Stale | Reason::Overdue);
    if let Some(seconds) = verdict.age.filter(|_| by_age) {
        parts.push(format!("newest good run {} ago", human(seconds)));
    }
    if !verdict.why.is_empty() {
        parts.push(sanitise(&verdict.why));
    }
    parts
}

/// The mark before a line, and a blank; nothing where nobody can know yet.
pub(crate) fn mark(state: State, ascii: bool) -> &'static str {
    match (state, ascii) {
        (State::Good, false) => "✔ ",
        (State::Warning, false) => "⚠ ",
        (State::Critical, false) => "✖ ",
        (State::Good, true) => "OK ",
        (State::Warning, true) => "WARNING ",
        (State::Critical, true) => "FAILED ",
        (State::Unknown, _) => "",
    }
}

/// What one word says of an object: what keeps it from running comes first.
pub(crate) fn word(about: Reason, cause: &str, suspended: bool) -> &'static str {
    use crds::condition::reason;
    match about {
        Reason::Refused => match cause {
            reason::FOREIGN_CONTROLLER | reason::POLICY_DENIED => "Blocked",
            _ => "Invalid",
        },
        Reason::Held if cause == reason::NEVER_FIRES => "Invalid",
        _ if suspended => "Suspended",
        Reason::Unseen => "Pending",
        Reason::Overdue | Reason::Never | Reason::Stale => "Overdue",
        _ => "Active",
    }
}
