//! `set`, `diff`, `export`, `schedule calendar` and `bundle`.

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup};

fn shop() -> Value {
    let mut object = backup(
        "prod",
        "shop",
        json!({
            "schedule": "0 2 * * *", "retention": { "keepLast": 7, "keepDaily": 3 }, "fromTheFuture": 1,
            "backupEnvs": [{ "name": "PASSWORD", "value": "S3cr3t-marker" }],
        }),
        json!({ "observedGeneration": 1 }),
    );
    object["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": "{\"S3cr3t-marker\":1}",
        "team": "shop", "batch.isekiro.com/suspend-reason": "x",
    });
    object
}

#[test]
fn set_changes_what_is_named_and_stamps_the_edit() {
    let fake = Fake::start();
    fake.put(shop());
    let config = Config::new(&fake);
    let ran = config
        .run(&[
            "set",
            "shop",
            "--schedule",
            "30 1 * * *",
            "--time-zone",
            "Europe/Berlin",
            "--retention",
            "keep-last=9",
        ])
        .ok();
    assert!(
        ran.out
            .starts_with("mysqlbackup.batch.isekiro.com/shop changed; next run "),
        "{}",
        ran.out
    );
    let after = fake.get("prod", "shop").unwrap();
    assert_eq!(after["spec"]["schedule"], "30 1 * * *");
    assert_eq!(after["spec"]["retention"], json!({ "keepLast": 9 }));
    assert_eq!(after["spec"]["fromTheFuture"], 1);
    let since = after["metadata"]["annotations"]["batch.isekiro.com/schedule-since"]
        .as_str()
        .unwrap();
    let since = crds::time::parse_rfc3339(since).unwrap();
    assert!((chrono::Utc::now() - since).num_seconds() < 60);
    let ran = config.run(&[
        "set",
        "shop",
        "--schedule",
        "30 1 * * *",
        "--error-unchanged",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(3), "mysqlbackup.batch.isekiro.com/shop unchanged\n")
    );
}

#[test]
fn set_refuses_what_the_operator_would_refuse() {
    let fake = Fake::start();
    fake.put(shop());
    let config = Config::new(&fake);
    config.run(&["set", "shop", "--schedule", "0 0 * * 7"]).fails(2, "error: mysqlbackup.batch.isekiro.com/shop: spec.schedule: day of week 7 is outside 0-6 (field 5); Sunday is 0 or SUN");
    config
        .run(&["set", "shop"])
        .fails(2, "error: set needs a field to change, such as --schedule");
    assert!(fake.seen().iter().all(|s| s.method != "PATCH"));
    let ran = config
        .run(&[
            "set",
            "shop",
            "--schedule",
            "@hourly",
            "--diff",
            "--dry-run",
        ])
        .ok();
    assert!(
        ran.out
            .contains("-  schedule: 0 2 * * *\n+  schedule: '@hourly'\n"),
        "{}",
        ran.out
    );
    assert_eq!(
        fake.get("prod", "shop").unwrap()["spec"]["schedule"],
        "0 2 * * *"
    );
    // Without a terminal the change is shown and not made.
    assert_eq!(
        config
            .run(&["set", "shop", "--schedule", "@hourly", "--diff"])
            .code,
        Some(2)
    );
}

#[test]
fn diff_is_0_1_or_more() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "0 2 * * *" }),
        Value::Null,
    ));
    let config = Config::new(&fake);
    let path = config.directory.path().join("shop.yaml");
    let write = |schedule: &str| {
        let text = format!(
            "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {{name: shop}}\nspec: {{schedule: '{schedule}'}}\n"
        );
        std::fs::write(&path, text).unwrap();
    };
    let file = path.to_str().unwrap();
    write("0 2 * * *");
    assert_eq!(config.run(&["diff", "-f", file]).ok().out, "");
    write("0 3 * * *");
    let ran = config.run(&["diff", "-f", file]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out
            .contains("-  schedule: 0 2 * * *\n+  schedule: 0 3 * * *\n"),
        "{}",
        ran.out
    );
    assert_eq!(
        fake.get("prod", "shop").unwrap()["spec"]["schedule"],
        "0 2 * * *"
    );
    assert_eq!(config.run(&["diff", "-f", "/nowhere"]).code, Some(2));
}

#[test]
fn export_is_what_one_would_write() {
    let fake = Fake::start();
    fake.put(shop());
    let config = Config::new(&fake);
    let out = config.run(&["export", "shop"]).ok().out;
    let value: Value = serde_yaml::from_str(&out).unwrap();
    assert_eq!(
        value["metadata"],
        json!({ "name": "shop", "namespace": "prod", "annotations": { "team": "shop" } })
    );
    assert_eq!(value["spec"]["fromTheFuture"], 1);
    assert_eq!(value.get("status"), None);
    // What was exported can be compared and is the same.
    let path = config.directory.path().join("x.yaml");
    std::fs::write(&path, out).unwrap();
    config.run(&["diff", "-f", path.to_str().unwrap()]).ok();
}

#[test]
fn the_calendar_of_all_that_is_due() {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "daily",
        json!({ "schedule": "0 2 * * *" }),
        Value::Null,
    ));
    fake.put(backup(
        "prod",
        "often",
        json!({ "schedule": "*/30 * * * *" }),
        Value::Null,
    ));
    fake.put(backup(
        "prod",
        "held",
        json!({ "schedule": "0 2 * * *", "suspend": true }),
        Value::Null,
    ));
    let ran = Config::new(&fake)
        .run(&["schedule", "calendar", "--days", "3"])
        .ok();
    let count = |name: &str| ran.out.lines().filter(|l| l.contains(name)).count();
    assert_eq!(
        (count("daily"), count("often") >= 3, count("held")),
        (3, true, 0),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("then every 30 minutes, 48 runs this day"),
        "{}",
        ran.out
    );
}

#[test]
fn a_bundle_holds_everything_but_secrets() {
    let fake = Fake::start();
    fake.put(shop());
    let config = Config::new(&fake);
    let path = config.directory.path().join("bundle.txt");
    config.run(&["bundle", "-O", path.to_str().unwrap()]).ok();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.contains("Name:          shop") && text.contains("server: v1.35.4"),
        "{text}"
    );
    assert!(
        text.contains("value: '******'")
            || text.contains("value: \"******\"")
            || text.contains("value: ******"),
        "{text}"
    );
    assert!(!text.contains("S3cr3t-marker"), "{text}");
}

#[test]
fn set_in_the_fields_of_gobackup() {
    let fake = Fake::start();
    for kind in ["backups", "databases", "storages"] {
        fake.install(kind);
    }
    fake.put(gobackup("Database", "b"));
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Backup",
        "metadata": { "name": "nightly", "namespace": "prod", "uid": "u" },
        "spec": {
            "databaseRefs": [{ "name": "a" }], "storageRefs": [{ "name": "s", "keep": 3 }, { "name": "t" }],
            "schedule": { "cron": "0 1 * * *" },
        },
    }));
    let config = Config::new(&fake);
    config
        .run(&[
            "set",
            "backup/nightly",
            "--schedule",
            "0 2 * * *",
            "--time-zone",
            "Europe/Berlin",
            "--concurrency-policy",
            "Forbid",
            "--retention",
            "keep-last=9",
            "--databases",
            "a,b",
        ])
        .ok();
    assert_eq!(
        fake.get("prod", "nightly").unwrap()["spec"],
        json!({
            "databaseRefs": [{ "name": "a" }, { "name": "b" }],
            "storageRefs": [{ "name": "s", "keep": 9 }, { "name": "t", "keep": 9 }],
            "schedule": { "cron": "0 2 * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid" },
        })
    );
    config
        .run(&["set", "backup/nightly", "--retention", "keep-daily=9"])
        .fails(2, "error: backup.gobackup.io/nightly keeps a count on each storage: use --retention keep-last=N");
    let bad = config.run(&["set", "backup/nightly", "--schedule", "61 * * * *"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
}

/// What a smaller retention may remove is said before it is changed, a dry run included.
#[test]
fn u17_a_smaller_retention_says_what_may_go() {
    let fake = Fake::start();
    let run = |name: &str| json!({ "name": name, "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-02T00:00:00Z" });
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily", "retention": { "keepLast": 3 } }),
        json!({ "runs": [run("shop-3"), run("shop-2"), run("shop-1")] }),
    ));
    let config = Config::new(&fake);
    let words = "warning: the next good run may remove what 1 listed run stored: shop-1; ";
    for more in [vec!["--dry-run"], vec![]] {
        let args = [
            &["set", "shop", "--retention", "keep-last=2"],
            more.as_slice(),
        ]
        .concat();
        let ran = config.run(&args).ok();
        assert!(ran.err.starts_with(words), "{ran:?}");
    }
    let ran = config
        .run(&["set", "shop", "--retention", "keep-last=5"])
        .ok();
    assert_eq!(ran.err, "");
}

#[test]
fn u17_server_and_store_are_set_by_flags() {
    let fake = Fake::start();
    let spec = json!({
        "schedule": "@daily",
        "source": { "host": "old", "credentialsSecretRef": { "name": "old", "usernameKey": "u" }, "sessions": 2 },
        "destination": { "volume": { "path": "a", "persistentVolumeClaim": { "claimName": "c" } } },
    });
    fake.put(backup("prod", "shop", spec, Value::Null));
    fake.install("storages");
    fake.put(gobackup("Storage", "s"));
    let config = Config::new(&fake);
    let line = "set shop --host new --port 3307 --secret login --tls Required --engine Client --s3-bucket b --s3-region r";
    config.run(&line.split(' ').collect::<Vec<_>>()).ok();
    let spec = &fake.get("prod", "shop").unwrap()["spec"];
    assert_eq!(
        spec["source"],
        json!({ "host": "new", "port": 3307, "credentialsSecretRef": { "name": "login" }, "tls": { "mode": "Required" }, "engine": "Client" })
    );
    assert_eq!(
        spec["destination"],
        json!({ "s3": { "bucket": "b", "region": "r" } })
    );
    let ran = config.run(&["set", "shop", "--host", "db:1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    config.run(&["set", "shop", "--s3-bucket", "c"]).ok();
    let spec = &fake.get("prod", "shop").unwrap()["spec"];
    assert_eq!(spec["destination"], json!({ "s3": { "bucket": "c" } }));
    config.run(&["set", "shop", "--storage", "s"]).ok();
    let spec = &fake.get("prod", "shop").unwrap()["spec"];
    assert_eq!(
        spec["destination"],
        json!({ "storageRef": { "name": "s" } })
    );
    // What is named anew has to be there; what was named before is not this change's.
    let line = "set shop --pvc nope --secret nope-login";
    let ran = config.run(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.err.contains("needs what is not in namespace prod: volume claim nope is not there; Secret nope-login is not there; nothing was changed\n"),
        "{}",
        ran.err
    );
    let mut gone = fake.get("prod", "shop").unwrap();
    gone["spec"]["source"]["credentialsSecretRef"]["name"] = "nope".into();
    fake.put(gone);
    config.run(&["set", "shop", "--port", "3308"]).ok();
    let spec = &fake.get("prod", "shop").unwrap()["spec"];
    assert_eq!(spec["source"]["port"], 3308);
    assert_eq!(
        spec["destination"],
        json!({ "storageRef": { "name": "s" } })
    );
}

/// An object of gobackup.io.
fn gobackup(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "gobackup.io/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "prod", "uid": name }, "spec": {},
    })
}

/// A Backup keeps a count on each storage: what a smaller one may remove is told by the same rule.
#[test]
fn u17_a_smaller_count_of_a_backup_says_what_may_go() {
    let run = |name: &str| json!({ "name": name, "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-02T00:00:00Z" });
    for (kept, keep, words) in [
        (
            json!([{ "name": "s", "keep": 3 }, { "name": "t", "keep": 2 }]),
            "1",
            Some("2 listed runs stored: nightly-2, nightly-1; "),
        ),
        (
            json!([{ "name": "s", "keep": 2 }, { "name": "t", "keep": 2 }]),
            "1",
            Some("1 listed run stored: nightly-2; "),
        ),
        // A storage without a count keeps all.
        (
            json!([{ "name": "s", "keep": 1 }, { "name": "t" }]),
            "2",
            Some("1 listed run stored: nightly-1; "),
        ),
        (json!([{ "name": "s", "keep": 2 }]), "3", None),
    ] {
        let fake = Fake::start();
        fake.install("backups");
        let mut object = gobackup("Backup", "nightly");
        object["spec"] = json!({ "databaseRefs": [], "storageRefs": kept });
        object["status"] =
            json!({ "runs": [run("nightly-3"), run("nightly-2"), run("nightly-1")] });
        fake.put(object);
        let rules = format!("keep-last={keep}");
        let args = ["set", "backup/nightly", "--retention", &rules, "--dry-run"];
        let ran = Config::new(&fake).run(&args).ok();
        match words {
            Some(words) => assert!(
                ran.err.starts_with(&format!(
                    "warning: the next good run may remove what {words}"
                )),
                "{ran:?}"
            ),
            None => assert_eq!(ran.err, ""),
        }
    }
}

/// The operator starts what dstPolicy says: 02:30 comes twice on 2026-10-25.
#[test]
fn slots_are_those_of_the_objects_own_daylight_saving_policy_and_zone() {
    let fake = Fake::start();
    fake.install("backups");
    let of = |policy: &str| json!({ "timeZone": "Europe/Berlin", "dstPolicy": policy });
    let twice = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"];
    let once = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    for (policy, slots) in [("Kubernetes", twice), ("Once", once)] {
        let mut spec = of(policy);
        spec["schedule"] = "30 2 * * *".into();
        fake.put(backup("prod", "shop", spec, json!({})));
        let mut nightly = gobackup("Backup", "nightly");
        nightly["spec"] = json!({ "databaseRefs": [], "storageRefs": [], "schedule": of(policy) });
        nightly["spec"]["schedule"]["cron"] = "30 2 * * *".into();
        fake.put(nightly);
        for name in ["mbk/shop", "backup/nightly"] {
            let from = ["--from", "2026-10-24T12:00:00Z", "-c", "2", "-o", "json"];
            let args = [&["schedule", "next", name], &from[..]].concat();
            let ran = Config::new(&fake).run(&args).ok();
            let said: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(said["next"], json!(slots), "{name} {policy}");
        }
    }
}
