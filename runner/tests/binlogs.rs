//! Runs that pull binary logs of real servers (MariaDB 10.11 and 11.8, MySQL 9.7) into a store: byte for byte, once, and apart from
//! artefacts, whatever happens to the runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use age::secrecy::ExposeSecret;
use common::segments::{
    assert_whole, chained, compare, end_of_log, kept, mariadb, mariadb_11, mysql, stored_up_to,
    writes,
};
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};

/// A runner that pulls as the user that may read the log and nothing else.
fn puller(db: &MariaDb) -> Runner {
    pulling(Runner::new(db), json!({}))
}

fn pulling(runner: Runner, more: Value) -> Runner {
    let mut spec = json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    runner.set("USERNAME", "p").spec("shop-b-1", None, spec)
}

fn pull(runner: &Runner) -> Finished {
    let done = runner.run();
    done.assert_good();
    done
}

#[test]
fn segments_read_back_from_the_store_are_the_servers_files() {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    for start in [mariadb, mariadb_11, mysql] {
        let db = start(&["--max-binlog-size=65536"]);
        let encrypted = json!({"encryption": {"age": {"recipients": [recipient]}}});
        let runner = pulling(Runner::new(&db), encrypted);
        let first = pull(&runner).report.binlogs.unwrap();
        assert!(first.segments == 1 && first.from.unwrap().position == 0 && !first.seen.is_empty());
        for round in 0..4 {
            db.sql(&writes(round * 1000, 300));
            let report = pull(&runner).report.binlogs.unwrap();
            assert!(
                report.transactions == 300 && report.segments >= 1,
                "{report:?}"
            );
            assert!(report.lag_seconds.unwrap() < 60 && report.gaps.is_empty());
        }
        // Larger than what is held, and nothing at all.
        db.sql("insert w.t values (1, repeat('z', 3000000)); flush binary logs");
        pull(&runner);
        // MariaDB notes a little later what is committed for good.
        let none = pull(&runner).report.binlogs.unwrap();
        assert_eq!((none.transactions, none.gaps.len()), (0, 0));
        let kept = kept(&runner, Some(&identity));
        assert!(compare(&db, &kept) > 1);
        assert_whole(&kept);
        assert_eq!(none.to.unwrap().position, kept.last().unwrap().segment.to);
        let _ = identity.to_string().expose_secret();
    }
}

#[test]
fn a_gap_is_named_with_its_moments() {
    let db = mariadb(&[]);
    let runner = puller(&db);
    pull(&runner);
    common::next_second();
    db.sql("insert w.t values (1,'a'); flush binary logs; insert w.t values (2,'b'); flush binary logs");
    common::servers::wait_for("removal of binary logs", || {
        let listed = db.sql("show binary logs");
        let newest = listed
            .lines()
            .last()
            .unwrap()
            .split('\t')
            .next()
            .unwrap()
            .to_owned();
        db.sql(&format!("purge binary logs to '{newest}'"));
        listed.lines().count() == 1
    });
    common::next_second();
    db.sql("insert w.t values (3,'c')");
    let done = pull(&runner);
    let report = done.report.binlogs.unwrap();
    let gap = &report.gaps[0];
    assert_eq!((report.gaps.len(), gap.cause.as_str()), (1, "Purged"));
    assert!(!gap.from.is_empty() && gap.from < gap.to, "{gap:?}");
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("events may be missing"))
    );
    let chain = chained(&kept(&runner, None));
    assert_eq!((chain.windows.len(), chain.gaps.len()), (2, 1));
    // Told once more, should its report be lost, and known by the segment behind it; then the next run goes on.
    db.sql("insert w.t values (4,'d')");
    let again = pull(&runner).report.binlogs.unwrap().gaps;
    assert_eq!(again, std::slice::from_ref(gap));
    assert!(pull(&runner).report.binlogs.unwrap().gaps.is_empty());
}

#[test]
fn of_two_runs_at_once_nothing_is_doubled_or_lost() {
    let db = mariadb(&["--max-binlog-size=32768"]);
    let runner = puller(&db);
    let other = puller(&db)
        .set("SQLPATH", runner.sql_path().display().to_string())
        .set("HOSTNAME", "another-pod")
        .spec(
            "shop-b-2",
            None,
            json!({"action": "Binlogs", "binlogs": {"intervalSeconds": 300}}),
        );
    let (mut good, mut refused) = (0, 0);
    for round in 0..8 {
        db.sql(&writes(round * 1000, 150));
        let started = Instant::now();
        let children = [&runner, &other].map(|r| (r, r.start()));
        for (runner, child) in children {
            let done = runner.finish(child, started);
            match done.report.reason.as_str() {
                "Completed" => good += 1,
                // The server ends the first of two readers of one number; the store refuses the second of one segment.
                "AlreadyExists" | "ServerRefused" | "ConnectionLost" => refused += 1,
                other => panic!("{other}: {}", done.report.message),
            }
        }
    }
    db.sql("flush binary logs");
    pull(&runner);
    let kept = kept(&runner, None);
    assert_whole(&kept);
    let whole = compare(&db, &kept);
    println!(
        "{good} good, {refused} refused, {} segments, {whole} files equal",
        kept.len()
    );
    assert!(whole > 3 && good > 0);
    // What a run that was refused stored is not left.
    let bytes = runner
        .files()
        .iter()
        .filter(|f| f.contains(".binlog"))
        .count();
    assert_eq!(bytes, kept.len());
}

#[test]
fn a_run_that_is_killed_at_any_moment_loses_nothing() {
    for start in [mariadb, mysql] {
        let db = start(&["--max-binlog-size=65536"]);
        let runner = puller(&db);
        let whole_run = {
            let begun = Instant::now();
            pull(&runner);
            begun.elapsed()
        };
        let mut killed = 0;
        for round in 0..16_u32 {
            db.sql(&format!(
                "{}insert ignore w.t values ({round}, repeat('y', 1500000));",
                writes(round * 1000, 40)
            ));
            let mut child = runner.start();
            std::thread::sleep(whole_run.mul_f64(f64::from(round) / 11.0));
            killed += u32::from(child.try_wait().unwrap().is_none());
            let _ = child.kill();
            child.wait().unwrap();
        }
        db.sql("flush binary logs");
        pull(&runner);
        let kept = kept(&runner, None);
        assert_whole(&kept);
        let whole = compare(&db, &kept);
        println!(
            "{killed} killed, {} segments, {whole} files equal",
            kept.len()
        );
        assert!(killed > 3 && whole > 3);
        pull(&runner);
        let left: Vec<String> = runner
            .files()
            .into_iter()
            .filter(|f| f.contains("/."))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn segments_are_no_artefacts_and_artefacts_no_segments() {
    let db = mariadb(&[]);
    let runner = puller(&db);
    pull(&runner);
    let segments = || -> Vec<String> {
        runner
            .files()
            .into_iter()
            .filter(|f| f.contains("/binlogs/"))
            .collect()
    };
    let before = segments();
    let backup = |action: &str, more: Value| {
        let mut spec = json!({"action": action, "retention": {"keepLast": 1}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let again = Runner::new(&db)
            .set("SQLPATH", runner.sql_path().display().to_string())
            .spec("shop-00000001", None, spec);
        let done = again.run();
        done.assert_good();
        done
    };
    let made = backup("Backup", json!({}));
    assert_eq!(made.report.pruned, Some(0), "{:?}", made.report.warnings);
    let listed = backup("List", json!({}));
    assert_eq!(
        listed.report.artefacts.len(),
        1,
        "{:?}",
        listed.report.artefacts
    );
    backup("Verify", json!({}));
    let pruned = backup("Prune", json!({}));
    assert!(
        pruned.report.message.starts_with("0 of 1 "),
        "{}",
        pruned.report.message
    );
    assert_eq!(segments(), before);
    // A segment that is named by its key is none either.
    let key = before.iter().find(|f| f.contains(".binlog")).unwrap();
    let named = Runner::new(&db)
        .set("SQLPATH", runner.sql_path().display().to_string())
        .spec(
            "shop-00000001",
            None,
            json!({"action": "Verify", "options": {"key": key}}),
        );
    named.run().assert_failed(4, "ArtefactNotFound", &[]);
    // And the log goes on beside them; where all goes, segments go too.
    db.sql("insert w.t values (1,'a')");
    assert_eq!(pull(&runner).report.binlogs.unwrap().transactions, 1);
    backup("Prune", json!({"options": {"all": true}}));
    runner.assert_nothing_left();
}

#[test]
fn segments_from_before_the_oldest_backup_go_but_for_the_last_of_them() {
    let db = mariadb(&[]);
    let runner = puller(&db);
    for id in 0..4 {
        db.sql(&format!("insert w.t values ({id},'a')"));
        pull(&runner);
    }
    let manifests = || -> Vec<String> {
        runner
            .files()
            .into_iter()
            .filter(|f| f.ends_with(".json") && f.contains("/0000"))
            .collect()
    };
    let all = manifests();
    assert_eq!(all.len(), 4);
    // Three are of yesterday.
    for manifest in &all[..3] {
        let mut stored: Value = serde_json::from_slice(&runner.read(manifest)).unwrap();
        for field in ["first", "last", "created"] {
            let time = stored["segment"][field].as_u64().unwrap();
            stored["segment"][field] = (time - 86_400).into();
        }
        std::fs::write(runner.sql_path().join(manifest), stored.to_string()).unwrap();
    }
    let backup = |more: Value| {
        let again = Runner::new(&db).set("SQLPATH", runner.sql_path().display().to_string());
        again.spec("shop-00000001", None, more).run().assert_good();
    };
    backup(json!({}));
    assert_eq!(
        manifests(),
        all,
        "nothing is removed where retention is not asked for"
    );
    backup(json!({"retention": {"keepLast": 3}}));
    assert_eq!(manifests(), all[2..]);
    let bytes = runner
        .files()
        .iter()
        .filter(|f| f.contains(".binlog"))
        .count();
    assert_eq!(bytes, 2);
    db.sql("insert w.t values (9,'a')");
    assert_eq!(pull(&runner).report.binlogs.unwrap().transactions, 1);
}

#[test]
fn what_a_server_lacks_is_said_with_the_statement() {
    let db = mariadb(&["--binlog-expire-logs-seconds=3600"]);
    let runner = puller(&db);
    let done = pull(&runner);
    let warned = done.report.warnings.join("\n");
    assert!(
        warned.contains("binlog_expire_logs_seconds = 86400"),
        "{warned}"
    );
    db.sql("revoke replication slave on *.* from p@'%'; insert w.t values (1,'a')");
    let refused = runner.run();
    let words = ["GRANT REPLICATION SLAVE ON *.* TO 'p'@'%'"];
    refused.assert_failed(3, "MissingPrivilege", &words);
    let off = MariaDb::start();
    off.sql("create user p@'%' identified by 'S3cr3t-marker'; grant replication slave, binlog monitor on *.* to p@'%'");
    puller(&off)
        .run()
        .assert_failed(3, "ServerRefused", &["log_bin"]);
}

#[test]
fn what_stands_at_the_end_and_can_not_be_read_is_pulled_again() {
    let db = mariadb(&[]);
    let runner = puller(&db);
    for id in 0..3 {
        db.sql(&format!("insert w.t values ({id},'a')"));
        pull(&runner);
    }
    let manifest = runner
        .files()
        .into_iter()
        .rfind(|f| f.ends_with("2.json"))
        .unwrap();
    let path: PathBuf = runner.sql_path().join(&manifest);
    std::fs::write(path, "{\"schema\": \"batch.isekiro.com/seg").unwrap();
    db.sql("insert w.t values (9,'a')");
    let done = pull(&runner);
    assert!(
        done.report.warnings[0].contains(&manifest),
        "{:?}",
        done.report.warnings
    );
    let report = done.report.binlogs.unwrap();
    assert_eq!((report.transactions, report.gaps.len()), (2, 0));
    assert!(report.lag_seconds.is_some_and(|lag| lag < 60) && Duration::ZERO < done.took);
}

/// A runner that stays for so many seconds.
fn staying(db: &MariaDb, seconds: i64) -> Runner {
    stays(Runner::new(db), seconds)
}

fn stays(runner: Runner, seconds: i64) -> Runner {
    let until = chrono::Utc::now() + chrono::Duration::seconds(seconds);
    let until = crds::time::rfc3339(until);
    pulling(
        runner,
        json!({"binlogs": {"intervalSeconds": 300, "until": until}}),
    )
}

#[test]
fn a_run_that_stays_is_at_most_ten_seconds_behind() {
    for (start, status) in [
        (mariadb as fn(&[&str]) -> MariaDb, "show master status"),
        (mysql, "show binary log status"),
    ] {
        let db = start(&["--max-binlog-size=65536"]);
        let first = puller(&db);
        pull(&first);
        let runner = stays(first, 20);
        let (started, mut child) = (Instant::now(), runner.start());
        let (mut open, mut most, mut id) = (vec![], Duration::ZERO, 0_u32);
        while child.try_wait().unwrap().is_none() {
            // The last pull begins when its time is over: what is committed before is in it.
            if started.elapsed() < Duration::from_secs(18) {
                db.sql(&writes(id * 100, 20));
                id += 1;
                open.push((end_of_log(&db, status), Instant::now()));
            }
            let stored = stored_up_to(&runner);
            open.retain(|(place, committed)| {
                let done = *place <= stored;
                if done {
                    most = most.max(committed.elapsed());
                }
                !done
            });
        }
        let stored = stored_up_to(&runner);
        let lost: Vec<_> = open.iter().filter(|(place, _)| *place > stored).collect();
        assert!(lost.is_empty(), "{lost:?} behind {stored:?}");
        let done = runner.finish(child, started);
        done.assert_good();
        let report = done.report.binlogs.unwrap();
        println!(
            "{} transactions in {} segments, at most {most:?} behind",
            report.transactions, report.segments
        );
        assert_eq!(
            (report.transactions, report.gaps.len()),
            (i64::from(id) * 20, 0)
        );
        assert!(most < Duration::from_secs(10), "{most:?}");
        assert!(done.took > Duration::from_secs(15), "{:?}", done.took);
        // One that comes late pulls once.
        db.sql("flush binary logs");
        let late = stays(runner, -60);
        pull(&late);
        let kept = kept(&late, None);
        assert_whole(&kept);
        assert!(compare(&db, &kept) > 1);
    }
}

#[test]
fn a_run_that_stays_outlives_its_server_and_ends_when_it_is_told() {
    let mut db = mariadb(&[]);
    // Who sets it up hears at once what is wrong.
    let nobody = staying(&db, 600).set("PORT", common::free_port().to_string());
    let refused = nobody.run();
    refused.assert_failed(3, "ConnectionRefused", &[]);
    assert!(refused.took < Duration::from_secs(60), "{:?}", refused.took);

    let runner = staying(&db, 600);
    let (started, mut child) = (Instant::now(), runner.start());
    let stored = |db: &MariaDb| {
        let end = end_of_log(db, "show master status");
        common::servers::wait_for("what was committed", || stored_up_to(&runner) >= end);
    };
    db.sql("insert w.t values (1, 'a')");
    stored(&db);
    db.kill();
    db.start_again();
    db.sql("insert w.t values (2, 'b')");
    stored(&db);
    assert!(child.try_wait().unwrap().is_none());
    db.sql("insert w.t values (3, repeat('c', 3000000))");
    common::run(std::process::Command::new("kill").arg(child.id().to_string()));
    let told = Instant::now();
    let done = runner.finish(child, started);
    assert!(
        told.elapsed() < Duration::from_secs(15),
        "{:?}",
        told.elapsed()
    );
    done.assert_failed(1, "Terminated", &[]);
    assert!(done.report.binlogs.unwrap().segments > 1);
    // Two at once, then one alone.
    let children = ["one", "other"].map(|pod| {
        let runner = staying(&db, 12)
            .set("SQLPATH", runner.sql_path().display().to_string())
            .set("HOSTNAME", pod);
        let child = runner.start();
        (runner, child)
    });
    for round in 0..6 {
        db.sql(&writes(round * 100, 30));
    }
    for (runner, child) in children {
        let done = runner.finish(child, Instant::now());
        println!("{}: {}", done.report.reason, done.report.message);
    }
    db.sql("flush binary logs");
    let last = stays(runner, 0);
    assert!(pull(&last).report.binlogs.unwrap().gaps.is_empty());
    let kept = kept(&last, None);
    assert_whole(&kept);
    assert!(compare(&db, &kept) > 0);
}

/// Nobody hears what a run has found that is killed: the next one tells it, once.
#[test]
fn a_gap_that_a_killed_run_has_stored_is_told_by_the_next() {
    let db = mariadb(&[]);
    pull(&puller(&db));
    let runner = staying(&db, 600);
    let mut child = runner.start();
    common::servers::wait_for("the first segment", || !stored_up_to(&runner).0.is_empty());
    common::next_second();
    db.sql("reset master; insert w.t values (1, 'a')");
    let gaps = |runner: &Runner| chained(&kept(runner, None)).gaps.len();
    common::servers::wait_for("the gap", || gaps(&runner) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let runner = stays(runner, 0);
    for told in [1, 0] {
        db.sql("insert w.n (v) values (1)");
        let report = pull(&runner).report.binlogs.unwrap();
        assert_eq!(report.gaps.len(), told, "{:?}", report.gaps);
        for gap in &report.gaps {
            assert_eq!(gap.cause, "Reset");
            assert!(!gap.from.is_empty() && gap.from < gap.to, "{gap:?}");
            assert_eq!(gap.segment.len(), 16);
        }
    }
    assert_eq!(gaps(&runner), 1);
}
