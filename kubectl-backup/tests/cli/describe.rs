//! `describe`: the whole chain, and no secret.

use serde_json::json;

use super::Config;
use super::fake::{Fake, backup, status};

fn shop() -> serde_json::Value {
    backup(
        "prod",
        "shop",
        json!({
            "schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "suspend": true,
            "backupEnvs": [
                { "name": "HOST", "value": "db.prod" },
                { "name": "PORT", "value": "3306" },
                { "name": "USERNAME", "value": "backup" },
                { "name": "PASSWORD", "value": "S3cr3t-marker" },
                { "name": "APIURL", "value": "https://open.feishu.cn/open-apis/bot/v2/hook/S3cr3t-marker" },
                { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                { "name": "SQLPATH", "value": "/mnt" },
                { "name": "EXPIREAT", "value": "24h" },
            ],
        }),
        json!({
            "observedGeneration": 1,
            "schedule": { "text": "0 2 * * *", "timeZone": "Europe/Berlin" },
            "totals": { "due": 7, "succeeded": 5, "failed": 1, "skipped": 0, "missed": 1, "manual": 2 },
            "missed": [{ "from": "2026-01-03T01:00:00Z", "to": "2026-01-03T01:00:00Z", "count": 1, "reason": "Outage" }],
            "runs": [
                { "name": "shop-2", "trigger": "Schedule", "result": "Failed", "reason": "AccessDenied",
                  "message": "access denied for user 'backup'@'10.1.2.3'", "phase": "Connecting",
                  "startTime": "2026-01-04T01:00:00Z", "completionTime": "2026-01-04T01:00:31Z" },
                { "name": "shop-1", "trigger": "Schedule", "result": "Succeeded",
                  "startTime": "2026-01-02T01:00:00Z", "completionTime": "2026-01-02T01:04:12Z" },
            ],
        }),
    )
}

#[test]
fn the_chain_with_one_piece_of_advice() {
    let fake = Fake::start();
    fake.put(shop());
    let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
    assert!(!ran.out.contains("S3cr3t"), "{}", ran.out);
    let stable: Vec<&str> = ran.out.lines().filter(|l| !l.contains(" ago")).collect();
    snapbox::assert_data_eq!(
        stable.join("\n"),
        snapbox::str![[r#"
Name:          shop
Kind:          MysqlBackup (batch.isekiro.com/v1)
Namespace:     prod
Status:        ✖ Suspended, shop-2 failed: access denied for user 'backup'@'10.1.2.3' (AccessDenied)
Schedule:      0 2 * * *  "at 02:00 every day"  (Europe/Berlin)
Next runs:     none while suspended
Suspended:     yes
Database:      mysql://db.prod:3306
Storage:       /mnt  encryption: off  retention: 24h
Environment:
  HOST: db.prod
  PORT: 3306
  USERNAME: backup
  PASSWORD: ******
  APIURL: ******
  TOKEN: <secret s, key k>
  SQLPATH: /mnt
  EXPIREAT: 24h
Last success:  <never>   consecutive failures: 0
Slots:         7 due, 5 succeeded, 1 failed, 0 skipped, 1 missed; 2 manual runs
Missed:        1 from 2026-01-03T02:00:00+01:00 to 2026-01-03T02:00:00+01:00: Outage
Last runs:     ✔ ✖   (oldest to newest)
Run:           shop-2  failed after 31s in phase "Connecting": access denied for user 'backup'@'10.1.2.3' (AccessDenied)
Job:           job/shop-2 is gone
Pods:          <none>
Events:        <none>
Hint:          correct user or password in the Secret, then: kubectl backup run-now mysqlbackup/shop --wait
"#]]
    );
}

/// A run whose Job, pod, log and events are all there.
fn whole(fake: &Fake) {
    let mut object = backup(
        "prod",
        "shop",
        json!({
            "schedule": "0 2 * * *",
            "source": { "host": "db.prod", "databases": ["shop"], "credentialsSecretRef": { "name": "shop-db" } },
            "destination": { "s3": { "bucket": "backups", "prefix": "shop" } },
        }),
        json!({
            "observedGeneration": 1,
            "schedule": { "text": "0 2 * * *", "timeZone": "UTC" },
            "runs": [{
                "name": "shop-2", "trigger": "Schedule", "result": "Failed", "reason": "Failed",
                "message": "lost connection", "startTime": "2026-01-04T01:00:00Z", "completionTime": "2026-01-04T01:00:31Z",
            }],
        }),
    );
    object["metadata"]["uid"] = "uid-shop".into();
    fake.put(object);
    fake.path(
        "/apis/batch/v1/namespaces/prod/jobs/shop-2",
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "shop-2", "namespace": "prod", "uid": "uid-job" },
            "spec": { "template": {} },
            "status": { "conditions": [{ "type": "Failed", "status": "True", "message": "BackoffLimitExceeded" }] },
        }),
    );
    fake.pod(
        json!({
            "metadata": { "name": "shop-2-x", "namespace": "prod", "creationTimestamp": "2026-01-04T01:00:00Z" },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "backup" }] },
            "status": { "phase": "Failed", "containerStatuses": [{
                "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": 3 } },
            }] },
        }),
        "dumping shop\nlost connection, password=S3cr3t-marker\n",
    );
    let event = |uid: &str, reason: &str, message: &str| {
        json!({
            "metadata": { "name": format!("{reason}-{uid}"), "namespace": "prod" },
            "involvedObject": { "uid": uid }, "type": "Warning", "reason": reason, "message": message,
            "count": 2, "source": { "component": "backup-operator" },
        })
    };
    fake.items(
        "/api/v1/namespaces/prod/events",
        json!([
            event("uid-shop", "RunFailed", "lost connection"),
            event(
                "uid-job",
                "BackoffLimitExceeded",
                "Job has reached its limit"
            ),
        ]),
    );
}

#[test]
fn job_pod_log_and_events_of_the_run() {
    let fake = Fake::start();
    whole(&fake);
    let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
    let (_, chain) = ran.out.split_once("Database:").unwrap();
    snapbox::assert_data_eq!(
        format!("Database:{chain}"),
        snapbox::str![[r#"
Database:      mysql://db.prod:3306  databases: shop  secret: shop-db
Storage:       s3://backups/shop  encryption: off
Last success:  <never>   consecutive failures: 0
Last runs:     ✖   (oldest to newest)
Run:           shop-2  failed after 31s: lost connection (Failed)
Job:           job/shop-2  Failed: BackoffLimitExceeded
Pod:           pod/shop-2-x  Failed  exit code 3  node: node-1
Last log lines:
  dumping shop
  lost connection, password=******
Events:
  TYPE      REASON                 AGE                             FROM              MESSAGE
  Warning   RunFailed              <unknown> (x2 over <unknown>)   backup-operator   lost connection
  Warning   BackoffLimitExceeded   <unknown> (x2 over <unknown>)   backup-operator   Job has reached its limit
Hint:          kubectl backup logs shop-2

"#]]
    );
    let seen = fake.seen();
    let asked = |end: &str| seen.iter().find(|s| s.path.ends_with(end)).unwrap();
    assert_eq!(
        asked("/pods").query["labelSelector"],
        "batch.kubernetes.io/job-name=shop-2"
    );
    assert_eq!(asked("/log").query["container"], "backup");
}

/// The label of a Job's pods may be written by whoever may make pods: only its controller proves one.
#[test]
fn o2_a_pod_that_only_bears_the_jobs_label_is_not_shown() {
    let fake = Fake::start();
    whole(&fake);
    let owner = |kind: &str, name: &str, controller: bool| json!([{"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "j", "controller": controller}]);
    let owners = [
        json!([]),
        owner("Job", "shop-2", false),
        owner("Job", "shop-3", true),
        owner("CronJob", "shop-2", true),
    ];
    for (n, owners) in owners.iter().enumerate() {
        let forged = json!({
            "metadata": {"name": format!("forged-{n}"), "namespace": "prod", "creationTimestamp": "2027-01-01T00:00:00Z",
                "labels": {"batch.kubernetes.io/job-name": "shop-2"}, "ownerReferences": owners},
            "spec": {"containers": [{"name": "backup"}]},
            "status": {"phase": "Succeeded"},
        });
        fake.pod(forged, "forged\n");
    }
    let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
    assert!(!ran.out.contains("forged"), "{}", ran.out);
}

#[test]
fn what_may_not_be_read_is_a_line() {
    for (end, line) in [
        ("/events", "Events:        (no permission to list events)"),
        ("/pods", "Pods:          (no permission to list pods)"),
        ("/jobs/shop-2", "Job:           (no permission to get jobs)"),
        ("/log", "Log:           (no permission to read logs)"),
    ] {
        let fake = Fake::start();
        whole(&fake);
        fake.deny_path(end, 403, status(403, "Forbidden", "no", ""));
        let ran = Config::new(&fake).run(&["describe", "shop"]).ok();
        let lines: Vec<&str> = ran.out.lines().collect();
        assert!(lines.contains(&line), "{line}\n{}", ran.out);
        assert!(
            lines.last().unwrap().starts_with("Hint:"),
            "the rest is there: {}",
            ran.out
        );
    }
}

fn archive(spec: serde_json::Value, status: serde_json::Value) -> Vec<String> {
    let fake = Fake::start();
    fake.install("backups");
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Backup",
        "metadata": { "name": "nightly", "namespace": "prod", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": spec, "status": status,
    }));
    let ran = Config::new(&fake).run(&["describe", "backup/nightly"]).ok();
    ran.out.lines().map(str::to_owned).collect()
}

/// What a Backup names, wherever its generation has it; never the fields of a MysqlBackup.
#[test]
fn g7_a_backup_names_its_databases_and_storages() {
    let lines = archive(
        json!({
            "databaseRefs": [{ "name": "shop" }, { "type": "redis", "name": "cache" }],
            "storageRefs": [{ "name": "bucket", "keep": 7 }, { "name": "dav", "keep": 0 }],
            "compressWith": { "type": "zst" }, "splitWith": { "chunkSize": "1G" },
            "encodeWith": { "type": "openssl", "password": "S3cr3t-marker" },
            "schedule": { "cron": "0 2 * * *" }, "job": { "engine": "gobackup" },
        }),
        json!({}),
    );
    for line in [
        "Databases:     shop, cache",
        "Storages:      bucket (keep: 7), dav",
        "Archive:       compression: zst  encryption: openssl  parts: 1G",
        "Engine:        gobackup",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line}: {lines:#?}");
    }
    let text = lines.join("\n");
    assert!(
        !text.contains("<unset>") && !text.contains("S3cr3t"),
        "{text}"
    );
}

/// Each of its databases may have been dumped by another; the reason names the one that the client had to make.
#[test]
fn a_backup_says_what_made_the_dumps_of_its_last_run() {
    for (engine, reason, line) in [
        ("Native", "", "Engine:        Native"),
        (
            "Mixed",
            "Database old: version 5.7 is old",
            "Engine:        Mixed: Database old: version 5.7 is old",
        ),
    ] {
        let run = json!({
            "name": "nightly-1", "trigger": "Immediate", "result": "Succeeded", "engine": engine, "engineReason": reason,
            "startTime": "2026-01-02T01:00:00Z", "completionTime": "2026-01-02T01:04:12Z",
        });
        let status = json!({ "observedGeneration": 1, "runs": [run] });
        let lines = archive(json!({ "databaseRefs": [], "storageRefs": [] }), status);
        assert!(lines.iter().any(|l| l == line), "{line}: {lines:#?}");
    }
}

#[test]
fn g7_a_backup_without_a_schedule_says_how_it_runs_again() {
    let hint = |result: &str, reason: &str| {
        let run = json!({
            "name": "nightly-1", "trigger": "Immediate", "result": result, "reason": reason,
            "startTime": "2026-01-02T01:00:00Z", "completionTime": "2026-01-02T01:04:12Z",
        });
        let status = json!({ "observedGeneration": 1, "runs": [run] });
        let lines = archive(json!({ "databaseRefs": [], "storageRefs": [] }), status);
        let hint = lines.iter().find(|l| l.starts_with("Hint:")).cloned();
        hint.unwrap_or_else(|| panic!("{lines:#?}"))
    };
    let again = "kubectl backup run-now backup/nightly --wait";
    for (result, reason) in [
        ("Succeeded", ""),
        ("Failed", "DumpFailed"),
        ("Failed", "NoSpace"),
    ] {
        let hint = hint(result, reason);
        assert!(hint.contains(again), "{hint}");
        assert_eq!(hint.matches("run-now").count(), 1, "{hint}");
    }
    assert!(hint("Failed", "DumpFailed").contains("kubectl backup logs nightly-1"));
}
