//! The 49 rules of Kubernetes' CronJob controller, each by its number. Where this engine departs
//! from one on purpose, the name says what it does instead.

use crds::names;
use crds::schedule::{DstPolicy, Schedule};
use crds::validate;

use super::*;

fn next(text: &str, zone: Option<&str>, after: &str) -> String {
    let schedule = Schedule::parse(text, zone).expect(text);
    schedule
        .next_after(t(after), t(after))
        .map_or_else(|| "never".into(), crds::time::rfc3339)
}

fn accepts(text: &str) -> bool {
    Schedule::parse(text, None).is_ok()
}

fn every_next(text: &str, zone: Option<&str>, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(text, zone).unwrap();
    let mut at = t(after);
    let mut found = vec![];
    for _ in 0..count {
        at = schedule.next_after(at, t(after)).unwrap();
        found.push(crds::time::rfc3339(at));
    }
    found
}

#[test]
fn rule_01_five_fields() {
    for (text, good) in [
        ("* * * *", false),
        ("* * * * * *", false),
        ("\t0  3 * *\t* ", true),
        ("", false),
    ] {
        assert_eq!(accepts(text), good, "{text:?}");
    }
    let problem = Schedule::parse("1 2 3", None).unwrap_err().to_string();
    assert!(
        problem.contains("expected exactly 5 fields, found 3"),
        "{problem}"
    );
}

#[test]
fn rule_02_descriptors_are_case_sensitive() {
    for text in [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ] {
        assert!(accepts(text), "{text}");
    }
    assert!(!accepts("@Daily") && !accepts("@reboot"));
}

#[test]
fn rule_03_every_counts_from_its_anchor() {
    let mut world = World::new("@every 90s", "2025-01-01T00:00:30Z");
    world.live_to(t("2025-01-01T00:05:00Z"));
    assert_eq!(
        world.slots(),
        [
            "2025-01-01T00:02:00Z",
            "2025-01-01T00:03:30Z",
            "2025-01-01T00:05:00Z"
        ]
    );
    assert_eq!(
        next("@every 100ms", None, "2025-01-01T00:00:00Z"),
        "2025-01-01T00:00:01Z"
    );
    assert_eq!(
        next("@every -5s", None, "2025-01-01T00:00:00Z"),
        "2025-01-01T00:00:01Z"
    );
}

#[test]
fn rule_04_bounds() {
    for bad in [
        "60 0 1 1 0",
        "0 24 1 1 0",
        "0 0 0 1 0",
        "0 0 32 1 0",
        "0 0 1 0 0",
        "0 0 1 13 0",
        "0 0 1 1 8",
    ] {
        assert!(!accepts(bad), "{bad}");
    }
    assert!(accepts("59 23 31 12 6"));
}

#[test]
fn rule_05_sunday_is_zero_only() {
    for bad in ["0 0 * * 7", "0 0 * * 5-7", "0 0 * * fri-mon"] {
        assert!(!accepts(bad), "{bad}");
    }
    assert!(accepts("0 0 * * sun-sat"));
}

#[test]
fn rule_06_names_have_three_letters_in_any_case() {
    assert!(!accepts("0 0 * * Monday"));
    let days = every_next("0 0 * * mOn/2", None, "2025-01-05T12:00:00Z", 3);
    assert_eq!(
        days,
        [
            "2025-01-06T00:00:00Z",
            "2025-01-08T00:00:00Z",
            "2025-01-10T00:00:00Z"
        ]
    );
    assert_eq!(
        next("0 0 1 JAN-mar *", None, "2025-01-02T00:00:00Z"),
        "2025-02-01T00:00:00Z"
    );
}

#[test]
fn rule_07_question_mark_is_a_star() {
    assert_eq!(
        next("0 3 ? * 1", None, "2025-01-01T00:00:00Z"),
        "2025-01-06T03:00:00Z"
    );
}

#[test]
fn rule_08_steps() {
    assert!(!accepts("*/0 * * * *"));
    assert_eq!(
        next("*/61 * * * *", None, "2025-01-01T00:00:00Z"),
        "2025-01-01T01:00:00Z"
    );
    assert_eq!(
        next("50/5 * * * *", None, "2025-01-01T00:00:00Z"),
        "2025-01-01T00:50:00Z"
    );
    assert_eq!(
        next("10-20/10 * * * *", None, "2025-01-01T00:10:00Z"),
        "2025-01-01T00:20:00Z"
    );
}

#[test]
fn rule_09_only_a_plain_star_keeps_the_star() {
    // Both with a star: Monday. Without: any day.
    assert_eq!(
        next("0 0 */1 * 1", None, "2025-01-01T00:00:00Z"),
        "2025-01-06T00:00:00Z"
    );
    assert_eq!(
        next("0 0 1-31 * 1", None, "2025-01-01T00:00:00Z"),
        "2025-01-02T00:00:00Z"
    );
}

#[test]
fn rule_10_either_day_matches_when_both_are_restricted() {
    let days = every_next("0 0 13 * 5", None, "2025-01-10T12:00:00Z", 3);
    assert_eq!(
        days,
        [
            "2025-01-13T00:00:00Z",
            "2025-01-17T00:00:00Z",
            "2025-01-24T00:00:00Z"
        ]
    );
}

#[test]
fn rule_11_lists_and_oddities() {
    assert!(accepts("1,,2 * * * *") && accepts("*-5 * * * *") && accepts("+5 * * * *"));
    assert!(!accepts("-1 * * * *") && !accepts("1-2-3 * * * *") && !accepts("1/2/3 * * * *"));
    assert_eq!(next(", * * * *", None, "2025-01-01T00:00:00Z"), "never");
}

#[test]
fn rule_12_no_extensions() {
    for bad in [
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5#2",
        "H 0 * * *",
        "0 0 0 * * *",
    ] {
        assert!(!accepts(bad), "{bad}");
    }
}

#[test]
fn rule_13_no_zone_in_the_schedule_and_no_panic() {
    for bad in [
        "TZ=UTC 0 0 * * *",
        "CRON_TZ=Europe/Berlin 0 0 * * *",
        "TZ=UTC",
        "CRON_TZ=",
        "TZ=\t",
    ] {
        assert!(!accepts(bad), "{bad}");
    }
}

#[test]
fn rule_14_never_due_is_valid_and_said() {
    let mut world = World::new("0 0 30 2 *", "2025-01-01T00:00:00Z");
    world.at("2032-01-01T00:00:00Z");
    assert_eq!(world.slots(), Vec::<String>::new());
    assert_eq!(
        world.condition("Scheduled"),
        ("False".into(), "NeverFires".into())
    );
    assert_eq!(world.reasons(), ["NeverFires"]);
    assert_eq!(world.wake, None);
    assert_eq!(
        next("0 0 29 2 *", None, "2025-01-01T00:00:00Z"),
        "2028-02-29T00:00:00Z"
    );
}

#[test]
fn rule_15_zones_are_names_of_the_database() {
    for bad in [
        "",
        "Local",
        "local",
        "Mars/X",
        "../etc",
        "-x",
        "Europe/Berlin ",
    ] {
        assert!(Schedule::parse("0 0 * * *", Some(bad)).is_err(), "{bad:?}");
    }
    let world = World::unseen("0 2 * * *", "2025-07-01T12:00:00Z");
    let mut world = world.with(|s| s.time_zone = Some("Europe/Berlin".into()));
    world.live_to(t("2025-07-02T00:00:00Z"));
    assert_eq!(world.slots(), ["2025-07-02T00:00:00Z"]);
    assert_eq!(
        world.started[0].scheduled_at.as_deref(),
        Some("2025-07-02T02:00:00+02:00")
    );
}

#[test]
fn rule_16_an_unknown_zone_waits_for_an_edit() {
    let mut world = World::unseen("0 2 * * *", "2025-01-01T00:00:00Z")
        .with(|s| s.time_zone = Some("Mars/X".into()));
    world.seen.problems = vec![validate::Problem {
        path: "spec.timeZone".into(),
        message: "unknown".into(),
    }];
    world.at("2025-01-05T00:00:00Z");
    assert_eq!((world.wake, world.slots().len()), (None, 0));
    assert_eq!(
        world.condition("Accepted"),
        ("False".into(), "UnknownTimeZone".into())
    );
    let writes = world.writes;
    world.at("2025-01-06T00:00:00Z");
    assert_eq!(
        (world.reasons(), world.writes),
        (vec!["UnknownTimeZone"], writes)
    );
}

#[test]
fn rule_17_a_skipped_local_time_does_not_run() {
    let zone = Some("America/New_York");
    assert_eq!(
        next("30 2 * * *", zone, "2025-03-08T12:00:00Z"),
        "2025-03-10T06:30:00Z"
    );
    assert_eq!(
        every_next("0 * * * *", zone, "2025-03-09T05:30:00Z", 2),
        ["2025-03-09T06:00:00Z", "2025-03-09T07:00:00Z"]
    );
}

#[test]
fn rule_18_a_repeated_local_time_runs_twice() {
    let zone = Some("America/New_York");
    let slots = every_next("0 1 * * *", zone, "2025-11-02T00:00:00Z", 2);
    assert_eq!(slots, ["2025-11-02T05:00:00Z", "2025-11-02T06:00:00Z"]);
}

#[test]
fn rule_19_midnight_may_be_missing() {
    // Sao Paulo, 4 November 2018: 00:00 did not exist.
    let zone = Some("America/Sao_Paulo");
    assert_eq!(
        next("0 0 * * *", zone, "2018-11-03T12:00:00Z"),
        "2018-11-05T02:00:00Z"
    );
}

#[test]
fn rule_20_debians_way_is_a_choice() {
    let schedule = Schedule::parse("30 2 * * *", Some("Europe/Berlin"))
        .unwrap()
        .with_dst_policy(DstPolicy::Once);
    let slot = schedule.next_after(t("2025-03-29T12:00:00Z"), t("2025-01-01T00:00:00Z"));
    assert_eq!(slot, Some(t("2025-03-30T01:00:00Z")));
    let world = World::unseen("30 2 * * *", "2025-10-25T12:00:00Z");
    let mut world = world.with(|s| {
        s.time_zone = Some("Europe/Berlin".into());
        s.dst_policy = DstPolicy::Once;
    });
    world.live_to(t("2025-10-26T12:00:00Z"));
    assert_eq!(world.slots(), ["2025-10-26T00:30:00Z"]);
}

#[test]
fn rule_21_earliest_is_last_schedule_time_else_creation() {
    let mut fresh = World::unseen("0 3 * * *", "2025-01-10T12:00:00Z");
    fresh.at("2025-01-10T13:00:00Z");
    assert_eq!(fresh.slots(), Vec::<String>::new());
    let mut old = World::unseen("0 3 * * *", "2025-01-10T12:00:00Z");
    old.seen.status.last_schedule_time = Some(crds::time::to_k8s(t("2025-01-08T03:00:00Z")));
    old.at("2025-01-10T13:00:00Z");
    assert_eq!(old.slots(), ["2025-01-10T03:00:00Z"]);
    assert_eq!(
        old.missed(),
        [(
            "2025-01-09T03:00:00Z".into(),
            "2025-01-09T03:00:00Z".into(),
            1,
            "Outage".into()
        )]
    );
}

#[test]
fn rule_21_a_last_schedule_time_of_another_hand_counts_after_first_sight_too() {
    let mut world = World::new("0 3 * * *", "2025-01-10T12:00:00Z");
    world.seen.status.last_schedule_time = Some(crds::time::to_k8s(t("2025-01-08T03:00:00Z")));
    world.at("2025-01-10T13:00:00Z");
    assert_eq!(world.slots(), ["2025-01-10T03:00:00Z"]);
}

#[test]
fn rule_22_of_several_due_the_newest_starts() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T05:10:00Z");
    assert_eq!(world.slots(), ["2025-01-01T05:00:00Z"]);
    let four = (
        "2025-01-01T01:00:00Z".to_owned(),
        "2025-01-01T04:00:00Z".to_owned(),
        4,
        "Outage".to_owned(),
    );
    assert_eq!(world.missed(), [four]);
    assert_eq!(world.wake, Some(t("2025-01-01T06:00:00Z")));
}

#[test]
fn rule_23_a_hundred_missed_are_no_obstacle() {
    let mut world = World::new("* * * * *", "2025-01-01T00:00:30Z");
    world.at("2035-01-01T00:00:10Z");
    assert_eq!(world.slots(), ["2035-01-01T00:00:00Z"]);
    // Ten years with leap days 2028 and 2032: 3652 days, one slot of them is started.
    assert_eq!(world.missed()[0].2, 3652 * 24 * 60 - 1);
}

#[test]
fn rule_23_ten_years_of_minutes_plan_in_a_moment() {
    let world = World::new("* * * * *", "2025-01-01T00:00:30Z");
    let quickest = |now: &str| {
        let rounds = (0..30).map(|_| {
            let begin = std::time::Instant::now();
            plan(&world.seen, t(now), &built);
            begin.elapsed()
        });
        rounds.min().unwrap()
    };
    // An hour has 60 slots, ten years have five million.
    let (hour, years) = (
        quickest("2025-01-01T01:00:10Z"),
        quickest("2035-01-01T00:00:10Z"),
    );
    assert!(years < hour * 50, "{years:?} beside {hour:?}");
}

#[test]
fn rule_24_uneven_gaps_start_the_newest_slot() {
    // The examples in which Kubernetes starts nothing.
    let rows = [
        (
            "0 2,3 * * *",
            "2025-01-01T03:00:00Z",
            "2025-01-02T05:03:00Z",
            "2025-01-02T03:00:00Z",
        ),
        (
            "0 20,21 * * *",
            "2025-01-01T21:00:00Z",
            "2025-01-03T22:00:00Z",
            "2025-01-03T21:00:00Z",
        ),
        (
            "0 2 * * 1-5",
            "2025-01-03T02:00:00Z",
            "2025-01-07T12:00:00Z",
            "2025-01-07T02:00:00Z",
        ),
        (
            "*/20 8-17 * * 1-5",
            "2025-01-03T17:40:00Z",
            "2025-01-06T08:30:00Z",
            "2025-01-06T08:20:00Z",
        ),
        (
            "30 10,11,12 * * 1-5",
            "2025-01-03T10:30:00Z",
            "2025-01-06T11:00:00Z",
            "2025-01-06T10:30:00Z",
        ),
    ];
    for (schedule, last, back, newest) in rows {
        let mut world = World::unseen(schedule, "2024-12-01T00:00:00Z");
        world.seen.status.last_schedule_time = Some(crds::time::to_k8s(t(last)));
        world.at(back);
        assert_eq!(world.slots(), [newest], "{schedule}");
    }
}

#[test]
fn rule_25_beyond_the_deadline_a_slot_is_missed() {
    let mut world =
        World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.starting_deadline = Some(60));
    world.at("2025-01-01T01:02:00Z");
    assert_eq!(world.slots(), Vec::<String>::new());
    assert_eq!(world.missed()[0].3, "DeadlineExceeded");
    assert_eq!(world.seen.status.last_schedule_time, None);
    assert_eq!(
        (world.reasons(), world.wake),
        // When the object becomes overdue, which condition Ready says.
        (vec!["SlotsMissed"], Some(t("2025-01-01T01:10:01Z")))
    );
    let mut zero =
        World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.starting_deadline = Some(0));
    zero.live_to(t("2025-01-01T01:00:00Z"));
    assert_eq!(zero.slots(), ["2025-01-01T01:00:00Z"]);
    zero.at("2025-01-01T02:01:00Z");
    assert_eq!(zero.slots().len(), 1);
}

#[test]
fn rule_26_a_deadline_of_one_second_works() {
    let mut world =
        World::new("* * * * *", "2025-01-01T00:00:30Z").with(|s| s.starting_deadline = Some(1));
    world.now = t("2025-01-01T00:01:00Z") + Duration::milliseconds(1900);
    world.settle();
    assert_eq!(world.slots(), ["2025-01-01T00:01:00Z"]);
    world.now = t("2025-01-01T00:02:02Z");
    world.settle();
    assert_eq!(world.slots().len(), 1);
}

#[test]
fn rule_27_a_long_outage_within_a_long_deadline_runs_once() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z")
        .with(|s| s.starting_deadline = Some(86_400));
    world.at("2025-01-01T09:50:00Z");
    assert_eq!(world.slots(), ["2025-01-01T09:00:00Z"]);
    world.at("2025-01-01T09:51:00Z");
    assert_eq!(world.slots().len(), 1);
}

#[test]
fn rule_28_a_clock_that_moves_runs_nothing_twice() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z").finish_all();
    world.at("2025-01-01T00:40:00Z").at("2025-01-01T01:00:00Z");
    assert_eq!(world.slots().len(), 1);
    world.at("2025-06-01T00:00:00Z").finish_all();
    assert_eq!(world.slots().len(), 2);
    world.at("2025-01-01T02:00:00Z").at("2025-01-01T03:00:00Z");
    assert_eq!(world.slots().len(), 2, "silence until real time catches up");
    world.at("2025-06-01T01:00:00Z");
    assert_eq!(world.slots().len(), 3);
}

#[test]
fn rule_29_an_edit_starts_no_slot_older_than_itself() {
    let mut world = World::new("0 22 * * *", "2025-01-01T00:00:00Z");
    world.at("2025-01-01T22:00:00Z").finish_all();
    world.now = t("2025-01-02T12:00:00Z");
    world.seen.settings.schedule = Some("0 10 * * *".into());
    world.settle();
    assert_eq!(
        world.slots(),
        ["2025-01-01T22:00:00Z"],
        "10:00 was before the edit"
    );
    assert_eq!(world.wake, Some(t("2025-01-03T10:00:00Z")));
    world.live_to(t("2025-01-03T10:00:00Z"));
    assert_eq!(world.slots()[1], "2025-01-03T10:00:00Z");
}

#[test]
fn rule_29_slots_before_an_edit_are_accounted_under_the_old_schedule() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.now = t("2025-01-01T06:10:00Z");
    world.seen.settings.schedule = Some("0 0 * * *".into());
    let stamp = "2025-01-01T03:30:00Z".to_owned();
    world
        .seen
        .object
        .annotations
        .insert(crds::labels::SCHEDULE_SINCE.into(), stamp);
    world.settle();
    assert_eq!(world.slots(), Vec::<String>::new());
    assert_eq!(
        world.missed(),
        [(
            "2025-01-01T01:00:00Z".into(),
            "2025-01-01T03:00:00Z".into(),
            3,
            "Outage".into()
        )]
    );
    let since = world
        .seen
        .status
        .schedule
        .as_ref()
        .unwrap()
        .since
        .as_ref()
        .map(from_k8s);
    assert_eq!(since, Some(t("2025-01-01T03:30:00Z")));
}

#[test]
fn rule_30_resume_starts_the_newest_missed_slot() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.seen.settings.suspend = true;
    world.at("2025-01-01T00:40:00Z").at("2025-01-01T04:10:00Z");
    assert_eq!((world.slots().len(), world.wake), (0, None));
    world.seen.settings.suspend = false;
    world.at("2025-01-01T04:20:00Z");
    assert_eq!(world.slots(), ["2025-01-01T04:00:00Z"]);
    let three = (
        "2025-01-01T01:00:00Z".to_owned(),
        "2025-01-01T03:00:00Z".to_owned(),
        3,
        "Suspended".to_owned(),
    );
    assert_eq!(world.missed(), [three]);
    let mut late =
        World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.starting_deadline = Some(60));
    late.seen.settings.suspend = true;
    late.at("2025-01-01T00:40:00Z");
    late.seen.settings.suspend = false;
    late.at("2025-01-01T04:20:00Z");
    assert_eq!(
        late.slots(),
        Vec::<String>::new(),
        "the deadline forbids it"
    );
    assert_eq!(late.seen.status.totals.unwrap().missed, 4);
}

#[test]
fn rule_31_a_stored_schedule_that_does_not_parse_waits_for_an_edit() {
    let mut world = World::unseen("61 * * * *", "2025-01-01T00:00:00Z");
    world.seen.problems = vec![validate::Problem {
        path: "spec.schedule".into(),
        message: "minute 61".into(),
    }];
    world.at("2025-01-02T00:00:00Z");
    assert_eq!(
        (world.wake, world.condition("Accepted").1),
        (None, "InvalidSchedule".into())
    );
    world.seen.problems.clear();
    world.seen.settings.schedule = Some("0 * * * *".into());
    world.seen.object.generation = Some(2);
    world.at("2025-01-02T00:10:00Z");
    assert_eq!(
        (world.slots().len(), world.condition("Accepted").0),
        (0, "True".into())
    );
    world.live_to(t("2025-01-02T01:00:00Z"));
    assert_eq!(world.slots(), ["2025-01-02T01:00:00Z"]);
}

#[test]
fn rule_32_two_slots_of_one_minute_have_two_names() {
    let mut world = World::new("@every 30s", "2025-01-01T00:00:00Z");
    world.live_to(t("2025-01-01T00:01:59Z"));
    assert_eq!(world.slots().len(), 3);
    let names: std::collections::BTreeSet<&str> =
        world.started.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names.len(), 3);
}

#[test]
fn rule_33_a_handled_slot_is_left_alone() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z").at("2025-01-01T01:00:30Z");
    assert_eq!(world.started.len(), 1);
    let writes = world.writes;
    world.at("2025-01-01T01:10:00Z");
    assert_eq!(world.writes, writes, "nothing new is written");
}

#[test]
fn rule_34_concurrency_policies() {
    let mut allow = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    allow.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    assert_eq!(
        (allow.started.len(), allow.seen.status.active_count),
        (2, Some(2))
    );

    let mut forbid = World::new("0 * * * *", "2025-01-01T00:30:00Z")
        .with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    forbid.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    assert_eq!(forbid.started.len(), 1);
    assert_eq!(
        shown(forbid.newest()),
        (RunResult::Waiting, "ConcurrencyForbid")
    );
    assert_eq!(
        forbid.seen.status.last_schedule_time.as_ref().map(from_k8s),
        Some(t("2025-01-01T01:00:00Z"))
    );
    assert_eq!(forbid.reasons(), ["JobAlreadyActive"]);
    forbid.now = t("2025-01-01T02:20:00Z");
    forbid.finish_all();
    assert_eq!(
        forbid.slots()[1],
        "2025-01-01T02:00:00Z",
        "it starts when the active one has ended"
    );

    let mut replace = World::new("0 * * * *", "2025-01-01T00:30:00Z")
        .with(|s| s.concurrency = ConcurrencyPolicy::Replace);
    replace.at("2025-01-01T01:00:00Z");
    let first = replace.started[0].name.clone();
    replace.at("2025-01-01T02:00:00Z");
    assert_eq!(replace.deleted, [(first.clone(), true)]);
    assert_eq!(shown(replace.run(&first)), (RunResult::Failed, "Replaced"));
    assert_eq!(
        (replace.started.len(), replace.seen.status.active_count),
        (2, Some(1))
    );
    assert_eq!(
        replace.seen.status.consecutive_failures,
        Some(0),
        "being replaced is no failure of a backup"
    );
}

#[test]
fn rule_35_names_are_fixed_by_object_and_minute() {
    let mut world = World::new("0 0 29 10 *", "2023-10-28T12:00:00Z");
    world.at("2023-10-29T00:00:00Z");
    assert_eq!(world.started[0].name, "shop-28308960");
    assert_eq!(
        validate::name(&"x".repeat(53)).map(|p| p.path),
        Some("metadata.name".into())
    );
    assert_eq!(validate::name(&"x".repeat(52)), None);
}

#[test]
fn rule_36_the_slot_is_kept_in_the_schedules_zone() {
    let mut world = World::unseen("0 0 * * *", "2025-01-01T12:00:00Z")
        .with(|s| s.time_zone = Some("Asia/Shanghai".into()));
    world.live_to(t("2025-01-01T16:00:00Z"));
    assert_eq!(
        world.started[0].scheduled_at.as_deref(),
        Some("2025-01-02T00:00:00+08:00")
    );
}

#[test]
fn rule_37_a_foreign_job_of_the_name_is_left_alone_and_the_slot_still_runs() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    let slot = t("2025-01-01T01:00:00Z");
    world.taken = vec![names::slot_name("shop", "uid-shop", slot)];
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(
        world.started[0].name,
        names::hashed_slot_name("shop", "uid-shop", slot)
    );
    assert_eq!(world.deleted, []);
}

#[test]
fn rule_37_an_own_job_of_the_slot_is_adopted() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.now = t("2025-01-01T01:00:00Z");
    let plan = plan(&world.seen, world.now, &built);
    let Some(Step::CreateJob { seed, .. }) = plan.steps.first() else {
        panic!("{plan:?}")
    };
    let job = world.job_of(&seed.clone());
    world.seen.jobs.push(job);
    world.settle();
    assert_eq!((world.started.len(), world.seen.status.runs.len()), (0, 1));
    assert_eq!(world.seen.status.totals.unwrap().due, 1);
}

#[test]
fn rule_38_a_refused_creation_is_shown_once_and_tried_again() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.refuse = Some(("Forbidden", "exceeded quota: jobs"));
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(shown(world.newest()), (RunResult::Waiting, "FailedCreate"));
    assert!(world.newest().message.contains("exceeded quota"));
    world.at("2025-01-01T01:00:20Z").at("2025-01-01T01:00:40Z");
    assert_eq!(world.reasons(), ["FailedCreate"]);
    world.refuse = None;
    world.at("2025-01-01T01:05:00Z");
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
    assert_eq!(world.newest().result, RunResult::Running);
}

#[test]
fn rule_38_a_slot_that_could_not_be_created_has_failed_when_the_next_is_due() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.refuse = Some(("Invalid", "spec.template: bad"));
    world.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    let totals = world.seen.status.totals.unwrap();
    assert_eq!((totals.due, totals.failed), (2, 1));
    assert_eq!(world.seen.status.consecutive_failures, Some(1));
}

#[test]
fn rule_39_success_is_active_and_last_schedule_time() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(world.seen.status.active.len(), 1);
    assert_eq!(
        world.seen.status.last_schedule_time.as_ref().map(from_k8s),
        Some(t("2025-01-01T01:00:00Z"))
    );
    assert_eq!(
        world.seen.status.next_schedule_time.as_ref().map(from_k8s),
        Some(t("2025-01-01T02:00:00Z"))
    );
}

#[test]
fn rule_40_cleanup_goes_on_when_creation_is_refused() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.keep_good = Some(1));
    for hour in 1..4 {
        world.at(&format!("2025-01-01T0{hour}:00:00Z")).finish_all();
    }
    world.refuse = Some(("Forbidden", "exceeded quota"));
    world.seen.settings.keep_good = Some(0);
    world.deleted.clear();
    world.at("2025-01-01T04:00:00Z");
    assert_eq!(world.deleted.len(), 1, "a place is freed");
}

#[test]
fn rule_41_a_job_that_vanished_is_looked_for_live_then_failed() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z");
    world.seen.jobs.clear();
    let reads = world.live_reads;
    world.at("2025-01-01T01:01:00Z");
    assert_eq!(world.live_reads, reads + 1);
    assert_eq!(shown(world.newest()), (RunResult::Failed, "JobDeleted"));
    assert_eq!(
        (world.started.len(), world.seen.status.active_count),
        (1, Some(0))
    );
}

#[test]
fn rule_42_last_successful_time_is_the_newest_completion() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    let (first, second) = (world.started[0].name.clone(), world.started[1].name.clone());
    world.now = t("2025-01-01T02:30:00Z");
    world.finish(&second, true);
    world.now = t("2025-01-01T02:40:00Z");
    world.finish(&first, false);
    assert_eq!(
        world
            .seen
            .status
            .last_successful_time
            .as_ref()
            .map(from_k8s),
        Some(t("2025-01-01T02:30:00Z"))
    );
    assert_eq!(world.seen.status.last_result.as_deref(), Some("Failed"));
}

#[test]
fn rule_43_history_keeps_the_newest_of_each_kind() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| {
        s.keep_good = Some(2);
        s.keep_failed = Some(0);
    });
    for hour in 1..7 {
        world.at(&format!("2025-01-01T0{hour}:00:00Z"));
        let name = world.started.last().unwrap().name.clone();
        world.finish(&name, hour != 3);
    }
    world.live_to(t("2025-01-01T06:30:00Z"));
    let kept: Vec<&str> = world.seen.jobs.iter().map(|j| &*j.name).collect();
    assert_eq!(
        kept,
        [
            world.started[4].name.as_str(),
            world.started[5].name.as_str()
        ]
    );
    assert!(world.deleted.iter().all(|(_, foreground)| !foreground));
}

#[test]
fn rule_43_start_times_order_history_and_none_is_newest() {
    let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z").with(|s| s.keep_good = Some(1));
    for (name, started) in [
        ("b", Some("2025-01-01T01:00:00Z")),
        ("a", Some("2025-01-01T01:00:00Z")),
        ("c", None),
    ] {
        let seed = Seed {
            request_id: Some(name.into()),
            ..Seed::new(name, Trigger::Manual)
        };
        let mut job = world.job_of(&seed);
        job.started = started.map(t);
        job.outcome = JobOutcome::Complete {
            at: t("2025-01-01T01:10:00Z"),
        };
        world.seen.jobs.push(job);
    }
    world.at("2025-01-01T02:00:00Z");
    let names: Vec<&str> = world.deleted.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn rule_43_cleanup_waits_for_the_outcome_and_the_fence_and_goes_on_while_suspended() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.keep_good = Some(0));
    world.at("2025-01-01T01:00:00Z").finish_all();
    assert_eq!(world.deleted, []);
    assert_eq!(world.wake, Some(t("2025-01-01T01:01:00Z")));
    world.seen.settings.suspend = true;
    world.at("2025-01-01T01:00:59Z");
    assert_eq!(world.deleted, []);
    world.at("2025-01-01T01:01:00Z");
    assert_eq!(world.deleted.len(), 1);
    assert_eq!(world.seen.status.totals.unwrap().succeeded, 1);
}

#[test]
fn rule_44_an_object_being_deleted_starts_nothing() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z");
    world.seen.object.deleting = true;
    world.at("2025-01-01T02:00:00Z");
    assert_eq!(world.started.len(), 1);
    world.finish_all();
    assert_eq!(
        world.newest().result,
        RunResult::Succeeded,
        "status is still tended"
    );
}

#[test]
fn rule_45_names_of_two_objects_of_one_name_differ_where_they_may() {
    let slot = t("2025-01-01T01:00:30Z");
    assert_ne!(
        names::slot_name("shop", "uid-a", slot),
        names::slot_name("shop", "uid-b", slot)
    );
    assert_ne!(
        names::manual_name("shop", "uid-a", "1"),
        names::manual_name("shop", "uid-b", "1")
    );
    // The predecessor's request is not carried out by its successor.
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.ask(Action::Backup, "old", |r| {
        r.at = "2024-12-31T23:00:00Z".into()
    });
    assert_eq!(world.started.len(), 0);
    assert!(
        world.seen.status.requests[0]
            .message
            .contains("older than this object")
    );
}

#[test]
fn rule_46_nothing_is_remembered_but_jobs_and_status() {
    // The POST took effect, nothing else did; a new process finds the Job and enters it.
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.now = t("2025-01-01T01:00:00Z");
    let Some(Step::CreateJob { seed, .. }) =
        plan(&world.seen, world.now, &built).steps.first().cloned()
    else {
        panic!()
    };
    let job = world.job_of(&seed);
    world.seen.jobs.push(job);
    world.seen.leading_since = t("2025-01-01T01:00:05Z");
    world.at("2025-01-01T01:00:06Z");
    assert_eq!(
        (world.started.len(), world.seen.status.totals.unwrap().due),
        (0, 1)
    );
}

#[test]
fn rule_46_a_slot_older_than_the_process_is_decided_on_live_reads() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.seen.leading_since = t("2025-01-01T01:00:05Z");
    let reads = world.live_reads;
    world.at("2025-01-01T01:00:06Z");
    assert_eq!((world.started.len(), world.live_reads), (1, reads + 1));
    world.at("2025-01-01T02:00:00Z");
    assert_eq!((world.started.len(), world.live_reads), (2, reads + 1));
}

#[test]
fn rule_47_a_start_is_planned_at_the_slot_itself() {
    let world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    assert_eq!(world.wake, Some(t("2025-01-01T01:00:00Z")));
}

#[test]
fn rule_48_one_event_a_slot() {
    let mut world =
        World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.starting_deadline = Some(10));
    world
        .at("2025-01-01T01:01:00Z")
        .at("2025-01-01T01:02:00Z")
        .at("2025-01-01T01:03:00Z");
    assert_eq!(world.reasons(), ["SlotsMissed"]);
    world.at("2025-01-01T02:00:00Z").finish_all();
    assert_eq!(world.reasons(), ["SlotsMissed", "BackupSucceeded"]);
    let subjects: Vec<&str> = world.events.iter().map(|e| e.subject.as_str()).collect();
    assert_eq!(subjects[0], "2025-01-01T01:00:00Z");
}

#[test]
fn rule_49_image_pull_trouble_does_not_pile_up() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z")
        .with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    world.now = t("2025-01-01T01:00:00Z");
    world.settle();
    let uid = world.seen.jobs[0].uid.clone();
    world.seen.jobs[0].ran = false;
    world.seen.pods.push(PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid: uid,
        created: world.now,
        started: false,
        trouble: Some((
            "ImagePullBackOff".into(),
            "Back-off pulling image \"nope\"".into(),
        )),
        ended: None,
        failures: 0,
        held: None,
        gone: false,
    });
    world.settle();
    assert_eq!(world.wake, Some(t("2025-01-01T01:10:00Z")));
    world.at("2025-01-01T01:10:00Z");
    assert_eq!(
        shown(world.newest()),
        (RunResult::Failed, "ImagePullBackOff")
    );
    assert!(world.newest().message.contains("not running within 600 s"));
    assert_eq!(world.deleted.len(), 1);
}
