//! Whatever a status holds, it fits, and what counts stays.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::request::Action;
use crds::run::{Artefact, MAX_ARTEFACTS, MAX_MESSAGE, RunResult, Trigger, Verification};
use crds::status::{
    MAX_MISSED, MAX_NOTICES, MAX_OPEN_RUNS, MAX_REQUESTS, MissedSlots, PendingNotice, RequestState,
    RequestStatus, Totals,
};
use crds::time::{parse_rfc3339, to_k8s};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use proptest::prelude::*;

use super::*;

fn time() -> Time {
    to_k8s(parse_rfc3339("2025-01-15T10:10:00Z").unwrap())
}

/// The largest run there is of this result.
fn run(index: usize, result: RunResult, message: &str) -> Run {
    let name = format!("{}-{index:08}", "n".repeat(54));
    let mut run = Run::new(name, Trigger::Schedule, result);
    run.slot = Some(time());
    run.message = message.to_owned();
    run.reason = "BackoffLimitExceeded".into();
    if result == RunResult::Waiting {
        return run;
    }
    run.job_uid = Some(format!("{index:08}-aaaa-bbbb-cccc-dddddddddddd"));
    run.start_time = Some(time());
    run.exit_code = Some(137);
    if result == RunResult::Running {
        return run;
    }
    run.completion_time = Some(time());
    run.raw_bytes = Some(i64::MAX);
    run.stored_bytes = Some(i64::MAX);
    run.tables = Some(i64::MAX);
    run.rows = Some(i64::MAX);
    run.warnings = vec![message.to_owned(); 3];
    run.artefacts = vec![
        Artefact {
            key: "k".repeat(250),
            size: i64::MAX,
            sha256: "f".repeat(64),
            read_back: true,
            storage: Some("s".repeat(52)),
        };
        MAX_ARTEFACTS
    ];
    run.verification = Some(Verification {
        mode: "Restore".into(),
        passed: false,
        time: time(),
        message: message.to_owned(),
    });
    run
}

fn request(index: usize, message: &str) -> RequestStatus {
    RequestStatus {
        id: format!("{index:036}"),
        action: Action::Backup,
        by: "u".repeat(128),
        at: Some(time()),
        reason: "r".repeat(256),
        state: RequestState::Succeeded,
        job: Some("j".repeat(63)),
        message: message.to_owned(),
    }
}

fn condition(type_: &str, message: &str) -> Condition {
    Condition {
        last_transition_time: time(),
        message: message.to_owned(),
        observed_generation: Some(100),
        reason: "BackoffLimitExceeded".into(),
        status: "Unknown".into(),
        type_: type_.to_owned(),
    }
}

prop_compose! {
    fn status()(
        results in prop::collection::vec(0_usize..3, 0..40),
        open in 0..=MAX_OPEN_RUNS,
        length in 0..=MAX_MESSAGE,
        requests in 0..=MAX_REQUESTS,
        missed in 0..=MAX_MISSED,
        notices in 0..=MAX_NOTICES,
        accepted in any::<bool>(),
        letter in prop::sample::select(vec!["m", "ä"]),
    ) -> ScheduleStatus {
        let message = letter.repeat(length);
        let mut runs: Vec<Run> = vec![];
        let mut left = open;
        for (index, kind) in results.iter().enumerate() {
            let result = match kind {
                0 if left > 0 => RunResult::Running,
                1 if left > 0 => RunResult::Waiting,
                _ => RunResult::Failed,
            };
            left -= usize::from(!result.is_final());
            runs.push(run(index, result, &message));
        }
        let reference = ObjectReference {
            api_version: Some("batch/v1".into()),
            kind: Some("Job".into()),
            name: Some("j".repeat(63)),
            namespace: Some("n".repeat(63)),
            uid: Some("u".repeat(36)),
            ..ObjectReference::default()
        };
        let types = ["Accepted", "Scheduled", "LastRunSucceeded", "Verified", "Ready"];
        ScheduleStatus {
            active: vec![reference; open.min(10)],
            active_count: i32::try_from(open).ok(),
            totals: Some(Totals { due: 100, succeeded: 40, failed: 30, skipped: 20, missed: 10, manual: 5 }),
            conditions: types
                .iter()
                .map(|t| condition(t, if *t == "Scheduled" || (*t == "Accepted" && accepted) { "" } else { &message }))
                .collect(),
            requests: (0..requests).map(|i| request(i, &message)).collect(),
            missed: vec![MissedSlots { from: time(), to: time(), count: 1, reason: "ConcurrencyForbid".into() }; missed],
            notices: vec![
                PendingNotice { event: crds::parts::NotificationEvent::Failure, subject: "n".repeat(63) };
                notices
            ],
            overdue_notified_time: Some(time()),
            runs,
            ..ScheduleStatus::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_status_fits_and_keeps_its_books_and_its_open_runs(status in status()) {
        let mut cut = status.clone();
        fit(&mut cut);
        prop_assert!(bytes(&cut) <= MAX_BYTES, "{} bytes", bytes(&cut));
        prop_assert_eq!(cut.totals, status.totals);
        prop_assert_eq!(cut.active_count, status.active_count);
        let open = |status: &ScheduleStatus| -> Vec<_> {
            let open = status.runs.iter().filter(|r| !r.result.is_final());
            open.map(|r| (r.name.clone(), r.job_uid.clone(), r.slot.clone(), r.result)).collect()
        };
        prop_assert_eq!(open(&cut), open(&status));
        prop_assert_eq!(&cut.notices, &status.notices);
        let newest = |status: &ScheduleStatus| status.requests.first().map(|r| r.id.clone());
        prop_assert_eq!(newest(&cut), newest(&status));
        let mut twice = cut.clone();
        fit(&mut twice);
        prop_assert_eq!(twice, cut);
    }
}
