//! The way in and the way out: objects stored under the definitions of the operators that were
//! there before, and what `make undeploy` and `make uninstall` leave. Needs the cluster to itself,
//! so it runs after the other tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::objects::{contains, quick};
use e2e::{Output, cluster, eventually, wait_for};
use serde_json::{Value, json};

/// In an order in which each file's references exist.
const FILES: &[&str] = &[
    "g3",
    "g0",
    "g1",
    "g2",
    "g3a",
    "g4",
    "g4_databases",
    "g4_storages",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn make(args: &[&str]) {
    let kubectl = format!("KUBECTL={}", cluster().kubectl.display());
    let output = Command::new("make")
        .args(args)
        .arg(kubectl)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "make {args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The definitions as this checkout has them.
fn definitions() -> Vec<Value> {
    let directory = root().join("deploy/crds");
    let rendered = cluster()
        .kubectl(&["kustomize", directory.to_str().unwrap()])
        .ok();
    let parsed = cluster().kubectl_with(
        &["create", "--dry-run=client", "-o", "json", "-f", "-"],
        &rendered.stdout,
    );
    documents(&parsed.ok())
}

fn documents(output: &Output) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_str(&output.stdout).into_iter::<Value>();
    stream.map(Result::unwrap).collect()
}

/// A definition as an operator that was there before had it, in what matters to stored objects:
/// the names, the version, the status subresource, and a schema that took more than ours names.
fn earlier(definition: &Value) -> Value {
    let mut old = definition.clone();
    for version in old["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"] = json!({"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        version
            .as_object_mut()
            .unwrap()
            .remove("additionalPrinterColumns");
    }
    old["metadata"] = json!({"name": old["metadata"]["name"]});
    old
}

fn apply(object: &Value) {
    cluster()
        .kubectl_with(&["apply", "--server-side", "-f", "-"], &object.to_string())
        .ok();
}

/// Names of everything in the cluster that lasts: not what the cluster itself makes as it goes, and
/// not the namespaces and volumes of tests, which are the users' here and end in their own time.
fn objects() -> BTreeSet<String> {
    let text = Command::new("bash")
        .args(["-c", include_str!("../objects.sh")])
        .env("KUBECTL", &cluster().kubectl)
        .output()
        .unwrap();
    assert!(
        text.status.success(),
        "{}",
        String::from_utf8_lossy(&text.stderr)
    );
    let all = lines(&String::from_utf8_lossy(&text.stdout));
    all.into_iter()
        .filter(|line| !line.contains(" e2e-"))
        .collect()
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// What goes with a definition goes a moment later.
fn nothing_is_left(before: &BTreeSet<String>) {
    let mut left = vec![];
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        left = objects().difference(before).cloned().collect();
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(left, Vec::<String>::new(), "left");
}

/// Objects of MysqlBackup under the original's field names.
fn originals() -> String {
    // What the schema of the original took and ours would refuse at creation.
    let odd = "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {name: odd}
spec:
  schedule: 'every now and then'
  successfulJobsHistoryLimit: -1
  unknownToUs: {kept: true}
  image: nowhere.invalid/image:1
";
    [quick("old-minutely", "* * * * *", ""), odd.to_owned()].join("---\n")
}

#[test]
fn objects_of_earlier_operators_stay_valid_and_undeploy_leaves_only_the_users() {
    make(&["undeploy"]);
    make(&["uninstall", "FORCE=1"]);
    let before = lines(&std::fs::read_to_string(&cluster().objects_before).unwrap());
    nothing_is_left(&before);

    let names = "OVERLAY=deploy/overlays/gobackup-names";
    let ours = definitions();
    assert_eq!(
        ours.len(),
        std::fs::read_dir(root().join("deploy/crds"))
            .unwrap()
            .count()
            - 1
    );
    for definition in &ours {
        apply(&earlier(definition));
    }
    for definition in &ours {
        let name = definition["metadata"]["name"].as_str().unwrap();
        let crd = format!("crd/{name}");
        cluster()
            .kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &crd])
            .ok();
    }
    let ns = cluster().namespace("e2e-upgrade");
    let mut stored: Vec<(String, String)> = vec![];
    let mut keep = |applied: Output| {
        for line in applied.ok().stdout.lines() {
            let (resource, name) = line.split(' ').next().unwrap().split_once('/').unwrap();
            if resource != "secret" {
                stored.push((resource.to_owned(), name.to_owned()));
            }
        }
    };
    keep(ns.try_apply(&originals()));
    for file in FILES {
        let path = root().join(format!("crds/tests/data/gobackup/{file}.yaml"));
        keep(ns.kubectl(&["apply", "-f", path.to_str().unwrap()]));
    }
    assert_eq!(stored.len(), 65, "objects");
    let full: Vec<Value> = stored
        .iter()
        .map(|(resource, name)| ns.get(&[resource, name]).unwrap()["spec"].clone())
        .collect();

    make(&["deploy", names]);
    for ((resource, name), spec) in stored.iter().zip(&full) {
        let object = ns.get(&[resource, name]).expect("it is still there");
        // Defaults may come, and of the odd one what ours does not know goes.
        if name != "odd" {
            contains(&object["spec"], spec, &format!("{resource}/{name}")).unwrap();
        }
        ns.kubectl(&["label", resource, name, "upgraded=yes"]).ok();
    }
    // The operator's word on each that it schedules, the odd one included.
    for (resource, name) in &stored {
        if !["mysqlbackup.", "backup.", "cronbackup."]
            .iter()
            .any(|k| resource.starts_with(k))
        {
            continue;
        }
        wait_for(&format!("a condition on {resource}/{name}"), 60, || {
            let object = ns.get(&[resource, name])?;
            object["status"]["conditions"][0]["type"]
                .as_str()
                .map(str::to_owned)
        });
    }
    eventually("an object of before runs", 75, || {
        let object = ns.mysql_backup("old-minutely").unwrap();
        object["status"]["totals"]["succeeded"].as_i64() >= Some(1)
    });

    make(&["undeploy", names]);
    for (resource, name) in &stored {
        ns.get(&[resource, name]).expect("the user's objects stay");
    }
    drop(ns);
    make(&["uninstall", "FORCE=1"]);
    nothing_is_left(&before);
}
