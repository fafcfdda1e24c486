//! What breaks in a cluster, one after the other, while objects come due: `make faults` prints a
//! line a fault. Lost is a slot that neither started nor stands in the object's totals as missed;
//! doubled is a Job more than one for a slot.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod books;
mod many;
mod node;
mod volume;

use books::{Herd, Line, MYSQL};
use e2e::objects::quick;
use e2e::{cluster, eventually};
use serde_json::json;

const OBJECTS: usize = 10;

/// kubectl in the operator's namespace.
fn system(args: &[&str]) -> e2e::Output {
    cluster().kubectl(&[&["-n", "backup-system"], args].concat())
}

fn testbed(args: &[&str]) -> String {
    cluster().testbed(args).ok().stdout
}

/// A signal to a service of the cluster.
fn signal(service: &str, signal: &str) {
    let file = cluster().state().join("pid").join(service);
    let process = std::fs::read_to_string(file).unwrap();
    testbed(&["enter", "kill", &format!("-{signal}"), process.trim()]);
}

/// The alarm that etcd raises when its database has reached its quota or its disk is full: it
/// refuses what would add to it.
fn etcd_without_space(action: &str) {
    let body = json!({"action": action, "alarm": "NOSPACE"}).to_string();
    let url = "http://127.0.0.1:2379/v3/maintenance/alarm";
    testbed(&["enter", "curl", "-sSf", "-d", &body, url]);
}

fn nothing_can_be_written() {
    let note = ["create", "configmap", "note"];
    let refused = system(&note);
    assert!(
        refused.stderr.contains("database space exceeded"),
        "etcd is said to be full, and takes this: {refused:?}"
    );
}

fn rolled_out() {
    let deployment = "deployment/backup-operator";
    system(&["rollout", "status", deployment, "--timeout=300s"]).ok();
}

/// The deployment with this memory limit and request, its pod replaced rather than added to.
fn memory(limit: &str, request: &str, strategy: serde_json::Value) {
    let resources = json!({"limits": {"memory": limit}, "requests": {"memory": request}});
    let container = json!({"name": "operator", "resources": resources});
    let patch = json!({"spec": {
        "strategy": strategy,
        "template": {"spec": {"containers": [container]}},
    }});
    let patch = patch.to_string();
    system(&["patch", "deployment", "backup-operator", "-p", &patch]).ok();
}

fn out_of_memory() {
    memory(
        "5Mi",
        "4Mi",
        json!({"type": "Recreate", "rollingUpdate": null}),
    );
    eventually("the operator is out of memory", 120, || {
        system(&["get", "pods", "-o", "json"])
            .stdout
            .contains("OOMKilled")
    });
}

fn steal_the_lease() {
    let spec = json!({"spec": {"holderIdentity": "a-thief", "leaseTransitions": 1000}}).to_string();
    let patch = ["patch", "lease", "backup-operator", "--type=merge", "-p"];
    system(&[&patch[..], &[&spec]].concat()).ok();
}

/// The Service of the webhooks leads nowhere, or to the operator again.
fn webhooks(selector: &str) {
    let patch = json!({"spec": {"selector": {"app.kubernetes.io/name": selector}}}).to_string();
    let service = "service/backup-operator-webhook";
    system(&["patch", service, "--type=merge", "-p", &patch]).ok();
}

fn kill_the_operator() {
    let pod = cluster().operator_pod().unwrap();
    system(&["delete", "pod", &pod, "--force", "--grace-period=0"]).ok();
}

fn drain(node: &str) {
    // Pods of a minute ago may take longer to end; the node is closed all the same.
    let _ = cluster().kubectl(&[
        "drain",
        node,
        "--force",
        "--delete-emptydir-data",
        "--ignore-daemonsets",
        "--timeout=20s",
    ]);
    eventually("the operator is evicted", 60, || {
        cluster().operator_pod().is_none()
    });
}

/// Each fault at a slot of ten objects that come due each minute.
fn at_a_slot(lines: &mut Vec<Line>) {
    let ns = cluster().namespace("e2e-faults");
    let names: Vec<String> = (0..OBJECTS).map(|i| format!("tick-{i}")).collect();
    let manifests: Vec<String> = names.iter().map(|n| quick(n, "* * * * *", "")).collect();
    ns.apply(&manifests.join("---\n"));
    let nodes = cluster().get(&["nodes"]).unwrap();
    let node = nodes["items"][0]["metadata"]["name"].as_str().unwrap();
    let herd = Herd {
        ns: &ns,
        kind: MYSQL,
        names,
    };
    let mut row = |fault, seconds, breaks: &dyn Fn(), mends: &dyn Fn()| {
        let line = herd.fault(fault, seconds, breaks, mends);
        line.show();
        lines.push(line);
    };
    row("none", (45, 5), &|| {}, &|| {});
    row(
        "API server down for 20 s at the slot",
        (50, 10),
        &|| drop(testbed(&["stop", "apiserver"])),
        &|| drop(testbed(&["start", "apiserver"])),
    );
    row(
        "etcd stands still for 20 s at the slot",
        (50, 10),
        &|| signal("etcd", "STOP"),
        &|| signal("etcd", "CONT"),
    );
    row(
        "etcd without space for 25 s at the slot",
        (50, 15),
        &|| {
            etcd_without_space("ACTIVATE");
            nothing_can_be_written();
        },
        &|| etcd_without_space("DEACTIVATE"),
    );
    row(
        "Lease stolen 5 s before the slot",
        (55, 5),
        &steal_the_lease,
        &|| {},
    );
    row(
        "operator killed 3 s before the slot",
        (57, 1),
        &kill_the_operator,
        &|| {},
    );
    row(
        "node drained, the operator with it",
        (30, 15),
        &|| drain(node),
        &|| drop(cluster().kubectl(&["uncordon", node]).ok()),
    );
    row("operator out of memory", (30, 10), &out_of_memory, &|| {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
        memory("256Mi", "32Mi", rolling);
        rolled_out();
    });
    row(
        "webhook down, an object edited meanwhile",
        (45, 10),
        &|| {
            webhooks("nobody");
            let edit = ["annotate", "mysqlbackup.batch.isekiro.com", "tick-0"];
            ns.kubectl(&[&edit[..], &["note=x", "--overwrite"]].concat())
                .ok();
        },
        &|| webhooks("backup-operator"),
    );
}

#[test]
fn each_fault_loses_and_doubles_nothing() {
    let mut lines = vec![];
    Line::heading();
    at_a_slot(&mut lines);
    lines.push(volume::full());
    lines.push(node::full());
    lines.push(many::killed_among_ten_thousand());
    let bad = |l: &&Line| l.lost != 0 || l.doubled != 0;
    let bad: Vec<&str> = lines.iter().filter(bad).map(|l| l.fault).collect();
    assert!(bad.is_empty(), "slots were lost or doubled under: {bad:?}");
    let due: i64 = lines.iter().map(|l| l.due).sum();
    println!(
        "{} faults, {due} runs due, lost 0, doubled 0",
        lines.len() - 1
    );
}
