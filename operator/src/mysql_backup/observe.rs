//! A spec as the engine reads it. PURE.

use crds::MysqlBackupSpec;
use crds::bounds;
use crds::parts::VerifyMode;
use crds::validate::{self, Problem};

use crate::engine::{Settings, Wanted};
use crate::job::{STARTUP, has_bot};

/// Kept good Jobs where the spec is silent, as the CRD's default.
const KEEP_GOOD: i32 = 3;
/// Kept failed Jobs where the spec is silent, as the CRD's default.
const KEEP_FAILED: i32 = 1;

/// The engine's part of a spec.
pub(super) fn settings(spec: &MysqlBackupSpec, runner_image: &str) -> Settings {
    Settings {
        schedule: Some(spec.schedule.clone()),
        time_zone: spec.time_zone.clone(),
        dst_policy: spec.dst_policy.unwrap_or_default(),
        jitter_seconds: bounds::jitter_seconds(spec.jitter_seconds.unwrap_or(0)),
        starting_deadline: spec.starting_deadline_seconds.map(bounds::seconds),
        concurrency: spec.concurrency_policy,
        suspend: spec.suspend.unwrap_or(false),
        keep_good: Some(bounds::kept_jobs(
            spec.successful_jobs_history_limit
                .unwrap_or(KEEP_GOOD)
                .into(),
        )),
        keep_failed: Some(bounds::kept_jobs(
            spec.failed_jobs_history_limit.unwrap_or(KEEP_FAILED).into(),
        )),
        startup_deadline: bounds::startup_seconds(spec.startup_deadline_seconds.unwrap_or(STARTUP)),
        verify_every: spec
            .verify
            .as_ref()
            .filter(|v| v.mode.restores() && is_own(spec, runner_image))
            .map(|v| v.every.unwrap_or(1).max(1)),
        verify_by_replay: spec
            .verify
            .as_ref()
            .is_some_and(|v| v.mode == VerifyMode::Replay),
        binlog_interval: spec
            .binlogs
            .as_ref()
            .filter(|_| is_own(spec, runner_image))
            .and_then(|b| b.seconds().ok()),
        binlogs_stay: spec.binlogs.as_ref().is_some_and(|b| b.continuous),
        notices: Wanted::of(&spec.notifications, bot(spec, runner_image)),
        own_image: is_own(spec, runner_image),
    }
}

/// True if APIURL names a bot that the runner tells. An image of the user's tells it itself.
fn bot(spec: &MysqlBackupSpec, runner_image: &str) -> bool {
    is_own(spec, runner_image) && has_bot(&spec.backup_envs)
}

/// True if the pod runs our runner: no image is named, or that very one.
pub(super) fn is_own(spec: &MysqlBackupSpec, runner_image: &str) -> bool {
    spec.image
        .as_deref()
        .is_none_or(|image| image == runner_image)
}

/// Every mistake of the spec that keeps the object from running.
pub(super) fn problems(spec: &MysqlBackupSpec, runner_image: &str) -> Vec<Problem> {
    let mut found = validate::mysql_backup(spec);
    // Without an image they were looked at already.
    let named = spec.image.is_some() && is_own(spec, runner_image);
    found.extend(validate::arguments(spec).filter(|_| named));
    let client = spec.source.as_ref().and_then(|s| s.client_image.as_ref());
    if client.is_some() && !is_own(spec, runner_image) {
        found.push(Problem {
            path: "spec.source.clientImage".into(),
            message: "is where the operator's own runner is copied to, but spec.image names another program; keep one of them".into(),
        });
    }
    if spec.binlogs.is_some() && !is_own(spec, runner_image) {
        found.push(Problem {
            path: "spec.binlogs".into(),
            message: "are pulled by the operator's own runner, but spec.image names another program; remove one of them".into(),
        });
    }
    // Who names the operator's own image is held to what holds without.
    if named {
        found.extend(validate::needs(spec));
        found.extend(validate::sqlpath(spec).filter(|_| spec.destination.is_none()));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_client_image_goes_with_the_operators_own_runner() {
        let paths = |spec: &str| -> Vec<String> {
            let found = problems(&serde_json::from_str(spec).unwrap(), "runner");
            let paths = found.into_iter().map(|p| p.path);
            paths
                .filter(|path| path == "spec.source.clientImage")
                .collect()
        };
        let with = |image: &str| {
            format!(r#"{{"schedule":"@daily",{image}"source":{{"clientImage":"x"}}}}"#)
        };
        assert_eq!(paths(&with("")), [""; 0]);
        assert_eq!(paths(&with(r#""image":"runner","#)), [""; 0]);
        assert_eq!(
            paths(&with(r#""image":"mine","#)),
            ["spec.source.clientImage"]
        );
    }

    /// The operator's own image by its name is no image of the user's.
    #[test]
    fn o9_arguments_beside_the_runners_image_are_refused_once() {
        let paths = |image: &str| -> Vec<String> {
            let spec = format!(r#"{{"schedule":"@daily",{image}"args":["copy","/x"]}}"#);
            let found = problems(&serde_json::from_str(&spec).unwrap(), "runner");
            let paths = found.into_iter().map(|p| p.path);
            paths.filter(|path| path == "spec.args").collect()
        };
        assert_eq!(paths(""), ["spec.args"]);
        assert_eq!(paths(r#""image":"runner","#), ["spec.args"]);
        assert_eq!(paths(r#""image":"mine","#), [""; 0]);
    }

    #[test]
    fn what_verifies_by_a_server_is_counted_and_a_replay_is_told_apart() {
        let read = |fields: &str| {
            let spec = format!(r#"{{"schedule":"@daily"{fields}}}"#);
            let found = settings(&serde_json::from_str(&spec).unwrap(), "runner");
            (found.verify_every, found.verify_by_replay)
        };
        for (fields, wanted) in [
            ("", (None, false)),
            (r#","verify":{}"#, (None, false)),
            (
                r#","verify":{"mode":"Restore","every":3}"#,
                (Some(3), false),
            ),
            (r#","verify":{"mode":"Replay"}"#, (Some(1), true)),
            (r#","verify":{"mode":"Replay","every":7}"#, (Some(7), true)),
            (
                r#","verify":{"mode":"Replay"},"image":"mine""#,
                (None, true),
            ),
        ] {
            assert_eq!(read(fields), wanted, "{fields}");
        }
    }

    /// Nor does its name help it to a server and a store.
    #[test]
    fn u10_the_runner_by_its_name_needs_what_it_needs_without() {
        let count = |image: &str| {
            let spec = format!(r#"{{"schedule":"@daily",{image}"suspend":false}}"#);
            problems(&serde_json::from_str(&spec).unwrap(), "runner").len()
        };
        assert_eq!(count(""), 3);
        assert_eq!(count(r#""image":"runner","#), 3);
        assert_eq!(count(r#""image":"mine","#), 0);
    }

    #[test]
    fn receivers_are_what_the_spec_and_apiurl_say() {
        let secret = r#""urlSecretKeyRef":{"name":"a","key":"b"}"#;
        let typed = |on: &str| format!(r#""notifications":[{{"type":"Slack",{secret}{on}}}]"#);
        let bot = r#""backupEnvs":[{"name":"APIURL","value":"http://bot/x"}]"#;
        let rows = [
            (r#""suspend":false"#.to_owned(), [false; 4]),
            (typed(""), [true, true, false, false]),
            (typed(r#","on":["Success"]"#), [false, true, false, false]),
            (
                typed(r#","events":["Overdue"]"#),
                [false, false, false, true],
            ),
            (
                typed(r#","on":["Missed","Overdue"]"#),
                [false, false, true, true],
            ),
            (bot.to_owned(), [true, true, false, false]),
            (
                r#""backupEnvs":[{"name":"APIURL","value":""}]"#.to_owned(),
                [false; 4],
            ),
            (format!(r#"{bot},"image":"mine""#), [false; 4]),
        ];
        for (fields, [failure, recovery, missed, overdue]) in rows {
            let spec = format!(r#"{{"schedule":"@daily",{fields}}}"#);
            let found = settings(&serde_json::from_str(&spec).unwrap(), "runner").notices;
            let wanted = Wanted {
                failure,
                recovery,
                missed,
                overdue,
                ..Wanted::default()
            };
            assert_eq!(found, wanted, "{fields}");
        }
    }
}
