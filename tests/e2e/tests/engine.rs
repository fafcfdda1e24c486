//! What the engine promises, against the clock of a real cluster and beside a native CronJob.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use chrono::{DateTime, Duration, SecondsFormat, Timelike, Utc};
use e2e::objects::{owned_by, quick, quick_image};
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::{Value, json};

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(e2e::wait::unix_seconds(), 0).unwrap()
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn cron_job(name: &str, schedule: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}}}
spec:
  schedule: '{schedule}'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: c, image: '{}', imagePullPolicy: IfNotPresent, args: [--help]}}]
",
        quick_image()
    )
}

fn patch_status(ns: &Namespace, resource: &str, name: &str, status: &Value) {
    let patch = json!({ "status": status }).to_string();
    ns.kubectl(&[
        "patch",
        resource,
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ])
    .ok();
}

/// Rule 24: after two days of outage the newest due slot starts at once, whatever the gaps; the
/// native CronJob beside it starts nothing.
#[test]
fn an_uneven_schedule_survives_an_outage_that_a_cronjob_does_not() {
    let ns = cluster().namespace("e2e-uneven");
    // Both slots of today lie more than an hour back; a CronJob searches for the newest one
    // from an instant beyond it.
    let newest = now().with_minute(0).unwrap().with_second(0).unwrap() - Duration::hours(2);
    let before = newest - Duration::hours(1);
    let uneven = format!("0 {},{} * * *", before.hour(), newest.hour());
    let even = format!("0 {} * * *", newest.hour());
    ns.apply(&quick("ours", &uneven, ""));
    ns.apply(&format!(
        "{}---\n{}",
        cron_job("uneven", &uneven),
        cron_job("even", &even)
    ));
    wait_for("the object is seen", 30, || {
        ns.mysql_backup("ours")?["status"]["accountedUntil"]
            .as_str()
            .map(str::to_owned)
    });
    let last = json!({"lastScheduleTime": text(newest - Duration::days(2))});
    patch_status(&ns, "mysqlbackup.batch.isekiro.com", "ours", &last);
    patch_status(&ns, "cronjob", "uneven", &last);
    patch_status(&ns, "cronjob", "even", &last);

    eventually("the evenly spaced CronJob starts", 60, || {
        !owned_by(&ns.jobs(), "CronJob", "even").is_empty()
    });
    let ours = wait_for("our Job", 30, || {
        let jobs = ns.jobs();
        owned_by(&jobs, "MysqlBackup", "ours")
            .first()
            .map(|j| (*j).clone())
    });
    assert_eq!(
        ours["metadata"]["annotations"][crds::labels::SCHEDULED_AT],
        text(newest)
    );
    assert!(
        owned_by(&ns.jobs(), "CronJob", "uneven").is_empty(),
        "a CronJob loses this run"
    );
    let status = wait_for("the older slots are recorded", 30, || {
        let status = ns.mysql_backup("ours")?["status"].clone();
        status["missed"].is_array().then_some(status)
    });
    assert_eq!(status["missed"][0]["count"], 3, "{status}");
    assert_eq!(status["missed"][0]["to"], text(before), "{status}");
    assert_eq!(status["totals"]["due"], 4, "{status}");
}

#[test]
fn describe_says_what_a_suspended_weekend_missed() {
    let ns = cluster().namespace("e2e-weekend");
    let minute = now().minute();
    // Hourly, and not due within the next half hour.
    let schedule = format!("{} * * * *", (minute + 40) % 60);
    ns.apply(&quick("shop", &schedule, "  suspend: true"));
    wait_for("the suspended object is seen", 30, || {
        ns.mysql_backup("shop")?["status"]["suspendedSince"]
            .as_str()
            .map(str::to_owned)
    });
    let friday = now() - Duration::hours(48);
    let annotation = format!("{}={}", crds::labels::SUSPENDED_SINCE, text(friday));
    ns.kubectl(&[
        "annotate",
        "--overwrite",
        "mysqlbackup.batch.isekiro.com/shop",
        &annotation,
    ])
    .ok();
    patch_status(
        &ns,
        "mysqlbackup.batch.isekiro.com",
        "shop",
        &json!({
            "suspendedSince": text(friday), "accountedUntil": text(friday),
            "schedule": {"text": schedule, "timeZone": "UTC", "since": text(friday), "anchor": text(friday)},
        }),
    );
    ns.backup(&["resume", "shop", "--run-missed"]).ok();
    eventually("the newest missed slot is made up", 60, || {
        !owned_by(&ns.jobs(), "MysqlBackup", "shop").is_empty()
    });
    let described = wait_for("describe tells", 30, || {
        let said = ns.backup(&["describe", "shop"]).ok().stdout;
        said.contains(": Suspended").then_some(said)
    });
    assert!(
        described.contains("47 from "),
        "48 slots, one made up:\n{described}"
    );
    assert_eq!(owned_by(&ns.jobs(), "MysqlBackup", "shop").len(), 1);
}
