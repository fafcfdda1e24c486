//! Verification by restore after good runs.

use crds::report::Report;
use crds::run::{RunResult, Verification};
use crds::time::to_k8s;

use super::*;

fn daily(every: i32) -> World {
    World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| {
        s.own_image = true;
        s.verify_every = Some(every);
        s.keep_good = Some(100);
    })
}

fn verifications(world: &World) -> Vec<String> {
    let jobs = world.started.iter().filter(|s| s.action == Action::Verify);
    jobs.map(|s| s.options.run.clone().unwrap()).collect()
}

/// The Job ends, its pod with a report of what was compared.
fn compared(world: &mut World, name: &str, passed: bool, message: &str) {
    let mut report = Report::new(name);
    report.good = Some(passed);
    report.reason = if passed {
        "Completed"
    } else {
        "RestoreDiffers"
    }
    .into();
    report.message = message.into();
    report.verification = Some(Verification {
        mode: "Restore".into(),
        passed,
        time: to_k8s(world.now),
        message: message.into(),
    });
    let end = Ended {
        exit_code: if passed { 0 } else { 5 },
        reason: "Completed".into(),
        message: report.to_termination_message().into(),
        at: Some(world.now),
    };
    world.leave(name, passed, Some(end));
}

fn verify_job(run: &str) -> String {
    crds::names::verify_name("shop", "uid-shop", run)
}

#[test]
fn each_good_run_is_verified_by_one_job_outside_totals() {
    let mut world = daily(1);
    world.at("2025-01-01T01:00:00Z").finish_all();
    let run = world.newest().name.clone();
    assert_eq!(verifications(&world), std::slice::from_ref(&run));
    assert_eq!(world.run(&run).verify_job, Some(verify_job(&run)));
    let before = world.seen.status.totals;
    compared(&mut world, &verify_job(&run), true, "all equal");
    assert_eq!(world.seen.status.totals, before);
    assert!(world.run(&run).verification.as_ref().unwrap().passed);
    assert_eq!(
        world.condition("Verified"),
        ("True".into(), "Passed".into())
    );
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(
        world.seen.status.last_verified_time,
        Some(to_k8s(world.now))
    );
    assert_eq!(
        world
            .reasons()
            .iter()
            .filter(|r| **r == "BackupVerified")
            .count(),
        1
    );
    // Its Job goes after a while, and no other comes.
    let later = world.now + Duration::minutes(11);
    world.live_to(later);
    assert_eq!(world.deleted, [(verify_job(&run), false)]);
    assert_eq!(verifications(&world).len(), 1);
}

#[test]
fn what_differs_is_said_on_run_and_object_and_the_run_stays_good() {
    let mut world = daily(1);
    world.at("2025-01-01T01:00:00Z").finish_all();
    let run = world.newest().name.clone();
    let text = "a restore differs: table shop.t has 1 rows instead of 2";
    compared(&mut world, &verify_job(&run), false, text);
    assert_eq!(
        world.condition("Verified"),
        ("False".into(), "RestoreDiffers".into())
    );
    assert_eq!(world.run(&run).verification.as_ref().unwrap().message, text);
    assert_eq!(world.run(&run).result, RunResult::Succeeded);
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "VerificationFailed".into())
    );
    assert_eq!(world.condition("LastRunSucceeded").0, "True");
    assert_eq!(world.seen.status.last_verified_time, None);
    assert!(world.reasons().contains(&"VerificationFailed"));
    // A newer one that passes ends it.
    world.at("2025-01-01T02:00:00Z").finish_all();
    let newer = verify_job(&world.newest().name.clone());
    compared(&mut world, &newer, true, "all equal");
    assert_eq!(world.condition("Ready").0, "True");
}

#[test]
fn every_third_good_run_and_no_failed_one() {
    let mut world = daily(3);
    for hour in 1..=7 {
        world.at(&format!("2025-01-01T0{hour}:00:00Z"));
        let name = world.newest().name.clone();
        // The second one fails and does not count.
        world.finish(&name, hour != 2);
        for run in verifications(&world) {
            if world.run(&run).verification.is_none() {
                compared(&mut world, &verify_job(&run), true, "all equal");
            }
        }
    }
    let slot = |hour: i64| format!("shop-{}", 28_928_160 + hour * 60);
    assert_eq!(verifications(&world), [slot(4), slot(7)]);
}

#[test]
fn runs_that_end_together_are_verified_one_after_the_other() {
    let mut world = daily(1);
    world.ask(Action::Backup, "a", |_| {});
    world.ask(Action::Backup, "b", |_| {});
    let names: Vec<String> = world.started.iter().map(|s| s.name.clone()).collect();
    for name in &names {
        world.finish(name, true);
    }
    assert_eq!(verifications(&world), names[..1]);
    compared(&mut world, &verify_job(&names[0]), true, "all equal");
    assert_eq!(verifications(&world), names);
    compared(&mut world, &verify_job(&names[1]), true, "all equal");
    assert!(
        world
            .seen
            .status
            .runs
            .iter()
            .all(|r| r.verification.is_some())
    );
}

#[test]
fn a_verification_that_never_starts_or_says_nothing_is_no_pass() {
    let mut world = daily(1);
    world.at("2025-01-01T01:00:00Z").finish_all();
    let run = world.newest().name.clone();
    let job = verify_job(&run);
    let digest = world
        .seen
        .jobs
        .iter_mut()
        .find(|j| *j.name == *job)
        .unwrap();
    digest.ran = false;
    let later = world.now + Duration::seconds(601);
    world.live_to(later);
    assert_eq!(
        world.condition("Verified"),
        ("False".into(), "NotVerified".into())
    );
    assert_eq!(world.deleted, [(job, true)]);
    assert!(
        world
            .run(&run)
            .verification
            .as_ref()
            .unwrap()
            .message
            .contains("not running within 600 s")
    );
}

#[test]
fn without_the_mode_nothing_is_verified() {
    let mut world = daily(1).with(|s| s.verify_every = None);
    world.at("2025-01-01T01:00:00Z").finish_all();
    assert_eq!(verifications(&world), Vec::<String>::new());
}

/// Up to the end of a run its binary log is waited for, two intervals and two minutes at most; no pod waits.
#[test]
fn a_replay_waits_for_the_pull_behind_the_run_and_no_longer_than_two_intervals() {
    let replays = || {
        daily(1).with(|s| {
            s.verify_by_replay = true;
            s.binlog_interval = Some(300);
        })
    };
    let mode = |world: &World| {
        let jobs = world.started.iter().filter(|s| s.action == Action::Verify);
        jobs.map(|s| s.options.mode.clone().unwrap())
            .collect::<Vec<_>>()
    };
    let stored = |world: &mut World, until: DateTime<Utc>, pulled: DateTime<Utc>| {
        let mut books = crds::binlogs::BinlogStatus::beginning(300, world.now);
        books.last_time = Some(to_k8s(pulled));
        books.windows = vec![crds::binlogs::Window {
            from: to_k8s(until - Duration::hours(1)),
            until: to_k8s(until),
        }];
        world.seen.status.binlogs = Some(books);
    };
    // A pull behind it: at once.
    let mut world = replays();
    world.at("2025-01-01T01:00:00Z").finish_all();
    let run = world.newest().name.clone();
    let ended = crds::time::from_k8s(world.run(&run).completion_time.as_ref().unwrap());
    assert_eq!(verifications(&world), [""; 0]);
    assert_eq!(world.run(&run).verify_job, Some(verify_job(&run)));
    // One that read less, or that ended before the run by this clock, is not enough.
    stored(&mut world, ended - Duration::seconds(1), ended);
    world.live_to(ended + Duration::seconds(40));
    stored(&mut world, ended, ended - Duration::seconds(1));
    world.live_to(ended + Duration::seconds(80));
    assert_eq!(verifications(&world), [""; 0]);
    stored(&mut world, ended, ended + Duration::seconds(80));
    world.live_to(ended + Duration::seconds(150));
    assert_eq!(verifications(&world), std::slice::from_ref(&run));
    assert_eq!(mode(&world), ["Replay"]);
    // None comes: the runner says so, and restores.
    let mut world = replays();
    world.at("2025-01-01T01:00:00Z").finish_all();
    let run = world.newest().name.clone();
    let ended = crds::time::from_k8s(world.run(&run).completion_time.as_ref().unwrap());
    stored(&mut world, ended - Duration::hours(1), ended);
    world.live_to(ended + Duration::seconds(715));
    assert_eq!(verifications(&world), [""; 0]);
    world.live_to(ended + Duration::seconds(755));
    assert_eq!(verifications(&world), std::slice::from_ref(&run));
    assert_eq!(mode(&world), ["Replay"]);
    // What it did instead is the outcome, and is final.
    compared(&mut world, &verify_job(&run), true, "not replayed");
    let verification = world.run(&run).verification.clone().unwrap();
    assert_eq!(
        (verification.mode.as_str(), verification.passed),
        ("Restore", true)
    );
    assert_eq!(world.condition("Verified").0, "True");
    assert_eq!(verifications(&world).len(), 1);
}
