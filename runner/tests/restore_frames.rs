//! Restores of artefacts of the native engine by their frames: cut at any moment and gone on with, over connections that are lost,
//! without LOAD DATA LOCAL. What is there afterwards is asked of the servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::{Finished, MariaDb, Runner};
use serde_json::json;

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

fn target() -> MariaDb {
    let db = MariaDb::start();
    db.sql(USERS);
    db
}

/// A runner that restores what it backed up into this server.
fn restorer(target: &MariaDb, run: &str, options: serde_json::Value) -> Runner {
    let runner = Runner::new(source()).set("DATABASES", "shop");
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
    let asked = db.try_sql("select count(*) from shop._backup_restore where step > 1");
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
