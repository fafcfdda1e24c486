//! Whatever a status holds, it fits, and what counts stays.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::binlogs::{BinlogStatus, BinlogTotals, Gap, MAX_GAPS, MAX_WINDOWS, OpenPull, Window};
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
use crate::engine::conditions::within_bytes;

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

/// The largest books of binary logs there are.
fn books(message: &str) -> BinlogStatus {
    let gap = Gap {
        from: Some(time()),
        to: Some(time()),
        reason: "r".repeat(64),
        message: clean(message, 256),
        segment: "f".repeat(16),
    };
    let window = Window {
        from: time(),
        until: time(),
    };
    let most = BinlogTotals {
        due: i64::MAX,
        succeeded: i64::MAX,
        failed: i64::MAX,
        skipped: i64::MAX,
        missed: i64::MAX,
    };
    BinlogStatus {
        continuous: true,
        totals: most,
        open: Some(OpenPull {
            slot: time(),
            job: "j".repeat(63),
        }),
        last_result: Some(RunResult::Succeeded),
        reason: "r".repeat(64),
        message: message.to_owned(),
        last_time: Some(time()),
        consecutive_failures: i64::MAX,
        windows: vec![window; MAX_WINDOWS],
        gaps: vec![gap; MAX_GAPS],
        ..BinlogStatus::beginning(86_400, parse_rfc3339("2025-01-15T10:10:00Z").unwrap())
    }
}

/// What a status is made of.
#[derive(Clone, Debug)]
struct Shape {
    /// By run: 0 is running, 1 waits, as long as `open` more may be; the others failed.
    results: Vec<usize>,
    open: usize,
    /// Characters of each message, and which.
    length: usize,
    letter: &'static str,
    requests: usize,
    missed: usize,
    notices: usize,
    accepted: bool,
    pulls: bool,
}

prop_compose! {
    fn shape()(
        results in prop::collection::vec(0_usize..3, 0..40),
        open in 0..=MAX_OPEN_RUNS,
        length in 0..=MAX_MESSAGE,
        requests in 0..=MAX_REQUESTS,
        missed in 0..=MAX_MISSED,
        notices in 0..=MAX_NOTICES,
        accepted in any::<bool>(),
        pulls in any::<bool>(),
        letter in prop::sample::select(vec!["m", "ä"]),
    ) -> Shape {
        Shape { results, open, length, letter, requests, missed, notices, accepted, pulls }
    }
}

impl Shape {
    fn status(&self) -> ScheduleStatus {
        let &Self {
            open,
            requests,
            missed,
            notices,
            accepted,
            pulls,
            ..
        } = self;
        let message = self.letter.repeat(self.length);
        let mut runs: Vec<Run> = vec![];
        let mut left = open;
        for (index, kind) in self.results.iter().enumerate() {
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
        let all = [
            "Accepted",
            "Scheduled",
            "LastRunSucceeded",
            "Verified",
            "Ready",
            "BinlogsComplete",
        ];
        let types = &all[..if pulls { 6 } else { 5 }];
        ScheduleStatus {
            active: vec![reference; open.min(10)],
            active_count: i32::try_from(open).ok(),
            totals: Some(Totals {
                due: 100,
                succeeded: 40,
                failed: 30,
                skipped: 20,
                missed: 10,
                manual: 5,
            }),
            conditions: types
                .iter()
                .map(|t| {
                    condition(
                        t,
                        &match *t {
                            "Scheduled" => String::new(),
                            "Accepted" if accepted => String::new(),
                            "Accepted" => within_bytes(&message),
                            _ => message.clone(),
                        },
                    )
                })
                .collect(),
            requests: (0..requests).map(|i| request(i, &message)).collect(),
            missed: vec![
                MissedSlots {
                    from: time(),
                    to: time(),
                    count: 1,
                    reason: "ConcurrencyForbid".into()
                };
                missed
            ],
            notices: vec![
                PendingNotice {
                    event: crds::parts::NotificationEvent::Failure,
                    subject: "n".repeat(63)
                };
                notices
            ],
            overdue_notified_time: Some(time()),
            binlogs: pulls.then(|| books(&message)),
            runs,
            ..ScheduleStatus::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_status_fits_and_keeps_its_books_and_its_open_runs(shape in shape()) {
        let status = shape.status();
        let mut cut = status.clone();
        fit(&mut cut);
        prop_assert!(bytes(&cut) <= most(&status), "{} bytes", bytes(&cut));
        prop_assert_eq!(cut.totals, status.totals);
        prop_assert_eq!(cut.active_count, status.active_count);
        let open = |status: &ScheduleStatus| -> Vec<_> {
            let open = status.runs.iter().filter(|r| !r.result.is_final());
            open.map(|r| (r.name.clone(), r.job_uid.clone(), r.slot.clone(), r.result)).collect()
        };
        prop_assert_eq!(open(&cut), open(&status));
        prop_assert_eq!(&cut.notices, &status.notices);
        let pulls = |status: &ScheduleStatus| status.binlogs.as_ref().map(|b| {
            (b.totals, b.open.clone(), b.windows.first().cloned(), b.gaps.first().map(|g| g.to.clone()))
        });
        prop_assert_eq!(pulls(&cut), pulls(&status));
        let newest = |status: &ScheduleStatus| status.requests.first().map(|r| r.id.clone());
        prop_assert_eq!(newest(&cut), newest(&status));
        let mut twice = cut.clone();
        fit(&mut twice);
        prop_assert_eq!(twice, cut);
    }
}

#[test]
fn the_largest_statuses_fit() {
    let kinds = [
        vec![0; 40],
        vec![1; 40],
        vec![2; 40],
        [0, 1].repeat(20),
        [0, 2].repeat(20),
    ];
    for results in kinds {
        for (open, letter) in [
            (MAX_OPEN_RUNS, "m"),
            (MAX_OPEN_RUNS, "ä"),
            (9, "ä"),
            (0, "ä"),
        ] {
            for (length, accepted) in [(MAX_MESSAGE, false), (MAX_MESSAGE, true), (60, false)] {
                let shape = Shape {
                    results: results.clone(),
                    open,
                    length,
                    letter,
                    requests: MAX_REQUESTS,
                    missed: MAX_MISSED,
                    notices: MAX_NOTICES,
                    accepted,
                    pulls: true,
                };
                let mut status = shape.status();
                let most = most(&status);
                fit(&mut status);
                assert!(
                    bytes(&status) <= most,
                    "{shape:?}: {} bytes",
                    bytes(&status)
                );
            }
        }
    }
}

/// A status of usual size whose runs, requests and repeating conditions say this.
fn usual(message: &str) -> ScheduleStatus {
    let runs = (0..12).map(|index| {
        let mut run = run(index, RunResult::Succeeded, message);
        run.name = format!("shop-{index:08}");
        run.warnings.truncate(usize::from(index > 0));
        run.artefacts.truncate(2);
        for artefact in &mut run.artefacts {
            "prod/shop/2025-01-15.sql.zst".clone_into(&mut artefact.key);
        }
        // Half of them hold one that is not: the first says nothing of the second.
        run.artefacts[1].read_back = index % 2 == 0;
        (run.raw_bytes, run.stored_bytes) = (Some(1_932_735_283), Some(641_728_512));
        (run.tables, run.rows) = (Some(120), Some(4_500_000));
        run.verification = None;
        run.job_gone = true;
        run
    });
    ScheduleStatus {
        runs: runs.collect(),
        requests: (0..3)
            .map(|i| RequestStatus {
                by: "alice".into(),
                reason: message.to_owned(),
                ..request(i, message)
            })
            .collect(),
        conditions: ["LastRunSucceeded", "Ready", "Verified"]
            .map(|t| condition(t, message))
            .into(),
        ..ScheduleStatus::default()
    }
}

/// Long messages cost words, not runs; and what a run stored stays known as read back, or as not.
#[test]
fn u8_messages_are_cut_before_runs_and_what_was_read_back_stays_known() {
    let long = "m".repeat(MAX_MESSAGE);
    let (mut few, mut many) = (usual("short"), usual(&long));
    fit(&mut few);
    fit(&mut many);
    let names = |s: &ScheduleStatus| s.runs.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    assert!(names(&few).len() >= 9, "{}", names(&few).len());
    assert!(
        names(&many).len() + 3 >= names(&few).len(),
        "{} runs of {}",
        names(&many).len(),
        names(&few).len()
    );
    for status in [&few, &many] {
        for (index, run) in status.runs.iter().enumerate() {
            assert_eq!(run.is_read_back(), index % 2 == 0, "{}", run.name);
        }
    }
    assert_eq!(many.runs[0].message, long, "the newest keeps its words");
}
