//! Every field wrong in turn: a clear error at the earliest place, and the others go on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use e2e::{Namespace, cluster, files, wait_for};
use serde_json::Value;

fn manifest(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1\nkind: MysqlBackup\nmetadata: {{name: {name}}}\nspec:\n{fields}\n"
    )
}

/// Refused by the API itself: the schema says it.
#[test]
fn the_api_refuses_what_a_schema_can_say() {
    let ns = cluster().namespace("e2e-refused");
    let rows = [
        ("  schedule: 5", "spec.schedule"),
        ("  schedule: ''", "spec.schedule"),
        ("  timeZone: UTC", "spec.schedule"),
        (
            "  schedule: '0 3 * * *'\n  failedJobsHistoryLimit: -1",
            "spec.failedJobsHistoryLimit",
        ),
        (
            "  schedule: '0 3 * * *'\n  failedJobsHistoryLimit: 2147483648",
            "spec.failedJobsHistoryLimit",
        ),
        (
            "  schedule: '0 3 * * *'\n  startingDeadlineSeconds: -1",
            "spec.startingDeadlineSeconds",
        ),
        (
            "  schedule: '0 3 * * *'\n  concurrencyPolicy: Always",
            "Allow",
        ),
        (
            "  schedule: '0 3 * * *'\n  concurrencyPolicy: forbid",
            "Forbid",
        ),
        (
            "  schedule: '0 3 * * *'\n  restartPolicy: Always",
            "OnFailure",
        ),
        (
            "  schedule: '0 3 * * *'\n  imagePullPolicy: Sometimes",
            "IfNotPresent",
        ),
        (
            "  schedule: '0 3 * * *'\n  nodeSelector: {ssd: true}",
            "spec.nodeSelector",
        ),
    ];
    for (fields, says) in rows {
        let output = ns.try_apply(&manifest("bad", fields)).code(1);
        assert!(output.stderr.contains(says), "{fields}: {}", output.stderr);
        assert!(ns.mysql_backup("bad").is_none());
    }
}

fn condition(ns: &Namespace, name: &str, type_: &str) -> Option<Value> {
    let object = ns.mysql_backup(name)?;
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == type_)
        .cloned()
}

/// What a schema can't say: refused by the webhook where it runs; else a condition, and no Job.
#[test]
fn what_a_schema_cannot_say_never_runs_and_says_why() {
    let ns = cluster().namespace("e2e-conditions");
    let rows = [
        ("minute", "  schedule: '61 * * * *'", "61"),
        ("sunday", "  schedule: '0 0 * * 7'", "7"),
        ("six", "  schedule: '0 0 1 * * *'", "5 fields"),
        ("tz", "  schedule: 'TZ=UTC 0 1 * * *'", "timeZone"),
        (
            "zone",
            "  schedule: '0 0 * * *'\n  timeZone: Mars/X",
            "Mars/X",
        ),
        (
            "mount",
            "  schedule: '0 0 * * *'\n  volumeMounts: [{name: nope, mountPath: /x}]",
            "nope",
        ),
        (
            "place",
            "  schedule: '0 0 * * *'\n  destination: {}",
            "exactly one",
        ),
    ];
    for (name, fields, says) in rows {
        let output = ns.try_apply(&manifest(name, fields));
        if output.code != 0 {
            assert!(output.stderr.contains(says), "{name}: {}", output.stderr);
            continue;
        }
        let accepted = wait_for("the condition", 30, || condition(&ns, name, "Accepted"));
        assert_eq!(accepted["status"], "False", "{name}");
        assert!(
            accepted["message"].as_str().unwrap().contains(says),
            "{name}: {accepted}"
        );
    }
    assert!(ns.jobs().is_empty());
}

/// A volume that goes with the pod is no place to store on, in any form: refused before anything runs.
#[test]
fn t7_an_object_that_stores_on_what_goes_with_the_pod_is_not_started() {
    let ns = cluster().namespace("e2e-fleeting");
    let rows = [
        (
            "typed",
            "  schedule: '0 3 * * *'\n  source: {host: db}\n  destination: {volume: {emptyDir: {}}}",
        ),
        (
            "original",
            "  schedule: '0 3 * * *'\n  backupEnvs: [{name: SQLPATH, value: /mnt}]\n  volumes: [{name: data, emptyDir: {medium: Memory}}]\n  volumeMounts: [{name: data, mountPath: /mnt}]",
        ),
    ];
    for (name, fields) in rows {
        // The webhook refuses it, with the words of the condition; where it is off, the condition says so.
        let output = ns.try_apply(&manifest(name, fields));
        if output.code == 0 {
            wait_for(&format!("{name} is refused"), 60, || {
                let conditions = ns.mysql_backup(name)?["status"]["conditions"].clone();
                let refused = |c: &Value| {
                    c["type"] == "Accepted"
                        && c["status"] == "False"
                        && c["message"]
                            .as_str()
                            .unwrap_or_default()
                            .contains("emptyDir")
                };
                conditions.as_array()?.iter().any(refused).then_some(())
            });
        } else {
            assert!(output.stderr.contains("emptyDir"), "{}", output.stderr);
        }
    }
}

/// Runs that must fail, each with its reason, and leave nothing that looks like a dump.
#[test]
fn a_run_that_cannot_work_fails_with_its_cause() {
    let ns = cluster().namespace("e2e-runs");
    let volume = ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    let source = |host: &str, more: &str| {
        format!("  source: {{host: {host}, credentialsSecretRef: {{name: db}}{more}}}")
    };
    let claim = |name: &str| {
        format!("  destination: {{volume: {{persistentVolumeClaim: {{claimName: {name}}}}}}}")
    };
    let schedule = "  schedule: '0 3 * * *'\n  backoffLimit: 0\n";
    let rows = [
        (
            "host",
            format!("{}\n{}", source("nowhere.invalid", ""), claim("data")),
            "UnknownHost",
            "nowhere.invalid",
        ),
        (
            "database",
            format!("{}\n{}", source(HOST, ", databases: [nope]"), claim("data")),
            "UnknownDatabase",
            "nope",
        ),
        (
            "claim",
            format!(
                "{}\n{}\n  startupDeadlineSeconds: 15",
                source(HOST, ""),
                claim("absent")
            ),
            "",
            "absent",
        ),
        (
            "image",
            "  image: nowhere.invalid/x:1\n  startupDeadlineSeconds: 15".to_owned(),
            "",
            "nowhere.invalid/x:1",
        ),
    ];
    for (name, fields, ..) in &rows {
        ns.apply(&manifest(name, &format!("{schedule}{fields}")));
        // Past the plugin, which looks for claims first.
        let request = serde_json::json!({ "action": "Backup", "id": "by-hand" });
        ns.ask("mysqlbackups.batch.isekiro.com", name, request);
    }
    for (name, _, reason, says) in &rows {
        let run = wait_for(&format!("{name} has failed"), 120, || {
            let run = ns.mysql_backup(name)?["status"]["runs"][0].clone();
            (run["result"] == "Failed").then_some(run)
        });
        assert!(
            reason.is_empty() || run["reason"] == *reason,
            "{name}: {run}"
        );
        assert!(
            run["message"].as_str().unwrap().contains(says),
            "{name}: {run}"
        );
    }
    let left: Vec<String> = files(&volume)
        .into_iter()
        .filter(|f| f.contains(".sql"))
        .collect();
    assert_eq!(left, [""; 0]);
    // The operator went on: a good object beside the bad ones runs. It has a database of its own, as another test
    // ends dumps of its database on the server.
    database().sql("create database if not exists good_run; create table if not exists good_run.rows_of (id int primary key)");
    let own = source(HOST, ", databases: [good_run]");
    ns.apply(&manifest(
        "good",
        &format!("{schedule}{own}\n{}", claim("data")),
    ));
    ns.backup(&["run-now", "good", "--wait", "--timeout", "2m"])
        .ok();
}

#[test]
fn a_dump_killed_half_way_is_no_backup() {
    let db = database();
    db.sql(
        "create database if not exists half; create table if not exists half.t (id int auto_increment primary key, body longtext);
         use half; insert into t (body) select repeat(md5(seq), 30000) from seq_1_to_150",
    );
    let ns = cluster().namespace("e2e-half");
    let volume = ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.apply(&manifest(
        "half",
        &format!(
            "  schedule: '0 3 * * *'\n  backoffLimit: 0
  source: {{host: {HOST}, databases: [half], credentialsSecretRef: {{name: db}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}"
        ),
    ));
    // The server itself ends the dump's connection while it sends the table.
    db.sql(&format!(
        "set global event_scheduler=on; drop event if exists half.killer;
         delimiter //
         create event half.killer on schedule every 1 second do begin
           declare victim bigint;
           select id into victim from information_schema.processlist
             where user='{BACKUP_USER}' and info like 'SELECT /*!%half%' or (user='{BACKUP_USER}' and info like 'SELECT%`t`%') limit 1;
           if victim is not null then kill victim; end if;
         end//"
    ));
    ns.backup(&["run-now", "half"]).ok();
    let run = wait_for("the run ends", 120, || {
        let run = ns.mysql_backup("half")?["status"]["runs"][0].clone();
        ["Failed", "Succeeded"]
            .iter()
            .any(|r| run["result"] == *r)
            .then_some(run)
    });
    db.sql("drop database half; set global event_scheduler=off");
    assert_eq!(run["result"], "Failed", "{run}");
    assert_eq!(run["exitCode"], 3, "{run}");
    let left: Vec<String> = files(&volume)
        .into_iter()
        .filter(|f| f.contains(".sql"))
        .collect();
    assert_eq!(left, [""; 0]);
}
