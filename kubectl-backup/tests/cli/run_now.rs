//! `run-now`, `wait`, `cancel` and `logs`: the exit status is the run's own result.

use crds::names::manual_name;
use crds::request::Request;
use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::{Config, Ran};

/// The request on an object.
pub fn request(object: &Value) -> Option<Request> {
    let notes = object["metadata"]["annotations"].as_object()?;
    let (_, value) = notes
        .iter()
        .find(|(k, _)| k.starts_with("batch.isekiro.com/request-"))?;
    Request::parse(value.as_str()?).ok()
}

/// A server whose operator ends every requested run at once, with this result.
fn with_result(result: Value) -> (Fake, Config) {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    fake.operate(move |object| {
        let request = request(object)?;
        let name = manual_name("shop", "uid-shop", &request.id);
        let mut after = object.clone();
        let mut run = json!({ "name": name, "trigger": "Manual", "requestId": request.id, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:31Z" });
        for (key, value) in result.as_object()? {
            run[key] = value.clone();
        }
        after["status"] = json!({
            "requests": [{ "id": request.id, "action": "Backup", "state": "Running", "job": name }],
            "runs": [run],
        });
        Some(after)
    });
    let config = Config::new(&fake);
    (fake, config)
}

#[test]
fn a_good_run_is_0() {
    let (fake, config) = with_result(json!({
        "result": "Succeeded", "reason": "Completed", "storedBytes": 1_932_735_283_i64,
        "artefacts": [{ "key": "prod/x.sql.zst", "size": 1, "readBack": true }],
    }));
    let ran = config
        .run(&[
            "run-now",
            "shop",
            "--wait",
            "--id",
            "7f3a",
            "--reason",
            "before upgrade",
        ])
        .ok();
    let name = manual_name("shop", "uid-shop", "7f3a");
    assert_eq!(
        ran.out,
        format!("mysqlbackup.batch.isekiro.com/shop run/{name} succeeded\n")
    );
    assert_eq!(
        ran.err,
        format!(
            "► mysqlbackup.batch.isekiro.com/shop: run requested (id 7f3a, run {name})\n✔ succeeded in 31s, 1.8GiB, prod/x.sql.zst\n"
        )
    );
    let patch = fake
        .seen()
        .into_iter()
        .find(|s| s.method == "PATCH")
        .unwrap();
    assert_eq!(patch.query["fieldManager"], "kubectl-backup");
    let sent = request(&patch.body).unwrap();
    assert_eq!(
        (sent.id.as_str(), sent.by.as_str(), sent.reason.as_str()),
        ("7f3a", "alice", "before upgrade")
    );
    // The same id is the same run: nothing is asked again.
    let patches = || fake.seen().iter().filter(|s| s.method == "PATCH").count();
    let before = patches();
    config.run(&["run", "shop", "--id", "7f3a", "--wait"]).ok();
    assert_eq!(patches(), before);
}

#[test]
fn a_failed_run_is_4_and_says_why_without_the_password() {
    let (_fake, config) = with_result(json!({
        "result": "Failed", "reason": "AccessDenied", "phase": "Connecting",
        "message": "access denied for user 'backup'@'10.1.2.3' (password=S3cr3t-marker)",
    }));
    let ran = config.run(&["run-now", "shop", "--wait", "--id", "1"]);
    let name = manual_name("shop", "uid-shop", "1");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(
        ran.out,
        format!("mysqlbackup.batch.isekiro.com/shop run/{name} failed\n")
    );
    let last: Vec<&str> = ran.err.lines().collect();
    assert_eq!(
        last[1],
        format!(
            "✖ {name} failed after 31s in phase \"Connecting\": access denied for user 'backup'@'10.1.2.3' (password=****** (AccessDenied)"
        )
    );
    assert_eq!(last[2], format!("Hint: kubectl backup logs {name}"));
    assert!(!format!("{ran:?}").contains("S3cr3t"), "{ran:?}");
    let described = config.run(&["describe", "shop"]).ok();
    assert!(
        described.out.contains("access denied for user 'backup'"),
        "{}",
        described.out
    );
    assert!(!described.out.contains("S3cr3t"));
}

#[test]
fn a_refusal_is_1_with_the_operators_words() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    fake.operate(|object| {
        let request = request(object)?;
        let mut after = object.clone();
        after["status"] = json!({ "requests": [{ "id": request.id, "action": "Backup", "state": "Refused", "message": "shop-1 is running; concurrencyPolicy is Forbid" }] });
        Some(after)
    });
    let ran = Config::new(&fake).run(&["run-now", "shop", "--wait"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("error: mysqlbackup.batch.isekiro.com/shop: the request was refused: shop-1 is running; concurrencyPolicy is Forbid"), "{}", ran.err);
}

#[test]
fn time_is_up_is_124_and_says_how_to_come_back() {
    let (_fake, config) =
        with_result(json!({ "result": "Running", "phase": "Dumping", "completionTime": null }));
    let ran = config.run(&["run-now", "shop", "--wait", "--timeout", "1s", "--id", "1"]);
    let name = manual_name("shop", "uid-shop", "1");
    assert_eq!(ran.code, Some(124), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    assert_eq!(
        last,
        format!(
            "error: timed out after 1s waiting for {name}, which is running (phase Dumping); it continues. Re-attach: kubectl backup wait {name}"
        )
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_130_and_the_run_goes_on() {
    use std::io::{BufRead, BufReader, Read};
    let (_fake, config) =
        with_result(json!({ "result": "Running", "phase": "Dumping", "completionTime": null }));
    let mut child = config
        .command(&["run-now", "shop", "--wait", "--id", "1"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Dumping") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "the phase is told");
    }
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let name = manual_name("shop", "uid-shop", "1");
    assert_eq!(
        rest,
        format!(
            "Stopped waiting; the run continues. Re-attach: kubectl backup wait {name}   Cancel: kubectl backup cancel {name}\n"
        )
    );
}

#[test]
fn without_wait_it_is_asked_and_named() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "suspend": true }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let ran = config.run(&["trigger", "shop", "--id", "1"]).ok();
    let name = manual_name("shop", "uid-shop", "1");
    assert_eq!(
        ran.out,
        format!("mysqlbackup.batch.isekiro.com/shop run/{name} requested\n")
    );
    assert!(
        ran.err
            .contains("warning: mysqlbackup.batch.isekiro.com/shop is suspended; this run is made"),
        "{}",
        ran.err
    );
    let before = fake.seen().iter().filter(|s| s.method == "PATCH").count();
    config.run(&["run-now", "shop", "--dry-run"]).ok();
    assert_eq!(
        fake.seen().iter().filter(|s| s.method == "PATCH").count(),
        before
    );
}

#[test]
fn several_runs_give_the_first_failure() {
    let (fake, config) = with_result(json!({ "result": "Succeeded" }));
    fake.put(backup(
        "prod",
        "crm",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let ran = config.run(&["run-now", "shop", "nobody"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1);
}

fn running(fake: &Fake) {
    fake.put(backup("prod", "shop", json!({ "schedule": "@daily" }), json!({
        "observedGeneration": 1,
        "runs": [
            { "name": "shop-2", "trigger": "Schedule", "result": "Running", "startTime": "2026-01-02T00:00:00Z" },
            { "name": "shop-1", "trigger": "Schedule", "result": "Failed", "reason": "NoSpace", "message": "no space left", "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z" },
        ],
    })));
}

fn pod(name: &str, created: &str, state: Value) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "prod", "creationTimestamp": created },
        "spec": { "containers": [{ "name": "sidecar" }, { "name": "backup" }] },
        "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state }] },
    })
}

#[test]
fn wait_for_a_run_by_name_or_for_the_objects_own() {
    let fake = Fake::start();
    running(&fake);
    let config = Config::new(&fake);
    let ran = config.run(&["wait", "shop-1"]);
    ran.fails(4, "✖ shop-1 failed after 60s: no space left (NoSpace)");
    let ran = config.run(&["wait", "shop", "--timeout", "1s"]);
    assert_eq!(ran.code, Some(124), "{ran:?}");
    config
        .run(&["wait", "run/none"])
        .fails(5, "error: no run \"none\" in namespace \"prod\"");
}

#[test]
fn cancel_asks_for_the_end_of_the_active_run() {
    let fake = Fake::start();
    running(&fake);
    let config = Config::new(&fake);
    let ran = config.run(&["cancel", "shop"]).ok();
    assert_eq!(
        ran.out,
        "mysqlbackup.batch.isekiro.com/shop run/shop-2 cancel requested\n"
    );
    let patch = fake
        .seen()
        .into_iter()
        .find(|s| s.method == "PATCH")
        .unwrap();
    let sent = request(&patch.body).unwrap();
    assert_eq!(
        (sent.action, sent.options.run.as_deref()),
        (crds::request::Action::Cancel, Some("shop-2"))
    );
    config
        .run(&["cancel", "shop-1"])
        .fails(1, "error: shop-1 has ended already: Failed");
}

#[test]
fn logs_of_the_newest_pod_with_a_word_on_the_others() {
    let fake = Fake::start();
    running(&fake);
    fake.pod(
        pod("shop-2-b", "2026-01-02T00:01:00Z", json!({ "running": {} })),
        "second\nline\n",
    );
    fake.pod(
        pod(
            "shop-2-a",
            "2026-01-02T00:00:00Z",
            json!({ "terminated": { "exitCode": 3 } }),
        ),
        "first\n",
    );
    let config = Config::new(&fake);
    let ran = config.run(&["logs", "shop"]).ok();
    assert_eq!(ran.out, "second\nline\n");
    assert_eq!(
        ran.err,
        "Showing the newest of 2 pods; the others: shop-2-a\n"
    );
    let log = fake
        .seen()
        .into_iter()
        .find(|s| s.path.ends_with("/log"))
        .unwrap();
    assert_eq!(log.query["container"], "backup");
}

#[test]
fn logs_that_are_not_there() {
    let fake = Fake::start();
    running(&fake);
    let config = Config::new(&fake);
    let ran = config.run(&["logs", "shop-1"]);
    ran.fails(5, "error: the pods of shop-1 are gone, and their log with them; the run failed after 60s: no space left (NoSpace)");
    fake.pod(
        pod(
            "shop-2-a",
            "2026-01-02T00:00:00Z",
            json!({ "waiting": { "reason": "ContainerCreating" } }),
        ),
        "",
    );
    config.run(&["logs", "shop"]).fails(
        1,
        "error: pod shop-2-a has not started: container is being created",
    );
}

#[test]
fn runs_newest_first() {
    let fake = Fake::start();
    running(&fake);
    // Another object's run, newer than one and older than the other.
    let run = json!({ "name": "crm-1", "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-01T12:00:00Z" });
    fake.put(backup(
        "prod",
        "crm",
        json!({ "schedule": "@daily" }),
        json!({ "runs": [run] }),
    ));
    let config = Config::new(&fake);
    assert_eq!(
        config.run(&["runs", "-o", "name"]).ok().out,
        "run/shop-2\nrun/crm-1\nrun/shop-1\n"
    );
    let ran = config.run(&["runs", "shop"]).ok();
    let columns: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|l| l.split_whitespace().take(4).collect())
        .collect();
    assert_eq!(
        columns,
        [
            ["NAME", "TRIGGER", "RESULT", "STARTED"],
            ["shop-2", "Schedule", "Running", "2026-01-02T00:00:00Z"],
            ["shop-1", "Schedule", "Failed", "2026-01-01T00:00:00Z"],
        ]
    );
    assert_eq!(
        config.run(&["runs", "--failed", "-o", "name"]).ok().out,
        "run/shop-1\n"
    );
    let json: Value = serde_json::from_str(&config.run(&["runs", "-o", "json"]).ok().out).unwrap();
    assert_eq!(
        (&json["kind"], &json["items"][2]["reason"]),
        (&json!("List"), &json!("NoSpace"))
    );
    let _: Ran = config.run(&["runs", "nobody"]).fails(5, "Error from server (NotFound): mysqlbackups.batch.isekiro.com \"nobody\" not found in namespace \"prod\".");
}

#[test]
fn spans_that_can_be_restored_to_with_the_runs_they_begin_with() {
    let fake = Fake::start();
    let run = |name: &str, at: &str| json!({ "name": name, "trigger": "Schedule", "result": "Succeeded", "startTime": at, "completionTime": at });
    let status = json!({
        "binlogs": { "intervalSeconds": 300, "anchor": "2026-01-01T00:00:00Z", "accountedUntil": "2026-01-05T00:00:00Z", "windows": [
            { "from": "2026-01-03T00:00:00Z", "until": "2026-01-05T00:00:00Z" },
            { "from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z" },
        ]},
        "runs": [run("shop-2", "2026-01-04T02:00:00Z"), run("shop-1", "2026-01-02T02:00:00Z")],
    });
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "binlogs": {} }),
        status,
    ));
    let config = Config::new(&fake);
    let ran = config.run(&["runs", "shop", "--recoverable"]).ok();
    let rows: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["SINCE", "UNTIL", "AGO", "RUNS"]);
    assert_eq!(
        rows[1][..2],
        ["2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z"]
    );
    assert_eq!((rows[1][3], rows[2][3]), ("shop-2", "-"));
    let names = config.run(&["runs", "--recoverable", "-o", "name"]).ok();
    assert_eq!(names.out, "run/shop-2\n");
    let json: Value = serde_json::from_str(
        &config
            .run(&["runs", "--recoverable", "-o", "json"])
            .ok()
            .out,
    )
    .unwrap();
    assert_eq!(json["items"][1]["until"], "2026-01-02T00:00:00Z");
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        json!({}),
    ));
    let none = config.run(&["runs", "shop", "--recoverable"]).ok();
    assert!(
        none.err.starts_with("No binary logs are stored"),
        "{}",
        none.err
    );
}

#[test]
fn the_store_and_status_side_by_side() {
    let fake = Fake::start();
    let artefact = |key: &str| json!({ "key": key, "size": 7, "sha256": "", "readBack": true });
    let run = |name: &str, key: &str| json!({ "name": name, "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-02T00:00:00Z", "artefacts": [artefact(key)] });
    let status = json!({ "runs": [run("shop-2", "p/2.sql.zst"), run("shop-1", "p/1.sql.zst")] });
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        status,
    ));
    fake.pod(
        pod("list-x", "2026-01-03T00:00:00Z", json!({ "terminated": { "exitCode": 0 } })),
        "{\"event\":\"artefact\",\"key\":\"p/2.sql.zst\",\"run\":\"shop-2\",\"startedAt\":\"2026-01-02T00:00:00Z\",\"storedBytes\":2048,\"rows\":12}\n\
         {\"event\":\"artefact\",\"key\":\"p/0.sql.zst.age\",\"run\":\"shop-0\",\"startedAt\":\"2025-12-01T00:00:00Z\",\"storedBytes\":7,\"rows\":1,\"encryption\":\"age\"}\n\
         {\"message\":\"the run is good\"}\n",
    );
    fake.operate(|object| {
        let request = request(object)?;
        assert_eq!(request.action, crds::request::Action::List);
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{ "id": request.id, "action": "List", "state": "Succeeded", "job": "list", "message": "2 artefacts" }]);
        Some(after)
    });
    let config = Config::new(&fake);
    let ran = config.run(&["runs", "shop", "--stored"]).ok();
    let cut: Vec<String> = ran
        .out
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            [&words[..6], &words[7..]].concat().join(" ")
        })
        .collect();
    assert_eq!(
        cut,
        [
            "RUN STATE STARTED SIZE ROWS ENCRYPTED KEY",
            "shop-1 Missing 2026-01-02T00:00:00Z 7B - - p/1.sql.zst",
            "shop-2 Stored 2026-01-02T00:00:00Z 2.0KiB 12 no p/2.sql.zst",
            "shop-0 NoRun 2025-12-01T00:00:00Z 7B 1 age p/0.sql.zst.age",
        ]
    );
    assert_eq!(
        config
            .run(&["runs", "shop", "--stored", "-o", "name"])
            .ok()
            .out,
        "p/1.sql.zst\np/2.sql.zst\np/0.sql.zst.age\n"
    );
}

/// What one storage has is shown though another can't be listed; the exit code says that this is not all.
#[test]
fn a_broken_storage_is_a_line_of_its_own() {
    let fake = Fake::start();
    fake.install("backups");
    let artefact = |storage: &str| json!({ "key": "a.tar.gz.enc", "size": 7, "storage": storage });
    let runs = json!([{
        "name": "nightly-1", "trigger": "Schedule", "result": "Succeeded",
        "artefacts": [artefact("disk"), artefact("dav")],
    }]);
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Backup",
        "metadata": { "name": "nightly", "namespace": "prod", "uid": "u-1", "resourceVersion": "1" },
        "spec": {}, "status": { "runs": runs },
    }));
    fake.pod(
        pod("list-x", "2026-01-03T00:00:00Z", json!({ "terminated": { "exitCode": 4 } })),
        "{\"event\":\"unreachable\",\"storage\":\"dav\",\"reason\":\"PermissionDenied\",\"message\":\"Storage dav: refused\"}\n\
         {\"event\":\"artefact\",\"state\":\"Stored\",\"storage\":\"disk\",\"key\":\"a.tar.gz.enc\",\"run\":\"nightly-1\",\"startedAt\":\"2026-01-02T00:00:00Z\",\"storedBytes\":7,\"encryption\":\"openssl\"}\n",
    );
    fake.operate(|object| {
        let request = request(object)?;
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{ "id": request.id, "action": "List", "state": "Failed", "job": "list", "message": "Storage dav: refused; the rest: 1 archives" }]);
        Some(after)
    });
    let ran = Config::new(&fake).run(&["runs", "backup/nightly", "--stored"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.err
            .contains("error: Storage dav: refused; the rest: 1 archives"),
        "{}",
        ran.err
    );
    let rows: Vec<Vec<&str>> = ran
        .out
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "RUN",
            "STATE",
            "STORAGE",
            "STARTED",
            "SIZE",
            "ROWS",
            "ENCRYPTED",
            "AGE",
            "KEY"
        ]
    );
    assert_eq!(rows[1][..3], ["nightly-1", "Stored", "disk"]);
    assert_eq!((rows[1][6], rows[1][8]), ("openssl", "a.tar.gz.enc"));
    assert_eq!(rows[2][..3], ["-", "Unreachable", "dav"]);
    assert_eq!(
        rows.len(),
        3,
        "nothing is called missing that was not looked for: {}",
        ran.out
    );
}

#[test]
fn a_container_that_is_not_there_is_refused_with_those_that_are() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        json!({ "runs": [{ "name": "shop-1", "trigger": "Schedule", "result": "Succeeded" }] }),
    ));
    fake.pod(
        json!({
            "metadata": { "name": "shop-1-a", "namespace": "prod" },
            "spec": { "initContainers": [{ "name": "fetch" }], "containers": [{ "name": "backup" }] },
        }),
        "done\n",
    );
    for args in [
        vec!["logs", "shop", "-c", "wrong"],
        vec!["logs", "shop", "-c", "wrong", "-f"],
    ] {
        Config::new(&fake).run(&args).fails(
            2,
            "error: pod shop-1-a has no container \"wrong\"; its containers are fetch, backup",
        );
    }
}

/// stdout has the run in the format asked for and nothing else, good or bad.
#[test]
fn u14_a_run_that_is_waited_for_is_json_where_that_is_asked_for() {
    for (result, code) in [("Succeeded", 0), ("Failed", 4)] {
        let (_fake, config) = with_result(json!({ "result": result, "reason": "Completed" }));
        let ran = config.run(&["run-now", "shop", "--wait", "-o", "json"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let run: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            (&run["result"], &run["object"], &run["namespace"]),
            (&json!(result), &json!("mysqlbackup/shop"), &json!("prod"))
        );
        let (_fake, config) = with_result(json!({ "result": result, "reason": "Completed" }));
        let ran = config.run(&["run-now", "shop", "--wait", "-o", "name"]);
        assert!(
            ran.out.starts_with("run/shop-m") && ran.out.lines().count() == 1,
            "{ran:?}"
        );
    }
}

#[test]
fn u14_a_line_of_another_namespace_names_it() {
    let fake = Fake::start();
    for namespace in ["eu", "prod"] {
        fake.put(backup(
            namespace,
            "shop",
            json!({ "schedule": "@daily" }),
            Value::Null,
        ));
    }
    let config = Config::new(&fake);
    let ran = config.run(&["suspend", "-A", "--all", "--yes"]).ok();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[0].contains("shop suspended")
            && lines[0].ends_with(" (namespace eu)")
            && !lines[1].contains("namespace"),
        "{}",
        ran.out
    );
}
