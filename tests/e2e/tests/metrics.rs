//! What the running operator tells Prometheus.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;

use e2e::{cluster, eventually, wait_for};

const ALERTS: &str = include_str!("../../../deploy/alerts/rules.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/dashboards/backup.json");
const SCRAPE: &str =
    "/api/v1/namespaces/backup-system/services/backup-operator-metrics:8080/proxy/metrics";

/// No such image is there, and none is to be pulled: its pod stays pending.
const NEVER_STARTS: &str = "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {name: pending}
spec:
  schedule: '0 0 1 1 *'
  image: there.invalid/is-none:v1
  imagePullPolicy: Never
  startupDeadlineSeconds: 20
";

fn scrape() -> String {
    cluster().kubectl(&["get", "--raw", SCRAPE]).ok().stdout
}

/// The value of a series of the object.
fn value(text: &str, name: &str, more: &str) -> Option<f64> {
    let of = r#"{kind="MysqlBackup",namespace="e2e-metrics",name="pending""#;
    let sample = format!("{name}{of}{more}}} ");
    let line = text.lines().find_map(|l| l.strip_prefix(&sample))?;
    line.parse().ok()
}

fn wait_value(what: &str, name: &str, fits: impl Fn(f64) -> bool) {
    wait_for(what, 60, || value(&scrape(), name, "").filter(|v| fits(*v)));
}

/// Names of series in alerts and dashboard: ours begin in two ways only.
fn asked_for() -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let words = ALERTS.split(word).chain(DASHBOARD.split(word));
    words
        .filter(|w| w.starts_with("mysqlbackup_") || w.starts_with("backup_operator_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn series_begin_with_the_object_follow_its_runs_and_end_with_it() {
    let ns = cluster().namespace("e2e-metrics");
    ns.apply(NEVER_STARTS);
    wait_value("the object's series", "mysqlbackup_accepted", |v| v == 1.0);
    let text = scrape();
    for name in ["mysqlbackup_consecutive_failures", "mysqlbackup_overdue"] {
        assert_eq!(value(&text, name, ""), Some(0.0), "{name}");
    }
    let failed = value(&text, "mysqlbackup_slots_total", r#",outcome="failed""#);
    assert_eq!(
        failed,
        Some(0.0),
        "the first failure can be seen only if 0 was"
    );
    assert!(value(&text, "mysqlbackup_next_run_timestamp_seconds", "").unwrap() > 1.7e9);

    ns.backup(&["run-now", "pending"]).ok();
    wait_value("the pending Job", "mysqlbackup_pending_seconds", |v| {
        v > 0.0
    });
    wait_value("the failed run", "mysqlbackup_consecutive_failures", |v| {
        v == 1.0
    });
    let text = scrape();
    assert_eq!(value(&text, "mysqlbackup_manual_runs_total", ""), Some(1.0));

    let there = |name: &String| {
        let sample = |l: &str| l.starts_with(name.as_str());
        text.lines().any(sample)
    };
    let missing: Vec<_> = asked_for().into_iter().filter(|n| !there(n)).collect();
    assert!(
        missing.is_empty(),
        "alerts and dashboard ask for {missing:?}"
    );
    assert!(text.ends_with("# EOF\n"));

    ns.kubectl(&["delete", "mysqlbackup", "pending"]).ok();
    eventually("the series are gone", 30, || {
        !scrape().contains(r#"namespace="e2e-metrics""#)
    });
}
