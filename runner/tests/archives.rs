//! Archives of a gobackup.io Backup on their way back: downloads, and restores into real servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use common::backup::{Backup, archives, sh};
use common::fixture;
use common::servers::{POSTGRES_PASSWORD, postgres, psql, try_psql};
use serde_json::{Value, json};

const RUN: &str = "nightly-28950870";
const ROWS: &str = "select count(*), md5(string_agg(id || v, ',' order by id)) from t";

fn sealed(mut backup: Backup) -> Backup {
    backup.plan["encrypt"] = json!({
        "type": "openssl", "password": backup.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
    backup
}

/// `target` of a restore into the PostgreSQL of the tests.
fn pg(backup: &Backup) -> Value {
    json!({
        "host": "127.0.0.1", "port": postgres(),
        "usernameFile": backup.secret("to-user", "postgres"), "passwordFile": backup.secret("to", POSTGRES_PASSWORD),
    })
}

/// The same into its MariaDB.
fn mariadb(backup: &Backup) -> Value {
    json!({
        "host": "127.0.0.1", "port": fixture().port,
        "usernameFile": backup.secret("to-user", "full"), "passwordFile": backup.secret("to", "S3cr3t-marker"),
    })
}

fn databases(name: &str) -> String {
    psql(
        postgres(),
        "postgres",
        &format!("select count(*) from pg_database where datname = '{name}'"),
    )
}

#[test]
fn an_archive_is_sent_as_stored_and_as_its_tar_from_any_byte_on() {
    for codec in ["gzip", "zstd", "lzma", "tar"] {
        let mut backup = sealed(Backup::new().with_disk(0));
        backup.plan["compress"] = json!({"codec": codec});
        backup.run(RUN).assert_good();
        let file = archives(&backup.disk()).remove(0);
        let stored = std::fs::read(&file).unwrap();
        let (code, header, rest, said) = backup.download(&["--run", RUN, "--raw"]);
        assert_eq!(code, 0, "{said}");
        assert!(file.ends_with(header["name"].as_str().unwrap()), "{header}");
        assert!(rest.starts_with(&stored), "{codec}");

        let open = "openssl enc -d -aes-256-cbc -pbkdf2 -pass 'pass:open sesame' -in $1 | (PROGRAM) > $1.tar; sha256sum < $1.tar";
        let program = match codec {
            "gzip" => "gzip -dc",
            "zstd" => "zstd -dc",
            "lzma" => "xz -dc --format=lzma",
            _ => "cat",
        };
        let sum = sh(&open.replace("(PROGRAM)", program), &file);
        let tar = std::fs::read(format!("{}.tar", file.display())).unwrap();
        std::fs::remove_file(format!("{}.tar", file.display())).unwrap();
        let (code, header, rest, said) = backup.download(&[]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(header["length"], tar.len(), "{codec}");
        assert!(sum.starts_with(header["sha256"].as_str().unwrap()));
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let stem = name.split(".tar").next().unwrap();
        assert_eq!(header["name"], format!("{stem}.tar"));
        assert!(rest.starts_with(&tar), "{codec}");
        let trailer: Value = serde_json::from_slice(&rest[tar.len()..]).unwrap();
        assert_eq!(trailer["sha256"], header["sha256"]);

        let expected = format!("{}:{}", tar.len(), header["sha256"].as_str().unwrap());
        let (code, _, rest, said) = backup.download(&["--offset", "700", "--expect", &expected]);
        assert_eq!(code, 0, "{said}");
        assert!(rest.starts_with(&tar[700..]), "{codec}");
        let (code, _, rest, said) = backup.download(&["--expect", &format!("{}:00", tar.len())]);
        assert_eq!(code, 5, "{said}");
        assert!(said.contains("ReadBackDiffers") && rest.ends_with(&tar[tar.len() - 9..]));
    }
}

#[test]
fn of_a_damaged_archive_nothing_is_sent_and_another_storage_serves() {
    let mut backup = sealed(Backup::new().with_dav("site/sent", 0).with_disk(0));
    backup.run(RUN).assert_good();
    let file = archives(&backup.disk()).remove(0);
    let dav = common::servers::webdav().1.join("site/sent");
    let other = dav.join(file.file_name().unwrap());
    let mut bytes = std::fs::read(&other).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&other, bytes).unwrap();
    let (code, header, rest, said) = backup.download(&[]);
    assert_eq!((code, header), (5, Value::Null), "{said}");
    assert!(
        rest.is_empty() && said.contains("ReadBackDiffers") && said.contains("another storage"),
        "{said}"
    );
    // A storage that is away does not keep the others from serving.
    backup.secret("dav", "wrong");
    let (code, header, _, said) = backup.download(&["--run", RUN]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(header["key"], file.file_name().unwrap().to_str().unwrap());
    let (code, _, _, said) = backup.download(&["--run", "nightly-1"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("ArtefactNotFound") && said.contains("Storage dav"),
        "{said}"
    );
}

#[test]
fn an_archive_to_recipients_needs_their_identity() {
    let mut backup = Backup::new().with_disk(0);
    let identity = age::x25519::Identity::generate();
    backup.plan["encrypt"] =
        json!({"type": "age", "recipients": [identity.to_public().to_string()]});
    backup.run(RUN).assert_good();
    let (code, _, _, said) = backup.download(&[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--decrypt-secret"), "{said}");
    use age::secrecy::ExposeSecret as _;
    backup.identity = Some(backup.secret("identity", identity.to_string().expose_secret()));
    let (code, header, rest, said) = backup.download(&[]);
    assert_eq!(code, 0, "{said}");
    let length = usize::try_from(header["length"].as_u64().unwrap()).unwrap();
    let path = backup.dir().join("tar");
    std::fs::write(&path, &rest[..length]).unwrap();
    assert!(sh("tar tf $1", &path).contains("nightly/redis/cache/dump.rdb"));
}

#[test]
fn a_postgresql_dump_is_restored_whole_or_not_at_all() {
    let mut backup = sealed(Backup::new().with_postgres().with_disk(0));
    backup.run(RUN).assert_good();
    let target = pg(&backup);
    let to = |more: Value| {
        let mut options = json!({"database": "pg_copy"});
        let fields = options.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        options
    };

    let done = backup.restore(target.clone(), to(json!({"dryRun": true})));
    done.assert_good();
    assert_eq!(done.report.reason, "WouldRestore");
    assert!(
        done.report
            .message
            .contains("1 tables with 3000 rows of postgresql/maindb of ")
            && done.report.message.contains("into pg_copy at 127.0.0.1:"),
        "{}",
        done.report.message
    );
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.starts_with("redis/cache is not restored")),
        "{:?}",
        done.report.warnings
    );
    assert_eq!(databases("pg_copy"), "0", "a dry run makes nothing");

    let done = backup.restore(target.clone(), to(json!({"dump": "maindb", "run": RUN})));
    done.assert_good();
    assert_eq!(done.report.reason, "Restored");
    assert_eq!(done.report.rows, Some(3000));
    assert_eq!(
        psql(postgres(), "pg_copy", ROWS),
        psql(postgres(), "app", ROWS)
    );

    psql(
        postgres(),
        "pg_copy",
        "create schema s create table u(x int); create view w as select 1; create function f() returns int language sql as 'select 1'; create type e as enum ('a'); delete from t",
    );
    let done = backup.restore(target.clone(), to(json!({})));
    done.assert_failed(
        2,
        "TargetNotEmpty",
        &["in database pg_copy already", "set overwrite"],
    );
    let done = backup.restore(
        target.clone(),
        to(json!({"overwrite": true, "dryRun": true})),
    );
    done.assert_good();
    assert!(
        done.report.message.contains("in place of all it holds"),
        "{}",
        done.report.message
    );
    assert_eq!(psql(postgres(), "pg_copy", "select count(*) from t"), "0");
    backup
        .restore(target.clone(), to(json!({"overwrite": true})))
        .assert_good();
    assert_eq!(
        psql(postgres(), "pg_copy", ROWS),
        psql(postgres(), "app", ROWS)
    );
    for gone in [
        "to_regclass('s.u')",
        "to_regclass('w')",
        "to_regproc('f')",
        "to_regtype('e')",
    ] {
        assert_eq!(
            psql(postgres(), "pg_copy", &format!("select {gone}")),
            "",
            "{gone}"
        );
    }

    // What is stored is other than what was: nothing is touched.
    psql(postgres(), "pg_copy", "delete from t where id > 7");
    let file = archives(&backup.disk()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    backup
        .restore(target, to(json!({"overwrite": true})))
        .assert_failed(
            5,
            "ReadBackDiffers",
            &["another archive or another storage"],
        );
    assert_eq!(psql(postgres(), "pg_copy", "select count(*) from t"), "7");
}

#[test]
fn a_postgresql_dump_that_does_not_load_changes_nothing() {
    for sql in [
        "create role owner_of_d",
        "create database d",
        "create database d_copy",
    ] {
        psql(postgres(), "postgres", sql);
    }
    psql(
        postgres(),
        "d",
        "create table a(x int); create table b(x int); alter table b owner to owner_of_d",
    );
    psql(postgres(), "d_copy", "create table mine(x int)");
    let mut backup = Backup::new().with_postgres().with_disk(0);
    backup.plan["databases"][1]["database"] = json!("d");
    backup.plan["databases"][1]["args"] = json!([]);
    backup.run(RUN).assert_good();
    psql(postgres(), "postgres", "drop database d");
    psql(postgres(), "postgres", "drop role owner_of_d");
    let target = pg(&backup);
    let options = json!({"database": "d_copy", "overwrite": true});
    let done = backup.restore(target.clone(), options);
    done.assert_failed(
        3,
        "RoleMissing",
        &[
            "postgresql/maindb: ",
            "owner_of_d",
            "make the role on the target first",
            "nothing was changed",
        ],
    );
    assert_eq!(psql(postgres(), "d_copy", "select count(*) from mine"), "0");
    assert!(try_psql(postgres(), "d_copy", "select * from a").is_err());

    let wrong = json!({"host": "127.0.0.1", "port": postgres(), "usernameFile": backup.secret("to-user", "postgres"), "passwordFile": backup.secret("to", "S3cr3t-marker")});
    backup.restore(wrong, json!({})).assert_failed(
        3,
        "AccessDenied",
        &["check user name and password"],
    );
}

#[test]
fn a_mariadb_dump_is_restored_under_another_name_and_in_place_with_consent() {
    let mut backup = Backup::new().with_postgres().with_mariadb().with_disk(0);
    backup.run(RUN).assert_good();
    let target = mariadb(&backup);
    let done = backup.restore(target.clone(), json!({}));
    done.assert_failed(
        2,
        "InvalidSettings",
        &["postgresql/maindb, mariadb/shop, which no one server takes"],
    );
    // What answers there is no Redis.
    let done = backup.restore(target.clone(), json!({"dump": "cache"}));
    done.assert_failed(3, "ClientDoesNotFit", &["spec.to.host and port"]);
    let done = backup.restore(target.clone(), json!({"dump": "nobody"}));
    done.assert_failed(
        2,
        "NotInArchive",
        &["it holds redis/cache, postgresql/maindb, mariadb/shop"],
    );
    let done = backup.restore(target.clone(), json!({"dump": "shop"}));
    done.assert_failed(2, "TargetIsSource", &["set overwrite"]);

    let options = json!({"dump": "shop", "database": "restored `1`"});
    let mut dry = options.clone();
    dry["dryRun"] = json!(true);
    let done = backup.restore(target.clone(), dry);
    done.assert_good();
    assert_eq!(done.report.reason, "WouldRestore");
    let made =
        "select count(*) from information_schema.schemata where schema_name like 'restored%'";
    assert_eq!(fixture().sql(made), "0\n");

    let done = backup.restore(target.clone(), options.clone());
    done.assert_good();
    assert_eq!(done.report.reason, "Restored");
    assert!(
        done.report.message.contains(" of mariadb/shop of ")
            && done
                .report
                .message
                .contains(" into restored `1` at 127.0.0.1:"),
        "{}",
        done.report.message
    );
    let list = |schema: &str| {
        let schema = format!(
            "select table_name from information_schema.tables where table_type = 'BASE TABLE' and table_schema = '{schema}' order by 1"
        );
        fixture().sql(&schema)
    };
    assert_ne!(list("shop"), "");
    assert_eq!(list("shop"), list("restored `1`"));
    for table in list("shop").lines() {
        let sum = |schema: &str| {
            let text = fixture().sql(&format!(
                "checksum table `{schema}`.`{}`",
                table.replace('`', "``")
            ));
            text.trim().rsplit('\t').next().unwrap().to_owned()
        };
        assert_eq!(sum("shop"), sum("restored ``1``"), "{table}");
    }
    let done = backup.restore(target.clone(), options.clone());
    done.assert_failed(2, "TargetNotEmpty", &["tables are there already"]);
    let mut again = options;
    again["overwrite"] = json!(true);
    backup.restore(target, again).assert_good();
}
