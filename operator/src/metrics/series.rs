//! What is kept of one object for its series. PURE.

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::condition;
use crds::labels::SKIP_SLOTS_UNTIL;
use crds::parts::VerifyMode;
use crds::request::Action;
use crds::run::{Run, RunResult};
use crds::schedule::{DstPolicy, Schedule};
use crds::status::Totals;
use crds::time::{from_k8s, parse_rfc3339};
use crds::verdict::{self, Facts, Verdict, good_runs};
use serde_json::Value;

use crate::engine::overdue;
use crate::engine::{JobDigest, Object, PodDigest, Settings};

/// Fewest other runs whose sizes say what is usual.
const ENOUGH: usize = 3;

/// One object, cut to what its series need.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    pub(super) kind: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) schedule: Box<str>,
    pub(super) zone: Option<Box<str>>,
    dst: DstPolicy,
    pub(super) created: DateTime<Utc>,
    /// What the verdict is made from.
    facts: Facts,
    pub(super) last_run: Option<DateTime<Utc>>,
    pub(super) last_success: Option<DateTime<Utc>>,
    pub(super) last_verified: Option<DateTime<Utc>>,
    /// Up to when binary logs are stored.
    pub(super) recoverable: Option<DateTime<Utc>>,
    /// Seconds by which that was past when the last pull ended, bytes that pulls stored, and gaps that were found.
    pub(super) binlogs: [i64; 3],
    pub(super) next: Option<DateTime<Utc>>,
    pub(super) suspended: Option<DateTime<Utc>>,
    /// The end of the accounted time.
    pub(super) accounted: Option<DateTime<Utc>>,
    /// Slots up to it are skipped by annotation.
    pub(super) skipped_until: Option<DateTime<Utc>>,
    pub(super) accepted: bool,
    pub(super) verification_failed: bool,
    /// Every Nth good run is verified by restore; 0 if none.
    pub(super) verify_every: u32,
    /// Seconds of the newest good run.
    pub(super) duration: Option<i64>,
    pub(super) size: i64,
    pub(super) usual_size: i64,
    pub(super) failures: i32,
    pub(super) waiting: u32,
    pub(super) totals: Totals,
}

impl Series {
    /// Of an object as read. `settings` is `None` if the spec does not fit its type.
    pub(crate) fn of(
        object: &Object,
        spec: &Value,
        settings: Option<&Settings>,
        accepted: bool,
        status: &ScheduleStatus,
    ) -> Self {
        let unknown = Settings::default();
        let settings = settings.unwrap_or(&unknown);
        let time = |at: &Option<_>| at.as_ref().map(from_k8s);
        let facts = overdue::facts(object, settings, status);
        let suspended = time(&status.suspended_since).unwrap_or(object.created);
        Self {
            kind: object.kind.as_str().into(),
            namespace: object.namespace.as_str().into(),
            name: object.name.as_str().into(),
            schedule: settings.schedule.as_deref().unwrap_or_default().into(),
            zone: settings.time_zone.as_deref().map(Into::into),
            dst: settings.dst_policy,
            created: object.created,
            last_run: status
                .runs
                .iter()
                .filter(|r| finished(r))
                .filter_map(|r| time(&r.completion_time))
                .max(),
            last_success: time(&status.last_successful_time),
            last_verified: time(&status.last_verified_time),
            recoverable: status.binlogs.as_ref().and_then(|books| {
                let newest = books.windows.first()?;
                Some(from_k8s(&newest.until))
            }),
            binlogs: status.binlogs.as_ref().map_or([0; 3], |books| {
                let lag = books.lag_seconds.unwrap_or(0);
                [lag, books.stored_bytes, books.gaps_found]
            }),
            next: time(&status.next_schedule_time),
            suspended: settings.suspend.then_some(suspended),
            accounted: time(&status.accounted_until),
            skipped_until: object
                .annotations
                .get(SKIP_SLOTS_UNTIL)
                .and_then(|text| parse_rfc3339(text)),
            accepted,
            verification_failed: condition::get(&status.conditions, condition::VERIFIED)
                .is_some_and(|c| c.status == "False"),
            verify_every: verify_every(spec),
            duration: facts.duration(),
            size: sizes(status).next().unwrap_or(0),
            usual_size: usual_size(status),
            failures: status.consecutive_failures.unwrap_or(0),
            waiting: waiting(status),
            totals: status.totals.unwrap_or_default(),
            facts: facts.without_words(),
        }
    }

    /// The schedule, if there is one and it parses.
    pub(super) fn parsed(&self) -> Option<Schedule> {
        if self.schedule.is_empty() {
            return None;
        }
        let schedule = Schedule::parse(&self.schedule, self.zone.as_deref()).ok()?;
        Some(schedule.with_dst_policy(self.dst))
    }
}

fn finished(run: &Run) -> bool {
    matches!(run.result, RunResult::Succeeded | RunResult::Failed)
}

/// Sizes of good runs, newest first.
fn sizes(status: &ScheduleStatus) -> impl Iterator<Item = i64> {
    good_runs(status).filter_map(|r| r.stored_bytes)
}

/// The median size of the good runs before the newest; 0 while they are too few.
fn usual_size(status: &ScheduleStatus) -> i64 {
    let mut others: Vec<i64> = sizes(status).skip(1).collect();
    if others.len() < ENOUGH {
        return 0;
    }
    others.sort_unstable();
    others[others.len() / 2]
}

fn waiting(status: &ScheduleStatus) -> u32 {
    let waits = |r: &&Run| r.result == RunResult::Waiting;
    u32::try_from(status.runs.iter().filter(waits).count()).unwrap_or(u32::MAX)
}

/// `spec.verify`, of a Backup `spec.job.verify`: how often artefacts are verified by restore or replay.
fn verify_every(spec: &Value) -> u32 {
    let of_backup = || spec.pointer("/spec/job/verify");
    let Some(verify) = spec.get("verify").or_else(of_backup) else {
        return 0;
    };
    let mode = verify.get("mode").and_then(Value::as_str);
    if !mode
        .and_then(VerifyMode::named)
        .is_some_and(VerifyMode::restores)
    {
        return 0;
    }
    let every = verify.get("every").and_then(Value::as_u64).unwrap_or(1);
    u32::try_from(every).unwrap_or(u32::MAX)
}

/// What the object's Jobs say at the moment of the scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Backup Jobs that are not finished.
    pub(super) active: u32,
    /// Creation of the oldest of them whose container does not run yet.
    pub(super) pending: Option<DateTime<Utc>>,
}

impl Live {
    /// Of an object's Jobs and pods.
    pub(crate) fn of(jobs: &[JobDigest], pods: &[PodDigest]) -> Self {
        let mut live = Self::default();
        let active = |j: &&JobDigest| j.is_active() && j.action == Action::Backup;
        for job in jobs.iter().filter(active) {
            live.active += 1;
            let runs = job.ran || pods.iter().any(|p| p.job_uid == job.uid && p.started);
            if !runs && live.pending.is_none_or(|at| job.created < at) {
                live.pending = Some(job.created);
            }
        }
        live
    }
}

/// What depends on the time of the scrape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// Seconds between the slots around now; 0 without a schedule.
    pub(super) interval: i64,
    /// How the object is.
    pub(super) verdict: Verdict,
}

/// Interval and verdict.
pub(crate) fn outlook(series: &Series, now: DateTime<Utc>) -> Outlook {
    let schedule = series.parsed();
    Outlook {
        interval: schedule.as_ref().map_or(0, |schedule| {
            verdict::interval(schedule, series.facts.anchor(), now)
        }),
        verdict: verdict::judge(&series.facts, schedule.as_ref(), None, now),
    }
}
