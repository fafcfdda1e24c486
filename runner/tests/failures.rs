//! Ways a run breaks: each ends with its exit code, its reason, and words that help.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{MariaDb, Runner, fixture};

#[test]
fn a_wrong_password_names_user_and_secret() {
    let runner = Runner::new(fixture()).set("PASSWORD", "Wr0ng-marker");
    let done = runner.run();
    done.assert_failed(
        3,
        "AccessDenied",
        &["access denied", "\"full\"", "PASSWORD", "1045"],
    );
    assert!(!done.stdout.contains("Wr0ng-marker"));
    runner.assert_nothing_left();
}

#[test]
fn an_unknown_host_and_a_refused_port() {
    let runner = Runner::new(fixture()).set("HOST", "nowhere.invalid");
    runner
        .run()
        .assert_failed(3, "UnknownHost", &["nowhere.invalid", "HOST"]);
    let runner = Runner::new(fixture()).set("PORT", common::free_port().to_string());
    runner
        .run()
        .assert_failed(3, "ConnectionRefused", &["127.0.0.1", "PORT"]);
    runner.assert_nothing_left();
}

#[test]
fn a_database_that_does_not_exist() {
    let runner = Runner::new(fixture()).set("DATABASES", "shop,gone");
    runner
        .run()
        .assert_failed(3, "UnknownDatabase", &["DATABASES", "gone", "1049"]);
    runner.assert_nothing_left();
}

#[test]
fn empty_lists_and_only_system_databases() {
    Runner::new(fixture())
        .set("DATABASES", "")
        .run()
        .assert_failed(2, "InvalidSettings", &["set but empty"]);
    Runner::new(fixture())
        .set("DATABASES", "shop,,x")
        .run()
        .assert_failed(2, "InvalidSettings", &["empty name"]);
    Runner::new(fixture())
        .set("DATABASES", "emptydb")
        .run()
        .assert_good();
    let db = fixture();
    db.sql("create or replace user nothing@'%' identified by 'nothing-pw'");
    let runner = Runner::new(db)
        .set("USERNAME", "nothing")
        .set("PASSWORD", "nothing-pw");
    runner
        .run()
        .assert_failed(3, "NoDatabases", &["0 databases", "nothing"]);
}

#[test]
fn a_destination_that_is_missing_or_refuses() {
    let runner = Runner::new(fixture()).set("SQLPATH", "/nonexistent/mnt");
    runner.run().assert_failed(
        4,
        "DestinationNotFound",
        &["/nonexistent/mnt", "volumeMounts"],
    );
    let runner = Runner::new(fixture()).set("SQLPATH", "/proc");
    let done = runner.run();
    assert_eq!(done.code, Some(4), "{}", done.stdout);
}

#[test]
fn wrong_settings_come_all_at_once() {
    let done = Runner::new(fixture())
        .unset("HOST")
        .set("PORT", "x")
        .unset("USERNAME")
        .run();
    done.assert_failed(
        2,
        "InvalidSettings",
        &["HOST is not set", "PORT", "USERNAME"],
    );
}

/// Mounts a small tmpfs where this process may; else the test has nothing to say.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(path: &std::path::Path, size: &str) -> Option<Self> {
        Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "runner-test"])
            .arg(path)
            .status()
            .is_ok_and(|s| s.success())
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_volume() {
    let db = MariaDb::start();
    db.sql("create database d; use d; create table big (id int primary key auto_increment, body longblob); insert into big (body) select random_bytes(1024) from seq_1_to_5000; create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    let runner = Runner::new(&db);
    let Some(_mount) = Small::mount(&runner.sql_path(), "1M") else {
        eprintln!("skipped: mounting needs root");
        return;
    };
    runner
        .run()
        .assert_failed(4, "NoSpace", &["no space left", "EXPIREAT"]);
    runner.assert_nothing_left();
    let status = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(runner.sql_path())
        .status()
        .unwrap();
    assert!(status.success());
    runner.run().assert_failed(4, "ReadOnly", &["read-only"]);
}

/// A stand-in for the client: a shell script under a client's name.
fn stub(runner: &Runner, name: &str, script: &str) -> std::path::PathBuf {
    let dir = runner.out.path().join("bin");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    let text = format!(
        "#!/bin/sh\ncase \"$2\" in --version) echo \"$0 Ver 10.19 Distrib 10.11.19-MariaDB\"; exit;; --help) echo '  --no-tablespaces'; exit;; esac\n{script}\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

const GOOD_DUMP: &str = r#"printf -- '-- MariaDB dump\nUSE `d`;\nCREATE TABLE `t` (\n  `a` int\n);\nINSERT INTO `t` VALUES (1);\n-- Dump completed on 2025-01-15\n'"#;

#[test]
fn a_client_of_either_name_works_and_none_is_told() {
    for name in ["mariadb-dump", "mysqldump"] {
        let runner = Runner::new(fixture());
        let dir = stub(&runner, name, GOOD_DUMP);
        let done = runner.set("PATH", dir.display().to_string()).run();
        done.assert_good();
        assert_eq!((done.report.tables, done.report.rows), (Some(1), Some(1)));
    }
    Runner::new(fixture())
        .set("PATH", "/nonexistent")
        .run()
        .assert_failed(2, "InvalidSettings", &["mariadb-dump", "mysqldump"]);
}

#[test]
fn a_warning_of_the_client_is_in_the_log_and_not_in_the_dump() {
    let runner = Runner::new(fixture());
    let dir = stub(
        &runner,
        "mysqldump",
        &format!("echo 'mysqldump: [Warning] beware' >&2; {GOOD_DUMP}"),
    );
    let runner = runner.set("PATH", dir.display().to_string());
    let done = runner.run();
    done.assert_good();
    assert!(done.stdout.contains("[Warning] beware"));
    let dump = runner.dump(&runner.artefacts()[0]);
    assert!(dump.starts_with(b"-- MariaDB dump\n") && dump.ends_with(b"2025-01-15\n"));
}

#[test]
fn a_good_status_without_footer_and_a_footer_with_a_bad_status() {
    for (script, code, reason, word) in [
        (
            GOOD_DUMP.replace("-- Dump completed on 2025-01-15\\n", ""),
            3,
            "IncompleteDump",
            "Dump completed",
        ),
        (
            GOOD_DUMP.replace("2025-01-15\\n", "2025-01-15"),
            3,
            "IncompleteDump",
            "Dump completed",
        ),
        (String::new(), 3, "IncompleteDump", "0 bytes"),
        (
            format!("{GOOD_DUMP}; exit 2"),
            3,
            "ClientFailed",
            "exit status 2",
        ),
        (
            format!("{GOOD_DUMP}; kill -9 $$"),
            3,
            "ClientKilled",
            "memory",
        ),
        (
            "printf -- '-- Dump completed\\n'".to_owned(),
            3,
            "NoDatabases",
            "no database",
        ),
    ] {
        let runner = Runner::new(fixture());
        let dir = stub(&runner, "mariadb-dump", &script);
        let runner = runner.set("PATH", dir.display().to_string());
        runner.run().assert_failed(code, reason, &[word]);
        runner.assert_nothing_left();
    }
}

#[test]
fn an_unknown_argument_shows_the_clients_words() {
    let runner = Runner::new(fixture()).set("MYSQLDUMP_ARGS", "--set-gtid-purged=OFF");
    runner
        .run()
        .assert_failed(3, "UnknownOption", &["set-gtid-purged", "MYSQLDUMP_ARGS"]);
    runner.assert_nothing_left();
}

#[test]
fn a_lock_that_is_never_given_ends_at_the_time_limit() {
    let db = MariaDb::start();
    db.sql(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    let held = db.hold("lock tables shop.t write");
    let runner = Runner::new(&db).set("TIMEOUT", "3s");
    let done = runner.run();
    done.assert_failed(6, "Timeout", &["timeout", "3s", "Dumping"]);
    assert!(done.took < Duration::from_secs(12), "{:?}", done.took);
    runner.assert_nothing_left();
    drop(held);
    runner.run().assert_good();
}

#[test]
fn sigterm_ends_the_client_and_the_run() {
    let db = MariaDb::start();
    db.sql(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    let _held = db.hold("lock tables shop.t write");
    let runner = Runner::new(&db);
    let started = Instant::now();
    let child = runner.start();
    let dir = runner.sql_path();
    let waiting = || {
        db.sql("select count(*) from information_schema.processlist where state like 'Waiting for table%'").trim() != "0"
    };
    while !waiting() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    let done = runner.finish(child, started);
    done.assert_failed(1, "Terminated", &["SIGTERM", "Dumping"]);
    runner.assert_nothing_left();
    assert!(dir.exists());
}

#[test]
fn a_connection_that_is_killed_half_way() {
    let db = MariaDb::start();
    db.sql("create database d; use d; create table big (id int primary key auto_increment, body longtext); insert into big (body) select repeat('x', 1000000) from seq_1_to_64; create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    let runner = Runner::new(&db);
    let started = Instant::now();
    let child = runner.start();
    let signal = |name: &str| {
        Command::new("kill")
            .args([name, &child.id().to_string()])
            .status()
            .unwrap()
    };
    let mut ids = String::new();
    while ids.trim().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(20));
        ids = db.sql("select id from information_schema.processlist where user='full' and info like 'SELECT%big%'");
    }
    // The runner stands still, the pipe is full, and so the client waits in the middle of the table.
    signal("-STOP");
    for id in ids.lines() {
        let _ = db.try_sql(&format!("kill {id}"));
    }
    signal("-CONT");
    let done = runner.finish(child, started);
    done.assert_failed(3, "ConnectionLost", &["connection", "2013"]);
    runner.assert_nothing_left();
}
