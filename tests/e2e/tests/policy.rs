//! What an administrator forbids pods of backups, on the cluster and with the webhooks off: the object says so, and no Job
//! is ever made for it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use e2e::objects::{owned_by, quick, quick_image};
use e2e::{Namespace, Output, cluster, eventually, wait_for};
use serde_json::Value;

/// The operator under a policy, without webhooks, for as long as it lives.
struct Policy;

fn set(settings: &[&str]) -> Output {
    let command = [
        "-n",
        "backup-system",
        "set",
        "env",
        "deployment/backup-operator",
    ];
    let done = cluster().kubectl(&[&command, settings].concat());
    let status = [
        "-n",
        "backup-system",
        "rollout",
        "status",
        "deployment/backup-operator",
        "--timeout=120s",
    ];
    cluster().kubectl(&status);
    done
}

impl Policy {
    fn begin() -> Self {
        let images = format!("ALLOWED_IMAGES=reg.example/db/*,{}", quick_image());
        let forbid = [
            "FORBID_HOST_PATH=true",
            "FORBID_SERVICE_ACCOUNTS=true",
            "FORBID_PRIVILEGED=true",
            "ALLOWED_PRIVILEGES=Capability:NET_RAW",
            "ENABLE_WEBHOOKS=false",
        ];
        set(&[&[images.as_str()], &forbid[..]].concat()).ok();
        Self
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        // A test that failed already says why.
        let _ = set(&[
            "ALLOWED_IMAGES-",
            "FORBID_HOST_PATH-",
            "FORBID_SERVICE_ACCOUNTS-",
            "FORBID_PRIVILEGED-",
            "ALLOWED_PRIVILEGES-",
            "ENABLE_WEBHOOKS=true",
        ]);
    }
}

fn mysql(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '* * * * *'
  source: {{host: db, credentialsSecretRef: {{name: db}}}}
{fields}
"
    )
}

const CLAIM: &str = "  destination: {volume: {persistentVolumeClaim: {claimName: data}}}\n";
const NODE: &str = "{hostPath: {path: /var/backups}}";

/// Resource, name, manifest and what the condition says of each.
fn forbidden() -> Vec<(&'static str, &'static str, String, Vec<&'static str>)> {
    let mysqls = "mysqlbackups.batch.isekiro.com";
    vec![
        (
            mysqls,
            "image",
            mysql("image", "  image: evil.example/x:1\n  args: [--help]"),
            vec!["\"evil.example/x:1\"", "--allowed-images"],
        ),
        (
            mysqls,
            "node",
            mysql("node", &format!("  destination: {{volume: {NODE}}}")),
            vec![
                "\"/var/backups\"",
                "use a PersistentVolumeClaim (--forbid-host-path)",
            ],
        ),
        (
            mysqls,
            "verification",
            mysql(
                "verification",
                &format!("{CLAIM}  verify: {{mode: Restore, volume: {NODE}}}"),
            ),
            vec![
                "\"/var/backups\"",
                "use a PersistentVolumeClaim (--forbid-host-path)",
            ],
        ),
        (
            mysqls,
            "account",
            mysql("account", &format!("{CLAIM}  serviceAccountName: admin")),
            vec![
                "\"admin\" is not the default one",
                "remove it (--forbid-service-accounts)",
            ],
        ),
        (
            mysqls,
            "privileged",
            mysql(
                "privileged",
                &format!(
                    "{CLAIM}  securityContext: {{privileged: true, capabilities: {{add: [NET_RAW, SYS_ADMIN]}}}}"
                ),
            ),
            vec![
                "sets privileged: true (--forbid-privileged)",
                "ask for Capability:SYS_ADMIN to be added to --allowed-privileges",
            ],
        ),
        (
            "backups.gobackup.io",
            "archived",
            format!(
                "apiVersion: gobackup.io/v1
kind: Database
metadata: {{name: main}}
spec: {{type: mysql, config: {{host: db, database: shop}}}}
---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: disk}}
spec: {{type: local, config: {{path: /b}}, volume: {NODE}}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: archived}}
spec:
  databaseRefs: [{{name: main}}]
  storageRefs: [{{name: disk}}]
  job: {{image: 'evil.example/x:1', serviceAccountName: admin}}
"
            ),
            vec![
                "--allowed-images",
                "--forbid-host-path",
                "--forbid-service-accounts",
            ],
        ),
        (
            "restores.batch.isekiro.com",
            "again",
            format!(
                "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: again}}
spec:
  from: {{location: {{destination: {{volume: {NODE}}}, key: k}}}}
  to: {{host: db, credentialsSecretRef: {{name: db}}}}
"
            ),
            vec!["\"/var/backups\"", "--forbid-host-path"],
        ),
    ]
}

fn condition(ns: &Namespace, resource: &str, name: &str, type_: &str) -> Option<Value> {
    let object = ns.get(&[resource, name])?;
    let conditions = object["status"]["conditions"].as_array()?.clone();
    conditions.into_iter().find(|c| c["type"] == type_)
}

#[test]
fn what_is_forbidden_gets_a_condition_and_no_job_and_heals_with_the_policy() {
    let ns = cluster().namespace("e2e-policy");
    let policy = Policy::begin();
    let never = "0 0 31 2 *";
    ns.apply(&quick("good", never, ""));
    for (resource, name, manifest, words) in forbidden() {
        ns.apply(&manifest);
        let accepted = wait_for(&format!("{name} is refused"), 60, || {
            condition(&ns, resource, name, "Accepted").filter(|c| c["status"] == "False")
        });
        assert_eq!(accepted["reason"], "PolicyDenied", "{name}: {accepted}");
        let message = accepted["message"].as_str().unwrap();
        assert!(message.contains("policy of the operator: "), "{message}");
        for word in words {
            assert!(message.contains(word), "{message} lacks {word:?}");
        }
    }
    // By hand neither, and what the policy allows runs.
    ns.kubectl(&[
        "create",
        "secret",
        "generic",
        "db",
        "--from-literal=username=u",
        "--from-literal=password=p",
    ])
    .ok();
    let asked = ns.backup(&["run-now", "image", "--wait", "--timeout", "1m"]);
    assert_ne!(asked.code, 0);
    assert!(asked.all().contains("--allowed-images"), "{}", asked.all());
    ns.backup(&["run-now", "good", "--wait", "--timeout", "2m"])
        .ok();
    // A minute has its slot.
    let later = e2e::wait::unix_seconds() + 61;
    eventually("a slot has passed", 90, || {
        e2e::wait::unix_seconds() > later
    });
    let jobs = ns.jobs();
    assert_eq!(
        owned_by(&jobs, "MysqlBackup", "good").len(),
        jobs.len(),
        "{jobs:?}"
    );

    drop(policy);
    for (resource, name, _, _) in forbidden().into_iter().filter(|f| f.1 != "again") {
        wait_for(&format!("{name} is accepted"), 90, || {
            condition(&ns, resource, name, "Accepted").filter(|c| c["status"] == "True")
        });
    }
}
