//! When an object is overdue, and what its interval is.

use crds::verdict::{Reason, State};

use crate::metrics::series::{Outlook, outlook};

use super::*;

/// Seconds between slots and whether the object is overdue at `now`.
fn at(series: &Series, now: &str) -> (i64, bool) {
    let outlook = outlook(series, t(now));
    (outlook.interval, late(&outlook))
}

/// What `mysqlbackup_overdue` shows.
fn late(outlook: &Outlook) -> bool {
    outlook.verdict.late == State::Critical
}

fn daily(status: Value) -> Series {
    series(settings("0 2 * * *"), &json!({}), status)
}

#[test]
fn an_object_that_never_ran_is_overdue_ten_minutes_after_its_first_slot() {
    let new = daily(json!({"observedGeneration": 1}));
    for (now, overdue) in [
        ("2025-01-01T12:00:00Z", false),
        ("2025-01-02T02:00:00Z", false),
        ("2025-01-02T02:10:00Z", false),
        ("2025-01-02T02:10:01Z", true),
        ("2025-02-01T00:00:00Z", true),
    ] {
        assert_eq!(at(&new, now), (86_400, overdue), "{now}");
    }
}

#[test]
fn a_good_run_settles_its_slot_however_late_it_ended() {
    let late = run(
        "a",
        "Succeeded",
        "2025-01-05T02:00:00Z",
        "2025-01-05T02:00:01Z",
        "2025-01-05T05:00:01Z",
        9,
    );
    let series = daily(
        json!({"observedGeneration": 1, "runs": [late], "lastSuccessfulTime": "2025-01-05T05:00:01Z"}),
    );
    // The next slot is given 10 minutes to start and twice the three hours this run took.
    assert!(!at(&series, "2025-01-06T08:10:00Z").1);
    assert!(at(&series, "2025-01-06T08:10:01Z").1);
}

#[test]
fn failed_and_skipped_runs_settle_nothing() {
    let good = run(
        "a",
        "Succeeded",
        "2025-01-05T02:00:00Z",
        "2025-01-05T02:00:00Z",
        "2025-01-05T02:01:00Z",
        9,
    );
    let bad = run(
        "b",
        "Failed",
        "2025-01-06T02:00:00Z",
        "2025-01-06T02:00:00Z",
        "2025-01-06T02:01:00Z",
        0,
    );
    let skipped = run(
        "c",
        "Skipped",
        "2025-01-07T02:00:00Z",
        "2025-01-07T02:00:00Z",
        "2025-01-07T02:00:00Z",
        0,
    );
    let series = daily(json!({"observedGeneration": 1, "runs": [skipped, bad, good]}));
    assert!(at(&series, "2025-01-06T02:20:00Z").1);
}

#[test]
fn a_run_whose_record_left_the_list_counts_by_its_end() {
    let series =
        daily(json!({"observedGeneration": 1, "lastSuccessfulTime": "2025-01-05T02:01:00Z"}));
    assert!(!at(&series, "2025-01-06T02:10:00Z").1);
    assert!(at(&series, "2025-01-06T02:10:01Z").1);
}

#[test]
fn the_first_run_ever_may_take_its_time_while_it_runs() {
    let of = |phase: &str, now: &str| {
        let run = json!({"name": "a", "trigger": "Schedule", "result": "Running", "phase": phase});
        at(&daily(json!({"observedGeneration": 1, "runs": [run]})), now).1
    };
    assert!(!of("Dumping", "2025-01-02T09:00:00Z"));
    assert!(of("Dumping", "2025-01-03T02:10:01Z"));
    assert!(of("Pending", "2025-01-02T09:00:00Z"));
}

#[test]
fn slots_before_an_edit_a_resumption_or_a_skip_make_nobody_overdue() {
    let old = json!({"observedGeneration": 1, "lastSuccessfulTime": "2025-01-02T02:01:00Z"});
    assert!(at(&daily(old), "2025-01-08T01:00:00Z").1);
    for mercy in [
        json!({"schedule": {"text": "0 2 * * *", "timeZone": "UTC", "since": "2025-01-07T12:00:00Z"}}),
        json!({"resumedAt": "2025-01-07T12:00:00Z"}),
    ] {
        let mut status = mercy;
        status["observedGeneration"] = json!(1);
        status["lastSuccessfulTime"] = json!("2025-01-02T02:01:00Z");
        let series = daily(status);
        assert!(!at(&series, "2025-01-08T02:10:00Z").1);
        assert!(at(&series, "2025-01-08T02:10:01Z").1);
    }
    let mut object = Object {
        created: t("2025-01-01T12:00:00Z"),
        ..Object::default()
    };
    let skip = (
        crds::labels::SKIP_SLOTS_UNTIL.to_owned(),
        "2025-01-07T12:00:00Z".to_owned(),
    );
    object.annotations.extend([skip]);
    let series = Series::of(
        &object,
        &json!({}),
        Some(&settings("0 2 * * *")),
        true,
        &ScheduleStatus {
            observed_generation: Some(1),
            ..ScheduleStatus::default()
        },
    );
    assert!(!at(&series, "2025-01-08T02:10:00Z").1);
    assert!(at(&series, "2025-01-08T02:10:01Z").1);
}

/// One slot that passes is what a suspension is for; two are a backup that is missed.
#[test]
fn a_suspended_object_is_overdue_by_its_second_slot() {
    let mut suspended = settings("0 2 * * *");
    suspended.suspend = true;
    let status = json!({"observedGeneration": 1, "lastSuccessfulTime": "2025-01-05T02:01:00Z"});
    let series = series(suspended, &json!({}), status);
    assert_eq!(at(&series, "2025-01-07T02:10:00Z"), (86_400, false));
    assert_eq!(at(&series, "2025-01-07T02:10:01Z"), (86_400, true));
}

/// The rule by which `list` and `health` say it.
#[test]
fn a_slot_that_nobody_starts_is_overdue() {
    let status = json!({
        "observedGeneration": 1, "lastSuccessfulTime": "2025-01-05T02:01:00Z",
        "nextScheduleTime": "2025-01-06T02:00:00Z",
    });
    let mut patient = settings("0 2 * * *");
    patient.startup_deadline = 86_400;
    let series = series(patient, &json!({}), status);
    for (now, state, overdue) in [
        ("2025-01-06T02:00:30Z", State::Good, false),
        ("2025-01-06T02:00:31Z", State::Warning, false),
        ("2025-01-06T02:15:01Z", State::Critical, true),
    ] {
        let outlook = outlook(&series, t(now));
        assert_eq!(
            (outlook.verdict.state, late(&outlook)),
            (state, overdue),
            "{now}"
        );
        assert_eq!(
            outlook.verdict.reason == Reason::Overdue,
            state != State::Good
        );
    }
}

#[test]
fn a_minutely_object_is_given_ten_minutes() {
    let mut minutely = settings("* * * * *");
    minutely.startup_deadline = 60;
    let series = series(minutely, &json!({}), json!({"observedGeneration": 1}));
    assert_eq!(at(&series, "2025-01-01T12:11:00Z"), (60, false));
    assert_eq!(at(&series, "2025-01-01T12:11:01Z"), (60, true));
}

#[test]
fn spread_and_startup_deadline_are_given_too() {
    let mut spread = settings("0 * * * *");
    spread.jitter_seconds = 900;
    let series = series(spread, &json!({}), json!({"observedGeneration": 1}));
    assert!(!at(&series, "2025-01-01T13:25:00Z").1);
    assert!(at(&series, "2025-01-01T13:25:01Z").1);
}

#[test]
fn intervals_are_those_of_the_slots_around_now() {
    for (schedule, now, seconds) in [
        // Friday to Monday.
        ("0 2 * * 1-5", "2025-01-11T12:00:00Z", 3 * 86_400),
        ("0 2 * * 1-5", "2025-01-08T12:00:00Z", 86_400),
        ("0 20,21 * * *", "2025-01-08T20:30:00Z", 3600),
        ("0 20,21 * * *", "2025-01-08T21:30:00Z", 23 * 3600),
        ("@every 90m", "2025-01-08T00:00:00Z", 5400),
        // 29 February 2028, and 2024 before it.
        ("0 0 29 2 *", "2025-01-08T00:00:00Z", 1461 * 86_400),
        ("0 0 30 2 *", "2025-01-08T00:00:00Z", 0),
        ("no schedule", "2025-01-08T00:00:00Z", 0),
    ] {
        let series = series(
            settings(schedule),
            &json!({}),
            json!({"observedGeneration": 1}),
        );
        assert_eq!(at(&series, now).0, seconds, "{schedule} at {now}");
    }
    let once = series(
        Settings::default(),
        &json!({}),
        json!({"observedGeneration": 1}),
    );
    assert_eq!(at(&once, "2026-01-01T00:00:00Z"), (0, false));
}

#[test]
fn the_zone_decides_what_a_day_is() {
    let mut berlin = settings("0 2 * * *");
    berlin.time_zone = Some("Europe/Berlin".into());
    // From 29 March 02:00 CET to 31 March 02:00 CEST: 30 March has no 02:00.
    let series = series(berlin, &json!({}), json!({"observedGeneration": 1}));
    assert_eq!(at(&series, "2025-03-30T12:00:00Z").0, 47 * 3600);
}
