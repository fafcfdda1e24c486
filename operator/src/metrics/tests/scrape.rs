//! The text of /metrics.

use chrono::TimeDelta;
use crds::request::Action;
use crds::run::Trigger;

use super::*;
use crate::engine::{JobDigest, JobOutcome, PodDigest};

/// The value of one sample.
fn value(text: &str, sample: &str) -> Option<String> {
    let found = text.lines().find_map(|l| l.strip_prefix(sample));
    found.map(|rest| rest.trim().to_owned())
}

const ORDERS: &str = r#"{kind="MysqlBackup",namespace="shop",name="orders"}"#;

fn of_orders(text: &str, name: &str) -> String {
    value(text, &format!("{name}{ORDERS}")).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn every_series_is_there_as_soon_as_the_object_is_and_goes_with_it() {
    let source = Arc::new(Fake::default());
    let metrics = metrics(&source);
    assert!(!metrics.text().contains("orders"));
    let new = series(settings("0 2 * * *"), &json!({}), json!({}));
    source.0.lock().unwrap().push((new, Live::default()));
    let text = metrics.text();
    for (name, expected) in [
        ("mysqlbackup_created_timestamp_seconds", "1735732800"),
        ("mysqlbackup_accepted", "1"),
        ("mysqlbackup_suspended", "0"),
        ("mysqlbackup_overdue", "1"),
        ("mysqlbackup_expected_interval_seconds", "86400"),
        ("mysqlbackup_last_success_timestamp_seconds", "0"),
        ("mysqlbackup_last_verified_timestamp_seconds", "0"),
        ("mysqlbackup_consecutive_failures", "0"),
        ("mysqlbackup_manual_runs_total", "0"),
    ] {
        assert_eq!(of_orders(&text, name), expected, "{name}");
    }
    for outcome in ["succeeded", "failed", "skipped", "missed"] {
        let labels = ORDERS.replace('}', &format!(",outcome=\"{outcome}\"}}"));
        let sample = format!("mysqlbackup_slots_total{labels}");
        assert_eq!(value(&text, &sample).as_deref(), Some("0"), "{sample}");
    }
    assert!(text.ends_with("# EOF\n"));
    source.0.lock().unwrap().clear();
    assert!(!metrics.text().contains("orders"));
}

#[test]
fn status_becomes_figures() {
    let runs: Vec<Value> = [(5, 40), (4, 100), (3, 300), (2, 200)]
        .iter()
        .map(|(day, bytes)| {
            let at = |time: &str| format!("2025-01-0{day}T{time}Z");
            let (slot, end) = (at("02:00:00"), at("02:01:30"));
            run("r", "Succeeded", &slot, &slot, &end, *bytes)
        })
        .collect();
    let status = json!({
        "runs": runs,
        "lastSuccessfulTime": "2025-01-05T02:01:30Z",
        "lastVerifiedTime": "2025-01-04T03:00:00Z",
        "nextScheduleTime": "2025-01-11T02:00:00Z",
        "binlogs": {"intervalSeconds": 300, "anchor": "2025-01-05T00:00:00Z", "accountedUntil": "2025-01-10T11:55:00Z",
            "storedBytes": 4096, "gapsFound": 2, "lagSeconds": 3,
            "windows": [{"from": "2025-01-05T02:00:00Z", "until": "2025-01-10T11:55:02Z"}]},
        "consecutiveFailures": 2,
        "totals": {"due": 17, "succeeded": 4, "failed": 5, "skipped": 1, "missed": 7, "manual": 3},
        "conditions": [{"type": "Verified", "status": "False", "reason": "Differs", "message": "",
            "lastTransitionTime": "2025-01-05T00:00:00Z"}],
    });
    let spec = json!({"verify": {"mode": "Restore", "every": 7}});
    let mut suspended = settings("0 2 * * *");
    suspended.suspend = true;
    let object = series(suspended, &spec, status);
    let pending = Live {
        active: 2,
        pending: Some(t("2025-01-10T11:55:00Z")),
    };
    let source = Arc::new(Fake(Mutex::new(vec![(object, pending)])));
    let text = metrics(&source).text();
    for (name, expected) in [
        (
            "mysqlbackup_last_run_timestamp_seconds",
            t("2025-01-05T02:01:30Z").timestamp(),
        ),
        (
            "mysqlbackup_last_success_timestamp_seconds",
            t("2025-01-05T02:01:30Z").timestamp(),
        ),
        (
            "mysqlbackup_last_verified_timestamp_seconds",
            t("2025-01-04T03:00:00Z").timestamp(),
        ),
        (
            "mysqlbackup_next_run_timestamp_seconds",
            t("2025-01-11T02:00:00Z").timestamp(),
        ),
        (
            "mysqlbackup_recoverable_timestamp_seconds",
            t("2025-01-10T11:55:02Z").timestamp(),
        ),
        ("mysqlbackup_suspended", 1),
        (
            "mysqlbackup_suspended_since_timestamp_seconds",
            t("2025-01-01T12:00:00Z").timestamp(),
        ),
        ("mysqlbackup_verify_interval_seconds", 7 * 86_400),
        ("mysqlbackup_verification_failed", 1),
        ("mysqlbackup_consecutive_failures", 2),
        ("mysqlbackup_active_jobs", 2),
        ("mysqlbackup_pending_seconds", 300),
        ("mysqlbackup_size_bytes", 40),
        ("mysqlbackup_usual_size_bytes", 200),
        ("mysqlbackup_duration_seconds", 90),
        ("mysqlbackup_manual_runs_total", 3),
        ("mysqlbackup_binlog_lag_seconds", 3),
        ("mysqlbackup_binlog_stored_bytes_total", 4096),
        ("mysqlbackup_binlog_gaps_total", 2),
    ] {
        assert_eq!(of_orders(&text, name), expected.to_string(), "{name}");
    }
    for (outcome, count) in [
        ("succeeded", 4),
        ("failed", 5),
        ("skipped", 1),
        ("missed", 7),
    ] {
        let labels = ORDERS.replace('}', &format!(",outcome=\"{outcome}\"}}"));
        let found = value(&text, &format!("mysqlbackup_slots_total{labels}"));
        assert_eq!(found, Some(count.to_string()), "{outcome}");
    }
}

#[test]
fn nothing_a_user_writes_breaks_the_text() {
    let odd = series(settings("a\"} 1\nx{\\"), &json!({}), json!({}));
    let source = Arc::new(Fake(Mutex::new(vec![(odd, Live::default())])));
    let text = metrics(&source).text();
    let line = text
        .lines()
        .find(|l| l.starts_with("mysqlbackup_schedule{"))
        .unwrap();
    assert!(
        line.contains(r#"schedule="a\"} 1\nx{\\",time_zone="UTC"} 1"#),
        "{line}"
    );
}

#[test]
fn the_oldest_job_without_a_running_container_is_pending() {
    let created = t("2025-01-10T11:00:00Z");
    let job = |uid: &str, minutes: i64| JobDigest {
        name: uid.into(),
        uid: uid.into(),
        slot: None,
        trigger: Trigger::Schedule,
        request_id: None,
        action: Action::Backup,
        created: created + TimeDelta::minutes(minutes),
        started: None,
        suspended: false,
        ran: false,
        deleting: false,
        failed: 0,
        attempts: 3,
        outcome: JobOutcome::Active,
    };
    let pod = PodDigest {
        name: "p".into(),
        uid: "p".into(),
        job_uid: "runs".into(),
        created,
        started: true,
        trouble: None,
        ended: None,
        failures: 0,
        held: None,
        gone: false,
    };
    let mut done = job("done", -9);
    done.outcome = JobOutcome::Complete { at: created };
    let mut verify = job("verify", -8);
    verify.action = Action::Verify;
    let jobs = [
        job("runs", -5),
        job("waits", 1),
        job("waits-longer", 0),
        done,
        verify,
    ];
    let expected = Live {
        active: 3,
        pending: Some(created),
    };
    assert_eq!(Live::of(&jobs, &[pod]), expected);
    assert_eq!(Live::of(&[], &[]), Live::default());
}
