//! U8 and U9: why nothing starts, which attempt it is, what is looked for before anything is created, and
//! runs that status no longer lists.

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup, status};
use super::run_now::request;

/// An object that needs a Secret and a claim, with one run as told.
fn shop(fake: &Fake, run: Value) {
    let mut runs = json!([]);
    if run.is_object() {
        runs = json!([{ "name": "shop-28950870", "jobUid": "uid-job", "trigger": "Schedule", "startTime": "2026-01-02T00:00:00Z" }]);
        for (key, value) in run.as_object().unwrap() {
            runs[0][key] = value.clone();
        }
    }
    let spec = json!({
        "schedule": "@daily",
        "source": { "host": "db", "credentialsSecretRef": { "name": "shop-db" } },
        "destination": { "volume": { "persistentVolumeClaim": { "claimName": "backups" } } },
    });
    fake.put(backup(
        "prod",
        "shop",
        spec,
        json!({ "observedGeneration": 1, "runs": runs }),
    ));
}

fn secret(fake: &Fake, keys: &[&str]) {
    let data: serde_json::Map<String, Value> = keys
        .iter()
        .map(|k| ((*k).to_owned(), json!("UzNjcjN0")))
        .collect();
    fake.path(
        "/api/v1/namespaces/prod/secrets/shop-db",
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "shop-db" }, "data": data }),
    );
    fake.path(
        "/api/v1/namespaces/prod/persistentvolumeclaims/backups",
        json!({ "metadata": { "name": "backups" } }),
    );
}

fn writes(fake: &Fake) -> usize {
    fake.seen().iter().filter(|s| s.method != "GET").count()
}

#[test]
fn u9_a_key_that_is_not_there_is_said_before_anything_is_created() {
    let fake = Fake::start();
    fake.install("restores");
    shop(&fake, Value::Null);
    secret(&fake, &["username", "pasword"]);
    let config = Config::new(&fake);
    config.run(&["run-now", "shop"]).fails(
        5,
        "error: mysqlbackup.batch.isekiro.com/shop needs what is not in namespace prod: Secret shop-db has no key \"password\" (did you mean \"pasword\"?); nothing was created",
    );
    let to = [
        "restore", "shop", "--to", "db", "--secret", "shop-db", "--name", "r",
    ];
    config.run(&to).fails(
        5,
        "error: restore.batch.isekiro.com/r needs what is not in namespace prod: Secret shop-db has no key \"password\" (did you mean \"pasword\"?); nothing was created",
    );
    fake.deny_path(
        "persistentvolumeclaims/backups",
        404,
        status(
            404,
            "NotFound",
            "persistentvolumeclaims \"backups\" not found",
            "backups",
        ),
    );
    for args in [
        vec!["verify", "shop"],
        vec!["download", "shop", "--image", "backup-runner:1"],
    ] {
        config.run(&args).fails(
            5,
            "error: mysqlbackup.batch.isekiro.com/shop needs what is not in namespace prod: volume claim backups is not there; nothing was created",
        );
    }
    assert_eq!(writes(&fake), 0);
}

#[test]
fn u9_what_may_not_be_read_is_a_line() {
    let fake = Fake::start();
    shop(&fake, Value::Null);
    secret(&fake, &["username", "password"]);
    let config = Config::new(&fake);
    let ran = config.run(&["run-now", "shop"]).ok();
    assert_eq!(ran.err, "");
    fake.deny_path(
        "secrets/shop-db",
        403,
        status(403, "Forbidden", "no", "shop-db"),
    );
    let ran = config.run(&["run-now", "shop"]).ok();
    assert_eq!(
        ran.err,
        "◎ not looked for, as you may not read it: Secret shop-db\n"
    );
}

/// The run's Job, and what events say of it and of its pod.
fn events(fake: &Fake, of: &[(&str, &str, &str)]) {
    fake.path(
        "/apis/batch/v1/namespaces/prod/jobs/shop-28950870",
        json!({ "metadata": { "name": "shop-28950870", "namespace": "prod", "uid": "uid-job" }, "spec": { "template": {} }, "status": {} }),
    );
    let events = of.iter().map(|(uid, reason, message)| {
        json!({
            "metadata": { "name": format!("{reason}-{uid}"), "namespace": "prod" },
            "involvedObject": { "uid": uid }, "type": "Warning", "reason": reason, "message": message,
            "lastTimestamp": "2026-01-02T00:00:05Z",
        })
    });
    fake.items("/api/v1/namespaces/prod/events", events.collect());
}

fn pod(fake: &Fake, status: Value) {
    fake.pod(
        json!({
            "metadata": { "name": "shop-28950870-x", "namespace": "prod", "uid": "uid-pod", "creationTimestamp": "2026-01-02T00:00:00Z" },
            "spec": { "containers": [{ "name": "backup" }] },
            "status": status,
        }),
        "",
    );
}

const CREATING: &str = "ContainerCreating";

#[test]
fn u9_why_nothing_starts_is_said_by_each_who_waits() {
    let mount = "MountVolume.SetUp failed for volume \"backup-secrets\" : references non-existent secret key: password";
    let quota = "pods \"shop-\" is forbidden: exceeded quota: compute, requested: memory=1Gi";
    let creating = json!({ "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "waiting": { "reason": CREATING } } }] });
    let unschedulable = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient memory." }] });
    for (pod_status, event, expected) in [
        (
            Some(creating),
            ("uid-pod", "FailedMount", mount),
            format!("FailedMount: {mount}"),
        ),
        (
            Some(unschedulable),
            ("other", "X", "y"),
            "Unschedulable: 0/1 nodes are available: 1 Insufficient memory.".to_owned(),
        ),
        (
            None,
            ("uid-job", "FailedCreate", quota),
            format!(
                "FailedCreate: {quota}; ask for less in resources, or raise the quota of the namespace"
            ),
        ),
    ] {
        let fake = Fake::start();
        shop(&fake, json!({ "result": "Running" }));
        events(&fake, &[event]);
        if let Some(status) = pod_status {
            pod(&fake, status);
        }
        let config = Config::new(&fake);
        let ran = config.run(&["wait", "shop", "--timeout", "2s"]);
        assert_eq!(ran.code, Some(124), "{ran:?}");
        assert!(ran.err.contains(&expected), "{}", ran.err);
        let logs = config.run(&["logs", "shop"]);
        assert_eq!(logs.code, Some(1), "{logs:?}");
        assert!(logs.err.contains(&expected), "{}", logs.err);
        let page = config.run(&["describe", "shop"]).ok().out;
        assert!(page.contains(&format!("  {expected}")), "{page}");
        assert!(page.contains(event.1) || event.0 == "other", "{page}");
    }
}

#[test]
fn u9_attempts_are_told_wherever_the_run_is() {
    let fake = Fake::start();
    let words = "attempt 2 of 3; the first failed: access denied for user 'backup'";
    shop(
        &fake,
        json!({ "result": "Running", "reason": "AccessDenied", "message": words }),
    );
    let config = Config::new(&fake);
    let ran = config.run(&["wait", "shop", "--timeout", "1s"]);
    assert_eq!(ran.code, Some(124));
    assert!(
        ran.err.contains(&format!(
            "◎ shop-28950870 is running: {words} (AccessDenied)\n"
        )) && ran.err.contains(&format!(
            "waiting for shop-28950870, which is running: {words}"
        )),
        "{}",
        ran.err
    );
    for args in [
        vec!["describe", "shop"],
        vec!["describe", "shop-28950870"],
        vec!["runs", "shop", "-o", "wide"],
    ] {
        let out = config.run(&args).ok().out;
        assert!(out.contains(words), "{args:?}: {out}");
    }
    let pending = json!({ "result": "Running", "phase": "Pending", "reason": "Unschedulable", "message": "not started: 0/1 nodes are available" });
    shop(&fake, pending);
    let out = config.run(&["runs", "shop"]).ok().out;
    assert!(out.contains("Pending") && !out.contains("Running"), "{out}");
}

#[test]
fn one_run_is_described() {
    let fake = Fake::start();
    shop(
        &fake,
        json!({
            "result": "Succeeded", "slot": "2026-01-02T00:00:00Z", "completionTime": "2026-01-02T00:04:12Z", "reason": "Completed",
            "rawBytes": 5_368_709_120_i64, "storedBytes": 1_932_735_283_i64, "tables": 3, "rows": 12,
            "engine": "Native", "snapshot": "tables locked while connections began", "snapshotTime": "2026-01-02T00:00:03Z",
            "warnings": ["attempt 2 of 3; the first failed: no route to host"],
            "artefacts": [{ "key": "prod/shop/1.sql.zst", "size": 1_932_735_283_i64, "readBack": true }],
            "verification": { "mode": "Restore", "passed": true, "time": "2026-01-02T00:09:00Z", "message": "3 tables compared" },
        }),
    );
    let config = Config::new(&fake);
    let page = config
        .run(&["describe", "run/shop-28950870", "--utc"])
        .ok()
        .out;
    snapbox::assert_data_eq!(
        page,
        snapbox::str![[r#"
Name:          shop-28950870
Kind:          run (a Job of its object)
Object:        mysqlbackup/shop
Namespace:     prod
Status:        succeeded in 4m12s, 1.8GiB, prod/shop/1.sql.zst
Trigger:       Schedule, due 2026-01-02T00:00:00Z
Started:       2026-01-02T00:00:00Z
Ended:         2026-01-02T00:04:12Z
Duration:      4m12s
Dump:          5.0GiB, 3 tables, 12 rows
Engine:        Native, snapshot: tables locked while connections began, of 2026-01-02T00:00:03Z
Stored:        1.8GiB
Verified:      yes  Restore at 2026-01-02T00:09:00Z: 3 tables compared
Warning:       attempt 2 of 3; the first failed: no route to host
Artefact:      prod/shop/1.sql.zst  1.8GiB  read back
Job:           job/shop-28950870 is gone
Pods:          <none>
Events:        <none>

"#]]
    );
}

/// A run that status no longer lists is known by its name: what the store may hold is asked of the store,
/// and what is gone is said, never that its object is not there.
#[test]
fn u8_a_run_that_fell_out_of_status() {
    let fake = Fake::start();
    fake.install("restores");
    shop(&fake, json!({ "result": "Succeeded" }));
    secret(&fake, &["username", "password"]);
    let config = Config::new(&fake);
    let old = "shop-28940000";
    for args in [
        vec!["logs", old],
        vec!["describe", old],
        vec!["runs", old],
        vec!["wait", old],
        vec!["cancel", old],
    ] {
        let ran = config.run(&args).fails(
            5,
            "error: shop-28940000 is not among the 1 run that the status of mysqlbackup.batch.isekiro.com/shop lists; what it stored may still be there",
        );
        assert!(
            ran.err
                .contains("Hint: kubectl backup runs mysqlbackup/shop --stored"),
            "{ran:?}"
        );
    }
    assert_eq!(
        config
            .run(&["runs", "shop-28950870", "-o", "name"])
            .ok()
            .out,
        "run/shop-28950870\n"
    );
    fake.operate(|object| {
        let mut after = object.clone();
        if object["kind"] == "Restore" {
            after["status"] = json!({ "phase": "Failed", "reason": "ArtefactNotFound", "message": "none" });
            return Some(after);
        }
        let asked = request(object)?;
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{ "id": asked.id, "action": "Verify", "state": "Succeeded", "message": "equal" }]);
        Some(after)
    });
    config.run(&["verify", old]).ok();
    config
        .run(&["verify", "shop", "--key", "prod/shop/0.sql.zst"])
        .ok();
    let asked: Vec<_> = fake
        .seen()
        .iter()
        .filter_map(|s| request(&s.body))
        .collect();
    let asked: Vec<_> = asked
        .iter()
        .map(|r| (r.options.run.as_deref(), r.options.key.as_deref()))
        .collect();
    assert_eq!(
        asked,
        [(Some(old), None), (None, Some("prod/shop/0.sql.zst"))]
    );
    config.run(&["restore", old, "--to", "db", "--secret", "shop-db"]);
    let posted = fake
        .seen()
        .into_iter()
        .find(|s| s.method == "POST")
        .unwrap();
    assert_eq!(
        (
            &posted.body["spec"]["from"]["name"],
            &posted.body["spec"]["from"]["run"]
        ),
        (&json!("shop"), &json!(old))
    );
    // Its log is there as long as its pod is.
    pod(
        &fake,
        json!({ "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": { "exitCode": 0 } } }] }),
    );
    config.run(&["logs", old]).ok();
    assert!(
        config
            .run(&["describe", old])
            .ok()
            .out
            .contains("no longer listed in the status")
    );
}

/// A run that its owner cancelled is nowhere called a failure, and nowhere a good run.
#[test]
fn u17_a_run_that_was_cancelled_is_no_failure() {
    let fake = Fake::start();
    shop(
        &fake,
        json!({ "result": "Failed", "reason": "Cancelled", "message": "cancelled by alice. wrong day", "completionTime": "2026-01-02T00:00:31Z" }),
    );
    let config = Config::new(&fake);
    let runs = config.run(&["runs", "shop"]).ok().out;
    assert!(
        runs.contains("Cancelled") && !runs.contains("Failed"),
        "{runs}"
    );
    assert_eq!(
        config
            .run(&["runs", "shop", "--failed", "-o", "name"])
            .ok()
            .out,
        ""
    );
    let page = config.run(&["describe", "shop"]).ok().out;
    assert!(
        page.contains("shop-28950870  was cancelled after 31s: cancelled by alice. wrong day\n")
            && page.contains("Last runs:     ○"),
        "{page}"
    );
}

/// What keeps a verification by restore from starting stands in the description of its object.
#[test]
fn u9_a_verification_that_does_not_start() {
    let fake = Fake::start();
    shop(
        &fake,
        json!({ "result": "Succeeded", "verifyJob": "shop-v1" }),
    );
    let unschedulable = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient memory." }] });
    pod(&fake, unschedulable);
    let page = Config::new(&fake).run(&["describe", "shop"]).ok().out;
    assert!(
        page.contains("Verifying:     shop-28950870  job/shop-v1 has not started: Unschedulable: 0/1 nodes are available: 1 Insufficient memory.\n"),
        "{page}"
    );
}

#[test]
fn why_the_client_made_a_dump_is_told_wherever_the_run_is() {
    let fake = Fake::start();
    shop(
        &fake,
        json!({
            "result": "Succeeded", "engine": "Client",
            "engineReason": "table shop.geo has a type that is not proven: geometry",
        }),
    );
    let config = Config::new(&fake);
    for args in [
        vec!["describe", "shop"],
        vec!["describe", "run/shop-28950870"],
    ] {
        let out = config.run(&args).ok().out;
        let line = out.lines().find(|l| l.starts_with("Engine:"));
        let line = line.unwrap_or_else(|| panic!("{args:?}: {out}"));
        assert!(
            line.ends_with("Client: table shop.geo has a type that is not proven: geometry"),
            "{line}"
        );
    }
    let out = config.run(&["runs", "shop", "-o", "wide"]).ok().out;
    let (head, row) = out.split_once('\n').unwrap();
    let at = head.find("ENGINE").unwrap();
    assert!(row[at..].starts_with("Client "), "{out}");
}
