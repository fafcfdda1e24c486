//! What breaks in a cluster, one after the other, while ten objects come due each minute:
//! `make faults` prints a line a fault. Lost is a slot that neither started nor stands in the
//! object's totals as missed; doubled is a slot with two Jobs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests"
)]

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, DurationRound as _, Utc};
use crds::labels::SCHEDULED_AT;
use crds::time::parse_rfc3339;
use e2e::objects::{owned_by, quick};
use e2e::wait::until_second;
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::{Value, json};

const OBJECTS: usize = 10;
const SYSTEM: [&str; 2] = ["-n", "backup-system"];

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(e2e::wait::unix_seconds(), 0).unwrap()
}

fn name(index: usize) -> String {
    format!("tick-{index}")
}

/// kubectl in the operator's namespace.
fn system(args: &[&str]) -> e2e::Output {
    cluster().kubectl(&[&SYSTEM, args].concat())
}

fn testbed(args: &[&str]) {
    cluster().testbed(args).ok();
}

/// A signal to a service of the cluster.
fn signal(service: &str, signal: &str) {
    let script = "kill -\"$2\" \"$(cat /run/testbed/clusters/*/pid/\"$1\")\"";
    testbed(&["enter", "bash", "-c", script, "signal", service, signal]);
}

/// What an object's books and Jobs say.
#[derive(Default)]
struct Books {
    passed: i64,
    newest: Option<DateTime<Utc>>,
    jobs: BTreeMap<DateTime<Utc>, usize>,
}

/// `None` while the API server does not answer.
fn books(ns: &Namespace) -> Option<Vec<Books>> {
    let items = |what: &str| -> Option<Vec<Value>> {
        let output = ns.kubectl(&["get", what, "-o", "json", "--request-timeout=20s"]);
        let list: Value = serde_json::from_str(&output.stdout)
            .ok()
            .filter(|_| output.code == 0)?;
        Some(list["items"].as_array()?.clone())
    };
    let (objects, jobs) = (items("mysqlbackups.batch.isekiro.com")?, items("jobs")?);
    let of = |index: usize| {
        let object = objects
            .iter()
            .find(|o| o["metadata"]["name"] == name(index))?;
        let status = &object["status"];
        let total = |field: &str| status["totals"][field].as_i64().unwrap_or(0);
        let mut counted = BTreeMap::new();
        for job in owned_by(&jobs, "MysqlBackup", &name(index)) {
            let slot = job["metadata"]["annotations"][SCHEDULED_AT].as_str();
            *counted.entry(parse_rfc3339(slot?)?).or_default() += 1;
        }
        Some(Books {
            passed: total("missed") + total("skipped"),
            newest: status["lastScheduleTime"].as_str().and_then(parse_rfc3339),
            jobs: counted,
        })
    };
    (0..OBJECTS).map(of).collect()
}

/// The newest slot every object has started.
fn started(books: &[Books]) -> Option<DateTime<Utc>> {
    books.iter().map(|b| b.newest).min().flatten()
}

struct Line {
    fault: &'static str,
    due: i64,
    missed: i64,
    lost: i64,
    doubled: usize,
    recovered: i64,
}

/// Breaks something before a slot comes due and mends it after, then waits until the newest due
/// slot of every object has started.
fn fault(
    ns: &Namespace,
    fault: &'static str,
    seconds: (u64, u64),
    breaks: impl FnOnce(),
    mends: impl FnOnce(),
) -> Line {
    wait_for("all objects are on time", 300, || {
        let newest = started(&books(ns)?)?;
        (now() - newest < Duration::seconds(60)).then_some(())
    });
    until_second(seconds.0);
    let before = books(ns).unwrap();
    let from = started(&before).unwrap();
    breaks();
    until_second(seconds.1);
    mends();
    let mended = now();
    let after = wait_for("every object is on time again", 420, || {
        let books = books(ns)?;
        let due = now().duration_trunc(Duration::minutes(1)).unwrap();
        (started(&books)? >= due).then_some(books)
    });
    let to = started(&after).unwrap();
    let recovered = (now() - mended).num_seconds();
    let due = (to - from).num_minutes() * i64::try_from(OBJECTS).unwrap();
    let in_time = |b: &Books| b.jobs.range(from + Duration::seconds(1)..=to).count();
    let ran: usize = after.iter().map(in_time).sum();
    let passed = |books: &[Books]| books.iter().map(|b| b.passed).sum::<i64>();
    let missed = passed(&after) - passed(&before);
    let twice = |b: &Books| b.jobs.values().filter(|n| **n > 1).count();
    let line = Line {
        fault,
        due,
        missed,
        lost: due - i64::try_from(ran).unwrap() - missed,
        doubled: after.iter().map(twice).sum(),
        recovered,
    };
    show(&line);
    line
}

fn show(line: &Line) {
    println!(
        "{:44} {:>8} {:>8} {:>5} {:>8} {:>10}",
        line.fault,
        line.due,
        line.missed,
        line.lost,
        line.doubled,
        format!("{} s", line.recovered)
    );
}

fn rolled_out() {
    system(&[
        "rollout",
        "status",
        "deployment/backup-operator",
        "--timeout=180s",
    ])
    .ok();
}

/// The deployment with this memory limit, its pod replaced rather than added to.
fn memory(limit: &str) {
    let patch = json!({"spec": {
        "strategy": {"type": "Recreate", "rollingUpdate": null},
        "template": {"spec": {"containers": [{"name": "operator", "resources": {"limits": {"memory": limit}, "requests": {"memory": "4Mi"}}}]}},
    }});
    system(&[
        "patch",
        "deployment",
        "backup-operator",
        "-p",
        &patch.to_string(),
    ])
    .ok();
}

fn steal_the_lease() {
    let spec = json!({"spec": {"holderIdentity": "a-thief", "leaseTransitions": 1000}}).to_string();
    system(&[
        "patch",
        "lease",
        "backup-operator",
        "--type=merge",
        "-p",
        &spec,
    ])
    .ok();
}

/// The Service of the webhooks leads nowhere, or to the operator again.
fn webhooks(selector: &str) {
    let patch = json!({"spec": {"selector": {"app.kubernetes.io/name": selector}}}).to_string();
    let service = "service/backup-operator-webhook";
    system(&["patch", service, "--type=merge", "-p", &patch]).ok();
}

#[test]
fn each_fault_loses_and_doubles_nothing() {
    let ns = cluster().namespace("e2e-faults");
    let manifests: Vec<String> = (0..OBJECTS)
        .map(|i| quick(&name(i), "* * * * *", ""))
        .collect();
    ns.apply(&manifests.join("---\n"));
    let node = cluster().get(&["nodes"]).unwrap()["items"][0]["metadata"]["name"].clone();
    let node = node.as_str().unwrap();
    println!(
        "{:44} {:>8} {:>8} {:>5} {:>8} {:>10}",
        "fault", "runs due", "missed", "lost", "doubled", "recovered"
    );
    let mut lines = vec![];
    lines.push(fault(&ns, "none", (45, 5), || {}, || {}));
    lines.push(fault(
        &ns,
        "API server down for 20 s at the slot",
        (50, 10),
        || testbed(&["stop", "apiserver"]),
        || testbed(&["start", "apiserver"]),
    ));
    lines.push(fault(
        &ns,
        "etcd stands still for 20 s at the slot",
        (50, 10),
        || signal("etcd", "STOP"),
        || signal("etcd", "CONT"),
    ));
    lines.push(fault(
        &ns,
        "Lease stolen 5 s before the slot",
        (55, 5),
        steal_the_lease,
        || {},
    ));
    lines.push(fault(
        &ns,
        "operator killed 3 s before the slot",
        (57, 1),
        || {
            if let Some(pod) = cluster().operator_pod() {
                system(&["delete", "pod", &pod, "--force", "--grace-period=0"]).ok();
            }
        },
        || {},
    ));
    lines.push(fault(
        &ns,
        "node drained, the operator with it",
        (40, 15),
        || {
            let drain = [
                "drain",
                node,
                "--force",
                "--delete-emptydir-data",
                "--ignore-daemonsets",
                "--timeout=20s",
            ];
            // Pods of a minute ago may take longer to end; the node is closed all the same.
            let _ = cluster().kubectl(&drain);
        },
        || {
            cluster().kubectl(&["uncordon", node]).ok();
        },
    ));
    lines.push(fault(
        &ns,
        "operator out of memory",
        (30, 10),
        || memory("5Mi"),
        || {
            memory("256Mi");
            rolled_out();
        },
    ));
    let served = cluster().get(&["-n", "backup-system", "service", "backup-operator-webhook"]);
    if served.is_some() {
        lines.push(fault(
            &ns,
            "webhook down, an object edited meanwhile",
            (45, 10),
            || {
                webhooks("nobody");
                ns.kubectl(&[
                    "annotate",
                    "mysqlbackup.batch.isekiro.com",
                    "tick-0",
                    "note=x",
                    "--overwrite",
                ])
                .ok();
            },
            || webhooks("backup-operator"),
        ));
    }
    let bad: Vec<&str> = lines
        .iter()
        .filter(|l| l.lost != 0 || l.doubled != 0)
        .map(|l| l.fault)
        .collect();
    assert!(bad.is_empty(), "slots were lost or doubled under: {bad:?}");
    // What an outage at the slot delays, it does not drop: the newest slot starts when it is over.
    let due: i64 = lines.iter().map(|l| l.due).sum();
    println!(
        "{} faults, {due} runs due, lost 0, doubled 0",
        lines.len() - 1
    );
    eventually("the operator is as it was", 60, || {
        cluster().operator_pod().is_some()
    });
}
