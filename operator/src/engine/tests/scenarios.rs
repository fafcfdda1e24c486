//! Requests, ends, suspension, limits, and hands in the machinery.

use crds::status::RequestState;

use super::*;

fn hourly() -> World {
    World::new("0 * * * *", "2025-01-01T00:30:00Z")
}

fn request(world: &World, id: &str) -> (RequestState, String) {
    let found = world
        .seen
        .status
        .requests
        .iter()
        .find(|r| r.id == id)
        .expect(id);
    (found.state, found.message.clone())
}

#[test]
fn a_request_gives_one_run_is_echoed_and_its_annotation_goes() {
    let mut world = hourly();
    world.ask(Action::Backup, "7f", |_| {});
    assert_eq!(world.started.len(), 1);
    assert_eq!(
        world.started[0].name,
        crds::names::manual_name("shop", "uid-shop", "7f")
    );
    assert_eq!(
        (request(&world, "7f").0, world.seen.object.annotations.len()),
        (RequestState::Running, 0)
    );
    // The same id again gives the same run.
    world.ask(Action::Backup, "7f", |_| {});
    assert_eq!(
        (world.started.len(), world.seen.object.annotations.len()),
        (1, 0)
    );
    world.finish_all();
    assert_eq!(request(&world, "7f").0, RequestState::Succeeded);
    let totals = world.seen.status.totals.unwrap();
    assert_eq!((totals.manual, totals.due), (1, 0));
}

#[test]
fn an_expired_or_unreadable_request_is_refused_with_a_sentence() {
    let mut world = hourly();
    world.ask(Action::Backup, "late", |r| {
        r.expires_at = "2025-01-01T00:29:00Z".into()
    });
    assert_eq!(request(&world, "late").0, RequestState::Refused);
    assert!(
        request(&world, "late")
            .1
            .contains("expired at 2025-01-01T00:29:00Z")
    );
    let key = format!("{}abc", crds::labels::REQUEST_PREFIX);
    world.seen.object.annotations.insert(key, "{}".into());
    world.settle();
    assert_eq!(request(&world, "unreadable-abc").0, RequestState::Refused);
    assert_eq!(
        (world.seen.object.annotations.len(), world.started.len()),
        (0, 0)
    );
}

/// An object that can't run answers too: what is asked is whether anybody acts on it.
#[test]
fn u6_an_echo_is_answered_whatever_the_object_and_one_answer_stays() {
    let mut world = hourly();
    world.seen.problems.push(crds::validate::Problem {
        path: "spec.image".into(),
        message: "wrong".into(),
    });
    for id in ["first", "second"] {
        world.ask(Action::Echo, id, |_| {});
        let (state, message) = request(&world, id);
        assert_eq!(state, RequestState::Succeeded);
        assert!(message.starts_with(HERE), "{message}");
    }
    let seen = &world.seen;
    let counts = (seen.status.requests.len(), seen.object.annotations.len());
    assert_eq!((counts, world.started.len()), ((1, 0), 0));
}

#[test]
fn a_queued_request_waits_for_the_active_run() {
    let mut world = hourly().with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    world
        .at("2025-01-01T01:00:00Z")
        .ask(Action::Backup, "q", |r| r.options.queue = true);
    assert_eq!(request(&world, "q").0, RequestState::Queued);
    world.finish_all();
    assert_eq!(
        (request(&world, "q").0, world.started.len()),
        (RequestState::Running, 2)
    );
}

#[test]
fn cancel_writes_the_intent_then_deletes_in_the_foreground() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z");
    let name = world.started[0].name.clone();
    let target = name.clone();
    world.ask(Action::Cancel, "c", |r| {
        r.options.run = Some(target);
        r.reason = "wrong host".into();
    });
    assert_eq!(world.deleted, [(name.clone(), true)]);
    assert_eq!(shown(world.run(&name)), (RunResult::Failed, "Cancelled"));
    assert!(
        world
            .run(&name)
            .message
            .contains("cancelled by alice. wrong host")
    );
    assert_eq!(
        request(&world, "c"),
        (RequestState::Succeeded, "the run was stopped".into())
    );
    assert_eq!(world.seen.status.consecutive_failures, Some(0));
    world.ask(Action::Cancel, "again", |r| {
        r.options.run = Some("x".into())
    });
    assert_eq!(
        request(&world, "again"),
        (RequestState::Refused, "no run is active".into())
    );
}

#[test]
fn a_pod_that_is_being_ended_does_not_hide_why_its_run_is() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z");
    let run = &mut world.seen.status.runs[0];
    run.intent = Some("NeverStarted".into());
    run.reason = "ImagePullBackOff".into();
    run.message = "not running within 600 s: no such image".into();
    world.seen.pods.push(PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid: world.seen.jobs[0].uid.clone(),
        created: world.now,
        started: false,
        trouble: None,
        ended: Some(Ended {
            exit_code: 137,
            reason: "ContainerStatusUnknown".into(),
            message: "The container could not be located when the pod was terminated".into(),
            at: None,
        }),
        failures: 0,
        held: None,
        gone: false,
    });
    world.settle();
    assert_eq!(world.newest().reason, "ImagePullBackOff");
    world.seen.jobs.clear();
    world.settle();
    assert_eq!(
        shown(world.newest()),
        (RunResult::Failed, "ImagePullBackOff")
    );
    assert!(world.newest().message.contains("no such image"));
}

#[test]
fn cancel_of_a_waiting_slot_needs_no_job() {
    let mut world = hourly().with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    world.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    let waiting = world.newest().name.clone();
    world.ask(Action::Cancel, "c", |r| {
        r.options.run = Some(waiting.clone())
    });
    assert_eq!(
        shown(world.run(&waiting)),
        (RunResult::Skipped, "Cancelled")
    );
    world.finish_all();
    assert_eq!(world.started.len(), 1);
}

#[test]
fn replace_leaves_a_manual_run_alone() {
    let mut world = hourly().with(|s| s.concurrency = ConcurrencyPolicy::Replace);
    world.ask(Action::Backup, "m", |_| {});
    world.at("2025-01-01T01:00:00Z");
    assert_eq!((world.deleted.len(), world.started.len()), (0, 1));
    assert_eq!(
        shown(world.newest()),
        (RunResult::Waiting, "ConcurrencyForbid")
    );
    world.finish_all();
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
}

#[test]
fn other_actions_run_outside_the_totals() {
    let mut world = hourly();
    world.ask(Action::Probe, "p", |_| {});
    assert!(request(&world, "p").1.contains("remove spec.image"));
    world.seen.settings.own_image = true;
    world.ask(Action::Probe, "p2", |_| {});
    assert_eq!(request(&world, "p2").0, RequestState::Running);
    assert_eq!(
        (
            world.seen.status.runs.len(),
            world.seen.status.totals.unwrap().manual
        ),
        (0, 0)
    );
    world.finish_all();
    assert_eq!(request(&world, "p2").0, RequestState::Succeeded);
    assert_eq!(world.deleted, []);
    world.at("2025-01-01T00:41:00Z");
    assert_eq!(world.deleted.len(), 1, "its log was there for ten minutes");
}

#[test]
fn slots_are_skipped_up_to_the_annotations_time() {
    let mut world = hourly();
    world.seen.settings.suspend = true;
    world.settle();
    world.now = t("2025-01-01T05:30:00Z");
    world.seen.settings.suspend = false;
    world.seen.object.annotations.insert(
        crds::labels::SKIP_SLOTS_UNTIL.into(),
        "2025-01-01T05:30:00Z".into(),
    );
    world.settle();
    assert_eq!(world.slots(), Vec::<String>::new());
    let totals = world.seen.status.totals.unwrap();
    assert_eq!((totals.due, totals.skipped, totals.missed), (5, 5, 0));
    assert_eq!(world.missed()[0].3, "SkippedByUser");
    world.live_to(t("2025-01-01T06:00:00Z"));
    assert_eq!(world.slots(), ["2025-01-01T06:00:00Z"]);
}

#[test]
fn both_ends_of_a_suspension_are_recorded() {
    let mut world = hourly();
    world.seen.settings.suspend = true;
    let stamp = "2025-01-01T00:45:00Z".to_owned();
    world
        .seen
        .object
        .annotations
        .insert(crds::labels::SUSPENDED_SINCE.into(), stamp);
    world.at("2025-01-01T00:50:00Z");
    let time = |at: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        at.as_ref().map(from_k8s)
    };
    assert_eq!(
        time(&world.seen.status.suspended_since),
        Some(t("2025-01-01T00:45:00Z"))
    );
    assert_eq!(world.condition("Scheduled").1, "Suspended");
    world.seen.settings.suspend = false;
    world.seen.object.suspend_edited = Some((t("2025-01-01T03:15:00Z"), "kubectl".into()));
    world.at("2025-01-01T03:20:00Z");
    assert_eq!(time(&world.seen.status.suspended_since), None);
    assert_eq!(
        time(&world.seen.status.resumed_at),
        Some(t("2025-01-01T03:15:00Z"))
    );
}

#[test]
fn a_suspension_ends_at_the_time_asked_for_once() {
    let mut world = hourly();
    world.seen.settings.suspend = true;
    let at = "2025-01-01T02:30:00Z".to_owned();
    world
        .seen
        .object
        .annotations
        .insert(crds::labels::RESUME_AT.into(), at.clone());
    world.at("2025-01-01T00:50:00Z");
    // Its second slot makes it overdue, suspended or not.
    assert_eq!(world.wake, Some(t("2025-01-01T02:10:01Z")));
    world.at("2025-01-01T02:10:01Z");
    assert_eq!(world.wake, Some(t("2025-01-01T02:30:00Z")));
    world.live_to(t("2025-01-01T02:31:00Z"));
    assert!(!world.seen.settings.suspend);
    assert_eq!(world.slots(), ["2025-01-01T02:00:00Z"]);
    // Something that keeps its own copy puts both back.
    world.seen.settings.suspend = true;
    world
        .seen
        .object
        .annotations
        .insert(crds::labels::RESUME_AT.into(), at);
    world.seen.object.suspend_edited = Some((t("2025-01-01T02:40:00Z"), "argocd".into()));
    world.at("2025-01-01T02:41:00Z");
    assert!(world.seen.settings.suspend);
    let again: Vec<&EventSpec> = world
        .events
        .iter()
        .filter(|e| e.reason == "SuspendedAgain")
        .collect();
    assert_eq!(again.len(), 1);
    assert!(again[0].note.contains("argocd"));
}

#[test]
fn jitter_delays_the_start_and_keeps_slot_and_name() {
    let mut world = hourly().with(|s| s.jitter_seconds = 600);
    world.live_to(t("2025-01-01T01:00:00Z"));
    let start = world.wake.unwrap();
    assert!(
        start > t("2025-01-01T01:00:00Z") && start <= t("2025-01-01T01:10:00Z"),
        "{start}"
    );
    assert_eq!(world.started.len(), 0);
    world.live_to(start);
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
    let name = crds::names::slot_name("shop", "uid-shop", t("2025-01-01T01:00:00Z"));
    assert_eq!(world.started[0].name, name);
    // Never past the deadline, never past the next slot.
    let mut tight =
        World::new("* * * * *", "2025-01-01T00:00:30Z").with(|s| s.jitter_seconds = 86_400);
    tight.live_to(t("2025-01-01T00:11:00Z"));
    assert!(tight.started.len() >= 10, "{}", tight.started.len());
}

#[test]
fn a_full_house_makes_a_slot_wait_and_say_so() {
    let mut world = hourly();
    world.seen.room.namespace = Some(Limit { most: 2, active: 2 });
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(shown(world.newest()), (RunResult::Waiting, "MaxActiveRuns"));
    assert!(
        world
            .newest()
            .message
            .contains("--max-active-runs-per-namespace allows 2")
    );
    world.seen.room = Room::default();
    world.at("2025-01-01T01:20:00Z");
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
}

#[test]
fn a_waiting_slot_gives_way_to_a_newer_one_and_is_counted() {
    let mut world = hourly().with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    for hour in 1..6 {
        world.at(&format!("2025-01-01T0{hour}:00:00Z"));
    }
    let totals = world.seen.status.totals.unwrap();
    assert_eq!((totals.due, totals.skipped, world.started.len()), (5, 3, 1));
    let three = (
        "2025-01-01T02:00:00Z".to_owned(),
        "2025-01-01T04:00:00Z".to_owned(),
        3,
        "ConcurrencyForbid".to_owned(),
    );
    assert_eq!(world.missed(), [three]);
}

#[test]
fn a_waiting_slot_past_its_deadline_is_skipped() {
    let mut world = hourly().with(|s| {
        s.concurrency = ConcurrencyPolicy::Forbid;
        s.starting_deadline = Some(600);
    });
    world
        .at("2025-01-01T01:00:00Z")
        .at("2025-01-01T02:00:00Z")
        .at("2025-01-01T02:11:00Z");
    assert_eq!(
        shown(world.newest()),
        (RunResult::Skipped, "DeadlineExceeded")
    );
    world.finish_all();
    assert_eq!(world.started.len(), 1);
}

#[test]
fn an_edit_drops_a_waiting_slot() {
    let mut world = hourly().with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    world.at("2025-01-01T01:00:00Z").at("2025-01-01T02:00:00Z");
    world.seen.settings.schedule = Some("0 12 * * *".into());
    world.at("2025-01-01T02:10:00Z");
    assert_eq!(
        shown(world.newest()),
        (RunResult::Skipped, "ScheduleChanged")
    );
    world.finish_all();
    assert_eq!(world.started.len(), 1);
}

#[test]
fn a_wiped_status_is_rebuilt_from_the_jobs() {
    let mut world = World::new("0 * * * *", "2024-12-01T00:30:00Z");
    world.at("2025-01-01T01:00:00Z").finish_all();
    world.at("2025-01-01T02:00:00Z");
    world.seen.status = ScheduleStatus::default();
    world.at("2025-01-01T02:10:00Z");
    assert_eq!(world.started.len(), 2, "no slot is started again");
    let totals = world.seen.status.totals.unwrap();
    assert_eq!((totals.due, totals.succeeded, totals.missed), (2, 1, 0));
    assert_eq!(world.seen.status.runs.len(), 2);
    world.finish_all();
    assert_eq!(world.seen.status.totals.unwrap().succeeded, 2);
}

#[test]
fn a_job_removed_by_its_ttl_keeps_the_outcome_its_pod_told() {
    let mut world = hourly().with(|s| s.own_image = true);
    world.at("2025-01-01T01:00:00Z");
    let job = world.seen.jobs.pop().unwrap();
    let mut report = crds::report::Report::new(&job.name);
    report.good = Some(true);
    report.reason = "Completed".into();
    report.stored_bytes = Some(1_932_735_283);
    world.seen.pods.push(PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid: job.uid,
        created: world.now,
        started: true,
        trouble: None,
        ended: Some(Ended {
            exit_code: 0,
            reason: "Completed".into(),
            message: report.to_termination_message().into(),
            at: None,
        }),
        failures: 0,
        held: None,
        gone: true,
    });
    world.at("2025-01-01T01:05:00Z");
    assert_eq!(shown(world.newest()), (RunResult::Succeeded, "Completed"));
    assert_eq!(world.seen.status.last_size.as_deref(), Some("1.8GiB"));
}

#[test]
fn a_report_of_failure_wins_over_a_complete_job() {
    let mut world = hourly().with(|s| s.own_image = true);
    world.at("2025-01-01T01:00:00Z");
    let name = world.started[0].name.clone();
    let mut report = crds::report::Report::new(&name);
    report.good = Some(false);
    report.reason = "AccessDenied".into();
    report.message = "access denied for user 'bk'".into();
    world.finish(&name, true);
    // A fresh one, with the report in its pod.
    world.at("2025-01-01T02:00:00Z");
    let second = world.started[1].name.clone();
    let now = world.now;
    let job = world
        .seen
        .jobs
        .iter_mut()
        .find(|j| *j.name == *second)
        .unwrap();
    job.outcome = JobOutcome::Complete { at: now };
    let job_uid = job.uid.clone();
    world.seen.pods.push(PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid,
        created: now,
        started: true,
        trouble: None,
        ended: Some(Ended {
            exit_code: 3,
            reason: "Error".into(),
            message: report.to_termination_message().into(),
            at: Some(now),
        }),
        failures: 0,
        held: None,
        gone: false,
    });
    world.settle();
    assert_eq!(shown(world.newest()), (RunResult::Failed, "AccessDenied"));
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "AccessDenied".into())
    );
}

#[test]
fn an_image_without_reports_is_good_by_exit_status_alone() {
    let mut world = hourly();
    world.at("2025-01-01T01:00:00Z").finish_all();
    assert_eq!(
        shown(world.newest()),
        (RunResult::Succeeded, "ExitStatusOnly")
    );
    assert_eq!(
        world.condition("LastRunSucceeded"),
        ("True".into(), "ExitStatusOnly".into())
    );
}

#[test]
fn a_finished_job_waits_a_moment_for_its_pods_word() {
    let mut world = hourly().with(|s| s.own_image = true);
    world.at("2025-01-01T01:00:00Z");
    let now = t("2025-01-01T01:10:00Z");
    world.seen.jobs[0].outcome = JobOutcome::Complete { at: now };
    world.at("2025-01-01T01:10:00Z");
    assert_eq!(
        (world.newest().result, world.wake),
        (RunResult::Running, Some(t("2025-01-01T01:10:10Z")))
    );
    world.at("2025-01-01T01:10:10Z");
    assert_eq!(shown(world.newest()), (RunResult::Failed, "NoReport"));
}

#[test]
fn a_late_job_of_a_slot_that_was_given_up_is_counted_once() {
    let mut world = hourly().with(|s| s.starting_deadline = Some(10));
    world.at("2025-01-01T01:05:00Z");
    assert_eq!(world.seen.status.totals.unwrap().missed, 1);
    let seed = Seed {
        slot: Some(t("2025-01-01T01:00:00Z")),
        ..Seed::new("shop-late", Trigger::Schedule)
    };
    let job = world.job_of(&seed);
    world.seen.jobs.push(job);
    world.settle();
    let totals = world.seen.status.totals.unwrap();
    assert_eq!(
        (totals.due, totals.missed, world.newest().result),
        (1, 0, RunResult::Running)
    );
    world.finish_all();
    assert_eq!(world.seen.status.totals.unwrap().succeeded, 1);
}

#[test]
fn thirty_runs_of_detail_stay_within_six_kilobytes() {
    let mut world = World::new("* * * * *", "2025-01-01T00:00:30Z");
    for _ in 0..40 {
        let until = world.now + Duration::minutes(1);
        world.live_to(until);
        let active: Vec<String> = world
            .seen
            .jobs
            .iter()
            .filter(|j| j.is_active())
            .map(|j| j.name.to_string())
            .collect();
        for name in active {
            world.finish(&name, false);
        }
    }
    assert!(
        world.seen.status.runs.len() >= 10,
        "{}",
        world.seen.status.runs.len()
    );
    assert_eq!(
        world.seen.status.consecutive_failures,
        Some(i32::try_from(world.started.len()).unwrap())
    );
}

#[test]
fn jobs_of_the_program_before_are_taken_over_and_their_slots_do_not_run_again() {
    let mut world = World::unseen("0 * * * *", "2025-01-01T00:30:00Z")
        .with(|s| s.concurrency = ConcurrencyPolicy::Forbid);
    let foreign_job = |name: &str, at: Option<&str>| ForeignJob {
        name: name.into(),
        uid: name.into(),
        scheduled_at: at.map(Into::into),
    };
    world.seen.foreign_jobs = vec![
        foreign_job("shop-1735696800", Some("2025-01-01T02:00:00Z")),
        foreign_job("by-hand", None),
    ];
    world.seen.status.last_schedule_time = Some(crds::time::to_k8s(t("2025-01-01T01:00:00Z")));
    world.at("2025-01-01T02:10:00Z");
    assert_eq!(world.started.len(), 0, "02:00 is theirs and still runs");
    let totals = world.seen.status.totals.unwrap();
    assert_eq!(
        (totals.due, totals.manual, world.seen.status.active_count),
        (1, 0, Some(2))
    );
    world.finish_all();
    world.live_to(t("2025-01-01T03:00:00Z"));
    assert_eq!(world.slots(), ["2025-01-01T03:00:00Z"]);
}

#[test]
fn while_another_controller_acts_nothing_is_started_and_it_is_named() {
    let mut world = hourly();
    world.seen.foreign = Some("CronJob shop runs backups of this object".into());
    world.at("2025-01-01T01:10:00Z");
    assert_eq!(world.started.len(), 0);
    assert_eq!(
        world.condition("Accepted"),
        ("False".into(), "ForeignController".into())
    );
    assert_eq!(world.reasons(), ["ForeignController"]);
    world.ask(Action::Backup, "r", |_| {});
    assert!(request(&world, "r").1.contains("CronJob shop"));
    world.seen.foreign = None;
    world.at("2025-01-01T01:20:00Z");
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
}
