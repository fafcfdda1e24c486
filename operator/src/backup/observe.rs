//! A Backup as the engine reads it. PURE.

use std::collections::BTreeMap;

use crds::backup::BackupBody;
use crds::bounds;
use crds::gobackup::fields::merge;
use crds::labels;
use crds::parts::{ConcurrencyPolicy, VerifyMode};
use crds::schedule::Schedule;
use crds::validate::{self, Problem};
use serde_json::{Value, json};

use crate::engine::{Settings, Wanted};
use crate::job::{STARTUP, has_bot};

/// Kept Jobs where the object is silent, as the original's controller did.
const KEEP_GOOD: i64 = 3;
/// As [`KEEP_GOOD`], failed.
const KEEP_FAILED: i64 = 1;

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Backup: without a schedule it runs once.
    Backup,
    /// CronBackup: it has a schedule.
    CronBackup,
}

/// The engine's part of a body, and its mistakes.
pub(crate) fn settings(
    which: Which,
    body: &BackupBody,
    annotations: &BTreeMap<String, String>,
) -> (Settings, Vec<Problem>) {
    let merged = merge(body);
    let cron = merged.cron();
    let (path, schedule) = &merged.schedule;
    let mut problems = vec![];
    let mut problem = |path: String, message: String| problems.push(Problem { path, message });
    if let Some(text) = &cron {
        if let Err(e) = Schedule::parse(text, schedule.time_zone.as_deref()) {
            let path = if e.is_time_zone() {
                "spec.timeZone"
            } else {
                "spec.schedule"
            };
            problem(path.to_owned(), e.to_string());
        }
    } else if which == Which::CronBackup {
        problem(
            "spec.schedule".to_owned(),
            "is not set, and a CronBackup needs it; set schedule.cron, or use the kind Backup to run once".to_owned(),
        );
    }
    for (field, value) in [
        (
            "startingDeadlineSeconds",
            schedule.starting_deadline_seconds,
        ),
        (
            "successfulJobsHistoryLimit",
            schedule.successful_jobs_history_limit,
        ),
        ("failedJobsHistoryLimit", schedule.failed_jobs_history_limit),
        ("jitterSeconds", schedule.jitter_seconds),
    ] {
        if let Some(value) = value.filter(|v| *v < 0) {
            problem(
                format!("{path}.{field}"),
                format!("must be 0 or more, is {value}"),
            );
        }
    }
    let job = body.spec.as_ref().and_then(|s| s.job.as_ref());
    let verify = job.and_then(|j| j.verify.as_ref());
    problems.extend(
        verify
            .iter()
            .flat_map(|v| validate::verify("spec.job.verify", v, validate::Replays::Never)),
    );
    let notifications = body.spec.as_ref().map(|s| s.notifications.clone());
    let notifications = notifications.unwrap_or_default();
    problems.extend(validate::notifications(&notifications));
    let limit = |value: Option<i64>, default: i64| bounds::kept_jobs(value.unwrap_or(default));
    let suspended = annotations
        .get(labels::SUSPENDED)
        .is_some_and(|v| v == "true");
    let settings = Settings {
        schedule: cron,
        time_zone: schedule.time_zone.clone(),
        dst_policy: schedule.dst_policy.unwrap_or_default(),
        jitter_seconds: bounds::jitter_seconds(schedule.jitter_seconds.unwrap_or(0)),
        starting_deadline: schedule
            .starting_deadline_seconds
            .filter(|s| *s >= 0)
            .map(bounds::seconds),
        concurrency: schedule
            .concurrency_policy
            .unwrap_or(ConcurrencyPolicy::Forbid),
        suspend: suspended || schedule.suspend.unwrap_or(false),
        keep_good: Some(limit(schedule.successful_jobs_history_limit, KEEP_GOOD)),
        keep_failed: Some(limit(schedule.failed_jobs_history_limit, KEEP_FAILED)),
        startup_deadline: bounds::startup_seconds(
            job.and_then(|j| j.startup_deadline_seconds)
                .unwrap_or(STARTUP),
        ),
        verify_every: verify
            .filter(|v| v.mode == VerifyMode::Restore)
            .map(|v| v.every.unwrap_or(1).max(1)),
        verify_by_replay: false,
        binlog_interval: None,
        binlogs_stay: false,
        notices: Wanted::of(&notifications, job.is_some_and(|j| has_bot(&j.env))),
        own_image: true,
    };
    (settings, problems)
}

/// The JSON patch that ends the suspension, wherever it stands.
pub(super) fn resume(spec: &Value) -> Vec<Value> {
    let field = "/schedule/suspend";
    for place in [
        "/spec",
        "",
        "/model",
        "/spec/backupModelRef",
        "/backupModelRef",
        "/model/backupModelRef",
    ] {
        let path = format!("{place}{field}");
        if spec.pointer(&path) == Some(&Value::Bool(true)) {
            return vec![
                json!({"op": "test", "path": path, "value": true}),
                json!({"op": "replace", "path": path, "value": false}),
            ];
        }
    }
    let annotation = labels::SUSPENDED.replace('~', "~0").replace('/', "~1");
    let path = format!("/metadata/annotations/{annotation}");
    vec![
        json!({"op": "test", "path": path, "value": "true"}),
        json!({"op": "remove", "path": path}),
    ]
}
