//! Reports from the field about schedules and zones, by their number in the collection of cases.
//! Instants were computed with the real Go code of robfig/cron v3.0.1.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use crds::schedule::{
    DstEffect, DstPolicy, Schedule, ScheduleError, parse_go_duration, parse_zone,
};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn schedule(text: &str, zone: &str) -> Schedule {
    Schedule::parse(text, Some(zone)).unwrap()
}

/// The next slots after `start`, which is also the anchor.
fn next(schedule: &Schedule, start: &str, count: usize) -> Vec<String> {
    let start = at(start);
    let mut found = Vec::new();
    let mut from = start;
    while found.len() < count {
        let Some(slot) = schedule.next_after(from, start) else {
            break;
        };
        found.push(slot.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        from = slot;
    }
    found
}

fn refusal(text: &str, zone: Option<&str>) -> String {
    Schedule::parse(text, zone).expect_err(text).to_string()
}

#[test]
fn c01_overlap_runs_twice_by_default() {
    let daily = schedule("0 2 * * *", "Europe/Berlin");
    let want = [
        "2023-10-29T00:00:00Z",
        "2023-10-29T01:00:00Z",
        "2023-10-30T01:00:00Z",
    ];
    assert_eq!(next(&daily, "2023-10-28T12:00:00Z", 3), want);
    assert_eq!(at(want[0]).timestamp() / 60, 28_308_960);
    assert_eq!(at(want[1]).timestamp() / 60, 28_309_020);
}

#[test]
fn c01_overlap_runs_the_first_time_only_under_once() {
    let daily = schedule("0 2 * * *", "Europe/Berlin").with_dst_policy(DstPolicy::Once);
    let want = ["2023-10-29T00:00:00Z", "2023-10-30T01:00:00Z"];
    assert_eq!(next(&daily, "2023-10-28T12:00:00Z", 2), want);
    // Also from a start between the two.
    assert_eq!(next(&daily, "2023-10-29T00:30:00Z", 1), want[1..]);
    let (from, to) = (at("2023-10-28T12:00:00Z"), at("2023-10-29T12:00:00Z"));
    assert_eq!(daily.count_in(from, to, from).count, 1);
    assert_eq!(daily.newest_in(from, to, from), Some(at(want[0])));
}

#[test]
fn c02_gap_is_a_day_without_a_run() {
    let daily = schedule("0 2 * * *", "America/New_York");
    let want = [
        "2025-03-10T06:00:00Z",
        "2025-03-11T06:00:00Z",
        "2025-03-12T06:00:00Z",
    ];
    assert_eq!(next(&daily, "2025-03-08T12:00:00Z", 3), want);
    assert_eq!(next(&daily, "2025-03-09T06:30:00Z", 3), want);
}

#[test]
fn c02_gap_runs_right_after_it_under_once() {
    let daily = schedule("30 2 * * *", "America/New_York").with_dst_policy(DstPolicy::Once);
    let want = ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"];
    assert_eq!(next(&daily, "2025-03-08T12:00:00Z", 2), want);
    assert_eq!(next(&daily, "2025-03-09T07:00:00Z", 1), want[1..]);
    // Several times in the gap, and one at its end, are one run.
    let more = schedule("*/20 2,3 * * *", "America/New_York").with_dst_policy(DstPolicy::Once);
    let want = [
        "2025-03-09T07:00:00Z",
        "2025-03-09T07:20:00Z",
        "2025-03-09T07:40:00Z",
    ];
    assert_eq!(next(&more, "2025-03-09T05:00:00Z", 3), want);
    let (from, to) = (at("2025-03-09T05:00:00Z"), at("2025-03-09T12:00:00Z"));
    assert_eq!(more.count_in(from, to, from).count, 3);
}

#[test]
fn c03_overlap_loses_no_hour_of_subdaily_schedules() {
    for policy in [DstPolicy::Kubernetes, DstPolicy::Once] {
        let hourly = schedule("0 * * * *", "America/Los_Angeles").with_dst_policy(policy);
        let want = [
            "2025-11-02T08:00:00Z",
            "2025-11-02T09:00:00Z",
            "2025-11-02T10:00:00Z",
        ];
        assert_eq!(next(&hourly, "2025-11-02T07:30:00Z", 3), want);
        let quarterly = schedule("*/15 * * * *", "America/Los_Angeles").with_dst_policy(policy);
        let want = [
            "2025-11-02T08:45:00Z",
            "2025-11-02T09:00:00Z",
            "2025-11-02T09:15:00Z",
        ];
        assert_eq!(next(&quarterly, "2025-11-02T08:40:00Z", 3), want);
    }
}

#[test]
fn c04_seven_is_not_sunday() {
    assert_eq!(
        refusal("0 0 * * 7", None),
        "day of week 7 is outside 0-6 (field 5); Sunday is 0 or SUN"
    );
    for text in ["0 0 * * 0-7", "0 0 * * 1-7", "0 0 * * 0,7"] {
        let message = refusal(text, None);
        assert!(
            message.contains("day of week 7") && message.contains("0-6"),
            "{message}"
        );
    }
    let (number, name) = (schedule("0 0 * * 0", "UTC"), schedule("0 0 * * SUN", "UTC"));
    let start = "2025-01-15T10:30:00Z";
    assert_eq!(next(&number, start, 3), next(&name, start, 3));
}

#[test]
fn c05_weekdays_are_not_shifted() {
    let start = "2025-01-15T10:30:00Z";
    let mondays = [
        "2025-01-20T03:00:00Z",
        "2025-01-27T03:00:00Z",
        "2025-02-03T03:00:00Z",
    ];
    assert_eq!(next(&schedule("0 3 * * 1", "UTC"), start, 3), mondays);
    let sundays = [
        "2025-01-19T03:00:00Z",
        "2025-01-26T03:00:00Z",
        "2025-02-02T03:00:00Z",
    ];
    assert_eq!(next(&schedule("0 3 * * 0", "UTC"), start, 3), sundays);
}

#[test]
fn c06_five_fields_never_six() {
    let want = [
        "2025-01-16T01:00:00Z",
        "2025-01-17T01:00:00Z",
        "2025-01-18T01:00:00Z",
    ];
    assert_eq!(
        next(&schedule("0 1 * * *", "UTC"), "2025-01-15T10:30:00Z", 3),
        want
    );
    for (text, found) in [("0 0 1 * * *", 6), ("0 0 12 * * * 2025", 7)] {
        let message = refusal(text, None);
        assert!(
            message.starts_with(&format!("expected exactly 5 fields, found {found}")),
            "{message}"
        );
    }
}

#[test]
fn c07_dates_that_never_come() {
    for text in [
        "0 0 30 2 *",
        "0 0 31 4 *",
        "0 0 31 2,4,6,9,11 *",
        ", * * * *",
        "0 0 * , *",
    ] {
        let never = schedule(text, "UTC");
        assert!(never.never_fires(), "{text}");
        let (from, to) = (at("2025-01-15T10:30:00Z"), at("2035-01-15T10:30:00Z"));
        assert_eq!(never.next_after(from, from), None, "{text}");
        assert_eq!(never.newest_in(from, to, from), None, "{text}");
        assert_eq!(never.count_in(from, to, from).count, 0, "{text}");
        assert!(never.describe().starts_with("never"), "{text}");
    }
    for text in [
        "0 0 29 2 *",
        "0 0 30 2 1",
        "* * * * *",
        "@every 1h",
        "0 0 31 */2 *",
        "0 0 , * 1",
    ] {
        assert!(!schedule(text, "UTC").never_fires(), "{text}");
    }
}

#[test]
fn c08_day_of_month_and_day_of_week_together() {
    let stepped = schedule("0 0 */2 * 3", "Asia/Shanghai");
    let want = [
        "2024-08-16T16:00:00Z",
        "2024-08-18T16:00:00Z",
        "2024-08-20T16:00:00Z",
    ];
    assert_eq!(next(&stepped, "2024-08-16T04:00:00Z", 3), want);
    let either = schedule("0 0 1-7 * 1", "UTC");
    let want = [
        "2025-01-20T00:00:00Z",
        "2025-01-27T00:00:00Z",
        "2025-02-01T00:00:00Z",
    ];
    assert_eq!(next(&either, "2025-01-15T10:30:00Z", 3), want);
}

#[test]
fn c10_c11_zone_inside_the_schedule_is_refused_and_points_to_time_zone() {
    for text in [
        "TZ=UTC",
        "CRON_TZ=UTC",
        "TZ=",
        "CRON_TZ=Etc/UTC */20 * * * *",
        "TZ=America/New_York 0 9 * * *",
        "0 0 * * * TZ=UTC",
    ] {
        assert_eq!(
            Schedule::parse(text, None),
            Err(ScheduleError::ZoneInSchedule)
        );
        assert!(refusal(text, None).contains("timeZone"));
    }
}

#[test]
fn c12_zone_data_is_compiled_in() {
    let singapore = schedule("0 4 * * 1-5", "Asia/Singapore");
    assert_eq!(
        next(&singapore, "2025-01-15T10:30:00Z", 1),
        ["2025-01-15T20:00:00Z"]
    );
}

#[test]
fn c13_zone_names() {
    for name in [
        "",
        "Local",
        "local",
        "europe/berlin",
        "Europe/Pariss",
        "UTC+2",
        "+02:00",
        "../etc/passwd",
        "Europe/Berlin ",
    ] {
        let message = refusal("0 0 * * *", Some(name));
        assert!(message.contains(name), "{name:?}: {message}");
    }
    for name in ["Etc/UTC", "Europe/Berlin", "EST5EDT", "Etc/GMT+5"] {
        assert_eq!(schedule("0 0 * * *", name).zone_name(), name);
    }
    let west = schedule("0 0 * * *", "Etc/GMT+5");
    assert_eq!(
        next(&west, "2025-01-15T10:30:00Z", 1),
        ["2025-01-16T05:00:00Z"]
    );
}

#[test]
fn c13_unknown_zones_come_with_the_nearest_names() {
    let hint = |name| parse_zone(name).unwrap_err().to_string();
    assert_eq!(
        hint("europe/berlin"),
        "unknown time zone \"europe/berlin\"; did you mean \"Europe/Berlin\"?"
    );
    for (name, meant) in [
        ("Europe/Pariss", "\"Europe/Paris\""),
        ("Europe/Berlin ", "\"Europe/Berlin\""),
        ("Europe/Kiew", "\"Europe/Kiev\""),
        ("Berlin", "\"Europe/Berlin\""),
        ("America/New York", "\"America/New_York\""),
        ("Asia/Berlin", "\"Europe/Berlin\""),
        ("utc", "\"UTC\""),
        ("UTC+2", "\"Etc/GMT-2\""),
        ("+02:00", "\"Etc/GMT-2\""),
        ("-05:00", "\"Etc/GMT+5\""),
        ("UTC+0", "\"Etc/UTC\""),
    ] {
        assert!(hint(name).contains(meant), "{}", hint(name));
    }
    for name in [
        "Nowhere/Atall",
        "../etc/passwd",
        "Etc/GMT+25",
        "\u{1F600}",
        "+",
        "utc+é",
    ] {
        assert!(hint(name).contains("unknown time zone"), "{}", hint(name));
    }
}

#[test]
fn c14_every_counts_from_its_anchor_and_restarts_change_nothing() {
    let every = schedule("@every 6h", "UTC");
    let created = at("2025-01-15T00:10:00Z");
    let want = [
        "2025-01-15T06:10:00Z",
        "2025-01-15T12:10:00Z",
        "2025-01-15T18:10:00Z",
    ];
    assert_eq!(next(&every, "2025-01-15T00:10:00Z", 3), want);
    for (restart, slot) in [
        ("2025-01-15T03:00:00Z", want[0]),
        ("2025-01-15T07:00:00Z", want[1]),
    ] {
        assert_eq!(every.next_after(at(restart), created), Some(at(slot)));
    }
    // The last run as the anchor gives the same series.
    assert_eq!(
        every.next_after(at("2025-01-15T07:00:00Z"), at(want[0])),
        Some(at(want[1]))
    );
    assert_eq!(
        every.newest_in(created, at("2025-01-15T13:00:00Z"), created),
        Some(at(want[1]))
    );
    assert_eq!(
        every.newest_in(created, at("2025-01-15T06:09:59Z"), created),
        None
    );
    // Nothing is due at the anchor or before it.
    assert_eq!(
        every.next_after(at("2024-01-01T00:00:00Z"), created),
        Some(at(want[0]))
    );
    assert_eq!(every.is_every(), Some(Duration::from_secs(21_600)));
}

#[test]
fn c16_a_day_is_not_24_hours() {
    let weekly = schedule("0 12 * * 0", "Europe/Berlin");
    let want = [
        "2022-03-27T10:00:00Z",
        "2022-04-03T10:00:00Z",
        "2022-04-10T10:00:00Z",
    ];
    assert_eq!(next(&weekly, "2022-03-24T11:00:00Z", 3), want);
}

#[test]
fn c17_month_skipped_into_another_offset() {
    let minutely = schedule("* * * */3 *", "America/New_York");
    let want = [
        "2015-04-01T04:00:00Z",
        "2015-04-01T04:01:00Z",
        "2015-04-01T04:02:00Z",
    ];
    assert_eq!(next(&minutely, "2015-02-15T05:00:00Z", 3), want);
}

#[test]
fn c18_the_search_ends_where_midnight_is_missing() {
    let twice = schedule("0 12 11,26 * *", "America/Sao_Paulo");
    let want = [
        "2014-10-26T14:00:00Z",
        "2014-11-11T14:00:00Z",
        "2014-11-26T14:00:00Z",
    ];
    assert_eq!(next(&twice, "2014-10-12T03:00:00Z", 3), want);
}

#[test]
fn c21_the_wall_clock_decides() {
    let beirut = schedule("0 9 * * 0", "Asia/Beirut");
    assert_eq!(
        next(&beirut, "2025-03-26T10:00:00Z", 1),
        ["2025-03-30T06:00:00Z"]
    );
    let azores = schedule("0 9 * * 6", "Atlantic/Azores");
    let want = ["2025-03-29T10:00:00Z", "2025-04-05T09:00:00Z"];
    assert_eq!(next(&azores, "2025-03-29T05:00:00Z", 2), want);
    let cairo = schedule("0 9 * * 5", "Africa/Cairo");
    assert_eq!(
        next(&cairo, "2025-04-21T15:00:00Z", 1),
        ["2025-04-25T06:00:00Z"]
    );
    // A civil day that is missing as a whole: 30 December 2011 in Apia, a Friday.
    let apia = schedule("0 9 30 * 5", "Pacific/Apia");
    let want = ["2011-12-23T19:00:00Z", "2012-01-05T19:00:00Z"];
    assert_eq!(next(&apia, "2011-12-22T12:00:00Z", 2), want);
    let once = apia.with_dst_policy(DstPolicy::Once);
    let want = [
        "2011-12-23T19:00:00Z",
        "2011-12-30T10:00:00Z",
        "2012-01-05T19:00:00Z",
    ];
    assert_eq!(next(&once, "2011-12-22T12:00:00Z", 3), want);
}

#[test]
fn c22_no_zone_is_utc() {
    let schedule = Schedule::parse("0 3 * * *", None).unwrap();
    assert_eq!(schedule.zone_name(), "UTC");
    assert_eq!(
        next(&schedule, "2025-01-15T10:30:00Z", 1),
        ["2025-01-16T03:00:00Z"]
    );
}

/// The whole text, since people read it in a condition.
#[test]
fn messages_name_field_value_limit_and_remedy() {
    for (text, want) in [
        (
            "60 * * * *",
            "minute 60 is outside 0-59 (field 1); use numbers 0-59",
        ),
        (
            "0 0 0 * *",
            "day of month 0 is outside 1-31 (field 3); use numbers 1-31",
        ),
        (
            "0 0 1-32 * *",
            "day of month 32 in \"1-32\" is outside 1-31 (field 3); use numbers 1-31",
        ),
        (
            "0 0 * * monday",
            "day of week \"monday\" is not a value (field 5); use 0-6 or SUN-SAT (three letters)",
        ),
        (
            "0 0 L * *",
            "day of month \"L\" is not a value (field 3); use numbers 1-31",
        ),
        (
            "0 0 * * fri-mon",
            "day of week range \"fri-mon\" starts beyond its end, 5 > 1 (field 5); \
             ranges do not wrap around: write two, joined by a comma",
        ),
        (
            "*/0 * * * *",
            "minute step \"0\" in \"*/0\" is not a positive whole number (field 1); \
             write a step such as */5",
        ),
        (
            "1-2-3 * * * *",
            "minute \"1-2-3\" has more than one hyphen (field 1); write a range such as 0-59",
        ),
        (
            "1/2/3 * * * *",
            "minute \"1/2/3\" has more than one slash (field 1); write a step such as */5",
        ),
        (
            "@every 5",
            "invalid duration \"5\": a unit is missing; \
             write numbers with units h, m or s and no blanks, such as 1h30m",
        ),
        (
            "",
            "the schedule is empty; write five fields such as \"0 3 * * *\", or @daily",
        ),
    ] {
        assert_eq!(refusal(text, None), want);
    }
    let long = refusal(&"x".repeat(100_000), None);
    assert!(long.len() < 300, "{long}");
    let long = refusal(&format!("{} * * * *", "9".repeat(100_000)), None);
    assert!(long.len() < 300, "{long}");
}

#[test]
fn notes_tell_what_a_zone_change_does() {
    let (from, to) = (at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    let notes = |text: &str, zone: &str, policy| -> Vec<String> {
        let schedule = schedule(text, zone).with_dst_policy(policy);
        schedule
            .dst_notes(from, to)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        notes("30 2 * * *", "Europe/Berlin", DstPolicy::Kubernetes),
        [
            "2025-03-30 02:30 does not exist in Europe/Berlin (clocks go forward): skipped",
            "2025-10-26 02:30 comes twice in Europe/Berlin (clocks go back): runs twice",
        ]
    );
    assert_eq!(
        notes("0,30 2 * * *", "Europe/Berlin", DstPolicy::Once),
        [
            "2025-03-30 02:00 and 1 more do not exist in Europe/Berlin (clocks go forward): \
             runs once, at 03:00",
            "2025-10-26 02:00 and 1 more come twice in Europe/Berlin (clocks go back): \
             runs the first time only",
        ]
    );
    for (text, zone) in [
        ("0 3 * * *", "Europe/Berlin"),
        ("30 2 * * *", "UTC"),
        ("0 * * * *", "Europe/Berlin"),
        ("@every 1h", "Europe/Berlin"),
        ("30 2 * * 1", "Europe/Berlin"),
    ] {
        assert_eq!(
            notes(text, zone, DstPolicy::Kubernetes),
            Vec::<String>::new(),
            "{text} {zone}"
        );
    }
    let schedule = schedule("0 2 * * *", "Europe/Berlin");
    let notes = schedule.dst_notes(from, to);
    assert_eq!(notes[0].at, at("2025-03-30T01:00:00Z"));
    assert_eq!(notes[0].effect, DstEffect::Skipped);
    assert_eq!(notes[1].at, at("2025-10-26T01:00:00Z"));
    assert_eq!(notes[1].effect, DstEffect::Twice);
}

#[test]
fn schedules_in_words() {
    for (text, want) in [
        ("0 2 * * *", "at 02:00 every day"),
        ("@daily", "at 00:00 every day"),
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("3/20 * * * *", "every 20 minutes"),
        (
            "*/7 * * * *",
            "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
        ),
        ("@hourly", "every hour"),
        ("7 * * * *", "at minute 7 of every hour"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00 every day"),
        (
            "0 */2 * * *",
            "every 2 hours from 00:00 to 22:00, every day",
        ),
        (
            "0 9-17 * * 1-5",
            "every hour from 09:00 to 17:00, every Monday to Friday",
        ),
        (
            "*/15 8-17 * * MON-FRI",
            "every 15 minutes from 08:00 to 17:45, every Monday to Friday",
        ),
        ("0 0 * * 0", "at 00:00 every Sunday"),
        (
            "0 22 * * 1,3,5",
            "at 22:00 every Monday, Wednesday and Friday",
        ),
        ("@monthly", "at 00:00 on day 1 of every month"),
        ("30 1 1,15 * *", "at 01:30 on days 1 and 15 of every month"),
        ("@yearly", "at 00:00 on 1 January"),
        ("0 3 * 7 *", "at 03:00 every day in July"),
        ("0 3 1 1,7 *", "at 03:00 on day 1 of January and July"),
        (
            "0 0 13 * 5",
            "at 00:00 on day 13 of every month and every Friday",
        ),
        ("0 0 1-31 * 1", "at 00:00 every day"),
        ("0 0 13 * 0-6", "at 00:00 every day"),
        ("*/5 * * * 1", "every 5 minutes, every Monday"),
        (
            "5,10,33 1,5,9 * * *",
            "at minutes 5, 10 and 33 of hours 1, 5 and 9 every day",
        ),
        ("@every 6h", "every 6 hours"),
        ("@every 1h", "every hour"),
        ("@every 1h30m", "every 1 hour 30 minutes"),
        ("@every 1s", "every second"),
        ("0 0 30 2 *", "never (no such date comes)"),
    ] {
        assert_eq!(schedule(text, "UTC").describe(), want, "{text}");
    }
}

/// Go's own rules, from the documentation of `time.ParseDuration`.
#[test]
fn go_durations() {
    for (text, want) in [
        ("0", 0),
        ("-0", 0),
        ("1h", 3_600_000_000_000),
        ("1.5h", 5_400_000_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("-1.5s", -1_500_000_000),
        ("2h45m30.5s", 9_930_500_000_000),
        ("1us", 1_000),
        ("1\u{b5}s", 1_000),
        ("1\u{3bc}s", 1_000),
        ("100000000000000000000s", -1),
        ("9223372036854775807ns", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
        ("0.9999999999999999999999s", 999_999_999),
    ] {
        match want {
            -1 => assert!(parse_go_duration(text).is_err(), "{text}"),
            want => assert_eq!(parse_go_duration(text), Ok(want), "{text}"),
        }
    }
    for text in [
        "",
        "-",
        "+",
        "1",
        "1.",
        ".",
        ".s",
        "1d",
        "h",
        "1h 30m",
        "9223372036854775808ns",
        "é",
    ] {
        assert!(parse_go_duration(text).is_err(), "{text}");
    }
}

/// Far ends of time neither panic nor take long.
#[test]
fn extremes() {
    let (min, max) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    let now = at("2025-01-15T10:30:00Z");
    let started = Instant::now();
    for text in [
        "* * * * *",
        "0 0 29 2 *",
        "0 0 30 2 *",
        "@every 1s",
        "@every 2562047h",
        "30 2 * * *",
    ] {
        for zone in [
            "UTC",
            "Europe/Berlin",
            "Pacific/Kiritimati",
            "Pacific/Pago_Pago",
        ] {
            for policy in [DstPolicy::Kubernetes, DstPolicy::Once] {
                let schedule = schedule(text, zone).with_dst_policy(policy);
                for (a, b, anchor) in [
                    (min, max, now),
                    (max, min, min),
                    (now, max, max),
                    (min, now, min),
                ] {
                    let _ = schedule.next_after(a, anchor);
                    let _ = schedule.newest_in(a, b, anchor);
                    let _ = schedule.count_in(a, b, anchor);
                    let _ = schedule.dst_notes(a, b);
                }
            }
        }
    }
    assert!(started.elapsed() < Duration::from_secs(60));
}

/// A ten-year outage of a minutely schedule is counted by arithmetic.
#[test]
fn ten_years_of_minutes() {
    let minutely = schedule("* * * * *", "Europe/Berlin");
    let (from, to) = (at("2015-01-01T00:00:00Z"), at("2025-01-01T00:00:00Z"));
    let count = minutely.count_in(from, to, from);
    assert_eq!(count.count, 3653 * 24 * 60);
    assert_eq!(
        (count.first, count.last),
        (Some(at("2015-01-01T00:01:00Z")), Some(to))
    );
}

/// The horizon of Kubernetes ends the search for the next slot, not what an interval holds.
#[test]
fn the_pause_of_leap_days() {
    let leap = schedule("0 0 29 2 *", "America/New_York");
    let (from, to) = (at("2096-03-01T12:00:00Z"), at("2110-01-01T00:00:00Z"));
    assert_eq!(leap.next_after(from, from), None);
    let count = leap.count_in(from, to, from);
    assert_eq!(count.count, 2);
    assert_eq!(count.first, Some(at("2104-02-29T05:00:00Z")));
    assert_eq!(count.last, Some(at("2108-02-29T05:00:00Z")));
    assert_eq!(
        leap.newest_in(from, at("2107-01-01T00:00:00Z"), from),
        count.first
    );
}

/// The last minute before a change and the first after it, looked for from both sides.
#[test]
fn slots_at_the_edges_of_a_change() {
    let zone = "America/New_York";
    // Forward: 2025-03-09T07:00Z, 01:59 is followed by 03:00. Back: 2025-11-02T06:00Z.
    for (text, after, until, slots) in [
        (
            "59 1 * * *",
            "2025-03-08T12:00:00Z",
            "2025-03-09T12:00:00Z",
            &["2025-03-09T06:59:00Z"][..],
        ),
        (
            "0 3 * * *",
            "2025-03-08T12:00:00Z",
            "2025-03-09T12:00:00Z",
            &["2025-03-09T07:00:00Z"],
        ),
        (
            "0 3 * * *",
            "2025-03-09T06:59:59Z",
            "2025-03-09T07:00:00Z",
            &["2025-03-09T07:00:00Z"],
        ),
        (
            "0 3 * * *",
            "2025-03-09T07:00:00Z",
            "2025-03-09T12:00:00Z",
            &[],
        ),
        (
            "59 1 * * *",
            "2025-11-02T00:00:00Z",
            "2025-11-02T12:00:00Z",
            &["2025-11-02T05:59:00Z", "2025-11-02T06:59:00Z"],
        ),
        (
            "59 1 * * *",
            "2025-11-02T00:00:00Z",
            "2025-11-02T06:58:59Z",
            &["2025-11-02T05:59:00Z"],
        ),
        (
            "0 1 * * *",
            "2025-11-02T04:59:59Z",
            "2025-11-02T06:00:00Z",
            &["2025-11-02T05:00:00Z", "2025-11-02T06:00:00Z"],
        ),
        (
            "0 1 * * *",
            "2025-11-02T05:00:00Z",
            "2025-11-02T05:59:59Z",
            &[],
        ),
    ] {
        let schedule = schedule(text, zone);
        let (after, until) = (at(after), at(until));
        let slots: Vec<DateTime<Utc>> = slots.iter().map(|slot| at(slot)).collect();
        let count = schedule.count_in(after, until, after);
        assert_eq!(
            count.count,
            i64::try_from(slots.len()).unwrap(),
            "{text} {after}"
        );
        assert_eq!(
            (count.first, count.last),
            (slots.first().copied(), slots.last().copied())
        );
        assert_eq!(
            schedule.newest_in(after, until, after),
            slots.last().copied()
        );
        let next = schedule
            .next_after(after, after)
            .filter(|next| *next <= until);
        assert_eq!(next, slots.first().copied());
    }
}
