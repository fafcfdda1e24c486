//! `import`: what is printed, and what is sent.

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, status};

const FILE: &str = "\
models:
  shop:
    schedule: { cron: '@daily' }
    databases: { main: { type: mysql, host: db, database: d, password: $IMPORT_PW } }
    storages: { far: { type: s3, bucket: b, access_key_id: id, secret_access_key: k3y } }
";

fn files(env: bool) -> (Fake, Config, String) {
    let fake = Fake::start();
    let config = Config::new(&fake);
    let path = config.directory.path().join("gobackup.yml");
    std::fs::write(&path, FILE).unwrap();
    if env {
        let beside = config.directory.path().join(".env");
        std::fs::write(beside, "IMPORT_PW='hunter2'\n").unwrap();
    }
    (fake, config, path.to_str().unwrap().to_owned())
}

#[test]
fn secrets_are_printed_only_when_asked_for() {
    let (_fake, config, path) = files(true);
    let ran = config.run(&["import", &path]).ok();
    let all = format!("{}{}", ran.out, ran.err);
    assert!(!all.contains("hunter2") && !all.contains("k3y"), "{all}");
    assert_eq!(
        ran.err,
        "warning: models.shop.schedule: is read in UTC: gobackup used the zone of its host; set spec.schedule.timeZone\n\
         secret shop-main-database (password) is not printed: --apply creates it, --show-secrets prints it\n\
         secret shop-far-storage (access_key_id, secret_access_key) is not printed: --apply creates it, --show-secrets prints it\n"
    );
    assert_eq!(ran.out.matches("\n---\n").count(), 2, "{}", ran.out);
    let shown = config.run(&["import", &path, "--show-secrets"]).ok();
    assert!(shown.out.contains("password: hunter2"), "{}", shown.out);
    let list = config.run(&["import", &path, "-o", "json"]).ok().json();
    let kinds: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Database", "Storage", "Backup"]);
}

#[test]
fn a_variable_without_a_value_is_named() {
    let (_fake, config, path) = files(false);
    config.run(&["import", &path]).fails(
        2,
        "error: the file uses variables without a value: IMPORT_PW",
    );
    config.run(&["import", "/nowhere/gobackup.yml"]).fails(
        2,
        "error: /nowhere/gobackup.yml: No such file or directory (os error 2)",
    );
}

/// Two models with a store each, and the kinds they need.
fn two() -> (Fake, Config, String) {
    let fake = Fake::start();
    for kind in ["databases", "storages", "backups"] {
        fake.install(kind);
    }
    let config = Config::new(&fake);
    let path = config.directory.path().join("gobackup.yml");
    let model = |name: &str| {
        format!(
            "  {name}:\n    schedule: {{ cron: '@daily' }}\n    databases: {{ main: {{ type: mysql, host: db, database: d, password: hunter2 }} }}\n    storages: {{ far: {{ type: s3, bucket: b, access_key_id: id, secret_access_key: k3y }} }}\n"
        )
    };
    let text = format!("models:\n{}{}", model("crm"), model("shop"));
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (fake, config, path)
}

const ALL: &str = "\
secret/crm-main-database applied
secret/crm-far-storage applied
secret/shop-main-database applied
secret/shop-far-storage applied
database.gobackup.io/crm-main applied
storage.gobackup.io/crm-far applied
backup.gobackup.io/crm applied
database.gobackup.io/shop-main applied
storage.gobackup.io/shop-far applied
backup.gobackup.io/shop applied
";

/// What is said of two models that are due by the clock of their host.
const SAID: &str = "\
warning: models.crm.schedule: is read in UTC: gobackup used the zone of its host; set spec.schedule.timeZone
warning: models.shop.schedule: is read in UTC: gobackup used the zone of its host; set spec.schedule.timeZone
";

/// What a run said but for that.
fn beside(mut ran: super::Ran) -> super::Ran {
    let lines = ran.err.lines().filter(|line| !SAID.contains(*line));
    ran.err = lines.map(|line| format!("{line}\n")).collect();
    ran
}

fn applied(fake: &Fake) -> Vec<(String, Value)> {
    let seen = fake.seen().into_iter().filter(|s| s.method == "PATCH");
    seen.map(|s| (s.path, s.body)).collect()
}

#[test]
fn all_is_applied_and_again() {
    let (fake, config, path) = two();
    let ran = config.run(&["import", &path, "--apply"]).ok();
    assert_eq!(ran.out, ALL);
    assert_eq!(
        ran.err,
        format!("{SAID}✔ 4 secrets and 6 objects in namespace prod\n")
    );
    let first = applied(&fake);
    let secret = fake.get("prod", "shop-main-database").unwrap();
    // base64 of hunter2, by coreutils.
    assert_eq!(secret["data"], json!({ "password": "aHVudGVyMg==" }));
    assert_eq!(secret.get("stringData"), None);
    let spec = fake.get("prod", "shop").unwrap()["spec"].clone();
    assert_eq!(spec["storageRefs"], json!([{ "name": "shop-far" }]));
    for seen in fake.seen().iter().filter(|s| s.method == "PATCH") {
        assert_eq!(seen.query["fieldManager"], "kubectl-backup");
        assert_ne!(seen.query.get("force").map(String::as_str), Some("true"));
    }
    let ran = config.run(&["import", &path, "--apply"]).ok();
    assert_eq!(ran.out, ALL);
    assert_eq!(applied(&fake)[first.len()..], first, "the same is sent");
    let ran = config
        .run(&["import", &path, "--apply", "--model", "shop"])
        .ok();
    assert_eq!(ran.out.lines().count(), 5);
}

#[test]
fn a_dry_run_applies_nothing() {
    let (fake, config, path) = two();
    let ran = config.run(&["import", &path, "--apply", "--dry-run"]).ok();
    assert_eq!(ran.out, ALL.replace(" applied", " applied (dry run)"));
    assert_eq!(applied(&fake), []);
    let server = config.run(&["import", &path, "--apply", "--dry-run=server"]);
    assert_eq!(
        server.ok().out,
        ALL.replace(" applied", " applied (server dry run)")
    );
    assert_eq!(applied(&fake).len(), 10);
    assert_eq!(fake.get("prod", "shop"), None);
}

#[test]
fn what_is_refused_keeps_back_what_refers_to_it_and_nothing_else() {
    let (fake, config, path) = two();
    let text = "Storage.gobackup.io \"crm-far\" is invalid: spec.type: Unsupported value";
    fake.deny_path(
        "/storages/crm-far",
        422,
        status(422, "Invalid", text, "crm-far"),
    );
    let ran = beside(config.run(&["import", &path, "--apply"])).fails(
        1,
        &format!("storage.gobackup.io/crm-far: Error from server (Invalid): {text}"),
    );
    assert_eq!(
        ran.err.lines().skip(1).collect::<Vec<_>>(),
        [
            "warning: backup.gobackup.io/crm is held back: it refers to storage.gobackup.io/crm-far",
            "error: 2 of 10 objects are not applied: backup.gobackup.io/crm, storage.gobackup.io/crm-far",
            "Hint: fix the problems above and run the same command again; what was applied stays as it is",
        ]
    );
    let rest: String = ALL
        .lines()
        .filter(|l| !l.contains("/crm-far ") && !l.contains("/crm "))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(ran.out, rest);
    assert!(!ran.err.contains("hunter2") && !ran.err.contains("k3y"));
    assert_eq!(fake.get("prod", "crm"), None);

    // A Secret that may not be written: what names it waits, and so does what names that.
    let text = "secrets \"shop-main-database\" is forbidden: User \"alice\" cannot patch";
    fake.deny_path(
        "/secrets/shop-main-database",
        403,
        status(403, "Forbidden", text, ""),
    );
    let ran = config.run(&["import", &path, "--apply"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(
        ran.err.contains("error: 3 of 10 objects are not applied: backup.gobackup.io/shop, database.gobackup.io/shop-main, secret/shop-main-database\n"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("backup.gobackup.io/crm applied\n"));
}

#[test]
fn a_field_of_others_is_left_unless_forced() {
    let (fake, config, path) = two();
    let text = "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using gobackup.io/v1: .spec.config.host";
    fake.deny_path(
        "/databases/shop-main",
        409,
        status(409, "Conflict", text, ""),
    );
    let ran = config.run(&["import", &path, "--apply", "--model", "shop"]);
    let ran = beside(ran).fails(
        1,
        &format!("database.gobackup.io/shop-main: Error from server (Conflict): {text}"),
    );
    assert_eq!(
        ran.err.lines().nth(1),
        Some(
            "Hint: others have set these fields: leave them, or take them over with --force-conflicts"
        )
    );
    config.run(&["import", &path, "--apply", "--force-conflicts"]);
    let last = fake.seen().pop().unwrap();
    assert_eq!(last.query["force"], "true");
}

#[test]
fn a_server_that_is_gone_is_said_once() {
    let (_, config, path) = two();
    let gone = ["import", &path, "--apply", "--server", "http://127.0.0.1:1"];
    let ran = beside(config.run(&gone));
    assert_eq!((ran.code, ran.out.as_str()), (Some(8), ""), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
}

#[test]
fn a_namespace_that_is_not_there_is_said_once() {
    let (fake, config, path) = two();
    let text = "namespaces \"prod\" not found";
    let mut gone = status(404, "NotFound", text, "prod");
    gone["details"]["kind"] = json!("namespaces");
    fake.deny(axum::http::Method::PATCH, 404, gone);
    let ran = beside(config.run(&["import", &path, "--apply"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), ""), "{ran:?}");
    assert_eq!(
        ran.err.lines().collect::<Vec<_>>(),
        [
            "Error from server (NotFound): namespace \"prod\" not found",
            "Hint: kubectl create namespace prod, or correct -n: kubectl get namespaces",
        ]
    );
}

/// Objects that could never run are made all the same, as they can be corrected there; the status says it.
#[test]
fn g6_what_can_not_run_is_said_and_ends_with_1() {
    let (fake, config, path) = two();
    let text = "models:\n  shop:\n    schedule: { cron: '@daily' }\n    compress_with: { type: zip }\n    \
                databases: { main: { type: mysql, host: localhost, database: d } }\n    \
                storages: { near: { type: webdav, root: http://dav } }\n";
    std::fs::write(&path, text).unwrap();
    let said = "error: 1 backup can't run as it is: shop";
    for arguments in [&["import", &path][..], &["import", &path, "--apply"]] {
        let ran = beside(config.run(arguments));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let lines: Vec<&str> = ran.err.lines().collect();
        let warnings = [
            "spec.compressWith.type: unknown compression \"zip\"",
            "Database shop-main: spec.config.host: localhost is the backup's own pod",
        ];
        for (line, warning) in lines.iter().zip(warnings) {
            assert!(
                line.starts_with("warning: Backup shop: ") && line.contains(warning),
                "{line}"
            );
        }
        assert!(lines.contains(&said), "{lines:?}");
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("Hint: correct what the warnings"),
            "{lines:?}"
        );
    }
    assert_eq!(applied(&fake).len(), 3);
}
