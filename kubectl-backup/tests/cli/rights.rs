//! What each verb asks of the server, against the rights that docs/cli.md says it needs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, Seen, backup};
use super::run_now::request;

/// Verb, right and resource.
type Right = (String, String, String);

/// The table of rights in docs/cli.md.
fn documented() -> BTreeSet<Right> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("\n## Rights\n").unwrap();
    let mut all = BTreeSet::new();
    for row in table.lines().filter(|l| l.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let resource = cells[2].split(" (optional").next().unwrap();
        for right in cells[1].split(", ") {
            all.insert((cells[0].into(), right.into(), resource.into()));
        }
    }
    assert!(all.len() > 40, "{all:?}");
    all
}

/// The right that a request takes, as RBAC names it; none for what everybody may.
fn right(seen: &Seen) -> Option<(String, String)> {
    let path: Vec<&str> = seen.path.trim_matches('/').split('/').collect();
    let (group, rest) = match path.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", "authorization.k8s.io", ..] => return None,
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let (resource, name) = match rest {
        ["namespaces", _, resource, rest @ ..] | [resource, rest @ ..] => (*resource, rest),
        [] => return None,
    };
    let kinds = [
        "mysqlbackups",
        "backups",
        "cronbackups",
        "databases",
        "storages",
    ];
    let resource = match (group, resource, name) {
        ("", resource, [_, sub]) => format!("{resource}/{sub}"),
        ("", resource, _) => resource.to_owned(),
        (_, resource, _) if kinds.contains(&resource) => "the backup kinds".to_owned(),
        (group, resource, _) => format!("{resource}.{group}"),
    };
    let right = match seen.method.as_str() {
        "GET" if seen.query.contains_key("watch") => "watch",
        "GET" if name.is_empty() => "list",
        "GET" => "get",
        "POST" => "create",
        "PATCH" => "patch",
        "DELETE" => "delete",
        other => panic!("{other}"),
    };
    Some((right.to_owned(), resource))
}

/// A cluster with everything a verb may look at, and an operator that ends what is asked at once.
pub fn cluster() -> (Fake, Config) {
    let fake = Fake::start();
    fake.install("restores");
    fake.operate(|object| {
        if object["kind"] == "Restore" {
            let mut after = object.clone();
            after["status"] = json!({ "phase": "Succeeded" });
            return Some(after);
        }
        let request = request(object)?;
        let mut after = object.clone();
        after["metadata"]["annotations"] = json!({});
        after["status"]["requests"] = json!([{ "id": request.id, "action": request.action.as_str(), "state": "Succeeded", "job": "shop-2" }]);
        Some(after)
    });
    let config = Config::new(&fake);
    (fake, config)
}

/// The object each command finds.
pub fn object(result: &str) -> Value {
    let mut object = backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        json!({ "observedGeneration": 1, "runs": [{ "name": "shop-2", "trigger": "Schedule", "result": result }] }),
    );
    object["metadata"]["labels"] = json!({ "team": "shop" });
    object
}

#[test]
fn no_verb_asks_for_more_than_is_documented() {
    let documented = documented();
    let ((fake, config), gobackup_only) = (cluster(), cluster());
    // It tells objects of one name and different kinds not apart: those of gobackup stand alone.
    for kind in ["backups", "databases", "storages"] {
        gobackup_only.0.install(kind);
    }
    fake.ended_pod("shop-2-a");
    let file = |name: &str, text: &str| {
        let path = config.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let manifest = file(
        "shop.yaml",
        "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {name: shop}\nspec: {schedule: '@daily', image: i}\n",
    );
    let gobackup = file(
        "gobackup.yml",
        "models: {m: {databases: {d: {type: mysql, host: h, password: p}}, storages: {s: {type: s3, bucket: b}}}}\n",
    );
    let commands: Vec<(&str, Vec<&str>)> = vec![
        (
            "Succeeded",
            vec![
                "create",
                "mysql",
                "new",
                "--schedule",
                "@daily",
                "--image",
                "i",
            ],
        ),
        (
            "Succeeded",
            vec![
                "create",
                "mysql",
                "newer",
                "--schedule",
                "@daily",
                "--host",
                "db",
                "--secret",
                "s",
                "--pvc",
                "c",
            ],
        ),
        ("Succeeded", vec!["create", "-f", &manifest]),
        ("Succeeded", vec!["list"]),
        ("Succeeded", vec!["list", "-A", "--stale", "-o", "yaml"]),
        ("Succeeded", vec!["runs", "shop"]),
        ("Succeeded", vec!["runs", "-l", "team=shop"]),
        ("Succeeded", vec!["runs", "shop", "--stored"]),
        ("Succeeded", vec!["describe", "shop"]),
        ("Running", vec!["describe", "mysqlbackup/shop"]),
        ("Succeeded", vec!["run-now", "shop"]),
        (
            "Succeeded",
            vec!["run-now", "-l", "team=shop", "--wait", "--follow"],
        ),
        ("Succeeded", vec!["wait", "shop"]),
        ("Succeeded", vec!["wait", "shop-2"]),
        ("Running", vec!["cancel", "shop"]),
        ("Running", vec!["cancel", "shop-2"]),
        ("Succeeded", vec!["verify", "shop"]),
        (
            "Succeeded",
            vec![
                "restore", "shop", "--to", "db", "--secret", "s", "--wait", "--follow",
            ],
        ),
        ("Succeeded", vec!["suspend", "shop"]),
        (
            "Running",
            vec!["suspend", "-l", "team=shop", "--cancel-running"],
        ),
        ("Succeeded", vec!["resume", "shop"]),
        ("Succeeded", vec!["resume", "--all"]),
        ("Succeeded", vec!["logs", "shop"]),
        ("Succeeded", vec!["logs", "shop-2", "-f"]),
        ("Succeeded", vec!["set", "shop", "--schedule", "@hourly"]),
        ("Succeeded", vec!["set", "--all", "--schedule", "@weekly"]),
        ("Succeeded", vec!["diff", "-f", &manifest]),
        ("Succeeded", vec!["import", &gobackup, "--apply"]),
        ("Succeeded", vec!["export", "shop"]),
        ("Succeeded", vec!["export", "--all"]),
        ("Succeeded", vec!["delete", "shop"]),
        ("Succeeded", vec!["delete", "-l", "team=shop", "--yes"]),
        (
            "Succeeded",
            vec!["delete", "shop", "--delete-data", "--yes"],
        ),
        ("Succeeded", vec!["health"]),
        ("Succeeded", vec!["report"]),
        ("Succeeded", vec!["report", "shop"]),
        ("Succeeded", vec!["schedule", "next", "shop"]),
        ("Succeeded", vec!["schedule", "calendar"]),
        ("Succeeded", vec!["top"]),
        ("Succeeded", vec!["bundle"]),
        ("Succeeded", vec!["version"]),
    ];
    let mut undocumented = BTreeSet::new();
    let mut ran = BTreeSet::new();
    for (result, command) in &commands {
        let (fake, config) = if command[0] == "import" {
            (&gobackup_only.0, &gobackup_only.1)
        } else {
            fake.put(object(result));
            (&fake, &config)
        };
        let before = fake.seen().len();
        let done = config.run(command);
        assert!(matches!(done.code, Some(0..=2)), "{command:?} {done:?}");
        let rights: Vec<_> = fake.seen()[before..].iter().filter_map(right).collect();
        assert!(!rights.is_empty(), "{command:?} asked nothing: {done:?}");
        for (right, resource) in rights {
            let right = (command[0].to_owned(), right, resource);
            if !documented.contains(&right) {
                undocumented.insert(format!("{right:?} in {command:?}"));
            }
        }
        ran.insert(command[0]);
    }
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    // These go through exec, which the fake server does not speak.
    let verbs: BTreeSet<&str> = documented.iter().map(|(verb, ..)| verb.as_str()).collect();
    let untried: Vec<&&str> = verbs.difference(&ran).collect();
    assert_eq!(untried, [&"binlog", &"download", &"show"]);
}
