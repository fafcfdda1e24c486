//! `suspend`, `resume` and `delete`.

use axum::http::Method;
use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup, status};

fn three() -> (Fake, Config) {
    let fake = Fake::start();
    for name in ["shop", "crm", "billing"] {
        let mut object = backup(
            "prod",
            name,
            json!({ "schedule": "0 2 * * *" }),
            Value::Null,
        );
        object["metadata"]["labels"] =
            json!({ "team": if name == "crm" { "crm" } else { "shop" } });
        fake.put(object);
    }
    let config = Config::new(&fake);
    (fake, config)
}

#[test]
fn one_field_and_the_reason_are_patched() {
    let (fake, config) = three();
    let ran = config
        .run(&[
            "suspend",
            "shop",
            "--reason",
            "host moved",
            "--for",
            "2h",
            "--utc",
        ])
        .ok();
    assert!(
        ran.out
            .starts_with("mysqlbackup.batch.isekiro.com/shop suspended until "),
        "{}",
        ran.out
    );
    let patch = fake
        .seen()
        .into_iter()
        .find(|s| s.method == "PATCH")
        .unwrap();
    assert_eq!(patch.query["fieldManager"], "kubectl-backup");
    assert_eq!(patch.body["spec"], json!({ "suspend": true }));
    let notes = &patch.body["metadata"]["annotations"];
    assert_eq!(notes["batch.isekiro.com/suspend-reason"], "host moved");
    assert_eq!(notes["batch.isekiro.com/suspended-by"], "alice");
    let until =
        crds::time::parse_rfc3339(notes["batch.isekiro.com/resume-at"].as_str().unwrap()).unwrap();
    let length = until - chrono::Utc::now();
    assert!((7100..=7200).contains(&length.num_seconds()), "{length}");
}

#[test]
fn twice_is_unchanged() {
    let (_fake, config) = three();
    config
        .run(&["suspend", "shop", "--reason", "host moved"])
        .ok();
    let ran = config.run(&["suspend", "shop"]).ok();
    assert_eq!(
        ran.out,
        "mysqlbackup.batch.isekiro.com/shop unchanged (already suspended by alice: \"host moved\")\n"
    );
    assert_eq!(
        config.run(&["suspend", "shop", "--error-unchanged"]).code,
        Some(3)
    );
    assert_eq!(
        config
            .run(&["suspend", "shop", "crm", "--error-unchanged"])
            .code,
        Some(0)
    );
}

#[test]
fn one_unknown_name_keeps_none_of_the_others() {
    let (fake, config) = three();
    let ran = config.run(&["suspend", "shop", "shp", "crm"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 2);
    assert!(ran.err.contains("\"shp\" not found"), "{}", ran.err);
    assert!(fake.get("prod", "crm").unwrap()["spec"]["suspend"] == true);
}

#[test]
fn by_label_and_all_over_namespaces_with_consent() {
    let (fake, config) = three();
    let ran = config.run(&["suspend", "-l", "team=shop"]).ok();
    assert_eq!(ran.out.lines().count(), 2);
    let ran = config.run(&["suspend", "-l", "team=nobody"]).ok();
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "No backups found in prod namespace.\n")
    );
    let ran = config.run(&["suspend", "--all", "-A"]);
    ran.fails(2, "error: cannot ask for confirmation: stdin is not a terminal. Add --yes, or --dry-run=server to preview. This would suspend 3 objects in 1 namespace.");
    assert_eq!(
        fake.get("prod", "crm").unwrap()["spec"].get("suspend"),
        None
    );
    config.run(&["suspend", "--all", "-A", "--yes"]).ok();
    assert!(fake.get("prod", "crm").unwrap()["spec"]["suspend"] == true);
    config.run(&["suspend"]).fails(
        2,
        "error: suspend needs an object: TYPE/NAME, or NAME where it is unique",
    );
}

#[test]
fn resume_says_what_comes_and_what_does_not() {
    let fake = Fake::start();
    let mut object = backup(
        "prod",
        "shop",
        json!({ "schedule": "0 * * * *", "suspend": true }),
        Value::Null,
    );
    let since = chrono::Utc::now() - chrono::Duration::hours(3);
    object["metadata"]["annotations"] = json!({
        "batch.isekiro.com/suspended-since": crds::time::rfc3339(since),
        "batch.isekiro.com/suspend-reason": "x",
    });
    fake.put(object);
    let config = Config::new(&fake);
    let ran = config.run(&["resume", "shop"]).ok();
    assert!(
        ran.out.contains("/shop resumed; next run ")
            && ran.out.ends_with("; 3 missed runs will not be made up\n"),
        "{}",
        ran.out
    );
    let after = fake.get("prod", "shop").unwrap();
    assert_eq!(after["spec"]["suspend"], false);
    let notes = after["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(
        notes.keys().collect::<Vec<_>>(),
        ["batch.isekiro.com/skip-slots-until"]
    );
    assert_eq!(
        config.run(&["resume", "shop"]).ok().out,
        "mysqlbackup.batch.isekiro.com/shop unchanged (not suspended)\n"
    );
}

#[test]
fn what_was_missed_is_skipped_or_the_newest_is_made_up() {
    const SKIP: &str = "batch.isekiro.com/skip-slots-until";
    let (fake, config) = three();
    for name in ["shop", "crm"] {
        let mut object = fake.get("prod", name).unwrap();
        let since = chrono::Utc::now() - chrono::Duration::hours(3);
        object["spec"] = json!({ "schedule": "0 * * * *", "suspend": true });
        object["metadata"]["annotations"] =
            json!({ "batch.isekiro.com/suspended-since": crds::time::rfc3339(since) });
        fake.put(object);
    }
    let start = chrono::Utc::now();
    let ran = config.run(&["resume", "shop", "--skip-missed"]).ok();
    assert!(
        ran.out.ends_with("; 3 missed runs will not be made up\n"),
        "{}",
        ran.out
    );
    let until = fake.get("prod", "shop").unwrap()["metadata"]["annotations"][SKIP].clone();
    let until = crds::time::parse_rfc3339(until.as_str().unwrap()).unwrap();
    assert!(
        (until - start).num_seconds().abs() <= 30,
        "no slot before now is started: {until}"
    );
    let ran = config.run(&["resume", "crm", "--run-missed"]).ok();
    assert!(
        ran.out
            .ends_with("; of 3 missed, the newest is made up if its deadline allows\n"),
        "{}",
        ran.out
    );
    let after = fake.get("prod", "crm").unwrap();
    assert_eq!(after["metadata"]["annotations"], json!({}));
    assert_eq!(
        config
            .run(&["resume", "crm", "--run-missed", "--skip-missed"])
            .code,
        Some(2)
    );
}

#[test]
fn many_are_resumed_by_name_label_and_all() {
    let (fake, config) = three();
    let suspended = || {
        let all = ["shop", "crm", "billing"].into_iter();
        let held = all.filter(|n| fake.get("prod", n).unwrap()["spec"]["suspend"] == true);
        held.collect::<Vec<_>>()
    };
    config.run(&["suspend", "--all"]).ok();
    assert_eq!(suspended(), ["shop", "crm", "billing"]);
    config.run(&["resume", "-l", "team=shop"]).ok();
    assert_eq!(suspended(), ["crm"]);
    config.run(&["suspend", "shop", "billing"]).ok();
    config.run(&["resume", "shop", "crm"]).ok();
    assert_eq!(suspended(), ["billing"]);
    config.run(&["resume", "--all"]).ok();
    assert!(suspended().is_empty());
}

/// A time of day is one of the zone in which it is shown; what has two readings changes nothing.
#[test]
fn u17_suspended_until_a_time_of_day() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "timeZone": "Asia/Tokyo" }),
        json!({ "schedule": { "expression": "@daily", "timeZone": "Asia/Tokyo" } }),
    ));
    let config = Config::new(&fake);
    for (args, shown) in [
        (vec!["tomorrow 06:00"], "T06:00:00+09:00 "),
        (vec!["tomorrow 06:00", "--utc"], "T06:00:00Z "),
        (vec!["18:00", "--tz", "America/Lima"], "T18:00:00-05:00 "),
    ] {
        let line = [&["suspend", "shop", "--until"], args.as_slice()].concat();
        let ran = config.run(&line).ok();
        assert!(ran.out.contains(shown), "{ran:?}");
        let noted = fake.get("prod", "shop").unwrap()["metadata"]["annotations"]
            ["batch.isekiro.com/resume-at"]
            .clone();
        let at = crds::time::parse_rfc3339(noted.as_str().unwrap()).unwrap();
        let said = ran.out.split(" until ").nth(1).unwrap();
        let said = said.split(' ').next().unwrap();
        assert_eq!(crds::time::parse_rfc3339(said), Some(at));
    }
    let before = fake.seen().len();
    let ran = config.run(&["suspend", "shop", "--until", "tomorrow"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err
            .starts_with("error: --until \"tomorrow\" can be read as ")
            && ran.err.contains("T00:00:00+09:00 or "),
        "{}",
        ran.err
    );
    assert!(fake.seen()[before..].iter().all(|s| s.method == "GET"));
}

#[test]
fn suspended_until_an_instant() {
    let (fake, config) = three();
    let until = "2036-09-04T13:20:00+02:00";
    let ran = config.run(&["suspend", "shop", "--until", until, "--utc"]);
    assert!(ran.ok().out.starts_with(
        "mysqlbackup.batch.isekiro.com/shop suspended until 2036-09-04T11:20:00Z (skips "
    ));
    let notes = &fake.get("prod", "shop").unwrap()["metadata"]["annotations"];
    let kept = notes["batch.isekiro.com/resume-at"].as_str().unwrap();
    assert_eq!(
        crds::time::parse_rfc3339(kept),
        crds::time::parse_rfc3339(until)
    );
}

#[test]
fn a_gitops_owner_is_named() {
    let fake = Fake::start();
    let mut object = backup(
        "prod",
        "shop",
        json!({ "schedule": "0 * * * *", "suspend": false }),
        Value::Null,
    );
    object["metadata"]["managedFields"] = json!([{
        "manager": "argocd-controller", "operation": "Apply", "apiVersion": "batch.isekiro.com/v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:suspend": {} } },
    }]);
    fake.put(object);
    let ran = Config::new(&fake).run(&["suspend", "shop"]).ok();
    assert_eq!(
        ran.err.lines().next(),
        Some(
            "warning: spec.suspend of shop is owned by argocd-controller; it will be reverted at its next sync. To suspend it for good, change it there"
        )
    );
}

#[test]
fn bad_times_and_denials() {
    let (fake, config) = three();
    assert_eq!(
        config.run(&["suspend", "shop", "--for", "soon"]).code,
        Some(2)
    );
    assert_eq!(
        config
            .run(&["suspend", "shop", "--until", "2001-01-01T00:00:00Z"])
            .code,
        Some(2)
    );
    let text = "mysqlbackups.batch.isekiro.com \"shop\" is forbidden: User \"alice\" cannot patch";
    fake.deny(Method::PATCH, 403, status(403, "Forbidden", text, "shop"));
    let ran = config
        .run(&["suspend", "shop"])
        .fails(6, &format!("Error from server (Forbidden): {text}"));
    assert!(
        ran.err
            .contains("Hint: kubectl auth can-i patch mysqlbackups.batch.isekiro.com -n prod"),
        "{}",
        ran.err
    );
}

#[test]
fn delete_says_what_stays() {
    let (fake, config) = three();
    let ran = config.run(&["delete", "shop"]).ok();
    assert_eq!(ran.out, "mysqlbackup.batch.isekiro.com/shop deleted\n");
    assert_eq!(
        ran.err,
        "What mysqlbackup/shop has stored stays where it is.\n"
    );
    assert_eq!(fake.get("prod", "shop"), None);
    config.run(&["delete", "shop"]).fails(5, "Error from server (NotFound): mysqlbackups.batch.isekiro.com \"shop\" not found in namespace \"prod\".");
    config.run(&["delete", "shop", "--ignore-not-found"]).ok();
    let ran = config.run(&["delete", "billing", "--keep-data"]).ok();
    assert_eq!(
        ran.err,
        "What mysqlbackup/billing has stored stays where it is.\n"
    );
    assert_eq!(
        config.run(&["delete", "--all"]).code,
        Some(2),
        "--all wants consent"
    );
    config.run(&["delete", "--all", "--yes"]).ok();
    assert_eq!(fake.get("prod", "crm"), None);
}

#[test]
fn data_is_deleted_by_the_operator_before_the_object() {
    let (fake, config) = three();
    assert_eq!(
        config.run(&["delete", "shop", "--delete-data"]).code,
        Some(2),
        "it wants consent"
    );
    let state = std::sync::Arc::new(std::sync::Mutex::new("Failed"));
    let answer = state.clone();
    fake.operate(move |object| {
        let notes = object["metadata"]["annotations"].as_object()?;
        let (_, value) = notes.iter().find(|(k, _)| k.starts_with("batch.isekiro.com/request-"))?;
        let request = crds::request::Request::parse(value.as_str()?).ok()?;
        assert_eq!((request.action, request.options.all), (crds::request::Action::Prune, true));
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"] = json!({ "requests": [{ "id": request.id, "action": "Prune", "state": *answer.lock().unwrap(), "message": "the store refuses" }] });
        Some(after)
    });
    let ran = config.run(&["delete", "shop", "--delete-data", "--yes"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        fake.get("prod", "shop").is_some(),
        "an object whose data stays is kept"
    );
    *state.lock().unwrap() = "Succeeded";
    config
        .run(&["delete", "shop", "--delete-data", "--yes"])
        .ok();
    assert_eq!(fake.get("prod", "shop"), None);
}

/// Takes the plugin's request off the object, or not, and answers as told.
fn prune_request(object: &Value) -> Option<crds::request::Request> {
    let notes = object["metadata"]["annotations"].as_object()?;
    let (_, value) = notes
        .iter()
        .find(|(k, _)| k.starts_with("batch.isekiro.com/request-"))?;
    crds::request::Request::parse(value.as_str()?).ok()
}

#[test]
fn u2_a_request_to_remove_data_is_withdrawn_when_nobody_answers() {
    use std::os::unix::process::ExitStatusExt;
    let (fake, config) = three();
    // An interrupt.
    let mut child = config
        .command(&["delete", "shop", "--delete-data", "--yes"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    super::eventually("the request stands", || {
        prune_request(&fake.get("prod", "shop").unwrap()).is_some()
    });
    std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let ended = child.wait().unwrap();
    assert_eq!((ended.code(), ended.signal()), (Some(130), None));
    let mut err = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut err).unwrap();
    assert!(err.contains("the request was withdrawn"), "{err}");
    let after = fake.get("prod", "shop").expect("the object stays");
    assert!(prune_request(&after).is_none(), "{after}");
    // No operator answers.
    let ran = config.run(&["delete", "shop", "--delete-data", "--yes"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.err.contains("the request was withdrawn"), "{}", ran.err);
    assert!(prune_request(&fake.get("prod", "shop").unwrap()).is_none());
}

#[test]
fn u2_what_would_go_is_previewed() {
    let (fake, config) = three();
    fake.operate(|object| {
        let request = prune_request(object)?;
        assert!(request.options.all && request.options.dry_run);
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"] = json!({ "requests": [{ "id": request.id, "action": "Prune", "state": "Succeeded", "message": "3 of 3 artefacts would be removed in bucket x" }] });
        Some(after)
    });
    let ran = config
        .run(&["delete", "shop", "--delete-data", "--dry-run=server"])
        .ok();
    assert!(
        ran.err.contains("3 of 3 artefacts would be removed"),
        "{ran:?}"
    );
    assert!(fake.get("prod", "shop").is_some());
    config
        .run(&["delete", "shop", "--delete-data", "--dry-run=client"])
        .ok();
    assert!(prune_request(&fake.get("prod", "shop").unwrap()).is_none());
}

#[test]
fn u5_what_is_not_given_stays_as_it_was_said() {
    const REASON: &str = "batch.isekiro.com/suspend-reason";
    const UNTIL: &str = "batch.isekiro.com/resume-at";
    let (fake, config) = three();
    let notes = || fake.get("prod", "shop").unwrap()["metadata"]["annotations"].clone();
    config.run(&["suspend", "shop", "--for", "2h"]).ok();
    let until = notes()[UNTIL].clone();
    assert!(until.is_string());
    config
        .run(&["suspend", "shop", "--reason", "host moves"])
        .ok();
    assert_eq!(
        (&notes()[UNTIL], &notes()[REASON]),
        (&until, &json!("host moves"))
    );
    config.run(&["suspend", "shop", "--for", "3h"]).ok();
    assert_eq!(notes()[REASON], "host moves");
    assert_ne!(notes()[UNTIL], until);
}

#[test]
fn u5_a_list_resumes_what_its_caller_suspended() {
    let (fake, config) = three();
    let mut bobs = fake.get("prod", "crm").unwrap();
    bobs["spec"]["suspend"] = json!(true);
    bobs["metadata"]["annotations"] = json!({ "batch.isekiro.com/suspended-by": "bob" });
    fake.put(bobs);
    let suspended = |name: &str| fake.get("prod", name).unwrap()["spec"]["suspend"] == true;
    config.run(&["suspend", "--all"]).ok();
    let ran = config.run(&["resume", "--all"]).ok();
    assert!(
        ran.out.contains("/crm left suspended: bob suspended it; resume it by its name, or add --suspended-by bob\n"),
        "{}", ran.out
    );
    assert_eq!((suspended("shop"), suspended("crm")), (false, true));
    config.run(&["resume", "crm", "--suspended-by", "bob"]).fails(
        2,
        "error: --suspended-by goes with --all or --selector; an object that is named is resumed, no matter who suspended it",
    );
    config
        .run(&["resume", "--all", "--suspended-by", "bob"])
        .ok();
    assert!(!suspended("crm"));
    config.run(&["suspend", "crm"]).ok();
    config
        .run(&["resume", "--all", "--suspended-by", "any"])
        .ok();
    assert!(!suspended("crm"));
}

#[test]
fn only_a_change_in_all_namespaces_needs_consent() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    for args in [
        vec!["suspend", "-A", "--all", "--dry-run=server"],
        vec!["suspend", "-A", "--all", "--dry-run"],
        vec!["run-now", "-A", "--all", "--dry-run=server"],
        vec!["delete", "-A", "--all", "--dry-run=server"],
        vec!["export", "-A", "--all"],
    ] {
        config.run(&args).ok();
    }
    let ran = config.run(&["suspend", "-A", "--all"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
