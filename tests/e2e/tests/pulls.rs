//! Point in time on the cluster: binary logs are pulled by interval, the window grows, and what was dropped is there again
//! in another server, as it was a moment before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use crds::time::parse_rfc3339;
use e2e::database::ROOT_PASSWORD;
use e2e::server::Server;
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::Value;

fn books(ns: &Namespace) -> Value {
    ns.mysql_backup("shop").unwrap()["status"]["binlogs"].clone()
}

/// The moment up to which all is stored.
fn until(ns: &Namespace) -> Option<DateTime<Utc>> {
    parse_rfc3339(books(ns)["windows"][0]["until"].as_str()?)
}

/// Waits until all that was committed up to `moment` is stored.
fn stored(ns: &Namespace, moment: DateTime<Utc>) {
    eventually("what was committed is stored", 90, || {
        until(ns).is_some_and(|at| at >= moment)
    });
}

/// File and position up to which the volume holds segments.
fn stored_up_to(volume: &Path) -> (String, u64) {
    let newest = e2e::files(volume).into_iter().rfind(|f| {
        let name = f.rsplit('/').next().unwrap();
        f.contains("/binlogs/") && name.ends_with(".json") && name.starts_with('0')
    });
    let text = newest.and_then(|f| std::fs::read(volume.join(f)).ok());
    let stored: Value = serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default();
    let segment = &stored["segment"];
    (
        segment["file"].as_str().unwrap_or_default().to_owned(),
        segment["to"].as_u64().unwrap_or_default(),
    )
}

fn condition(ns: &Namespace) -> (String, String) {
    let object = ns.mysql_backup("shop").unwrap();
    let all = object["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|c| c["type"] == "BinlogsComplete");
    let text = |key: &str| {
        found
            .map(|c| c[key].as_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    (text("status"), text("reason"))
}

#[test]
fn the_window_grows_a_dropped_table_comes_back_and_a_log_that_was_begun_anew_is_a_gap() {
    let ns = cluster().namespace("e2e-binlogs");
    let source = Server::start(
        &ns,
        "source",
        "--log-bin=bin, --server-id=7, --binlog-format=ROW",
    );
    let target = Server::start(&ns, "target", "");
    let source = source.awaited();
    source.sql("create database shop; create table shop.t (id int primary key, v varchar(20)); insert into shop.t values (1, 'a')");
    let volume = ns.volume("data");
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    ns.backup(&[
        "create",
        "mysql",
        "shop",
        "--schedule",
        "@yearly",
        "--host",
        "source",
        "--secret",
        "root",
        "--pvc",
        "data",
        "--binlogs",
        "30s",
    ])
    .ok();
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();

    source.sql("insert into shop.t values (2, 'b')");
    let committed = Utc::now();
    stored(&ns, committed);
    assert_eq!(condition(&ns), ("True".into(), "Complete".into()));
    let described = ns.backup(&["describe", "shop"]).ok().stdout;
    for words in ["Binary logs:   pulled every 30s", "Recoverable:   up to "] {
        assert!(described.contains(words), "{described}");
    }
    let listed = ns.backup(&["list", "-o", "wide"]).ok().stdout;
    assert!(listed.contains("RECOVERABLE"), "{listed}");

    // A table is dropped, and is there again in another server as it was a moment before.
    let dropped =
        source.sql("set session gtid_domain_id = 0; drop table shop.t; select @@last_gtid");
    let dropped = dropped.trim();
    stored(&ns, Utc::now());
    // It is found in what is stored, and its GTID is printed.
    let from = crds::time::rfc3339(committed);
    let found = ns
        .backup(&["binlog", "shop", "--from", &from, "--table", "shop.t"])
        .ok();
    let drops = found.stdout.split("# transaction GTID ").filter(|text| {
        text.lines()
            .any(|line| line.to_uppercase().starts_with("DROP TABLE"))
    });
    let printed: Vec<&str> = drops.map(|text| text.split(' ').next().unwrap()).collect();
    assert_eq!(printed, [dropped], "{}", found.stdout);
    // The server's own files come back, as they are on its disk.
    let directory = std::env::temp_dir().join(format!("e2e-binlogs-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let place = directory.to_str().unwrap();
    ns.backup(&["download", "shop", "--binlogs", "-O", place])
        .ok();
    let name = source.sql("show master status");
    let name = name.split('\t').next().unwrap();
    let bytes = std::fs::read(directory.join(name)).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(bytes.starts_with(b"\xfebin"), "{name}");
    let target = target.awaited();
    ns.backup(&[
        "restore",
        "shop",
        "--to",
        "target",
        "--secret",
        "root",
        "--before-gtid",
        printed[0],
        "--wait",
        "--timeout",
        "3m",
    ])
    .ok();
    assert_eq!(
        target.sql("select id, v from shop.t order by id"),
        "1\ta\n2\tb\n"
    );
    println!("demo: back to before the DROP {dropped}, equal");

    // What the backup holds, and of that the lost table alone, back into its own server.
    let run = ns.mysql_backup("shop").unwrap()["status"]["runs"][0]["name"].clone();
    let shown = ns.backup(&["show", run.as_str().unwrap()]).ok().stdout;
    assert!(
        shown
            .lines()
            .any(|l| l.split_whitespace().take(3).eq(["shop", "t", "1"])),
        "{shown}"
    );
    ns.backup(&[
        "restore",
        "shop",
        "--tables",
        "shop.t",
        "--to",
        "source",
        "--secret",
        "root",
        "--name",
        "table",
        "--wait",
        "--timeout",
        "3m",
    ])
    .ok();
    assert_eq!(source.sql("select id, v from shop.t"), "1\ta\n");
    let restored = ns.get(&["restores.batch.isekiro.com", "table"]).unwrap();
    println!(
        "a table alone: {} bytes read",
        restored["status"]["readBytes"]
    );
    assert!(
        restored["status"]["readBytes"].is_i64(),
        "{}",
        restored["status"]
    );

    // Somebody begins the log anew: what was committed between the last pull and then is not stored anywhere.
    source.sql(
        "create table shop.u (id int primary key); insert into shop.u values (3); reset master; insert into shop.u values (4)",
    );
    let gap = wait_for("the gap is told", 90, || {
        let gaps = books(&ns)["gaps"].as_array().cloned().unwrap_or_default();
        gaps.into_iter().next()
    });
    assert_eq!(gap["reason"], "Reset");
    assert_eq!(condition(&ns), ("False".into(), "Reset".into()));
    let health = ns.backup(&["health", "shop"]);
    assert_eq!(health.code, 1, "a warning: {}", health.stdout);
    eventually("an event tells it", 30, || {
        let events = ns.get(&["events"]).unwrap();
        events["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|e| e["reason"] == "BinlogGap")
    });

    // A backup begins anew.
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();
    eventually("a backup ends it", 60, || {
        condition(&ns) == ("True".into(), "Complete".into())
    });
    let totals = books(&ns)["totals"].clone();
    println!("pulls {totals}, windows {}", books(&ns)["windows"]);
    let n = |key: &str| totals[key].as_i64().unwrap();
    let open = i64::from(books(&ns)["open"].is_object());
    assert_eq!(
        n("due"),
        n("succeeded") + n("failed") + n("skipped") + n("missed") + open
    );
    assert_eq!((n("failed"), n("missed")), (0, 0), "{totals}");

    // From that backup on, the log gives the next one: shown by a server of its own, once the log is stored so far.
    ns.backup(&["set", "shop", "--verify", "replay"]).ok();
    source.sql("create table shop.v (id int primary key, v varchar(20)); insert into shop.v values (1, 'a'), (2, 'b'); update shop.v set v = 'c' where id = 2; drop table shop.u");
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();
    let newest = || ns.mysql_backup("shop").unwrap()["status"]["runs"][0].clone();
    let name = newest()["name"].as_str().unwrap().to_owned();
    let verification = wait_for("the run is verified by replay", 240, || {
        let run = newest();
        assert_eq!(run["name"], name.as_str());
        Some(run["verification"].clone()).filter(Value::is_object)
    });
    assert_eq!(verification["mode"], "Replay", "{verification}");
    assert_eq!(verification["passed"], true, "{verification}");
    println!("verified by replay: {}", verification["message"]);
    let described = ns.backup(&["describe", &name]).ok().stdout;
    for words in ["Replay at ", "replayed and compared", "all equal"] {
        assert!(described.contains(words), "{described}");
    }
    let runs = ns.backup(&["runs", "shop"]).ok().stdout;
    let line = runs.lines().find(|line| line.contains(&name)).unwrap();
    assert!(line.split_whitespace().any(|word| word == "yes"), "{runs}");

    // Continuously: what is committed is in the store within seconds, while one Job follows the other.
    ns.backup(&["set", "shop", "--binlogs", "continuous"]).ok();
    let brief = r#"{"spec": {"binlogs": {"interval": "30s"}}}"#;
    let object = "mysqlbackups.batch.isekiro.com/shop";
    ns.kubectl(&["patch", object, "--type=merge", "-p", brief])
        .ok();
    eventually("the first Job stays", 60, || {
        let books = books(&ns);
        books["continuous"] == true && books["intervalSeconds"] == 30 && books["open"].is_object()
    });
    let succeeded = || books(&ns)["totals"]["succeeded"].as_i64().unwrap();
    let (before, skipped) = (succeeded(), books(&ns)["totals"]["skipped"].clone());
    let (mut most, mut id) = (Duration::ZERO, 10);
    while succeeded() < before + 2 {
        source.sql(&format!("insert into shop.v values ({id}, 'd')"));
        id += 1;
        let committed = Instant::now();
        let end = source.sql("show master status");
        let mut words = end.split('\t');
        let end = (
            words.next().unwrap().to_owned(),
            words.next().unwrap().parse().unwrap(),
        );
        eventually("what was committed is in the store", 60, || {
            stored_up_to(&volume) >= end
        });
        most = most.max(committed.elapsed());
        assert!(id < 1000, "{}", books(&ns));
    }
    println!(
        "continuous: {} commits, at most {most:?} until each was stored",
        id - 10
    );
    let described = ns.backup(&["describe", "shop"]).ok().stdout;
    assert!(described.contains("pulled continuously"), "{described}");
    let totals = books(&ns)["totals"].clone();
    assert_eq!(totals["skipped"], skipped, "{totals}");
    assert!(totals["failed"] == 0 && totals["missed"] == 0, "{totals}");
}
