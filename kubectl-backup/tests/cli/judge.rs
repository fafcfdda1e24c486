//! `health` and `doctor`.

use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::{Config, Ran, bare};

fn ago(hours: i64) -> String {
    crds::time::rfc3339(chrono::Utc::now() - chrono::Duration::hours(hours))
}

/// An object whose newest good run is so many hours old, and whose slots are two hours apart since.
fn good(name: &str, hours: i64) -> Value {
    let run = json!({ "name": format!("{name}-1"), "trigger": "Schedule", "result": "Succeeded" });
    backup(
        "prod",
        name,
        json!({ "schedule": "@every 2h" }),
        json!({
            "observedGeneration": 1, "lastSuccessfulTime": ago(hours), "runs": [run],
            "schedule": { "text": "@every 2h", "timeZone": "UTC", "anchor": ago(hours) },
        }),
    )
}

fn failed(name: &str) -> Value {
    let run = json!({ "name": format!("{name}-1"), "trigger": "Schedule", "result": "Failed", "reason": "NoSpace", "message": "no space left" });
    backup(
        "prod",
        name,
        json!({ "schedule": "@every 2h" }),
        json!({
            "observedGeneration": 1, "lastSuccessfulTime": ago(1), "lastResult": "Failed", "runs": [run],
            "schedule": { "text": "@every 2h", "timeZone": "UTC", "anchor": ago(1) },
        }),
    )
}

#[test]
fn health_is_the_worst_of_all() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    fake.put(good("shop", 1));
    let ran = config.run(&["health"]).ok();
    let first = ran.out.lines().next().unwrap();
    assert!(
        first.starts_with("OK 1 ok | 'shop_age'=36") && first.ends_with("s;7800;7800"),
        "{first}"
    );
    // Older than two hours, and ten minutes in which its slot may start.
    fake.put(good("old", 4));
    let ran = config.run(&["health"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(
        config.run(&["health", "old", "--max-age", "3h30m"]).code,
        Some(2)
    );
    assert_eq!(
        config.run(&["health", "old", "--max-age", "5h"]).code,
        Some(0)
    );
    fake.put(failed("full"));
    let ran = config.run(&["health"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.out.starts_with("CRITICAL 1 overdue, 1 failed, 1 ok | "),
        "{}",
        ran.out
    );
    assert!(
        ran.out
            .contains("CRITICAL mysqlbackup/full: full-1 failed: no space left (NoSpace)\n"),
        "{}",
        ran.out
    );
}

/// A good run whose artefact does not restore is nowhere called well, suspended or not.
#[test]
fn u3_a_failed_verification_is_said_everywhere() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let mut object = good("shop", 1);
    let why = "a restore differs: table shop.t has 1 rows instead of 2";
    object["status"]["lastResult"] = json!("Succeeded");
    object["status"]["lastVerifiedTime"] = json!(ago(30));
    // The run that was verified may have left the list: the condition stays.
    let verified = json!({
        "type": "Verified", "status": "False", "reason": "RestoreDiffers",
        "message": format!("shop-1: {why}"), "lastTransitionTime": ago(1),
    });
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "VerificationFailed",
        "message": format!("run shop-1: {why}"), "lastTransitionTime": ago(1),
    });
    object["status"]["conditions"] = json!([verified, ready]);
    for suspended in [false, true] {
        object["spec"]["suspend"] = json!(suspended);
        fake.put(object.clone());
        let ran = config.run(&["health"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let line = format!("CRITICAL mysqlbackup/shop: shop-1 failed its verification: {why}");
        assert!(
            ran.out.starts_with("CRITICAL 1 unverified | ") && ran.out.contains(&line),
            "{}",
            ran.out
        );
        let listed = config.run(&["list"]).ok().out;
        assert!(
            listed.contains("Unverified") && !listed.contains("Succeeded"),
            "{listed}"
        );
        let page = config.run(&["describe", "mbk/shop"]).ok().out;
        assert!(
            page.contains(&format!(
                "✖ {}, shop-1 failed its verification: {why}",
                if suspended { "Suspended" } else { "Active" }
            )) && page.contains("kubectl backup verify mysqlbackup/shop --restore"),
            "{page}"
        );
    }
}

#[test]
fn health_for_other_readers() {
    let fake = Fake::start();
    fake.put(good("shop", 1));
    fake.put(failed("full"));
    let config = Config::new(&fake);
    let ran = config.run(&["health", "-o", "prom"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.out.contains(
            "kubectl_backup_health{kind=\"MysqlBackup\",namespace=\"prod\",name=\"full\"} 2\n"
        ),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("kubectl_backup_last_success_age_seconds{kind=\"MysqlBackup\",namespace=\"prod\",name=\"shop\"} 36"), "{}", ran.out);
    let json = config.run(&["health", "-o", "json"]).json();
    assert_eq!(
        (&json["state"], &json["items"][0]["reason"]),
        (&json!("CRITICAL"), &json!("failed"))
    );
}

#[test]
fn u4_health_of_nothing_is_unknown() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["health"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(3),
            "UNKNOWN error: no backup objects fit in namespace prod\n"
        )
    );
    fake.put(good("shop", 1));
    for args in [
        vec!["health", "-l", "app=nobody"],
        vec!["health", "-A", "-l", "app=nobody"],
        vec!["health", "-n", "nope"],
    ] {
        assert_eq!(config.run(&args).code, Some(3), "{args:?}");
    }
    config.run(&["health"]).ok();
}

#[test]
fn u4_a_namespace_that_is_not_there_is_no_health() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["doctor", "-n", "nope"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.contains("namespace \"nope\": not found"),
        "{}",
        ran.out
    );
    assert!(
        !config
            .run(&["doctor"])
            .out
            .contains("namespace \"prod\": not found")
    );
}

#[test]
fn what_can_not_be_found_out_is_unknown() {
    let fake = Fake::start();
    fake.uninstall();
    let ran = Config::new(&fake).run(&["health"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.out
            .starts_with("UNKNOWN error: MysqlBackup is not installed"),
        "{}",
        ran.out
    );
    let ran = Ran::of(bare().args(["health", "--nonsense"]).output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran = Ran::of(
        bare()
            .args(["health", "--server", "http://127.0.0.1:1"])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn list_keeps_to_the_filters() {
    let fake = Fake::start();
    fake.put(good("shop", 1));
    fake.put(good("old", 4));
    fake.put(failed("full"));
    fake.put(backup(
        "prod",
        "held",
        json!({ "schedule": "@daily", "suspend": true }),
        json!({ "observedGeneration": 1 }),
    ));
    let config = Config::new(&fake);
    let names = |args: &[&str]| {
        let args: Vec<&str> = ["list", "mbk", "--no-headers"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let out = config.run(&args).ok().out;
        out.lines()
            .map(|l| l.split_whitespace().next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--failed"]), ["mysqlbackup/full"]);
    // A suspension hides no backup that never was.
    assert_eq!(names(&["--stale"]), ["mysqlbackup/held", "mysqlbackup/old"]);
    assert_eq!(names(&["--suspended"]), ["mysqlbackup/held"]);
    assert_eq!(
        names(&["--sort-by", "name"]),
        [
            "mysqlbackup/full",
            "mysqlbackup/held",
            "mysqlbackup/old",
            "mysqlbackup/shop"
        ]
    );
    assert_eq!(
        config.run(&["list", "--failed", "-o", "name"]).ok().out,
        "mysqlbackup.batch.isekiro.com/full\n"
    );
    assert_eq!(
        config.run(&["list", "--stale", "-o", "name"]).ok().out,
        "mysqlbackup.batch.isekiro.com/held\nmysqlbackup.batch.isekiro.com/old\n"
    );
}

#[test]
fn several_clusters_in_one_table() {
    let (here, there) = (Fake::start(), Fake::start());
    here.put(good("shop", 1));
    there.put(good("crm", 1));
    let config = Config::new(&here);
    let second = config.write("second", &there, "backup-us", Some("prod"));
    let list = std::env::join_paths([config.directory.path().join("config"), second]).unwrap();
    let run = |args: &[&str]| Ran::of(bare().env("KUBECONFIG", &list).args(args).output().unwrap());
    let ran = run(&["list", "--all-contexts", "--no-headers"]).ok();
    let names: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|l| l.split_whitespace().take(2).collect())
        .collect();
    assert_eq!(
        names,
        [
            ["prod-eu", "mysqlbackup/shop"],
            ["backup-us", "mysqlbackup/crm"]
        ]
    );
    there.uninstall();
    let ran = run(&["list", "--contexts", "prod-eu,backup-us"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.out.contains("mysqlbackup/shop"));
    assert!(
        ran.err
            .starts_with("backup-us: error: MysqlBackup is not installed"),
        "{}",
        ran.err
    );
}

#[test]
fn doctor_names_each_thing_and_its_remedy() {
    let fake = Fake::start();
    fake.put(failed("full"));
    let mut secret = good("shop", 1);
    secret["spec"]["source"] = json!({ "credentialsSecretRef": { "name": "shop-db" } });
    fake.put(secret);
    fake.items(
        "/apis/apps/v1/deployments",
        json!([{
            "metadata": { "name": "backup-operator", "namespace": "backup-system" },
            "spec": { "selector": {}, "template": { "spec": { "containers": [{
                "name": "operator", "image": "backup-operator:v0.0.1",
                "env": [{ "name": "WATCH_NAMESPACES", "value": "infra,data" }],
            }] } } },
            "status": { "readyReplicas": 1 },
        }]),
    );
    let why = super::fake::status(403, "Forbidden", "secrets is forbidden", "shop-db");
    fake.deny_path("/secrets/shop-db", 403, why);
    let ran = Config::new(&fake).run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let address = fake.address.to_string();
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let text = ran
        .out
        .replace(&address, "SERVER")
        .replace(version, "VERSION");
    snapbox::assert_data_eq!(
        text,
        snapbox::str![[r#"
✔ configuration: context "prod-eu", namespace "prod"
✔ API server: v1.35.4 at SERVER
✔ clock: agrees with the server's
✔ kind MysqlBackup (batch.isekiro.com): installed
- kind Backup (gobackup.io): not installed, not needed for MySQL
- kind CronBackup (gobackup.io): not installed, not needed for MySQL
✔ operator: backup-system, 1 ready, image backup-operator:v0.0.1
✖ operator: watches infra,data, not prod
    fix: add the namespace to WATCH_NAMESPACES of the operator
⚠ versions: plugin VERSION, operator backup-operator:v0.0.1
    fix: use the same version on both sides
- operator: lease backup-system/backup-operator: Error from server (NotFound): 404 page not found in namespace "backup-system"
- operator: what system:serviceaccount:backup-system:default may do can't be looked up (Error from server (NotFound): 404 page not found)
✔ operator: answers what mysqlbackup/full asks it
⚠ rights: you may not delete restores.batch.isekiro.com: needed by restore; delete does less without
    fix: kubectl -n prod create role kubectl-backup-restores-batch-isekiro-com --verb=delete --resource=restores.batch.isekiro.com; kubectl -n prod create rolebinding kubectl-backup-restores-batch-isekiro-com --role=kubectl-backup-restores-batch-isekiro-com --user=USER
⚠ rights: you may not delete pods: needed by show, binlog, download
    fix: kubectl -n prod create role kubectl-backup-pods --verb=delete --resource=pods; kubectl -n prod create rolebinding kubectl-backup-pods --role=kubectl-backup-pods --user=USER
⚠ rights: you may not delete mysqlbackups.batch.isekiro.com: needed by delete
    fix: kubectl -n prod create role kubectl-backup-mysqlbackups-batch-isekiro-com --verb=delete --resource=mysqlbackups.batch.isekiro.com; kubectl -n prod create rolebinding kubectl-backup-mysqlbackups-batch-isekiro-com --role=kubectl-backup-mysqlbackups-batch-isekiro-com --user=USER
⚠ rights: you may not delete databases.gobackup.io: delete does less without
    fix: kubectl -n prod create role kubectl-backup-databases-gobackup-io --verb=delete --resource=databases.gobackup.io; kubectl -n prod create rolebinding kubectl-backup-databases-gobackup-io --role=kubectl-backup-databases-gobackup-io --user=USER
⚠ rights: you may not delete storages.gobackup.io: delete does less without
    fix: kubectl -n prod create role kubectl-backup-storages-gobackup-io --verb=delete --resource=storages.gobackup.io; kubectl -n prod create rolebinding kubectl-backup-storages-gobackup-io --role=kubectl-backup-storages-gobackup-io --user=USER
✖ mysqlbackup/full: full-1 failed: no space left (NoSpace)
    fix: kubectl backup describe mysqlbackup/full
- mysqlbackup/shop: Secret shop-db can't be looked up (no permission to get secrets)
✔ mysqlbackup/shop: newest good run 60m ago
- other operators: not looked at: validatingwebhookconfigurations, mutatingwebhookconfigurations (404 page not found)
    fix: have someone run it who may list them in all namespaces
- other operators' jobs: Error from server (NotFound): 404 page not found in namespace "prod"
- other operators' secrets can't be looked up (no permission to list secrets)

"#]]
    );
    let json = Config::new(&fake).run(&["doctor", "-o", "json"]).json();
    assert!(json["findings"].as_array().unwrap().len() > 5);
}

#[test]
fn doctor_looks_for_secrets_and_compares_clocks() {
    let fake = Fake::start();
    let mut object = good("shop", 1);
    object["spec"]["source"] = json!({ "credentialsSecretRef": { "name": "shop-db" } });
    object["spec"]["destination"] =
        json!({ "s3": { "bucket": "b", "credentialsSecretRef": { "name": "bucket" } } });
    fake.put(object);
    let path = |name: &str| format!("/api/v1/namespaces/prod/secrets/{name}");
    let there = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": { "name": "shop-db", "namespace": "prod" } });
    fake.path(&path("shop-db"), there);
    let absent = super::fake::status(404, "NotFound", "secrets \"bucket\" not found", "bucket");
    fake.deny_path("/secrets/bucket", 404, absent);
    fake.clock(chrono::Utc::now() - chrono::Duration::hours(1));
    let ran = Config::new(&fake).run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.contains(
            "✖ mysqlbackup/shop: Secret bucket is not there\n    fix: kubectl -n prod create secret generic bucket …\n"
        ),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("shop-db"), "{}", ran.out);
    assert!(
        ran.out.contains("⚠ clock: this machine is 36"),
        "{}",
        ran.out
    );
    // Nobody has read what is in a Secret.
    let seen = fake.seen();
    let secrets = seen.iter().filter(|s| s.path.contains("/secrets/"));
    assert!(
        secrets
            .clone()
            .all(|s| s.accept.contains("PartialObjectMetadata"))
    );
    assert!(secrets.count() >= 2);
}

#[test]
fn doctor_has_the_operator_try_database_and_store() {
    let fake = Fake::start();
    fake.put(good("shop", 1));
    fake.operate(|object| {
        let notes = object["metadata"]["annotations"].as_object()?;
        let (_, value) = notes
            .iter()
            .find(|(k, _)| k.starts_with("batch.isekiro.com/request-"))?;
        let request = crds::request::Request::parse(value.as_str()?).ok()?;
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{
            "id": request.id, "action": request.action.as_str(), "state": "Failed",
            "message": "access denied for user 'backup'",
        }]);
        Some(after)
    });
    let ran = Config::new(&fake).run(&["doctor", "--probe", "shop"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains(
            "✖ mysqlbackup/shop: database and store: error: access denied for user 'backup'"
        ),
        "{}",
        ran.out
    );
    // The same answer to a verification is the status of a bad run.
    let ran = Config::new(&fake).run(&["verify", "shop"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
}

#[test]
fn what_other_operators_left_is_told_and_only_that_is_removed() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let owned = |name: &str, uid: &str, more: Value| {
        let mut object = json!({
            "metadata": {
                "name": name, "namespace": "prod", "uid": format!("u-{name}"), "resourceVersion": "7",
                "ownerReferences": [{ "apiVersion": "x/v1", "kind": "X", "name": "x", "uid": uid, "controller": true }],
            },
        });
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object
    };
    let done = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    let mut ours = owned("ours", "uid-shop", json!({}));
    ours["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "backup-operator" });
    fake.items(
        "/apis/batch/v1/namespaces/prod/cronjobs",
        json!([
            owned(
                "shop",
                "uid-shop",
                json!({ "spec": { "suspend": false, "schedule": "", "jobTemplate": {} } })
            ),
            owned("theirs", "uid-other", json!({}))
        ]),
    );
    fake.items(
        "/apis/batch/v1/namespaces/prod/jobs",
        json!([
            owned("shop-1", "uid-shop", done),
            owned("shop-2", "uid-shop", json!({})),
            ours
        ]),
    );
    fake.items(
        "/api/v1/namespaces/prod/secrets",
        json!([
            owned("shop", "uid-shop", json!({})),
            owned("login", "uid-other", json!({}))
        ]),
    );
    for path in [
        "/apis/batch/v1/namespaces/prod/cronjobs/shop",
        "/apis/batch/v1/namespaces/prod/jobs/shop-1",
        "/api/v1/namespaces/prod/secrets/shop",
    ] {
        fake.path(
            path,
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }),
        );
    }
    let config = Config::new(&fake);
    let ran = config.run(&["doctor"]);
    for line in [
        "✖ mysqlbackup/shop: cronjob/shop still starts backups beside this operator\n    fix: kubectl backup doctor --fix\n",
        "⚠ mysqlbackup/shop: job/shop-1 of another operator is left over\n",
        "⚠ mysqlbackup/shop: job/shop-2 of another operator has not finished\n    fix: let it finish; --fix does not remove it\n",
        "⚠ mysqlbackup/shop: secret/shop is left over and holds credentials in plain text\n",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    for absent in ["theirs", "login", "ours"] {
        assert!(!ran.out.contains(absent), "{}", ran.out);
    }
    assert_eq!(
        config.run(&["doctor", "--fix"]).code,
        Some(2),
        "it wants consent"
    );
    let deletes = |fake: &Fake| -> Vec<(String, Value)> {
        let seen = fake.seen().into_iter().filter(|s| s.method == "DELETE");
        seen.map(|s| (s.path, s.body["preconditions"].clone()))
            .collect()
    };
    assert_eq!(deletes(&fake), []);
    let ran = config.run(&["doctor", "--fix", "--yes"]);
    assert!(
        ran.out.contains("✔ fix: cronjob/shop removed\n"),
        "{}",
        ran.out
    );
    let as_seen = |name: &str| json!({ "uid": format!("u-{name}"), "resourceVersion": "7" });
    assert_eq!(
        deletes(&fake),
        [
            (
                "/apis/batch/v1/namespaces/prod/cronjobs/shop".to_owned(),
                as_seen("shop")
            ),
            (
                "/apis/batch/v1/namespaces/prod/jobs/shop-1".to_owned(),
                as_seen("shop-1")
            ),
            (
                "/api/v1/namespaces/prod/secrets/shop".to_owned(),
                as_seen("shop")
            ),
        ]
    );
}

#[test]
fn health_that_is_not_known_keeps_to_its_format() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["health", "-o", "json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(
        ran.json(),
        json!({
            "state": "UNKNOWN",
            "message": "error: no backup objects fit in namespace prod",
            "items": [],
        })
    );
    let ran = config.run(&["health", "-o", "prom"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.err.contains("no backup objects fit"), "{ran:?}");
}

#[test]
fn performance_data_of_one_name_and_two_kinds_is_told_apart() {
    let fake = Fake::start();
    fake.install("backups");
    fake.put(good("shop", 1));
    let mut other = good("shop", 1);
    other["apiVersion"] = "gobackup.io/v1".into();
    other["kind"] = "Backup".into();
    other["spec"]["schedule"] = json!({ "cron": "@daily" });
    fake.put(other);
    let ran = Config::new(&fake).run(&["health"]);
    assert!(ran.out.contains("'mysqlbackup/shop_age'="), "{ran:?}");
    assert!(ran.out.contains("'backup/shop_age'="), "{ran:?}");
}
