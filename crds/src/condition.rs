//! Condition types and reasons, positive polarity, and the one way to set a condition.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::time::to_k8s;

/// The spec is valid and this operator acts on the object.
pub const ACCEPTED: &str = "Accepted";
/// A next slot exists and will be started.
pub const SCHEDULED: &str = "Scheduled";
/// The newest finished run was good.
pub const LAST_RUN_SUCCEEDED: &str = "LastRunSucceeded";
/// The newest verification passed.
pub const VERIFIED: &str = "Verified";
/// A Restore has loaded its dump.
pub const RESTORED: &str = "Restored";
/// Every event since the newest backup is stored, up to the last pull of binary logs. There only where these are stored.
pub const BINLOGS_COMPLETE: &str = "BinlogsComplete";
/// Summary, read by kstatus: accepted, and no failure stands.
pub const READY: &str = "Ready";
/// No other installation of the operator watches the object. There only while it is False.
pub const EXCLUSIVE: &str = "Exclusive";
/// Every reference of a gobackup.io Backup was found.
pub const REFERENCES_RESOLVED: &str = "ReferencesResolved";
/// The newest run or probe reached the database or storage.
pub const REACHABLE: &str = "Reachable";

/// Stable, machine-read reasons.
pub mod reason {
    /// The spec passed every check.
    pub const VALID: &str = "Valid";
    /// A field of the spec is wrong; the message names path and remedy.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The schedule does not parse (CronJob rule 31).
    pub const INVALID_SCHEDULE: &str = "InvalidSchedule";
    /// The time zone is unknown (CronJob rule 16).
    pub const UNKNOWN_TIME_ZONE: &str = "UnknownTimeZone";
    /// The schedule parses but no instant ever matches (CronJob rule 14).
    pub const NEVER_FIRES: &str = "NeverFires";
    /// The stored object does not fit its type.
    pub const UNREADABLE: &str = "Unreadable";
    /// Another controller acts on the object's Jobs.
    pub const FOREIGN_CONTROLLER: &str = "ForeignController";
    /// A policy of the operator forbids the pod.
    pub const POLICY_DENIED: &str = "PolicyDenied";
    /// Nothing is in the way.
    pub const AS_SCHEDULED: &str = "AsScheduled";
    /// No good run came of a slot in the time it may take.
    pub const OVERDUE: &str = "Overdue";
    /// A slot came due and no operator started it.
    pub const SLOT_NOT_STARTED: &str = "SlotNotStarted";
    /// Events may be missing between a backup and now.
    pub const BINLOGS_INCOMPLETE: &str = "BinlogsIncomplete";
    /// Something that a run needs is not there.
    pub const REFERENCE_MISSING: &str = "ReferenceMissing";
    /// Somebody asked for the end of a run. Like the next, it does not count as a failure.
    pub const CANCELLED: &str = "Cancelled";
    /// A newer slot took a run's place under `concurrencyPolicy: Replace`.
    pub const REPLACED: &str = "Replaced";
    /// The object is suspended.
    pub const SUSPENDED: &str = "Suspended";
    /// A next slot is set.
    pub const NEXT_SLOT: &str = "NextSlotSet";
    /// Nothing ran yet.
    pub const NO_RUN_YET: &str = "NoRunYet";
    /// The newest run succeeded.
    pub const SUCCEEDED: &str = "Succeeded";
    /// The newest run failed.
    pub const FAILED: &str = "Failed";
    /// The newest verification failed, or nothing was compared.
    pub const VERIFICATION_FAILED: &str = "VerificationFailed";
    /// An active run has no running container, and somebody said why.
    pub const RUN_PENDING: &str = "RunPending";
    /// Good by exit status alone: the image wrote no report.
    pub const EXIT_STATUS_ONLY: &str = "ExitStatusOnly";
    /// Creating a Job failed.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// A Job that is not the object's has the name of the one to be made.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// A slot came sooner after the one before than runs are started.
    pub const LEAST_INTERVAL: &str = "LeastInterval";
    /// The object's owner skips slots by annotation.
    pub const SKIPPED_BY_USER: &str = "SkippedByUser";
    /// The books are ahead of the clock: nothing is started until it has caught up.
    pub const ACCOUNTED_AHEAD: &str = "AccountedAhead";
}

/// Sets a condition in `conditions`. `lastTransitionTime` moves only when the status changes
/// (a condition that rewrites itself would cause the next reconcile).
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: bool,
    reason: &str,
    message: impl Into<String>,
    generation: Option<i64>,
    now: DateTime<Utc>,
) {
    set_status(
        conditions,
        type_,
        if status { "True" } else { "False" },
        reason,
        message,
        generation,
        now,
    );
}

/// As [`set`], with `Unknown` possible.
pub fn set_status(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    generation: Option<i64>,
    now: DateTime<Utc>,
) {
    let mut fresh = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        observed_generation: generation,
        last_transition_time: to_k8s(now),
    };
    match conditions.iter_mut().find(|c| c.type_ == type_) {
        Some(old) => {
            if old.status == fresh.status {
                fresh.last_transition_time = old.last_transition_time.clone();
            }
            *old = fresh;
        }
        None => conditions.push(fresh),
    }
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse_rfc3339;

    #[test]
    fn transition_time_moves_with_the_status_alone() {
        let (t1, t2) = (
            parse_rfc3339("2025-01-01T00:00:00Z").unwrap(),
            parse_rfc3339("2025-01-02T00:00:00Z").unwrap(),
        );
        let mut all = vec![];
        set(&mut all, READY, true, "A", "", Some(1), t1);
        set(&mut all, READY, true, "B", "x", Some(2), t2);
        assert_eq!(all[0].last_transition_time, to_k8s(t1));
        assert_eq!(
            (all[0].reason.as_str(), all[0].observed_generation),
            ("B", Some(2))
        );
        set(&mut all, READY, false, "C", "", Some(2), t2);
        assert_eq!(all[0].last_transition_time, to_k8s(t2));
        assert_eq!(all.len(), 1);
    }
}
