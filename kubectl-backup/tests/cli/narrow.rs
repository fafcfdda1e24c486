//! `list`: order, filters, a watch that outlives its connection, and times in the zone one wants.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::{Config, Ran};

/// Three objects, each first in another order.
fn three(fake: &Fake) {
    let rows = [
        // name, created, last run and its end, next run, size
        ("a", "2025-12-30", ("02:00", "02:10"), "07", "1.0KiB"),
        ("b", "2025-12-31", ("03:00", "03:01"), "05", "900B"),
        ("c", "2026-01-01", ("01:00", "01:05"), "06", "2.0MiB"),
    ];
    for (name, created, (from, to), next, size) in rows {
        let at = |time: &str| format!("2026-01-01T{time}:00Z");
        let mut object = backup(
            "prod",
            name,
            json!({ "schedule": "@daily" }),
            json!({
                "lastSize": size, "nextScheduleTime": format!("2036-01-{next}T00:00:00Z"),
                "runs": [{ "name": "r", "trigger": "Schedule", "result": "Succeeded", "startTime": at(from), "completionTime": at(to) }],
            }),
        );
        object["metadata"]["creationTimestamp"] = format!("{created}T00:00:00Z").into();
        fake.put(object);
    }
}

fn names(config: &Config, args: &[&str]) -> String {
    let words = [&["list", "mbk", "--no-headers"], args].concat();
    let out = config.run(&words).ok().out;
    let names: Vec<&str> = out
        .lines()
        .filter_map(|l| l.split_whitespace().next()?.split_once('/'))
        .map(|(_, name)| name)
        .collect();
    names.join(" ")
}

#[test]
fn each_order() {
    let fake = Fake::start();
    three(&fake);
    // One that nothing is known of comes last, but for its name and age.
    fake.put(backup(
        "prod",
        "0",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    for (by, order) in [
        ("name", "0 a b c"),
        ("age", "0 c b a"),
        ("last-run", "b a c 0"),
        ("next-run", "b c a 0"),
        ("size", "c a b 0"),
        ("duration", "a c b 0"),
    ] {
        assert_eq!(names(&config, &["--sort-by", by]), order, "{by}");
    }
}

#[test]
fn those_that_run() {
    let fake = Fake::start();
    three(&fake);
    let mut object = fake.get("prod", "b").unwrap();
    object["status"]["activeCount"] = 1.into();
    object["status"]["runs"][0]["result"] = "Running".into();
    fake.put(object);
    let config = Config::new(&fake);
    assert_eq!(names(&config, &["--running"]), "b");
    assert_eq!(
        config.run(&["list", "--running", "-o", "name"]).ok().out,
        "mysqlbackup.batch.isekiro.com/b\n"
    );
}

#[test]
fn a_watch_outlives_its_connection() {
    let fake = Fake::start();
    three(&fake);
    let config = Config::new(&fake);
    for output in ["table", "name"] {
        let before = fake.seen().len();
        let mut child = config
            .command(&["list", "mbk", "-w", "-o", output])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(|l| l.unwrap());
        let shown = if output == "table" { 4 } else { 3 };
        assert_eq!(lines.by_ref().take(shown).count(), shown);
        let watches = |fake: &Fake| {
            let seen = fake.seen().into_iter().skip(before);
            seen.filter(|s| s.query.contains_key("watch"))
                .collect::<Vec<_>>()
        };
        for n in 1..4 {
            super::eventually("it watches", || watches(&fake).len() == n);
            fake.hang_up();
            let mut object = fake.get("prod", "a").unwrap();
            object["spec"]["suspend"] = (n % 2 == 1).into();
            fake.put(object);
            let line = lines.next().unwrap();
            assert!(line.contains("/a"), "{line}");
            assert_eq!(
                line.contains("Suspended"),
                output == "table" && n % 2 == 1,
                "{line}"
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let limited = watches(&fake)
            .iter()
            .any(|s| s.query.contains_key("timeoutSeconds"));
        assert!(!limited, "no limit is asked for");
    }
}

#[test]
fn times_in_the_zone_one_wants() {
    let fake = Fake::start();
    let run = json!({ "name": "shop-1", "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-02T00:00:00Z" });
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "timeZone": "Europe/Berlin" }),
        json!({ "schedule": { "text": "@daily", "timeZone": "Europe/Berlin" }, "runs": [run] }),
    ));
    let config = Config::new(&fake);
    let started = |more: &[&str]| {
        let words = [&["runs", "shop", "--no-headers"], more].concat();
        // Three hours east, by the rule itself: no zone data of this machine is needed.
        let output = config.command(&words).env("TZ", "XXX-3").output();
        let out = Ran::of(output.unwrap()).ok().out;
        out.split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!(started(&[]), "2026-01-02T01:00:00+01:00");
    assert_eq!(started(&["--utc"]), "2026-01-02T00:00:00Z");
    assert_eq!(started(&["--local"]), "2026-01-02T03:00:00+03:00");
    assert_eq!(
        started(&["--tz", "Asia/Kathmandu"]),
        "2026-01-02T05:45:00+05:45"
    );
    assert_eq!(
        config.run(&["runs", "shop", "--tz", "Mars/X"]).code,
        Some(2)
    );
}

/// A watch is one long request: what limits a request ends it as little as silence does.
#[test]
fn u14_a_watch_outlives_the_limit_of_a_request() {
    let fake = Fake::start();
    three(&fake);
    let config = Config::new(&fake);
    let mut child = config
        .command(&["list", "mbk", "-w", "--request-timeout", "4s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|l| l.unwrap());
    assert_eq!(lines.by_ref().take(4).count(), 4);
    let watches = |fake: &Fake| {
        let seen = fake.seen().into_iter();
        seen.filter(|s| s.query.contains_key("watch")).count()
    };
    super::eventually("it watches", || watches(&fake) == 1);
    // Longer than the limit: a broken watch would be opened again, and all lines come once more.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(6);
    while std::time::Instant::now() < until {
        assert_eq!(watches(&fake), 1, "it was opened again");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mut object = fake.get("prod", "a").unwrap();
    object["spec"]["suspend"] = true.into();
    fake.put(object);
    let line = lines.next().unwrap();
    assert!(line.contains("/a") && line.contains("Suspended"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}
