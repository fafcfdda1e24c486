//! Runs that can't be made, schedules of seconds, slots that are skipped far ahead, and books that
//! are ahead of the clock: each is said, and costs little.

use super::*;

/// Lives through `minutes`, awake at each wake-up; gives status writes, creations, events.
fn costs(world: &mut World, minutes: i64) -> (usize, usize, usize) {
    let before = (world.writes, world.posts, world.events.len());
    let until = world.now + Duration::minutes(minutes);
    world.live_to(until);
    let after = (world.writes, world.posts, world.events.len());
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

#[test]
fn o7_both_names_of_a_slot_taken_is_said_once_and_tried_later_each_time() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    let slot = t("2025-01-01T01:00:00Z");
    let plain = crds::names::slot_name("shop", "uid-shop", slot);
    let hashed = crds::names::hashed_slot_name("shop", "uid-shop", slot);
    world.taken = vec![plain.clone(), hashed];
    world.at("2025-01-01T01:00:00Z");
    assert_eq!(shown(world.newest()), (RunResult::Waiting, "NameTaken"));
    assert!(
        world.newest().message.contains("delete it"),
        "{}",
        world.newest().message
    );
    assert_eq!(
        world.condition("Scheduled"),
        ("False".into(), "NameTaken".into())
    );
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "NameTaken".into())
    );
    let (writes, posts, events) = costs(&mut world, 50);
    // 5, 10, 20, … 300 s, for one name and the other.
    assert!((10..=25).contains(&posts), "{posts} creations");
    assert!(writes <= posts, "{writes} writes");
    assert_eq!(events, 0, "{:?}", world.reasons());
    assert_eq!(
        world
            .reasons()
            .iter()
            .filter(|r| **r == "NameTaken")
            .count(),
        1
    );
    // One of them goes: the run starts within the backoff.
    world.taken.clear();
    costs(&mut world, 6);
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
    assert_eq!(world.newest().result, RunResult::Running);
    assert_eq!(world.condition("Scheduled").0, "True");
}

#[test]
fn o7_a_schedule_of_seconds_against_a_quota_costs_what_its_backoff_says() {
    for schedule in ["@every 1s", "@every 30s", "* * * * *"] {
        let mut world = World::new(schedule, "2025-01-01T00:30:00Z");
        world.refuse = Some(("Forbidden", "exceeded quota: jobs"));
        let (writes, posts, events) = costs(&mut world, 60);
        assert!((15..=24).contains(&posts), "{schedule}: {posts} creations");
        assert!(writes <= 3 * posts + 4, "{schedule}: {writes} writes");
        assert!(events <= 3 * posts, "{schedule}: {events} events");
        let failed = world
            .reasons()
            .iter()
            .filter(|r| **r == "FailedCreate")
            .count();
        assert_eq!(failed, 1, "{schedule}: one event a state");
        assert_eq!(
            world.condition("Scheduled"),
            ("False".into(), "FailedCreate".into())
        );
        // Room again: it goes on, and the condition ends.
        world.refuse = None;
        costs(&mut world, 6);
        assert!(!world.started.is_empty());
        assert_eq!(world.condition("Scheduled").0, "True");
        let totals = world.seen.status.totals.unwrap();
        assert!(totals.missed + totals.failed + totals.skipped > 0);
    }
}

#[test]
fn o7_an_interval_under_a_minute_is_accepted_with_a_word() {
    for (schedule, said) in [
        ("@every 10s", "write @every 1m or longer"),
        ("@every 59s", "starts a run every 59s"),
        ("@every 1m", ""),
        ("* * * * *", ""),
    ] {
        let mut world = World::new(schedule, "2025-01-01T00:30:00Z");
        world.settle();
        let accepted = crds::condition::get(&world.seen.status.conditions, "Accepted").unwrap();
        assert_eq!(accepted.status, "True", "{schedule}");
        assert!(
            accepted.message.contains(said),
            "{schedule}: {}",
            accepted.message
        );
        assert_eq!(accepted.message.is_empty(), said.is_empty(), "{schedule}");
    }
}

#[test]
fn o7_an_edit_of_the_spec_is_tried_at_once() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.refuse = Some(("Invalid", "spec.template: bad"));
    world.at("2025-01-01T01:00:00Z");
    costs(&mut world, 20);
    world.refuse = None;
    world.seen.object.generation = Some(2);
    world.settle();
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
}

#[test]
fn o7_runs_are_started_ten_seconds_apart_at_least_which_is_said() {
    let mut world = World::new("@every 1s", "2025-01-01T00:30:00Z");
    let until = world.now + Duration::minutes(10);
    while world.now < until {
        let next = world.now + Duration::seconds(1);
        world.live_to(next);
        world.finish_all();
    }
    assert!(
        (58..=61).contains(&world.started.len()),
        "{}",
        world.started.len()
    );
    let totals = world.seen.status.totals.unwrap();
    assert_eq!(totals.missed, 0);
    assert!(totals.skipped > 500, "{totals:?}");
    let scheduled = crds::condition::get(&world.seen.status.conditions, "Scheduled").unwrap();
    assert!(
        scheduled.message.contains("each 10 s"),
        "{}",
        scheduled.message
    );
    assert!(world.writes < 5 * world.started.len(), "{}", world.writes);
    assert!(world.seen.status.missed.is_empty());
}

#[test]
fn o7_the_one_run_of_an_object_without_schedule_says_why_it_waits() {
    let mut world = World::unseen("@daily", "2025-01-01T00:30:00Z").with(|s| s.schedule = None);
    world.refuse = Some(("Forbidden", "exceeded quota: jobs"));
    world.settle();
    assert_eq!(shown(world.newest()), (RunResult::Waiting, "FailedCreate"));
    let (writes, posts, _) = costs(&mut world, 60);
    assert!(
        posts < 20 && writes < 4,
        "{posts} creations, {writes} writes"
    );
    world.refuse = None;
    costs(&mut world, 6);
    assert_eq!(world.started.len(), 1);
    world.finish_all();
    assert_eq!(world.newest().result, RunResult::Succeeded);
    assert_eq!(world.seen.status.totals.unwrap().manual, 1);
}

fn skip_until(world: &mut World, until: &str) {
    let annotations = &mut world.seen.object.annotations;
    annotations.insert(crds::labels::SKIP_SLOTS_UNTIL.into(), until.into());
    world.settle();
}

#[test]
fn o6_slots_skipped_far_ahead_are_said_and_make_it_not_ready() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    skip_until(&mut world, "2099-01-01T00:00:00Z");
    assert_eq!(
        world.condition("Scheduled"),
        ("False".into(), "SkippedByUser".into())
    );
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "SkippedByUser".into())
    );
    let scheduled = crds::condition::get(&world.seen.status.conditions, "Scheduled").unwrap();
    for word in [
        "2099-01-01T00:00:00Z",
        "kubectl annotate -n ns mysqlbackup/shop batch.isekiro.com/skip-slots-until-",
    ] {
        assert!(scheduled.message.contains(word), "{}", scheduled.message);
    }
    assert!(world.reasons().contains(&"SkippedByUser"));
    let next = world.seen.status.next_schedule_time.as_ref().map(from_k8s);
    assert_eq!(
        next,
        Some(t("2099-01-01T01:00:00Z")),
        "what comes next is what will be started"
    );
    world.live_to(t("2025-01-02T00:30:00Z"));
    assert_eq!(world.started.len(), 0);
    world.seen.object.annotations.clear();
    world.settle();
    assert_eq!(world.condition("Scheduled").0, "True");
    // Slots of a day have passed, and nothing good came of them.
    assert_eq!(world.condition("Ready"), ("False".into(), "Overdue".into()));
    // A few hours are what the annotation is for.
    skip_until(&mut world, "2025-01-02T05:30:00Z");
    assert_eq!(world.condition("Scheduled").1, "SkippedByUser");
    assert_eq!(world.condition("Ready").0, "True");
    // One that no slot falls into says nothing.
    skip_until(&mut world, "2025-01-02T00:45:00Z");
    assert_eq!(world.condition("Scheduled").0, "True");
}

/// A clock that is a day ahead, for as long as it takes, and then right again.
fn leapt(schedule: &str) -> World {
    let mut world = World::new(schedule, "2025-01-01T00:30:00Z");
    world.live_to(t("2025-01-01T03:10:00Z"));
    world.finish_all();
    world.leapt = true;
    world.at("2025-01-02T03:20:00Z").finish_all();
    world.now = t("2025-01-01T03:20:00Z");
    world.settle();
    world
}

#[test]
fn o6_books_ahead_of_the_clock_are_said_and_ring() {
    let mut world = leapt("0 * * * *");
    assert_eq!(
        world.condition("Scheduled"),
        ("False".into(), "AccountedAhead".into())
    );
    assert_eq!(
        world.condition("Ready"),
        ("False".into(), "AccountedAhead".into())
    );
    let writes = world.writes;
    world.live_to(t("2025-01-01T06:10:00Z"));
    assert_eq!(world.writes, writes, "said once");
    assert!(world.reasons().contains(&"AccountedAhead"));
}

#[test]
fn o6_books_ahead_of_the_api_servers_clock_are_set_back_and_slots_run_again() {
    for schedule in ["0 * * * *", "@every 1h"] {
        let mut world = leapt(schedule);
        let before = world.started.len();
        // The API server stamped the write that said so.
        world.seen.object.status_written = Some(world.now);
        world.settle();
        assert!(world.reasons().contains(&"AccountingMended"));
        assert_eq!(world.condition("Scheduled").0, "True", "{schedule}");
        let totals = world.seen.status.totals.unwrap();
        assert!(totals.missed <= 1, "{totals:?}");
        world.live_to(t("2025-01-01T06:10:00Z"));
        world.finish_all();
        assert_eq!(
            world.started.len(),
            before + 3,
            "{schedule}: {:?}",
            world.slots()
        );
        // The slot that was run a day ahead has a backup of its own day.
        world.live_to(t("2025-01-02T03:10:00Z"));
        world.finish_all();
        let newest = world.started.last().unwrap().slot.unwrap();
        assert!(newest > t("2025-01-02T02:00:00Z"), "{schedule}: {newest}");
        assert_eq!(world.seen.status.totals.unwrap().missed, totals.missed);
    }
}

#[test]
fn o6_a_clock_that_is_behind_mends_nothing() {
    let mut world = leapt("0 * * * *");
    // The books are right, and it is this process that is a day late.
    world.seen.object.status_written = Some(t("2025-01-02T03:20:00Z"));
    let until = world.seen.status.accounted_until.clone();
    world.settle();
    assert_eq!(world.seen.status.accounted_until, until);
    assert_eq!(world.condition("Scheduled").1, "AccountedAhead");
    // A few minutes are no leap.
    let mut near = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    near.at("2025-01-01T01:00:30Z");
    near.now = t("2025-01-01T00:20:00Z");
    near.seen.object.status_written = Some(near.now);
    near.settle();
    assert_eq!(near.condition("Scheduled").0, "True");
    assert!(!near.reasons().contains(&"AccountingMended"));
}

/// An object's own Job that says it is for a slot years ahead moves nothing.
#[test]
fn o6_a_job_for_a_slot_ahead_of_the_clock_does_not_move_the_books() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    let mut job = world.job_of(&Seed {
        slot: Some(t("2030-01-01T00:00:00Z")),
        ..Seed::new("forged", Trigger::Schedule)
    });
    job.outcome = JobOutcome::Complete { at: world.now };
    world.seen.jobs.push(job);
    world.settle();
    world.live_to(t("2025-01-01T01:00:00Z"));
    assert_eq!(world.slots(), ["2025-01-01T01:00:00Z"]);
}
