//! Two replicas of the operator: one leads, the other takes over, nothing runs twice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use crds::labels::SCHEDULED_AT;
use crds::names::manual_name;
use crds::request::{Action, Request};
use crds::time::parse_rfc3339;
use e2e::wait::until_second;
use e2e::{Namespace, Output, cluster, eventually, wait_for};

/// Two replicas for as long as it lives.
struct Replicas;

fn kubectl(args: &[&str]) -> Output {
    cluster().kubectl(&[&["-n", "backup-system"], args].concat())
}

fn scale(replicas: &str) -> Output {
    kubectl(&[
        "scale",
        "deployment/backup-operator",
        &format!("--replicas={replicas}"),
    ])
}

impl Replicas {
    fn two() -> Self {
        scale("2").ok();
        eventually("both replicas are ready", 90, || ready() == 2);
        Self
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        // A test that failed already says why; the rollout is awaited by whoever needs it.
        let _ = scale("1");
    }
}

fn ready() -> usize {
    let pods = cluster()
        .get(&[
            "-n",
            "backup-system",
            "pods",
            "-l",
            "app.kubernetes.io/name=backup-operator",
        ])
        .unwrap();
    let pods = pods["items"].as_array().unwrap();
    let is_ready = |pod: &&serde_json::Value| {
        pod["metadata"]["deletionTimestamp"].is_null()
            && pod["status"]["containerStatuses"][0]["ready"] == true
    };
    pods.iter().filter(is_ready).count()
}

/// The pod that holds the Lease.
fn leader() -> Option<String> {
    let lease = cluster().get(&["-n", "backup-system", "lease", "backup-operator"])?;
    let holder = lease["spec"]["holderIdentity"].as_str()?;
    (!holder.is_empty()).then(|| holder.to_owned())
}

/// When the holder of the Lease became its holder.
fn acquired() -> DateTime<Utc> {
    let lease = cluster()
        .get(&["-n", "backup-system", "lease", "backup-operator"])
        .unwrap();
    parse_rfc3339(lease["spec"]["acquireTime"].as_str().unwrap()).unwrap()
}

/// Sends a signal to the operator's process in a pod; returns when it was sent.
fn signal(pod: &str, signal: &str) -> DateTime<Utc> {
    let script = "for p in $(pgrep -x backup-operator); do
        if grep -qzx \"POD_NAME=$1\" /proc/$p/environ; then date -u +%FT%T.%NZ; kill -$2 $p && exit 0; fi
      done; echo \"no operator in $1\" >&2; exit 1";
    let sent = cluster()
        .testbed(&["enter", "bash", "-c", script, "signal", pod, signal])
        .ok();
    parse_rfc3339(&sent.stdout).unwrap()
}

fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).as_seconds_f64()
}

/// A MysqlBackup whose pods never start: what counts here are the Jobs.
fn backup(name: &str, schedule: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '{schedule}'
  image: none.invalid/none
  imagePullPolicy: Never
---
"
    )
}

/// Asks for a run and waits for its Job; returns when it was asked for and when the Job was made,
/// the latter to the second.
fn run(ns: &Namespace, uid: &str, id: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let request = Request::new(Action::Backup, id, "", Utc::now());
    let annotation = format!(
        "{}={}",
        Request::annotation_key(id),
        request.annotation_value()
    );
    ns.kubectl(&["annotate", "mysqlbackup", "shop", &annotation])
        .ok();
    let asked = Utc::now();
    let job = manual_name("shop", uid, id);
    let job = wait_for("the run", 40, || ns.get(&["job", &job]));
    let made = &job["metadata"]["creationTimestamp"];
    (asked, parse_rfc3339(made.as_str().unwrap()).unwrap())
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_leader_that_ends_is_followed_at_once_a_killed_one_within_17_seconds() {
    let _alone = alone();
    let _replicas = Replicas::two();
    let ns = cluster().namespace("e2e-lease");
    ns.apply(&backup("shop", "0 0 1 1 *"));
    let object = wait_for("the object is known", 30, || {
        ns.mysql_backup("shop")
            .filter(|o| o["status"]["conditions"].is_array())
    });
    let uid = object["metadata"]["uid"].as_str().unwrap();

    let first = wait_for("a leader", 30, leader);
    let sent = signal(&first, "TERM");
    let (asked, made) = run(&ns, uid, "term");
    // By which replica is of no account: the container of the first may be back before the other
    // looks. That the Lease was given back, and is not waited out, is.
    let led = wait_for("the Lease is taken", 10, || {
        Some(acquired()).filter(|at| *at >= sent)
    });
    println!(
        "SIGTERM: a replica leads after {:.1} s and starts the next run {:.0} s after it is asked for",
        seconds(sent, led),
        seconds(asked.max(led), made).max(0.0),
    );
    assert!(seconds(sent, led) <= 2.0, "{} s", seconds(sent, led));
    assert!(made <= asked.max(led) + TimeDelta::seconds(2));

    eventually("both replicas are ready", 90, || ready() == 2);
    let second = wait_for("a leader", 30, leader);
    let sent = signal(&second, "KILL");
    let (_, made) = run(&ns, uid, "kill");
    println!(
        "SIGKILL: the next run starts after {:.1} s",
        seconds(sent, made)
    );
    assert!(seconds(sent, made) <= 17.0, "{} s", seconds(sent, made));
    eventually("both replicas are ready", 90, || ready() == 2);
}

#[test]
fn a_frozen_leader_is_followed_within_17_seconds_and_doubles_nothing_when_it_thaws() {
    const OBJECTS: usize = 20;
    let _alone = alone();
    let _replicas = Replicas::two();
    let ns = cluster().namespace("e2e-freeze");
    // Frozen in the midst of its work at a full minute.
    until_second(50);
    ns.apply(
        &(0..OBJECTS)
            .map(|i| backup(&format!("b{i}"), "* * * * *"))
            .collect::<String>(),
    );
    let frozen = wait_for("a leader", 30, leader);
    wait_for("its first Job of the minute", 30, || {
        (!ns.jobs().is_empty()).then_some(())
    });
    let sent = signal(&frozen, "STOP");
    let next = wait_for("another leader", 40, || leader().filter(|l| *l != frozen));
    let took = seconds(sent, acquired());
    println!("SIGSTOP: {next} leads after {took:.1} s");
    assert!(took <= 17.0, "{took} s");
    eventually("every slot has its Job", 20, || ns.jobs().len() >= OBJECTS);
    signal(&frozen, "CONT");
    // The thawed process sends what it was about to send, then the next minute comes.
    eventually("the next minute", 90, || ns.jobs().len() >= 2 * OBJECTS);
    assert_eq!(leader(), Some(next));

    let mut slots: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for job in ns.jobs() {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let owner = text(&job["metadata"]["ownerReferences"][0]["name"]);
        let slot = text(&job["metadata"]["annotations"][SCHEDULED_AT]);
        let name = text(&job["metadata"]["name"]);
        slots.entry((owner, slot)).or_default().push(name);
    }
    let doubled: Vec<_> = slots.values().filter(|jobs| jobs.len() > 1).collect();
    println!("slots {}, doubled {}", slots.len(), doubled.len());
    assert!(doubled.is_empty(), "{doubled:?}");
    assert!(slots.len() >= 2 * OBJECTS);
}
