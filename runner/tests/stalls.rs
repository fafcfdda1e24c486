//! A database that hangs ends the run with its name, in every engine, and no sooner than it may.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use common::backup::Backup;
use common::servers::{POSTGRES_PASSWORD, postgres};
use common::{MariaDb, Runner};

/// A session of psql's that holds what `sql` takes until it is dropped.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hold(sql: &str) -> Session {
    let mut child = Command::new("psql")
        .args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-d",
            "app",
        ])
        .args(["-p", &postgres().to_string()])
        .env("PGPASSWORD", POSTGRES_PASSWORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("begin; {sql}; select 'held';\n").as_bytes())
        .unwrap();
    stdin.flush().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim(), "held");
    // Its input stays open for as long as it lives.
    child.stdin = Some(stdin);
    Session(child)
}

#[test]
fn p4_a_mariadb_that_hangs_is_named() {
    let db = MariaDb::start();
    db.sql("create database shop; create table shop.t (a int primary key) engine=innodb; insert into shop.t values (1);
            create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%';");
    let runner = Runner::new(&db).set("IDLE_TIMEOUT", "4s");
    runner.run().assert_good();
    let held = db.hold("lock tables shop.t write");
    let place = format!("127.0.0.1:{}", db.port);
    let done = Runner::new(&db).set("IDLE_TIMEOUT", "4s").run();
    done.assert_failed(
        3,
        "SourceStalled",
        &[&place, "sent nothing for 4s", "IDLE_TIMEOUT"],
    );
    // It was named before that.
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.starts_with(&format!("the database at {place} has sent nothing for "))),
        "{:?}",
        done.report.warnings
    );
    drop(held);
}

#[test]
fn p4_a_postgresql_that_hangs_is_named() {
    let mut backup = Backup::new().with_postgres().with_disk(3);
    backup.plan["databases"].as_array_mut().unwrap().remove(0);
    backup.runner = backup.runner.set("IDLE_TIMEOUT", "4s");
    backup.run("m-1").assert_good();
    let held = hold("create table hold_me (a int); lock table pg_class in access exclusive mode");
    let done = backup.run("m-2");
    done.assert_failed(
        3,
        "SourceStalled",
        &["sent nothing for 4s", "config.host", "spec.job.env"],
    );
    drop(held);
}
