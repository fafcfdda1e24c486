//! Which installation acts on an object.

use super::*;

const OTHER: &str = "other/backup-operator";

fn foreign_installation(world: &mut World, standing: Standing) {
    world
        .seen
        .foreign_installations
        .insert(OTHER.into(), standing);
}

/// An object that another installation holds, first seen by this one at 10:05.
fn held(standing: Standing) -> World {
    let mut world = World::new("*/10 * * * *", "2025-01-15T10:01:00Z");
    world.seen.status.controller = Some(OTHER.into());
    foreign_installation(&mut world, standing);
    world
}

#[test]
fn nothing_is_decided_before_the_claim_stands_in_status() {
    let mut seen = observed("*/10 * * * *", "2025-01-15T10:01:00Z");
    seen.status = ScheduleStatus::default();
    let plan = plan(&seen, t("2025-01-15T10:31:00Z"), &built);
    let claimed = ScheduleStatus {
        controller: Some(HERE.into()),
        ..ScheduleStatus::default()
    };
    assert_eq!((plan.steps, plan.status), (vec![], claimed));
}

#[test]
fn an_object_another_installation_holds_is_left_alone() {
    for standing in [Standing::Alive, Standing::Unknown] {
        let mut world = held(standing);
        let before = world.seen.status.clone();
        world.ask(Action::Backup, "r1", |_| {});
        world.at("2025-01-15T10:31:00Z");
        assert!(world.started.is_empty(), "{standing:?}");
        let mut after = world.seen.status.clone();
        assert_eq!(std::mem::take(&mut after.other_controllers), [HERE]);
        assert_eq!(after, before, "{standing:?}");
        assert_eq!(world.seen.object.annotations.len(), 1, "the request stays");
        assert_eq!(world.wake, Some(t("2025-01-15T10:31:30Z")));
    }
}

#[test]
fn one_more_installation_than_are_listed_writes_nothing() {
    let mut world = held(Standing::Alive);
    let listed = ["a/x", "b/x", "c/x"].map(str::to_owned);
    world.seen.status.other_controllers = listed.to_vec();
    let writes = world.writes;
    world.at("2025-01-15T10:31:00Z");
    assert_eq!(world.writes, writes);
}

#[test]
fn the_claim_of_an_installation_that_is_gone_is_taken_over_after_a_live_read() {
    let mut world = held(Standing::Alive);
    world.at("2025-01-15T10:31:00Z");
    foreign_installation(&mut world, Standing::Gone);
    let reads = world.live_reads;
    world.at("2025-01-15T10:32:00Z");
    assert!(world.live_reads > reads);
    assert_eq!(world.seen.status.controller.as_deref(), Some(HERE));
    assert!(world.seen.status.other_controllers.is_empty());
    assert_eq!(world.slots(), ["2025-01-15T10:30:00Z"]);
    assert_eq!(world.seen.status.totals.unwrap().missed, 2);
}

#[test]
fn the_holder_goes_on_and_says_who_else_is_there_until_it_is_gone() {
    let mut world = World::new("*/10 * * * *", "2025-01-15T10:01:00Z");
    world.seen.status.other_controllers = vec![OTHER.into()];
    foreign_installation(&mut world, Standing::Alive);
    world.at("2025-01-15T10:10:00Z");
    assert_eq!(world.slots(), ["2025-01-15T10:10:00Z"]);
    let (status, reason) = world.condition("Exclusive");
    assert_eq!((&*status, &*reason), ("False", "ForeignController"));
    let told = crds::condition::get(&world.seen.status.conditions, "Exclusive").unwrap();
    assert!(told.message.contains(OTHER), "{}", told.message);
    assert_eq!(world.condition("Accepted").0, "True");
    world.at("2025-01-15T10:11:00Z");
    let events = world.reasons();
    let times = events.iter().filter(|r| **r == "ForeignController");
    assert_eq!(times.count(), 1);
    foreign_installation(&mut world, Standing::Gone);
    world.at("2025-01-15T10:12:00Z");
    let conditions = &world.seen.status.conditions;
    assert!(crds::condition::get(conditions, "Exclusive").is_none());
    assert!(world.seen.status.other_controllers.is_empty());
}
