//! `restore`: the check, consent, and the exit status of what the operator did.

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup};

/// A MysqlBackup, and an operator that ends each Restore as told: the check, then the restore.
fn cluster(check: Value, restore: Value) -> (Fake, Config) {
    let fake = Fake::start();
    fake.install("restores");
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    fake.operate(move |object| {
        if object["kind"] != "Restore" {
            return None;
        }
        let mut after = object.clone();
        after["status"] = if object["spec"]["dryRun"] == true {
            check.clone()
        } else {
            restore.clone()
        };
        Some(after)
    });
    let config = Config::new(&fake);
    (fake, config)
}

fn good(message: &str) -> Value {
    json!({
        "phase": "Succeeded", "reason": "Restored", "message": message,
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:31Z",
    })
}

fn bad(reason: &str, message: &str) -> Value {
    json!({ "phase": "Failed", "reason": reason, "message": message })
}

const TO: [&str; 6] = [
    "restore",
    "shop",
    "--to",
    "new-db:3307",
    "--secret",
    "new-db-root",
];

fn posts(fake: &Fake) -> Vec<Value> {
    let seen = fake.seen().into_iter();
    seen.filter(|s| s.method == "POST")
        .map(|s| s.body)
        .collect()
}

#[test]
fn a_check_goes_first_and_leaves_nothing() {
    let (fake, config) = cluster(good("would restore 3 tables"), good("restored 3 tables"));
    let ran = config
        .run(&[&TO[..], &["--wait", "--name", "r", "--database", "copy"]].concat())
        .ok();
    assert_eq!(
        ran.out,
        "restore.batch.isekiro.com/r created\nrestore.batch.isekiro.com/r succeeded\n"
    );
    assert!(
        ran.err.contains("would restore 3 tables")
            && ran.err.contains("restored 3 tables after 31s"),
        "{ran:?}"
    );
    let posts = posts(&fake);
    assert_eq!(posts.len(), 2, "{posts:#?}");
    assert_eq!(posts[0]["metadata"]["name"], "r-check");
    assert_eq!(posts[0]["spec"]["dryRun"], true);
    assert_eq!(
        posts[1]["spec"],
        json!({
            "from": { "kind": "MysqlBackup", "name": "shop", "latest": true },
            "to": { "host": "new-db", "port": 3307, "credentialsSecretRef": { "name": "new-db-root" }, "database": "copy" },
        })
    );
    assert_eq!(fake.get("prod", "r-check"), None);
}

#[test]
fn how_long_it_may_take_is_said_by_what_was_measured() {
    let mut check = good("would restore 3 tables");
    check["rawBytes"] = json!(4_i64 << 30);
    let mut done = good("restored 3 tables");
    done["rawBytes"] = json!(2_i64 << 30);
    done["completionTime"] = json!("2026-01-01T00:10:00Z");
    let (_fake, config) = cluster(check, done);
    let first = config
        .run(&[&TO[..], &["--wait", "--name", "first"]].concat())
        .ok();
    let words = "4.0GiB to load; how long that takes is not known";
    assert!(first.err.contains(words), "{first:?}");
    for args in [
        &["--wait", "--name", "second"][..],
        &["--check", "--name", "third"],
    ] {
        let ran = config.run(&[&TO[..], args].concat()).ok();
        for words in [
            "4.0GiB to load, some 20m by restore/",
            ", which took 10m for 2.0GiB\n",
        ] {
            assert!(ran.err.contains(words), "{ran:?}");
        }
    }
}

#[test]
fn what_the_check_finds_stops_it() {
    let (fake, config) = cluster(
        bad("TargetNotEmpty", "database shop holds 3 tables"),
        good("never"),
    );
    let ran = config.run(&[&TO[..], &["--name", "r"]].concat());
    let ran = ran.fails(4, "► restore.batch.isekiro.com/r-check: checking");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "✖ r-check failed: database shop holds 3 tables (TargetNotEmpty)",
            "Hint: restore elsewhere with --to and --database, or --to-volume, or add --overwrite",
        ]
    );
    assert_eq!(ran.out, "");
    assert_eq!(posts(&fake).len(), 1);
}

#[test]
fn a_restore_that_fails_is_4() {
    let (_fake, config) = cluster(good("would"), bad("Timeout", "not finished within 1h"));
    let ran = config.run(&[&TO[..], &["--wait", "--name", "r"]].concat());
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.err.contains(
            "✖ r failed: not finished within 1h (Timeout)\nHint: kubectl backup logs restore/r"
        ),
        "{ran:?}"
    );
    let again = config.run(&["wait", "restore/r"]);
    assert_eq!(again.code, Some(4), "{again:?}");
}

#[test]
fn replacing_needs_consent() {
    let (fake, config) = cluster(good("would"), good("restored"));
    let refused = config.run(&[&TO[..], &["--overwrite", "--name", "r"]].concat());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .err
            .contains("This would replace tables of the same name in new-db at new-db."),
        "{refused:?}"
    );
    assert_eq!(posts(&fake).len(), 1, "only the check");
    config
        .run(&[&TO[..], &["--overwrite", "--name", "r", "--yes"]].concat())
        .ok();
    assert_eq!(fake.get("prod", "r").unwrap()["spec"]["overwrite"], true);
}

#[test]
fn a_database_of_an_archive_is_restored_from_one_storage() {
    let (fake, config) = cluster(good("would"), good("restored"));
    fake.install("backups");
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Backup",
        "metadata": { "name": "nightly", "namespace": "prod", "uid": "u" }, "spec": {},
    }));
    let words = [
        "restore",
        "backup/nightly",
        "--from-database",
        "maindb",
        "--storage",
        "disk",
        "--to",
        "pg2",
        "--secret",
        "pg2",
        "--name",
        "r",
    ];
    config.run(&[&words[..], &["--wait"]].concat()).ok();
    assert_eq!(
        fake.get("prod", "r").unwrap()["spec"],
        json!({
            "from": { "kind": "Backup", "name": "nightly", "latest": true, "database": "maindb", "storage": "disk" },
            "to": { "host": "pg2", "credentialsSecretRef": { "name": "pg2" } },
        })
    );
    let described = config.run(&["describe", "restore/r"]).ok();
    assert!(
        described
            .out
            .contains("From:          backup/nightly, newest, database maindb, storage disk\n"),
        "{}",
        described.out
    );
    let refused = config.run(&[&words[..], &["--overwrite"]].concat());
    assert!(
        refused.err.contains(
            "This would replace tables and keys of the same name, of PostgreSQL all that the database holds, in pg2 at pg2."
        ),
        "{refused:?}"
    );
    for flag in ["--from-database", "--storage"] {
        let words = [&["restore", "mysqlbackup/shop"], &TO[2..], &[flag, "x"]];
        let refused = config.run(&words.concat());
        assert!(
            refused.code == Some(2) && refused.err.contains(&format!("{flag} goes with a Backup")),
            "{refused:?}"
        );
    }
}

#[test]
fn a_dump_is_put_onto_a_volume() {
    let (fake, config) = cluster(good("would"), good("restored"));
    fake.install("backups");
    fake.put(json!({
        "apiVersion": "gobackup.io/v1", "kind": "Backup",
        "metadata": { "name": "nightly", "namespace": "prod", "uid": "u" }, "spec": {},
    }));
    let words = [
        "restore",
        "backup/nightly",
        "--from-database",
        "kv",
        "--to-volume",
        "data/etcd/m1",
        "--name",
        "r",
    ];
    config.run(&[&words[..], &["--wait"]].concat()).ok();
    assert_eq!(
        fake.get("prod", "r").unwrap()["spec"],
        json!({
            "from": { "kind": "Backup", "name": "nightly", "latest": true, "database": "kv" },
            "to": { "volume": { "path": "etcd/m1", "persistentVolumeClaim": { "claimName": "data" } } },
        })
    );
    let described = config.run(&["describe", "restore/r"]).ok();
    assert!(
        described.out.contains("To:            pvc/data/etcd/m1\n"),
        "{}",
        described.out
    );
    let refused = config.run(&[&words[..], &["--overwrite"]].concat());
    assert!(
        refused
            .err
            .contains("This would replace all that directory etcd/m1 holds on volume claim data."),
        "{refused:?}"
    );
    for (words, code, said) in [
        (
            &["restore", "mysqlbackup/shop", "--to-volume", "data"][..],
            2,
            "the dump of a MysqlBackup is brought by kubectl backup download",
        ),
        (
            &["restore", "backup/nightly", "--to-volume", "/x"],
            2,
            "write CLAIM or CLAIM/DIRECTORY",
        ),
        (
            &[
                "restore",
                "backup/nightly",
                "--to-volume",
                "x",
                "--to",
                "h",
                "--secret",
                "s",
            ],
            2,
            "cannot be used with",
        ),
        (&["restore", "backup/nightly"], 2, "--to"),
        (&["restore", "backup/nightly", "--to", "h"], 2, "--secret"),
    ] {
        let refused = config.run(words);
        assert!(
            refused.code == Some(code) && refused.err.contains(said),
            "{refused:?}"
        );
    }
}

#[test]
fn from_a_location_after_all_is_lost() {
    let (fake, config) = cluster(good("would"), good("restored"));
    let ran = config
        .run(&[
            "restore",
            "--pvc",
            "dumps",
            "--path",
            "shop",
            "--at",
            "2026-01-31T02:00:00Z",
            "--of",
            "prod/shop",
            "--to",
            "db",
            "--secret",
            "db:u:p",
            "--decrypt-secret",
            "age:key.txt",
            "--name",
            "r",
            "--dry-run=client",
            "-o",
            "yaml",
        ])
        .ok();
    snapbox::assert_data_eq!(
        ran.out,
        snapbox::str![[r#"
apiVersion: batch.isekiro.com/v1
kind: Restore
metadata:
  name: r
  namespace: prod
spec:
  decryption:
    age:
      identitySecretKeyRef:
        key: key.txt
        name: age
  from:
    location:
      at: '2026-01-31T02:00:00Z'
      destination:
        volume:
          path: shop
          persistentVolumeClaim:
            claimName: dumps
      object:
        name: shop
        namespace: prod
  to:
    credentialsSecretRef:
      name: db
      passwordKey: p
      usernameKey: u
    host: db

"#]]
    );
    assert_eq!(posts(&fake).len(), 0);
    let both = config.run(&[
        "restore", "shop", "--pvc", "x", "--to", "db", "--secret", "s",
    ]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn restores_are_listed_and_their_logs_read() {
    let (fake, config) = cluster(good("would"), bad("Timeout", "too late"));
    let none = config.run(&["list", "mysqlbackup/shop", "-o", "name"]).ok();
    assert_eq!(none.out, "mysqlbackup.batch.isekiro.com/shop\n");
    fake.put(json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "Restore",
        "metadata": { "name": "r", "namespace": "prod", "uid": "u" },
        "spec": {}, "status": { "phase": "Failed", "job": "r-job" },
    }));
    fake.pod(
        json!({
            "metadata": { "name": "r-job-x", "namespace": "prod" },
            "spec": { "containers": [{ "name": "backup" }] },
            "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": { "exitCode": 6 } } }] },
        }),
        "too late\n",
    );
    assert_eq!(config.run(&["logs", "restore/r"]).ok().out, "too late\n");
    let table = config.run(&["list", "restores"]).ok();
    assert!(table.out.starts_with("NAME "), "{}", table.out);
    assert_eq!(
        config.run(&["list", "restores", "--failed"]).ok().out,
        table.out
    );
    config.run(&["logs", "restore/nobody"]).fails(
        5,
        "Error from server (NotFound): restores.batch.isekiro.com \"nobody\" not found in namespace \"prod\".",
    );
}

#[test]
fn a_restore_is_described_with_what_stands_behind_it() {
    let (fake, config) = cluster(good("would"), bad("Timeout", "too late"));
    fake.put(json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "Restore",
        "metadata": { "name": "r", "namespace": "prod", "uid": "u" },
        "spec": {
            "from": { "name": "shop", "run": "shop-29000000" },
            "to": { "host": "new-db", "port": 3307, "database": "copy", "credentialsSecretRef": { "name": "new-db-root" } },
            "overwrite": true,
        },
        "status": {
            "phase": "Failed", "job": "r-job", "reason": "AccessDenied",
            "message": "access denied for user 'root'",
            "artefact": { "key": "prod/MysqlBackup/shop/20260101T000000Z-29000000.sql.zst", "size": 2_097_152, "sha256": "00", "readBack": true },
        },
    }));
    let ran = config.run(&["describe", "restore/r"]).ok();
    snapbox::assert_data_eq!(
        ran.out,
        snapbox::str![[r#"
Name:          r
Kind:          Restore (batch.isekiro.com/v1)
Namespace:     prod
Status:        ✖ Failed: access denied for user 'root' (AccessDenied)
From:          mysqlbackup/shop, run/shop-29000000
To:            new-db:3307/copy
Dry run:       no
Overwrite:     yes
Artefact:      prod/MysqlBackup/shop/20260101T000000Z-29000000.sql.zst  2.0MiB
Job:           job/r-job
Pods:          <none>
Events:        <none>
Hint:          kubectl backup logs restore/r

"#]]
    );
    let offered = super::complete::asked(&config, &["__complete", "describe", "restore/"]).ok();
    assert!(
        offered.out.starts_with("restore/r\tFailed\n"),
        "{}",
        offered.out
    );
    config.run(&["describe", "restore/nobody"]).fails(
        5,
        "Error from server (NotFound): restores.batch.isekiro.com \"nobody\" not found in namespace \"prod\".",
    );
}

#[test]
fn a_restore_that_runs_is_described_with_how_far_it_is_and_one_that_ended_with_what_took_its_time()
{
    let (fake, config) = cluster(good("would"), good("restored"));
    let mut restore = json!({
        "apiVersion": "batch.isekiro.com/v1", "kind": "Restore",
        "metadata": { "name": "r", "namespace": "prod", "uid": "u" },
        "spec": { "from": { "name": "shop" }, "to": { "host": "new-db" } },
        "status": { "phase": "Running", "job": "r-job" },
    });
    fake.put(restore.clone());
    fake.pod(
        json!({
            "metadata": { "name": "r-job-x", "namespace": "prod" },
            "spec": { "containers": [{ "name": "backup" }] },
            "status": { "containerStatuses": [{ "name": "backup", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": { "running": {} } }] },
        }),
        "{\"event\":\"progress\",\"phase\":\"Restoring\",\"step\":\"Rows\",\"table\":\"shop.a\",\"rows\":7,\"rawBytes\":1024,\"bytesPerSecond\":512}\n{\"event\":\"progress\",\"phase\":\"Restoring\",\"step\":\"Rows\",\"table\":\"shop.b\",\"rows\":90,\"rawBytes\":2048,\"bytesPerSecond\":512,\"percent\":20,\"secondsLeft\":16}\nsomething else\n",
    );
    let ran = config.run(&["describe", "restore/r"]).ok();
    let line = "Progress:      Rows  shop.b  90 rows  2.0KiB  20%  512B/s  eta 16s\n";
    assert!(ran.out.contains(line), "{}", ran.out);
    restore["metadata"]["name"] = json!("s");
    restore["status"] = json!({
        "phase": "Succeeded",
        "phases": [
            { "phase": "ReadingBack", "milliseconds": 250 },
            { "phase": "Rows", "milliseconds": 130_000 },
            { "phase": "Keys", "milliseconds": 1999 },
        ],
        "warnings": ["the server warned 3 times of rows of shop.a, for one: Data truncated for column 'v' at row 1 (1265)"],
    });
    fake.put(restore);
    let ran = config.run(&["describe", "restore/s"]).ok();
    assert!(!ran.out.contains("Progress:"), "{}", ran.out);
    for line in [
        "Took:          Rows 2m10s, Keys 1s\n",
        "Warning:       the server warned 3 times of rows of shop.a",
    ] {
        assert!(ran.out.contains(line), "{}", ran.out);
    }
}

#[test]
fn u1_a_key_of_an_object_is_what_is_restored_and_flags_of_a_place_are_refused() {
    let (fake, config) = cluster(good("would"), good("restored"));
    let key = "prod/MysqlBackup/shop/20260101T000000Z-29000000.sql.zst";
    config
        .run(
            &[
                &TO[..],
                &["--key", key, "--name", "r", "--overwrite", "--yes"],
            ]
            .concat(),
        )
        .ok();
    for spec in [
        &posts(&fake)[0]["spec"],
        &fake.get("prod", "r").unwrap()["spec"],
    ] {
        assert_eq!(
            spec["from"],
            json!({ "kind": "MysqlBackup", "name": "shop", "key": key })
        );
    }
    let described = config.run(&["describe", "restore/r"]).ok();
    assert!(
        described
            .out
            .contains(&format!("From:          mysqlbackup/shop, {key}\n")),
        "{}",
        described.out
    );
    for words in [
        &["--of", "prod/shop"][..],
        &["--path", "shop"],
        &["--s3-prefix", "x"],
        &["--s3-endpoint", "http://x"],
        &["--s3-region", "x"],
        &["--s3-secret", "x"],
        &["--s3-path-style"],
        &["--key", key, "--at", "2026-01-31T02:00:00Z"],
        &["--key", key, "--of", "shop"],
    ] {
        let refused = config.run(&[&TO[..], words].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(words[0]), "{refused:?}");
    }
    assert_eq!(posts(&fake).len(), 2, "nothing is made of what is refused");
}

#[test]
fn l6_definers_are_said() {
    let (fake, config) = cluster(good("would"), good("restored"));
    for (n, (words, definers, definer)) in [
        (&["--definers", "drop"][..], json!("Drop"), Value::Null),
        (&["--definers", "Keep"], json!("Keep"), Value::Null),
        (&["--definer", "app@%"], json!("To"), json!("app@%")),
        (
            &["--definers", "to", "--definer", "app@%"],
            json!("To"),
            json!("app@%"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("r{n}");
        config
            .run(&[&TO[..], words, &["--name", &name]].concat())
            .ok();
        let posts = posts(&fake);
        let spec = &posts[posts.len() - 1]["spec"];
        assert_eq!((&spec["definers"], &spec["definer"]), (&definers, &definer));
    }
    for words in [
        &["--definers", "to"][..],
        &["--definers", "drop", "--definer", "app@%"],
        &["--definer", "app"],
        &["--definers", "none"],
    ] {
        let refused = config.run(&[&TO[..], words, &["--name", "r"]].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}
