//! One run as status keeps it, and what the operator hands to the runner.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gobackup::plan::Storage;
use crate::mysql_backup::{Compression, Encryption, Notification, NotificationEvent, Retention};
use crate::request::Action;

/// Name of the environment variable that carries [`RunSpec`] as JSON.
pub const SPEC_ENV: &str = "BACKUP_SPEC";
/// Version of [`RunSpec`]; a runner refuses a newer one.
pub const SPEC_VERSION: i32 = 1;
/// Longest message in status, in characters.
pub const MAX_MESSAGE: usize = 512;
/// [`Run::phase`] of a run whose container does not run yet, for the reason the run gives.
pub const PENDING: &str = "Pending";
/// Most artefacts a run lists.
pub const MAX_ARTEFACTS: usize = 8;

/// Why a run was started.
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

/// Where a run stands. The last three are final.
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
    /// Key below the destination's root.
    pub key: String,
    /// Stored bytes.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub size: i64,
    /// SHA-256 of the stored bytes, hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The object was read back with the same length and checksum.
    #[serde(default)]
    pub read_back: bool,
    /// Name of the storage, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// Outcome of a verification of one run's artefact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Checksum or Restore.
    pub mode: String,
    /// True if everything compared equal.
    pub passed: bool,
    /// When it ended.
    pub time: Time,
    /// What differed, or how much was compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One run: a Job, past or present, or a slot that never got one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Name of the Job.
    pub name: String,
    /// UID of the Job, once it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// The slot, for runs of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Time>,
    /// Why it was started.
    pub trigger: Trigger,
    /// Id of the request, for manual runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Where it stands.
    pub result: RunResult,
    /// CamelCase, machine-read: Completed, ExitStatusOnly, AccessDenied, NoSpace, Timeout, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Cause and remedy, at most [`MAX_MESSAGE`] characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The end somebody asked for, written before the Job is deleted: Cancelled, Replaced, NeverStarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Phase the runner reported last; [`PENDING`] while something keeps the container from running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When the Job was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the outcome became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Exit code of the backup container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Bytes of the dump before compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<i64>,
    /// Bytes stored, all artefacts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<i64>,
    /// Tables dumped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Rows dumped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// What was stored, at most [`MAX_ARTEFACTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artefacts: Vec<Artefact>,
    /// What the runner warned about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Outcome of the newest verification of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Name of the Job that verifies this run by restore, from the moment it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_job: Option<String>,
    /// True once the outcome is final and the Job is gone: the run may leave the list.
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
            artefacts: vec![],
            warnings: vec![],
            verification: None,
            verify_job: None,
            job_gone: false,
        }
    }
}

/// What the operator hands to the runner, as JSON in [`SPEC_ENV`]. It holds no secret: secrets
/// are mounted files named here by path. Unset typed fields fall back to the environment of
/// `backupEnvs`; where both are set the typed field wins, with a warning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSpec {
    /// [`SPEC_VERSION`].
    pub version: i32,
    /// What to do.
    pub action: Action,
    /// The object this run belongs to.
    pub object: ObjectId,
    /// The run itself.
    pub run: RunId,
    /// UID of the kube-system namespace, or empty: tells clusters apart in manifests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// Where to dump from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RunSource>,
    /// Where to store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<RunDestination>,
    /// Image the runner was copied into for its clients, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_image: Option<String>,
    /// How to compress. None: zstd 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// How to encrypt, recipients only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// File with recipients, one a line, where they come from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients_file: Option<String>,
    /// File with the age identity, for Verify and Restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_file: Option<String>,
    /// What to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Whom to tell; `url_file` holds the URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<RunNotification>,
    /// What to tell, for Notify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<RunNotice>,
    /// Receivers that the operator tells of a failure, once it is final, in place of the run's pods.
    #[serde(default, skip_serializing_if = "OperatorTells::nobody")]
    pub operator_tells: OperatorTells,
    /// The newest finished run before this one failed, so that a good end is a recovery.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_failure: bool,
    /// Seconds after which the runner stops itself; the environment's TIMEOUT if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Variables whose values the object itself holds, where all may read them; what others hold may
    /// be from a Secret, and is not repeated. None, of an older operator: so may all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literal_variables: Option<Vec<String>>,
    /// Options of the action (artefact key, mode, dryRun, all).
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub options: serde_json::Value,
}

/// Receivers the operator knows of. What comes from `envFrom` it does not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorTells {
    /// Those of `notifications`.
    pub notifications: bool,
    /// The bot of APIURL.
    pub api_url: bool,
}

impl OperatorTells {
    /// True if the pods tell everybody.
    pub fn nobody(&self) -> bool {
        *self == Self::default()
    }
}

/// Identity of the user's object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// MysqlBackup, Backup, …
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// Identity of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunId {
    /// Name of the Job.
    pub name: String,
    /// The slot, RFC 3339 in UTC, for runs of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Why it was started.
    pub trigger: Trigger,
}

/// `spec.source` with its secrets as files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunSource {
    /// Host name or address.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<i32>,
    /// Unix socket.
    pub socket: Option<String>,
    /// File with the user name.
    pub username_file: Option<String>,
    /// File with the password.
    pub password_file: Option<String>,
    /// Databases; empty means all.
    pub databases: Vec<String>,
    /// `database.table`, left out.
    pub exclude_tables: Vec<String>,
    /// Disabled, Preferred, Required, VerifyCA, VerifyIdentity.
    pub tls_mode: Option<String>,
    /// File with the CA certificate.
    pub ca_file: Option<String>,
    /// More arguments for the client.
    pub extra_args: Vec<String>,
}

/// `spec.destination` with its secrets as files: exactly one is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunDestination {
    /// Directory on a mounted volume.
    pub path: Option<String>,
    /// S3 bucket.
    pub s3: Option<RunS3>,
    /// The gobackup.io Storage that `storageRef` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Box<Storage<String>>>,
}

/// An S3 bucket with its credentials as files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunS3 {
    /// Bucket.
    pub bucket: String,
    /// Key prefix.
    pub prefix: Option<String>,
    /// URL of the service; unset means AWS.
    pub endpoint: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Bucket in the path instead of the host name.
    pub force_path_style: bool,
    /// File with the access key id; unset means the pod's own identity.
    pub access_key_id_file: Option<String>,
    /// File with the secret access key.
    pub secret_access_key_file: Option<String>,
    /// File with a session token.
    pub session_token_file: Option<String>,
    /// File with a CA certificate for the endpoint.
    pub ca_file: Option<String>,
}

/// One notification with its URL as file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNotification {
    /// The user's entry.
    #[serde(flatten)]
    pub entry: Notification,
    /// File that holds the URL.
    pub url_file: String,
}

/// What a Notify run tells: what the operator saw and no pod of a run can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNotice {
    /// Failure, Missed or Overdue.
    pub event: NotificationEvent,
    /// The run that failed; empty where slots are spoken of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// RFC 3339 in UTC: the run's slot, the first slot that was missed, or the one that is overdue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// CamelCase, machine-read.
    pub reason: String,
    /// Cause and remedy.
    pub message: String,
}
