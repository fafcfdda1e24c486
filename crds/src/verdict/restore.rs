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
    let words = !(status.reason.is_empty() && status.message.is_empty());
    let verdict = |state, reason| Verdict {
        state,
        reason,
        cause: status.reason.clone(),
        why: words
            .then(|| said(&status.reason, &status.message))
            .unwrap_or_default(),
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
