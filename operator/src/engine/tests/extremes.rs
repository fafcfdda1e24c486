//! No number and no time that an object can hold ends the engine.

use crds::binlogs::{BinlogStatus, BinlogTotals, OpenPull, Window};
use crds::parts::{Notification, NotificationEvent, NotificationType, SecretKeyRef};
use crds::status::{MissedSlots, ObservedSchedule, Totals};
use crds::time::to_k8s;

use super::super::overdue;
use super::*;
use crate::metrics::{Live, Row, Series};

const NUMBERS: [i64; 9] = [
    i64::MIN,
    -1,
    0,
    1,
    // What ended the process: seconds that a time can just be moved by.
    8_208_468_115_199,
    i64::MAX / 1000,
    i64::MAX / 1000 + 1,
    i64::MAX - 1,
    i64::MAX,
];

fn small(number: i64) -> i32 {
    number
        .clamp(i32::MIN.into(), i32::MAX.into())
        .try_into()
        .unwrap()
}

fn receivers() -> Vec<Notification> {
    use NotificationEvent::{Failure, Missed, Overdue};
    vec![Notification {
        on: vec![Failure, Missed, Overdue],
        ..Notification::new(NotificationType::Webhook, SecretKeyRef::default())
    }]
}

/// Plans, and shows the object to Prometheus, in every stage of its life.
fn lives(seen: &Observed, now: DateTime<Utc>) {
    for suspend in [false, true] {
        let mut seen = seen.clone();
        seen.settings.suspend = suspend;
        for _ in 0..4 {
            seen.live = true;
            let plan = plan(&seen, now, &built);
            seen.status = plan.status;
        }
        let spec = serde_json::Value::Null;
        let series = Series::of(
            &seen.object,
            &spec,
            Some(&seen.settings),
            true,
            &seen.status,
        );
        drop(Row::new(
            series.into(),
            Live::of(&seen.jobs, &seen.pods),
            now,
        ));
    }
}

fn each_schedule() -> [&'static str; 5] {
    [
        "0 0 1 1 *",
        "* * * * *",
        "@every 1s",
        "@every 2540400h",
        "0 0 30 2 *",
    ]
}

#[test]
fn o1_no_number_in_a_spec_ends_the_engine() {
    for schedule in each_schedule() {
        for number in NUMBERS {
            let mut seen = observed(schedule, "2025-01-01T00:30:00Z");
            let change: [fn(&mut Settings, i64); 5] = [
                |s, n| s.startup_deadline = n,
                |s, n| s.jitter_seconds = n,
                |s, n| s.starting_deadline = Some(n),
                |s, n| {
                    (s.keep_good, s.keep_failed) = (Some(small(n)), Some(small(n)));
                    s.verify_every = Some(small(n));
                },
                |s, n| {
                    (s.startup_deadline, s.jitter_seconds) = (n, n);
                    s.starting_deadline = Some(n);
                },
            ];
            for change in change {
                seen.settings = Settings {
                    schedule: Some(schedule.into()),
                    notices: Wanted::of(&receivers(), false),
                    ..Settings::default()
                };
                change(&mut seen.settings, number);
                for now in ["2025-01-01T00:30:00Z", "2026-01-01T00:00:00Z"] {
                    lives(&seen, t(now));
                }
                let mut world = World::new(schedule, "2025-01-01T00:30:00Z");
                world.seen.settings = seen.settings.clone();
                world.seen.settings.keep_good = Some(3);
                world.seen.settings.own_image = false;
                world.at("2026-01-01T00:00:00Z").finish_all();
            }
        }
    }
}

/// Books of binary logs with these numbers and times.
fn books(number: i64, at: DateTime<Utc>) -> BinlogStatus {
    let slot = to_k8s(at);
    BinlogStatus {
        interval_seconds: number,
        totals: BinlogTotals {
            due: number,
            succeeded: number,
            failed: number,
            skipped: number,
            missed: number,
        },
        consecutive_failures: number,
        last_time: Some(slot.clone()),
        windows: vec![Window {
            from: slot.clone(),
            until: slot.clone(),
        }],
        open: (number % 2 == 0).then(|| OpenPull {
            slot,
            job: "shop-b1".into(),
        }),
        ..BinlogStatus::beginning(number, at)
    }
}

#[test]
fn o1_no_time_or_count_in_a_status_ends_the_engine() {
    let times = [
        "0000-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2025-06-01T00:00:00Z",
        "9999-12-30T21:59:59Z",
    ];
    for schedule in each_schedule() {
        for text in times {
            for number in NUMBERS {
                let at = Some(to_k8s(t(text)));
                let mut seen = observed(schedule, "2025-01-01T00:30:00Z");
                seen.settings.notices = Wanted::of(&receivers(), false);
                seen.settings.verify_every = Some(2);
                seen.settings.binlog_interval = Some(300);
                let mut run = Run::new("shop-1", Trigger::Schedule, RunResult::Succeeded);
                (run.slot, run.start_time) = (at.clone(), at.clone());
                run.completion_time.clone_from(&at);
                run.stored_bytes = Some(number);
                let mut open = Run::new("shop-2", Trigger::Schedule, RunResult::Running);
                (open.slot, open.job_uid) = (at.clone(), Some("gone".into()));
                let count = |n: i64| n.max(0);
                seen.status = ScheduleStatus {
                    accounted_until: at.clone(),
                    last_schedule_time: at.clone(),
                    last_successful_time: at.clone(),
                    suspended_since: at.clone(),
                    resumed_at: at.clone(),
                    overdue_notified_time: at.clone(),
                    unverified_runs: Some(small(number)),
                    consecutive_failures: Some(small(number)),
                    totals: Some(Totals {
                        due: number,
                        succeeded: number,
                        failed: number,
                        skipped: number,
                        missed: number,
                        manual: number,
                    }),
                    schedule: Some(ObservedSchedule {
                        text: schedule.into(),
                        time_zone: "Europe/Berlin".into(),
                        since: at.clone(),
                        anchor: at.clone(),
                    }),
                    missed: vec![MissedSlots {
                        from: to_k8s(t(text)),
                        to: to_k8s(t(text)),
                        count: count(number),
                        reason: "Outage".into(),
                    }],
                    runs: vec![run, open],
                    binlogs: Some(books(number, t(text))),
                    ..seen.status.clone()
                };
                for key in [
                    crds::labels::SKIP_SLOTS_UNTIL,
                    crds::labels::RESUME_AT,
                    crds::labels::SCHEDULE_SINCE,
                    crds::labels::SUSPENDED_SINCE,
                ] {
                    let annotations = &mut seen.object.annotations;
                    annotations.insert(key.into(), text.into());
                }
                lives(&seen, t("2025-06-01T00:00:00Z"));
                seen.object.annotations.clear();
                lives(&seen, t("2025-06-01T00:00:00Z"));
            }
        }
    }
}

#[test]
fn o1_an_allowance_beyond_the_calendar_is_never_overdue_and_never_too_much() {
    let schedule = crds::schedule::Schedule::parse("0 0 1 1 *", None).unwrap();
    let at = t("2025-01-15T00:00:00Z");
    for number in NUMBERS {
        let mut seen = observed("0 0 1 1 *", "2025-01-15T00:00:00Z");
        seen.settings.startup_deadline = number;
        seen.settings.jitter_seconds = number;
        let facts = overdue::facts(&seen.object, &seen.settings, &seen.status);
        let (slot, ends) = facts.due(&schedule, at).unwrap();
        assert_eq!(slot, t("2026-01-01T00:00:00Z"));
        assert!(ends >= slot + Duration::seconds(600), "{number}: {ends}");
    }
}
