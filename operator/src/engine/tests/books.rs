//! A run is counted once in its life, and a plan that was carried out is followed by one that has
//! nothing to write, whatever the history, the limits and the sizes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The longest that a pod can say.
fn long(n: usize) -> Ended {
    let text = format!("{n} {}", "what the client said at length; ".repeat(40));
    Ended {
        exit_code: 1,
        reason: "Error".into(),
        message: text.into(),
        at: None,
    }
}

fn ask_many(world: &mut World, ids: impl IntoIterator<Item = usize>) {
    for id in ids {
        let id = format!("r{id}");
        let request = Request::new(Action::Backup, &id, "alice", world.now);
        let key = Request::annotation_key(&id);
        let annotations = &mut world.seen.object.annotations;
        annotations.insert(key, request.annotation_value());
    }
    world.settle();
}

fn manual(world: &World) -> i64 {
    world.seen.status.totals.unwrap().manual
}

/// Another look at the same world, by this process and by one that was just started.
fn looks_again(world: &mut World) {
    let before = (world.writes, world.events.len(), world.deleted.len());
    for _ in 0..5 {
        world.settle();
    }
    let plan = plan(&world.seen, world.now, &built);
    assert_eq!(plan.steps, [], "a quiet world is written to");
    assert_eq!(plan.status, world.seen.status);
    let after = (world.writes, world.events.len(), world.deleted.len());
    assert_eq!(before, after);
}

#[test]
fn o3_thirty_kept_jobs_of_manual_runs_are_counted_once() {
    for keep in [3, 14, 30, 10_000] {
        let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z");
        world.seen.settings.keep_good = Some(keep);
        world.seen.settings.keep_failed = Some(keep);
        for id in 0..40 {
            ask_many(&mut world, [id]);
            let name = world.started.last().unwrap().name.clone();
            let end = long(id);
            world.now += Duration::seconds(7);
            if id % 3 == 0 {
                world.finish(&name, true);
            } else {
                world.leave(&name, false, Some(end));
            }
            let done = i64::try_from(id).unwrap() + 1;
            assert_eq!(manual(&world), done, "keep {keep}");
            looks_again(&mut world);
        }
        assert!(world.writes < 40 * 8, "{} writes", world.writes);
        world.now += Duration::hours(1);
        world.settle();
        assert_eq!(manual(&world), 40);
        looks_again(&mut world);
        let first = world.started[0].name.clone();
        assert!(world.seen.status.runs.iter().all(|r| r.name != first));
    }
}

#[test]
fn o3_a_burst_of_sixty_requests_is_answered_once_each() {
    for keep in [3, 100] {
        let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z");
        world.seen.settings.keep_good = Some(keep);
        ask_many(&mut world, 0..60);
        for _ in 0..60 {
            world.now += Duration::seconds(1);
            world.finish_all();
        }
        assert_eq!(world.seen.object.annotations.len(), 0);
        let ran = i64::try_from(world.started.len()).unwrap();
        assert_eq!(manual(&world), ran);
        let refused = world
            .reasons()
            .iter()
            .filter(|r| **r == "RequestRefused")
            .count();
        assert_eq!(world.started.len() + refused, 60);
        looks_again(&mut world);
        world.now += Duration::hours(1);
        world.settle();
        assert_eq!(manual(&world), ran);
        looks_again(&mut world);
    }
}

/// What was seen: an old good run, counted again each sixteen slots, ended the row of failures.
#[test]
fn o3_old_manual_runs_do_not_come_back_between_failing_slots() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.seen.settings.keep_good = Some(30);
    for id in 0..14 {
        ask_many(&mut world, [id]);
        world.now += Duration::seconds(5);
        world.finish_all();
    }
    for hour in 1..60 {
        world.live_to(t("2025-01-01T00:00:00Z") + Duration::hours(hour));
        let name = world.started.last().unwrap().name.clone();
        world.now += Duration::seconds(30);
        world.leave(&name, false, Some(long(usize::try_from(hour).unwrap())));
        let status = &world.seen.status;
        assert_eq!(status.consecutive_failures.map(i64::from), Some(hour));
        assert_eq!(status.last_result.as_deref(), Some("Failed"));
        assert_eq!(manual(&world), 14);
    }
}

/// A status that the version before left: it knows no instant, and its list was full.
#[test]
fn o3_a_status_of_the_version_before_is_taken_as_it_is() {
    let mut world = World::new("0 0 1 1 *", "2025-01-01T00:30:00Z");
    world.seen.settings.keep_good = Some(100);
    for id in 0..30 {
        ask_many(&mut world, [id]);
        world.now += Duration::seconds(5);
        world.finish_all();
    }
    assert!(world.seen.status.runs.len() < 20, "cut by bytes");
    world.seen.status.manual_accounted_until = None;
    world.settle();
    assert_eq!(manual(&world), 30);
    looks_again(&mut world);
}

/// An end with more words than status holds is written once.
#[test]
fn o3_what_is_cut_is_written_once() {
    let mut world = World::new("0 * * * *", "2025-01-01T00:30:00Z");
    world.seen.kind_conditions = vec![KindCondition {
        type_: crds::condition::REFERENCES_RESOLVED,
        status: true,
        reason: "Resolved",
        message: "a warning at length ".repeat(50),
    }];
    for hour in 1..30 {
        world.live_to(t("2025-01-01T00:00:00Z") + Duration::hours(hour));
        let name = world.started.last().unwrap().name.clone();
        world.now += Duration::seconds(30);
        let before = world.writes;
        world.leave(&name, false, Some(long(usize::try_from(hour).unwrap())));
        assert_eq!(world.writes, before + 1, "hour {hour}");
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Turn {
    Ask(usize),
    /// Which of the active Jobs ends, and how.
    End(usize, bool, bool),
    Pass(i64),
    Keep(i32),
    /// A finished Job is removed by its TTL or by hand.
    Remove(usize),
    Restart,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        4 => (1_usize..5).prop_map(Turn::Ask),
        6 => (0_usize..10, any::<bool>(), any::<bool>()).prop_map(|(n, good, long)| Turn::End(n, good, long)),
        3 => (1_i64..5000).prop_map(Turn::Pass),
        1 => (0_i32..40).prop_map(Turn::Keep),
        1 => (0_usize..40).prop_map(Turn::Remove),
        1 => Just(Turn::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() })]
    #[test]
    fn o3_planning_again_writes_nothing_and_each_run_counts_once(
        daily in any::<bool>(),
        policy in 0_usize..3,
        story in prop::collection::vec(turn(), 1..30),
    ) {
        let schedule = if daily { "@daily" } else { "*/20 * * * *" };
        let mut world = World::new(schedule, "2025-01-01T00:30:00Z");
        world.seen.settings.concurrency = policies()[policy];
        world.seen.settings.keep_good = Some(30);
        let (mut asked, mut happened) = (0, 0);
        for turn in story {
            happened += 1;
            match turn {
                Turn::Ask(many) => {
                    happened += many;
                    ask_many(&mut world, asked..asked + many);
                    asked += many;
                }
                Turn::End(n, good, wordy) => {
                    let active: Vec<String> = world.seen.jobs.iter()
                        .filter(|j| j.is_active()).map(|j| j.name.to_string()).collect();
                    if let Some(name) = active.get(n % active.len().max(1)) {
                        world.now += Duration::seconds(3);
                        let end = if wordy { long(n) } else { Ended { exit_code: 0, reason: "Completed".into(), message: "".into(), at: None } };
                        world.leave(name, good, Some(end));
                    }
                }
                Turn::Pass(seconds) => {
                    let until = world.now + Duration::seconds(seconds);
                    let before = world.started.len();
                    world.live_to(until);
                    happened += world.started.len() - before;
                }
                Turn::Keep(keep) => {
                    world.seen.settings.keep_good = Some(keep);
                    world.seen.settings.keep_failed = Some(keep);
                    world.settle();
                }
                Turn::Remove(n) => {
                    let ended: Vec<_> = world.seen.jobs.iter()
                        .filter(|j| !j.is_active()).map(|j| j.uid.clone()).collect();
                    if let Some(uid) = ended.get(n) {
                        world.seen.jobs.retain(|j| j.uid != *uid);
                    }
                    world.settle();
                }
                Turn::Restart => {
                    world.seen.leading_since = world.now;
                    world.seen.failures.clear();
                    world.settle();
                }
            }
            looks_again(&mut world);
        }
        // A model of its own: each manual Job that was ever created is one run.
        let ran: BTreeSet<&str> = world.started.iter()
            .filter(|s| s.trigger == Trigger::Manual && s.action == Action::Backup)
            .map(|s| &*s.name).collect();
        let waiting = world.seen.status.runs.iter()
            .filter(|r| r.trigger == Trigger::Manual && r.job_uid.is_none()).count();
        let totals = world.seen.status.totals.unwrap();
        prop_assert_eq!(usize::try_from(totals.manual).unwrap(), ran.len() + waiting);
        prop_assert!(world.writes <= 12 * happened + 40, "{} writes for {}", world.writes, happened);
    }
}
