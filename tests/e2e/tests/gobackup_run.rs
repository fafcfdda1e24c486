//! Runs of Backups on the cluster: what is stored on real servers is read from them, opened by the programs
//! its users have, and loaded again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;

use e2e::backup_kind::{self, SEAL};
use e2e::database::{HOST, ROOT_PASSWORD, database};
use e2e::servers::{POSTGRES_PASSWORD, REDIS_PASSWORD, Servers, filter, host, servers};
use e2e::wait::unix_seconds;
use e2e::{Namespace, cluster, wait_for};
use serde_json::Value;

/// A database of the PostgreSQL with 3,000 rows, and their sum.
fn fill(servers: &Servers, database: &str) -> String {
    servers.sql("postgres", &format!("drop database if exists {database}"));
    servers.sql("postgres", &format!("create database {database}"));
    servers.sql(
        database,
        "create table t(id int primary key, v text); insert into t select g, md5(g::text) || E'\\n\\tä' from generate_series(1,3000) g",
    );
    servers.sql(database, ROWS)
}

const ROWS: &str = "select count(*), md5(string_agg(id || v, ',' order by id)) from t";

/// The sum of what a dump makes in an empty database.
fn loaded(servers: &Servers, dump: &[u8]) -> String {
    let name = format!("restored_{}", &sha256(dump)[..8]);
    servers.sql("postgres", &format!("drop database if exists {name}"));
    servers.sql("postgres", &format!("create database {name}"));
    servers.sql(&name, std::str::from_utf8(dump).expect("a dump is text"));
    servers.sql(&name, ROWS)
}

fn sha256(bytes: &[u8]) -> String {
    String::from_utf8(filter("sha256sum", &[], bytes)).unwrap()[..64].to_owned()
}

/// The newest run of an object in its status.
fn newest(ns: &Namespace, resource: &str, name: &str) -> Value {
    ns.get(&[resource, name]).unwrap()["status"]["runs"][0].clone()
}

/// The artefact of a run on a storage.
fn artefact<'a>(run: &'a Value, storage: &str) -> &'a Value {
    let all = run["artefacts"].as_array().unwrap();
    let mut found = all.iter().filter(|a| a["storage"] == storage);
    let one = found
        .next()
        .unwrap_or_else(|| panic!("none on {storage}: {run}"));
    assert!(found.next().is_none(), "several on {storage}: {run}");
    one
}

/// Status says of the stored bytes what is true of them.
fn assert_told(artefact: &Value, stored: &[u8]) {
    assert_eq!(artefact["size"], stored.len());
    assert_eq!(artefact["sha256"], sha256(stored));
    assert_eq!(artefact["readBack"], true);
}

/// The archive as its user opens it.
fn decrypted(stored: &[u8], password: &str) -> Vec<u8> {
    let password = format!("pass:{password}");
    filter(
        "openssl",
        &["enc", "-d", "-aes-256-cbc", "-pbkdf2", "-pass", &password],
        stored,
    )
}

/// A file of a `.tar.gz`.
fn member(archive: &[u8], path: &str) -> Vec<u8> {
    filter("tar", &["-xzO", path], archive)
}

/// Three databases, two storages, which keep archives below a path, and a Backup of all.
fn three_databases(ns: &Namespace, path: &str) {
    backup_kind::credentials(ns);
    nightly(ns, path);
}

fn nightly(ns: &Namespace, path: &str) {
    let parts = [
        backup_kind::postgresql("app"),
        backup_kind::redis(),
        backup_kind::shop("mariadb"),
        backup_kind::bucket(path),
        backup_kind::dav(path),
    ];
    ns.apply(&format!(
        "{parts}---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: nightly}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{type: postgresql, name: maindb}}, {{type: redis, name: cache}}, {{type: mariadb, name: shop}}]
  storageRefs: [{{type: s3, name: bucket, keep: 2, timeout: 60}}, {{type: webdav, name: dav, keep: 2, timeout: 60}}]
  compressWith: {{type: gzip}}
  encodeWith: {{type: openssl, passwordSecretKeyRef: {{name: creds, key: seal}}}}
  job: {{backoffLimit: 0}}
",
        parts = parts.concat(),
    ));
}

#[test]
fn three_databases_reach_two_storages_are_kept_twice_and_come_back_equal() {
    let servers = servers();
    let shop = "select id, txt, hex(b), total, ts from shop.t order by id";
    let rows = fill(servers, "app");
    let db = database();
    servers.redis("set hello 'wörld'");
    let hello = servers.redis("get hello");
    let ns = cluster().restricted_namespace("e2e-gobackup-run");
    // The servers of a cluster that was kept up hold archives of earlier Backups, which are not this one's to prune.
    let path = format!("site/{}", unix_seconds());
    three_databases(&ns, &path);

    let mut keys = vec![];
    for _ in 0..4 {
        ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
            .ok();
        let run = newest(&ns, "backups.gobackup.io", "nightly");
        assert_eq!(run["result"], "Succeeded", "{run}");
        assert!(run["warnings"].is_null(), "{run}");
        keys.push([
            artefact(&run, "bucket")["key"].as_str().unwrap().to_owned(),
            artefact(&run, "dav")["key"].as_str().unwrap().to_owned(),
        ]);
    }
    let [_, _, third, fourth] = &keys[..] else {
        panic!("{keys:?}")
    };
    assert_eq!(
        servers.objects(&path),
        [third[0].clone(), fourth[0].clone()],
        "keep: 2"
    );
    assert_eq!(
        servers.dav_files(&path),
        [third[1].clone(), fourth[1].clone()],
        "keep: 2"
    );

    let run = newest(&ns, "backups.gobackup.io", "nightly");
    let stored = servers.object(&fourth[0]);
    assert!(fourth[0].ends_with(".tar.gz.enc"), "{}", fourth[0]);
    assert_told(artefact(&run, "bucket"), &stored);
    assert_told(artefact(&run, "dav"), &servers.dav_file(&fourth[1]));
    assert_eq!(
        artefact(&run, "dav")["sha256"],
        artefact(&run, "bucket")["sha256"]
    );

    let archive = decrypted(&stored, SEAL);
    filter("gzip", &["-t"], &archive);
    let listed = filter("tar", &["-tz"], &archive);
    assert_eq!(
        String::from_utf8(listed)
            .unwrap()
            .lines()
            .filter(|l| !l.ends_with('/'))
            .collect::<Vec<_>>(),
        [
            "nightly/postgresql/maindb/app.sql",
            "nightly/redis/cache/dump.rdb",
            "nightly/mariadb/shop/shop.sql",
        ]
    );
    assert_eq!(
        loaded(
            servers,
            &member(&archive, "nightly/postgresql/maindb/app.sql")
        ),
        rows
    );
    let copy = servers.redis_of(
        &member(&archive, "nightly/redis/cache/dump.rdb"),
        "get hello",
    );
    assert_eq!(copy, hello);
    let dump = member(&archive, "nightly/mariadb/shop/shop.sql");
    db.sql(&format!(
        "drop database if exists gobackup_copy; create database gobackup_copy; use gobackup_copy;\n{}",
        std::str::from_utf8(&dump).unwrap()
    ));
    assert_eq!(
        db.sql(&shop.replace("shop.", "gobackup_copy.")),
        db.sql(shop)
    );
    db.sql("drop database gobackup_copy");

    let all = ns
        .kubectl(&["get", "all,events,backups", "-o", "yaml"])
        .ok();
    for secret in ["S3cr3t-marker", SEAL, POSTGRES_PASSWORD] {
        assert!(!all.stdout.contains(secret), "a secret is to be seen");
    }
}

/// What the operator did for a Restore that the plugin asked for.
fn restored(ns: &Namespace, name: &str) -> Value {
    ns.get(&["restores.batch.isekiro.com", name]).unwrap()["status"].clone()
}

#[test]
fn an_archive_comes_back_by_download_and_by_restore() {
    let servers = servers();
    let shop = "select id, txt, hex(b), total, ts from shop.t order by id";
    let rows = fill(servers, "back");
    let db = database();
    // A database of this test's own.
    servers.redis("-n 5 set back 'as it was'");
    let ns = cluster().restricted_namespace("e2e-gobackup-back");
    let path = format!("site/back-{}", unix_seconds());
    three_databases(&ns, &path);
    ns.kubectl(&[
        "patch",
        "databases.gobackup.io",
        "maindb",
        "--type=merge",
        "-p",
        r#"{"spec":{"config":{"database":"back"}}}"#,
    ])
    .ok();
    ns.secret(
        "to-pg",
        &[("username", "postgres"), ("password", POSTGRES_PASSWORD)],
    );
    ns.secret(
        "to-my",
        &[("username", "root"), ("password", ROOT_PASSWORD)],
    );
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(&ns, "backups.gobackup.io", "nightly");
    let name = run["name"].as_str().unwrap();
    let stored = servers.object(artefact(&run, "bucket")["key"].as_str().unwrap());
    ns.backup(&["verify", name]).ok();

    let home = std::env::temp_dir().join(format!("e2e-archive-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let tar = home.join("tar");
    let file = tar.to_str().unwrap();
    ns.backup(&["download", name, "-O", file]).ok();
    let plain = filter("gzip", &["-dc"], &decrypted(&stored, SEAL));
    assert_eq!(std::fs::read(&tar).unwrap(), plain);
    let raw = home.join("raw");
    let file = raw.to_str().unwrap();
    ns.backup(&["download", name, "--raw", "--storage", "dav", "-O", file])
        .ok();
    assert_eq!(std::fs::read(&raw).unwrap(), stored);
    std::fs::remove_dir_all(&home).unwrap();

    let to = |what: &[&str], host: &str, secret: &str, more: &[&str]| {
        let words = [
            "restore",
            "backup/nightly",
            "--to",
            host,
            "--secret",
            secret,
        ];
        ns.backup(&[&words[..], &["--wait", "--timeout", "3m"], what, more].concat())
    };
    let maindb = ["--from-database", "maindb"];
    let pg = host("postgresql");
    servers.sql("postgres", "drop database if exists back_copy");
    let copy = [
        "--database",
        "back_copy",
        "--storage",
        "dav",
        "--name",
        "pg",
    ];
    to(&maindb, &pg, "to-pg", &copy).ok();
    assert_eq!(servers.sql("back_copy", ROWS), rows);
    assert_eq!(restored(&ns, "pg")["rows"], 3000);
    assert_told(&restored(&ns, "pg")["artefact"], &stored);
    // In place: only with consent, and then all of it is as it was.
    servers.sql(
        "back",
        "delete from t where id > 5; create table later(x int)",
    );
    let refused = to(&maindb, &pg, "to-pg", &[]).code(4);
    assert!(
        refused.stderr.contains("TargetNotEmpty"),
        "{}",
        refused.stderr
    );
    to(&maindb, &pg, "to-pg", &["--overwrite", "--yes"]).ok();
    assert_eq!(servers.sql("back", ROWS), rows);
    assert_eq!(
        servers.sql("back", "select to_regclass('later')").trim(),
        ""
    );

    let cart = ["--from-database", "shop"];
    let refused = to(&cart, HOST, "to-my", &[]).code(4);
    assert!(
        refused.stderr.contains("TargetIsSource"),
        "{}",
        refused.stderr
    );
    db.sql("drop database if exists archive_copy");
    to(&cart, HOST, "to-my", &["--database", "archive_copy"]).ok();
    let copied = db.sql(&shop.replace("shop.", "archive_copy."));
    assert_eq!(copied, db.sql(shop));
    db.sql("drop database archive_copy");
    servers.sql("postgres", "drop database back_copy");

    ns.secret(
        "to-redis",
        &[("username", "default"), ("password", REDIS_PASSWORD)],
    );
    servers.redis("-n 5 set back changed");
    servers.redis("-n 5 set later x");
    let (cache, redis) = (["--from-database", "cache"], host("redis"));
    let refused = to(&cache, &redis, "to-redis", &[]).code(4);
    assert!(
        refused.stderr.contains("TargetNotEmpty"),
        "{}",
        refused.stderr
    );
    to(&cache, &redis, "to-redis", &["--overwrite", "--yes"]).ok();
    let back = servers.redis("-n 5 mget back later");
    assert_eq!(back.trim(), "as it was\nx");

    let dir = ns.volume("data");
    let words = ["restore", "backup/nightly", "--to-volume", "data/redis"];
    let onto = |more: &[&str]| {
        let wait = ["--wait", "--timeout", "3m"];
        ns.backup(&[&words[..], &cache, &wait, more].concat())
    };
    onto(&[]).ok();
    let inner = "nightly/redis/cache/dump.rdb";
    let file = dir.join("redis/dump.rdb");
    let archive = decrypted(&stored, SEAL);
    assert_eq!(std::fs::read(&file).unwrap(), member(&archive, inner));
    std::fs::write(&file, "old").unwrap();
    let refused = onto(&[]).code(4);
    assert!(
        refused.stderr.contains("TargetNotEmpty"),
        "{}",
        refused.stderr
    );
    onto(&["--overwrite", "--yes"]).ok();
    assert_eq!(std::fs::read(&file).unwrap(), member(&archive, inner));

    for (words, reason) in [
        (&["--from-database", "cache"][..], "ConnectionFailed"),
        (&[], "name one with spec.from.database"),
    ] {
        let refused = to(words, HOST, "to-my", &[]).code(4);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }

    // Deleted and made anew: what was stored is listed as that, and comes back by its key.
    ns.kubectl(&["delete", "backups.gobackup.io", "nightly"])
        .ok();
    nightly(&ns, &path);
    let listed = ns.backup(&["runs", "backup/nightly", "--stored"]).ok();
    let former = listed.stdout.lines().filter(|l| l.contains(" Former "));
    assert_eq!(former.count(), 2, "{}", listed.stdout);
    let key = artefact(&run, "bucket")["key"].as_str().unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let words = ["download", "backup/nightly", "--key", key, "--raw", "-O"];
    ns.backup(&[&words[..], &[raw.to_str().unwrap()]].concat())
        .ok();
    assert_eq!(std::fs::read(&raw).unwrap(), stored);
    std::fs::remove_dir_all(&home).unwrap();
    onto(&["--key", key, "--overwrite", "--yes"]).ok();
    assert_eq!(std::fs::read(&file).unwrap(), member(&archive, inner));
}

/// Waits until the condition Reachable of an object has this status; gives it.
fn reachable(ns: &Namespace, resource: &str, name: &str, status: &str) -> Value {
    wait_for(&format!("Reachable of {name} is {status}"), 60, || {
        let object = ns.get(&[resource, name])?;
        let conditions = object["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|c| c["type"] == "Reachable")?;
        (found["status"] == status).then(|| found.clone())
    })
}

/// Runs and a Probe say of each Database and Storage whether it was reached, and the operator reads no Secret for it.
#[test]
fn runs_and_probes_tell_what_is_reachable() {
    fill(servers(), "reach");
    database();
    let ns = cluster().restricted_namespace("e2e-gobackup-reach");
    three_databases(&ns, "site/reach");
    let own = r#"{"spec":{"config":{"database":"reach"}}}"#;
    ns.kubectl(&[
        "patch",
        "databases.gobackup.io",
        "maindb",
        "--type=merge",
        "-p",
        own,
    ])
    .ok();
    let set = |key: &str, value: &str| {
        let patch = serde_json::json!({"stringData": {key: value}}).to_string();
        ns.kubectl(&["patch", "secret", "creds", "--type=merge", "-p", &patch])
            .ok();
    };
    set("redis", "wrong");
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .code(4);
    let cache = reachable(&ns, "databases.gobackup.io", "cache", "False");
    assert_eq!(cache["reason"], "AccessDenied");
    let message = cache["message"].as_str().unwrap();
    assert!(message.contains("check the"), "{message}");
    for name in ["bucket", "dav"] {
        reachable(&ns, "storages.gobackup.io", name, "True");
    }
    let shop = ns.get(&["databases.gobackup.io", "shop"]).unwrap();
    assert!(shop["status"].is_null(), "the run did not come to it");

    set("redis", REDIS_PASSWORD);
    set("dav", "wrong");
    let request = serde_json::json!({ "action": "Probe", "id": "by-hand" });
    ns.ask("backups.gobackup.io", "nightly", request);
    let dav = reachable(&ns, "storages.gobackup.io", "dav", "False");
    assert_eq!(dav["reason"], "PermissionDenied");
    reachable(&ns, "storages.gobackup.io", "bucket", "True");
    for name in ["maindb", "cache", "shop"] {
        let found = reachable(&ns, "databases.gobackup.io", name, "True");
        assert_eq!(found["reason"], "Reached");
    }
    let table = ns.kubectl(&["get", "databases,storages"]).ok().stdout;
    assert!(
        table.contains("REACHABLE") && !table.contains("S3cr3t"),
        "{table}"
    );
}

/// A `.tar.gz` without encryption is one, under that name.
#[test]
fn type_gzip_gives_a_real_tar_gz() {
    let servers = servers();
    let rows = fill(servers, "plain");
    let ns = cluster().restricted_namespace("e2e-gobackup-gzip");
    three_databases(&ns, "site/plain");
    for (resource, name, patch) in [
        (
            "databases.gobackup.io",
            "maindb",
            r#"{"spec":{"config":{"database":"plain"}}}"#,
        ),
        (
            "backups.gobackup.io",
            "nightly",
            r#"{"spec":{"encodeWith":null}}"#,
        ),
    ] {
        ns.kubectl(&["patch", resource, name, "--type=merge", "-p", patch])
            .ok();
    }
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(&ns, "backups.gobackup.io", "nightly");
    for storage in ["bucket", "dav"] {
        let told = artefact(&run, storage);
        let key = told["key"].as_str().unwrap();
        assert!(
            Path::new(key).starts_with("site/plain") && key.ends_with(".tar.gz"),
            "{key}"
        );
        let stored = if storage == "dav" {
            servers.dav_file(key)
        } else {
            servers.object(key)
        };
        assert_told(told, &stored);
        let dump = member(&stored, "nightly/postgresql/maindb/plain.sql");
        assert_eq!(loaded(servers, &dump), rows);
    }
}

/// The manifest of the public article: all at the document's root, the typed kinds in groups of their own. The servers'
/// addresses alone are ours.
#[test]
fn the_manifest_of_the_article_runs_to_a_restored_dump() {
    let servers = servers();
    let rows = fill(servers, "my_database");
    let ns = cluster().restricted_namespace("e2e-gobackup-g1");
    let manifest = include_str!("../../../crds/tests/data/gobackup/g1.yaml");
    let mut ours = manifest.to_owned();
    for (theirs, address) in [
        ("postgres-service.default", host("postgresql")),
        (
            "endpoint: \"\"",
            format!("endpoint: 'http://{}:5000'", host("s3")),
        ),
        ("forcePathStyle: false", "forcePathStyle: true".to_owned()),
    ] {
        assert_eq!(manifest.matches(theirs).count(), 1, "{theirs}");
        ours = ours.replace(theirs, &address);
    }
    ns.apply(&ours);

    for (resource, name, trigger) in [
        ("backups.gobackup.io", "example-backup", "Immediate"),
        ("cronbackups.gobackup.io", "example-cronbackup", "Schedule"),
    ] {
        let run = wait_for(&format!("{name} ran"), 150, || {
            let object = ns.get(&[resource, name])?;
            let runs = object["status"]["runs"].as_array()?;
            runs.iter()
                .find(|run| !run["completionTime"].is_null())
                .cloned()
        });
        assert_eq!(run["result"], "Succeeded", "{run}");
        assert_eq!(run["trigger"], trigger, "{run}");
        let told = artefact(&run, "example-s3");
        let key = told["key"].as_str().unwrap();
        assert!(key.ends_with(".tar.gz.enc"), "{key}");
        let stored = servers.object(key);
        assert_told(told, &stored);
        let archive = decrypted(&stored, "mysecretpassword");
        let dump = member(
            &archive,
            &format!("{name}/postgresql/example-postgresql/my_database.sql"),
        );
        assert_eq!(loaded(servers, &dump), rows, "{name}");
    }
    for (resource, name) in [
        ("postgresqls.database.gobackup.io", "example-postgresql"),
        ("s3s.storage.gobackup.io", "example-s3"),
    ] {
        reachable(&ns, resource, name, "True");
    }
}

/// The API server merges what is written into what an older operator left there.
#[test]
fn g5_a_good_run_leaves_nothing_of_an_old_status() {
    servers();
    let ns = cluster().restricted_namespace("e2e-gobackup-old-status");
    backup_kind::credentials(&ns);
    let path = format!("old-status/{}", unix_seconds());
    ns.apply(&format!(
        "{}{}---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: nightly}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{name: cache}}]
  storageRefs: [{{name: bucket}}]
",
        backup_kind::redis(),
        backup_kind::bucket(&path),
    ));
    let run = serde_json::json!({"jobName": "nightly-1", "phase": "Failed", "message": "exit 1", "logs": "dial tcp: refused"});
    let old = serde_json::json!({"status": {
        "phase": "Failed", "failureCount": 12, "successCount": 900, "lastRun": run, "recentRuns": [run],
    }});
    ns.kubectl(&[
        "patch",
        "backups.gobackup.io",
        "nightly",
        "--subresource=status",
        "--type=merge",
        "--field-manager=manager",
        "-p",
        &old.to_string(),
    ])
    .ok();
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .ok();
    let status = ns.get(&["backups.gobackup.io", "nightly"]).unwrap()["status"].clone();
    assert_eq!(status["phase"], "Succeeded", "{status}");
    assert_eq!(status["failureCount"], 0, "{status}");
    assert!(status["successCount"].as_i64().unwrap() < 900, "{status}");
    assert_eq!(status["lastRun"]["message"], Value::Null, "{status}");
    assert!(!status.to_string().contains("dial tcp"), "{status}");
}
