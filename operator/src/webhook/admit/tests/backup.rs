//! The kinds of gobackup.io are warned of and never refused; a Restore is refused at once.

use crds::gobackup::{ObjectKey, References, resolve};
use serde::Deserialize as _;

use super::*;

/// Every kind of gobackup.io, by group.
pub(super) const KINDS: [(&str, &str); 9] = [
    ("gobackup.io", "Backup"),
    ("gobackup.io", "CronBackup"),
    ("gobackup.io", "Database"),
    ("gobackup.io", "Storage"),
    ("gobackup.io", "BackupModel"),
    ("gobackup.io", "PostgreSQL"),
    ("database.gobackup.io", "PostgreSQL"),
    ("gobackup.io", "S3"),
    ("storage.gobackup.io", "S3"),
];

fn object(group: &str, kind: &str, fields: &Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {"name": "shop", "namespace": "db"},
    });
    for (field, value) in fields.as_object().unwrap() {
        object[field] = value.clone();
    }
    object
}

/// What is said of a new object, which is allowed and left as it is.
fn warnings(group: &str, kind: &str, object: &Value) -> Vec<String> {
    let body = body_of(group, kind, object, &Value::Null);
    let response = ask(Endpoint::Validate, &body);
    assert_eq!(response["allowed"], true, "{object}");
    assert!(response["patch"].is_null());
    let found = response["warnings"].as_array().cloned().unwrap_or_default();
    found
        .iter()
        .map(|w| w.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_an_object_lacks_is_a_warning_with_the_remedy() {
    let rows = [
        (
            "gobackup.io",
            "Backup",
            json!({"spec": {"databaseRefs": [{"name": "a"}], "compressWith": {"type": "rar"}, "schedule": {"cron": "61 * * * *"}}}),
            vec![
                ("spec.schedule: ", "use numbers 0-59"),
                ("spec.storageRefs: names no Storage", "add one as {name: …}"),
                (
                    "spec.compressWith.type: unknown compression \"rar\"",
                    "use tgz",
                ),
            ],
        ),
        (
            "gobackup.io",
            "Backup",
            json!({"model": {"databaseRefs": [{"type": "x"}], "storageRefs": [{"name": "s"}]}}),
            vec![("model.databaseRefs[0].name: is not set", "name a Database")],
        ),
        (
            "gobackup.io",
            "Backup",
            json!({"spec": {"databaseRefs": 7}}),
            vec![("the object does not fit its type: ", "invalid type")],
        ),
        (
            "gobackup.io",
            "CronBackup",
            json!({"databaseRefs": [{"name": "a"}], "storageRefs": [{"name": "s"}]}),
            vec![("spec.schedule: is not set", "set schedule.cron")],
        ),
        (
            "gobackup.io",
            "Database",
            json!({"spec": {"type": "mongodb", "config": {"uri": "mongodb://u:S3cr3t@h"}}}),
            vec![(
                "Database shop: spec.config.uri is plain text",
                "use uri_ref",
            )],
        ),
        (
            "gobackup.io",
            "Database",
            json!({"spec": {"type": "oracle", "config": {}}}),
            vec![(
                "Database shop: spec.type: unknown database type \"oracle\"",
                "use postgresql",
            )],
        ),
        (
            "gobackup.io",
            "Database",
            json!({"spec": {"type": "mysql", "config": {"tables": "all"}}}),
            vec![(
                "Database shop: spec.config.tables: ",
                "kubectl explain database.spec",
            )],
        ),
        (
            "gobackup.io",
            "Storage",
            json!({"spec": {"type": "local", "config": {"path": "/backups"}}}),
            vec![(
                "Storage shop: spec.volume: is not set",
                "set a volume on the Storage",
            )],
        ),
        (
            "gobackup.io",
            "Storage",
            json!({}),
            vec![(
                "Storage shop: spec.type: unknown storage type \"\"",
                "use s3",
            )],
        ),
        (
            "storage.gobackup.io",
            "S3",
            json!({"spec": {"accessKeyID": "k", "bucket": "b"}}),
            vec![(
                "S3 shop: spec: has one of accessKeyID and secretAccessKey",
                "set both",
            )],
        ),
        (
            "database.gobackup.io",
            "PostgreSQL",
            json!({"spec": {"database": "shop", "username": "u"}}),
            vec![(
                "PostgreSQL shop: spec.host: is not set",
                "name the server's host",
            )],
        ),
        (
            "gobackup.io",
            "BackupModel",
            json!({"spec": {"encode_with": {"type": "openssl"}}}),
            vec![(
                "BackupModel shop: spec.encodeWith: asks for encryption but names no key",
                "set passwordSecretKeyRef",
            )],
        ),
    ];
    for (group, kind, fields, expected) in rows {
        let found = warnings(group, kind, &object(group, kind, &fields));
        assert_eq!(found.len(), expected.len(), "{fields}: {found:?}");
        for (warning, (begin, remedy)) in found.iter().zip(expected) {
            assert!(warning.starts_with(begin), "{warning}");
            assert!(warning.contains(remedy), "{warning} lacks {remedy:?}");
            assert!(!warning.contains("S3cr3t"), "{warning}");
        }
    }
}

#[test]
fn an_edit_a_deletion_and_a_status_of_what_is_wrong_pass() {
    for (group, kind) in KINDS {
        let wrong = object(group, kind, &json!({"spec": {"type": "nonsense"}}));
        let mut going = wrong.clone();
        going["metadata"]["deletionTimestamp"] = json!(NOW);
        let edit = body_of(group, kind, &wrong, &wrong);
        let mut delete = body_of(group, kind, &Value::Null, &wrong);
        delete["request"]["operation"] = json!("DELETE");
        let mut status = edit.clone();
        status["request"]["subResource"] = json!("status");
        for (body, silent) in [
            (edit, false),
            (delete, true),
            (status, true),
            (body_of(group, kind, &going, &wrong), true),
        ] {
            let response = ask(Endpoint::Validate, &body);
            assert_eq!(response["allowed"], true, "{body}");
            assert!(!silent || response["warnings"].is_null(), "{response}");
            assert!(ask(Endpoint::Mutate, &body)["patch"].is_null());
        }
    }
    let mut odd = object("gobackup.io", "Backup", &json!({}));
    odd["metadata"]["labels"] = json!(["a"]);
    assert!(warnings("gobackup.io", "Backup", &odd)[0].contains("can't be read"));
}

/// Every manifest people have, of every generation: what is said has no secret in it.
#[test]
fn every_generations_manifests_pass_without_their_secrets() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/tests/data/gobackup");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for document in serde_yaml::Deserializer::from_str(&text) {
            let document = Value::deserialize(document).unwrap();
            let version = document["apiVersion"].as_str().unwrap();
            let Some((group, _)) = version.split_once('/') else {
                continue;
            };
            let kind = document["kind"].as_str().unwrap();
            for warning in warnings(group, kind, &document) {
                assert!(warning.chars().count() <= 450, "{warning}");
                for secret in ["mysecretpassword", "marker-secret"] {
                    assert!(!warning.contains(secret), "{warning}");
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

/// What is said of the parts at once is what the condition of the whole says later.
#[test]
fn admission_and_condition_say_the_same() {
    let database = json!({"type": "redis", "config": {"tables": ["t"], "port": 70000}});
    let storage = json!({"type": "sftp", "config": {"path": "/a/../b"}});
    let backup = json!({"databaseRefs": [{"name": "shop"}], "storageRefs": [{"name": "shop"}], "splitWith": {}});
    let whole = |kind: &str, spec: &Value| object("gobackup.io", kind, &json!({"spec": spec}));
    let mut said = vec![];
    for (kind, spec) in [
        ("Backup", &backup),
        ("Database", &database),
        ("Storage", &storage),
    ] {
        said.extend(warnings("gobackup.io", kind, &whole(kind, spec)));
    }
    let key = |kind| ObjectKey {
        group: "gobackup.io",
        kind,
        name: "shop".to_owned(),
    };
    let references = References {
        databases: [(key("Database"), serde_json::from_value(database).unwrap())].into(),
        storages: [(key("Storage"), serde_json::from_value(storage).unwrap())].into(),
        ..References::default()
    };
    let body = serde_json::from_value(json!({"spec": backup})).unwrap();
    let condition = resolve("shop", "db", &body, &references).unwrap_err();
    let effectless =
        "Database shop: spec.config: tables and exclude_tables have no effect on redis";
    let problems: Vec<&String> = said.iter().filter(|s| *s != effectless).collect();
    assert_eq!((said.len(), problems.len()), (6, 5), "{said:?}");
    for sentence in problems {
        assert!(condition.message().contains(sentence), "{sentence}");
    }
}

#[test]
fn a_restore_that_can_never_run_is_refused_when_it_is_made() {
    let to = json!({"host": "db", "credentialsSecretRef": {"name": "db"}});
    let restore = |from: Value, to: &Value| {
        object(
            "batch.isekiro.com",
            "Restore",
            &json!({"spec": {"from": from, "to": to}}),
        )
    };
    let validate = |new: &Value, old: &Value| {
        let body = body_of("batch.isekiro.com", "Restore", new, old);
        ask(Endpoint::Validate, &body)
    };
    let good = restore(json!({"name": "shop", "latest": true}), &to);
    assert_eq!(validate(&good, &Value::Null)["allowed"], true);
    let rows = [
        (
            json!({"name": "shop"}),
            to.clone(),
            "spec.from",
            "exactly one of run, latest: true, at, key",
        ),
        (
            json!({"name": "shop", "at": "yesterday"}),
            to.clone(),
            "spec.from.at",
            "write it like",
        ),
        (
            json!({"location": {"destination": {}, "key": "k"}}),
            to.clone(),
            "spec.from.location.destination",
            "exactly one of",
        ),
        (
            json!({"name": "shop", "latest": true}),
            json!({"credentialsSecretRef": {"name": "db"}}),
            "spec.to",
            "host, socket, volume",
        ),
        (
            json!({"name": "shop", "latest": true}),
            json!({"host": "db"}),
            "spec.to.credentialsSecretRef",
            "is needed with host and socket",
        ),
        (
            json!({"name": "shop", "latest": true}),
            json!({"volume": {"nfs": {"server": "s", "path": "/"}}}),
            "spec.to.volume",
            "kubectl backup download",
        ),
        (
            json!({"kind": "Backup", "name": "nightly", "latest": true}),
            json!({"volume": {"nfs": {"server": "s", "path": "/"}, "path": "../x"}}),
            "spec.to.volume.path",
            "must not contain",
        ),
        (
            json!({"kind": "Backup", "name": "nightly", "latest": true}),
            json!({"volume": {"nfs": {"server": "s", "path": "/"}}, "port": 1}),
            "spec.to.port",
            "goes with host and socket",
        ),
        (
            json!({"name": 7, "latest": true}),
            to,
            "spec.from.name",
            "kubectl explain restore.spec.from.name",
        ),
    ];
    for (from, to, path, remedy) in rows {
        let bad = restore(from, &to);
        let response = validate(&bad, &Value::Null);
        assert_eq!(response["allowed"], false, "{bad}");
        let status = &response["status"];
        assert_eq!(
            (&status["code"], &status["details"]["kind"]),
            (&json!(422), &json!("Restore"))
        );
        assert_eq!(status["details"]["causes"][0]["field"], path, "{status}");
        assert!(
            status["message"].as_str().unwrap().contains(remedy),
            "{status}"
        );
        // It can't be changed; its labels can.
        assert_eq!(validate(&bad, &bad)["allowed"], true);
    }
    let mut bare = good;
    bare.as_object_mut().unwrap().remove("spec");
    let response = validate(&bare, &Value::Null);
    assert!(
        response["status"]["message"]
            .as_str()
            .unwrap()
            .starts_with("spec: is missing; a Restore needs at least spec.from")
    );
}

#[test]
fn a_request_is_signed_with_the_callers_name_and_nothing_else_is_touched() {
    let key = Request::annotation_key("7f3a");
    let request = Request::new(Action::Backup, "7f3a", "the boss", now()).annotation_value();
    let fields = json!({"spec": {"schedule": {"cron": "0 2 * * *"}}});
    for (kind, annotations) in [("Backup", json!({})), ("CronBackup", json!({"x": "y"}))] {
        let mut old = object("gobackup.io", kind, &fields);
        old["metadata"]["annotations"] = annotations;
        let mut new = old.clone();
        new["metadata"]["annotations"][&key] = json!(request);
        let response = ask(Endpoint::Mutate, &body_of("gobackup.io", kind, &new, &old));
        let after = patched(&new, &response);
        let value = after["metadata"]["annotations"][&key].as_str().unwrap();
        assert_eq!(Request::parse(value).unwrap().by, "alice");
        let mut rest = after.clone();
        rest["metadata"]["annotations"][&key] = json!(request);
        assert_eq!(rest, new);
        // Somebody else's earlier request keeps its name.
        let again = ask(Endpoint::Mutate, &body_of("gobackup.io", kind, &new, &new));
        assert!(again["patch"].is_null());
    }
}
