//! Verification by restore of archives, with the real servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use common::Finished;
use common::backup::{Backup, archives};
use common::servers::{etcdctl, postgres, psql, redis_cli, start_etcd, start_redis};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const RUN: &str = "nightly-28950870";

/// A Backup on a disk, of the servers of the tests, as a plain tar.
fn backup() -> Backup {
    let mut backup = Backup::new().with_postgres().with_mariadb().with_disk(0);
    backup.plan["compress"] = json!({"codec": "tar"});
    backup
}

/// Where scratch servers live in these tests: one that refuses root runs as another user.
fn room(backup: &mut Backup) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let room = common::servers::directory("checked");
    std::fs::set_permissions(&room, std::fs::Permissions::from_mode(0o711)).unwrap();
    let text = room.display().to_string();
    backup.runner.env.insert("TMPDIR".into(), text);
    room
}

fn verify(backup: &mut Backup) -> Finished {
    let room = room(backup);
    let done = backup.act("v-1", "Verify", json!({"mode": "Restore"}));
    let left: Vec<_> = std::fs::read_dir(room).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    done
}

/// What was compared: passed or not, and the sentence.
fn compared(done: &Finished) -> (bool, String) {
    let outcome = done.report.verification.clone().unwrap();
    assert_eq!(outcome.mode, "Restore");
    (outcome.passed, outcome.message)
}

fn record(disk: &Path) -> PathBuf {
    let state = disk.join(".gobackup-state");
    let owner = std::fs::read_dir(state).unwrap().next().unwrap().unwrap();
    let mut inside = std::fs::read_dir(owner.path()).unwrap();
    inside.next().unwrap().unwrap().path()
}

/// Packs the one archive anew with other files, and writes its record so that all sums are right.
fn repack(
    backup: &Backup,
    change: impl Fn(&str, Vec<u8>) -> Vec<u8>,
    record_too: impl Fn(&mut Value),
) {
    let file = archives(&backup.disk()).remove(0);
    let at = record(&backup.disk());
    let mut known: Value = serde_json::from_slice(&std::fs::read(&at).unwrap()).unwrap();
    let sum = |bytes: &[u8]| {
        Sha256::digest(bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    let old = std::fs::read(&file).unwrap();
    let mut archive = tar::Archive::new(&old[..]);
    let mut packed = tar::Builder::new(vec![]);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut header = entry.header().clone();
        let path = entry.path().unwrap().display().to_string();
        let mut bytes = vec![];
        entry.read_to_end(&mut bytes).unwrap();
        if header.entry_type().is_file() {
            bytes = change(&path, bytes);
            let files = known["files"].as_array_mut().unwrap();
            let mine = files
                .iter_mut()
                .find(|f| f["path"] == path.as_str())
                .unwrap();
            mine["bytes"] = json!(bytes.len());
            mine["sha256"] = json!(sum(&bytes));
        }
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        packed.append_data(&mut header, path, &bytes[..]).unwrap();
    }
    let new = packed.into_inner().unwrap();
    known["storedBytes"] = json!(new.len());
    known["storedSha256"] = json!(sum(&new));
    record_too(&mut known);
    std::fs::write(&file, new).unwrap();
    std::fs::write(&at, known.to_string()).unwrap();
}

fn replaced(from: &str, to: &str, bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn every_dump_of_an_archive_is_restored_and_compared() {
    let mut backup = backup();
    let etcd = start_etcd(&backup.dir().join("etcd"));
    for n in 0..20 {
        etcdctl(etcd, &["put", &format!("k{n}"), "v"]).unwrap();
    }
    backup.add(
        "databases",
        json!({"name": "kv", "engine": "etcd", "host": format!("127.0.0.1:{etcd}")}),
    );
    let other = start_redis(&common::servers::directory("checked-redis"), None);
    redis_cli(other, None, &["-n", "3", "set", "a", "b"]);
    redis_cli(other, None, &["set", "c", "d"]);
    // Owners, grantees, a quoted name, a view, a function, a sequence, a large object, rows that look like statements.
    for sql in [
        "create role \"Owner \"\"of\"\" it\"",
        "create role checked_reader",
        "create database checked",
    ] {
        psql(postgres(), "postgres", sql);
    }
    psql(
        postgres(),
        "checked",
        "create schema s; create table s.\"T one\"(id serial primary key, v text, b bytea); alter table s.\"T one\" owner to \"Owner \"\"of\"\" it\"; \
         insert into s.\"T one\"(v, b) values (E'COPY x FROM stdin;\\n\\\\.\\n', '\\x00ff'), (null, ''), ('-- Name: x; Type: TABLE; Schema: y; Owner: z', null); \
         create view s.v as select count(*) from s.\"T one\"; grant select on s.v to checked_reader; \
         create function s.f() returns int language sql as 'select 1'; create table empty(x int); select lo_create(4711); select lo_put(4711, 0, '\\x616263')",
    );
    let mut database = backup.plan["databases"][1].clone();
    (database["name"], database["database"]) = (json!("checked"), json!("checked"));
    (database["args"], database["excludeTables"]) = (json!([]), json!([]));
    backup.add("databases", database);
    // It is dumped first, before the key's end.
    let more = json!({"name": "more", "engine": "redis", "host": "127.0.0.1", "port": other});
    backup.plan["databases"]
        .as_array_mut()
        .unwrap()
        .insert(0, more);
    redis_cli(other, None, &["set", "short", "lived", "px", "12000"]);
    backup.run(RUN).assert_good();
    psql(postgres(), "postgres", "drop database checked");

    let known: Value =
        serde_json::from_slice(&std::fs::read(record(&backup.disk())).unwrap()).unwrap();
    let holds = |path: &str| {
        let files = known["files"].as_array().unwrap();
        files.iter().find(|f| f["path"] == path).unwrap()["holds"].clone()
    };
    assert_eq!(
        holds("nightly/postgresql/maindb/app.sql")["tables"][0]["rows"],
        3000
    );
    assert!(
        holds("nightly/mariadb/shop/shop.sql")["tables"]
            .as_array()
            .unwrap()
            .len()
            > 1
    );
    assert_eq!(holds("nightly/redis/cache/dump.rdb"), Value::Null);

    common::servers::wait_for("the key's end", || {
        redis_cli(other, None, &["exists", "short"]) == "0"
    });
    let done = verify(&mut backup);
    done.assert_good();
    let (passed, said) = compared(&done);
    assert!(passed);
    for part in [
        "all equal: ",
        "redis/cache: 1 keys",
        "postgresql/maindb: 1 tables, 3000 rows",
        "redis/more: 2 keys, and 1 that have expired",
        "etcd/kv-127.0.0.1:",
        // Two tables and the large object.
        "postgresql/checked: 3 tables, 4 rows",
        "mariadb/shop: ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_was_lost_since_the_dump_is_named() {
    for (file, from, to, named) in [
        (
            "app.sql",
            "\n7\t",
            "\n7000\t",
            "table public.t has 3000 rows but other values",
        ),
        (
            "app.sql",
            "1\tc4ca4238a0b923820dcc509a6f75849b\n",
            "",
            "table public.t has 2999 rows instead of 3000",
        ),
        (
            "shop.sql",
            ",\n(2,NULL,NULL,NULL)",
            "",
            "table t has 1 rows instead of 2",
        ),
    ] {
        let mut backup = backup();
        backup.run(RUN).assert_good();
        let change = |path: &str, bytes| {
            if path.ends_with(file) {
                replaced(from, to, bytes)
            } else {
                bytes
            }
        };
        repack(&backup, change, |_| {});
        let done = verify(&mut backup);
        done.assert_failed(5, "RestoreDiffers", &[named, "a restore of "]);
        let (passed, said) = compared(&done);
        assert!(!passed && said.contains(named), "{said}");
    }
}

#[test]
fn a_dump_that_does_not_load_is_named_though_all_sums_are_right() {
    let cut = |bytes: Vec<u8>, to: usize| bytes[..to].to_vec();
    type Change<'a> = &'a dyn Fn(Vec<u8>) -> Vec<u8>;
    let cases: [(&str, Change<'_>, &str, &str); 5] = [
        (
            "app.sql",
            &|b| replaced("CREATE TABLE", "CREATE TABEL", b),
            "postgresql/maindb of ",
            "syntax error",
        ),
        // Twice the same row: the primary key does not take it.
        (
            "app.sql",
            &|b| replaced("\n2\t", "\n1\t", b),
            "postgresql/maindb of ",
            "could not create unique index",
        ),
        (
            "app.sql",
            &|b| cut(b, 5000),
            "postgresql/maindb of ",
            "in the middle of",
        ),
        (
            "shop.sql",
            &|b| replaced("CREATE TABLE", "CREATE TABEL", b),
            "mariadb/shop of ",
            "error in your SQL syntax",
        ),
        (
            "dump.rdb",
            &|b| cut(b, 60),
            "redis/cache of ",
            "Unexpected EOF",
        ),
    ];
    for (file, change, named, why) in cases {
        let mut backup = backup();
        backup.run(RUN).assert_good();
        let changed = |path: &str, bytes| {
            if path.ends_with(file) {
                change(bytes)
            } else {
                bytes
            }
        };
        // An older record: it does not say what its dumps hold.
        repack(&backup, changed, |known| {
            for file in known["files"].as_array_mut().unwrap() {
                file.as_object_mut().unwrap().remove("holds");
            }
        });
        backup
            .act("v-0", "Verify", json!({"mode": "Checksum"}))
            .assert_good();
        let done = verify(&mut backup);
        done.assert_failed(5, "NotRestorable", &[named, why]);
        assert!(!compared(&done).0);
    }
}

#[test]
fn a_cut_snapshot_of_etcd_is_seen() {
    let mut backup = backup();
    let etcd = start_etcd(&backup.dir().join("etcd"));
    etcdctl(etcd, &["put", "a", "b"]).unwrap();
    backup.plan["databases"] =
        json!([{"name": "kv", "engine": "etcd", "host": format!("127.0.0.1:{etcd}")}]);
    backup.run(RUN).assert_good();
    repack(
        &backup,
        |_, bytes| bytes[..bytes.len() - 512].to_vec(),
        |_| {},
    );
    verify(&mut backup).assert_failed(5, "NotRestorable", &["etcd/kv-"]);
}

#[test]
fn other_ways_to_dump_are_restored_too() {
    for args in [
        json!(["--no-owner", "-Fc"]),
        json!(["--column-inserts"]),
        json!(["--rows-per-insert=100", "--no-owner"]),
        json!(["--schema-only"]),
        json!(["--clean", "--if-exists"]),
    ] {
        let mut backup = Backup::new().with_postgres().with_disk(0);
        backup.plan["databases"][1]["args"] = args.clone();
        backup.plan["compress"] = json!({"codec": "zstd"});
        let identity = age::x25519::Identity::generate();
        backup.plan["encrypt"] =
            json!({"type": "age", "recipients": [identity.to_public().to_string()]});
        backup.run(RUN).assert_good();
        let done = verify(&mut backup);
        done.assert_failed(2, "NotVerifiable", &["spec.job.decryption"]);
        assert_eq!(done.report.verification, None);
        use age::secrecy::ExposeSecret as _;
        backup.identity = Some(backup.secret("identity", identity.to_string().expose_secret()));
        let done = verify(&mut backup);
        done.assert_good();
        let rows = if args == json!(["--schema-only"]) {
            "0 tables, 0 rows"
        } else {
            "1 tables, 3000 rows"
        };
        assert!(
            compared(&done).1.contains(rows),
            "{args}: {:?}",
            done.report
        );
    }
    let mut backup = Backup::new().with_mariadb().with_disk(0).by_gobackup();
    backup.run(RUN).assert_good();
    backup.gobackup = false;
    verify(&mut backup).assert_good();
}

/// What can't be restored here proves nothing, and says what would.
#[test]
fn a_backup_without_room_for_its_servers_is_told_its_own_field() {
    let mut backup = backup();
    backup.run(RUN).assert_good();
    let none = backup.dir().join("none").display().to_string();
    backup.runner.env.insert("TMPDIR".into(), none);
    let done = backup.act("v-1", "Verify", json!({"mode": "Restore"}));
    let remedy = "give spec.job.verify.volume more space";
    done.assert_failed(1, "ScratchFailed", &[remedy]);
}

#[test]
fn what_no_server_is_here_for_is_not_verified_and_says_the_remedy() {
    let mut backup = backup();
    backup.run(RUN).assert_good();
    let bin = backup.dir().join("few");
    std::fs::create_dir(&bin).unwrap();
    for program in ["mariadb", "mariadb-dump"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), bin.join(program)).unwrap();
    }
    let path = backup
        .runner
        .env
        .insert("PATH".into(), bin.display().to_string());
    let done = verify(&mut backup);
    done.assert_failed(
        2,
        "NotVerifiable",
        &[
            "redis/cache: not verified by restore: the runner's image has no redis-server",
            "mariadb/shop: not verified by restore: the runner's image has no mariadbd",
            "spec.job.clientImage",
        ],
    );
    assert_eq!(done.report.verification, None);
    match path {
        Some(path) => backup.runner.env.insert("PATH".into(), path),
        None => backup.runner.env.remove("PATH"),
    };

    // All databases of a server: restored by hand.
    backup.plan["databases"][1]
        .as_object_mut()
        .unwrap()
        .remove("database");
    backup.plan["databases"][1]
        .as_object_mut()
        .unwrap()
        .remove("excludeTables");
    backup.plan["databases"][1]["args"] = json!([]);
    backup.run("nightly-28950871").assert_good();
    let done = verify(&mut backup);
    done.assert_failed(
        2,
        "NotVerifiable",
        &[
            "postgresql/maindb is not verified by restore: a dump of all databases",
            "restored and equal: redis/cache: 1 keys, mariadb/shop",
        ],
    );
    assert_eq!(done.report.verification, None);
}
