//! Two installations of the operator on the same objects, taking turns call by call.

use chrono::{DateTime, Duration, Utc};
use serde_json::json;

use super::driver::{Caches, HERE, OBJECT, Try};
use super::scenarios;
use crate::fake_api::State;

const THERE: &str = "other/backup-operator-unelected";

/// Renews the Lease of an installation, as its process would.
fn renew(state: &mut State, installation: &str) {
    let (_, name) = installation.split_once('/').unwrap();
    let spec = json!({"holderIdentity": "x", "renewTime": state.now.to_rfc3339()});
    if state.get("leases", name).is_some() {
        state.change("leases", name, |lease| lease["spec"] = spec);
    } else {
        state.put("leases", json!({"metadata": {"name": name}, "spec": spec}));
    }
}

/// Which of the two takes the next turn.
struct Turns(u64);

impl Turns {
    fn next(&mut self) -> bool {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 40 & 1 == 1
    }
}

/// Both work, in turns, until nothing is left to do; one that is gone does nothing.
async fn work(pair: [&mut Try; 2], here: [bool; 2], turns: &mut Turns) {
    let [a, b] = pair;
    let mut idle = [!here[0], !here[1]];
    for _ in 0..2000 {
        if idle == [true, true] {
            return;
        }
        let first = if idle[0] || idle[1] {
            idle[1]
        } else {
            turns.next()
        };
        let (one, index) = if first { (&mut *a, 0) } else { (&mut *b, 1) };
        let worked = one.step().await;
        idle[index] = !worked;
        if worked {
            // What one wrote is news for the other.
            idle[1 - index] = !here[1 - index];
        }
    }
    panic!("the two installations do not come to rest");
}

/// Plays the story "slots" with two installations, the holder of the claim gone from `gone` on.
async fn play(seed: u64, gone: DateTime<Utc>) -> (super::Ending, Vec<String>) {
    let story = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    let mut a = Try::new(&story, None, Caches::Fresh);
    for name in [HERE, THERE] {
        renew(&mut a.state(), name);
    }
    let mut b = a.concurrency_hold(THERE);
    let end = crds::time::parse_rfc3339(story.end).unwrap();
    let (mut turns, mut said) = (Turns(seed), vec![]);
    loop {
        let now = a.now();
        let status = a.state().get("mysqlbackups", OBJECT).unwrap()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        said.extend(
            conditions
                .iter()
                .filter(|c| c["type"] == "Exclusive")
                .map(|c| c["message"].to_string()),
        );
        said.dedup();
        // The one that claimed first is the one that goes.
        let left = |name: &str| now >= gone && status["totals"].is_object() && first(&said, name);
        let here = [!left(HERE), !left(THERE)];
        for (name, here) in [HERE, THERE].iter().zip(here) {
            if here {
                renew(&mut a.state(), name);
            }
        }
        work([&mut a, &mut b], here, &mut turns).await;
        let mut next: Vec<_> = a.jobs_move();
        next.extend(a.wakes().filter(|_| here[0]));
        next.extend(b.wakes().filter(|_| here[1]));
        // Leases are renewed.
        next.push(now + Duration::seconds(25));
        let then = next
            .into_iter()
            .min()
            .unwrap()
            .max(now + Duration::milliseconds(1));
        if then > end {
            return (a.ending(), said);
        }
        a.pass_to(then).await;
    }
}

/// True if the first message of the condition names this installation as the one that starts runs.
fn first(said: &[String], name: &str) -> bool {
    said.first()
        .is_some_and(|s| s.contains(&format!("operator of {name} starts")))
}

#[tokio::test(start_paused = true)]
async fn two_installations_start_each_slot_once_and_one_follows_the_other() {
    let never = crds::time::parse_rfc3339("2025-01-16T00:00:00Z").unwrap();
    let gone = crds::time::parse_rfc3339("2025-01-15T10:15:00Z").unwrap();
    let (mut doubled, mut lost) = (0, 0);
    for seed in 0..15 {
        for leaves in [never, gone] {
            let (ending, said) = play(seed, leaves).await;
            doubled += ending.created.values().filter(|n| **n > 1).count();
            lost += 3_usize.saturating_sub(ending.created.len());
            assert_eq!(ending.totals["due"], 3, "{ending:?}");
            assert_eq!(ending.totals["succeeded"], 3, "{ending:?}");
            assert!(
                said[0].contains(HERE) && said[0].contains(THERE),
                "{said:?}"
            );
        }
    }
    println!("30 stories of two installations: lost {lost}, doubled {doubled}");
    assert_eq!((lost, doubled), (0, 0));
}
