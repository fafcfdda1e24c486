//! Runs that pull binary logs into an S3 store: two at once, each held at each of its requests or killed there, and a store that
//! breaks. What must hold: every segment is there once and the server's bytes, or a run says why not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod common;

use std::time::Instant;

use common::fake_s3::{FakeS3, Fault, Moment};
use common::s3::with_bucket;
use common::segments::{Kept, assert_whole, chained, compare, kept_of, mariadb, writes};
use common::{MariaDb, Runner};
use serde_json::json;

fn pod(db: &MariaDb, url: &str, uid: &str) -> Runner {
    let runner = Runner::new(db)
        .set("USERNAME", "p")
        .set("BACKUP_POD_UID", uid);
    let more = json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}});
    with_bucket(runner, "shop-b-1", url, "backups", more)
}

fn kept(store: &FakeS3) -> Vec<Kept> {
    kept_of(
        store.keys(),
        &|key| {
            let at = if key.starts_with("pre/fix/") {
                key.to_owned()
            } else {
                format!("pre/fix/{key}")
            };
            store.get(&at).unwrap()
        },
        None,
    )
}

/// A run is held at its request of this number, before or after the store acts, while another one runs to its end; then it goes
/// on, or is killed. False if it has no such request.
fn round(db: &MariaDb, store: &FakeS3, number: usize, moment: Moment, killed: bool) -> bool {
    db.sql(&format!(
        "{}insert w.t select coalesce(max(id), 0) + 1, repeat('y', 1200000) from w.t;",
        writes(1, 20)
    ));
    let (url, gate) = store.gated(number, moment);
    let (one, other) = (pod(db, &url, "one"), pod(db, &store.url, "other"));
    let started = Instant::now();
    let mut child = one.start();
    let held = gate.wait(&mut || child.try_wait().unwrap().is_some());
    if held {
        let done = other.run();
        assert!(
            [
                "Completed",
                "AlreadyExists",
                "ServerRefused",
                "ConnectionLost"
            ]
            .contains(&done.report.reason.as_str()),
            "{number} {moment:?}: {}",
            done.report.message
        );
    }
    if killed && held {
        child.kill().unwrap();
        child.wait().unwrap();
        gate.open();
    } else {
        gate.open();
        one.finish(child, started);
    }
    held
}

/// Each request is one at which a run is held; `step` passes over some.
fn hold_everywhere(fault: Fault, step: usize) {
    let db = mariadb(&["--max-binlog-size=65536"]);
    let store = FakeS3::start(fault);
    pod(&db, &store.url, "zero").run().assert_good();
    let (mut rounds, mut number) = (0, 1);
    loop {
        let mut held = false;
        for moment in [Moment::Before, Moment::After] {
            for killed in [false, true] {
                held |= round(&db, &store, number, moment, killed);
                rounds += 1;
            }
        }
        if !held {
            break;
        }
        number += step;
    }
    db.sql("flush binary logs");
    pod(&db, &store.url, "last").run().assert_good();
    let kept = kept(&store);
    if fault == Fault::None {
        assert_whole(&kept);
        let whole = compare(&db, &kept);
        let bytes = store
            .keys()
            .iter()
            .filter(|k| k.contains(".binlog"))
            .count();
        println!(
            "{fault:?}: {rounds} rounds over {number} requests, {} segments, {whole} files equal",
            kept.len()
        );
        assert!(whole > 3 && bytes == kept.len(), "{bytes} {}", kept.len());
        return;
    }
    // A store that knows no condition: what two runs wrote over each other is a gap that the chain names, never silence; all that
    // is in one window is the server's bytes.
    let chain = chained(&kept);
    println!(
        "{fault:?}: {rounds} rounds over {number} requests, {} segments, {} gaps, {} spare",
        kept.len(),
        chain.gaps.len(),
        chain.spare.len()
    );
    for window in &chain.windows {
        let segments: Vec<&Kept> = window.segments.iter().map(|at| &kept[*at]).collect();
        for pair in segments.windows(2) {
            let (one, next) = (&pair[0].segment, &pair[1].segment);
            assert!(
                next.before.follows_in_test(&one.after),
                "{} {}",
                one.to,
                next.from
            );
        }
    }
}

trait Follows {
    fn follows_in_test(&self, other: &Self) -> bool;
}

impl Follows for binlog::gtid::Gtids {
    fn follows_in_test(&self, other: &Self) -> bool {
        self.is_at(other)
    }
}

#[test]
fn a_run_that_is_held_or_killed_at_some_requests_doubles_and_loses_nothing() {
    hold_everywhere(Fault::None, 8);
    hold_everywhere(Fault::RefusesCondition, 16);
}

#[test]
#[ignore = "make test-long: held and killed at each request"]
fn a_run_that_is_held_or_killed_at_each_request_doubles_and_loses_nothing() {
    for fault in [
        Fault::None,
        Fault::IgnoresCondition,
        Fault::RefusesCondition,
    ] {
        hold_everywhere(fault, 1);
    }
}

#[test]
fn a_store_that_breaks_makes_a_run_fail_and_the_next_one_whole() {
    let db = mariadb(&["--max-binlog-size=65536"]);
    let whole = FakeS3::start(Fault::None);
    pod(&db, &whole.url, "zero").run().assert_good();
    let mut failures = 0;
    for fault in [
        Fault::FewerBytes,
        Fault::BitFlip,
        Fault::Gone,
        Fault::Forbidden,
        Fault::FlipsAlways,
        Fault::TruncatesOnce,
        Fault::LosesAnswer,
    ] {
        db.sql(&writes(1, 60));
        // What was stored so far lies in the store that breaks too, and what that has is what is there when it is whole again.
        let broken = FakeS3::start(fault);
        for key in whole.keys() {
            broken.put(&key, &whole.get(&key).unwrap(), 0);
        }
        let done = pod(&db, &broken.url, "one").run();
        failures += u32::from(done.code != Some(0));
        for key in broken.keys() {
            whole.put(&key, &broken.get(&key).unwrap(), 0);
        }
        let again = pod(&db, &whole.url, "two").run();
        again.assert_good();
        let report = again.report.binlogs.unwrap();
        assert!(report.gaps.is_empty(), "{fault:?}: {:?}", report.gaps);
        let kept = kept(&whole);
        let chain = chained(&kept);
        assert_eq!(
            (chain.windows.len(), chain.gaps.len()),
            (1, 0),
            "{fault:?}: {}",
            done.report.message
        );
    }
    assert!(failures >= 4, "{failures}");
}

/// The most memory of its own that a run has resident, in KiB: what of its program is in memory depends on the build.
fn resident(child: &mut std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(kib.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    most
}

#[test]
fn memory_does_not_grow_with_the_log() {
    let db = mariadb(&[]);
    let store = FakeS3::start(Fault::None);
    let more = json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}, "compression": {"type": "none"}});
    let one = with_bucket(
        pod(&db, &store.url, "one"),
        "shop-b-1",
        &store.url,
        "backups",
        more,
    );
    one.run().assert_good();
    // A transaction of 48 MB, and 32 of 1 MB.
    db.sql("use w; create table w.b (id int primary key auto_increment, b longblob); insert w.b (b) select repeat('x', 1000000) from seq_1_to_48");
    for _ in 0..32 {
        db.sql("use w; insert w.b (b) values (repeat('y', 1000000))");
    }
    let mut child = one.start();
    let most = resident(&mut child);
    let done = one.finish(child, Instant::now());
    done.assert_good();
    let report = done.report.binlogs.unwrap();
    println!(
        "{} bytes in {} segments, as many stored: {most} KiB of its own, {:?}",
        report.bytes, report.segments, done.took
    );
    assert!(report.bytes > 80_000_000 && report.stored_bytes == report.bytes);
    assert!(most < 32 << 10, "{most} KiB");
}
