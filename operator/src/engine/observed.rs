//! What a plan is made from: objects as read, in the few fields the engine needs.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::parts::ConcurrencyPolicy;
use crds::request::Action;
use crds::run::Trigger;
use crds::schedule::DstPolicy;
use crds::validate::Problem;

/// Everything a plan is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The user's object.
    pub object: Object,
    /// Its settings, kind by kind translated.
    pub settings: Settings,
    /// Mistakes in its spec; any of them keeps it from running.
    pub problems: Vec<Problem>,
    /// Its status as last read.
    pub status: ScheduleStatus,
    /// Conditions that only its kind has.
    pub kind_conditions: Vec<KindCondition>,
    /// Jobs of its namespace that it controls.
    pub jobs: Vec<JobDigest>,
    /// Pods of those Jobs.
    pub pods: Vec<PodDigest>,
    /// Starts that failed or were held back since the operator began, newest per name.
    pub failures: Vec<StartFailure>,
    /// What events said of Jobs without a running container.
    pub obstacles: Vec<Obstacle>,
    /// What other controllers do to this object's Jobs, in words.
    pub foreign: Option<String>,
    /// Jobs this object owns that do not carry our label.
    pub foreign_jobs: Vec<ForeignJob>,
    /// This installation of the operator, as it claims objects: namespace/name of its Lease.
    pub installation: String,
    /// The other installations that status names.
    pub foreign_installations: BTreeMap<String, Standing>,
    /// Free places under `--max-active-runs`.
    pub room: Room,
    /// True if object and Jobs were read from the API server for this plan, past every cache.
    pub live: bool,
    /// True if the pods were read likewise.
    pub pods_live: bool,
    /// Since when this process may write. Older slots are decided on live reads alone.
    pub leading_since: DateTime<Utc>,
}

/// A condition that only one kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCondition {
    /// Its type.
    pub type_: &'static str,
    /// True or False.
    pub status: bool,
    /// CamelCase.
    pub reason: &'static str,
    /// Cause and remedy.
    pub message: String,
}

/// Whether another installation of this operator works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its Lease is renewed.
    Alive,
    /// Its Lease is not there, or was not renewed for a minute.
    Gone,
    /// Its Lease can't be read.
    Unknown,
}

/// Identity of the user's object and what its metadata says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// MysqlBackup, Backup, …
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// UID of the cluster's kube-system namespace; empty if it may not be read.
    pub cluster: String,
    /// Generation of the spec.
    pub generation: Option<i64>,
    /// Creation.
    pub created: DateTime<Utc>,
    /// It is being deleted: status alone is tended (CronJob rule 44).
    pub deleting: bool,
    /// Annotations with our prefix.
    pub annotations: BTreeMap<String, String>,
    /// When the manager of schedule or zone last wrote, from managedFields.
    pub schedule_edited: Option<DateTime<Utc>>,
    /// When the manager of suspend last wrote, and its name, from managedFields.
    pub suspend_edited: Option<(DateTime<Utc>, String)>,
    /// When status was last written, by the API server's clock, from managedFields.
    pub status_written: Option<DateTime<Utc>>,
}

/// The part of a spec the engine reads; the same for every kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Cron text; `None` for an object that runs once.
    pub schedule: Option<String>,
    /// IANA zone; `None` is UTC.
    pub time_zone: Option<String>,
    /// Skipped and repeated local times.
    pub dst_policy: DstPolicy,
    /// Spread of starts, in seconds.
    pub jitter_seconds: i64,
    /// Seconds after the slot in which it may still start.
    pub starting_deadline: Option<i64>,
    /// A slot that comes due while a run is active.
    pub concurrency: ConcurrencyPolicy,
    /// No slot is started.
    pub suspend: bool,
    /// Finished good Jobs to keep; `None` keeps all (CronJob rule 43).
    pub keep_good: Option<i32>,
    /// Finished failed Jobs to keep; `None` keeps all.
    pub keep_failed: Option<i32>,
    /// Seconds a Job may take until its container runs.
    pub startup_deadline: i64,
    /// Every Nth good run is verified by restore or replay; `None` is none.
    pub verify_every: Option<i32>,
    /// By replay, where it can be.
    pub verify_by_replay: bool,
    /// Seconds between pulls of binary logs; `None` is none.
    pub binlog_interval: Option<i64>,
    /// Each pull stays for such an interval.
    pub binlogs_stay: bool,
    /// What receivers want to hear of.
    pub notices: super::Wanted,
    /// The pods run our runner, which writes reports.
    pub own_image: bool,
}

/// One Job of the object.
#[derive(Clone, Debug, PartialEq)]
pub struct JobDigest {
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// The slot it was made for.
    pub slot: Option<DateTime<Utc>>,
    /// Why it was made.
    pub trigger: Trigger,
    /// Id of the request that asked for it.
    pub request_id: Option<Box<str>>,
    /// What it does.
    pub action: Action,
    /// Creation.
    pub created: DateTime<Utc>,
    /// `status.startTime`.
    pub started: Option<DateTime<Utc>>,
    /// It is held back by `spec.suspend`.
    pub suspended: bool,
    /// A pod of it is ready, has failed or has succeeded.
    pub ran: bool,
    /// It is being deleted, its pods may still run.
    pub deleting: bool,
    /// Pods of it that failed, as its controller counts them.
    pub failed: i32,
    /// Attempts it has at most: `spec.backoffLimit` and one.
    pub attempts: i32,
    /// Whether and how it ended.
    pub outcome: JobOutcome,
}

/// How a Job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum JobOutcome {
    /// Not finished.
    Active,
    /// Condition Complete.
    Complete {
        /// When.
        at: DateTime<Utc>,
    },
    /// Condition Failed.
    Failed {
        /// When.
        at: DateTime<Utc>,
        /// Reason of the condition.
        reason: Box<str>,
        /// Its message.
        message: Box<str>,
    },
}

impl JobDigest {
    /// True until the Job is finished.
    pub fn is_active(&self) -> bool {
        self.outcome == JobOutcome::Active
    }

    /// True if it is a backup that is not finished.
    pub fn is_run(&self) -> bool {
        self.is_active() && self.action == Action::Backup
    }

    /// True if it takes a place under `--max-active-runs`: one that is suspended has no pods.
    pub fn takes_a_place(&self) -> bool {
        self.is_run() && !self.suspended
    }

    /// When it finished.
    pub fn finished(&self) -> Option<DateTime<Utc>> {
        match &self.outcome {
            JobOutcome::Active => None,
            JobOutcome::Complete { at } | JobOutcome::Failed { at, .. } => Some(*at),
        }
    }
}

/// One pod of a Job.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDigest {
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// UID of its Job.
    pub job_uid: Box<str>,
    /// Creation.
    pub created: DateTime<Utc>,
    /// The backup container runs or ran.
    pub started: bool,
    /// Why it does not run: reason and message of the pod.
    pub trouble: Option<(Box<str>, Box<str>)>,
    /// Its newest end of the backup container.
    pub ended: Option<Ended>,
    /// How often the backup container failed, restarts included.
    pub failures: i32,
    /// Containers beside the backup's that still run although that one has come to its end.
    pub held: Option<Box<str>>,
    /// It was deleted; what it said is kept until its run is final.
    pub gone: bool,
}

/// An end of the backup container.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Exit code.
    pub exit_code: i32,
    /// Reason, such as OOMKilled or Error.
    pub reason: Box<str>,
    /// Termination message.
    pub message: Box<str>,
    /// When.
    pub at: Option<DateTime<Utc>>,
}

/// What events said of a Job without a running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// UID of the Job.
    pub job_uid: Box<str>,
    /// UID of what was looked at: the Job, or its pod.
    pub subject: Box<str>,
    /// Reason and message of the newest warning, if there was one.
    pub words: Option<(Box<str>, Box<str>)>,
    /// How often it was looked at.
    pub looks: u32,
    /// When last.
    pub looked: DateTime<Utc>,
}

/// Events to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// UID of the Job.
    pub job_uid: Box<str>,
    /// UID of the Job or pod that the events are about.
    pub subject: Box<str>,
}

impl Look {
    /// What was found, after what was known before.
    pub fn found(
        &self,
        known: &[Obstacle],
        words: Option<(Box<str>, Box<str>)>,
        now: DateTime<Utc>,
    ) -> Obstacle {
        let before = obstacle_of(known, &self.job_uid, &self.subject);
        Obstacle {
            job_uid: self.job_uid.clone(),
            subject: self.subject.clone(),
            // What one look said holds until another says otherwise.
            words: words.or_else(|| before.and_then(|b| b.words.clone())),
            looks: before.map_or(0, |b| b.looks).saturating_add(1),
            looked: now,
        }
    }
}

pub(super) fn obstacle_of<'a>(
    known: &'a [Obstacle],
    job_uid: &str,
    subject: &str,
) -> Option<&'a Obstacle> {
    known
        .iter()
        .find(|o| *o.job_uid == *job_uid && *o.subject == *subject)
}

/// A Job that has the object as its controller, made by another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignJob {
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// The slot, RFC 3339, as that program noted it.
    pub scheduled_at: Option<Box<str>>,
}

/// A start the API server or a limit refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Name of the Job that was to be.
    pub name: String,
    /// CamelCase.
    pub reason: String,
    /// Cause and remedy.
    pub message: String,
    /// What the Job was to do.
    pub action: Action,
    /// Generation of the spec it was made from.
    pub generation: Option<i64>,
    /// A foreign_job's Job has the name: another one is used.
    pub taken: bool,
    /// How often creations of the object failed in a row.
    pub tries: u32,
    /// Not tried again before.
    pub retry_at: DateTime<Utc>,
}

/// Free places under `--max-active-runs`; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub total: Option<Limit>,
    /// In the object's namespace.
    pub namespace: Option<Limit>,
}

/// One limit and how much of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most runs at a time.
    pub most: usize,
    /// Runs now.
    pub active: usize,
}

impl Room {
    /// Why nothing may start, if so.
    pub fn full(&self) -> Option<String> {
        let full = |l: &Limit| l.active >= l.most;
        if let Some(l) = self.total.filter(full) {
            return Some(format!(
                "the operator's --max-active-runs allows {} at a time; it starts when one ends",
                l.most
            ));
        }
        self.namespace.filter(full).map(|l| {
            format!(
                "the operator's --max-active-runs-per-namespace allows {} at a time; it starts when one ends",
                l.most
            )
        })
    }
}
