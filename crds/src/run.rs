//! One run as status keeps it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest message in status, in characters.
pub const MAX_MESSAGE: usize = 512;
/// [`Run::phase`] of a run whose container does not run yet, for the reason the run gives.
pub const PENDING: &str = "Pending";
/// Most artefacts a run lists.
pub const MAX_ARTEFACTS: usize = 8;

/// Why the run was started. Schedule: it was due. Manual: by a request. Immediate: the object has no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Trigger {
    /// A slot of the schedule.
    Schedule,
    /// A request.
    Manual,
    /// The one run of an object without a schedule.
    Immediate,
}

impl Trigger {
    /// The text used in annotations and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "Schedule",
            Self::Manual => "Manual",
            Self::Immediate => "Immediate",
        }
    }

    /// Reads the text of an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Schedule, Self::Manual, Self::Immediate]
            .into_iter()
            .find(|t| t.as_str() == text)
    }
}

/// State of the run. Waiting: due, but a limit or another run holds it back. Running: its Job exists and has not finished. Succeeded: stored, complete and read back. Failed: not successful. Skipped: not started on purpose. The reason says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RunResult {
    /// Due, not yet started: a limit or a running run holds it back; the reason says which.
    Waiting,
    /// Its Job exists and is not finished.
    Running,
    /// Good: stored, complete, read back. With reason ExitStatusOnly: good by exit status alone.
    Succeeded,
    /// Not good, the reason says why.
    Failed,
    /// Never started on purpose, the reason says why.
    Skipped,
}

impl RunResult {
    /// The text used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
        }
    }

    /// True if the result can't change any more.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// One stored object of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artefact {
    /// Key of the artefact below the root of the destination.
    pub key: String,
    /// Number of bytes stored.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub size: i64,
    /// SHA-256 of the stored bytes, in hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// True if the artefact was read back with the same length and checksum.
    #[serde(default)]
    pub read_back: bool,
    /// Name of the storage, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// A phase that is over, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimedPhase {
    /// Name of the phase, such as Rows.
    pub phase: String,
    /// Milliseconds that it took.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub milliseconds: i64,
}

/// Outcome of a verification of one run's artefact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How it was verified: Checksum, Restore or Replay.
    pub mode: String,
    /// True if everything compared equal.
    pub passed: bool,
    /// When it ended.
    pub time: Time,
    /// What differed, or what was compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One run: a Job, past or present, or a slot that never got one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Name of the Job.
    pub name: String,
    /// UID of the Job, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// Scheduled time of the run, if it was started by the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Time>,
    /// Why the run was started.
    pub trigger: Trigger,
    /// ID of the request, for manual runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// State.
    pub result: RunResult,
    /// Reason in CamelCase, for programs: Completed, ExitStatusOnly, AccessDenied, NoSpace, Timeout and others. docs/reasons.md lists those of the runner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Cause of a failure and what helps, at most 512 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why the operator deletes the Job, written before it does so: Cancelled, Replaced or NeverStarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Phase that the runner reported last. Pending while something keeps the container from running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When the Job was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the result became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Exit code of the backup container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of bytes of the dump before compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<i64>,
    /// Number of bytes stored, all artefacts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<i64>,
    /// Number of tables dumped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Number of rows dumped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// What made the dump: Native or Client, or Mixed of a Backup with both. Empty where there is no choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Why the client made the dump.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine_reason: String,
    /// What made the connections of a native dump see the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
    /// The moment that a native dump shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_time: Option<Time>,
    /// Artefacts that were stored, at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Artefact>,
    /// Whether every artefact was read back with the same length and checksum. Set when the list of artefacts is shortened, so that it stays known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<bool>,
    /// Warnings of the runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Result of the last verification of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Name of the Job that verifies this run by restore, once it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_job: Option<String>,
    /// True once the result is final and the Job no longer exists. The run may then be removed from the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub job_gone: bool,
}

impl Run {
    /// A run that has nothing but its name, trigger and result.
    pub fn new(name: impl Into<String>, trigger: Trigger, result: RunResult) -> Self {
        Self {
            name: name.into(),
            job_uid: None,
            slot: None,
            trigger,
            request_id: None,
            result,
            reason: String::new(),
            message: String::new(),
            intent: None,
            phase: None,
            start_time: None,
            completion_time: None,
            exit_code: None,
            raw_bytes: None,
            stored_bytes: None,
            tables: None,
            rows: None,
            engine: String::new(),
            engine_reason: String::new(),
            snapshot: String::new(),
            snapshot_time: None,
            artefacts: vec![],
            read_back: None,
            warnings: vec![],
            verification: None,
            verify_job: None,
            job_gone: false,
        }
    }

    /// True if every artefact of the run was read back with the same length and checksum.
    pub fn is_read_back(&self) -> bool {
        self.read_back.unwrap_or_else(|| {
            !self.artefacts.is_empty() && self.artefacts.iter().all(|a| a.read_back)
        })
    }

    /// Leaves the first `most` artefacts, and what is known of all of them. True if there were more.
    pub fn cut_artefacts(&mut self, most: usize) -> bool {
        let more = self.artefacts.len() > most;
        if more {
            self.read_back = Some(self.is_read_back());
            self.artefacts.truncate(most);
        }
        more
    }
}
