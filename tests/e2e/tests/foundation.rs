//! A real backup of a real database: the original manifest, the schedule, requests, secrets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, backup_user, database};
use e2e::server::Server;
use e2e::wait::{second_of_minute, until_second};
use e2e::{Namespace, cluster, eventually, files, wait_for};
use serde_json::Value;

const ORIGINAL: &str = include_str!("../../../deploy/samples/mysqlbackup-original.yaml");

/// A MysqlBackup that dumps the test database to the claim `data`.
fn typed(name: &str, schedule: &str, extra: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '{schedule}'
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
{extra}
"
    )
}

fn prepare(name: &str) -> (Namespace, std::path::PathBuf) {
    database();
    let ns = cluster().namespace(name);
    let volume = ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    (ns, volume)
}

fn dumps(volume: &std::path::Path) -> Vec<String> {
    files(volume)
        .into_iter()
        .filter(|f| f.contains(".sql"))
        .filter(|f| !f.ends_with(".json"))
        .collect()
}

#[test]
fn original_manifest_runs_unchanged() {
    database();
    let ns = cluster().namespace("e2e-original");
    let volume = ns.volume("mysqlbackup-v2-pvc");
    cluster()
        .kubectl(&[
            "label",
            "nodes",
            "--all",
            "--overwrite",
            "kubernetes.io/appRole=mysqlbackup-v2",
        ])
        .ok();
    let manifest = ORIGINAL
        .replace("db.example.internal", HOST)
        .replace("xxxxx", ROOT_PASSWORD)
        .replace("mysqlbackup-v2:alpha6", &cluster().runner_image);
    ns.apply(&manifest);
    let run = ns
        .backup(&["run-now", "mysqlbackup-sample", "--wait", "--timeout", "3m"])
        .ok();
    assert!(!run.all().contains(ROOT_PASSWORD));

    let found = dumps(&volume);
    assert_eq!(found.len(), 1, "{:?}", files(&volume));
    let path = volume.join(&found[0]);
    let dump = zstd_cat(&path);
    assert!(dump.contains("café 😀"), "4-byte text survives");
    assert!(
        dump.contains("0x00FF2741") || dump.contains("0x00ff2741"),
        "binary as hex"
    );
    assert!(
        dump.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("-- Dump completed")
    );

    let status = ns.mysql_backup("mysqlbackup-sample").unwrap();
    let run = &status["status"]["runs"][0];
    assert_eq!(run["result"], "Succeeded");
    assert_eq!(run["artefacts"][0]["readBack"], true);
    assert_eq!(run["artefacts"][0]["size"], path.metadata().unwrap().len());
    assert_eq!(run["artefacts"][0]["sha256"], sha256sum(&path));
    let list = ns.backup(&["list"]).ok();
    assert!(list.stdout.contains("Succeeded"), "{}", list.stdout);
}

#[test]
fn operator_killed_around_a_due_minute_starts_exactly_one_job() {
    let (ns, volume) = prepare("e2e-kill");
    ns.apply(&typed(
        "tick",
        "* * * * *",
        "  successfulJobsHistoryLimit: 10",
    ));
    wait_for("the object is accepted", 30, || {
        let object = ns.mysql_backup("tick")?;
        object["status"]["nextScheduleTime"]
            .as_str()
            .map(str::to_owned)
    });
    for before in [57, 0] {
        until_second(before);
        let pod = wait_for("an operator pod", 30, || cluster().operator_pod());
        cluster()
            .kubectl(&[
                "-n",
                "backup-system",
                "delete",
                "pod",
                &pod,
                "--force",
                "--grace-period=0",
            ])
            .ok();
    }
    eventually("three slots succeeded", 240, || {
        ns.mysql_backup("tick")
            .is_some_and(|o| o["status"]["totals"]["succeeded"].as_i64() >= Some(3))
    });
    // Only a settled minute can be counted.
    eventually("the middle of a minute", 61, || {
        (30..50).contains(&second_of_minute())
    });
    let object = ns.mysql_backup("tick").unwrap();
    let jobs = ns.jobs();
    let mut slots: Vec<&str> = jobs
        .iter()
        .filter_map(|j| j["metadata"]["annotations"][crds::labels::SCHEDULED_AT].as_str())
        .collect();
    slots.sort_unstable();
    let count = slots.len();
    slots.dedup();
    assert_eq!(slots.len(), count, "one Job a slot");
    let totals = &object["status"]["totals"];
    let of = |field: &str| totals[field].as_i64().unwrap_or(0);
    assert_eq!(
        of("due"),
        of("succeeded") + of("failed") + of("skipped") + of("missed"),
        "{totals}"
    );
    assert_eq!(
        (of("missed"), of("failed"), of("skipped")),
        (0, 0, 0),
        "{totals}"
    );
    assert_eq!(of("due"), i64::try_from(count).unwrap(), "{slots:?}");
    assert_eq!(dumps(&volume).len(), count);
}

#[test]
fn wrong_password_is_named_and_never_shown() {
    let (ns, volume) = prepare("e2e-password");
    ns.kubectl(&["delete", "secret", "db"]).ok();
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", "Wr0ng-marker")],
    );
    ns.apply(&typed("shop", "0 3 * * *", ""));
    let run = ns
        .backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .code(4);
    for text in [run.all(), ns.backup(&["describe", "shop"]).ok().all()] {
        assert!(text.to_lowercase().contains("access denied"), "{text}");
        assert!(text.contains(BACKUP_USER), "{text}");
        assert!(!text.contains("Wr0ng-marker"), "{text}");
    }
    assert_eq!(dumps(&volume), [""; 0]);
    let object = ns.mysql_backup("shop").unwrap();
    assert_eq!(object["status"]["runs"][0]["reason"], "AccessDenied");
    assert_eq!(object["status"]["lastSuccessfulTime"], Value::Null);
}

#[test]
fn password_is_nowhere_but_in_its_secret() {
    let (ns, _volume) = prepare("e2e-secret");
    ns.apply(&typed("typed", "0 3 * * *", ""));
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: env}}
spec:
  schedule: '0 3 * * *'
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
  volumeMounts: [{{name: data, mountPath: /mnt}}]
  backupEnvs:
  - {{name: HOST, value: {HOST}}}
  - {{name: SQLPATH, value: /mnt}}
  - {{name: USERNAME, valueFrom: {{secretKeyRef: {{name: db, key: username}}}}}}
  - {{name: PASSWORD, valueFrom: {{secretKeyRef: {{name: db, key: password}}}}}}
"
    ));
    let mut seen = String::new();
    for name in ["typed", "env"] {
        seen += &ns
            .backup(&["run-now", name, "--wait", "--follow", "--timeout", "3m"])
            .ok()
            .all();
        seen += &ns.backup(&["describe", name]).ok().all();
        seen += &ns.backup(&["logs", name]).ok().all();
    }
    seen += &ns
        .kubectl(&["get", "jobs,pods,events,mysqlbackups", "-o", "yaml"])
        .ok()
        .stdout;
    let pods = ns.get(&["pods"]).unwrap();
    for pod in pods["items"].as_array().unwrap() {
        seen += &ns
            .kubectl(&["logs", pod["metadata"]["name"].as_str().unwrap()])
            .all();
    }
    if let Some(pod) = cluster().operator_pod() {
        seen += &cluster()
            .kubectl(&["-n", "backup-system", "logs", &pod])
            .all();
    }
    assert!(!seen.contains("S3cr3t-marker"), "the password shows");
}

#[test]
fn password_is_not_in_the_argument_list_of_a_running_dump() {
    // A server of its own: the lock would hold the dumps of other tests, and theirs be taken for this one's.
    let (ns, _volume) = prepare("e2e-argv");
    let server = Server::start(&ns, "locked", "").awaited();
    server.sql(&backup_user());
    // A locked table holds the dump back, so that its processes can be looked at.
    server.sql("create database argv; create table argv.t (id int primary key) engine=myisam");
    for (name, engine, program) in [
        ("native", "Native", "backup-runner"),
        ("client", "Client", "mariadb-dump"),
    ] {
        ns.apply(
            &typed(name, "0 3 * * *", "")
                .replace(HOST, "locked")
                .replace("source: {", &format!("source: {{engine: {engine}, ")),
        );
        let mut session =
            server.spawn("exec mariadb -uroot -e 'lock tables argv.t write; select sleep(600)'");
        let lock = wait_for("the table is locked", 20, || {
            let sleeping = "select id from information_schema.processlist where info like 'select sleep(600)%'";
            Some(server.sql(sleeping).trim().to_owned()).filter(|id| !id.is_empty())
        });
        ns.backup(&["run-now", name]).ok();
        eventually("the dump waits for the table", 120, || {
            let waits = format!(
                "select count(*) from information_schema.processlist where user = '{BACKUP_USER}' and state like 'Waiting for table%'"
            );
            server.sql(&waits).trim() != "0"
        });
        let argv = cluster().testbed(&["enter", "ps", "-eo", "args"]).stdout;
        assert!(argv.contains(program), "{argv}");
        assert!(
            !argv.contains("S3cr3t-marker"),
            "the password is an argument"
        );
        server.sql(&format!("kill {lock}"));
        session.wait().unwrap();
        eventually("the held run succeeds", 90, || {
            ns.mysql_backup(name)
                .is_some_and(|o| o["status"]["runs"][0]["result"] == "Succeeded")
        });
    }
}

#[test]
fn suspend_resume_and_delete() {
    let (ns, volume) = prepare("e2e-suspend");
    ns.backup(&[
        "create",
        "mysql",
        "shop",
        "--schedule",
        "* * * * *",
        "--host",
        HOST,
        "--secret",
        "db",
        "--pvc",
        "data",
        "--suspend",
    ])
    .ok();
    wait_for("the suspended object is seen", 30, || {
        let object = ns.mysql_backup("shop")?;
        object["status"]["conditions"]
            .as_array()?
            .iter()
            .find(|c| c["reason"] == "Suspended")
            .cloned()
    });
    assert!(ns.backup(&["list"]).ok().stdout.contains("Suspended"));
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "2m"])
        .ok();
    assert_eq!(
        dumps(&volume).len(),
        1,
        "a suspended object still runs on request"
    );
    assert!(
        ns.jobs()
            .iter()
            .all(|j| j["metadata"]["annotations"][crds::labels::TRIGGER] == "Manual")
    );
    let again = ns.backup(&["suspend", "shop"]).ok();
    assert!(again.all().contains("unchanged"), "{}", again.all());
    ns.backup(&["resume", "shop"]).ok();
    eventually("the schedule runs again", 130, || {
        ns.jobs()
            .iter()
            .any(|j| j["metadata"]["annotations"][crds::labels::TRIGGER] == "Schedule")
    });
    ns.backup(&["delete", "shop", "--yes"]).ok();
    eventually("the Jobs go with the object", 60, || ns.jobs().is_empty());
    assert!(!dumps(&volume).is_empty(), "artefacts stay");
}

#[test]
fn restricted_namespace_takes_our_pods() {
    let (ns, volume) = prepare("e2e-restricted");
    cluster()
        .kubectl(&[
            "label",
            "namespace",
            &ns.name,
            "pod-security.kubernetes.io/enforce=restricted",
        ])
        .ok();
    ns.apply(&typed("shop", "0 3 * * *", ""));
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "2m"])
        .ok();
    assert_eq!(dumps(&volume).len(), 1);
}

#[test]
fn a_dump_restores_into_the_same_tables() {
    let (ns, volume) = prepare("e2e-restore");
    let target = Server::start(&ns, "target", "");
    ns.apply(&typed("shop", "0 3 * * *", "").replace(
        "credentialsSecretRef",
        "databases: [shop], credentialsSecretRef",
    ));
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "2m"])
        .ok();
    let found = dumps(&volume);
    let dump = zstd_cat(&volume.join(&found[0]));
    let target = target.awaited();
    target.sql(&dump);
    let sums = "checksum table shop.t, shop.big";
    assert_eq!(target.sql(sums), database().sql(sums));
    let objects = "select count(*) from information_schema.routines where routine_schema='shop';
         select count(*) from information_schema.triggers where trigger_schema='shop';
         select count(*) from information_schema.events where event_schema='shop';
         select count(*) from information_schema.views where table_schema='shop'";
    assert_eq!(target.sql(objects), "1\n1\n1\n1\n");
}

fn zstd_cat(path: &std::path::Path) -> String {
    let output = std::process::Command::new("zstd")
        .arg("-dc")
        .arg(path)
        .output()
        .expect("zstd is installed");
    assert!(
        output.status.success(),
        "zstd -t: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sha256sum(path: &std::path::Path) -> String {
    let output = std::process::Command::new("sha256sum")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}
