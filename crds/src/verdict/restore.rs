//! How a Restore is.

use chrono::{DateTime, Utc};

use super::facts::said;
use super::{FIRST_SIGHT, Reason, State, Verdict};
use crate::restore::{RestorePhase, RestoreStatus};
use crate::time::{from_k8s, plus_seconds};

/// How a Restore is that was created at `created`.
pub fn of_restore(status: &RestoreStatus, created: DateTime<Utc>, now: DateTime<Utc>) -> Verdict {
    let at = status
        .completion_time
        .as_ref()
        .or(status.start_time.as_ref())
        .map(from_k8s);
    let why = match (status.reason.as_str(), status.message.as_str()) {
        ("", "") => String::new(),
        (reason, message) => said(reason, message),
    };
    let verdict = |state, reason| Verdict {
        state,
        reason,
        cause: status.reason.clone(),
        why: why.clone(),
        since: at,
        run: status.job.clone(),
        ..Verdict::default()
    };
    match status.phase {
        None => {
            let late = plus_seconds(created, FIRST_SIGHT) < now;
            let state = if late {
                State::Critical
            } else {
                State::Unknown
            };
            Verdict {
                why: "no operator has seen it".to_owned(),
                since: Some(created),
                ..verdict(state, Reason::Unseen)
            }
        }
        // What waits has said why.
        Some(RestorePhase::Pending) => verdict(State::Warning, Reason::Pending),
        Some(RestorePhase::Running | RestorePhase::Succeeded) => verdict(State::Good, Reason::Ok),
        Some(RestorePhase::Failed) if status.job.is_none() => {
            verdict(State::Critical, Reason::Refused)
        }
        Some(RestorePhase::Failed) => verdict(State::Critical, Reason::Failed),
    }
}
