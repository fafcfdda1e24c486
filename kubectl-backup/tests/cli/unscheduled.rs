//! Restores, Databases and Storages: listed, described, deleted, cancelled.

use serde_json::{Value, json};

use super::Config;
use super::fake::Fake;

fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    let group = match kind {
        "Restore" => "batch.isekiro.com/v1",
        _ => "gobackup.io/v1",
    };
    json!({
        "apiVersion": group, "kind": kind,
        "metadata": {
            "name": name, "namespace": "prod", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec, "status": status,
    })
}

fn cluster() -> (Fake, Config) {
    let fake = Fake::start();
    fake.uninstall();
    for kind in ["restores", "databases", "storages", "backups"] {
        fake.install(kind);
    }
    fake.put(object(
        "Storage",
        "bucket",
        json!({ "type": "s3", "config": { "bucket": "b", "path": "x", "secret_access_key": "S3cr3t", "access_key_id_ref": { "name": "keys", "key": "id" } } }),
        json!({ "conditions": [{ "type": "Reachable", "status": "True", "reason": "Reached", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] }),
    ));
    fake.put(object(
        "Storage",
        "idle",
        json!({ "type": "local", "config": {}, "volume": { "persistentVolumeClaim": { "claimName": "c" } } }),
        Value::Null,
    ));
    fake.put(object(
        "Database",
        "pg",
        json!({ "type": "postgresql", "config": { "host": "pg", "port": 5432, "database": "app", "password": "S3cr3t" } }),
        Value::Null,
    ));
    fake.put(object(
        "Backup",
        "nightly",
        json!({ "databaseRefs": [{ "name": "pg" }], "storageRefs": [{ "name": "bucket" }] }),
        Value::Null,
    ));
    fake.put(object(
        "Restore",
        "half",
        json!({
            "from": { "name": "shop", "run": "shop-2" },
            "to": { "host": "db2", "port": 3307, "database": "copy", "credentialsSecretRef": { "name": "s" } },
        }),
        json!({ "phase": "Running", "job": "half-job" }),
    ));
    fake.put(object(
        "Restore",
        "done",
        json!({
            "from": { "kind": "Backup", "name": "nightly", "latest": true },
            "to": { "volume": { "persistentVolumeClaim": { "claimName": "out" }, "path": "d" } },
        }),
        json!({ "phase": "Failed", "reason": "Timeout" }),
    ));
    let config = Config::new(&fake);
    (fake, config)
}

/// Lines with single blanks, without the age, which moves.
fn lines(table: &str) -> Vec<String> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len() - 1].join(" ")
    };
    table.lines().map(line).collect()
}

#[test]
fn u12_each_kind_is_listed_with_what_tells_it_apart() {
    let (_fake, config) = cluster();
    let list = |args: &[&str]| lines(&config.run(&[&["list"], args].concat()).ok().out);
    assert_eq!(
        list(&["restores"]),
        [
            "NAME FROM ARTEFACT TO STATUS REASON",
            "restore/done backup/nightly newest pvc/out/d Failed Timeout",
            "restore/half mysqlbackup/shop run/shop-2 db2:3307/copy Running -",
        ]
    );
    assert_eq!(
        list(&["storages"]),
        [
            "NAME TYPE PLACE REACHABLE USED-BY",
            "storage/bucket s3 b/x True backup/nightly",
            "storage/idle local pvc/c - -",
        ]
    );
    assert_eq!(
        list(&["database"]),
        [
            "NAME TYPE HOST DATABASE REACHABLE USED-BY",
            "database/pg postgresql pg:5432 app - backup/nightly",
        ]
    );
    // The forms kubectl knows.
    assert_eq!(list(&["storage", "idle"]), list(&["storage/idle"]));
    assert_eq!(
        list(&["rst", "--running"])[1..],
        list(&["restore/half"])[1..]
    );
    let both = config.run(&["list", "db,storages", "-o", "name"]).ok();
    assert_eq!(
        both.out,
        "database.gobackup.io/pg\nstorage.gobackup.io/bucket\nstorage.gobackup.io/idle\n"
    );
    let one = config.run(&["list", "storage/bucket", "-o", "json"]).ok();
    assert_eq!(one.json()["metadata"]["name"], "bucket");
    assert_eq!(
        config.run(&["list", "storages", "-o", "json"]).ok().json()["kind"],
        "List"
    );
    // A list of what has a schedule holds none of them.
    let scheduled = config.run(&["list", "-o", "name"]).ok().out;
    assert!(!scheduled.contains("storage"), "{scheduled}");
    config.run(&["list", "storages", "--stale"]).fails(
        2,
        "error: --stale says nothing of storages, which have no schedule and no runs",
    );
    config.run(&["list", "storages,backups"]).fails(
        2,
        "error: Restores, Databases and Storages have columns of their own; list them apart from what has a schedule",
    );
    config.run(&["list", "storage/gone"]).fails(
        5,
        "Error from server (NotFound): storages.gobackup.io \"gone\" not found in namespace \"prod\".",
    );
}

#[test]
fn u12_each_kind_is_described_without_its_secrets() {
    let (_fake, config) = cluster();
    let text = config.run(&["describe", "storage/bucket"]).ok().out;
    for part in [
        "Type:          s3",
        "  bucket: b\n",
        "  access_key_id_ref: <secret keys, key id>\n",
        "  secret_access_key: ***\n",
        "Used by:       backup/nightly",
        "Reachable",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("S3cr3t"), "{text}");
    let text = config.run(&["describe", "db/pg"]).ok().out;
    assert!(
        text.contains("  host: pg\n") && text.contains("not tried yet"),
        "{text}"
    );
    assert!(!text.contains("S3cr3t"), "{text}");
    let text = config.run(&["export", "storage/idle"]).ok().out;
    assert!(
        text.contains("claimName: c") && !text.contains("status"),
        "{text}"
    );
}

#[test]
fn u12_what_backups_use_is_deleted_only_with_consent() {
    let (fake, config) = cluster();
    for (target, users) in [
        ("storage/bucket", "backup/nightly"),
        ("database/pg", "backup/nightly"),
    ] {
        let ran = config.run(&["delete", target]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.err
                .contains(&format!("and {users} can't run without it")),
            "{ran:?}"
        );
        let (_, name) = target.split_once('/').unwrap();
        assert!(fake.get("prod", name).is_some());
    }
    let ran = config.run(&["delete", "storage/bucket", "--yes"]).ok();
    assert_eq!(ran.out, "storage.gobackup.io/bucket deleted\n");
    // Nobody uses it: nothing is asked.
    config.run(&["delete", "storage/idle", "rst/done"]).ok();
    for name in ["bucket", "idle", "done"] {
        assert!(fake.get("prod", name).is_none(), "{name}");
    }
    config
        .run(&["delete", "restore/half", "--delete-data", "--yes"])
        .fails(
            2,
            "error: --delete-data goes with a backup: restore.batch.isekiro.com/half has stored nothing itself",
        );
}

#[test]
fn u12_a_restore_is_cancelled() {
    let (fake, config) = cluster();
    fake.operate(|object| {
        let notes = object["metadata"]["annotations"].as_object()?;
        let (_, value) = notes.iter().next()?;
        let request = crds::request::Request::parse(value.as_str()?).ok()?;
        assert_eq!(request.action, crds::request::Action::Cancel);
        let mut after = object.clone();
        after["status"] = json!({ "phase": "Failed", "reason": "Cancelled", "message": format!("cancelled ({})", request.reason) });
        Some(after)
    });
    let ran = config
        .run(&["cancel", "restore/half", "--reason", "wrong one", "--wait"])
        .ok();
    assert_eq!(ran.out, "restore.batch.isekiro.com/half cancel requested\n");
    assert!(
        ran.err.contains("half: cancelled (wrong one)"),
        "{}",
        ran.err
    );
    config.run(&["cancel", "restore/done"]).fails(
        1,
        "error: restore.batch.isekiro.com/done has ended already: Failed",
    );
}
