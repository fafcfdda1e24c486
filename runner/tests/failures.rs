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
        .assert_failed(3, "UnknownDatabase", &["DATABASES", "gone"]);
    runner.assert_nothing_left();
    let runner = runner.by_client();
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
        let runner = Runner::new(fixture()).by_client();
        let dir = stub(&runner, name, GOOD_DUMP).display().to_string();
        let done = runner.set("PATH", dir).set("DATABASES", "d").run();
        done.assert_good();
        assert_eq!((done.report.tables, done.report.rows), (Some(1), Some(1)));
    }
    Runner::new(fixture())
        .by_client()
        .set("PATH", "/nonexistent")
        .run()
        .assert_failed(2, "InvalidSettings", &["mariadb-dump", "mysqldump"]);
}

#[test]
fn a_warning_of_the_client_is_in_the_log_and_not_in_the_dump() {
    let runner = Runner::new(fixture()).by_client();
    let dir = stub(
        &runner,
        "mysqldump",
        &format!("echo 'mysqldump: [Warning] beware' >&2; {GOOD_DUMP}"),
    );
    let path = dir.display().to_string();
    let runner = runner.set("PATH", path).set("DATABASES", "d");
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
            "in the middle of a statement",
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
        let runner = Runner::new(fixture()).by_client();
        let dir = stub(&runner, "mariadb-dump", &script);
        let runner = runner.set("PATH", dir.display().to_string());
        runner.run().assert_failed(code, reason, &[word]);
        runner.assert_nothing_left();
    }
}

#[test]
fn an_unknown_argument_shows_the_clients_words() {
    let runner = Runner::new(fixture()).set("MYSQLDUMP_ARGS", "--set-gtid-purged=ON");
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
    for (runner, words) in [
        (Runner::new(&db), ["connection", "table d.big"]),
        (Runner::new(&db).by_client(), ["connection", "2013"]),
    ] {
        killed_half_way(&db, &runner, &words);
    }
}

fn killed_half_way(db: &MariaDb, runner: &Runner, words: &[&str]) {
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
        ids = db.sql("select id from information_schema.processlist where user='full' and info like 'SELECT%`big`%'");
    }
    // The runner stands still, the pipe is full, and so the client waits in the middle of the table.
    signal("-STOP");
    for id in ids.lines() {
        let _ = db.try_sql(&format!("kill {id}"));
    }
    signal("-CONT");
    let done = runner.finish(child, started);
    done.assert_failed(3, "ConnectionLost", words);
    runner.assert_nothing_left();
}

/// A server of its own with a user who may do everything; `sql` fills it.
fn server(sql: &str) -> MariaDb {
    let db = MariaDb::start();
    db.sql(sql);
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%'");
    db
}

const BIG: &str = "create database d; use d; create table big (id int primary key auto_increment, body longtext); insert into big (body) select repeat('x', 1000000) from seq_1_to_64;";

/// Waits until the dump reads table `big`, and stops the runner there: its pipe fills, the client waits.
fn stop_in_the_middle(db: &MariaDb, runner: &Runner) -> (std::process::Child, Instant) {
    let started = Instant::now();
    let child = runner.start();
    while db.sql("select count(*) from information_schema.processlist where user='full' and info like 'SELECT%`big`%'").trim() == "0" {
        assert!(started.elapsed() < Duration::from_secs(20));
    }
    signal(child.id(), "-STOP");
    (child, started)
}

fn signal(pid: u32, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// Pid of the runner's dump client.
fn client_of(runner: u32) -> u32 {
    let output = Command::new("pgrep")
        .args(["-P", &runner.to_string(), "mariadb-dump"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_client_that_is_killed() {
    let db = server(BIG);
    let runner = Runner::new(&db).by_client();
    let (child, started) = stop_in_the_middle(&db, &runner);
    signal(client_of(child.id()), "-KILL");
    signal(child.id(), "-CONT");
    let done = runner.finish(child, started);
    done.assert_failed(3, "ClientKilled", &["signal 9", "memory limit"]);
    runner.assert_nothing_left();
}

#[test]
fn a_server_that_is_killed() {
    let mut db = server(BIG);
    let runner = Runner::new(&db);
    let (child, started) = stop_in_the_middle(&db, &runner);
    db.kill();
    signal(child.id(), "-CONT");
    runner.finish(child, started).assert_failed(
        3,
        "ConnectionLost",
        &["connection", "server's log"],
    );
    runner.assert_nothing_left();
}

/// Forwards to the server and cuts every connection after so many bytes of answers.
fn cutting_proxy(port: u16, bytes: usize) -> u16 {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || {
                let (mut server, mut client) = (server, client);
                let mut left = bytes;
                let mut buffer = [0; 65536];
                while left > 0 {
                    let n = server.read(&mut buffer).unwrap_or(0).min(left);
                    if n == 0 || client.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                    left -= n;
                }
                let _ = client.shutdown(std::net::Shutdown::Both);
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    own
}

#[test]
fn a_network_that_is_cut() {
    let db = server(BIG);
    let port = cutting_proxy(db.port, 5_000_000);
    let runner = Runner::new(&db).set("PORT", port.to_string());
    runner
        .run()
        .assert_failed(3, "ConnectionLost", &["connection", "table d.big"]);
    runner.assert_nothing_left();
    let runner = runner.by_client();
    runner
        .run()
        .assert_failed(3, "ConnectionLost", &["connection", "2013"]);
    runner.assert_nothing_left();
}

/// What a dump will lack is asked before it; a run that got no answer must not go on as if nothing were missing.
#[test]
fn a_network_that_is_cut_while_the_server_is_asked() {
    let tables: String = (0..600)
        .map(|n| format!("create table a_table_with_a_long_name_number_{n} (id int);"))
        .collect();
    let db = server(&format!("create database d; use d; {tables}"));
    let port = cutting_proxy(db.port, 20_000);
    let runner = Runner::new(&db).set("PORT", port.to_string());
    let done = runner.run();
    done.assert_failed(3, "ConnectionLost", &["the connection was lost"]);
    assert!(!done.stdout.contains("\"Dumping\""), "{}", done.stdout);
    runner.assert_nothing_left();
}

#[test]
fn a_runner_that_is_killed_leaves_what_its_next_attempt_removes() {
    let db = server(BIG);
    let runner = Runner::new(&db).spec(
        "shop-28950870",
        Some("2025-01-15T10:30:00Z"),
        serde_json::json!({}),
    );
    let (mut child, _) = stop_in_the_middle(&db, &runner);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(runner.files().len(), 1, "{:?}", runner.files());
    assert!(runner.artefacts().is_empty());
    runner.run().assert_good();
    let files: Vec<String> = runner.files();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn a_privilege_that_is_missing() {
    let db = server(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user few@'%' identified by 'few-password'; grant select, event on emptydb.* to few@'%'; create table emptydb.x (id int); create table shop.extra (id int); grant event, show view on shop.* to few@'%'");
    let runner = Runner::new(&db)
        .set("USERNAME", "few")
        .set("PASSWORD", "few-password")
        .set("DATABASES", "emptydb,shop");
    runner
        .run()
        .assert_failed(3, "MissingPrivilege", &["few", "grant"]);
    runner.assert_nothing_left();
}

#[test]
fn a_table_that_is_altered_meanwhile() {
    let db = server(
        "create database d; create table d.a (id int primary key) engine=innodb; create table d.z (id int primary key) engine=innodb; insert into d.a values (1); insert into d.z values (1)",
    );
    for (runner, words) in [
        (Runner::new(&db), ["d.z was changed", "its columns"]),
        (
            Runner::new(&db).by_client(),
            ["altered during the dump", "1412"],
        ),
    ] {
        altered_meanwhile(&db, &runner, &words);
    }
}

fn altered_meanwhile(db: &MariaDb, runner: &Runner, words: &[&str]) {
    let held = db.hold("lock tables d.a write");
    let started = Instant::now();
    let child = runner.start();
    let waits = "select count(*) from information_schema.processlist p where user='full' and state like 'Waiting for table%' and command='Query' and (info like 'SELECT%' or info like 'show create table%')";
    while db.sql(waits).trim() == "0" {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{}",
            db.sql("show full processlist")
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // An instant change would be invisible to the snapshot; a rebuilt table is not.
    db.sql("alter table d.z add column if not exists more int, engine=innodb, algorithm=copy");
    drop(held);
    let done = runner.finish(child, started);
    done.assert_failed(3, "TableAltered", words);
    runner.assert_nothing_left();
}

#[test]
fn a_row_larger_than_the_packet() {
    let db = server(
        "create database d; use d; create table big (id int primary key, body longblob); insert into big values (1, repeat('y', 20000000));",
    );
    let runner = Runner::new(&db).set("MYSQLDUMP_ARGS", "--max-allowed-packet=16M");
    runner.run().assert_good();
    let runner = Runner::new(&db)
        .set("MYSQLDUMP_ARGS", "--max-allowed-packet=16M")
        .by_client();
    runner
        .run()
        .assert_failed(3, "ConnectionLost", &["max-allowed-packet"]);
    runner.assert_nothing_left();
    Runner::new(&db).by_client().run().assert_good();
}

#[test]
fn a_character_set_that_loses_characters_is_warned_about() {
    let runner = Runner::new(fixture())
        .set("MYSQLDUMP_ARGS", "--default-character-set=latin1")
        .set("DATABASES", "shop");
    let done = runner.run();
    done.assert_good();
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("latin1") && w.contains("?")),
        "{:?}",
        done.report.warnings
    );
}

#[test]
fn two_pods_of_one_run_make_one_artefact() {
    let db = server(BIG);
    let twin = |pod: &str| {
        Runner::new(&db).set("BACKUP_POD_UID", pod).spec(
            "shop-28950870",
            Some("2025-01-15T10:30:00Z"),
            serde_json::json!({}),
        )
    };
    let first = twin("pod-1");
    let second = twin("pod-2").set("SQLPATH", first.sql_path().display().to_string());
    let (child, started) = stop_in_the_middle(&db, &first);
    second.run().assert_good();
    let before: Vec<_> = first.artefacts().iter().map(|k| first.read(k)).collect();
    signal(child.id(), "-CONT");
    let done = first.finish(child, started);
    assert_eq!(first.artefacts().len(), 1, "{:?}", first.files());
    let after: Vec<_> = first.artefacts().iter().map(|k| first.read(k)).collect();
    assert!(before == after, "the artefact changed");
    // The late pod finds its temporary removed, or the name taken: either way it says so or adopts.
    assert!(
        done.code == Some(0) || done.report.reason != "Completed",
        "{}",
        done.stdout
    );
    assert_eq!(
        first.files().iter().filter(|f| f.contains(".tmp")).count(),
        0
    );
}
