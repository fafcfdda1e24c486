//! Who is told of what no run's pod can tell, and how often.

use crds::report::Report;
use crds::run_spec::RunNotice;

use super::*;

fn hourly() -> World {
    World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| {
        s.own_image = true;
        s.keep_failed = Some(100);
        s.notices = Wanted {
            failure: true,
            recovery: true,
            missed: true,
            overdue: true,
            ..Wanted::default()
        };
    })
}

/// Event and subject of each notice whose Job was created.
fn told(world: &World) -> Vec<(String, String)> {
    let notices = world.started.iter().filter_map(|s| s.notice.as_ref());
    let what = |n: &RunNotice| match n.run.as_str() {
        "" => n.slot.clone().unwrap(),
        run => run.to_owned(),
    };
    notices
        .map(|n| (n.event.as_str().to_owned(), what(n)))
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    list.iter().map(own).collect()
}

/// The newest run's Job fails, a pod of it having ended in this way.
fn fails(world: &mut World, pod: Option<(&'static str, Option<bool>, &'static str)>) {
    let name = world.newest().name.clone();
    let end = pod.map(|(reason, good, phase)| {
        let mut report = Report::new(&name);
        report.good = good;
        report.phase = phase.into();
        report.reason = "AccessDenied".into();
        Ended {
            exit_code: 137,
            reason: reason.into(),
            message: report.to_termination_message().into(),
            at: Some(world.now),
        }
    });
    world.leave(&name, false, end);
}

fn finish_notices(world: &mut World, good: bool) {
    let active = world.seen.jobs.iter();
    let active = active.filter(|j| j.is_active() && j.action == Action::Notify);
    let names: Vec<String> = active.map(|j| j.name.to_string()).collect();
    for name in names {
        world.finish(&name, good);
    }
}

#[test]
fn a_failed_run_is_told_once_however_its_pods_ended() {
    let rows = [
        ("killed at work", Some(("OOMKilled", None, "Dumping"))),
        ("failed by itself", Some(("Error", Some(false), "Done"))),
        ("gone with its node", None),
    ];
    for (what, pod) in rows {
        let mut world = hourly();
        world.at("2025-01-01T01:00:00Z");
        let run = world.newest().name.clone();
        fails(&mut world, pod);
        let later = world.now + Duration::seconds(15);
        world.live_to(later);
        assert_eq!(world.run(&run).result, RunResult::Failed, "{what}");
        assert_eq!(told(&world), pairs(&[("Failure", &run)]), "{what}");
        finish_notices(&mut world, true);
        assert_eq!(world.seen.status.notices, vec![], "{what}");
        let later = world.now + Duration::minutes(30);
        world.live_to(later);
        let failures = told(&world).into_iter().filter(|n| n.0 == "Failure");
        assert_eq!(failures.count(), 1, "{what}");
    }
}

/// An attempt that failed is no failed run: the next one may be good.
#[test]
fn an_attempt_is_not_told_the_outcome_is() {
    for good in [true, false] {
        let mut world = hourly().with(|s| s.notices.overdue = false);
        world.at("2025-01-01T01:00:00Z");
        let run = world.newest().name.clone();
        let mut report = Report::new(&run);
        report.good = Some(false);
        world.seen.pods.push(PodDigest {
            name: "p".into(),
            uid: "p".into(),
            job_uid: world.seen.jobs[0].uid.clone(),
            created: world.now,
            started: true,
            trouble: None,
            ended: Some(Ended {
                exit_code: 3,
                reason: "Error".into(),
                message: report.to_termination_message().into(),
                at: Some(world.now),
            }),
            failures: 0,
            held: None,
            gone: false,
        });
        let later = world.now + Duration::minutes(2);
        world.live_to(later);
        assert_eq!(told(&world), vec![], "it is tried again");
        report.good = Some(good);
        let last = Ended {
            exit_code: i32::from(!good),
            reason: if good { "Completed" } else { "Error" }.into(),
            message: report.to_termination_message().into(),
            at: Some(world.now),
        };
        world.leave(&run, good, Some(last));
        let later = world.now + Duration::seconds(30);
        world.live_to(later);
        let expected = if good {
            vec![]
        } else {
            pairs(&[("Failure", &run)])
        };
        assert_eq!(told(&world), expected);
    }
}

#[test]
fn a_run_that_never_starts_is_told_with_the_pods_reason() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z");
    let run = world.newest().name.clone();
    world.seen.jobs[0].ran = false;
    world.seen.pods.push(PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid: world.seen.jobs[0].uid.clone(),
        created: world.now,
        started: false,
        trouble: Some(("ImagePullBackOff".into(), "no such image".into())),
        ended: None,
        failures: 0,
        held: None,
        gone: false,
    });
    let later = world.now + Duration::seconds(601);
    world.live_to(later);
    let notice = world.started.last().unwrap().notice.clone();
    let expected = RunNotice {
        event: crds::parts::NotificationEvent::Failure,
        run,
        slot: Some("2025-01-01T01:00:00Z".into()),
        reason: "ImagePullBackOff".into(),
        message: "not running within 600 s: no such image".into(),
    };
    assert_eq!(notice, Some(expected));
    // The next run is told that its good end is a recovery.
    world.at("2025-01-01T02:00:00Z");
    assert!(world.started.last().unwrap().after_failure);
}

#[test]
fn an_end_somebody_asked_for_is_not_told() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z");
    world.ask(Action::Cancel, "c", |_| {});
    assert_eq!(world.newest().reason, "Cancelled");
    assert_eq!(world.newest().result, RunResult::Failed);
    assert_eq!(told(&world), vec![]);
}

#[test]
fn a_job_the_api_server_refuses_is_told_when_the_slot_is_over() {
    let mut world = hourly();
    world.refuse = Some(("Forbidden", "exceeded quota"));
    world.at("2025-01-01T01:00:00Z");
    let run = world.newest().name.clone();
    world.at("2025-01-01T02:00:00Z");
    assert_eq!(told(&world), vec![]);
    world.refuse = None;
    let later = world.now + Duration::minutes(6);
    world.live_to(later);
    let overdue = ("Overdue", "2025-01-01T01:00:00Z");
    assert_eq!(told(&world), pairs(&[("Failure", &run), overdue]));
}

#[test]
fn a_stretch_of_missed_slots_is_told_once() {
    let mut world = hourly().with(|s| {
        s.notices.overdue = false;
        s.starting_deadline = Some(60);
    });
    for hour in ["03:30", "05:30", "07:30"] {
        world.at(&format!("2025-01-01T{hour}:00Z"));
        finish_notices(&mut world, true);
    }
    let outage = ("Missed", "2025-01-01T01:00:00Z");
    let deadline = ("Missed", "2025-01-01T03:00:00Z");
    let found = told(&world);
    assert_eq!(found[..2], pairs(&[outage, deadline]));
    let stretches: Vec<String> = world.missed().into_iter().rev().map(|m| m.0).collect();
    let subjects: Vec<String> = found.into_iter().map(|f| f.1).collect();
    assert_eq!(subjects, stretches, "one a stretch");
}

#[test]
fn slots_nobody_wanted_are_not_told() {
    for (what, change) in [
        (
            "suspended",
            (|w| w.seen.settings.suspend = true) as fn(&mut World),
        ),
        ("skipped", |w| {
            let key = crds::labels::SKIP_SLOTS_UNTIL.to_owned();
            let annotations = &mut w.seen.object.annotations;
            annotations.insert(key, "2025-01-01T05:30:00Z".into());
        }),
        ("forbidden", |w| {
            w.seen.settings.concurrency = ConcurrencyPolicy::Forbid
        }),
    ] {
        let mut world = hourly().with(|s| s.notices.overdue = false);
        change(&mut world);
        world.settle();
        for hour in 1..=5 {
            world.at(&format!("2025-01-01T0{hour}:10:00Z"));
        }
        world.seen.settings.suspend = false;
        world.at("2025-01-01T05:20:00Z");
        assert_eq!(told(&world), vec![], "{what}: {:?}", world.missed());
    }
}

#[test]
fn an_overdue_object_is_told_once_until_a_good_run() {
    let mut world = hourly().with(|s| s.notices.missed = false);
    world.live_to(t("2025-01-01T00:59:59Z"));
    // Its run hangs: no pod of it is ever seen to run.
    world.seen.settings.startup_deadline = 600;
    world.live_to(t("2025-01-01T01:09:59Z"));
    assert_eq!(told(&world), vec![]);
    world.seen.settings.concurrency = ConcurrencyPolicy::Forbid;
    world.live_to(t("2025-01-01T02:30:00Z"));
    let first = ("Overdue", "2025-01-01T01:00:00Z");
    assert_eq!(told(&world), pairs(&[first]));
    finish_notices(&mut world, true);
    assert!(world.seen.status.overdue_notified_time.is_some());
    assert_eq!(world.seen.status.notices, vec![]);
    // The name of a Job that is still there would hide that it is told again.
    world.seen.jobs.retain(|j| j.action != Action::Notify);
    world.live_to(t("2025-01-01T04:30:00Z"));
    assert_eq!(told(&world), pairs(&[first]));
    world.finish_all();
    world.live_to(t("2025-01-01T23:00:00Z"));
    let again = told(&world);
    assert_eq!(again.len(), 2, "{again:?}");
    assert_eq!(again[1].0, "Overdue");
}

#[test]
fn a_notice_nobody_got_is_an_event_and_is_not_sent_again() {
    let mut world = hourly().with(|s| s.notices.overdue = false);
    world.at("2025-01-01T01:00:00Z");
    fails(&mut world, None);
    let later = world.now + Duration::seconds(15);
    world.live_to(later);
    finish_notices(&mut world, false);
    assert!(world.reasons().contains(&"NotificationFailed"));
    assert_eq!(world.seen.status.notices, vec![]);
    let later = world.now + Duration::minutes(15);
    world.live_to(later);
    assert_eq!(told(&world).len(), 1);
    let kept = world.seen.jobs.iter().any(|j| j.action == Action::Notify);
    assert!(!kept, "its Job is deleted after ten minutes");
}

#[test]
fn without_receivers_nothing_is_kept_created_or_awaited() {
    let story = |wanted: Wanted| {
        let mut world = hourly().with(|s| s.notices = wanted);
        world.at("2025-01-01T01:00:00Z");
        fails(&mut world, None);
        world.at("2025-01-01T09:30:00Z");
        world.live_to(t("2025-01-01T12:00:00Z"));
        world
    };
    let world = story(Wanted::default());
    assert_eq!(told(&world), vec![]);
    assert_eq!(world.seen.status.notices, vec![]);
    assert_eq!(world.seen.status.overdue_notified_time, None);
    assert!(world.started.iter().all(|s| !s.after_failure));
    let other = story(Wanted {
        recovery: true,
        ..Wanted::default()
    });
    assert_eq!(
        (world.writes, world.live_reads),
        (other.writes, other.live_reads)
    );
}

#[test]
fn what_a_wiped_status_brings_back_is_no_news() {
    let mut world = hourly().with(|s| s.notices.overdue = false);
    world.at("2025-01-01T01:00:00Z");
    fails(&mut world, None);
    let later = world.now + Duration::seconds(15);
    world.live_to(later);
    finish_notices(&mut world, true);
    assert_eq!(told(&world).len(), 1);
    world.seen.status = ScheduleStatus {
        controller: Some(HERE.into()),
        ..ScheduleStatus::default()
    };
    world.seen.jobs.retain(|j| j.action == Action::Backup);
    let later = world.now + Duration::seconds(30);
    world.live_to(later);
    assert_eq!(told(&world).len(), 1);
}

#[test]
fn a_receiver_that_is_removed_is_not_told() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z");
    world.refuse = Some(("Forbidden", "exceeded quota"));
    fails(&mut world, None);
    let later = world.now + Duration::seconds(15);
    world.live_to(later);
    assert_eq!(world.seen.status.notices.len(), 1);
    world.seen.settings.notices = Wanted::default();
    world.refuse = None;
    world.settle();
    assert_eq!(world.seen.status.notices, vec![]);
    assert_eq!(told(&world), vec![]);
}
