//! The books hold in every state: due is what stepping through the slots one by one finds, and
//! everything due is somewhere.

use crds::schedule::Schedule;
use proptest::prelude::*;

use super::*;

/// Something that happens to an object.
#[derive(Clone, Debug)]
enum Happening {
    Pass(i64),
    Sleep(i64),
    Back(i64),
    Finish(bool),
    Vanish,
    Suspend(bool),
    Edit(usize),
    Policy(usize),
    Deadline(Option<i64>),
    SkipAhead(i64),
    Refuse(bool),
    Full(bool),
    Ask(bool),
    Cancel,
    Jitter(i64),
}

const SCHEDULES: [&str; 6] = [
    "*/10 * * * *",
    "0 2,3 * * *",
    "17 */5 * * *",
    "@every 45m",
    "30 10,11,12 * * 1-5",
    "0 0 30 2 *",
];

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => (1_i64..150).prop_map(Pass),
        3 => (1_i64..6000).prop_map(Sleep),
        1 => (1_i64..600).prop_map(Back),
        6 => any::<bool>().prop_map(Finish),
        1 => Just(Vanish),
        2 => any::<bool>().prop_map(Suspend),
        2 => (0..SCHEDULES.len()).prop_map(Edit),
        2 => (0_usize..3).prop_map(Policy),
        1 => prop::option::of(0_i64..4000).prop_map(Deadline),
        1 => (1_i64..600).prop_map(SkipAhead),
        1 => any::<bool>().prop_map(Refuse),
        1 => any::<bool>().prop_map(Full),
        2 => any::<bool>().prop_map(Ask),
        1 => Just(Cancel),
        1 => (0_i64..1200).prop_map(Jitter),
    ]
}

/// A world with the stretches in which each schedule held.
struct Told {
    world: World,
    /// Schedule, what `@every` counts from, and where it begins.
    stretches: Vec<(Schedule, DateTime<Utc>, DateTime<Utc>)>,
    asked: u32,
}

impl Told {
    fn happen(&mut self, what: &Happening) {
        let world = &mut self.world;
        match what {
            Happening::Pass(minutes) => {
                let until = world.now + Duration::minutes(*minutes);
                world.live_to(until);
            }
            Happening::Sleep(minutes) => world.now += Duration::minutes(*minutes),
            Happening::Back(minutes) => world.now -= Duration::minutes(*minutes),
            Happening::Finish(good) => {
                let active = world
                    .seen
                    .jobs
                    .iter()
                    .find(|j| j.is_active())
                    .map(|j| j.name.to_string());
                if let Some(name) = active {
                    world.finish(&name, *good);
                }
            }
            Happening::Vanish => world.seen.jobs.retain(|j| !j.is_active()),
            Happening::Suspend(on) => world.seen.settings.suspend = *on,
            Happening::Edit(n) => self.edit(SCHEDULES[*n]),
            Happening::Policy(n) => world.seen.settings.concurrency = policies()[*n],
            Happening::Deadline(d) => world.seen.settings.starting_deadline = *d,
            Happening::SkipAhead(minutes) => {
                let until = crds::time::rfc3339(world.now + Duration::minutes(*minutes));
                world
                    .seen
                    .object
                    .annotations
                    .insert(crds::labels::SKIP_SLOTS_UNTIL.into(), until);
            }
            Happening::Refuse(on) => world.refuse = on.then_some(("Forbidden", "exceeded quota")),
            Happening::Full(on) => {
                world.seen.room.total = on.then_some(Limit { most: 1, active: 1 });
            }
            Happening::Ask(queue) => {
                self.asked += 1;
                let queue = *queue;
                world.ask(Action::Backup, &format!("r{}", self.asked), |r| {
                    r.options.queue = queue
                });
            }
            Happening::Cancel => {
                self.asked += 1;
                world.ask(Action::Cancel, &format!("r{}", self.asked), |_| {});
            }
            Happening::Jitter(seconds) => world.seen.settings.jitter_seconds = *seconds,
        }
        self.world.settle();
    }

    fn edit(&mut self, schedule: &str) {
        if self.world.seen.settings.schedule.as_deref() == Some(schedule) {
            return;
        }
        self.world.seen.settings.schedule = Some(schedule.into());
        self.world.settle();
        let since = self
            .world
            .seen
            .status
            .schedule
            .as_ref()
            .unwrap()
            .since
            .as_ref()
            .map(from_k8s)
            .unwrap();
        let begins = slots::accounted(&self.world.seen.status, since);
        self.stretches
            .push((Schedule::parse(schedule, None).unwrap(), since, begins));
    }

    /// Slots up to `until`, one by one.
    fn walk(&self, origin: DateTime<Utc>, until: DateTime<Utc>) -> (i64, Option<DateTime<Utc>>) {
        let (mut count, mut last, mut from) = (0, None, origin);
        for (i, (schedule, anchor, begins)) in self.stretches.iter().enumerate() {
            let end = self
                .stretches
                .get(i + 1)
                .map_or(until, |(.., next)| *next)
                .min(until);
            let mut at = from.max(*begins);
            while let Some(slot) = schedule.next_after(at, *anchor).filter(|s| *s <= end) {
                (count, last, at) = (count + 1, Some(slot), slot);
            }
            from = from.max(end);
        }
        (count, last)
    }

    fn check(&self) {
        let status = &self.world.seen.status;
        let until = slots::accounted(status, self.world.now);
        let (due, _) = self.walk(t(ORIGIN), until);
        assert_eq!(
            status.totals.unwrap_or_default().due,
            due,
            "slots up to {until}"
        );
        let settings = &self.world.seen.settings;
        // While creations fail, newer slots are looked at by the object's backoff.
        let waits = |r: &Run| r.result == RunResult::Waiting && r.reason == "FailedCreate";
        let backs_off = status.runs.iter().any(waits);
        if !settings.suspend && settings.jitter_seconds == 0 && !backs_off {
            let (_, newest) = self.walk(until, self.world.now);
            assert_eq!(newest, None, "a due slot is not accounted");
        }
    }
}

const ORIGIN: &str = "2025-01-01T00:05:00Z";

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, max_shrink_iters: 1000, ..ProptestConfig::default() })]
    #[test]
    fn the_books_hold_whatever_happens(first in 0..SCHEDULES.len(), story in prop::collection::vec(happening(), 1..40)) {
        let world = World::new(SCHEDULES[first], ORIGIN);
        let schedule = Schedule::parse(SCHEDULES[first], None).unwrap();
        let mut told = Told { world, stretches: vec![(schedule, t(ORIGIN), t(ORIGIN))], asked: 0 };
        for what in &story {
            told.happen(what);
            told.check();
        }
    }
}
