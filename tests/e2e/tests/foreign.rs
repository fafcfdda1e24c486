//! Others at work on the same objects: noticed, named, nothing runs twice, and runs go on when they
//! are gone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::{Mutex, PoisonError};

use crds::labels::SCHEDULED_AT;
use e2e::objects::{owned_by, quick, quick_image};
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::{Value, json};

/// The tests take turns: one of them stops the operator of the others.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const KINDS: [(&str, &str, &str); 2] = [
    (
        "MysqlBackup",
        "batch.isekiro.com/v1",
        "mysqlbackups.batch.isekiro.com",
    ),
    ("Backup", "gobackup.io/v1", "backups.gobackup.io"),
];

/// A minutely object of each kind, named like its kind in lower case.
fn apply(ns: &Namespace) {
    ns.apply(&quick("mysqlbackup", "* * * * *", ""));
    ns.secret("db", &[("password", "marker")]);
    ns.apply(
        "apiVersion: gobackup.io/v1
kind: Database
metadata: {name: db}
spec: {type: redis, config: {host: 127.0.0.1, port: 1, mode: sync}}
---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {name: store}
spec: {type: local, volume: {hostPath: {path: /tmp}}, config: {path: /tmp/backups}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {name: backup}
spec:
  databaseRefs: [{apiGroup: gobackup.io, type: redis, name: db}]
  storageRefs: [{apiGroup: gobackup.io, type: local, name: store}]
  schedule: {cron: '* * * * *', successfulJobsHistoryLimit: 100, failedJobsHistoryLimit: 100}
",
    );
    for (kind, _, resource) in KINDS {
        wait_for("the object is accepted", 60, || {
            condition(ns, resource, kind, "Accepted").filter(|c| c["status"] == "True")
        });
    }
}

fn object(ns: &Namespace, resource: &str, kind: &str) -> Value {
    ns.get(&[resource, &kind.to_lowercase()]).unwrap()
}

fn condition(ns: &Namespace, resource: &str, kind: &str, type_: &str) -> Option<Value> {
    let object = object(ns, resource, kind);
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|c| c["type"] == type_).cloned()
}

/// The slots of the Jobs that carry ours as owner, sorted.
fn slots(ns: &Namespace, kind: &str) -> Vec<String> {
    let jobs = ns.jobs();
    let owned = owned_by(&jobs, kind, &kind.to_lowercase());
    let noted = owned
        .iter()
        .filter_map(|j| j["metadata"]["annotations"][SCHEDULED_AT].as_str());
    let mut slots: Vec<String> = noted.map(str::to_owned).collect();
    slots.sort();
    slots
}

fn none_doubled(ns: &Namespace, kind: &str) {
    let all = slots(ns, kind);
    let mut once = all.clone();
    once.dedup();
    assert_eq!(all, once, "a slot of {kind} was started twice");
}

fn owner(ns: &Namespace, kind: &str, api_version: &str, resource: &str) -> Value {
    let object = object(ns, resource, kind);
    json!({
        "apiVersion": api_version, "kind": kind, "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

fn pod() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": quick_image(), "imagePullPolicy": "IfNotPresent", "args": ["--help"]}]}})
}

/// Another's object of `what` appears for each kind; returns what each is called.
fn intrude(ns: &Namespace, what: &str) -> Vec<String> {
    let mut names = vec![];
    for (kind, api_version, resource) in KINDS {
        let name = format!("others-{}", kind.to_lowercase());
        let spec = match what {
            "CronJob" => {
                json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pod()}}})
            }
            _ => json!({"template": pod()}),
        };
        let owner = owner(ns, kind, api_version, resource);
        let object = json!({
            "apiVersion": "batch/v1", "kind": what, "spec": spec,
            "metadata": {"name": name, "ownerReferences": [owner]},
        });
        ns.apply(&object.to_string());
        names.push(name);
    }
    names
}

/// While another's object is there nothing starts and the condition names it; then runs go on.
fn noticed(ns: &Namespace, what: &str, end: impl Fn(&str)) {
    let names = intrude(ns, what);
    for ((kind, _, resource), name) in KINDS.iter().zip(&names) {
        let told = wait_for("the other is noticed", 30, || {
            condition(ns, resource, kind, "Accepted").filter(|c| c["status"] == "False")
        });
        assert_eq!(told["reason"], "ForeignController", "{told}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(name), "{message}");
    }
    let before: Vec<_> = KINDS.iter().map(|(kind, ..)| slots(ns, kind)).collect();
    // A slot comes due meanwhile.
    e2e::wait::until_second(0);
    e2e::wait::until_second(8);
    let after: Vec<_> = KINDS.iter().map(|(kind, ..)| slots(ns, kind)).collect();
    assert_eq!(before, after, "{what}");
    names.iter().for_each(|name| end(name));
    for ((kind, _, resource), before) in KINDS.iter().zip(&before) {
        wait_for("the object is accepted again", 30, || {
            condition(ns, resource, kind, "Accepted").filter(|c| c["status"] == "True")
        });
        eventually("runs go on", 75, || slots(ns, kind).len() > before.len());
        none_doubled(ns, kind);
    }
}

#[test]
fn a_cronjob_that_owns_or_a_job_of_another_stops_runs_until_it_is_gone() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-foreign");
    apply(&ns);
    noticed(&ns, "CronJob", |name| {
        ns.kubectl(&[
            "patch",
            "cronjob",
            name,
            "-p",
            r#"{"spec":{"suspend":true}}"#,
        ])
        .ok();
    });
    noticed(&ns, "Job", |name| {
        ns.kubectl(&["delete", "job", name]).ok();
    });
}

const SECOND: &str = "e2e-second";

/// A second operator, in a namespace of its own, for as long as it lives; the first one is back
/// when it ends.
struct Second;

impl Second {
    fn start(watched: &str) -> Self {
        let cluster = cluster();
        cluster.kubectl(&["create", "namespace", SECOND]).ok();
        let first = cluster
            .get(&["-n", "backup-system", "deployment", "backup-operator"])
            .unwrap();
        let mut spec = first["spec"].clone();
        let container = &mut spec["template"]["spec"]["containers"][0];
        let env = container["env"].as_array_mut().unwrap();
        env.retain(|e| e["name"] != "WATCH_NAMESPACES");
        env.push(json!({"name": "WATCH_NAMESPACES", "value": watched}));
        spec["replicas"] = json!(1);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io"});
        let bind = |kind: &str, name: &str| {
            let mut role = role.clone();
            role["kind"] = json!(kind);
            role["name"] = json!(name);
            role
        };
        let subjects =
            json!([{"kind": "ServiceAccount", "name": "backup-operator", "namespace": SECOND}]);
        let lease = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]}]);
        let api = "rbac.authorization.k8s.io/v1";
        let named = |name: &str| json!({"name": name, "namespace": SECOND});
        let items = json!([
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("backup-operator")},
            {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": SECOND},
             "roleRef": bind("ClusterRole", "backup-operator"), "subjects": subjects},
            {"apiVersion": api, "kind": "Role", "metadata": named("lease"), "rules": lease},
            {"apiVersion": api, "kind": "RoleBinding", "metadata": named("lease"),
             "roleRef": bind("Role", "lease"), "subjects": subjects},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named("backup-operator"), "spec": spec},
        ]);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let second = Self;
        cluster
            .kubectl_with(&["apply", "-f", "-"], &list.to_string())
            .ok();
        cluster
            .kubectl(&[
                "-n",
                SECOND,
                "rollout",
                "status",
                "deployment/backup-operator",
                "--timeout=120s",
            ])
            .ok();
        second
    }
}

fn scale(namespace: &str, replicas: &str) {
    let replicas = format!("--replicas={replicas}");
    let _ = cluster().kubectl(&[
        "-n",
        namespace,
        "scale",
        "deployment/backup-operator",
        &replicas,
    ]);
}

impl Drop for Second {
    fn drop(&mut self) {
        // A test that failed already says why.
        let _ = cluster().kubectl(&["delete", "clusterrolebinding", SECOND, "--ignore-not-found"]);
        let _ = cluster().kubectl(&["delete", "namespace", SECOND, "--ignore-not-found"]);
        scale("backup-system", "1");
        let _ = cluster().kubectl(&[
            "-n",
            "backup-system",
            "rollout",
            "status",
            "deployment/backup-operator",
            "--timeout=120s",
        ]);
    }
}

/// Who holds the claim, and what condition Exclusive says.
fn claim(ns: &Namespace, (kind, _, resource): (&str, &str, &str)) -> (String, Option<String>) {
    let holder = object(ns, resource, kind)["status"]["controller"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    let told = condition(ns, resource, kind, "Exclusive");
    (holder, told.map(|c| c["message"].to_string()))
}

#[test]
fn a_second_installation_is_named_and_follows_the_first_when_it_is_gone() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-foreign-two");
    apply(&ns);
    let (first, second) = (
        "backup-system/backup-operator",
        "e2e-second/backup-operator",
    );
    let there = Second::start("e2e-foreign-two");
    for kind in KINDS {
        let (holder, told) = wait_for("the second installation is named", 60, || {
            Some(claim(&ns, kind)).filter(|(_, told)| told.is_some())
        });
        assert_eq!(holder, first);
        let told = told.unwrap();
        assert!(told.contains(first) && told.contains(second), "{told}");
    }
    let counted = |ns: &Namespace| KINDS.map(|(kind, ..)| slots(ns, kind).len());
    let before = counted(&ns);
    eventually("both at work, a slot is started", 75, || {
        counted(&ns)
            .iter()
            .zip(before)
            .all(|(now, before)| *now > before)
    });
    scale("backup-system", "0");
    for kind in KINDS {
        eventually("the second takes over", 150, || {
            claim(&ns, kind).0 == second
        });
    }
    let before = counted(&ns);
    eventually("the second starts runs", 75, || {
        counted(&ns)
            .iter()
            .zip(before)
            .all(|(now, before)| *now > before)
    });
    drop(there);
    for kind in KINDS {
        eventually("the first takes over again, alone", 150, || {
            claim(&ns, kind) == (first.to_owned(), None)
        });
    }
    let before = counted(&ns);
    eventually("the first starts runs", 75, || {
        counted(&ns)
            .iter()
            .zip(before)
            .all(|(now, before)| *now > before)
    });
    for (kind, ..) in KINDS {
        none_doubled(&ns, kind);
    }
}
