//! A spec as the engine reads it. PURE.

use crds::MysqlBackupSpec;
use crds::mysql_backup::{NotificationEvent, VerifyMode};
use crds::validate::{self, Problem};

use crate::engine::Settings;

/// Kept good Jobs where the spec is silent, as the CRD's default.
const KEEP_GOOD: i32 = 3;
/// Kept failed Jobs where the spec is silent, as the CRD's default.
const KEEP_FAILED: i32 = 1;
/// Seconds to a running container where the spec is silent.
pub(super) const STARTUP: i64 = 600;

/// The engine's part of a spec.
pub(super) fn settings(spec: &MysqlBackupSpec, runner_image: &str) -> Settings {
    Settings {
        schedule: Some(spec.schedule.clone()),
        time_zone: spec.time_zone.clone(),
        dst_policy: spec.dst_policy.unwrap_or_default(),
        jitter_seconds: spec.jitter_seconds.unwrap_or(0),
        starting_deadline: spec.starting_deadline_seconds,
        concurrency: spec.concurrency_policy,
        suspend: spec.suspend.unwrap_or(false),
        keep_good: Some(spec.successful_jobs_history_limit.unwrap_or(KEEP_GOOD)),
        keep_failed: Some(spec.failed_jobs_history_limit.unwrap_or(KEEP_FAILED)),
        startup_deadline: spec.startup_deadline_seconds.unwrap_or(STARTUP),
        verify_every: spec
            .verify
            .as_ref()
            .filter(|v| v.mode == VerifyMode::Restore && is_own(spec, runner_image))
            .map(|v| v.every.unwrap_or(1).max(1)),
        own_image: is_own(spec, runner_image),
    }
}

/// True if the pod runs our runner: no image is named, or that very one.
pub(super) fn is_own(spec: &MysqlBackupSpec, runner_image: &str) -> bool {
    spec.image
        .as_deref()
        .is_none_or(|image| image == runner_image)
}

/// Every mistake that keeps the object from running.
pub(super) fn problems(spec: &MysqlBackupSpec) -> Vec<Problem> {
    let mut found = validate::mysql_backup(spec);
    found.extend(unserved(spec));
    found
}

/// Fields of the kind that this operator can't honour: said at once, never ignored.
fn unserved(spec: &MysqlBackupSpec) -> Vec<Problem> {
    let storage = spec
        .destination
        .as_ref()
        .and_then(|d| d.storage_ref.as_ref());
    let client = spec.source.as_ref().and_then(|s| s.client_image.as_ref());
    let unsent = |e: &&NotificationEvent| {
        matches!(e, NotificationEvent::Overdue | NotificationEvent::Missed)
    };
    let notice = spec.notifications.iter().flat_map(|n| &n.on).find(unsent);
    let rows = [
        (
            storage.is_some(),
            "spec.destination.storageRef",
            "names a gobackup.io Storage, which MysqlBackup runs can't write to; use volume or s3",
        ),
        (
            client.is_some(),
            "spec.source.clientImage",
            "runs use the client in the runner's image; remove it, or set spec.image to an image that holds backup-runner and your client",
        ),
        (
            notice.is_some(),
            "spec.notifications.on",
            "Overdue and Missed are not sent; alert on the metrics mysqlbackup_overdue and mysqlbackup_slots_total, and keep Success, Failure and Recovery here",
        ),
    ];
    let wrong = rows.into_iter().filter(|(wrong, ..)| *wrong);
    wrong
        .map(|(_, path, message)| Problem {
            path: path.into(),
            message: message.into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn fields_that_are_not_served_are_named_with_a_remedy() {
        let rows = [
            (
                r#"{"schedule":"@daily","destination":{"storageRef":{"name":"s"}}}"#,
                "spec.destination.storageRef",
            ),
            (
                r#"{"schedule":"@daily","source":{"clientImage":"x"}}"#,
                "spec.source.clientImage",
            ),
            (
                r#"{"schedule":"@daily","notifications":[{"type":"Slack","urlSecretKeyRef":{"name":"a","key":"b"},"on":["Failure","Overdue"]}]}"#,
                "spec.notifications.on",
            ),
        ];
        for (spec, path) in rows {
            let found = problems(&serde_json::from_str(spec).unwrap());
            let paths: Vec<&str> = found.iter().map(|p| p.path.as_str()).collect();
            assert_eq!(paths, [path]);
        }
        let served = r#"{"schedule":"@daily","verify":{"mode":"Restore"}}"#;
        assert_eq!(problems(&serde_json::from_str(served).unwrap()), vec![]);
    }
}
