//! A spec as the engine reads it. PURE.

use crds::MysqlBackupSpec;
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
    let destination = spec.destination.as_ref();
    if destination.is_some_and(|d| d.storage_ref.is_some()) {
        found.push(Problem {
            path: "spec.destination.storageRef".into(),
            message: "names a gobackup.io Storage, which MysqlBackup runs can't write to; use volume or s3".into(),
        });
    }
    found
}
