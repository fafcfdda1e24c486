//! `report`: what auditors ask, of one object and of a fleet.

use std::time::Instant;

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup, status};
use super::rights::cluster;

fn ago(hours: i64) -> String {
    crds::time::rfc3339(chrono::Utc::now() - chrono::Duration::hours(hours))
}

/// An object that is due every six hours, with twenty runs of which some failed.
fn object(namespace: &str, name: &str, number: i64) -> Value {
    let every = 6 * 3600;
    let newest = chrono::Utc::now().timestamp() / every * every;
    let slot = |back: i64| {
        let at = chrono::DateTime::from_timestamp(newest - back * every, 0).unwrap();
        crds::time::rfc3339(at)
    };
    let runs: Vec<Value> = (0..20)
        .map(|back| {
            let failed = (back + number) % 17 == 3;
            json!({
                "name": format!("{name}-{back}"), "trigger": "Schedule", "slot": slot(back), "startTime": slot(back), "completionTime": slot(back),
                "result": if failed { "Failed" } else { "Succeeded" },
                "reason": if failed { "AccessDenied" } else { "Completed" },
                "message": if failed { "access denied for user backup: grant SELECT, LOCK TABLES" } else { "" },
                "storedBytes": 1_000_000 + number,
            })
        })
        .collect();
    let missed = match number % 5 {
        0 => json!([{ "from": slot(30), "to": slot(20), "count": 11, "reason": "Outage" }]),
        1 => json!([{ "from": slot(40), "to": slot(20), "count": 21, "reason": "Suspended" }]),
        _ => json!([]),
    };
    backup(
        namespace,
        name,
        json!({ "schedule": "0 */6 * * *", "retention": { "keepLast": 20 } }),
        json!({
            "observedGeneration": 1, "accountedUntil": slot(0), "lastSuccessfulTime": slot(1), "runs": runs, "missed": missed,
            "nextScheduleTime": slot(-1),
            "schedule": { "text": "0 */6 * * *", "timeZone": "UTC", "since": "2026-01-01T00:00:00Z", "anchor": "2026-01-01T00:00:00Z" },
            "totals": { "due": 900, "succeeded": 850, "failed": 20, "skipped": 9, "missed": 21, "manual": 0 },
        }),
    )
}

/// 300 objects in three namespaces.
fn fleet() -> (Fake, Config) {
    let (fake, config) = cluster();
    for number in 0..300 {
        let namespace = ["prod", "dev", "billing"][usize::try_from(number).unwrap() % 3];
        fake.put(object(namespace, &format!("shop-{number:03}"), number));
    }
    (fake, config)
}

#[test]
fn one_object_is_told_of_in_each_format() {
    let (fake, config) = cluster();
    fake.put(object("prod", "shop", 3));
    let text = config.run(&["report", "--since", "3d", "--utc"]).ok();
    assert!(
        text.out.contains("Object:        mysqlbackup/shop\n"),
        "{}",
        text.out
    );
    assert!(text.out.contains(" succeeded"), "{}", text.out);
    let json = config
        .run(&["report", "shop", "--since", "3d", "-o", "json"])
        .ok()
        .json();
    let item = &json["items"][0];
    assert_eq!(
        (&item["kind"], &item["name"]),
        (&json!("MysqlBackup"), &json!("shop"))
    );
    assert_eq!(
        (&item["complete"], &item["slots"]["due"]),
        (&json!(true), &json!(12))
    );
    let csv = config.run(&["report", "--since", "3d", "-o", "csv"]).ok();
    assert!(
        csv.out.starts_with("kind,namespace,name,state,"),
        "{}",
        csv.out
    );
    assert!(
        csv.out.contains("\r\nMysqlBackup,prod,shop,"),
        "{}",
        csv.out
    );
    let html = config.run(&["report", "--since", "3d", "-o", "html"]).ok();
    assert!(html.out.starts_with("<!DOCTYPE html>\n") && html.out.ends_with("</html>\n"));
    // Twenty runs reach back five days.
    let json = config.run(&["report", "-o", "json"]).ok().json();
    let item = &json["items"][0];
    assert_eq!(item["complete"], false);
    assert_eq!(item["knownSince"], item["runs"][19]["slot"]);
    assert_eq!(item["slots"]["due"], 120);
}

#[test]
fn a_fleet_of_300_is_read_with_one_request_a_kind() {
    let (fake, config) = fleet();
    // A machine may be busy: what takes long is told from what reads and judges the same objects.
    let begun = Instant::now();
    config.run(&["health", "-A"]);
    let usual = begun.elapsed();
    for (format, most) in [("json", 8 << 20), ("html", 4 << 20)] {
        let (before, begun) = (fake.seen().len(), Instant::now());
        let ran = config.run(&["report", "-A", "-o", format]).ok();
        let took = begun.elapsed();
        let mut lists: Vec<String> = fake.seen()[before..]
            .iter()
            .map(|s| s.path.clone())
            .collect();
        lists.sort();
        let kinds = [
            "/apis/batch.isekiro.com/v1/mysqlbackups",
            "/apis/batch.isekiro.com/v1/restores",
            "/apis/gobackup.io/v1/backups",
            "/apis/gobackup.io/v1/cronbackups",
        ];
        assert_eq!(lists, kinds, "{format}");
        assert!(
            took < usual * 20,
            "{format} took {took:?}, health {usual:?}"
        );
        assert!(ran.out.len() < most, "{format} has {} bytes", ran.out.len());
        assert!(ran.out.contains("shop-299"), "{format}");
    }
    let json = config
        .run(&["report", "-n", "dev", "-o", "json"])
        .ok()
        .json();
    assert_eq!(json["items"].as_array().unwrap().len(), 100);
    assert_eq!(
        (&json["namespace"], &json["summary"]["objects"]),
        (&json!("dev"), &json!(100))
    );
}

#[test]
fn what_may_not_be_read_stands_in_the_report() {
    let (fake, config) = cluster();
    fake.put(object("prod", "shop", 3));
    let text = "restores.batch.isekiro.com is forbidden: User \"alice\" cannot list resource";
    fake.deny_path("/restores", 403, status(403, "Forbidden", text, ""));
    let ran = config.run(&["report", "-o", "json"]).ok();
    let left_out = ran.json()["leftOut"].to_string();
    assert!(left_out.contains("restores"), "{left_out}");
    assert!(ran.err.contains("left out: "), "{}", ran.err);
    let page = config.run(&["report", "-o", "html"]).ok();
    assert!(page.out.contains("<dt>Left out</dt>"));
}

#[test]
fn nothing_is_a_report_too() {
    let (_fake, config) = cluster();
    let ran = config.run(&["report"]).ok();
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "No backups found in prod namespace.\n")
    );
    let json = config.run(&["report", "-o", "json"]).ok().json();
    assert_eq!(
        (&json["items"], &json["summary"]["objects"]),
        (&json!([]), &json!(0))
    );
    config.run(&["report", "--since", &ago(-1)]).fails(
        2,
        "error: the period is empty: --since has to be before --until",
    );
    config
        .run(&["report", "--until", "soon"])
        .fails(2, "error: invalid --until \"soon\": write a duration such as 30d, a day such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T02:00:00Z");
    let gone = config.run(&["report", "nobody"]);
    assert_eq!(gone.code, Some(5), "{gone:?}");
}
