//! Runs whose container does not run, does not report, or does not end alone.

use crds::report::Report;
use crds::run::PENDING;

use super::*;

/// A run of the slot at 01:00 whose Job has no pod.
fn begun() -> World {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z").with(|s| s.own_image = true);
    world.at("2025-01-01T01:00:00Z");
    world.seen.jobs[0].ran = false;
    world.settle();
    world
}

fn a_pod(world: &World, trouble: Option<(&str, &str)>) -> PodDigest {
    PodDigest {
        name: "shop-x".into(),
        uid: "pod-x".into(),
        job_uid: world.seen.jobs[0].uid.clone(),
        created: t("2025-01-01T01:00:01Z"),
        started: false,
        trouble: trouble.map(|(r, m)| (r.into(), m.into())),
        held: None,
        ended: None,
        failures: 0,
        gone: false,
    }
}

fn ended(code: i32, message: String) -> Ended {
    Ended {
        exit_code: code,
        reason: "Completed".into(),
        message: message.into(),
        at: Some(t("2025-01-01T01:00:10Z")),
    }
}

fn report(good: bool) -> String {
    let mut report = Report::new("r");
    report.good = Some(good);
    report.reason = if good { "Completed" } else { "AccessDenied" }.into();
    report.to_termination_message()
}

/// Does what the newest plan asks for: somebody said this, or nothing.
fn read(world: &mut World, words: Option<(&str, &str)>) {
    assert_eq!(world.looks.len(), 1, "one read at {}", world.now);
    let words = words.map(|(r, m)| (r.into(), m.into()));
    let found = world.looks[0].found(&world.seen.obstacles, words, world.now);
    world.seen.obstacles = vec![found];
    world.settle();
}

fn shown(world: &World) -> (RunResult, Option<&str>, &str, &str) {
    let run = world.newest();
    let phase = run.phase.as_deref();
    (run.result, phase, &run.reason, &run.message)
}

const REFUSED: &str = "Error creating: pods \"shop-\" is forbidden: failed quota: compute: must specify limits.cpu for: backup";

#[test]
fn t9_pods_that_are_refused_make_a_pending_run_in_the_api_servers_words() {
    let mut world = begun();
    world.at("2025-01-01T01:00:04Z");
    assert_eq!((world.looks.len(), shown(&world).1), (0, None));
    assert_eq!(world.condition("Ready").0, "True");
    world.at("2025-01-01T01:00:05Z");
    assert_eq!(world.looks[0].subject, world.seen.jobs[0].uid);
    read(&mut world, Some(("FailedCreate", REFUSED)));
    let (result, phase, reason, message) = shown(&world);
    assert_eq!(
        (result, phase, reason),
        (RunResult::Running, Some(PENDING), "FailedCreate")
    );
    assert!(
        message.contains(REFUSED) && message.contains("set resources"),
        "{message}"
    );
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "RunPending".into())
    );
    let told = |w: &World| w.reasons().iter().filter(|r| **r == "RunPending").count();
    assert_eq!(told(&world), 1);

    // The cause stays when the run is given up and its Job is gone.
    world.live_to(t("2025-01-01T01:11:00Z"));
    let (result, phase, reason, message) = shown(&world);
    assert_eq!(
        (result, phase, reason),
        (RunResult::Failed, None, "FailedCreate")
    );
    assert!(message.contains(REFUSED), "{message}");
    assert_eq!(told(&world), 1);
    assert_eq!(world.condition("Ready").1, "FailedCreate");
}

#[test]
fn o10_events_are_read_seldomer_the_longer_a_job_waits() {
    let mut world = begun();
    let mut reads = vec![];
    let before = world.writes;
    while let Some(wake) = world.wake.filter(|w| *w < t("2025-01-01T01:10:00Z")) {
        world.now = world.now.max(wake);
        world.settle();
        if !world.looks.is_empty() {
            reads.push((world.now - t("2025-01-01T01:00:00Z")).num_seconds());
            read(&mut world, None);
        }
    }
    assert_eq!(reads, [5, 15, 35, 75, 155, 315]);
    assert_eq!(world.writes, before, "nothing was said, nothing is written");
}

#[test]
fn t9_what_the_kubelet_and_the_scheduler_say_needs_no_read() {
    for (reason, message) in [
        ("CreateContainerConfigError", "secret \"shop-db\" not found"),
        ("ErrImagePull", "no such image"),
        ("Unschedulable", "0/3 nodes are available"),
        ("Evicted", "The node was low on resource"),
    ] {
        let mut world = begun();
        let pod = a_pod(&world, Some((reason, message)));
        world.seen.pods.push(pod);
        world.at("2025-01-01T01:00:09Z");
        let found = shown(&world);
        assert_eq!(
            (found.1, found.2, found.3),
            (Some(PENDING), reason, &*format!("not started: {message}"))
        );
        assert!(world.looks.is_empty(), "{reason}");
        // It starts after all.
        (world.seen.pods[0].started, world.seen.pods[0].trouble) = (true, None);
        world.at("2025-01-01T01:00:20Z");
        let found = shown(&world);
        assert_eq!((found.1, found.2, found.3), (None, "", ""));
        assert_eq!(world.condition("Ready").0, "True");
    }
}

#[test]
fn t9_a_pod_on_its_way_is_no_news_and_its_events_are_read() {
    let mut world = begun();
    let pod = a_pod(&world, Some(("ContainerCreating", "")));
    world.seen.pods.push(pod);
    world.at("2025-01-01T01:00:05Z");
    assert_eq!((world.looks.len(), shown(&world).1), (0, None));
    world.at("2025-01-01T01:00:06Z");
    assert_eq!(&*world.looks[0].subject, "pod-x");
    read(
        &mut world,
        Some((
            "FailedMount",
            "MountVolume.SetUp failed: secret \"x\" not found",
        )),
    );
    assert_eq!(shown(&world).2, "FailedMount");
    // Another pod is another question.
    world.seen.pods[0].uid = "pod-y".into();
    world.at("2025-01-01T01:00:07Z");
    assert_eq!(&*world.looks[0].subject, "pod-y");
}

#[test]
fn t9_a_job_that_is_deleted_or_runs_out_of_time_while_it_waits_keeps_the_cause() {
    let mut deleted = begun();
    let mut late = begun();
    for world in [&mut deleted, &mut late] {
        world.at("2025-01-01T01:00:05Z");
        read(world, Some(("FailedCreate", REFUSED)));
        world.now = t("2025-01-01T01:01:00Z");
    }
    deleted.seen.jobs.clear();
    late.seen.jobs[0].outcome = JobOutcome::Failed {
        at: late.now,
        reason: "DeadlineExceeded".into(),
        message: "Job was active longer than specified deadline".into(),
    };
    late.settle();
    late.now += Duration::seconds(10);
    for world in [&mut deleted, &mut late] {
        world.settle();
        let (result, _, reason, message) = shown(world);
        assert_eq!((result, reason), (RunResult::Failed, "FailedCreate"));
        assert!(message.contains(REFUSED), "{message}");
    }
}

#[test]
fn t9_the_job_of_a_request_that_does_not_start_says_why_and_is_given_up() {
    let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z").with(|s| s.own_image = true);
    world.ask(Action::List, "l1", |_| {});
    world.seen.jobs[0].ran = false;
    world.now += Duration::seconds(5);
    world.settle();
    read(&mut world, Some(("FailedCreate", REFUSED)));
    let request = &world.seen.status.requests[0];
    assert!(request.message.contains(REFUSED), "{}", request.message);
    world.live_to(world.now + Duration::minutes(12));
    let request = &world.seen.status.requests[0];
    assert_eq!(request.state, crds::status::RequestState::Failed);
    assert!(request.message.contains(REFUSED), "{}", request.message);
    assert!(world.seen.jobs.is_empty(), "its Job is ended");
}

/// The pods of a Job that is complete are read past the watch before it is said that there is no
/// report.
#[test]
fn o9_status_0_of_our_runner_without_a_report_is_not_good() {
    for message in ["", "copied", "{}"] {
        let mut world = begun();
        let mut pod = a_pod(&world, None);
        (pod.started, pod.ended) = (true, Some(ended(0, message.to_owned())));
        world.seen.pods.push(pod);
        world.seen.jobs[0].outcome = JobOutcome::Complete {
            at: t("2025-01-01T01:00:11Z"),
        };
        world.at("2025-01-01T01:00:12Z");
        let (result, _, reason, _) = shown(&world);
        assert_eq!(
            (result, reason),
            (RunResult::Failed, "NoReport"),
            "{message:?}"
        );
        assert_eq!(world.condition("LastRunSucceeded").0, "False");
        assert_eq!(world.seen.status.last_successful_time, None);
    }
}

#[test]
fn o9_a_verification_list_or_notice_without_a_report_is_not_good_either() {
    for action in [Action::List, Action::Verify, Action::Prune, Action::Probe] {
        let mut world =
            World::new("0 0 1 1 *", "2025-01-01T00:30:00Z").with(|s| s.own_image = true);
        world.ask(action, "a1", |_| {});
        let name = world.seen.jobs[0].name.to_string();
        let end = ended(0, String::new());
        world.leave(&name, true, Some(end));
        let request = &world.seen.status.requests[0];
        assert_eq!(request.state, crds::status::RequestState::Failed);
        assert!(request.message.contains("NoReport"), "{}", request.message);
    }
}

#[test]
fn t10_a_container_that_does_not_end_decides_nothing() {
    let rows = [
        (
            true,
            ended(0, report(true)),
            RunResult::Succeeded,
            "Completed",
        ),
        (
            true,
            ended(3, report(false)),
            RunResult::Failed,
            "AccessDenied",
        ),
        (true, ended(0, String::new()), RunResult::Failed, "NoReport"),
        (true, ended(137, String::new()), RunResult::Failed, "Killed"),
        (
            false,
            ended(0, String::new()),
            RunResult::Succeeded,
            "ExitStatusOnly",
        ),
        (
            false,
            ended(9, String::new()),
            RunResult::Failed,
            "ExitCode",
        ),
    ];
    for (own, end, result, reason) in rows {
        let mut world = begun().with(|s| s.own_image = own);
        let mut pod = a_pod(&world, None);
        (pod.started, pod.held, pod.ended) = (true, Some("proxy".into()), Some(end));
        world.seen.pods.push(pod);
        world.at("2025-01-01T01:00:19Z");
        assert_eq!(
            shown(&world).0,
            RunResult::Running,
            "others get a moment to end"
        );
        assert_eq!(world.deleted, []);
        world.at("2025-01-01T01:00:20Z");
        let found = shown(&world);
        assert_eq!((found.0, found.2), (result, reason));
        let warning = world.newest().warnings.join(" ");
        assert!(warning.contains("container proxy"), "{warning}");
        assert!(world.reasons().contains(&"ContainerDidNotEnd"));
        assert_eq!(world.seen.status.active_count, Some(0));
        // Its log stays for a minute, then its Job is ended.
        world.live_to(t("2025-01-01T01:01:09Z"));
        assert_eq!(world.deleted, []);
        world.live_to(t("2025-01-01T01:01:10Z"));
        assert_eq!(world.deleted.len(), 1);
        // The next slot is not skipped.
        world.at("2025-01-01T02:00:00Z");
        assert_eq!(world.started.len(), 2);
    }
}

/// One plan never both writes an outcome and deletes what it was read from.
#[test]
fn t10_the_outcome_stands_before_the_job_is_ended() {
    let mut world = begun();
    let mut pod = a_pod(&world, None);
    let end = Some(ended(0, report(true)));
    (pod.started, pod.held, pod.ended) = (true, Some("proxy".into()), end);
    world.seen.pods.push(pod);
    let first = super::super::plan(&world.seen, t("2025-01-01T01:01:00Z"), &built);
    let deletes = |p: &Plan| p.steps.iter().any(|s| matches!(s, Step::DeleteJob { .. }));
    assert_eq!(first.status.runs[0].result, RunResult::Succeeded);
    assert!(!deletes(&first));
    world.seen.status = first.status;
    let second = super::super::plan(&world.seen, t("2025-01-01T01:01:11Z"), &built);
    assert!(deletes(&second));
}

#[test]
fn t10_a_verification_and_a_list_are_ended_too() {
    let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z").with(|s| s.own_image = true);
    world.ask(Action::List, "l1", |_| {});
    let mut pod = a_pod(&world, None);
    let end = Some(ended(0, report(true)));
    (pod.started, pod.held, pod.ended) = (true, Some("istio-proxy, vault".into()), end);
    world.seen.pods.push(pod);
    world.live_to(t("2025-01-01T01:01:00Z"));
    let request = &world.seen.status.requests[0];
    assert_eq!(request.state, crds::status::RequestState::Succeeded);
    assert!(
        request.message.contains("istio-proxy, vault"),
        "{}",
        request.message
    );
    // `runs --stored` reads its log.
    assert_eq!(world.deleted, []);
    world.live_to(t("2025-01-01T01:10:10Z"));
    assert_eq!(world.deleted.len(), 1);
}

/// Under Forbid, what another container holds up is not what runs.
#[test]
fn t10_the_next_slot_starts_beside_a_pod_that_does_not_end() {
    let mut world = World::new("* * * * *", "2025-01-01T00:59:30Z").with(|s| {
        s.own_image = true;
        s.concurrency = ConcurrencyPolicy::Forbid;
    });
    world.at("2025-01-01T01:00:00Z");
    let mut pod = a_pod(&world, None);
    let end = Some(ended(0, report(true)));
    (pod.started, pod.held, pod.ended) = (true, Some("proxy".into()), end);
    world.seen.pods.push(pod);
    world.live_to(t("2025-01-01T01:01:00Z"));
    assert_eq!(world.deleted, []);
    assert_eq!(
        world.slots(),
        ["2025-01-01T01:00:00Z", "2025-01-01T01:01:00Z"]
    );
}

/// A slot that is not due yet is believed of no Job that status does not know.
#[test]
fn o2_a_job_of_the_future_moves_no_books() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    let seed = |slot: &str| Seed {
        slot: Some(t(slot)),
        ..Seed::new("forged", Trigger::Schedule)
    };
    let forged = world.job_of(&seed("2030-01-01T00:00:00Z"));
    world.seen.jobs.push(forged);
    world.settle();
    assert_eq!(world.seen.status.runs, []);
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
    assert_eq!(world.seen.status.runs.len(), 1);

    // First sight believes it no more than later ones do.
    let mut unseen = World::unseen("0 * * * *", "2025-01-01T00:30:00Z");
    let forged = unseen.job_of(&seed("2030-01-01T00:00:00Z"));
    unseen.seen.jobs.push(forged);
    unseen.at("2025-01-01T01:00:00Z");
    assert_eq!(unseen.slots(), ["2025-01-01T01:00:00Z"]);
}

/// Who suspends a Job, as Kueue does, takes no place and is named.
#[test]
fn t9_a_suspended_job_says_so() {
    let mut world = begun();
    world.seen.jobs[0].suspended = true;
    world.at("2025-01-01T01:00:01Z");
    assert_eq!(shown(&world).2, "JobSuspended");
    assert!(world.looks.is_empty());
    assert!(!world.seen.jobs[0].takes_a_place());
}

/// The world after one more pod of the Job failed with this report's message.
fn fail_an_attempt(world: &mut World, n: i32, at: &str, why: &str) {
    let mut report = Report::new("r");
    (report.good, report.reason) = (Some(false), "AccessDenied".into());
    why.clone_into(&mut report.message);
    report.started_at = at.to_owned();
    let end = Ended {
        at: Some(t(at)),
        ..ended(3, report.to_termination_message())
    };
    let pod = PodDigest {
        name: format!("shop-{n}").into(),
        uid: format!("pod-{n}").into(),
        created: t(at),
        started: true,
        ended: Some(end),
        failures: 1,
        ..a_pod(world, None)
    };
    world.seen.pods.push(pod);
    world.seen.jobs[0].ran = true;
    world.at(at);
}

/// The words of an attempt stand in the run as long as the Job goes on, and the run's start is that of
/// its Job, whichever attempt ends it.
#[test]
fn u9_attempts_are_counted_and_the_whole_run_is_told() {
    for good in [true, false] {
        third_attempt_ends(good);
    }
}

fn third_attempt_ends(good: bool) {
    let mut world = begun();
    let start = world.newest().start_time.clone();
    assert_eq!(
        start.as_ref().map(|s| s.0.to_string()),
        Some("2025-01-01T01:00:00Z".into())
    );
    fail_an_attempt(&mut world, 1, "2025-01-01T01:00:20Z", "no such user");
    let found = shown(&world);
    assert_eq!(
        (found.0, found.2, found.3),
        (
            RunResult::Running,
            "AccessDenied",
            "attempt 2 of 3; the first failed: no such user"
        )
    );
    let writes = world.writes;
    world.settle();
    assert_eq!(world.writes, writes, "told once");
    fail_an_attempt(&mut world, 2, "2025-01-01T01:00:50Z", "wrong password");
    assert_eq!(
        shown(&world).3,
        "attempt 3 of 3; the last failed: wrong password"
    );

    // What keeps the third from starting goes first, and the count comes back when it runs.
    let pod = PodDigest {
        created: t("2025-01-01T01:01:30Z"),
        ..a_pod(&world, Some(("ErrImagePull", "no such image")))
    };
    world.seen.pods.push(pod);
    world.at("2025-01-01T01:01:31Z");
    let found = shown(&world);
    assert_eq!(
        (found.1, found.3),
        (Some(PENDING), "not started: no such image")
    );
    let writes = world.writes;
    world.settle();
    assert_eq!(world.writes, writes, "told once");
    let pod = world.seen.pods.last_mut().unwrap();
    (pod.started, pod.trouble) = (true, None);
    world.at("2025-01-01T01:01:40Z");
    assert_eq!(
        shown(&world).3,
        "attempt 3 of 3; the last failed: wrong password"
    );

    let mut report = Report::new("r");
    (report.good, report.reason) = (
        Some(good),
        if good { "Completed" } else { "NoSpace" }.into(),
    );
    report.message = if good { "" } else { "the store is full" }.into();
    report.started_at = "2025-01-01T01:01:35Z".into();
    report.ended_at = "2025-01-01T01:02:00Z".into();
    let pod = world.seen.pods.last_mut().unwrap();
    pod.ended = Some(Ended {
        at: Some(t("2025-01-01T01:02:00Z")),
        ..ended(i32::from(!good), report.to_termination_message())
    });
    pod.failures = i32::from(!good);
    world.now = t("2025-01-01T01:02:01Z");
    world.seen.jobs[0].outcome = if good {
        JobOutcome::Complete { at: world.now }
    } else {
        JobOutcome::Failed {
            at: world.now,
            reason: "BackoffLimitExceeded".into(),
            message: "".into(),
        }
    };
    world.settle();
    let run = world.newest();
    assert_eq!(run.start_time, start, "the start of the whole run");
    let took = from_k8s(run.completion_time.as_ref().unwrap()) - from_k8s(start.as_ref().unwrap());
    assert_eq!(took.num_seconds(), 120);
    if good {
        assert_eq!(
            run.warnings,
            ["attempt 3 of 3; the last failed: wrong password"]
        );
    } else {
        assert_eq!(
            run.message,
            "all 3 attempts failed; the last: the store is full"
        );
    }
}

/// A container that is restarted in its pod has failed once more than it was restarted.
#[test]
fn u9_restarts_of_a_container_are_attempts() {
    let pod = |restarts: i32, state: serde_json::Value| {
        let last = serde_json::json!({"terminated": {"exitCode": 3}});
        let found = serde_json::json!({
            "metadata": {"name": "p", "uid": "u", "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j1", "controller": true}]},
            "status": {"containerStatuses": [{"name": "backup", "image": "i", "imageID": "", "ready": false, "restartCount": restarts, "state": state, "lastState": last}]},
        });
        crate::digest::pod(&serde_json::from_value(found).unwrap())
            .unwrap()
            .failures
    };
    let back_off = serde_json::json!({"waiting": {"reason": "CrashLoopBackOff"}});
    assert_eq!(pod(1, serde_json::json!({"running": {}})), 1);
    assert_eq!(pod(1, back_off), 2);
    assert_eq!(
        pod(2, serde_json::json!({"terminated": {"exitCode": 0}})),
        2
    );
}
