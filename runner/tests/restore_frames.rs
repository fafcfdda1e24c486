//! Restores of artefacts of the native engine by their frames: cut at any moment and gone on with, over connections that are lost,
//! without LOAD DATA LOCAL. What is there afterwards is asked of the servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Finished, MariaDb, Runner};
use serde_json::json;
use sha2::{Digest, Sha256};

const USERS: &str = "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%' with grant option;";

/// Tables with keys, with foreign keys, of bytes, of other character sets, and one that takes nothing back; some 20 frames.
const SHOP: &str = "
    create database shop character set utf8mb4; use shop;
    create table customers (id int auto_increment primary key, name varchar(40) not null, mail varchar(60), unique key mail (mail), key name (name)) engine=innodb;
    insert into customers select seq, concat('name\t', seq, '\\\\', char(10)), if(seq % 7, concat(seq, '@example.org'), null) from seq_1_to_20000;
    create table orders (id bigint unsigned auto_increment primary key, customer int not null, note text, at datetime(3), sum decimal(12,2), key at (at), key c (customer, at), constraint of_customer foreign key (customer) references customers (id)) engine=innodb;
    insert into orders select seq, 1 + seq % 20000, concat(repeat(md5(seq), 6), 'it''s \\\\N'), '2026-01-01' + interval seq second, seq / 7 from seq_1_to_90000;
    create table files (id int primary key, body longblob, old varchar(30) character set latin1, flag bit(3), key old (old)) engine=innodb;
    insert into files select seq, unhex(concat(sha2(seq, 512), '00090a5c0d', repeat(md5(-seq), 30))), null, seq % 8 from seq_1_to_6000;
    insert into files values (6001, repeat('\\0large\t', 3000), null, 1);
    create table words (id int primary key, w varchar(60) character set latin1, key w (w)) engine=innodb character set latin1;
    insert into words select seq, concat('caf', char(233 using latin1), repeat('ab', 20), seq) from seq_1_to_60000;
    create table log (at int, what varchar(120), key at (at)) engine=myisam;
    insert into log select seq, repeat(md5(seq), 3) from seq_1_to_50000;
    create view latest as select * from orders where id > 89990;
    create trigger t before insert on orders for each row set new.note = concat(new.note, '!');
    create procedure p() select count(*) from orders;";

fn source() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = MariaDb::start();
        db.sql(USERS);
        db.sql(SHOP);
        db.end_with_process();
        db
    })
}

/// Half as much in tables that all take back what is not committed.
fn transactional() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = MariaDb::start();
        db.sql(USERS);
        let halves = [("90000", "45000"), ("60000", "30000"), ("50000", "25000")];
        let shop = SHOP.replace("engine=myisam", "engine=innodb");
        db.sql(
            &halves
                .iter()
                .fold(shop, |shop, (all, half)| shop.replace(all, half)),
        );
        db.end_with_process();
        db
    })
}

fn target() -> MariaDb {
    target_with(&[])
}

/// One that keeps what it says is committed.
fn target_with(options: &[&str]) -> MariaDb {
    let durable = ["--innodb-flush-log-at-trx-commit=1"];
    let db = MariaDb::start_with(&[&durable, options].concat());
    db.sql(USERS);
    db
}

/// A runner that restores what it backed up into this server.
fn restorer(target: &MariaDb, run: &str, options: serde_json::Value) -> Runner {
    restorer_of(source(), target, run, options)
}

fn restorer_of(
    source: &MariaDb,
    target: &MariaDb,
    run: &str,
    options: serde_json::Value,
) -> Runner {
    let runner = Runner::new(source).set("DATABASES", "shop");
    let runner = runner.spec("shop-00000000", None, json!({}));
    runner.run().assert_good();
    again(runner, target, run, options)
}

fn again(runner: Runner, target: &MariaDb, run: &str, options: serde_json::Value) -> Runner {
    runner
        .unset("DATABASES")
        .set("PORT", target.port.to_string())
        .spec(
            run,
            None,
            json!({"action": "Restore", "options": {"restore": options}}),
        )
}

/// All rows, and all that the server says of what it holds.
fn everything(db: &MariaDb) -> String {
    let tables = db.sql("select table_name from information_schema.tables where table_schema='shop' and table_type='BASE TABLE' order by 1");
    let tables: Vec<&str> = tables.lines().collect();
    let mut all = String::new();
    for table in &tables {
        all.push_str(&db.sql(&format!("use shop; checksum table `{table}`; show create table `{table}`; select count(*) from `{table}`")));
    }
    all.push_str(&db.sql("use shop; show create view latest; show create procedure p; select trigger_name, action_statement from information_schema.triggers where trigger_schema='shop'"));
    all
}

/// Frames that the journal has; `None` where there is none.
fn frames(db: &MariaDb) -> Option<u64> {
    let asked =
        db.try_sql("select count(*) from shop._backup_restore where step > 1 and step < 1 << 40");
    asked.ok()?.trim().parse().ok()
}

/// Starts a restore and kills it as soon as it is `time`; what it says if it ended before.
fn cut(runner: &Runner, time: impl Fn() -> bool) -> Option<Finished> {
    let (started, mut child) = (Instant::now(), runner.start());
    loop {
        assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
        if child.try_wait().unwrap().is_some() {
            return Some(runner.finish(child, started));
        }
        if time() {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
    }
}

#[test]
fn a_restore_that_is_killed_goes_on_and_brings_all() {
    let wanted = everything(source());
    let target = target();
    let runner = restorer(&target, "restore-1", json!({}));
    let (mut cuts, mut loaded) = (0, 0);
    // Between two frames, or in one: whatever is done next.
    while cuts < 4 {
        let most = loaded + 1 + cuts % 4;
        let ended = cut(&runner, || frames(&target).is_some_and(|n| n >= most));
        assert!(ended.is_none(), "it ended after {cuts} cuts");
        cuts += 1;
        let now = frames(&target).unwrap_or_default();
        assert!(now >= loaded, "{now} frames of {loaded} are there");
        loaded = now;
    }
    // While keys are made: the server makes them to their end.
    let asked = "select count(*) from information_schema.processlist where user='full' and info like 'ALTER TABLE%ADD %KEY%'";
    let mut finished = None;
    while finished.is_none() && cuts < 6 {
        finished = cut(&runner, || target.sql(asked).trim() != "0");
        cuts += u64::from(finished.is_none());
    }
    assert!(cuts > 4, "no key was seen being made");
    let finished = finished.unwrap_or_else(|| runner.run());
    finished.assert_good();
    let message = &finished.report.message;
    assert!(message.contains("going on where"), "{message}");
    assert_eq!(everything(&target), wanted);
    assert_eq!(frames(&target), None);
}

/// Who can write to a store can give an artefact any bytes, with sums that fit: among rows there is still nothing but rows.
#[test]
fn a_frame_of_rows_that_holds_another_statement_is_refused_before_that_is_sent() {
    let target = target();
    target.sql(
        "create database canary; create table canary.t (id int); insert into canary.t values (1)",
    );
    let runner = Runner::new(source()).set("DATABASES", "shop");
    let plain = json!({"compression": {"type": "none"}});
    let runner = runner.spec("shop-00000000", None, plain);
    runner.run().assert_good();
    let key = runner.artefacts().remove(0);
    let (mut text, mut manifest) = (runner.read(&key), runner.manifest(&key));
    let (of_dump, of_others) = (
        "/*!40000 ALTER TABLE `log` DISABLE KEYS */",
        "/*!40000 DELETE FROM canary.t",
    );
    let forged = format!("{of_others:<width$}*/", width = of_dump.len() - 2);
    let at = memchr::memmem::find(&text, of_dump.as_bytes()).unwrap();
    text[at..at + forged.len()].copy_from_slice(forged.as_bytes());
    let sum: String = Sha256::digest(&text)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    (manifest["storedSha256"], manifest["rawSha256"]) = (json!(sum), json!(sum));
    let stored = runner.sql_path().join(&key);
    std::fs::write(&stored, &text).unwrap();
    std::fs::write(format!("{}.json", stored.display()), manifest.to_string()).unwrap();
    let done = again(runner, &target, "restore-1", json!({})).run();
    assert_eq!(done.report.good, Some(false), "{}", done.stdout);
    let said = &done.report.message;
    assert!(
        said.contains("a frame of rows holds another statement"),
        "{said}"
    );
    assert_eq!(target.sql("select count(*) from canary.t").trim(), "1");
}

#[test]
fn another_restore_is_told_of_one_that_was_cut() {
    let wanted = everything(source());
    let target = target();
    let runner = restorer(&target, "restore-1", json!({}));
    assert!(cut(&runner, || frames(&target).is_some_and(|n| n >= 2)).is_none());
    let runner = again(runner, &target, "restore-2", json!({}));
    let words = [
        "shop._backup_restore",
        "another restore was cut here: restore-1 of",
        "set overwrite",
    ];
    runner.run().assert_failed(2, "TargetNotEmpty", &words);
    let runner = again(runner, &target, "restore-2", json!({"overwrite": true}));
    let finished = runner.run();
    finished.assert_good();
    let message = &finished.report.message;
    assert!(!message.contains("going on"), "{message}");
    assert_eq!(everything(&target), wanted);
}

#[test]
fn lost_connections_are_opened_again_and_rows_go_by_insert_where_files_may_not() {
    let wanted = everything(source());
    let target = target();
    target.sql("set global local_infile=0");
    let runner = restorer(&target, "restore-1", json!({}));
    let (started, mut child) = (Instant::now(), runner.start());
    let (mut kills, mut seen) = (0, 0);
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
        let now = frames(&target).unwrap_or_default();
        if now > seen + 1 && kills < 3 {
            // What takes nothing back can't be gone on with in the same attempt.
            let ids = target.sql("select id from information_schema.processlist where user='full' and info like 'INSERT INTO `orders`%' limit 1");
            for id in ids.lines() {
                kills += u64::from(target.try_sql(&format!("kill {id}")).is_ok());
            }
            seen = now;
        }
    }
    runner.finish(child, started).assert_good();
    assert!(kills > 0, "no connection was cut");
    assert_eq!(everything(&target), wanted);
}

/// A server that is killed, and one that is shut down, while rows and keys come.
#[test]
fn a_target_that_is_started_again_is_gone_on_with() {
    let wanted = everything(transactional());
    let mut target = target_with(&[]);
    let runner = restorer_of(transactional(), &target, "restore-1", json!({}));
    let (started, mut child) = (Instant::now(), runner.start());
    let keys = "select count(*) from information_schema.processlist where user='full' and info like 'ALTER TABLE%ADD %KEY%'";
    let mut stops = 0;
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
        match stops {
            0 if frames(&target).is_some_and(|n| n >= 2) => target.kill(),
            1 if frames(&target).is_some_and(|n| n >= 6) => target.shut_down(),
            2 if target.sql(keys).trim() != "0" => target.kill(),
            _ => continue,
        }
        stops += 1;
        target.start_again();
    }
    let finished = runner.finish(child, started);
    finished.assert_good();
    assert!(stops >= 2, "{stops} stops; {}", finished.stdout);
    assert!(finished.stdout.contains("the target is waited for"));
    assert_eq!(everything(&target), wanted);
    assert_eq!(frames(&target), None);
}

/// The target is gone for longer than it is waited for: the pod that follows goes on.
#[test]
fn a_target_that_stays_away_is_told_and_gone_on_with_by_the_next_pod() {
    let wanted = everything(source());
    let mut target = target_with(&[]);
    let runner = restorer(&target, "restore-1", json!({})).set("IDLE_TIMEOUT", "1s");
    let (started, mut child) = (Instant::now(), runner.start());
    while frames(&target).is_none_or(|n| n < 2) {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
    }
    target.kill();
    let finished = runner.finish(child, started);
    let words = ["shop", "goes on where this one stopped", "with overwrite"];
    finished.assert_failed(1, "ConnectionLost", &words);
    target.start_again();
    let finished = runner.unset("IDLE_TIMEOUT").run();
    finished.assert_good();
    let message = &finished.report.message;
    assert!(message.contains("going on where"), "{message}");
    assert_eq!(everything(&target), wanted);
}

/// A small file system under a server's data; the test has nothing to say where it may not mount.
struct Small(PathBuf);

impl Small {
    fn under(server: &mut MariaDb, size: &str) -> Option<Self> {
        server.shut_down();
        let (data, kept) = (
            server.dir.path().join("data"),
            server.dir.path().join("kept"),
        );
        std::fs::rename(&data, &kept).unwrap();
        std::fs::create_dir(&data).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "runner-test"])
            .arg(&data)
            .status();
        if !mounted.is_ok_and(|s| s.success()) {
            eprintln!("skipped: mounting needs root");
            return None;
        }
        let small = Self(data);
        common::run(
            // A hole would be space that nobody counts.
            Command::new("cp")
                .args(["-a", "--sparse=never"])
                .arg(kept.join("."))
                .arg(&small.0),
        );
        server.start_again();
        Some(small)
    }

    fn resize(&self, size: &str) {
        common::run(
            Command::new("mount")
                .args(["-o", &format!("remount,size={size}")])
                .arg(&self.0),
        );
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn bytes_in(directory: &Path) -> u64 {
    let of = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
        found if found.is_dir() => bytes_in(&entry.path()),
        found => found.len(),
    };
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| of(entry.unwrap())).sum()
}

#[test]
fn a_target_that_is_full_is_told_and_gone_on_with_once_it_has_space() {
    let wanted = everything(transactional());
    let mut target = target_with(&["--innodb-log-file-size=8M"]);
    let runner = restorer_of(transactional(), &target, "restore-1", json!({}));
    let Some(small) = Small::under(&mut target, "1G") else {
        return;
    };
    let taken = bytes_in(&small.0);
    let needed = bytes_in(&transactional().dir.path().join("data/shop"));
    small.resize(&(taken + needed / 5 * 3).to_string());
    let hasty = runner.set("IDLE_TIMEOUT", "2s");
    let finished = hasty.run();
    let words = [
        "shop.",
        "no space left",
        "give the volume of its data",
        "goes on where this one stopped",
    ];
    finished.assert_failed(1, "NoSpace", &words);
    let loaded = frames(&target).unwrap();
    assert!(loaded > 0, "{loaded}");
    // Some more, and enough only when it says that it waits.
    small.resize(&(taken + needed / 5 * 4).to_string());
    let runner = hasty.unset("IDLE_TIMEOUT");
    let (started, mut child) = (Instant::now(), runner.start());
    let stdout = child.stdout.take().unwrap();
    let waits = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut all = String::new();
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                if line.contains("the target is waited for") {
                    waits.store(true, Ordering::Release);
                }
                all.push_str(&line);
                all.push('\n');
            }
            all
        });
        let mut given = false;
        while child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
            if waits.load(Ordering::Acquire) && !std::mem::replace(&mut given, true) {
                small.resize("1G");
            }
            std::thread::yield_now();
        }
        assert!(given, "it never waited");
        reader.join().unwrap()
    });
    runner.finish_said(child, started, &said).assert_good();
    assert_eq!(everything(&target), wanted);
    target.shut_down();
}

/// As in a Galera cluster, a transaction may be only so large.
#[test]
fn transactions_are_no_larger_than_the_target_allows() {
    const LIMIT: u64 = 64 << 10;
    let wanted = everything(transactional());
    let target = target_with(&[
        "--log-bin=bin",
        "--binlog-format=ROW",
        "--binlog-cache-size=32768",
        "--log-bin-trust-function-creators=1",
    ]);
    target.sql(&format!("set global max_binlog_cache_size={LIMIT}"));
    let runner = restorer_of(
        transactional(),
        &target,
        "restore-1",
        json!({"verify": "Whole"}),
    );
    // The client can't load what is larger.
    let dump = runner.dump(&runner.artefacts()[0]);
    let e = target.try_load(&dump).unwrap_err();
    assert!(e.contains("1197"), "{e}");
    target.sql("drop database shop");
    // Cut within a frame, and gone on with there.
    let within = "select count(*) from shop._backup_restore where step >= 1 << 40";
    let began = || target.try_sql(within).is_ok_and(|n| n.trim() != "0");
    for _ in 0..3 {
        assert!(cut(&runner, began).is_none());
    }
    let finished = runner.run();
    finished.assert_good();
    assert!(finished.report.message.contains("going on where"));
    assert_eq!(everything(&target), wanted);
    // A row alone is larger, in the text of INSERT.
    target.sql(
        "drop database shop; set global local_infile=0; set global max_binlog_cache_size=8192",
    );
    let words = [
        "shop.files",
        "wsrep_max_ws_size",
        "max_binlog_cache_size",
        "1197",
    ];
    runner.run().assert_failed(3, "ServerRefused", &words);
}

/// The one number of an answer.
fn number(of: &mut wire::Connection, sql: &str) -> Result<u64, wire::Error> {
    let mut rows = of.query(sql)?;
    let mut all = vec![];
    while let Some(mut row) = rows.read()? {
        all.push(String::from_utf8(row.value()?.unwrap().to_vec()).unwrap());
    }
    assert_eq!(all.len(), 1, "{sql}");
    Ok(all[0].parse().unwrap())
}

/// A database in use is replaced under those who use it. A transaction that has read a table holds the restore off; who comes
/// later finds the table as it was, none, or rows that come; a transaction that began before is refused.
#[test]
fn what_other_sessions_see_of_a_restore_in_place() {
    const CUSTOMERS: &str = "select count(*) from shop.customers";
    let wanted = everything(transactional());
    let target = target_with(&[]);
    let runner = restorer_of(transactional(), &target, "restore-1", json!({}));
    runner.run().assert_good();
    target.sql("insert into shop.customers values (999999, 'later', null)");
    let before = everything(&target);
    let open = || wire::Connection::open(&common::native::settings(&target)).unwrap();
    let (mut reads, mut began, mut comes) = (open(), open(), open());
    reads.execute("start transaction").unwrap();
    assert_eq!(number(&mut reads, CUSTOMERS).unwrap(), 20001);
    let waits = "select count(*) from information_schema.processlist where user='full' and info like 'DROP TABLE%' and state like 'Waiting for%lock'";
    let held = |runner: &Runner| {
        let (started, mut child) = (Instant::now(), runner.start());
        while target.sql(waits).trim() == "0" {
            assert!(
                started.elapsed() < Duration::from_secs(120),
                "it does not wait"
            );
            assert!(child.try_wait().unwrap().is_none(), "it ended before");
        }
        (started, child)
    };
    let in_place = json!({"overwrite": true});
    // For longer than it waits.
    let runner = again(runner, &target, "restore-2", in_place.clone()).set("IDLE_TIMEOUT", "6s");
    let (started, child) = held(&runner);
    let words = [
        "other sessions use",
        "SHOW FULL PROCESSLIST",
        "restore again with overwrite",
        "1205",
    ];
    runner
        .finish(child, started)
        .assert_failed(3, "LockWait", &words);
    assert_eq!(number(&mut reads, CUSTOMERS).unwrap(), 20001);
    target.sql("drop table shop._backup_restore");
    assert_eq!(everything(&target), before);
    // For as long as the transaction goes on.
    began
        .execute("start transaction with consistent snapshot")
        .unwrap();
    let runner = again(runner, &target, "restore-3", in_place).unset("IDLE_TIMEOUT");
    let (started, mut child) = held(&runner);
    assert_eq!(number(&mut reads, CUSTOMERS).unwrap(), 20001);
    reads.execute("commit").unwrap();
    comes.execute("set lock_wait_timeout=1").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(300), "it hangs");
        seen.insert(match number(&mut comes, CUSTOMERS) {
            Ok(20001) => "as it was",
            Ok(0..=20000) => "rows that come",
            Err(e) if e.number() == Some(1146) => "none",
            Err(e) if e.number() == Some(1205) => "held off",
            other => panic!(
                "{other:?}: {}",
                target.sql("show full processlist; show engine innodb status")
            ),
        });
    }
    let finished = runner.finish(child, started);
    finished.assert_good();
    assert!(seen.contains("rows that come"), "{seen:?}");
    assert_eq!(
        number(&mut began, CUSTOMERS).unwrap_err().number(),
        Some(1412)
    );
    assert_eq!(everything(&target), wanted);
}

/// Another program writes while rows come: counts stay what they are, and only reading back tells.
#[test]
fn a_row_that_another_changes_meanwhile_is_found_by_reading_it_back() {
    for (client, verify) in [(false, "Counts"), (false, "Whole"), (true, "Whole")] {
        let target = target_with(&[]);
        let runner = Runner::new(transactional()).set("DATABASES", "shop");
        let runner = if client { runner.by_client() } else { runner };
        let runner = runner.spec("shop-00000000", None, json!({}));
        runner.run().assert_good();
        let runner = again(runner, &target, "restore-1", json!({"verify": verify}));
        let mut other = wire::Connection::open(&common::native::settings(&target)).unwrap();
        let (started, mut child) = (Instant::now(), runner.start());
        let changed = "update shop.customers set name='another' where id=7";
        while other.execute(changed).map_or(0, |done| done.affected) == 0 {
            assert!(child.try_wait().unwrap().is_none(), "it ended before");
        }
        let finished = runner.finish(child, started);
        let words = [
            "shop.customers has other rows",
            "another program may write there",
        ];
        match verify {
            "Counts" => finished.assert_good(),
            _ => finished.assert_failed(5, "RestoreDiffers", &words),
        }
        let name = target.sql("select name from shop.customers where id=7");
        assert_eq!(name.trim(), "another");
        assert_eq!(frames(&target), None);
    }
}

/// Twenty moments of a whole restore, from its first request to its last comparison.
#[test]
#[ignore = "takes minutes: tests/run long"]
fn twenty_random_moments() {
    let wanted = everything(source());
    let target = target_with(&[]);
    let runner = restorer(&target, "restore-1", json!({"verify": "Whole"}));
    let whole = runner.run();
    whole.assert_good();
    assert_eq!(everything(&target), wanted);
    target.sql("drop database shop");
    // Xorshift: the seed stands in the output.
    let mut seed = u64::from(std::process::id()) | 1 << 40;
    println!("seed {seed}, {:?} without a cut", whole.took);
    let (mut cuts, mut ended) = (0, 0);
    while cuts < 20 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let micros = u64::try_from(whole.took.as_micros()).unwrap();
        let moment = Duration::from_micros(seed % micros);
        let started = Instant::now();
        match cut(&runner, || started.elapsed() >= moment) {
            // Of one that is cut between its last word to the target and that to the pod, nothing is left to be done.
            None if frames(&target).is_none()
                && target
                    .try_sql("select count(*) from shop.orders")
                    .is_ok_and(|n| n.trim() == "90000") =>
            {
                ended += 1;
                assert_eq!(everything(&target), wanted);
                target.sql("drop database shop");
            }
            None => {
                cuts += 1;
                println!("cut {cuts} after {moment:?}: {:?} frames", frames(&target));
            }
            Some(finished) => {
                finished.assert_good();
                ended += 1;
                assert_eq!(everything(&target), wanted);
                assert_eq!(frames(&target), None);
                target.sql("drop database shop");
            }
        }
    }
    let finished = runner.run();
    finished.assert_good();
    assert_eq!(everything(&target), wanted);
    println!("{cuts} cuts, {} restores whole", ended + 1);
}
