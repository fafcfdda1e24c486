//! MySQL 9 and MariaDB 11 as servers: logins, TLS, sockets, positions, and the client that fits.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::path::Path;
use std::sync::OnceLock;

use common::databases::{Certificates, mariadb_11, mariadb_11_directory, mysql, mysql_directory};
use common::{Finished, MariaDb, Runner};
use serde_json::{Value, json};

const USERS: &str =
    "create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%';";

fn certificates() -> &'static Certificates {
    static MADE: OnceLock<Certificates> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = Certificates::make();
        common::remove_with_this_process(made.dir.path());
        made
    })
}

fn options(certificate: &str) -> [String; 3] {
    certificates().options(certificate)
}

fn strings(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// MySQL 9 with a certificate for 127.0.0.1.
fn mysql_9() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let db = mysql(&strings(&options("server")));
        db.sql(USERS);
        db.sql("create database shop; use shop; create table t (id int primary key, f float); insert into t values (1, 16777217), (2, 0.5);");
        db.end_with_process();
        db
    })
}

/// MariaDB 11 with a certificate for 127.0.0.1.
fn mariadb() -> &'static MariaDb {
    static DB: OnceLock<MariaDb> = OnceLock::new();
    DB.get_or_init(|| {
        let own = [options("server").as_slice(), &["--log-bin=b".to_owned()]].concat();
        let db = mariadb_11(&strings(&own));
        db.sql(USERS);
        db.sql(include_str!("fixtures/db_fixture.sql"));
        db.end_with_process();
        db
    })
}

/// A run with `source` merged into the typed source.
fn typed(db: &MariaDb, programs: &Path, source: Value) -> Runner {
    let runner = Runner::new(db).programs_of(programs);
    let password = runner.out.path().join("password");
    std::fs::write(&password, "S3cr3t-marker").unwrap();
    let mut all = json!({"host": "127.0.0.1", "port": db.port, "passwordFile": password});
    for (key, value) in source.as_object().unwrap() {
        all[key] = value.clone();
    }
    runner.spec("shop-28950870", None, json!({"source": all}))
}

fn tls(mode: &str, ca: Option<&str>) -> Value {
    match ca {
        Some(ca) => json!({"tlsMode": mode, "caFile": certificates().path(ca)}),
        None => json!({"tlsMode": mode}),
    }
}

fn manifest(runner: &Runner) -> Value {
    runner.manifest(&runner.artefacts()[0])
}

#[track_caller]
fn warned(done: &Finished, words: &str) {
    let all = done.report.warnings.join("\n");
    assert!(all.contains(words), "{words:?} is not in {all}");
}

#[test]
fn mysql_is_dumped_by_its_own_client_with_position_and_gtids() {
    let db = mysql(&["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    db.sql(USERS);
    db.sql("create database shop; use shop; create table t (id int primary key, twice int generated always as (id*2) stored); insert into t (id) values (1), (2);");
    let runner = Runner::new(&db).programs_of(mysql_directory()).by_client();
    let done = runner.run();
    done.assert_good();
    let manifest = manifest(&runner);
    let client = manifest["client"].as_str().unwrap();
    assert!(
        client.starts_with("mysqldump") || client.contains("/mysqldump"),
        "{client}"
    );
    assert!(!client.contains("MariaDB"), "{client}");
    let status = db.sql("show binary log status");
    let fields: Vec<&str> = status.trim_end_matches('\n').split('\t').collect();
    let position = manifest["position"].as_str().unwrap();
    let expected = format!(
        "SOURCE_LOG_FILE='{}', SOURCE_LOG_POS={}",
        fields[0], fields[1]
    );
    assert!(position.contains(&expected), "{position} has no {expected}");
    assert!(
        position.contains(&format!("GTID_PURGED='+{}'", fields[4])),
        "{position} has no {}",
        fields[4]
    );
}

#[test]
fn what_mariadbs_client_would_make_of_mysqls_generated_columns_is_refused() {
    let db = mysql(&[]);
    db.sql(USERS);
    db.sql("create database shop; use shop; create table t (id int primary key, twice int generated always as (id*2) stored); insert into t (id) values (1), (2); create table u (id int primary key); insert into u values (1);");
    let runner = Runner::new(&db).by_client();
    // The reason: MySQL does not load it.
    let dump = std::process::Command::new("mariadb-dump")
        .args([
            "--no-defaults",
            "--protocol=socket",
            "-uroot",
            "--databases",
            "shop",
            "-S",
        ])
        .arg(db.dir.path().join("s"))
        .output()
        .unwrap();
    assert!(dump.status.success());
    let refused = db
        .try_sql(&String::from_utf8(dump.stdout).unwrap())
        .unwrap_err();
    assert!(refused.contains("3105"), "{refused}");
    runner
        .run()
        .assert_failed(3, "ClientDoesNotFit", &["shop.t", "mysqldump"]);
    runner.assert_nothing_left();
    let done = runner.set("EXCLUDE_TABLES", "shop.t").run();
    done.assert_good();
    warned(
        &done,
        "binlog position is not recorded: MariaDB's client can't ask",
    );
}

#[test]
fn a_float_that_may_restore_rounded_is_said() {
    for (db, programs) in [
        (mysql_9(), mysql_directory()),
        (mariadb(), mariadb_11_directory()),
    ] {
        if programs == mariadb_11_directory() {
            db.sql("create database if not exists fl; create table if not exists fl.t (id int primary key, f float); replace into fl.t values (1, 16777217)");
        }
        let done = Runner::new(db).programs_of(programs).by_client().run();
        done.assert_good();
        warned(&done, "FLOAT with 6 significant digits");
        warned(&done, ".t.f");
    }
}

#[test]
fn mariadb_11_is_dumped_by_both_generations_of_clients() {
    let db = mariadb();
    for programs in [mariadb_11_directory(), Path::new("/")] {
        let runner = Runner::new(db).programs_of(programs);
        let done = runner.run();
        done.assert_good();
        let manifest = manifest(&runner);
        assert!(
            manifest["position"]
                .as_str()
                .unwrap()
                .contains("MASTER_LOG_POS="),
            "{manifest}"
        );
        assert_eq!(
            (
                manifest["routines"].clone(),
                manifest["events"].clone(),
                manifest["triggers"].clone()
            ),
            (1.into(), 1.into(), 1.into())
        );
    }
}

#[test]
fn caching_sha2_password_with_and_without_tls_for_each_client() {
    let db = mysql_9();
    for (n, programs) in [mysql_directory(), Path::new("/"), mariadb_11_directory()]
        .into_iter()
        .enumerate()
    {
        for mode in ["Disabled", "Preferred", "Required"] {
            // A user that never logged in: the server knows no quick answer yet.
            let user = format!("u{n}{}", mode.to_lowercase());
            db.sql(&format!("create user {user}@'%' identified with caching_sha2_password by 'S3cr3t-marker'; grant all on *.* to {user}@'%'"));
            let done = typed(db, programs, tls(mode, None))
                .set("USERNAME", user)
                .run();
            assert_eq!(done.code, Some(0), "{programs:?} {mode}: {}", done.stdout);
        }
    }
}

#[test]
fn a_ca_is_checked_by_each_client() {
    let foreign = mysql(&strings(&options("elsewhere")));
    foreign.sql(USERS);
    foreign.sql("create database d");
    for (db, programs) in [
        (mysql_9(), mysql_directory()),
        (mariadb(), mariadb_11_directory()),
        (mariadb(), Path::new("/")),
    ] {
        for mode in ["VerifyCA", "VerifyIdentity"] {
            let done = typed(db, programs, tls(mode, Some("ca.pem"))).run();
            assert_eq!(done.code, Some(0), "{programs:?} {mode}: {}", done.stdout);
            typed(db, programs, tls(mode, Some("other-ca.pem")))
                .run()
                .assert_failed(
                    3,
                    "TlsFailed",
                    &["caSecretKeyRef", "lower spec.source.tls.mode"],
                );
        }
    }
    // The name is another host's.
    typed(&foreign, mysql_directory(), tls("VerifyCA", Some("ca.pem")))
        .run()
        .assert_good();
    typed(
        &foreign,
        mysql_directory(),
        tls("VerifyIdentity", Some("ca.pem")),
    )
    .run()
    .assert_failed(3, "TlsFailed", &["names the host"]);
}

#[test]
fn certificates_that_name_the_host_in_their_subject_alone_are_believed() {
    // As the manuals of MySQL and MariaDB make them, and as others do.
    for (certificate, version) in [
        ("plain", "Version: 1 (0x0)"),
        ("subject", "Version: 3 (0x2)"),
    ] {
        by_its_subject(certificate, version);
    }
}

fn by_its_subject(certificate: &str, version: &str) {
    let db = mysql(&strings(&options(certificate)));
    db.sql(USERS);
    db.sql("create database d");
    let text = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(certificates().path(&format!("{certificate}.pem")))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(version) && !text.contains("Subject Alternative Name"),
        "{text}"
    );
    let source = |mode: &str, ca: &str, host: &str| {
        let mut source = tls(mode, Some(ca));
        source["host"] = json!(host);
        typed(&db, mysql_directory(), source)
    };
    for mode in ["VerifyCA", "VerifyIdentity"] {
        source(mode, "ca.pem", "localhost").run().assert_good();
        source(mode, "other-ca.pem", "localhost")
            .run()
            .assert_failed(3, "TlsFailed", &["caSecretKeyRef"]);
    }
    source("VerifyIdentity", "ca.pem", "127.0.0.1")
        .run()
        .assert_failed(3, "TlsFailed", &["caSecretKeyRef"]);
}

#[test]
fn a_server_without_tls_is_taken_as_the_mode_says() {
    let db = mysql(&["--tls-version="]);
    db.sql(USERS);
    db.sql("create database d");
    for programs in [mysql_directory(), Path::new("/")] {
        typed(&db, programs, tls("Preferred", None))
            .run()
            .assert_good();
        typed(&db, programs, tls("Required", None))
            .run()
            .assert_failed(3, "TlsFailed", &["tls.mode"]);
    }
}

#[test]
fn sockets() {
    for (db, programs) in [
        (mysql_9(), mysql_directory()),
        (mariadb(), mariadb_11_directory()),
    ] {
        let socket = db.dir.path().join("s");
        let source = json!({"host": null, "port": null, "socket": socket});
        db.try_sql("create user full@localhost identified by 'S3cr3t-marker'; grant all on *.* to full@localhost").unwrap();
        typed(db, programs, source)
            .unset("HOST")
            .unset("PORT")
            .run()
            .assert_good();
    }
    let gone = json!({"host": null, "port": null, "socket": "/nonexistent/s"});
    typed(mysql_9(), mysql_directory(), gone)
        .unset("HOST")
        .unset("PORT")
        .run()
        .assert_failed(3, "ConnectionRefused", &["socket /nonexistent/s"]);
}
