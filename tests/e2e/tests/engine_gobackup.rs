//! Backups whose archive gobackup makes and stores, in an image of its own, in a namespace that admits restricted pods alone.
//! The program is a stand-in (tests/testbed/images/gobackup), the servers are real, and what is stored is read from them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use e2e::backup_kind::{self, SEAL};
use e2e::database::{BACKUP_PASSWORD, database};
use e2e::servers::{POSTGRES_PASSWORD, Servers, filter, servers};
use e2e::wait::unix_seconds;
use e2e::{Namespace, cluster, files, gobackup_image, wait_for};
use serde_json::{Value, json};

/// The database that both tests back up, made once.
fn postgres() {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let servers = servers();
        servers.sql("postgres", "drop database if exists engine");
        servers.sql("postgres", "create database engine");
        servers.sql("engine", "create table t(id int primary key, v text); insert into t select g, md5(g::text) from generate_series(1,500) g");
    });
}

/// A Backup by gobackup of a PostgreSQL and a MariaDB to a bucket and a volume.
fn backup(ns: &Namespace, path: &str) -> PathBuf {
    postgres();
    database();
    backup_kind::credentials(ns);
    let volume = ns.volume("data");
    let parts = [
        backup_kind::postgresql("engine"),
        backup_kind::shop("mysql"),
        backup_kind::bucket(path),
    ];
    ns.apply(&format!(
        "{parts}---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: disk}}
spec:
  type: local
  volume: {{persistentVolumeClaim: {{claimName: data}}}}
  config: {{path: daily}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: nightly}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{name: maindb}}, {{name: shop}}]
  storageRefs: [{{type: s3, name: bucket, keep: 2}}, {{type: local, name: disk, keep: 2}}]
  compressWith: {{type: gzip}}
  encodeWith: {{type: openssl, passwordSecretKeyRef: {{name: creds, key: seal}}}}
  job: {{engine: gobackup, image: '{image}', imagePullPolicy: IfNotPresent, backoffLimit: 0}}
",
        parts = parts.concat(),
        image = gobackup_image(),
    ));
    volume
}

fn newest(ns: &Namespace) -> Value {
    ns.get(&["backups.gobackup.io", "nightly"]).unwrap()["status"]["runs"][0].clone()
}

fn artefact<'a>(run: &'a Value, storage: &str) -> &'a Value {
    let mut all = run["artefacts"].as_array().unwrap().iter();
    all.find(|a| a["storage"] == storage).unwrap()
}

/// Archives below the volume's directory, as paths in it.
fn archives(volume: &Path) -> Vec<String> {
    let mut found = files(volume);
    found.retain(|path| !path.split('/').any(|part| part.starts_with('.')));
    found.sort();
    found
}

fn patch(ns: &Namespace, patch: &Value) {
    let patch = patch.to_string();
    ns.kubectl(&[
        "patch",
        "backups.gobackup.io",
        "nightly",
        "--type=merge",
        "-p",
        &patch,
    ])
    .ok();
}

fn run_now(ns: &Namespace) -> e2e::Output {
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "4m"])
}

fn rows(servers: &Servers, database: &str) -> String {
    servers.sql(
        database,
        "select count(*), md5(string_agg(id || v, ',' order by id)) from t",
    )
}

#[test]
fn gobackups_archive_is_checked_on_every_storage_kept_twice_and_comes_back_equal() {
    let ns = cluster().restricted_namespace("e2e-gobackup-engine");
    let path = format!("engine/{}", unix_seconds());
    let volume = backup(&ns, &path);
    let servers = servers();
    let mut keys = vec![];
    for _ in 0..3 {
        run_now(&ns).ok();
        let run = newest(&ns);
        assert_eq!(run["result"], "Succeeded", "{run}");
        assert!(run["warnings"].is_null(), "{run}");
        keys.push(artefact(&run, "bucket")["key"].as_str().unwrap().to_owned());
    }
    let mut newest_two = keys[1..].to_vec();
    newest_two.sort();
    assert_eq!(servers.objects(&path), newest_two, "keep: 2");
    assert_eq!(archives(&volume).len(), 2, "keep: 2");

    let run = newest(&ns);
    let (bucket, disk) = (artefact(&run, "bucket"), artefact(&run, "disk"));
    let stored = servers.object(&keys[2]);
    let sum = String::from_utf8(filter("sha256sum", &[], &stored)).unwrap();
    for told in [bucket, disk] {
        assert_eq!(
            (&told["size"], &told["readBack"]),
            (&json!(stored.len()), &json!(true))
        );
        assert!(sum.starts_with(told["sha256"].as_str().unwrap()), "{told}");
    }
    assert_eq!(
        std::fs::read(volume.join(archives(&volume).pop().unwrap())).unwrap(),
        stored
    );
    let password = format!("pass:{SEAL}");
    let archive = filter(
        "openssl",
        &["enc", "-d", "-aes-256-cbc", "-pbkdf2", "-pass", &password],
        &stored,
    );
    let member = |path: &str| filter("tar", &["-xzO", path], &archive);
    let dump = member("nightly/postgresql/maindb/engine.sql");
    servers.sql("postgres", "drop database if exists engine_copy");
    servers.sql("postgres", "create database engine_copy");
    servers.sql("engine_copy", std::str::from_utf8(&dump).unwrap());
    assert_eq!(rows(servers, "engine_copy"), rows(servers, "engine"));
    let dump = String::from_utf8(member("nightly/mysql/shop/shop.sql")).unwrap();
    assert!(
        dump.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("-- Dump completed")
    );
    // What it stored is verified by the runner's own image.
    ns.backup(&["verify", "backup/nightly"]).ok();

    let job = run["name"].as_str().unwrap();
    let pods = ns.get(&["pods", "-l", &format!("job-name={job}")]).unwrap();
    let spec = &pods["items"][0]["spec"];
    assert_eq!(spec["containers"][0]["image"], gobackup_image());
    assert_eq!(
        spec["initContainers"][0]["image"],
        cluster().runner_image.as_str()
    );
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap();
    let log = ns.kubectl(&["logs", pod]).ok().stdout;
    assert!(
        log.contains("=> database | mysql: shop") && log.contains("=> Storage | s3"),
        "{log}"
    );
    let all = ns
        .kubectl(&["get", "all,events,backups,configmaps", "-o", "yaml"])
        .ok()
        .stdout;
    for secret in ["S3cr3t-marker", BACKUP_PASSWORD, POSTGRES_PASSWORD] {
        assert!(!log.contains(secret), "a secret is in the log");
        assert!(!all.contains(secret), "a secret is to be seen");
    }
    assert!(!log.contains("***"), "a secret was said: {log}");
}

/// It ends with status 0 and has stored nothing; with another status; and it is not there at all.
#[test]
fn gobackups_exit_status_alone_makes_no_run_good() {
    let ns = cluster().restricted_namespace("e2e-gobackup-fault");
    let path = format!("fault/{}", unix_seconds());
    let volume = backup(&ns, &path);
    let failed = |job: Value, reason: &str, words: &[&str]| {
        patch(&ns, &json!({"spec": {"job": job}}));
        run_now(&ns).code(4);
        let run = newest(&ns);
        assert_eq!(
            (&run["result"], &run["reason"]),
            (&json!("Failed"), &json!(reason)),
            "{run}"
        );
        let message = run["message"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
        assert!(run["artefacts"].is_null(), "{run}");
        assert_eq!(archives(&volume), Vec::<String>::new());
        assert_eq!(servers().objects(&path), Vec::<String>::new());
    };
    let fault = |name: &str| json!({"env": [{"name": "STAND_IN", "value": name}]});
    failed(
        fault("nothing"),
        "NothingPacked",
        &["packed no archive", "spec.job.image"],
    );
    failed(
        fault("unstored"),
        "NotStored",
        &["Storage bucket", "Storage disk", "is not there"],
    );
    failed(fault("undumped"), "IncompleteDump", &["holds no dump"]);
    failed(
        json!({"env": null, "image": cluster().runner_image}),
        "InvalidSettings",
        &["no gobackup", "spec.job.image"],
    );

    // What nobody could check afterwards is refused before anything runs.
    patch(
        &ns,
        &json!({"spec": {"compressWith": {"type": "lzop"}, "job": {"image": gobackup_image()}}}),
    );
    let condition = wait_for("ReferencesResolved is False", 60, || {
        let object = ns.get(&["backups.gobackup.io", "nightly"])?;
        let conditions = object["status"]["conditions"].as_array()?;
        let found = conditions
            .iter()
            .find(|c| c["type"] == "ReferencesResolved")?;
        (found["status"] == "False").then(|| found.clone())
    });
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.contains("compressWith.type") && message.contains("engine: native"),
        "{message}"
    );
}
