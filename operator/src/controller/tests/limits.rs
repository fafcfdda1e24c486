//! `--max-active-runs`, in all and in a namespace, over processes that come and go.

use std::collections::BTreeMap;

use chrono::{Duration, TimeDelta};
use serde_json::{Value, json};

use super::driver::{Caches, HERE, Try, config};
use super::scenarios;
use crate::fake_api::State;

const OBJECTS: [(&str, &str); 6] = [
    ("a1", "a"),
    ("a2", "a"),
    ("a3", "a"),
    ("a4", "a"),
    ("b1", "b"),
    ("b2", "b"),
];

/// Jobs that are not finished, in all and in each namespace.
fn active(state: &State) -> (usize, BTreeMap<String, usize>) {
    let mut by_namespace = BTreeMap::<String, usize>::new();
    for job in state
        .objects
        .iter()
        .filter(|((r, _), _)| r == "jobs")
        .map(|(_, j)| j)
    {
        if job["status"]["completionTime"].is_null() {
            let namespace = job["metadata"]["namespace"].as_str().unwrap().to_owned();
            *by_namespace.entry(namespace).or_default() += 1;
        }
    }
    (by_namespace.values().sum(), by_namespace)
}

fn status(state: &State, name: &str) -> Value {
    let namespace = OBJECTS.iter().find(|(n, _)| *n == name).unwrap().1;
    let name = crate::fake_api::key(Some(namespace), name);
    state.get("mysqlbackups", &name).unwrap()["status"].clone()
}

/// Three slots of six objects; a new process begins after every `life` calls. Returns the most
/// Jobs there ever were, in all and in one namespace.
async fn play(total: Option<usize>, here: Option<usize>, life: usize) -> (usize, usize) {
    let mut story = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    story.lasts = 100;
    let mut state = State {
        now: crds::time::parse_rfc3339(super::BEGIN).unwrap(),
        ..State::default()
    };
    for (name, namespace) in OBJECTS {
        let object = json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": {"name": name, "namespace": namespace}, "spec": story.spec,
        });
        state.put("mysqlbackups", object);
    }
    let mut settings = config(HERE);
    (
        settings.max_active_runs,
        settings.max_active_runs_per_namespace,
    ) = (total, here);
    let first = Try::from(&story, state, Caches::Fresh);
    let mut process = first.another(&settings);
    let end = crds::time::parse_rfc3339("2025-01-15T10:39:00Z").unwrap();
    let (mut most, mut most_here, mut steps) = (0, 0, 0);
    loop {
        while process.step().await {
            let (all, by_namespace) = active(&process.state());
            most = most.max(all);
            most_here = most_here.max(by_namespace.values().copied().max().unwrap_or(0));
            steps += 1;
            if steps % life == 0 {
                process = process.another(&settings);
            }
        }
        let now = process.now();
        let next = process.jobs_move().into_iter().chain(process.wakes()).min();
        let then = next.unwrap_or(end).max(now + TimeDelta::milliseconds(1));
        if then > end {
            break;
        }
        process.pass_to(then.min(now + Duration::minutes(1))).await;
    }
    for (name, _) in OBJECTS {
        let totals = &status(&process.state(), name)["totals"];
        let of = |field: &str| totals[field].as_i64().unwrap();
        assert_eq!((of("due"), of("succeeded")), (3, 3), "{name}: {totals}");
    }
    (most, most_here)
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_than_allowed_and_each_slot_runs_in_its_turn() {
    // Twenty processes begin at other calls than thirteen or seven.
    for life in [7, 13, 20, usize::MAX] {
        assert_eq!(
            play(None, None, life).await,
            (6, 4),
            "no limits, life {life}"
        );
        assert_eq!(play(Some(3), None, life).await.0, 3, "in all, life {life}");
        let (most, most_here) = play(Some(3), Some(2), life).await;
        assert!(
            most <= 3 && most_here == 2,
            "both, life {life}: {most}, {most_here}"
        );
        assert_eq!(
            play(None, Some(1), life).await,
            (2, 1),
            "in a namespace, life {life}"
        );
    }
}
