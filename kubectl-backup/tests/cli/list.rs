//! `list` against a server that pages, expires and refuses.

use axum::http::Method;
use serde_json::{Value, json};

use super::fake::{Fake, backup, status};
use super::{Config, Ran};

fn soon(hours: i64) -> String {
    // Half an hour to spare: the test may be slow.
    let at = chrono::Utc::now() + chrono::Duration::minutes(hours * 60 + 30);
    crds::time::rfc3339(at)
}

fn ago(hours: i64) -> String {
    let at = chrono::Utc::now() - chrono::Duration::minutes(hours * 60 + 30);
    crds::time::rfc3339(at)
}

fn four(fake: &Fake) {
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Succeeded" }]);
    fake.put(backup("prod", "shop", json!({
        "schedule": "0 2 * * *", "timeZone": "Europe/Berlin",
        "retention": { "keepLast": 7, "keepDaily": 14 }, "destination": { "s3": { "bucket": "backups" } },
    }), json!({
        "schedule": { "text": "0 2 * * *", "timeZone": "Europe/Berlin" }, "activeCount": 0,
        "lastScheduleTime": ago(9), "lastResult": "Succeeded", "lastSuccessfulTime": ago(9), "lastSize": "1.8GiB",
        "nextScheduleTime": soon(16), "consecutiveFailures": 0, "conditions": ready,
        "binlogs": { "intervalSeconds": 300, "anchor": ago(90), "accountedUntil": ago(9), "windows": [{ "from": ago(90), "until": ago(9) }] },
        "runs": [{ "name": "shop-1", "trigger": "Schedule", "result": "Succeeded", "startTime": ago(9), "completionTime": ago(8) }],
    })));
    fake.put(backup("prod", "billing", json!({ "schedule": "*/30 * * * *" }), json!({
        "schedule": { "text": "*/30 * * * *", "timeZone": "UTC" }, "activeCount": 1, "lastResult": "Failed",
        "nextScheduleTime": soon(12), "conditions": [{ "type": "Ready", "status": "True", "reason": "NextSlotSet" }],
        "runs": [{ "name": "billing-2", "trigger": "Schedule", "result": "Running", "startTime": ago(9) }],
    })));
    fake.put(backup("prod", "crm", json!({ "schedule": "0 3 * * 0", "suspend": true }), json!({
        "schedule": { "text": "0 3 * * 0", "timeZone": "UTC" }, "lastResult": "Succeeded", "suspendedSince": ago(30),
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Suspended" }], "lastScheduleTime": ago(50),
    })));
    fake.put(backup(
        "prod",
        "typo",
        json!({ "schedule": "61 * * * *" }),
        json!({
            "conditions": [{ "type": "Ready", "status": "False", "reason": "InvalidSchedule" }],
        }),
    ));
    fake.put(backup(
        "other",
        "new",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
}

#[test]
fn one_line_an_object() {
    let fake = Fake::start();
    four(&fake);
    let config = Config::new(&fake);
    let ran = config.run(&["list", "mysqlbackup"]).ok();
    snapbox::assert_data_eq!(
        ran.out.clone(),
        snapbox::str![[r#"
NAME                  SCHEDULE       ZONE            STATUS      LAST-RUN   RESULT      NEXT-RUN   AGE
mysqlbackup/billing   */30 * * * *   UTC             Running     9h         Running     in 12h     5d
mysqlbackup/crm       0 3 * * 0      UTC             Suspended   5d         Succeeded   -          5d
mysqlbackup/shop      0 2 * * *      Europe/Berlin   Active      9h         Succeeded   in 16h     5d
mysqlbackup/typo      61 * * * *     <unset>         Invalid     <never>    <none>      -          5d

"#]]
    );
    assert_eq!(ran.err, "");
    let seen = fake.seen();
    assert_eq!(seen.len(), 1, "one request, no discovery: {seen:#?}");
    assert_eq!(
        seen[0].path,
        "/apis/batch.isekiro.com/v1/namespaces/prod/mysqlbackups"
    );
    assert_eq!(seen[0].query["includeObject"], "None");
    assert_eq!(seen[0].query["limit"], "500");
}

#[test]
fn wide_and_all_namespaces() {
    let fake = Fake::start();
    four(&fake);
    let config = Config::new(&fake);
    snapbox::assert_data_eq!(
        config.run(&["list", "-A", "-o", "wide"]).ok().out,
        snapbox::str![[r#"
NAMESPACE   NAME                  SCHEDULE       ZONE            STATUS      LAST-RUN   RESULT      NEXT-RUN   SIZE     DURATION   KEEP               STORAGE        LAST-SUCCESS   FAILURES   SUSPENDED-SINCE   RECOVERABLE   REASON            AGE
other       mysqlbackup/new       @daily         <unset>         Pending     <never>    <none>      -          -        -          <unset>            <unset>        <never>        0          -                 -             <none>            5d
prod        mysqlbackup/billing   */30 * * * *   UTC             Running     9h         Running     in 12h     -        -          <unset>            <unset>        <never>        0          -                 -             NextSlotSet       5d
prod        mysqlbackup/crm       0 3 * * 0      UTC             Suspended   5d         Succeeded   -          -        -          <unset>            <unset>        <never>        0          30h               -             Suspended         5d
prod        mysqlbackup/shop      0 2 * * *      Europe/Berlin   Active      9h         Succeeded   in 16h     1.8GiB   60m        last 7, daily 14   s3://backups   5d             0          -                 9h ago        Succeeded         5d
prod        mysqlbackup/typo      61 * * * *     <unset>         Invalid     <never>    <none>      -          -        -          <unset>            <unset>        <never>        0          -                 -             InvalidSchedule   5d

"#]]
    );
}

#[test]
fn chunks_and_a_restart_when_one_expires() {
    let fake = Fake::start();
    for n in 0..1200 {
        fake.put(backup(
            "prod",
            &format!("b{n:04}"),
            json!({ "schedule": "@daily" }),
            Value::Null,
        ));
    }
    fake.expire("1000");
    let config = Config::new(&fake);
    let ran = config.run(&["list", "mbk", "--no-headers"]).ok();
    assert_eq!(ran.out.lines().count(), 1200);
    let mut names: Vec<&str> = ran
        .out
        .lines()
        .map(|l| l.split_whitespace().next().unwrap())
        .collect();
    names.dedup();
    assert_eq!(names.len(), 1200, "no row twice");
    let tokens: Vec<String> = fake
        .seen()
        .iter()
        .map(|s| s.query.get("continue").cloned().unwrap_or_default())
        .collect();
    assert_eq!(tokens, ["", "500", "1000", "", "500", "1000"]);
    // The same for full objects.
    fake.expire("500");
    let ran = config.run(&["list", "mbk", "-o", "name"]).ok();
    assert_eq!(ran.out.lines().count(), 1200);
    assert!(ran.out.starts_with("mysqlbackup.batch.isekiro.com/b0000\n"));
}

#[test]
fn the_reader_may_go_away() {
    use std::io::Read;
    let fake = Fake::start();
    for n in 0..3000 {
        fake.put(backup(
            "prod",
            &format!("b{n:04}"),
            json!({ "schedule": "@daily" }),
            Value::Null,
        ));
    }
    let config = Config::new(&fake);
    let mut child = config
        .command(&["list"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(matches!(ran.code, Some(0 | 141)), "{ran:?}");
    assert_eq!(ran.err, "");
}

#[test]
fn json_is_a_list_and_keeps_fields_nobody_knows() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let empty: Value = serde_json::from_str(&config.run(&["list", "-o", "json"]).ok().out).unwrap();
    assert_eq!(
        (&empty["kind"], &empty["items"]),
        (&json!("List"), &json!([]))
    );
    let mut object = backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "fromTheFuture": [1] }),
        Value::Null,
    );
    object["metadata"]["managedFields"] = json!([{ "manager": "x" }]);
    fake.put(object);
    let list: Value = serde_json::from_str(&config.run(&["list", "-o", "json"]).ok().out).unwrap();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"][0]["spec"]["fromTheFuture"], json!([1]));
    assert_eq!(list["items"][0]["metadata"].get("managedFields"), None);
    let one: Value =
        serde_json::from_str(&config.run(&["list", "mbk/shop", "-o", "json"]).ok().out).unwrap();
    assert_eq!(one["kind"], "MysqlBackup");
    let yaml = config
        .run(&["list", "shop", "-o", "yaml", "--show-managed-fields"])
        .ok()
        .out;
    assert!(yaml.contains("managedFields:"), "{yaml}");
    let yaml: Value = serde_yaml::from_str(&config.run(&["list", "-o", "yaml"]).ok().out).unwrap();
    assert_eq!(yaml, list);
    // A name that kubectl takes.
    assert_eq!(
        config.run(&["list", "-o", "name"]).ok().out,
        "mysqlbackup.batch.isekiro.com/shop\n"
    );
}

#[test]
fn nothing_found_is_said_on_stderr() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let ran = config.run(&["list"]).ok();
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "No backups found in prod namespace.\n")
    );
    let ran = config.run(&["list", "-A"]).ok();
    assert_eq!(ran.err, "No backups found.\n");
}

#[test]
fn names_that_are_not_there() {
    let fake = Fake::start();
    four(&fake);
    let config = Config::new(&fake);
    config.run(&["list", "shp"]).fails(5, "Error from server (NotFound): mysqlbackups.batch.isekiro.com \"shp\" not found in namespace \"prod\". Did you mean \"shop\"?");
    config.run(&["list", "mbk/new"]).fails(5, "Error from server (NotFound): mysqlbackups.batch.isekiro.com \"new\" not found in namespace \"prod\". It also exists in: other.");
    let ran = config.run(&["list", "shop", "shp", "-o", "name"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(5), "mysqlbackup.batch.isekiro.com/shop\n")
    );
    config.run(&["list", "shp", "--ignore-not-found"]).ok();
    config.run(&["list", "pod/x"]).fails(
        2,
        "error: no type \"pod\"; the types are mysqlbackup, backup, cronbackup, restore, database, storage",
    );
}

#[test]
fn refusals_have_their_own_exit_status() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let text = "mysqlbackups.batch.isekiro.com is forbidden: User \"alice\" cannot list resource \"mysqlbackups\"";
    fake.deny(Method::GET, 403, status(403, "Forbidden", text, ""));
    let ran = config
        .run(&["list"])
        .fails(6, &format!("Error from server (Forbidden): {text}"));
    assert_eq!(
        ran.err.lines().nth(1),
        Some("Hint: kubectl auth can-i list mysqlbackups.batch.isekiro.com -n prod")
    );
    fake.deny(
        Method::GET,
        401,
        status(401, "Unauthorized", "Unauthorized", ""),
    );
    config.run(&["list"]).fails(
        6,
        "error: You must be logged in to the server (Unauthorized; context \"prod-eu\")",
    );
    assert!(!config.run(&["list"]).err.contains("secret-token"));
}

#[test]
fn a_kind_that_is_not_installed() {
    let fake = Fake::start();
    fake.uninstall();
    let config = Config::new(&fake);
    for verb in [
        &["list"][..],
        &["list", "-o", "json"],
        &["describe", "x"],
        &["suspend", "x"],
    ] {
        config.run(verb).fails(7, "error: MysqlBackup is not installed in this cluster (no resource \"mysqlbackups\" in group \"batch.isekiro.com\"). Install the operator, or check the context: current \"prod-eu\"");
    }
}

#[test]
fn a_watch_shows_each_change() {
    use std::io::{BufRead, BufReader};
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let mut child = config
        .command(&["list", "mbk", "-w"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|l| l.unwrap());
    assert!(lines.next().unwrap().starts_with("NAME"));
    assert!(lines.next().unwrap().contains("Pending"));
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "suspend": true }),
        Value::Null,
    ));
    let line = lines.next().unwrap();
    assert!(
        line.starts_with("mysqlbackup/shop") && line.contains("Suspended"),
        "{line}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn templates_as_kubectl_has_them() {
    let fake = Fake::start();
    four(&fake);
    let config = Config::new(&fake);
    let print = |args: &[&str]| config.run(args).ok().out;
    assert_eq!(
        print(&["list", "mbk", "-o", "jsonpath={.items[*].metadata.name}"]),
        "billing crm shop typo"
    );
    assert_eq!(
        print(&["list", "mbk/shop", "-o", "jsonpath={.spec.schedule}"]),
        "0 2 * * *"
    );
    snapbox::assert_data_eq!(
        print(&[
            "list",
            "mbk",
            "-o",
            "custom-columns=NAME:.metadata.name,ZONE:.spec.timeZone,RUNS:.status.runs[*].name"
        ]),
        snapbox::str![[r#"
NAME      ZONE            RUNS
billing   <none>          billing-2
crm       <none>          <none>
shop      Europe/Berlin   shop-1
typo      <none>          <none>

"#]]
    );
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "0 2 * * *" }),
        json!({ "runs": [{ "name": "shop-1", "trigger": "Schedule", "result": "Succeeded" }] }),
    ));
    assert_eq!(
        print(&[
            "runs",
            "mbk/shop",
            "--no-headers",
            "-o",
            "custom-columns=R:.name,O:.object"
        ]),
        "shop-1   mysqlbackup/shop\n"
    );
    assert_eq!(
        print(&["suspend", "mbk/shop", "-o", "jsonpath={.spec.suspend}"]),
        "true"
    );
    let bad = config.run(&["list", "-o", "jsonpath={.items[0}"]);
    bad.fails(
        2,
        "error: invalid value 'jsonpath={.items[0}' for '--output <FORMAT>': unterminated array",
    );
    let unknown = config.run(&["list", "-o", "xml"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("custom-columns="), "{unknown:?}");
}

#[test]
fn labels_have_columns() {
    let fake = Fake::start();
    four(&fake);
    let mut object = fake.get("prod", "shop").unwrap();
    object["metadata"]["labels"] = json!({ "team": "shop", "example.com/tier": "gold" });
    fake.put(object);
    let config = Config::new(&fake);
    let listed = config
        .run(&[
            "list",
            "mbk",
            "-L",
            "example.com/tier,team",
            "--show-labels",
        ])
        .ok();
    let ends: Vec<String> = listed
        .out
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[words.len() - 4..].join(" ")
        })
        .collect();
    assert_eq!(
        ends,
        [
            "AGE TIER TEAM LABELS",
            "5d <none> <none> <none>",
            "5d <none> <none> <none>",
            "5d gold shop example.com/tier=gold,team=shop",
            "5d <none> <none> <none>",
        ]
    );
    let named = config.run(&["list", "mbk/shop", "-L", "team"]).ok();
    assert!(named.out.ends_with("5d       shop\n"), "{}", named.out);
}

#[test]
fn a_watch_names_its_events() {
    use std::io::{BufRead, BufReader};
    let fake = Fake::start();
    let shop = backup("prod", "shop", json!({ "schedule": "@daily" }), Value::Null);
    fake.put(shop);
    let config = Config::new(&fake);
    let watch = |more: &[&str]| {
        let words = [&["list", "mbk", "-w", "--output-watch-events"], more].concat();
        let mut child = config
            .command(&words)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(|l| l.unwrap()))
    };
    let (mut child, mut lines) = watch(&[]);
    assert!(lines.next().unwrap().starts_with("EVENT    NAME"));
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("ADDED    mysqlbackup/shop")
    );
    config.run(&["suspend", "mbk/shop"]).ok();
    let line = lines.next().unwrap();
    assert!(line.starts_with("MODIFIED   mysqlbackup/shop"), "{line}");
    config.run(&["delete", "mbk/shop"]).ok();
    let line = lines.next().unwrap();
    assert!(line.starts_with("DELETED   mysqlbackup/shop"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();

    fake.put(backup(
        "prod",
        "crm",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let (mut child, mut lines) = watch(&["-o", "jsonpath={.metadata.name}{\"\\n\"}"]);
    assert_eq!(lines.next().unwrap(), "crm");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn selectors_are_the_servers_business() {
    let fake = Fake::start();
    four(&fake);
    let config = Config::new(&fake);
    config
        .run(&[
            "list",
            "mbk",
            "-A",
            "-l",
            "team in (a,b)",
            "--field-selector",
            "metadata.name=shop",
        ])
        .ok();
    let seen = fake.seen();
    assert_eq!(seen[0].path, "/apis/batch.isekiro.com/v1/mysqlbackups");
    assert_eq!(seen[0].query["labelSelector"], "team in (a,b)");
    assert_eq!(seen[0].query["fieldSelector"], "metadata.name=shop");
}

/// Who may read one kind sees that, and is told what is left out.
#[test]
fn a_kind_that_may_not_be_read_is_left_out_and_said() {
    let fake = Fake::start();
    let config = Config::new(&fake);
    fake.install("backups");
    let status = json!({ "observedGeneration": 1, "runs": [{ "name": "shop-1", "trigger": "Schedule", "result": "Succeeded" }] });
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        status,
    ));
    let text = "backups.gobackup.io is forbidden: User \"alice\" cannot list resource \"backups\"";
    fake.deny_path(
        "/backups",
        403,
        super::fake::status(403, "Forbidden", text, ""),
    );
    for args in [
        vec![],
        vec!["list"],
        vec!["list", "-o", "name"],
        vec!["list", "--stale"],
        vec!["runs"],
        vec!["bundle"],
        vec!["schedule", "calendar"],
        vec!["top"],
    ] {
        let ran = config.run(&args).ok();
        assert_eq!(
            ran.err.lines().next(),
            Some(format!("warning: left out: Error from server (Forbidden): {text}").as_str()),
            "{args:?} {ran:?}"
        );
    }
    let ran = config.run(&["health"]);
    assert!(ran.out.contains("mysqlbackup/shop"), "{ran:?}");
    assert!(ran.err.contains("left out"), "{ran:?}");
    config.run(&["wait", "shop-1"]).ok();
    config.run(&["logs", "run/shop-1"]).fails(
        5,
        "error: the pods of shop-1 are gone, and their log with them; the run succeeded",
    );
    // What changes all objects does not pass over some.
    config
        .run(&["suspend", "--all"])
        .fails(6, &format!("Error from server (Forbidden): {text}"));
}
