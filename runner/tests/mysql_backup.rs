//! A good run against a real MariaDB, and what a restore of it gives.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use std::process::Command;

use common::{MariaDb, Runner, fixture};

/// Everything a user would compare, as text.
fn content(db: &MariaDb) -> String {
    [
        "select id, txt, hex(b), total, ts from shop.t order by id",
        "checksum table shop.t, shop.big, badview.a, badview.z",
        "select table_schema, table_name, table_type from information_schema.tables where table_schema in ('shop','badview','emptydb') order by 1,2",
        "select routine_schema, routine_name, routine_definition from information_schema.routines where routine_schema='shop'",
        "select event_schema, event_name, event_definition from information_schema.events where event_schema='shop'",
        "select trigger_schema, trigger_name, action_statement from information_schema.triggers where trigger_schema='shop'",
        "select schema_name, default_character_set_name from information_schema.schemata where schema_name='emptydb'",
        "select * from shop.v order by id",
    ]
    .map(|sql| db.sql(sql))
    .join("--\n")
}

#[test]
fn a_backup_restores_to_an_equal_database() {
    let db = fixture();
    let runner = Runner::new(db)
        .set("TZ", "Asia/Shanghai")
        .set("TIMEOUT", "9");
    let done = runner.run();
    done.assert_good();
    let artefacts = runner.artefacts();
    assert_eq!(artefacts.len(), 1, "{artefacts:?}");
    let key = &artefacts[0];
    assert!(
        key.starts_with(&format!("127.0.0.1-{}/", db.port)) && key.ends_with(".sql.zst"),
        "{key}"
    );
    assert_eq!(done.report.artefacts[0].key, *key);
    assert!(done.report.artefacts[0].read_back);
    let tested = Command::new("zstd")
        .arg("-tq")
        .arg(runner.sql_path().join(key))
        .status()
        .unwrap();
    assert!(tested.success());
    let sum = Command::new("sha256sum")
        .arg(runner.sql_path().join(key))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&done.report.artefacts[0].sha256));

    let dump = runner.dump(key);
    assert_eq!(done.report.raw_bytes, i64::try_from(dump.len()).ok());
    assert!(
        dump.windows(4).any(|w| w == [0xF0, 0x9F, 0x98, 0x80]),
        "the emoji is gone"
    );
    let manifest = runner.manifest(key);
    let rows = |table: &str| {
        manifest["tables"]
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["name"] == table)
            .unwrap()["rows"]
            .clone()
    };
    assert_eq!(
        (rows("t"), rows("big"), rows("a"), rows("z")),
        (2.into(), 0.into(), 1.into(), 1.into())
    );
    assert_eq!(manifest["routines"], 1);
    assert_eq!(manifest["events"], 1);
    assert_eq!(manifest["triggers"], 1);

    let other = MariaDb::start();
    other.load(&dump);
    assert_eq!(content(&other), content(db));
}

#[test]
fn a_typed_run_has_its_key_by_object_and_slot_and_a_retry_is_no_second_artefact() {
    let runner = Runner::new(fixture()).spec(
        "shop-28950870",
        Some("2025-01-15T10:30:00Z"),
        serde_json::json!({}),
    );
    let first = runner.run();
    first.assert_good();
    let key = "ns1/MysqlBackup/shop/20250115T103000Z-28950870.sql.zst";
    assert_eq!(runner.files(), [key.to_owned(), format!("{key}.json")]);
    let before = runner.read(key);
    let second = runner.run();
    second.assert_good();
    assert_eq!(runner.read(key), before);
    assert_eq!(runner.files().len(), 2);
    assert_eq!(second.report.artefacts, first.report.artefacts);
}

#[test]
fn the_typed_source_wins_over_the_environment_with_a_warning() {
    let db = fixture();
    let runner = Runner::new(db)
        .set("PASSWORD", "wrong")
        .set("HOST", "nowhere.invalid");
    let file = runner.out.path().join("password");
    std::fs::write(&file, "S3cr3t-marker\n").unwrap();
    let runner = runner.spec(
        "shop-m12345678",
        None,
        serde_json::json!({
            "source": {"host": "127.0.0.1", "passwordFile": file, "databases": ["shop", "emptydb"], "excludeTables": ["shop.big"]},
        }),
    );
    let done = runner.run();
    done.assert_good();
    let warnings = done.report.warnings.join("\n");
    for words in [
        "HOST is set in backupEnvs",
        "PASSWORD is set in backupEnvs",
        "ends in a newline",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
    let manifest = runner.manifest(&runner.artefacts()[0]);
    assert_eq!(
        manifest["databases"],
        serde_json::json!(["shop", "emptydb"])
    );
    assert_eq!(manifest["tables"].as_array().unwrap().len(), 1);
}

#[test]
fn every_password_of_the_field_logs_in() {
    let db = fixture();
    let passwords = [
        "pa$word",
        "p@ss w0rd!",
        "semi;colon&amp",
        "quote'single",
        "double\"quote",
        "per(cent)",
        "`id`",
        "-dash",
        "=eq=",
        "üñí😀",
        "pct%25",
        "back\\slash\\n",
        "#hash",
        " lead and trail ",
        "\\",
        "'\"'",
        "tab\there",
    ];
    for (i, password) in passwords.iter().enumerate() {
        let quoted = password.replace('\\', "\\\\").replace('\'', "\\'");
        db.sql(&format!("create user pw{i}@'%' identified by '{quoted}'; grant select on emptydb.* to pw{i}@'%'; grant event on emptydb.* to pw{i}@'%';"));
        let runner = Runner::new(db)
            .set("USERNAME", format!("pw{i}"))
            .set("PASSWORD", *password);
        let done = runner.run();
        assert_eq!(done.code, Some(0), "{password:?}: {}", done.stdout);
    }
}

#[test]
fn a_poor_user_gets_a_backup_with_warnings() {
    let runner = Runner::new(fixture())
        .set("USERNAME", "bk")
        .set("PASSWORD", "plain");
    let done = runner.run();
    done.assert_good();
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("lacks EVENT on shop")),
        "{:?}",
        done.report.warnings
    );
}

#[test]
fn hosts_are_taken_in_every_form() {
    for host in ["127.0.0.1", "localhost"] {
        Runner::new(fixture()).set("HOST", host).run().assert_good();
    }
}

#[test]
fn the_password_is_in_no_argument_and_no_environment() {
    let db = MariaDb::start();
    db.sql(include_str!("fixtures/db_fixture.sql"));
    db.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%';");
    let held = db.hold("lock tables shop.t write");
    let runner = Runner::new(&db).set("TIMEOUT", "30s").by_client();
    let started = std::time::Instant::now();
    let child = runner.start();
    let mut seen = false;
    while !seen && started.elapsed().as_secs() < 20 {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(argv) = std::fs::read(entry.path().join("cmdline")) else {
                continue;
            };
            let argv = String::from_utf8_lossy(&argv).into_owned();
            if argv.contains("mariadb-dump") && argv.contains("--single-transaction") {
                let parent =
                    std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
                if !parent.contains(&format!("PPid:\t{}\n", child.id())) {
                    continue;
                }
                let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
                assert!(!argv.contains("S3cr3t-marker"));
                assert_eq!(environ, b"", "the client's environment is not empty");
                seen = true;
            }
        }
    }
    assert!(seen, "the client was never seen");
    drop(held);
    runner.finish(child, started).assert_good();
    let left = std::fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .any(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            entry.file_name().to_string_lossy().starts_with("client-")
                && text.contains(&format!("port=\"{}\"", db.port))
        });
    assert!(!left, "an option file was left behind");
}
