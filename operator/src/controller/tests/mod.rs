//! The operator is stopped at every single API call, before and after it takes effect, and started
//! again; or the call is refused, its answer lost, its change dropped from the watch. Whatever
//! happens, the cluster ends as it does without the fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod clock;
mod driver;
mod hostile;
mod large;
mod limits;
mod panics;
mod policy;
mod requests;
mod scenarios;
mod two;

use std::sync::Mutex;

use crate::fake_api::{Fault, State};
use driver::{Caches, Ending, Scenario, Try};

/// When every story begins.
const BEGIN: &str = "2025-01-15T10:00:30Z";

/// Counts over all scenarios.
#[derive(Default)]
struct Tally {
    scenarios: usize,
    tries: usize,
    lost: usize,
    doubled: usize,
    different: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.tries += other.tries;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.different.extend(other.different);
    }

    fn enter(&mut self, what: &str, plain: &Ending, ending: &Ending) {
        self.tries += 1;
        let lost = plain
            .created
            .keys()
            .filter(|slot| !ending.created.contains_key(*slot))
            .count();
        let doubled = ending.created.values().filter(|n| **n > 1).count();
        self.lost += lost;
        self.doubled += doubled;
        if lost + doubled > 0 || ending != plain {
            let text = format!("{what}:\n  {ending:?}\n  instead of\n  {plain:?}");
            if self.different.is_empty() {
                println!("{text}");
            }
            self.different.push(text);
        }
    }
}

async fn play(mut attempt: Try) -> (Ending, Try) {
    let ending = attempt.play().await;
    (ending, attempt)
}

/// The process dies before and after each call; the next one has fresh or stale caches.
async fn crashes(scenario: &Scenario, points: &[[State; 2]], plain: &Ending, tally: &mut Tally) {
    for (call, sides) in points.iter().enumerate() {
        for (side, state) in ["before", "after"].iter().zip(sides) {
            for caches in [Caches::Fresh, Caches::Stale(3)] {
                let (ending, _) = play(Try::from(scenario, state.clone(), caches)).await;
                let what = format!(
                    "{}: crash {side} call {}, caches {caches:?}",
                    scenario.name,
                    call + 1
                );
                tally.enter(&what, plain, &ending);
            }
        }
    }
}

/// One call goes wrong, in a process that runs on or has just begun.
async fn faults(scenario: &Scenario, points: &[[State; 2]], plain: &Ending, tally: &mut Tally) {
    for (call, [before, _]) in points.iter().enumerate() {
        for fault in [[409, 500], [429, 409], [500, 429]][call % 3].map(Fault::Refused) {
            let mut state = before.clone();
            state.fault = Some((state.calls + 1, fault));
            let (ending, _) = play(Try::from(scenario, state, Caches::Fresh)).await;
            tally.enter(
                &format!("{}: {fault:?} at call {}", scenario.name, call + 1),
                plain,
                &ending,
            );
        }
        for fault in [Fault::AnswerLost, Fault::Conflict] {
            let attempt = Try::new(scenario, Some((call + 1, fault)), Caches::Fresh);
            let (ending, _) = play(attempt).await;
            tally.enter(
                &format!("{}: {fault:?} at call {}", scenario.name, call + 1),
                plain,
                &ending,
            );
        }
    }
}

async fn everything(scenario: &Scenario, tally: &mut Tally) {
    let begin = std::time::Instant::now();
    let (plain, attempt) = play(Try::kept(scenario)).await;
    (scenarios::expected(scenario.name))(&plain);
    let (points, changes) = (attempt.points(), attempt.changes());
    tally.scenarios += 1;
    let before = tally.tries;
    crashes(scenario, &points, &plain, tally).await;
    faults(scenario, &points, &plain, tally).await;
    for change in 1..changes {
        let (ending, _) = play(Try::new(scenario, None, Caches::Dropping(change))).await;
        tally.enter(
            &format!("{}: change {change} dropped", scenario.name),
            &plain,
            &ending,
        );
    }
    println!(
        "{:>32}: {} calls, {} tries, {:.1?}",
        scenario.name,
        points.len(),
        tally.tries - before,
        begin.elapsed()
    );
}

/// Scenarios one after the other, each thread taking the next.
fn in_turn(stories: &Mutex<Vec<Scenario>>, tally: &Mutex<Tally>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    loop {
        let Some(story) = stories.lock().unwrap().pop() else {
            return;
        };
        let mut own = Tally::default();
        runtime.block_on(everything(&story, &mut own));
        tally.lock().unwrap().add(own);
    }
}

#[test]
fn crash_at_every_call_loses_and_doubles_nothing() {
    let (stories, tally) = (Mutex::new(scenarios::all()), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| in_turn(&stories, &tally));
        }
    });
    let tally = tally.into_inner().unwrap();
    println!(
        "{} scenarios × crash points: {} tries, lost {}, doubled {}, ended differently {}",
        tally.scenarios,
        tally.tries,
        tally.lost,
        tally.doubled,
        tally.different.len()
    );
    let first: Vec<&String> = tally.different.iter().take(6).collect();
    assert!(first.is_empty(), "{first:#?}");
}
