//! Every manifest of every generation of gobackup-operator: accepted by the API under strict
//! validation, stored without a lost field, and its status can be written.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;

use e2e::cluster;
use e2e::objects::contains;
use serde_json::{Value, json};

/// In an order in which each file's references exist.
const FILES: &[&str] = &[
    "g3",
    "g0",
    "g1",
    "g2",
    "g3a",
    "g4",
    "g4_databases",
    "g4_storages",
];

/// What the original's controller wrote, and what the engine writes.
fn backup_status() -> Value {
    let run = json!({
        "jobName": "nightly-29000000", "startTime": "2026-05-01T02:15:00Z",
        "completionTime": "2026-05-01T02:15:09Z", "phase": "Failed", "message": "m", "logs": "l",
    });
    json!({"status": {
        "lastBackupTime": "2026-05-01T02:15:09Z",
        "lastSuccessfulBackupTime": "2026-05-01T02:15:09Z",
        "phase": "Failed", "lastRun": run, "recentRuns": [run, run, run, run, run],
        "failureCount": 1, "successCount": 7, "observedGeneration": 3,
        "conditions": [{"type": "ReferencesResolved", "status": "False", "reason": "NotFound",
            "message": "m", "lastTransitionTime": "2026-05-01T02:15:09Z"}],
        "schedule": {"text": "15 2 * * *", "timeZone": "UTC"},
        "totals": {"due": 8, "succeeded": 7, "failed": 1, "skipped": 0, "missed": 0, "manual": 0},
        "runs": [{"name": "nightly-29000000", "trigger": "Schedule", "result": "Failed"}],
    }})
}

fn endpoint_status() -> Value {
    json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Reachable", "status": "True",
        "reason": "RunSucceeded", "message": "", "lastTransitionTime": "2026-05-01T02:15:09Z"}]}})
}

#[test]
fn every_generation_applies_unchanged() {
    let ns = cluster().namespace("e2e-gobackup-kinds");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds/tests/data/gobackup");
    let mut seen = 0;
    for file in FILES {
        let path = data.join(format!("{file}.yaml"));
        let path = path.to_str().unwrap();
        ns.kubectl(&["apply", "--validate=strict", "-f", path]).ok();
        let written = ns
            .kubectl(&["create", "--dry-run=client", "-o", "json", "-f", path])
            .ok();
        let documents = serde_json::Deserializer::from_str(&written.stdout).into_iter::<Value>();
        for document in documents.map(Result::unwrap) {
            let (kind, name) = (
                document["kind"].as_str().unwrap(),
                document["metadata"]["name"].as_str().unwrap(),
            );
            if kind == "Secret" {
                continue;
            }
            let group = document["apiVersion"]
                .as_str()
                .unwrap()
                .split('/')
                .next()
                .unwrap();
            let resource = format!("{}.{group}", kind.to_lowercase());
            let stored = ns.get(&[&resource, name]).expect("it was applied");
            let mut expected = document.clone();
            expected["metadata"] = json!({"name": name});
            contains(&stored, &expected, name).unwrap();

            let scheduled = matches!(kind, "Backup" | "CronBackup");
            let status = if scheduled {
                backup_status()
            } else {
                endpoint_status()
            };
            // The answer to the write: afterwards the operator says its own word.
            let patched = ns.kubectl(&[
                "patch",
                &resource,
                name,
                "--subresource=status",
                "--type=merge",
                "-p",
                &status.to_string(),
                "-o",
                "json",
            ]);
            let patched = serde_json::from_str(&patched.ok().stdout).unwrap();
            contains(&patched, &status, name).unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 63, "documents");
    // The plural means this kind, whatever other kinds the product has.
    let listed = ns.kubectl(&["get", "backups", "-o", "name"]).ok().stdout;
    assert!(listed.contains("backup.gobackup.io/nightly"), "{listed}");
}
