//! Runs in an image of the user's that has clients and nothing else: no distribution, no runner. In a namespace that
//! admits restricted pods alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::backup_kind;
use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, database};
use e2e::servers::{filter, servers};
use e2e::wait::unix_seconds;
use e2e::{Namespace, client_image, cluster, files, wait_for};
use serde_json::Value;

const ROWS: &str = "select id, txt, hex(b), total, ts from shop.t order by id";

/// Version of the MariaDB client in the image; the runner's own is of another.
const VERSION: &str = "11.8";

fn namespace(name: &str) -> Namespace {
    database();
    let ns = cluster().restricted_namespace(name);
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    ns
}

fn backup(ns: &Namespace, name: &str, image: &str) {
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '@yearly'
  backoffLimit: 0
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}, databases: [shop], clientImage: '{image}'}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
"
    ));
}

fn newest(ns: &Namespace, resource: &str, name: &str) -> Value {
    ns.get(&[resource, name]).unwrap()["status"]["runs"][0].clone()
}

/// The images of the pod that a Job had: of its init container, and of its container.
fn images(ns: &Namespace, job: &str) -> [String; 2] {
    let pods = ns.get(&["pods", "-l", &format!("job-name={job}")]).unwrap();
    let spec = &pods["items"][0]["spec"];
    ["initContainers", "containers"].map(|list| spec[list][0]["image"].as_str().unwrap().to_owned())
}

#[test]
fn a_mysql_backup_and_its_restore_use_the_clients_of_another_image() {
    let ns = namespace("e2e-client-image");
    let volume = ns.volume("data");
    backup(&ns, "shop", &client_image());
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(&ns, "mysqlbackups.batch.isekiro.com", "shop");
    assert_eq!(run["result"], "Succeeded", "{run}");
    let job = run["name"].as_str().unwrap();
    let runner = cluster().runner_image.clone();
    assert_eq!(images(&ns, job), [runner.clone(), client_image()]);
    let stored = files(&volume);
    let manifest = stored
        .iter()
        .find(|f| f.ends_with(".sql.zst.json"))
        .unwrap();
    let manifest = std::fs::read_to_string(volume.join(manifest)).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let client = manifest["client"].as_str().unwrap();
    assert!(client.contains(VERSION), "{client}");

    let db = database();
    db.sql("drop database if exists client_copy");
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: copy}}
spec:
  from: {{name: shop, latest: true}}
  to: {{host: {HOST}, credentialsSecretRef: {{name: root}}, database: client_copy}}
"
    ));
    let status = wait_for("the Restore ends", 240, || {
        let status = ns.get(&["restores.batch.isekiro.com", "copy"])?["status"].clone();
        let phase = status["phase"].as_str()?;
        ["Succeeded", "Failed"].contains(&phase).then_some(status)
    });
    assert_eq!(status["phase"], "Succeeded", "{status}");
    let job = status["job"].as_str().unwrap();
    assert_eq!(images(&ns, job), [runner, client_image()]);
    assert_eq!(db.sql(&ROWS.replace("shop.", "client_copy.")), db.sql(ROWS));
    db.sql("drop database client_copy");
}

/// The smallest image there is: its one program is the cluster's own pause.
#[test]
fn an_image_without_the_client_fails_the_run_and_is_named() {
    let ns = namespace("e2e-client-none");
    ns.volume("data");
    backup(&ns, "shop", "localhost/pause:1");
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .code(4);
    let run = newest(&ns, "mysqlbackups.batch.isekiro.com", "shop");
    assert_eq!(run["reason"], "InvalidSettings", "{run}");
    let message = run["message"].as_str().unwrap();
    for word in [
        "localhost/pause:1",
        "clientImage",
        "mariadb-dump or mysqldump",
    ] {
        assert!(message.contains(word), "{message}");
    }
}

/// A client that the runner's image lacks, and a store that is found by its name.
#[test]
fn a_backup_of_gobackup_brings_a_client_that_the_runner_lacks() {
    let servers = servers();
    let ns = namespace("e2e-client-gobackup");
    backup_kind::credentials(&ns);
    let path = format!("client/{}", unix_seconds());
    ns.apply(&format!(
        "apiVersion: gobackup.io/v1
kind: Database
metadata: {{name: docs}}
spec:
  type: mongodb
  config: {{host: mongo.example, port: 27017, database: app, username_ref: {{name: db, key: username}}, password_ref: {{name: db, key: password}}}}
{parts}---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: nightly}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{name: docs}}, {{name: shop}}]
  storageRefs: [{{name: bucket}}]
  compressWith: {{type: gzip}}
  job: {{backoffLimit: 0, clientImage: '{image}'}}
",
        parts = [backup_kind::shop("mariadb"), backup_kind::bucket(&path)].concat(),
        image = client_image(),
    ));
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(&ns, "backups.gobackup.io", "nightly");
    assert_eq!(run["result"], "Succeeded", "{run}");
    let job = run["name"].as_str().unwrap();
    assert_eq!(
        images(&ns, job),
        [cluster().runner_image.clone(), client_image()]
    );
    let archive = servers.object(run["artefacts"][0]["key"].as_str().unwrap());
    let member = |path: &str| {
        String::from_utf8_lossy(&filter("tar", &["-xzO", path], &archive)).into_owned()
    };
    let words = member("nightly/mongodb/docs/app/words.bson");
    assert!(words.contains("--host=mongo.example") && words.contains("--db=app"));
    assert!(!words.contains(BACKUP_PASSWORD), "{words}");
    let dump = member("nightly/mariadb/shop/shop.sql");
    let head: String = dump.lines().take(3).collect();
    assert!(head.contains(&format!("-{VERSION}.")), "{head}");
    let db = database();
    db.sql(&format!(
        "drop database if exists client_archive; create database client_archive; use client_archive;\n{}",
        dump.split_once('\n').unwrap().1
    ));
    assert_eq!(
        db.sql(&ROWS.replace("shop.", "client_archive.")),
        db.sql(ROWS)
    );
    db.sql("drop database client_archive");
}
