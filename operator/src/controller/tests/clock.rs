//! The operator's wall clock is stepped; the cluster's and the monotonic one go on.

use std::collections::BTreeMap;

use chrono::Duration;
use crds::time::parse_rfc3339;
use serde_json::{Value, json};

use super::driver::{Caches, OBJECT, Try};
use super::scenarios;

/// An object that is due every ten minutes, its first slot 10:10 begun and its Job ended.
async fn begun() -> Try {
    let slots = |s: &super::Scenario| s.name == "slots";
    let story = scenarios::all().into_iter().find(slots).unwrap();
    let mut attempt = Try::new(&story, None, Caches::Fresh);
    until(&mut attempt, "2025-01-15T10:13:00Z").await;
    assert_eq!(
        created(&attempt),
        BTreeMap::from([("2025-01-15T10:10:00Z".into(), 1)])
    );
    attempt
}

/// Time passes, by the operator's clock.
async fn until(attempt: &mut Try, time: &str) {
    let end = parse_rfc3339(time).unwrap();
    attempt.work().await;
    while attempt.now() < end {
        let then = attempt.now() + Duration::seconds(10);
        attempt.pass_to(then).await;
        attempt.work().await;
    }
}

fn step(attempt: &mut Try, time: &str) {
    attempt.step_clock(parse_rfc3339(time).unwrap());
}

fn created(attempt: &Try) -> BTreeMap<String, usize> {
    attempt.state().created.clone()
}

fn status(attempt: &Try, field: &str) -> Value {
    attempt.state().get("mysqlbackups", OBJECT).unwrap()["status"][field].clone()
}

#[tokio::test(start_paused = true)]
async fn a_clock_stepped_back_starts_no_slot_again() {
    let mut attempt = begun().await;
    step(&mut attempt, "2025-01-15T10:08:00Z");
    // A Job without a pod has its outcome when its end, by the cluster's clock, has come here too.
    until(&mut attempt, "2025-01-15T10:28:00Z").await;
    assert_eq!(
        created(&attempt),
        BTreeMap::from([
            ("2025-01-15T10:10:00Z".into(), 1),
            ("2025-01-15T10:20:00Z".into(), 1)
        ])
    );
    let totals = status(&attempt, "totals");
    assert_eq!(
        (&totals["due"], &totals["succeeded"]),
        (&json!(2), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_stepped_forward_starts_the_newest_slot_and_records_the_others() {
    let mut attempt = begun().await;
    step(&mut attempt, "2025-01-16T10:13:00Z");
    until(&mut attempt, "2025-01-16T10:24:00Z").await;
    assert_eq!(
        created(&attempt),
        BTreeMap::from([
            ("2025-01-15T10:10:00Z".into(), 1),
            ("2025-01-16T10:10:00Z".into(), 1),
            ("2025-01-16T10:20:00Z".into(), 1)
        ])
    );
    // A day has 144 slots of ten minutes; 143 of them lie between the first and the second.
    let totals = status(&attempt, "totals");
    assert_eq!(
        (&totals["due"], &totals["missed"]),
        (&json!(146), &json!(143))
    );
    assert_eq!(status(&attempt, "missed")[0]["count"], 143);
}

#[tokio::test(start_paused = true)]
async fn a_clock_stepped_forward_and_back_starts_no_slot_again() {
    let mut attempt = begun().await;
    step(&mut attempt, "2025-01-15T11:13:00Z");
    until(&mut attempt, "2025-01-15T11:16:00Z").await;
    step(&mut attempt, "2025-01-15T10:16:00Z");
    until(&mut attempt, "2025-01-15T11:24:00Z").await;
    // What was recorded as missed stays so: nothing starts before real time has caught up.
    assert_eq!(
        created(&attempt),
        BTreeMap::from([
            ("2025-01-15T10:10:00Z".into(), 1),
            ("2025-01-15T11:10:00Z".into(), 1),
            ("2025-01-15T11:20:00Z".into(), 1)
        ])
    );
    let totals = status(&attempt, "totals");
    assert_eq!((&totals["due"], &totals["missed"]), (&json!(8), &json!(5)));
}
