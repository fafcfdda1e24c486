#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod documents;
mod outlook;
mod scrape;

use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::time::parse_rfc3339;
use serde_json::{Value, json};

use super::*;
use crate::engine::{Object, Settings};

fn t(text: &str) -> DateTime<Utc> {
    parse_rfc3339(text).unwrap()
}

/// An object as the API server holds it: what matters of spec, and status.
fn series(settings: Settings, spec: &Value, status: Value) -> Series {
    let object = Object {
        kind: "MysqlBackup".into(),
        namespace: "shop".into(),
        name: "orders".into(),
        created: t("2025-01-01T12:00:00Z"),
        ..Object::default()
    };
    let status: ScheduleStatus = serde_json::from_value(status).unwrap();
    Series::of(&object, spec, Some(&settings), true, &status)
}

fn settings(schedule: &str) -> Settings {
    Settings {
        schedule: Some(schedule.into()),
        startup_deadline: 600,
        ..Settings::default()
    }
}

fn run(name: &str, result: &str, slot: &str, start: &str, end: &str, bytes: i64) -> Value {
    json!({
        "name": name, "trigger": "Schedule", "result": result, "slot": slot,
        "startTime": start, "completionTime": end, "storedBytes": bytes,
    })
}

/// A source whose objects the test sets.
#[derive(Default)]
struct Fake(Mutex<Vec<(Series, Live)>>);

impl Source for Fake {
    fn rows(&self) -> Vec<Row> {
        let now = t("2025-01-10T12:00:00Z");
        let known = self.0.lock().unwrap();
        known
            .iter()
            .map(|(series, live)| Row::new(Arc::new(series.clone()), *live, now))
            .collect()
    }
}

/// The metrics of the whole operator over one object.
fn metrics(source: &Arc<Fake>) -> Metrics {
    let metrics = Metrics::new(|registry| crate::webhook::Metrics::default().register(registry));
    let source: Arc<dyn Source> = source.clone();
    metrics.objects.come_from(Arc::downgrade(&source));
    metrics
}
