//! Verification by restore of a Backup's archives on the cluster, in a restricted pod of the runner's own image.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;

use e2e::database::database;
use e2e::servers::{filter, servers};
use e2e::{Namespace, backup_kind, cluster, files, wait_for};
use serde_json::{Value, json};

const RESOURCE: &str = "backups.gobackup.io";

/// Three databases on a claim, packed by tar alone.
fn backup(ns: &Namespace) {
    backup_kind::credentials(ns);
    let databases = [
        backup_kind::postgresql("verified"),
        backup_kind::redis(),
        backup_kind::shop("mariadb"),
    ];
    ns.apply(&format!(
        "{}---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: disk}}
spec: {{type: local, volume: {{persistentVolumeClaim: {{claimName: data}}}}, config: {{path: daily}}}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: checked}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{name: maindb}}, {{name: cache}}, {{name: shop}}]
  storageRefs: [{{name: disk}}]
  job:
    backoffLimit: 0
    verify: {{mode: Restore, volume: {{emptyDir: {{}}}}, resources: {{limits: {{memory: 1Gi}}}}}}
",
        databases.concat()
    ));
}

fn verified(ns: &Namespace, status: &str) -> Value {
    wait_for(&format!("Verified is {status}"), 240, || {
        let object = ns.get(&[RESOURCE, "checked"])?;
        let conditions = object["status"]["conditions"].as_array()?.clone();
        let found = conditions.iter().find(|c| c["type"] == "Verified")?;
        (found["status"] == status).then(|| object.clone())
    })
}

fn sha256(bytes: &[u8]) -> String {
    String::from_utf8(filter("sha256sum", &[], bytes)).unwrap()[..64].to_owned()
}

/// Writes another value into a row of the stored dump of PostgreSQL; the record vouches for the new bytes.
fn change_a_row(volume: &Path) {
    let all = files(volume);
    let path = |end: &str| volume.join(all.iter().find(|f| f.ends_with(end)).unwrap());
    let (archive, record) = (path(".tar"), path(".tar.json"));
    let mut bytes = std::fs::read(&archive).unwrap();
    let (row, other) = (b"\n7\tseven\n", b"\n7\tSEVEN\n");
    let at = bytes.windows(row.len()).position(|w| w == row).unwrap();
    bytes[at..at + row.len()].copy_from_slice(other);
    std::fs::write(&archive, &bytes).unwrap();
    let member = "checked/postgresql/maindb/verified.sql";
    let dump = filter("tar", &["-xO", member], &bytes);
    let mut known: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    known["storedSha256"] = json!(sha256(&bytes));
    let records = known["files"].as_array_mut().unwrap();
    let mine = records.iter_mut().find(|f| f["path"] == member).unwrap();
    mine["sha256"] = json!(sha256(&dump));
    std::fs::write(&record, known.to_string()).unwrap();
}

#[test]
fn an_archive_is_verified_by_restore_and_a_changed_row_is_named() {
    let servers = servers();
    database();
    for sql in [
        "drop database if exists verified",
        "create database verified",
        "drop role if exists verifier",
        "create role verifier",
    ] {
        servers.sql("postgres", sql);
    }
    servers.sql(
        "verified",
        "create table t(id int primary key, v text); insert into t select g, case g when 7 then 'seven' else md5(g::text) end from generate_series(1,500) g; alter table t owner to verifier",
    );
    servers.redis("set hello 'wörld'");
    let ns = cluster().restricted_namespace("e2e-archive-verify");
    let volume = ns.volume("data");
    backup(&ns);
    ns.backup(&["run-now", "backup/checked", "--wait", "--timeout", "3m"])
        .ok();
    let object = verified(&ns, "True");
    let run = &object["status"]["runs"][0];
    let said = run["verification"]["message"].as_str().unwrap();
    for part in [
        "all equal",
        "postgresql/maindb: 1 tables, 500 rows",
        "redis/cache: ",
        "mariadb/shop: ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(run["verification"]["mode"], "Restore");
    assert!(object["status"]["lastVerifiedTime"].is_string());
    let totals = object["status"]["totals"].clone();

    change_a_row(&volume);
    // The bytes are those of the record: reading them again sees nothing.
    ns.backup(&["verify", "backup/checked", "--timeout", "3m"])
        .ok();
    let failed = ns.backup(&["verify", "backup/checked", "--restore", "--timeout", "4m"]);
    assert_eq!(failed.code, 4, "{}{}", failed.stdout, failed.stderr);
    assert!(
        failed
            .stderr
            .contains("table public.t has 500 rows but other values"),
        "{}",
        failed.stderr
    );
    let object = verified(&ns, "False");
    assert_eq!(
        object["status"]["runs"][0]["result"], "Succeeded",
        "the run's own result stays"
    );
    assert_eq!(object["status"]["totals"], totals);
    servers.sql("postgres", "drop database verified");
    servers.sql("postgres", "drop role verifier");
}
