//! Stores as they are in the world, by a server that is not ours: Object Lock, and one that stands still for a while.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use common::s3::{archive, destination};
use common::versitygw::Versitygw;
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};

/// Rows of 1 kB that nothing compresses.
fn rows_of(count: u32) -> MariaDb {
    let db = MariaDb::start();
    db.sql(&format!("create database d; use d; create table big (id int primary key auto_increment, body longblob); insert into big (body) select random_bytes(1000) from seq_1_to_{count}; create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'"));
    db
}

/// A run of this night, to the bucket `backups`.
fn run_of_night(db: &MariaDb, night: u32, url: &str, more: &Value) -> Finished {
    let runner = Runner::new(db);
    let mut spec = json!({"destination": destination(&runner, url, "backups")});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let (run, slot) = (
        format!("shop-{night}"),
        format!("2025-01-{night:02}T03:00:00Z"),
    );
    runner.unset("SQLPATH").spec(&run, Some(&slot), spec).run()
}

fn artefacts(keys: &[String]) -> Vec<&String> {
    keys.iter().filter(|key| key.ends_with(".zst")).collect()
}

/// Retention in a bucket whose objects nobody may remove for a day.
#[test]
fn p2_a_bucket_in_compliance_mode_gives_good_runs_and_keeps_its_versions() {
    let store = Versitygw::start();
    store.make_locked_bucket("backups");
    // More than one part of an upload.
    let db = rows_of(20_000);
    let keep = json!({"retention": {"keepLast": 1}});
    for night in 1..=2 {
        let done = run_of_night(&db, night, &store.url, &keep);
        done.assert_good();
        assert!(done.report.artefacts[0].read_back, "night {night}");
        assert_eq!(done.report.warnings, [""; 0], "night {night}");
    }
    let keys = store.keys("backups");
    assert_eq!(artefacts(&keys).len(), 1, "{keys:?}");
    // What retention took off the list is there as a version, and nobody removes that one.
    let versions = store.versions("backups");
    let first = versions
        .iter()
        .find(|(key, _)| key.contains("20250101T") && key.ends_with(".zst"));
    let (key, version) = first.unwrap_or_else(|| panic!("{versions:?}"));
    let (removed, said) = store.ask(
        "DELETE",
        &format!("backups/{key}?versionId={version}"),
        &[],
        "",
    );
    assert!(!removed, "the lock does not hold: {said}");
}

#[test]
fn p2_an_archive_goes_to_a_bucket_in_compliance_mode() {
    let store = Versitygw::start();
    store.make_locked_bucket("backups");
    let done = archive(&store.url).run("nightly-28950870");
    done.assert_good();
    assert!(done.report.artefacts[0].read_back);
}

/// Past MariaDB's net_write_timeout, at which it would end a session that nobody reads.
const PAUSE: Duration = Duration::from_secs(90);

/// Forwards to `port`; once so many bytes have come, nothing goes on in any connection for [`PAUSE`].
fn pausing_proxy(port: u16, bytes: usize) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let (seen, paused) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::new()));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let (seen, paused) = (Arc::clone(&seen), Arc::clone(&paused));
            std::thread::spawn(move || {
                let (mut client, mut server) = (client, server);
                let mut buffer = vec![0; 65536];
                loop {
                    let n = client.read(&mut buffer).unwrap_or(0);
                    if seen.fetch_add(n, Ordering::Relaxed) + n > bytes {
                        let until = *paused.get_or_init(|| Instant::now() + PAUSE);
                        std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    }
                    if n == 0 || server.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    (own, count)
}

/// Natively and by the client, for both hold a session of the database while the store takes nothing.
#[test]
#[ignore = "takes two minutes: make test-long"]
fn p3_a_store_that_pauses_for_90_s_costs_no_run() {
    let store = Versitygw::start();
    store.make_bucket("backups");
    let port = store.url.rsplit(':').next().unwrap().parse().unwrap();
    // 160 MB of text: more than all that is on its way at any time.
    let db = &rows_of(80_000);
    std::thread::scope(|scope| {
        for (night, engine) in [(1, "Native"), (2, "Client")] {
            scope.spawn(move || {
                let (proxy, seen) = pausing_proxy(port, 6_000_000);
                let more = json!({
                    "compression": {"type": "none"}, "source": {"engine": engine}
                });
                let begun = Instant::now();
                let done = run_of_night(db, night, &format!("http://127.0.0.1:{proxy}"), &more);
                done.assert_good();
                assert!(done.report.artefacts[0].read_back, "{engine}");
                assert!(begun.elapsed() > PAUSE, "{engine}: it did not pause");
                assert!(seen.load(Ordering::Relaxed) > 100_000_000, "{engine}");
            });
        }
    });
}
