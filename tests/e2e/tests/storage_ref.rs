//! MysqlBackups on Storages of gobackup.io: stored, restored, downloaded and pruned there. In a namespace that admits
//! restricted pods alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::backup_kind;
use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, database};
use e2e::servers::servers;
use e2e::wait::unix_seconds;
use e2e::{Namespace, cluster, wait_for};
use serde_json::Value;

const ROWS: &str = "select id, txt, hex(b), total, ts from shop.t order by id";

fn backup(name: &str, storage: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '0 0 29 2 *'
  backoffLimit: 0
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}, databases: [shop]}}
  destination: {{storageRef: {{name: {storage}}}}}
  retention: {{keepLast: 2}}
"
    )
}

fn condition(object: &Value, type_: &str) -> Option<Value> {
    let all = object["status"]["conditions"].as_array()?;
    all.iter().find(|c| c["type"] == type_).cloned()
}

/// Waits until a condition of a MysqlBackup has this status and reason.
fn told(ns: &Namespace, name: &str, type_: &str, status: &str, reason: &str) -> Value {
    wait_for(&format!("{type_} of {name} is {status}"), 60, || {
        let found = condition(&ns.mysql_backup(name)?, type_)?;
        (found["status"] == status && found["reason"] == reason).then_some(found)
    })
}

#[test]
fn a_dump_is_stored_on_a_storage_restored_and_pruned_there() {
    let db = database();
    let servers = servers();
    let ns = cluster().restricted_namespace("e2e-storage-ref");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    backup_kind::credentials(&ns);
    let path = format!("mysql/{}", unix_seconds());
    for (storage, manifest) in [
        ("bucket", backup_kind::bucket(&path)),
        ("dav", backup_kind::dav(&path)),
    ] {
        ns.apply(&backup(storage, storage));
        let missing = told(&ns, storage, "ReferencesResolved", "False", "NotFound");
        let message = missing["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("there is no Storage \"{storage}\" in namespace")),
            "{message}"
        );
        ns.apply(&manifest);
        told(&ns, storage, "ReferencesResolved", "True", "Resolved");

        let mut keys = vec![];
        for _ in 0..3 {
            ns.backup(&["run-now", storage, "--wait", "--timeout", "3m"])
                .ok();
            let run = ns.mysql_backup(storage).unwrap()["status"]["runs"][0].clone();
            assert_eq!(run["result"], "Succeeded", "{run}");
            let artefact = run["artefacts"][0].clone();
            assert_eq!(artefact["readBack"], true, "{run}");
            keys.push(artefact["key"].as_str().unwrap().to_owned());
        }
        let mut expected: Vec<String> = keys[1..]
            .iter()
            .flat_map(|k| [format!("{path}/{k}"), format!("{path}/{k}.json")])
            .collect();
        expected.sort();
        let stored = if storage == "dav" {
            servers.dav_files(&path)
        } else {
            servers.objects(&path)
        };
        assert_eq!(stored, expected, "keepLast: 2");
        let reachable = condition(
            &ns.get(&["storages.gobackup.io", storage]).unwrap(),
            "Reachable",
        );
        assert_eq!(reachable.unwrap()["status"], "True");

        ns.backup(&["verify", storage]).ok();
        let dump = ns.backup(&["download", storage, "-O", "-"]).ok().stdout;
        let last = dump.trim_end().lines().next_back().unwrap_or_default();
        assert!(last.starts_with("-- Dump completed"), "{dump}");

        let copy = format!("stored_{storage}");
        db.sql(&format!("drop database if exists {copy}"));
        ns.apply(&format!(
            "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: {storage}}}
spec:
  from: {{name: {storage}, latest: true}}
  to: {{host: {HOST}, credentialsSecretRef: {{name: root}}, database: {copy}}}
"
        ));
        let status = wait_for("the Restore ends", 240, || {
            let status = ns.get(&["restores.batch.isekiro.com", storage])?["status"].clone();
            let phase = status["phase"].as_str()?;
            ["Succeeded", "Failed"].contains(&phase).then_some(status)
        });
        assert_eq!(status["phase"], "Succeeded", "{status}");
        assert_eq!(
            db.sql(&ROWS.replace("shop.", &format!("{copy}."))),
            db.sql(ROWS)
        );
        db.sql(&format!("drop database {copy}"));
        ns.backup(&["delete", storage, "--delete-data", "--yes"])
            .ok();
        let left = if storage == "dav" {
            servers.dav_files(&path)
        } else {
            servers.objects(&path)
        };
        assert_eq!(left, [""; 0], "--delete-data");
    }
    let all = ns
        .kubectl(&["get", "all,events,restores,storages", "-o", "yaml"])
        .ok();
    assert!(!all.stdout.contains("S3cr3t-marker") && !all.stdout.contains(ROOT_PASSWORD));
}
