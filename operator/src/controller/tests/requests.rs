//! How many calls a run costs.

use chrono::TimeDelta;
use crds::time::parse_rfc3339;
use serde_json::json;

use super::driver::{Caches, Try};
use super::scenarios;

#[tokio::test(start_paused = true)]
async fn a_run_costs_a_job_two_status_writes_an_event_and_a_deletion() {
    costs(json!([])).await;
}

#[tokio::test(start_paused = true)]
async fn receivers_make_a_good_run_no_dearer() {
    let events = json!(["Success", "Failure", "Recovery", "Missed", "Overdue"]);
    let secret = json!({"name": "s", "key": "k"});
    costs(json!([{"type": "Webhook", "urlSecretKeyRef": secret, "on": events}])).await;
}

async fn costs(notifications: serde_json::Value) {
    let mut story = scenarios::all()
        .into_iter()
        .find(|s| s.name == "slots")
        .unwrap();
    story.spec["schedule"] = json!("7 10 * * *");
    story.spec["successfulJobsHistoryLimit"] = json!(0);
    story.spec["notifications"] = notifications;
    story.lasts = 100;
    let mut process = Try::new(&story, None, Caches::Fresh);
    while process.step().await {}
    let (calls, known) = {
        let state = process.state();
        (state.calls, state.history.len())
    };
    let end = parse_rfc3339("2025-01-15T10:39:00Z").unwrap();
    loop {
        while process.step().await {}
        let next = process.jobs_move().into_iter().chain(process.wakes()).min();
        let least = process.now() + TimeDelta::milliseconds(1);
        let then = next.unwrap_or(end).max(least);
        if then > end {
            break;
        }
        process.pass_to(then).await;
    }
    let state = process.state();
    let changes: Vec<(&str, bool)> = state.history[known..]
        .iter()
        .map(|c| (c.resource.as_str(), c.deleted))
        .collect();
    let object = ("mysqlbackups", false);
    let expected = [
        ("jobs", false),
        object,
        // The Job controller says that it has ended.
        ("jobs", false),
        ("events", false),
        object,
        ("jobs", true),
    ];
    assert_eq!(changes, expected);
    assert_eq!(state.calls - calls, 5);
}
