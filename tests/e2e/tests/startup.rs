//! Why a run does not start, and which attempt it is: said in the same words by status, list, describe,
//! logs and whoever waits, and known before anything is created where it can be.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use e2e::{Namespace, cluster, wait_for};
use serde_json::{Value, json};

const MYSQL: &str = "mysqlbackups.batch.isekiro.com";

fn manifest(name: &str, secret: &str, more: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '0 0 29 2 *'
  source: {{host: {HOST}, databases: [shop], credentialsSecretRef: {{name: {secret}}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
{more}
"
    )
}

fn prepare(name: &str) -> Namespace {
    database();
    let ns = cluster().namespace(name);
    ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.secret(
        "typo",
        &[("username", BACKUP_USER), ("pasword", BACKUP_PASSWORD)],
    );
    ns.secret(
        "wrong",
        &[("username", BACKUP_USER), ("password", "no-such-password")],
    );
    ns
}

/// The newest run, once it says this.
fn says(ns: &Namespace, name: &str, words: &str) -> Value {
    wait_for(&format!("{name}: {words}"), 120, || {
        let run = ns.mysql_backup(name)?["status"]["runs"][0].clone();
        run["message"].as_str()?.contains(words).then_some(run)
    })
}

/// Every command that shows the run, or waits for it, has these words.
fn all_say(ns: &Namespace, name: &str, words: &str) {
    for args in [
        vec!["describe", name],
        vec!["runs", name, "-o", "wide"],
        vec!["wait", name, "--timeout", "5s"],
        vec!["logs", name],
    ] {
        let ran = ns.backup(&args);
        assert!(ran.all().contains(words), "{args:?}: {}", ran.all());
    }
}

#[test]
fn u9_a_key_that_a_secret_does_not_have() {
    let ns = prepare("e2e-startup-key");
    ns.apply(&manifest("shop", "typo", "  startupDeadlineSeconds: 60"));
    let refused = ns.backup(&["run-now", "shop", "--wait"]).code(5);
    assert!(
        refused.stderr.contains(
            "Secret typo has no key \"password\" (did you mean \"pasword\"?); nothing was created"
        ),
        "{}",
        refused.stderr
    );
    assert_eq!(ns.jobs(), Vec::<Value>::new());
    let to = [
        "restore", "shop", "--to", HOST, "--secret", "typo", "--name", "copy",
    ];
    ns.backup(&to).code(5);
    assert!(ns.get(&["restores.batch.isekiro.com", "copy"]).is_none());
    // By its schedule it would start all the same; then the kubelet's words are everywhere.
    ns.ask(
        MYSQL,
        "shop",
        json!({ "action": "Backup", "id": "by-hand" }),
    );
    let run = says(&ns, "shop", "password");
    assert_eq!(run["phase"], "Pending", "{run}");
    all_say(&ns, "shop", "references non-existent secret key: password");
    let listed = ns.backup(&["list"]).ok().stdout;
    assert!(listed.contains("Pending"), "{listed}");
}

#[test]
fn u9_a_pod_that_fits_no_node() {
    let ns = prepare("e2e-startup-node");
    ns.apply(&manifest(
        "shop",
        "db",
        "  nodeSelector: {no: such}\n  startupDeadlineSeconds: 60",
    ));
    let waited = ns
        .backup(&["run-now", "shop", "--wait", "--timeout", "20s"])
        .code(124);
    assert!(
        waited.stderr.contains("Unschedulable: "),
        "{}",
        waited.stderr
    );
    says(&ns, "shop", "nodes are available");
    all_say(&ns, "shop", "nodes are available");
}

#[test]
fn u9_attempts_of_one_run() {
    let ns = prepare("e2e-startup-retry");
    ns.apply(&manifest("shop", "wrong", "  backoffLimit: 1"));
    let failed = ns
        .backup(&["run-now", "shop", "--wait", "--timeout", "4m"])
        .code(4);
    assert!(
        failed
            .stderr
            .contains("all 2 attempts failed; the last: access denied"),
        "{}",
        failed.stderr
    );
    let run = says(&ns, "shop", "all 2 attempts failed; the last: ");
    assert_eq!(
        (&run["result"], &run["reason"]),
        (&json!("Failed"), &json!("AccessDenied")),
        "{run}"
    );
    // The run began with its Job: between two attempts a Job waits ten seconds.
    let at = |field: &str| {
        let text = run[field].as_str().unwrap();
        chrono::DateTime::parse_from_rfc3339(text).unwrap()
    };
    assert!(
        (at("completionTime") - at("startTime")).num_seconds() >= 10,
        "{run}"
    );
    let page = ns
        .backup(&["describe", run["name"].as_str().unwrap()])
        .ok()
        .stdout;
    assert!(page.contains("all 2 attempts failed"), "{page}");
    assert_eq!(page.matches("\nPod:").count(), 2, "{page}");
}
