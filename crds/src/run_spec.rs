//! What the operator hands to the runner.

use serde::{Deserialize, Serialize};

use crate::parts::{Compression, Encryption, Engine, Notification, NotificationEvent, Retention};
use crate::plan::{Plan, Storage};
use crate::request::Action;
use crate::run::Trigger;

/// Name of the environment variable that carries [`RunSpec`] as JSON.
pub const SPEC_ENV: &str = "BACKUP_SPEC";
/// Version of [`RunSpec`]; a runner refuses a newer one.
pub const SPEC_VERSION: i32 = 1;
/// Directory of the pod for the compressed dumps while the archive is made.
pub const WORK_DIR: &str = "/work";

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
    /// Not a backup: the server's binary logs are pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlogs: Option<RunBinlogs>,
    /// Options of the action (artefact key, mode, dryRun, all).
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub options: serde_json::Value,
}

impl RunSpec {
    /// A run of which nothing is said but what it does, for whom, and its name.
    pub fn new(action: Action, object: ObjectId, run: RunId) -> Self {
        Self {
            version: SPEC_VERSION,
            action,
            object,
            run,
            cluster_id: String::new(),
            source: None,
            destination: None,
            client_image: None,
            compression: None,
            encryption: None,
            recipients_file: None,
            identity_file: None,
            retention: None,
            notifications: vec![],
            notice: None,
            operator_tells: OperatorTells::default(),
            after_failure: false,
            timeout_seconds: None,
            literal_variables: None,
            binlogs: None,
            options: serde_json::Value::Null,
        }
    }
}

/// The environment variable [`SPEC_ENV`] of a Backup's pod. A runner knows it by the
/// field `plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupRunSpec {
    /// What every run has; source, destination, compression, encryption and retention are unset.
    #[serde(flatten)]
    pub run: RunSpec,
    /// What to do.
    pub plan: Plan<String>,
    /// True: gobackup dumps, packs and stores; the runner writes its settings and checks the outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gobackup: bool,
    /// Whether the archives that gobackup's own list names are this Backup's, so that `keep` counts and
    /// removes them. Unset: they are not, and are told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt_state: Option<bool>,
    /// Directory for the compressed dumps.
    pub workdir: String,
    /// Zone of the timestamp in the archive's name; unset means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// How binary logs are pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunBinlogs {
    /// Seconds between two runs.
    pub interval_seconds: u32,
    /// The moment, RFC 3339, until which the run stays and pulls what comes; unset, it ends at the end of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
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
    /// What makes the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Users, roles and grants too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accounts: bool,
    /// Connections that read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<i32>,
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
    /// For each of the entry's headers the file that holds its value; empty where the value stands in the entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header_files: Vec<String>,
}

/// What a Notify run tells: what the operator saw and no pod of a run can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNotice {
    /// Failure, Missed, Overdue, Gap or Recovered.
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
