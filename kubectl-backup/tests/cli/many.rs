//! `run-now` over several objects, and following what a run's pod does.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};

use crds::names::manual_name;
use serde_json::{Value, json};

use super::fake::{Fake, backup};
use super::run_now::request;
use super::{Config, eventually};

/// Objects of a team, and an operator that begins every run that is asked for and ends none.
fn team(names: &[(&str, &str)]) -> (Fake, Config) {
    let fake = Fake::start();
    for (name, team) in names {
        let mut object = backup("prod", name, json!({ "schedule": "@daily" }), Value::Null);
        object["metadata"]["labels"] = json!({ "team": team });
        fake.put(object);
    }
    fake.operate(|object| {
        let request = request(object)?;
        let name = object["metadata"]["name"].as_str()?;
        let run = manual_name(name, &format!("uid-{name}"), &request.id);
        let mut after = object.clone();
        after["status"] = json!({
            "requests": [{ "id": request.id, "action": "Backup", "state": "Running", "job": run }],
            "runs": [{ "name": run, "trigger": "Manual", "requestId": request.id, "result": "Running", "phase": "Dumping", "startTime": "2026-01-01T00:00:00Z" }],
        });
        Some(after)
    });
    let config = Config::new(&fake);
    (fake, config)
}

/// Ends the run of an object.
fn end(fake: &Fake, name: &str) {
    let mut object = fake.get("prod", name).unwrap();
    object["status"]["runs"][0]["result"] = "Succeeded".into();
    object["status"]["runs"][0]["completionTime"] = "2026-01-01T00:00:31Z".into();
    fake.put(object);
}

/// The objects a run was asked of, in order.
fn asked(fake: &Fake) -> Vec<String> {
    let seen = fake.seen().into_iter().filter(|s| s.method == "PATCH");
    seen.map(|s| s.path.rsplit('/').next().unwrap().to_owned())
        .collect()
}

/// Reads on until a line holds all of these words.
#[track_caller]
fn line_with(err: &mut BufReader<ChildStderr>, words: &[&str]) -> String {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        assert!(err.read_line(&mut line).unwrap() > 0, "{words:?} in {all}");
        if words.iter().all(|w| line.contains(w)) {
            return line;
        }
        all.push_str(&line);
    }
}

fn start(config: &Config, args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut command = config.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let err = BufReader::new(child.stderr.take().unwrap());
    (child, err)
}

#[test]
fn a_selector_picks_and_max_parallel_limits() {
    let (fake, config) = team(&[("a", "shop"), ("b", "shop"), ("c", "shop"), ("d", "crm")]);
    let (child, mut err) = start(
        &config,
        &[
            "run-now",
            "-l",
            "team=shop",
            "--wait",
            "--max-parallel",
            "2",
        ],
    );
    let (first, second) = (
        line_with(&mut err, &["Dumping"]),
        line_with(&mut err, &["Dumping"]),
    );
    assert_ne!(first, second);
    assert_eq!(asked(&fake).len(), 2, "no third beside two that run");
    end(&fake, &asked(&fake)[0]);
    eventually("the third is asked for when one has ended", || {
        asked(&fake).len() == 3
    });
    for name in &asked(&fake)[1..] {
        end(&fake, name);
    }
    let ran = super::Ran::of(child.wait_with_output().unwrap()).ok();
    assert_eq!(ran.out.matches(" succeeded\n").count(), 3, "{}", ran.out);
    let mut names = asked(&fake);
    names.sort();
    assert_eq!(names, ["a", "b", "c"], "the other team's is left alone");
}

#[test]
fn all_of_a_namespace() {
    let (fake, config) = team(&[("a", "shop"), ("d", "crm")]);
    config.run(&["run-now", "--all"]).ok();
    let mut names = asked(&fake);
    names.sort();
    assert_eq!(names, ["a", "d"]);
}

fn pod(state: &Value) -> Value {
    json!({
        "metadata": { "name": "a-pod", "namespace": "prod", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "containers": [{ "name": "backup" }] },
        "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state }] },
    })
}

#[test]
fn a_log_is_followed_from_the_making_of_the_container_on() {
    let (fake, config) = team(&[("a", "shop")]);
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    fake.pod(pod(&creating), "");
    let (child, mut err) = start(&config, &["run-now", "a", "--follow"]);
    line_with(&mut err, &["pod a-pod: container is being created"]);
    fake.pod(pod(&json!({ "running": {} })), "table t: 3 rows\n");
    line_with(&mut err, &["table t: 3 rows"]);
    // The stream broke off after its first line; what comes then is shown, and nothing twice.
    let ended = json!({ "terminated": { "exitCode": 0 } });
    fake.pod(pod(&ended), "table t: 3 rows\ntable u: 4 rows\n");
    end(&fake, "a");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut err, &mut rest).unwrap();
    let ran = super::Ran::of(child.wait_with_output().unwrap()).ok();
    assert!(ran.out.ends_with(" succeeded\n"), "{}", ran.out);
    assert!(
        rest.contains("table u: 4 rows\n") && !rest.contains("table t"),
        "{rest}"
    );
}

#[test]
fn the_log_of_a_run_that_has_not_begun_is_waited_for() {
    let (fake, config) = team(&[("a", "shop")]);
    config.run(&["run-now", "a"]).ok();
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    fake.pod(pod(&creating), "");
    let (child, mut err) = start(&config, &["logs", "a", "-f"]);
    line_with(&mut err, &["pod a-pod: container is being created"]);
    let ended = json!({ "terminated": { "exitCode": 0 } });
    fake.pod(pod(&ended), "table t: 3 rows\n");
    let ran = super::Ran::of(child.wait_with_output().unwrap()).ok();
    assert_eq!(ran.out, "table t: 3 rows\n");
}

#[test]
fn u4_runs_of_nothing_are_no_success() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    for args in [
        vec!["run-now", "-l", "app=nobody", "--wait"],
        vec!["run-now", "--all"],
    ] {
        let ran = config.run(&args);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert_eq!(ran.err, "No backups found in prod namespace.\n");
    }
}
