//! Programs that real users have and no package brings, in the cluster: MongoDB and InfluxDB with their own clients, and
//! gobackup 3.1.1 itself. Their images are made by `testbed images mongodb-peer influxdb-peer gobackup-peer`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};

use e2e::backup_kind::SEAL;
use e2e::database::{HOST, database};
use e2e::servers::{BUCKET, POSTGRES_PASSWORD, filter, host, servers};
use e2e::wait::unix_seconds;
use e2e::{Namespace, Output, cluster, wait_for};
use serde_json::{Value, json};

const MONGODB: &str = "testbed-mongodb:bookworm";
const INFLUXDB: &str = "testbed-influxdb:bookworm";
const GOBACKUP: &str = "testbed-gobackup:3.1.1";
/// What breaks in connection strings, shells and YAML.
const PASSWORD: &str = "S3cr3t-marker $m:y@/\"'";
const TOKEN: &str = "S3cr3t-marker-of-influx==";

/// A directory of this test, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A pod, and a Service of its name at this port. It keeps its files in /data.
fn start(ns: &Namespace, name: &str, image: &str, port: u16, command: &Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "server", "image": image, "imagePullPolicy": "IfNotPresent", "command": command,
                "env": [{"name": "HOME", "value": "/data"}],
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": port}]},
    });
    ns.apply(&format!("{pod}\n---\n{service}\n"));
    ns.kubectl(&["wait", "pod", name, "--for=condition=Ready", "--timeout=2m"])
        .ok();
}

/// Shell text in a pod's container.
fn shell(ns: &Namespace, pod: &str, text: &str, input: &str) -> Output {
    let name = [
        "-n", &ns.name, "exec", "-i", pod, "--", "bash", "-eo", "pipefail", "-c", text,
    ];
    cluster().kubectl_with(&name, input)
}

fn base64(bytes: &[u8]) -> String {
    String::from_utf8(filter("base64", &[], bytes)).unwrap()
}

/// A Backup of this Database, `config` as YAML, to a volume.
fn backup(ns: &Namespace, type_: &str, config: &str, image: &str) {
    ns.volume("data");
    ns.apply(&format!(
        "apiVersion: gobackup.io/v1
kind: Database
metadata: {{name: main}}
spec: {{type: {type_}, config: {config}}}
---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: disk}}
spec: {{type: local, volume: {{persistentVolumeClaim: {{claimName: data}}}}, config: {{path: daily}}}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: nightly}}
spec:
  schedule: {{cron: '0 0 29 2 *'}}
  databaseRefs: [{{name: main}}]
  storageRefs: [{{name: disk}}]
  compressWith: {{type: gzip}}
  job: {{backoffLimit: 0, clientImage: '{image}'}}
"
    ));
}

/// Runs the Backup and brings what it stored to this machine: the directory of the dump.
fn run_and_download(ns: &Namespace, to: &Path, member: &str) -> PathBuf {
    ns.backup(&["run-now", "backup/nightly", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(ns, "nightly");
    assert_eq!(run["result"], "Succeeded", "{run}");
    assert_eq!(run["artefacts"][0]["readBack"], true, "{run}");
    let file = to.join("archive.tar");
    let at = file.to_str().unwrap();
    ns.backup(&["download", "backup/nightly", "-O", at]).ok();
    filter("tar", &["-xf", at, "-C", to.to_str().unwrap()], &[]);
    let all = ns
        .kubectl(&["get", "events,backups,jobs", "-o", "yaml"])
        .ok();
    assert!(!all.stdout.contains("S3cr3t"), "a secret is to be seen");
    to.join(member)
}

fn newest(ns: &Namespace, name: &str) -> Value {
    ns.get(&["backups.gobackup.io", name]).unwrap()["status"]["runs"][0].clone()
}

/// Brings a directory of this machine into a pod, as /data/restored.
fn bring(ns: &Namespace, directory: &Path, pod: &str) {
    let tar = filter("tar", &["-c", "-C", directory.to_str().unwrap(), "."], &[]);
    let unpack = "mkdir -p /data/restored && base64 -d | tar -x -C /data/restored";
    shell(ns, pod, unpack, &base64(&tar)).ok();
}

/// Documents `{_id: n, v: "document n"}` as MongoDB stores them (bsonspec.org).
fn documents(count: i32) -> Vec<u8> {
    let document = |n: i32| {
        let text = format!("document {n}\0");
        let mut body = [b"\x10_id\0", &n.to_le_bytes()[..], b"\x02v\0"].concat();
        body.extend(i32::try_from(text.len()).unwrap().to_le_bytes());
        body.extend(text.as_bytes());
        body.push(0);
        [
            &i32::try_from(body.len() + 4).unwrap().to_le_bytes()[..],
            &body,
        ]
        .concat()
    };
    (0..count).flat_map(document).collect()
}

/// They come in the server's own order.
fn sorted(mut documents: &[u8]) -> Vec<&[u8]> {
    let mut all = vec![];
    while let Some(length) = documents.first_chunk::<4>() {
        let length = usize::try_from(i32::from_le_bytes(*length)).unwrap();
        let (document, rest) = documents.split_at(length);
        all.push(document);
        documents = rest;
    }
    all.sort_unstable();
    all
}

#[test]
#[ignore = "skipped: MongoDB's clients are built from sources that lie beside the checkout"]
fn a_mongodb_is_backed_up_to_a_volume_and_loads_again_equal() {
    let ns = cluster().restricted_namespace("e2e-mongodb");
    let client = |program: &str, more: &str| {
        format!(
            "{program} --quiet --host=127.0.0.1 --username=backup --config=/data/login --authenticationDatabase=admin {more}"
        )
    };
    for name in ["mongo", "copy"] {
        let command = json!([
            "ferretdb",
            "--handler=sqlite",
            "--telemetry=disable",
            "--debug-addr=-",
            "--test-enable-new-auth",
            "--sqlite-url=file:/data/",
            "--state-dir=/data",
            "--listen-addr=:27017",
            "--setup-username=backup",
            format!("--setup-password={}", PASSWORD.replace('$', "$$")),
            "--setup-database=admin",
        ]);
        start(&ns, name, MONGODB, 27017, &command);
        let login = format!("password: {}\n", Value::from(PASSWORD));
        shell(&ns, name, "cat >/data/login", &login).ok();
    }
    let source = documents(300);
    let text = "mkdir -p /data/source/app && base64 -d >/data/source/app/t.bson";
    shell(&ns, "mongo", text, &base64(&source)).ok();
    let load = client("mongorestore", "--drop /data/source");
    wait_for("the server takes documents", 60, || {
        (shell(&ns, "mongo", &load, "").code == 0).then_some(())
    });

    ns.secret("creds", &[("user", "backup"), ("password", PASSWORD)]);
    let config = "{host: mongo, port: 27017, database: app, auth_db: admin, username_ref: {name: creds, key: user}, password_ref: {name: creds, key: password}}";
    backup(&ns, "mongodb", config, MONGODB);
    let scratch = Scratch::new("e2e-mongodb");
    let dump = run_and_download(&ns, &scratch.0, "nightly/mongodb/main");
    let stored = std::fs::read(dump.join("app/t.bson")).unwrap();
    assert_eq!(sorted(&stored), sorted(&source));

    bring(&ns, &dump, "copy");
    shell(&ns, "copy", &client("mongorestore", "/data/restored"), "").ok();
    let read = format!(
        "{} && base64 /data/again/app/t.bson",
        client("mongodump", "--db=app --out=/data/again")
    );
    let again = shell(&ns, "copy", &read, "").ok().stdout;
    let again = filter("base64", &["-d"], again.as_bytes());
    assert_eq!(sorted(&again), sorted(&source));
}

#[test]
#[ignore = "skipped: InfluxDB is built from its sources, which takes minutes: make test-long"]
fn an_influxdb_is_backed_up_to_a_volume_and_restored_equal() {
    let ns = cluster().restricted_namespace("e2e-influxdb");
    for (name, bucket) in [("influx", "load"), ("copy", "other")] {
        let command = json!([
            "influxd",
            "--bolt-path=/data/bolt",
            "--sqlite-path=/data/sqlite",
            "--engine-path=/data/engine",
            "--reporting-disabled",
        ]);
        start(&ns, name, INFLUXDB, 8086, &command);
        let setup = format!(
            "influx setup --force --username admin --password S3cr3t-marker --org acme --bucket {bucket} --token {TOKEN}"
        );
        wait_for("InfluxDB is set up", 60, || {
            (shell(&ns, name, "influx ping", "").code == 0).then_some(())
        });
        shell(&ns, name, &setup, "").ok();
    }
    let lines: Vec<String> = (0..500)
        .map(|n| format!("cpu,host=web-{} value={n}.5 {}", n % 3, 1_700_000_000 + n))
        .collect();
    let write = "influx write --bucket load --precision s";
    shell(&ns, "influx", write, &lines.join("\n")).ok();
    let points = |pod: &str| {
        let query = r#"influx query --raw 'from(bucket: "load") |> range(start: 0) |> keep(columns: ["_time", "_measurement", "_field", "_value", "host"])'"#;
        let answer = shell(&ns, pod, query, "").ok().stdout;
        // `,result,table,…`: the result has no name, and which table a series is in is the server's own.
        let rows = answer.lines().filter(|l| l.starts_with(",,"));
        let mut rows: Vec<String> = rows
            .map(|l| l.splitn(4, ',').nth(3).unwrap().trim().to_owned())
            .collect();
        rows.sort();
        rows
    };
    let wanted = points("influx");
    assert_eq!(wanted.len(), 500);

    ns.secret("creds", &[("token", TOKEN)]);
    let config =
        "{host: influx, port: 8086, org: acme, bucket: load, token_ref: {name: creds, key: token}}";
    backup(&ns, "influxdb", config, INFLUXDB);
    let scratch = Scratch::new("e2e-influxdb");
    let dump = run_and_download(&ns, &scratch.0, "nightly/influxdb2/main");
    bring(&ns, &dump, "copy");
    let restore = "influx restore --org acme --bucket load /data/restored";
    shell(&ns, "copy", restore, "").ok();
    assert_eq!(points("copy"), wanted);
}

/// Who moves over: gobackup makes three archives by its file, `keep: 3`. The Backup that is imported from that file
/// makes the fourth, which opens by the commands that opened theirs, and the oldest goes.
#[test]
#[ignore = "skipped: gobackup 3.1.1 is built from sources that lie beside the checkout"]
fn g6_an_imported_backup_goes_on_where_the_real_gobackup_ended() {
    let (servers, db) = (servers(), database());
    servers.sql("postgres", "drop database if exists moved");
    servers.sql("postgres", "create database moved");
    servers.sql("moved", "create table t(id int primary key, v text); insert into t select g, md5(g::text) from generate_series(1,500) g");
    // gobackup's command lines are cut at blanks: a password of its users has none.
    db.sql("create or replace user mover@'%' identified by 'Pl4in-marker'");
    db.sql("grant select, show view, trigger, lock tables, event on shop.* to mover@'%'; grant process, reload on *.* to mover@'%'");
    let path = format!("moved/{}", unix_seconds());
    let seal = serde_json::to_string(&SEAL.replace('$', "${DOLLAR}")).unwrap();
    let file = format!(
        "models:
  my_app:
    schedule: {{ cron: '0 0 29 2 *' }}
    compress_with: {{ type: tgz }}
    encrypt_with: {{ type: openssl, password: {seal} }}
    databases:
      my_app: {{ type: postgresql, host: {postgresql}, database: moved, username: postgres, password: {POSTGRES_PASSWORD} }}
      my_shop: {{ type: mysql, host: {HOST}, database: shop, username: mover, password: Pl4in-marker }}
    storages:
      store_1:
        type: s3
        keep: 3
        bucket: {BUCKET}
        path: {path}
        endpoint: http://{s3}:5000
        access_key_id: AKIDEXAMPLE
        secret_access_key: S3cr3t-marker-of-the-store
",
        postgresql = host("postgresql"),
        s3 = host("s3"),
    );
    let ns = cluster().namespace("e2e-import-real");
    let config = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gobackup"}, "stringData": {"gobackup.yml": file},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gobackup"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "gobackup", "image": GOBACKUP, "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "infinity"], "env": [{"name": "DOLLAR", "value": "$$"}, {"name": "TZ", "value": "UTC"}],
                "volumeMounts": [{"name": "config", "mountPath": "/config"}],
            }],
            "volumes": [{"name": "config", "secret": {"secretName": "gobackup"}}],
        },
    });
    ns.apply(&format!("{config}\n---\n{pod}\n"));
    ns.kubectl(&[
        "wait",
        "pod/gobackup",
        "--for=condition=Ready",
        "--timeout=2m",
    ])
    .ok();
    for n in 1..=3 {
        // Archives are named by the second.
        let second = unix_seconds();
        wait_for("another second", 5, || {
            (unix_seconds() > second).then_some(())
        });
        shell(
            &ns,
            "gobackup",
            "gobackup perform -c /config/gobackup.yml",
            "",
        )
        .ok();
        assert_eq!(servers.objects(&path).len(), n);
    }
    let theirs = servers.objects(&path);
    let second = unix_seconds();
    wait_for("another second", 5, || {
        (unix_seconds() > second).then_some(())
    });

    let scratch = Scratch::new("e2e-import-real");
    let yml = scratch.0.join("gobackup.yml");
    std::fs::write(&yml, &file).unwrap();
    let env = scratch.0.join("env");
    std::fs::write(&env, "DOLLAR=$\n").unwrap();
    let (yml, env) = (yml.to_str().unwrap(), env.to_str().unwrap());
    ns.backup(&["import", yml, "--apply", "--adopt-state", "--env-file", env])
        .ok();
    ns.backup(&["run-now", "backup/my-app", "--wait", "--timeout", "3m"])
        .ok();
    let run = newest(&ns, "my-app");
    assert_eq!(run["result"], "Succeeded", "{run}");
    let ours = run["artefacts"][0]["key"].as_str().unwrap();
    assert_eq!(
        servers.objects(&path),
        [&theirs[1], &theirs[2], ours],
        "keep: 3, the oldest of gobackup's own is gone"
    );

    let pass = format!("pass:{SEAL}");
    // What gobackup runs without args of its own: openssl aes-256-cbc -salt.
    let open = |key: &str| {
        let command = ["enc", "-d", "-aes-256-cbc", "-pass", &pass];
        filter("openssl", &command, &servers.object(key))
    };
    let names = |tar: &[u8]| {
        let all = String::from_utf8(filter("tar", &["-tz"], tar)).unwrap();
        let mut all: Vec<String> = all
            .lines()
            .filter(|l| !l.ends_with('/'))
            .map(str::to_owned)
            .collect();
        all.sort();
        all
    };
    let (tar, old) = (open(ours), open(&theirs[2]));
    assert_eq!(names(&tar), names(&old));
    let text = |member: &str| String::from_utf8(filter("tar", &["-xzO", member], &tar)).unwrap();
    servers.sql("postgres", "drop database if exists moved_copy");
    servers.sql("postgres", "create database moved_copy");
    servers.sql("moved_copy", &text("my_app/postgresql/my_app/moved.sql"));
    let rows = |name: &str| {
        servers.sql(
            name,
            "select count(*), md5(string_agg(id || v, ',' order by id)) from t",
        )
    };
    assert_eq!(rows("moved_copy"), rows("moved"));
    let dump = text("my_app/mysql/my_shop/shop.sql");
    db.sql("create or replace database moved_copy");
    // Its first line is for the client alone, and only at its start.
    let dump = dump.split_once('\n').unwrap().1;
    db.sql(&format!("use moved_copy;\n{dump}"));
    let rows = |name: &str| {
        db.sql(&format!(
            "select id, txt, hex(b), total, ts from {name}.t order by id"
        ))
    };
    assert_eq!(rows("moved_copy"), rows("shop"));
    db.sql("drop database moved_copy; drop user mover@'%'");
}
