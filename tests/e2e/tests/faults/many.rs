//! Ten thousand objects come due in one minute, and the operator dies in the middle of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, DurationRound as _, SecondsFormat, Timelike as _, Utc};
use crds::labels::SCHEDULED_AT;
use e2e::objects::quick_image;
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::{Value, json};

use crate::books::{Line, now};
use crate::testbed;

const OBJECTS: usize = 10_000;
/// Jobs that are there when the operator dies.
const KILLED_AT: usize = 1_000;
const JOBS: &str = "batch/v1";
const BACKUPS: &str = "batch.isekiro.com/v1";

/// The controllers of Kubernetes stand still: Jobs without pods, which one node could not hold.
struct NoPods;

impl NoPods {
    fn begin() -> Self {
        testbed(&["stop", "kcm"]);
        Self
    }
}

impl Drop for NoPods {
    fn drop(&mut self) {
        let _ = cluster().testbed(&["start", "kcm"]);
    }
}

/// The API without a client that limits itself.
fn curl(url: &str, args: &[&str]) -> e2e::Output {
    let pki = |file: &str| {
        let path = cluster().state().join("pki").join(file);
        path.to_str().unwrap().to_owned()
    };
    let (ca, cert, key) = (pki("ca.crt"), pki("admin.crt"), pki("admin.key"));
    let url = format!("https://127.0.0.1:6443{url}");
    let to = ["enter", "curl", "-sS", "--cacert", &ca, "--cert", &cert];
    cluster().testbed(&[&to[..], &["--key", &key, &url], args].concat())
}

fn collection(ns: &Namespace, api: &str) -> String {
    let plural = if api == JOBS { "jobs" } else { "mysqlbackups" };
    format!("/apis/{api}/namespaces/{}/{plural}", ns.name)
}

/// How many there are; `None` while the API server does not answer.
fn count(ns: &Namespace, api: &str) -> Option<usize> {
    let url = format!("{}?limit=1", collection(ns, api));
    let list: Value = serde_json::from_str(&curl(&url, &[]).stdout).ok()?;
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    Some(list["items"].as_array()?.len() + usize::try_from(more).ok()?)
}

fn list(ns: &Namespace, api: &str, accept: &str) -> Option<Vec<Value>> {
    let header = format!("Accept: {accept}");
    let text = curl(&collection(ns, api), &["-H", &header]).stdout;
    let list: Value = serde_json::from_str(&text).ok()?;
    Some(list["items"].as_array()?.clone())
}

fn create(ns: &Namespace, schedule: &str, wanted: usize) {
    let object = json!({
        "apiVersion": BACKUPS, "kind": "MysqlBackup", "metadata": {"generateName": "many-"},
        "spec": {"schedule": schedule, "image": quick_image(), "imagePullPolicy": "IfNotPresent", "args": ["--help"]},
    });
    let (body, json) = (object.to_string(), "Content-Type: application/json");
    let many = ["-Z", "--parallel-max", "64", "-o", "/dev/null"];
    eventually("all objects are there", 900, || {
        let there = count(ns, BACKUPS);
        if let Some(lack) = there.map(|n| wanted.saturating_sub(n)).filter(|n| *n > 0) {
            let of = collection(ns, BACKUPS);
            let url = format!("{of}?fieldManager=faults-[1-{lack}]");
            // What a busy API server did not take is among those that lack.
            let _ = curl(&url, &[&many[..], &["-H", json, "-d", &body]].concat());
        }
        there == Some(wanted)
    });
}

/// Generously, for a machine that does other things too.
fn time_to_create(ns: &Namespace) -> Duration {
    let begun = now();
    create(ns, "0 0 29 2 *", OBJECTS / 20);
    let took = now() - begun;
    delete(ns, BACKUPS);
    took * 60 + Duration::minutes(2)
}

/// Deletes all of them; there is nothing that would collect what they own.
fn delete(ns: &Namespace, api: &str) {
    let url = format!("{}?propagationPolicy=Background", collection(ns, api));
    eventually("they are gone", 600, || {
        let _ = curl(&url, &["-X", "DELETE", "-o", "/dev/null"]);
        count(ns, api) == Some(0)
    });
}

/// Runs `what` with the process of the operator as `$pid`.
fn operator(what: &str) -> Option<String> {
    let script = format!(
        "for dir in /proc/[0-9]*; do pid=${{dir#/proc/}}
         if [ \"$(cat $dir/comm 2>/dev/null)\" = backup-operator ]; then {what}; exit; fi
         done; exit 1"
    );
    let output = cluster().testbed(&["enter", "bash", "-c", &script]);
    (output.code == 0).then_some(output.stdout)
}

/// Most resident memory of the operator's process so far, in MiB.
fn memory() -> u64 {
    let line = wait_for("the operator's process", 120, || {
        operator("grep VmHWM /proc/$pid/status")
    });
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

/// Objects without a Job; Jobs beyond one for a slot.
fn lost_and_doubled(objects: &[Value], jobs: &[Value]) -> (usize, usize) {
    let mut counted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for job in jobs {
        let meta = &job["metadata"];
        let owner = meta["ownerReferences"][0]["uid"].as_str().unwrap();
        let slot = meta["annotations"][SCHEDULED_AT].as_str().unwrap();
        *counted.entry((owner, slot)).or_default() += 1;
    }
    let owners: BTreeSet<&str> = counted.keys().map(|(owner, _)| *owner).collect();
    let started = |o: &&Value| owners.contains(o["metadata"]["uid"].as_str().unwrap());
    let lost = objects.len() - objects.iter().filter(started).count();
    (lost, counted.values().map(|n| n - 1).sum())
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub(crate) fn killed_among_ten_thousand() -> Line {
    let ns = cluster().namespace("e2e-faults-many");
    let slot = (now() + time_to_create(&ns))
        .duration_trunc(Duration::minutes(1))
        .unwrap();
    let schedule = format!("{} {} * * *", slot.minute(), slot.hour());
    create(&ns, &schedule, OBJECTS);
    assert!(
        now() < slot,
        "{OBJECTS} objects took longer than one in twenty of them let expect"
    );
    let no_pods = NoPods::begin();
    let idle = memory();
    eventually("the slot", 301, || now() >= slot);
    let there = wait_for("some of the Jobs", 900, || {
        count(&ns, JOBS).filter(|n| *n >= KILLED_AT)
    });
    operator("kill -KILL $pid").expect("the operator runs");
    let killed = now();
    assert!(there < OBJECTS, "all Jobs were there before the kill");
    eventually("as many Jobs as objects", 1800, || {
        count(&ns, JOBS).is_some_and(|n| n >= OBJECTS)
    });
    let recovered = (now() - killed).num_seconds();
    let objects = wait_for("all books say that the slot has started", 900, || {
        let objects = list(&ns, BACKUPS, "application/json")?;
        let started = |o: &Value| o["status"]["lastScheduleTime"] == text(slot);
        objects.iter().all(started).then_some(objects)
    });
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let jobs = wait_for("the API server", 120, || list(&ns, JOBS, metadata));
    let (lost, doubled) = lost_and_doubled(&objects, &jobs);
    let line = Line {
        fault: "operator killed while 10,000 come due",
        due: i64::try_from(OBJECTS).unwrap(),
        missed: 0,
        lost: i64::try_from(lost).unwrap(),
        doubled: i64::try_from(doubled).unwrap(),
        recovered,
    };
    line.show();
    println!(
        "  {there} Jobs stood when it died; its memory at most: {idle} MiB before the slot, {} MiB after",
        memory()
    );
    delete(&ns, BACKUPS);
    delete(&ns, JOBS);
    drop(no_pods);
    line
}
