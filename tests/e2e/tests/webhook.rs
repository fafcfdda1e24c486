//! Admission on a real API server: what people read when a manifest is wrong, and what is filled in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use crds::labels::{SCHEDULE_SINCE, SUSPENDED_BY, SUSPENDED_SINCE};
use crds::request::{Action, Request};
use crds::time::parse_rfc3339;
use e2e::{Namespace, Output, cluster, wait_for};
use serde_json::{Value, json};

const ORIGINAL: &str = include_str!("../../../deploy/samples/mysqlbackup-original.yaml");
const GOOD: &str = "  schedule: '0 3 * * *'";

/// One test at a time: one of them turns the webhooks off.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn manifest(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {{name: {name}}}\nspec:\n  image: there.invalid/mine\n{fields}\n"
    )
}

/// Name, spec, field path, and a piece of the remedy.
const TWELVE: [(&str, &str, &str, &str); 12] = [
    (
        "minute",
        "  schedule: '61 * * * *'",
        "spec.schedule",
        "use numbers 0-59",
    ),
    (
        "sunday",
        "  schedule: '0 0 * * 7'",
        "spec.schedule",
        "Sunday is 0 or SUN",
    ),
    (
        "seconds",
        "  schedule: '0 0 3 * * *'",
        "spec.schedule",
        "there is no field for seconds",
    ),
    (
        "tz",
        "  schedule: 'TZ=Asia/Shanghai 0 3 * * *'",
        "spec.schedule",
        "put the zone's name in timeZone",
    ),
    (
        "descriptor",
        "  schedule: '@Daily'",
        "spec.schedule",
        "use @yearly",
    ),
    (
        "zone",
        "  schedule: '0 3 * * *'\n  timeZone: Europe/Berln",
        "spec.timeZone",
        "did you mean \"Europe/Berlin\"?",
    ),
    (
        "twice",
        "  schedule: '0 3 * * *'\n  volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]",
        "spec.volumes[1].name",
        "give each volume its own name",
    ),
    (
        "mount",
        "  schedule: '0 3 * * *'\n  volumeMounts: [{name: data, mountPath: /mnt}]",
        "spec.volumeMounts[0].name",
        "add it to spec.volumes",
    ),
    (
        "prefix",
        "  schedule: '0 3 * * *'\n  podMetadata: {labels: {batch.isekiro.com/owner-uid: x}}",
        "spec.podMetadata",
        "use another key",
    ),
    (
        "source",
        "  schedule: '0 3 * * *'\n  source: {host: db, socket: /run/mysqld.sock}",
        "spec.source",
        "keep one",
    ),
    (
        "destination",
        "  schedule: '0 3 * * *'\n  destination: {s3: {bucket: b}, volume: {nfs: {server: s, path: /}}}",
        "spec.destination",
        "exactly one of volume, s3, storageRef",
    ),
    (
        "encryption",
        "  schedule: '0 3 * * *'\n  encryption: {age: {recipients: []}}",
        "spec.encryption.age",
        "set recipients or recipientsSecretKeyRef",
    ),
];

/// Objects of gobackup.io that lack something: manifest, and what is said of each.
const GOBACKUP_KINDS: [(&str, &[&str]); 4] = [
    (
        "apiVersion: gobackup.io/v1
kind: Storage
metadata: {name: disk}
spec: {type: local, config: {path: /backups}}
",
        &[
            "Storage disk: spec.volume: is not set: the archive would be written into the pod and deleted with it; set a volume on the Storage, or mount one over its path in the Backup's spec.job",
        ],
    ),
    (
        "apiVersion: storage.gobackup.io/v1
kind: S3
metadata: {name: cloud}
spec: {bucket: b, accessKeyID: k}
",
        &[
            "S3 cloud: spec: has one of accessKeyID and secretAccessKey; set both, or neither to use the pod's own identity",
        ],
    ),
    (
        "apiVersion: database.gobackup.io/v1
kind: PostgreSQL
metadata: {name: old}
spec: {username: u, tables: []}
",
        &[
            "PostgreSQL old: spec.host: is not set; name the server's host (localhost is the backup's own pod)",
            "PostgreSQL old: spec.database: is not set; name a database, or write a Database of type postgresql with all_databases: true",
        ],
    ),
    (
        "apiVersion: gobackup.io/v1
kind: Backup
metadata: {name: all}
spec:
  databaseRefs: [{name: old}]
  storageRefs: [{name: disk}, {name: cloud}]
  compressWith: {type: rar}
",
        &[
            "spec.compressWith.type: unknown compression \"rar\"; use tgz, zst, xz, bz2 or another of gobackup's types, or tar for none",
        ],
    ),
];

/// The condition of the Backup says what admission said of it and its parts.
fn gobackup_ends_as_condition(ns: &Namespace) {
    let sentences = || GOBACKUP_KINDS.iter().flat_map(|(_, sentences)| *sentences);
    wait_for("the condition says all of it", 60, || {
        let backup = ns.get(&["backups.gobackup.io", "all"])?;
        let conditions = backup["status"]["conditions"].as_array()?.clone();
        let resolved = conditions
            .iter()
            .find(|c| c["type"] == "ReferencesResolved")?;
        let message = resolved["message"].as_str()?.to_owned();
        (resolved["status"] == "False" && sentences().all(|s| message.contains(s))).then_some(())
    });
    assert!(ns.jobs().is_empty());
}

/// Waits until a written object has passed the webhooks.
fn served(ns: &Namespace) {
    wait_for("the webhooks answer", 60, || {
        let bad = manifest("probe", TWELVE[0].1);
        let output = cluster().kubectl_with(
            &["-n", &ns.name, "create", "--dry-run=server", "-f", "-"],
            &bad,
        );
        (output.code != 0).then_some(())
    });
}

/// An operator without webhooks for as long as it lives.
struct WebhooksOff;

fn set_webhooks(value: &str) -> Output {
    let setting = format!("ENABLE_WEBHOOKS={value}");
    let deployment = "deployment/backup-operator";
    cluster().kubectl(&["-n", "backup-system", "set", "env", deployment, &setting])
}

impl WebhooksOff {
    fn begin() -> Self {
        set_webhooks("false").ok();
        Self
    }
}

impl Drop for WebhooksOff {
    fn drop(&mut self) {
        // A test that failed already says why.
        let _ = set_webhooks("true");
    }
}

fn annotations(object: &Value) -> Value {
    object["metadata"]["annotations"].clone()
}

#[test]
fn twelve_wrong_manifests_print_twelve_messages() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-webhook-twelve");
    served(&ns);
    for (name, fields, path, remedy) in TWELVE {
        let output = ns.try_apply(&manifest(name, fields)).code(1);
        println!("{}", output.stderr.trim_end());
        let wanted = format!("The MysqlBackup \"{name}\" is invalid: {path}: ");
        assert!(output.stderr.starts_with(&wanted), "{}", output.stderr);
        assert!(output.stderr.contains(remedy), "{}", output.stderr);
        assert_eq!(
            output.stderr.trim_end().lines().count(),
            1,
            "{}",
            output.stderr
        );
        assert!(ns.mysql_backup(name).is_none());
    }
    // Two mistakes are told at once.
    let both = format!("{}\n  retention: {{maxAge: a week}}", TWELVE[0].1);
    let output = ns.try_apply(&manifest("both", &both)).code(1);
    assert!(
        output.stderr.contains("* spec.schedule: "),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("* spec.retention.maxAge: "),
        "{}",
        output.stderr
    );
}

#[test]
fn without_webhooks_the_same_twelve_end_as_conditions() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-webhook-off");
    let off = WebhooksOff::begin();
    for (name, fields, _, _) in TWELVE {
        wait_for("the webhook of the old pod is gone", 60, || {
            (ns.try_apply(&manifest(name, fields)).code == 0).then_some(())
        });
    }
    for (name, _, path, remedy) in TWELVE {
        let accepted = wait_for("the condition Accepted", 60, || {
            let object = ns.mysql_backup(name)?;
            let conditions = object["status"]["conditions"].as_array()?.clone();
            conditions.into_iter().find(|c| c["type"] == "Accepted")
        });
        let message = accepted["message"].as_str().unwrap();
        println!("{name}: {message}");
        assert_eq!(accepted["status"], "False", "{name}");
        assert!(
            message.contains(path) && message.contains(remedy),
            "{name}: {message}"
        );
    }
    for (manifest, _) in GOBACKUP_KINDS {
        let output = ns.try_apply(manifest).ok();
        assert!(!output.stderr.contains("Warning"), "{}", output.stderr);
    }
    gobackup_ends_as_condition(&ns);
    drop(off);
    let rolled_out = [
        "-n",
        "backup-system",
        "rollout",
        "status",
        "deployment/backup-operator",
        "--timeout=120s",
    ];
    cluster().kubectl(&rolled_out).ok();
    served(&ns);
    // They stay editable, with a warning, and can be put right.
    let labelled = ns.kubectl(&["label", "mysqlbackup", "tz", "team=a"]).ok();
    assert!(
        labelled.stderr.contains("Warning: still wrong"),
        "{}",
        labelled.stderr
    );
    ns.apply(&manifest("tz", GOOD));
}

#[test]
fn gobackup_kinds_are_warned_of_and_never_refused_and_a_wrong_restore_is_refused() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-webhook-gobackup");
    served(&ns);
    for (manifest, sentences) in GOBACKUP_KINDS {
        let output = ns.try_apply(manifest).ok();
        println!("{}", output.stderr.trim_end());
        let said: Vec<&str> = output.stderr.lines().collect();
        let wanted: Vec<String> = sentences.iter().map(|s| format!("Warning: {s}")).collect();
        assert_eq!(said, wanted);
    }
    gobackup_ends_as_condition(&ns);
    // What is put right is silent.
    let disk = "{type: local, config: {path: /backups}, volume: {nfs: {server: s, path: /}}}";
    let output = ns
        .try_apply(
            &GOBACKUP_KINDS[0]
                .0
                .replace("{type: local, config: {path: /backups}}", disk),
        )
        .ok();
    assert_eq!(output.stderr, "");

    let restore = |more: &str| {
        format!(
            "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: again}}
spec:
  from: {{name: shop, latest: true}}
  to: {{host: db, credentialsSecretRef: {{name: db}}}}
{more}"
        )
    };
    let mounts = "  volumeMounts: [{name: data, mountPath: /mnt}]\n";
    let label = "  podMetadata: {labels: {batch.isekiro.com/owner-uid: x}}\n";
    for (more, path, remedy) in [
        (label, "spec.podMetadata", "use another key"),
        (
            mounts,
            "spec.volumeMounts[0].name",
            "add it to spec.volumes",
        ),
    ] {
        let output = ns.try_apply(&restore(more)).code(1);
        let wanted = format!("The Restore \"again\" is invalid: {path}: ");
        assert!(output.stderr.starts_with(&wanted), "{}", output.stderr);
        assert!(output.stderr.contains(remedy), "{}", output.stderr);
    }
    ns.apply(&restore(""));
}

#[test]
fn the_original_passes_is_filled_in_and_warned_of_its_password() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-webhook-original");
    served(&ns);
    let output = ns.try_apply(ORIGINAL).ok();
    assert!(
        output
            .stderr
            .starts_with("Warning: spec.backupEnvs: PASSWORD"),
        "{}",
        output.stderr
    );
    assert!(!output.all().contains("xxxxx"));
    let spec = ns.mysql_backup("mysqlbackup-sample").unwrap()["spec"].clone();
    let filled = json!({"suspend": false, "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 1, "concurrencyPolicy": "Allow", "restartPolicy": "OnFailure"});
    for (field, value) in filled.as_object().unwrap() {
        assert_eq!(&spec[field], value, "{field}");
    }
    // Applied again it is unchanged: what was filled in is no difference.
    let again = ns.try_apply(ORIGINAL).ok();
    assert!(again.stdout.contains("unchanged"), "{}", again.stdout);
}

#[test]
fn the_server_says_when_and_who() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-webhook-who");
    served(&ns);
    ns.apply(&manifest("shop", GOOD));
    let alice = |args: &[&str]| {
        let user = ["--as=alice", "--as-group=system:masters"];
        ns.kubectl(&[args, &user].concat()).ok();
        annotations(&ns.mysql_backup("shop").unwrap())
    };
    let patch = |patch: Value| {
        alice(&[
            "patch",
            "mysqlbackup",
            "shop",
            "--type=merge",
            "-p",
            &patch.to_string(),
        ])
    };
    let before = chrono::Utc::now() - chrono::TimeDelta::seconds(5);
    let fresh = |stamp: &Value| {
        let at = parse_rfc3339(stamp.as_str().unwrap()).unwrap();
        assert!(
            at > before && at < chrono::Utc::now() + chrono::TimeDelta::seconds(5),
            "{at}"
        );
    };
    fresh(&patch(json!({"spec": {"schedule": "5 3 * * *"}}))[SCHEDULE_SINCE]);
    let posing =
        json!({"metadata": {"annotations": {SUSPENDED_BY: "the boss"}}, "spec": {"suspend": true}});
    let suspended = patch(posing);
    fresh(&suspended[SUSPENDED_SINCE]);
    assert_eq!(suspended[SUSPENDED_BY], "alice");
    let resumed = patch(json!({"spec": {"suspend": false}}));
    assert_eq!(
        (&resumed[SUSPENDED_SINCE], &resumed[SUSPENDED_BY]),
        (&Value::Null, &Value::Null)
    );

    // Of an expired request the operator makes no run; it echoes who asked.
    let mut request = Request::new(Action::Backup, "7f3a", "the boss", chrono::Utc::now());
    request.expires_at = crds::time::rfc3339(chrono::Utc::now() - chrono::TimeDelta::seconds(1));
    let key = Request::annotation_key("7f3a");
    let asking = format!("{key}={}", request.annotation_value());
    alice(&["annotate", "mysqlbackup", "shop", &asking]);
    let by = wait_for("the request is echoed", 30, || {
        let object = ns.mysql_backup("shop")?;
        let requests = object["status"]["requests"].as_array()?.clone();
        requests.into_iter().find(|r| r["id"] == "7f3a")
    });
    assert_eq!(by["by"], "alice", "{by}");

    // The same of a Backup, of which all else stays as it was written.
    ns.apply("{apiVersion: gobackup.io/v1, kind: Backup, metadata: {name: nightly}, spec: {storageRefs: [{name: none, keep: 2}]}}");
    let written = ns.get(&["backups.gobackup.io", "nightly"]).unwrap();
    let answer = ns.kubectl(&[
        "annotate",
        "backups.gobackup.io",
        "nightly",
        &asking,
        "--as=alice",
        "--as-group=system:masters",
        "-o",
        "json",
    ]);
    let signed: Value = serde_json::from_str(&answer.ok().stdout).unwrap();
    let request = annotations(&signed)[&key].as_str().unwrap().to_owned();
    assert!(
        request.contains("alice") && !request.contains("the boss"),
        "{request}"
    );
    assert_eq!(signed["spec"], written["spec"]);
}

#[test]
fn the_operator_reads_no_secret_but_its_own() {
    let may = |verb: &str, what: &str, namespace: &str| {
        let user = "--as=system:serviceaccount:backup-system:backup-operator";
        let output = cluster().kubectl(&["auth", "can-i", verb, what, "-n", namespace, user]);
        output.stdout.trim() == "yes"
    };
    let own = "secrets/backup-operator-webhook-cert";
    assert!(may("get", own, "backup-system") && may("update", own, "backup-system"));
    for (verb, what, namespace) in [
        ("get", "secrets", "backup-system"),
        ("get", own, "default"),
        ("list", "secrets", "backup-system"),
        ("watch", "secrets", "backup-system"),
        ("create", "secrets", "backup-system"),
        ("delete", own, "backup-system"),
        ("get", "validatingwebhookconfigurations/other", "default"),
        (
            "update",
            "validatingwebhookconfigurations/backup-operator",
            "default",
        ),
        ("list", "mutatingwebhookconfigurations", "default"),
        ("create", "pods/exec", "default"),
    ] {
        assert!(!may(verb, what, namespace), "{verb} {what} in {namespace}");
    }
}

/// Who may patch, and no more, can't have everything removed that an object stored.
#[test]
fn o11_a_request_to_remove_everything_takes_the_right_to_delete() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-removal");
    served(&ns);
    ns.apply(&manifest("shop", GOOD));
    let role = |verbs: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: mallory}}
rules: [{{apiGroups: [batch.isekiro.com], resources: [mysqlbackups], verbs: [{verbs}]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: mallory}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: mallory}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}}]
"
        )
    };
    ns.apply(&role("get, patch"));
    let mut request = Request::new(Action::Prune, "7", "", chrono::Utc::now());
    request.options.all = true;
    let note = format!(
        "{}={}",
        Request::annotation_key("7"),
        request.annotation_value()
    );
    let ask = ["--as=mallory", "annotate", "mysqlbackup", "shop", &note];
    let refused = ns.kubectl(&ask).code(1);
    let words = ["mallory", "the right to delete"];
    assert!(
        words.iter().all(|w| refused.stderr.contains(w)),
        "{}",
        refused.stderr
    );
    ns.apply(&role("get, patch, delete"));
    // An authorizer may learn of it a moment later.
    wait_for("the right counts", 30, || {
        (ns.kubectl(&ask).code == 0).then_some(())
    });
}
