//! What needs the cluster to itself for a long time: `make test-long`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::objects::{owned_by, quick};
use e2e::wait::unix_seconds;
use e2e::{cluster, eventually};
use serde_json::Value;

#[test]
fn killed_at_random_for_ten_minutes_fifty_objects_lose_and_double_nothing() {
    let (objects, minutes) = (50, 10);
    let ns = cluster().namespace("e2e-random-kill");
    let manifests: Vec<String> = (0..objects)
        .map(|i| quick(&format!("tick-{i}"), "* * * * *", ""))
        .collect();
    ns.apply(&manifests.join("---\n"));
    eventually("all objects are seen", 120, || {
        let list = ns.get(&["mysqlbackups.batch.isekiro.com"]).unwrap();
        let seen = |o: &Value| o["status"]["nextScheduleTime"].is_string();
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| seen(o))
            .count()
            == objects
    });
    let end = unix_seconds() + minutes * 60;
    let mut kills = 0;
    while unix_seconds() < end {
        // Instants spread over the minute: each kill comes 7 to 23 s after the one before.
        let pause = 7 + (kills * 11) % 17;
        let next = unix_seconds() + pause;
        eventually("the next instant", 60, || unix_seconds() >= next);
        if let Some(pod) = cluster().operator_pod() {
            let _ = cluster().kubectl(&[
                "-n",
                "backup-system",
                "delete",
                "pod",
                &pod,
                "--force",
                "--grace-period=0",
            ]);
            kills += 1;
        }
    }
    let (mut due, mut lost, mut doubled) = (0, 0, 0);
    eventually("every due slot has ended", 300, || {
        let list = ns.get(&["mysqlbackups.batch.isekiro.com"]).unwrap();
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|o| o["status"]["activeCount"].as_i64() == Some(0))
    });
    let list = ns.get(&["mysqlbackups.batch.isekiro.com"]).unwrap();
    let jobs = ns.jobs();
    for object in list["items"].as_array().unwrap() {
        let totals = &object["status"]["totals"];
        let of = |field: &str| totals[field].as_i64().unwrap_or(0);
        let name = object["metadata"]["name"].as_str().unwrap();
        let owned = owned_by(&jobs, "MysqlBackup", name);
        let mut slots: Vec<&str> = owned
            .iter()
            .filter_map(|j| j["metadata"]["annotations"][crds::labels::SCHEDULED_AT].as_str())
            .collect();
        slots.sort_unstable();
        let all = slots.len();
        slots.dedup();
        due += of("due");
        doubled += all - slots.len();
        lost += of("missed")
            + of("skipped")
            + of("failed")
            + (of("due") - i64::try_from(slots.len()).unwrap()).abs();
    }
    println!("{kills} kills, {due} slots due, lost {lost}, doubled {doubled}");
    assert_eq!((lost, doubled), (0, 0));
    assert!(due >= i64::try_from(objects).unwrap() * (minutes - 1));
}
