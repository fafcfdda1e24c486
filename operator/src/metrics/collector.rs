//! The series of the users' objects, made at each scrape from what the store knows: they begin
//! with the object, survive restarts, and end with the object.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use chrono::{DateTime, Utc};
use crds::verdict::State;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::series::{Live, Outlook, Series, outlook};

/// One object at the moment of a scrape.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(super) series: Arc<Series>,
    pub(super) live: Live,
    pub(super) outlook: Outlook,
    pub(super) pending_seconds: i64,
}

impl Row {
    /// The row of an object at `now`.
    pub(crate) fn new(series: Arc<Series>, live: Live, now: DateTime<Utc>) -> Self {
        let pending = live.pending.map_or(0, |at| (now - at).num_seconds().max(0));
        Self {
            outlook: outlook(&series, now),
            live,
            pending_seconds: pending,
            series,
        }
    }

    fn labels(&self) -> [(&str, &str); 3] {
        let s = &*self.series;
        [
            ("kind", &s.kind),
            ("namespace", &s.namespace),
            ("name", &s.name),
        ]
    }
}

/// Who knows the objects.
pub(crate) trait Source: Send + Sync {
    /// Every object there is, now.
    fn rows(&self) -> Vec<Row>;
}

/// Where the rows come from, once the controller stands.
#[derive(Clone, Default)]
pub(crate) struct Objects(Arc<OnceLock<Weak<dyn Source>>>);

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Objects")
    }
}

impl Objects {
    /// Names the source; the first one stays.
    pub(crate) fn come_from(&self, source: Weak<dyn Source>) {
        let _ = self.0.set(source);
    }

    fn rows(&self) -> Vec<Row> {
        let source = self.0.get().and_then(Weak::upgrade);
        source.map(|s| s.rows()).unwrap_or_default()
    }
}

/// A gauge: name, help, value.
type Shown = (&'static str, &'static str, fn(&Row) -> i64);

fn unix(at: Option<DateTime<Utc>>) -> i64 {
    at.map_or(0, |at| at.timestamp())
}

/// The gauges of an object.
const GAUGES: [Shown; 23] = [
    (
        "mysqlbackup_created_timestamp_seconds",
        "Creation of the object, as unix time",
        |r| r.series.created.timestamp(),
    ),
    (
        "mysqlbackup_accepted",
        "1 if the spec is valid and this operator acts on the object",
        |r| r.series.accepted.into(),
    ),
    (
        "mysqlbackup_suspended",
        "1 while the object is suspended",
        |r| r.series.suspended.is_some().into(),
    ),
    (
        "mysqlbackup_suspended_since_timestamp_seconds",
        "When the suspension began, as unix time; 0 if there is none",
        |r| unix(r.series.suspended),
    ),
    (
        "mysqlbackup_skipped_until_timestamp_seconds",
        "Slots up to this unix time are skipped by annotation; 0 if there is none",
        |r| unix(r.series.skipped_until),
    ),
    (
        "mysqlbackup_accounted_until_timestamp_seconds",
        "End of the accounted time, as unix time; 0 if nothing is accounted yet",
        |r| unix(r.series.accounted),
    ),
    (
        "mysqlbackup_overdue",
        "1 if a slot was not started, or nothing good came of it or of a later one, in the time it may take",
        |r| (r.outlook.verdict.late == State::Critical).into(),
    ),
    (
        "mysqlbackup_expected_interval_seconds",
        "Seconds between the slots around now; 0 without a schedule",
        |r| r.outlook.interval,
    ),
    (
        "mysqlbackup_next_run_timestamp_seconds",
        "Next slot, as unix time; 0 if none comes",
        |r| unix(r.series.next),
    ),
    (
        "mysqlbackup_last_run_timestamp_seconds",
        "End of the newest finished run, as unix time; 0 if none",
        |r| unix(r.series.last_run),
    ),
    (
        "mysqlbackup_last_success_timestamp_seconds",
        "End of the newest good run, as unix time; 0 if none",
        |r| unix(r.series.last_success),
    ),
    (
        "mysqlbackup_last_verified_timestamp_seconds",
        "Newest passed verification by restore, as unix time; 0 if none",
        |r| unix(r.series.last_verified),
    ),
    (
        "mysqlbackup_recoverable_timestamp_seconds",
        "Up to when binary logs are stored, as unix time; 0 if none are",
        |r| unix(r.series.recoverable),
    ),
    (
        "mysqlbackup_binlog_lag_seconds",
        "Seconds by which that moment was past when the last good pull of binary logs ended; 0 if none did",
        |r| r.series.binlogs[0],
    ),
    (
        "mysqlbackup_verify_interval_seconds",
        "Expected seconds between verifications by restore; 0 if the spec asks for none",
        |r| {
            r.outlook
                .interval
                .saturating_mul(r.series.verify_every.into())
        },
    ),
    (
        "mysqlbackup_verification_failed",
        "1 if the newest verification failed",
        |r| r.series.verification_failed.into(),
    ),
    (
        "mysqlbackup_consecutive_failures",
        "Failed runs since the newest good one",
        |r| r.series.failures.into(),
    ),
    (
        "mysqlbackup_active_jobs",
        "Backup Jobs that are not finished",
        |r| r.live.active.into(),
    ),
    (
        "mysqlbackup_waiting_runs",
        "Due runs that a limit or a running run holds back",
        |r| r.series.waiting.into(),
    ),
    (
        "mysqlbackup_pending_seconds",
        "Age of the oldest Job whose container does not run yet; 0 if none",
        |r| r.pending_seconds,
    ),
    (
        "mysqlbackup_size_bytes",
        "Stored bytes of the newest good run; 0 if unknown",
        |r| r.series.size,
    ),
    (
        "mysqlbackup_usual_size_bytes",
        "Median of stored bytes of the good runs before it; 0 while there are fewer than three",
        |r| r.series.usual_size,
    ),
    (
        "mysqlbackup_duration_seconds",
        "Seconds the newest good run took; 0 if none",
        |r| r.series.duration.unwrap_or(0),
    ),
];

/// Reads one count of an object.
type Count = fn(&Row) -> i64;

/// Slots by outcome.
const OUTCOMES: [(&str, Count); 4] = [
    ("succeeded", |r| r.series.totals.succeeded),
    ("failed", |r| r.series.totals.failed),
    ("skipped", |r| r.series.totals.skipped),
    ("missed", |r| r.series.totals.missed),
];

/// Of binary logs: name, help, value.
const BINLOGS: [Shown; 2] = [
    (
        "mysqlbackup_binlog_stored_bytes",
        "Bytes of binary logs that pulls have stored",
        |r| r.series.binlogs[1],
    ),
    (
        "mysqlbackup_binlog_gaps",
        "Gaps in stored binary logs that were found",
        |r| r.series.binlogs[2],
    ),
];

impl Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let rows = self.rows();
        let mut info = metric(
            &mut encoder,
            "mysqlbackup_schedule",
            "Schedule and zone, as labels; always 1",
            MetricType::Gauge,
        )?;
        for row in &rows {
            let zone = row.series.zone.as_deref().unwrap_or("UTC");
            let more = [("schedule", &*row.series.schedule), ("time_zone", zone)];
            ConstGauge::new(1_i64).encode(info.encode_family(&(row.labels(), more))?)?;
        }
        for (name, help, value) in GAUGES {
            let mut gauge = metric(&mut encoder, name, help, MetricType::Gauge)?;
            for row in &rows {
                ConstGauge::new(value(row)).encode(gauge.encode_family(&row.labels())?)?;
            }
        }
        let mut verdicts = metric(
            &mut encoder,
            "mysqlbackup_verdict",
            "How the object is, with the reason as label: 0 good, 1 warning, 2 critical, 3 unknown",
            MetricType::Gauge,
        )?;
        for row in &rows {
            let verdict = &row.outlook.verdict;
            let labels = (row.labels(), [("reason", verdict.reason.as_str())]);
            let state = i64::from(verdict.state.number());
            ConstGauge::new(state).encode(verdicts.encode_family(&labels)?)?;
        }
        counters(&mut encoder, &rows)
    }
}

/// Counters come from status, so that they neither begin late nor restart with the operator.
fn counters(encoder: &mut DescriptorEncoder, rows: &[Row]) -> fmt::Result {
    let mut slots = metric(
        encoder,
        "mysqlbackup_slots",
        "Slots of the schedule by what became of them",
        MetricType::Counter,
    )?;
    for row in rows {
        for (outcome, value) in OUTCOMES {
            let labels = (row.labels(), [("outcome", outcome)]);
            count(value(row)).encode(slots.encode_family(&labels)?)?;
        }
    }
    let mut manual = metric(
        encoder,
        "mysqlbackup_manual_runs",
        "Runs that somebody asked for",
        MetricType::Counter,
    )?;
    for row in rows {
        count(row.series.totals.manual).encode(manual.encode_family(&row.labels())?)?;
    }
    for (name, help, value) in BINLOGS {
        let mut counter = metric(encoder, name, help, MetricType::Counter)?;
        for row in rows {
            count(value(row)).encode(counter.encode_family(&row.labels())?)?;
        }
    }
    Ok(())
}

fn count(value: i64) -> ConstCounter {
    ConstCounter::new(u64::try_from(value).unwrap_or(0))
}

fn metric<'a>(
    encoder: &'a mut DescriptorEncoder,
    name: &'static str,
    help: &str,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, kind)
}
