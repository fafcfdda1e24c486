#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use chrono::Duration;
use serde_json::json;

use super::*;
use crate::condition;
use crate::restore::RestoreStatus;
use crate::run::{Run, RunResult, Trigger};
use crate::schedule::Schedule;
use crate::status::ScheduleStatus;
use crate::time::{parse_rfc3339, to_k8s};

fn t(text: &str) -> DateTime<Utc> {
    parse_rfc3339(text).unwrap()
}

/// 09:12 on a Friday; the daily slot is at 02:00.
const NOW: &str = "2026-09-04T09:12:00Z";

/// An object, what is changed about it, and when it is looked at.
struct Case {
    schedule: &'static str,
    status: ScheduleStatus,
    timing: Timing,
    suspended: bool,
    skip_until: Option<DateTime<Utc>>,
    missing: Vec<String>,
    now: DateTime<Utc>,
}

impl Case {
    /// Daily, a month old, seen, its newest good run of today's slot.
    fn good() -> Self {
        let mut run = Run::new("shop-2", Trigger::Schedule, RunResult::Succeeded);
        run.slot = Some(to_k8s(t("2026-09-04T02:00:00Z")));
        run.start_time = Some(to_k8s(t("2026-09-04T02:00:00Z")));
        run.completion_time = Some(to_k8s(t("2026-09-04T02:05:00Z")));
        Self {
            schedule: "0 2 * * *",
            status: ScheduleStatus {
                observed_generation: Some(1),
                last_successful_time: run.completion_time.clone(),
                next_schedule_time: Some(to_k8s(t("2026-09-05T02:00:00Z"))),
                runs: vec![run],
                ..ScheduleStatus::default()
            },
            timing: Timing::default(),
            suspended: false,
            skip_until: None,
            missing: vec![],
            now: t(NOW),
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self::good();
        change(&mut case);
        case
    }

    fn condition(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let all = &mut self.status.conditions;
        condition::set_status(all, type_, status, reason, message, None, self.now);
    }

    fn run(&mut self, name: &str, result: RunResult, reason: &str, message: &str) -> &mut Run {
        let mut run = Run::new(name, Trigger::Schedule, result);
        run.reason = reason.to_owned();
        run.message = message.to_owned();
        self.status.runs.insert(0, run);
        &mut self.status.runs[0]
    }

    /// The newest good run is of the slot so many days ago.
    fn days_ago(&mut self, days: i64) {
        let back = Duration::days(days);
        let at = |text: &str| Some(to_k8s(t(text) - back));
        self.status.runs[0].slot = at("2026-09-04T02:00:00Z");
        self.status.runs[0].start_time = at("2026-09-04T02:00:00Z");
        self.status.runs[0].completion_time = at("2026-09-04T02:05:00Z");
        self.status.last_successful_time = at("2026-09-04T02:05:00Z");
    }

    fn facts(&self) -> Facts {
        Facts::of(&Subject {
            status: &self.status,
            created: t(NOW) - Duration::days(30),
            suspended: self.suspended,
            skip_until: self.skip_until,
            timing: self.timing,
            missing: &self.missing,
        })
    }

    fn judge(&self) -> Verdict {
        let schedule = Schedule::parse(self.schedule, None).ok();
        judge(&self.facts(), schedule.as_ref(), None, self.now)
    }
}

/// Each row: what it is, the object, and state, reason, cause and a part of the words of its verdict.
#[test]
fn one_verdict_for_each_situation() {
    use RunResult::{Failed, Running, Skipped, Waiting};
    use State::{Critical, Good, Unknown, Warning};
    type Row = (
        &'static str,
        Case,
        State,
        Reason,
        &'static str,
        &'static str,
    );
    let rows: Vec<Row> = vec![
        ("good", Case::good(), Good, Reason::Ok, "", ""),
        (
            "refused",
            Case::with(|c| c.condition("Accepted", "False", "InvalidSpec", "spec.x: wrong")),
            Critical,
            Reason::Refused,
            "InvalidSpec",
            "InvalidSpec: spec.x: wrong",
        ),
        (
            "refused outranks a dead operator",
            Case::with(|c| {
                c.condition("Accepted", "False", "InvalidSpec", "spec.x: wrong");
                c.now = t("2026-09-06T00:00:00Z");
            }),
            Critical,
            Reason::Refused,
            "InvalidSpec",
            "",
        ),
        (
            "unseen, old",
            Case::with(|c| c.status = ScheduleStatus::default()),
            Critical,
            Reason::Unseen,
            "",
            "no operator has seen it",
        ),
        (
            "unseen, new",
            Case::with(|c| {
                c.status = ScheduleStatus::default();
                c.now = t(NOW) - Duration::days(30) + Duration::seconds(60);
            }),
            Unknown,
            Reason::Unseen,
            "",
            "",
        ),
        (
            "the next slot is 31 s past",
            Case::with(|c| c.now = t("2026-09-05T02:00:31Z")),
            Warning,
            Reason::Overdue,
            "SlotNotStarted",
            "the slot 2026-09-05T02:00:00Z was not started",
        ),
        (
            "the next slot is 30 s past",
            Case::with(|c| c.now = t("2026-09-05T02:00:30Z")),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "a quarter of an hour",
            Case::with(|c| c.now = t("2026-09-05T02:15:01Z")),
            Critical,
            Reason::Overdue,
            "SlotNotStarted",
            "",
        ),
        (
            "within its spread",
            Case::with(|c| {
                c.timing.jitter = 3600;
                c.now = t("2026-09-05T03:00:30Z");
            }),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "its deadline is over",
            Case::with(|c| {
                c.timing.starting_deadline = Some(300);
                c.now = t("2026-09-05T02:15:01Z");
            }),
            Critical,
            Reason::Overdue,
            "SlotNotStarted",
            "was not started, and will not be: startingDeadlineSeconds has passed",
        ),
        (
            "held",
            Case::with(|c| c.condition("Scheduled", "False", "NameTaken", "shop-3 is there")),
            Critical,
            Reason::Held,
            "NameTaken",
            "NameTaken: shop-3 is there",
        ),
        (
            "a schedule that never fires",
            Case::with(|c| c.condition("Scheduled", "False", "NeverFires", "no backup will run")),
            Critical,
            Reason::Held,
            "NeverFires",
            "",
        ),
        (
            "skipped for long",
            Case::with(|c| {
                c.condition("Scheduled", "False", "SkippedByUser", "until far");
                c.skip_until = Some(t("2027-01-01T00:00:00Z"));
            }),
            Critical,
            Reason::Held,
            "SkippedByUser",
            "",
        ),
        (
            "skipped for a day hides no failure",
            Case::with(|c| {
                c.condition("Scheduled", "False", "SkippedByUser", "until tomorrow");
                c.skip_until = Some(t("2026-09-05T12:00:00Z"));
                c.run("shop-3", Failed, "NoSpace", "no space left");
            }),
            Critical,
            Reason::Failed,
            "NoSpace",
            "",
        ),
        (
            "a Storage is gone, as the operator says",
            Case::with(|c| c.condition("ReferencesResolved", "False", "NotFound", "Storage s")),
            Critical,
            Reason::Missing,
            "ReferenceMissing",
            "NotFound: Storage s",
        ),
        (
            "a claim is gone, as the caller has seen",
            Case::with(|c| c.missing = vec!["claim backups does not exist".into()]),
            Critical,
            Reason::Missing,
            "ReferenceMissing",
            "claim backups does not exist",
        ),
        (
            "failed",
            Case::with(|c| {
                c.run("shop-3", Failed, "NoSpace", "no space left");
            }),
            Critical,
            Reason::Failed,
            "NoSpace",
            "shop-3 failed: no space left (NoSpace)",
        ),
        (
            "failed, and another try waits for its pod",
            Case::with(|c| {
                c.run("shop-3", Failed, "NoSpace", "no space left");
                c.run("shop-4", Running, "ImagePullBackOff", "not started: x")
                    .phase = Some("Pending".into());
            }),
            Critical,
            Reason::Failed,
            "NoSpace",
            "",
        ),
        (
            "cancelled, replaced or skipped is no failure",
            Case::with(|c| {
                c.run("shop-3", Failed, "Replaced", "");
                c.run("shop-4", Failed, "Cancelled", "cancelled by alice");
                c.run("shop-5", Skipped, "ConcurrencyForbid", "");
                c.run("shop-6", Waiting, "MaxActiveRuns", "");
            }),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "cancelled after a failure",
            Case::with(|c| {
                c.run("shop-3", Failed, "NoSpace", "no space left");
                c.run("shop-4", Failed, "Cancelled", "");
            }),
            Critical,
            Reason::Failed,
            "NoSpace",
            "shop-3",
        ),
        (
            "a failed verification outlives its run",
            Case::with(|c| {
                c.condition("Verified", "False", "RestoreDiffers", "shop-1: 1 row less")
            }),
            Critical,
            Reason::Unverified,
            "VerificationFailed",
            "shop-1 failed its verification: 1 row less",
        ),
        (
            "verified since",
            Case::with(|c| c.condition("Verified", "True", "Passed", "shop-2: all equal")),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "yesterday's slot was the last good one",
            Case::with(|c| c.days_ago(1)),
            Critical,
            Reason::Overdue,
            "Overdue",
            "nothing good came of the slot 2026-09-04T02:00:00Z",
        ),
        (
            "it still has time: ten minutes to start, and twice the five it took",
            Case::with(|c| {
                c.days_ago(1);
                c.now = t("2026-09-04T02:20:00Z");
            }),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "it had its time",
            Case::with(|c| {
                c.days_ago(1);
                c.now = t("2026-09-04T02:20:01Z");
            }),
            Critical,
            Reason::Overdue,
            "Overdue",
            "",
        ),
        (
            "no slot on a weekend is no slot missed",
            Case::with(|c| {
                c.schedule = "0 2 * * 1-5";
                c.status.next_schedule_time = Some(to_k8s(t("2026-09-07T02:00:00Z")));
                c.now = t("2026-09-07T02:00:00Z");
            }),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "nothing good ever",
            Case::with(|c| {
                c.status.runs.clear();
                c.status.last_successful_time = None;
            }),
            Critical,
            Reason::Never,
            "Overdue",
            "no good run yet; the first slot was",
        ),
        (
            "an object without schedule that has not run yet",
            Case::with(|c| {
                c.schedule = "";
                c.status.runs.clear();
                c.status.last_successful_time = None;
                c.status.next_schedule_time = None;
            }),
            Good,
            Reason::Ok,
            "",
            "no good run yet",
        ),
        (
            "pending",
            Case::with(|c| {
                c.run(
                    "shop-3",
                    Running,
                    "ImagePullBackOff",
                    "not started: no such image",
                )
                .phase = Some("Pending".into());
            }),
            Warning,
            Reason::Pending,
            "RunPending",
            "shop-3 is pending: not started: no such image (ImagePullBackOff)",
        ),
        (
            "a gap in the binary logs",
            Case::with(|c| c.condition("BinlogsComplete", "False", "Reset", "begun anew at 09:00")),
            Warning,
            Reason::Incomplete,
            "BinlogsIncomplete",
            "binary logs: Reset: begun anew at 09:00",
        ),
        (
            "the binary logs are complete",
            Case::with(|c| c.condition("BinlogsComplete", "True", "Complete", "")),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "whether the binary logs are complete is not known yet",
            Case::with(|c| c.condition("BinlogsComplete", "Unknown", "NotPulled", "")),
            Good,
            Reason::Ok,
            "",
            "",
        ),
        (
            "a failed run outranks a gap",
            Case::with(|c| {
                c.condition("BinlogsComplete", "False", "Reset", "begun anew at 09:00");
                c.run("shop-3", Failed, "NoSpace", "the volume is full");
            }),
            Critical,
            Reason::Failed,
            "NoSpace",
            "",
        ),
        (
            "a gap outranks a run that waits",
            Case::with(|c| {
                c.condition("BinlogsComplete", "False", "Reset", "begun anew at 09:00");
                c.run("shop-3", Waiting, "", "").phase = Some("Pending".into());
            }),
            Warning,
            Reason::Incomplete,
            "BinlogsIncomplete",
            "",
        ),
        (
            "running",
            Case::with(|c| {
                c.run("shop-3", Running, "", "");
            }),
            Good,
            Reason::Ok,
            "",
            "",
        ),
    ];
    for (what, case, state, reason, cause, part) in rows {
        let found = case.judge();
        let seen = (found.state, found.reason, found.cause.as_str());
        assert_eq!(seen, (state, reason, cause), "{what}: {found:?}");
        assert!(found.why.contains(part), "{what}: {}", found.why);
        assert_eq!(
            found.state == Good,
            found.next_step("mysqlbackup/shop").is_none(),
            "{what}: what is not good has a next step"
        );
        // What metrics keep gives the same verdict.
        let schedule = Schedule::parse(case.schedule, None).ok();
        let kept = judge(
            &case.facts().without_words(),
            schedule.as_ref(),
            None,
            case.now,
        );
        assert_eq!((kept.state, kept.reason), (state, reason), "{what}");
    }
}

#[test]
fn u5_a_suspension_hides_nothing() {
    let suspended = |change: fn(&mut Case), days: i64| {
        let case = Case::with(|c| {
            change(c);
            c.suspended = true;
            c.status.next_schedule_time = None;
            c.status.suspended_since = Some(to_k8s(c.now - Duration::days(days)));
        });
        let found = case.judge();
        assert!(found.suspended);
        (found.state, found.reason)
    };
    let failed: fn(&mut Case) = |c| {
        c.run("shop-3", RunResult::Failed, "NoSpace", "");
    };
    type Change = fn(&mut Case);
    let rows: [(Change, i64, (State, Reason)); 6] = [
        (|_| {}, 1, (State::Good, Reason::Suspended)),
        (|_| {}, 8, (State::Warning, Reason::Suspended)),
        (failed, 1, (State::Critical, Reason::Failed)),
        // One slot passed on purpose, then two.
        (|c| c.days_ago(1), 1, (State::Warning, Reason::Overdue)),
        (|c| c.days_ago(2), 1, (State::Critical, Reason::Overdue)),
        (
            |c| {
                c.status.runs.clear();
                c.status.last_successful_time = None;
            },
            1,
            (State::Critical, Reason::Never),
        ),
    ];
    for (change, days, wanted) in rows {
        assert_eq!(suspended(change, days), wanted);
    }
}

#[test]
fn u6_what_runs_often_is_missed_soon() {
    // Schedule, the next slot, seconds after it from which it is a warning, and critical.
    for (schedule, slot, critical) in [
        ("* * * * *", "2026-09-04T09:13:00Z", 121),
        ("*/5 * * * *", "2026-09-04T09:15:00Z", 301),
        ("0 * * * *", "2026-09-04T10:00:00Z", 901),
        ("0 2 * * *", "2026-09-05T02:00:00Z", 901),
    ] {
        let state = |seconds: i64| {
            let case = Case::with(|c| {
                c.schedule = schedule;
                c.status.next_schedule_time = Some(to_k8s(t(slot)));
                c.now = t(slot) + Duration::seconds(seconds);
            });
            // Nothing else is late yet: a slot has ten minutes at least.
            case.facts()
                .not_started(Schedule::parse(schedule, None).ok().as_ref(), case.now)
                .map(|(state, _)| state)
        };
        assert_eq!(state(30), None, "{schedule}");
        assert_eq!(state(31), Some(State::Warning), "{schedule}");
        assert_eq!(state(critical - 1), Some(State::Warning), "{schedule}");
        assert_eq!(state(critical), Some(State::Critical), "{schedule}");
    }
}

#[test]
fn an_age_takes_the_place_of_the_schedule() {
    let case = Case::good();
    let schedule = Schedule::parse(case.schedule, None).ok();
    let with = |hours: i64| {
        let age = Some(Duration::hours(hours));
        let found = judge(&case.facts(), schedule.as_ref(), age, case.now);
        (found.state, found.reason, found.limits)
    };
    // The newest good run is 7 h and 7 min old.
    let limit = |hours: i64| Some((hours * 3600, hours * 3600));
    assert_eq!(with(8), (State::Good, Reason::Ok, limit(8)));
    assert_eq!(with(7), (State::Critical, Reason::Stale, limit(7)));
    // Without: the slot of tomorrow, 23:55 after the end of the newest, ten minutes and twice five.
    let found = case.judge();
    assert_eq!(found.limits, Some((87_300, 87_300)));
    assert_eq!(found.age, Some(7 * 3600 + 7 * 60));
    assert_eq!(found.critical_at, Some(t("2026-09-05T02:20:00Z")));
}

#[test]
fn what_no_secret_may_show_is_masked() {
    let case = Case::with(|c| {
        c.run("shop-3", RunResult::Failed, "X", "password=S3cr3t-marker");
    });
    assert!(!case.judge().why.contains("S3cr3t"), "{:?}", case.judge());
}

#[test]
fn a_list_says_what_the_operator_said_and_that_it_does_not_act() {
    let schedule = Schedule::parse("* * * * *", None).unwrap();
    let glance = |ready: &'static str, next: i64, age: i64| {
        glance(
            &Glance {
                ready,
                created: t(NOW) - Duration::seconds(age),
                next: Some(t(NOW) + Duration::seconds(next)),
                schedule: Some(&schedule),
                jitter: 0,
            },
            t(NOW),
        )
    };
    let day = 86_400;
    for (ready, next, age, state, reason) in [
        ("AsScheduled", 10, day, State::Good, Reason::Ok),
        ("AsScheduled", -31, day, State::Warning, Reason::Overdue),
        ("AsScheduled", -121, day, State::Critical, Reason::Overdue),
        ("NoSpace", -121, day, State::Critical, Reason::Overdue),
        ("InvalidSpec", -121, day, State::Critical, Reason::Refused),
        ("NoSpace", 10, day, State::Critical, Reason::Failed),
        (
            "VerificationFailed",
            10,
            day,
            State::Critical,
            Reason::Unverified,
        ),
        ("RunPending", 10, day, State::Warning, Reason::Pending),
        ("Overdue", 10, day, State::Critical, Reason::Overdue),
        ("NameTaken", 10, day, State::Critical, Reason::Held),
        (
            "ReferenceMissing",
            10,
            day,
            State::Critical,
            Reason::Missing,
        ),
        ("Suspended", 10, day, State::Good, Reason::Suspended),
        ("", 10, 60, State::Unknown, Reason::Unseen),
        ("", 10, 61, State::Critical, Reason::Unseen),
    ] {
        assert_eq!(glance(ready, next, age), (state, reason), "{ready} {next}");
    }
}

#[test]
fn how_a_restore_is() {
    for (status, state, reason) in [
        (json!({}), State::Critical, Reason::Unseen),
        (
            json!({"phase": "Pending", "reason": "RunNotFinished", "message": "wait"}),
            State::Warning,
            Reason::Pending,
        ),
        (
            json!({"phase": "Running", "job": "j"}),
            State::Good,
            Reason::Ok,
        ),
        (
            json!({"phase": "Succeeded", "job": "j"}),
            State::Good,
            Reason::Ok,
        ),
        (
            json!({"phase": "Failed", "job": "j", "reason": "RestoreDiffers"}),
            State::Critical,
            Reason::Failed,
        ),
        (
            json!({"phase": "Failed", "reason": "BackupNotFound"}),
            State::Critical,
            Reason::Refused,
        ),
    ] {
        let seen: RestoreStatus = serde_json::from_value(status.clone()).unwrap();
        let found = of_restore(&seen, t(NOW) - Duration::hours(1), t(NOW));
        assert_eq!((found.state, found.reason), (state, reason), "{status}");
    }
    let new = of_restore(&RestoreStatus::default(), t(NOW), t(NOW));
    assert_eq!(new.state, State::Unknown);
}

#[test]
fn how_a_run_is() {
    let mut run = Run::new("r", Trigger::Manual, RunResult::Succeeded);
    assert_eq!(of_run(&run).state, State::Good);
    run.verification = Some(crate::run::Verification {
        mode: "Restore".into(),
        passed: false,
        time: to_k8s(t(NOW)),
        message: "one row less".into(),
    });
    assert_eq!(of_run(&run).reason, Reason::Unverified);
    assert_eq!(of_run(&run).why, "r failed its verification: one row less");
    let mut pending = Run::new("p", Trigger::Manual, RunResult::Running);
    assert_eq!(of_run(&pending).state, State::Good);
    pending.phase = Some("Pending".into());
    assert_eq!(of_run(&pending).reason, Reason::Pending);
    let failed = Run::new("f", Trigger::Manual, RunResult::Failed);
    assert_eq!(of_run(&failed).why, "f failed: no reason was given");
}
