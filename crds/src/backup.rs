//! `Backup` (gobackup.io/v1): databases to dump and storages to keep the archive on.
//!
//! One schema holds every generation of gobackup-operator: the fields below `spec` (today), at
//! the document's root, and the references at the root or below `model`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, LocalObjectReference, PodSecurityContext, ResourceRequirements,
    SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{
    MAX_COUNT, MAX_JITTER_SECONDS, MAX_KEPT_JOBS, MAX_SECONDS, MAX_STARTUP_SECONDS,
};
use crate::group::{API_VERSION, GROUP, VERSION};
use crate::parts::{
    ConcurrencyPolicy, Decryption, ImagePullPolicy, Notification, PodMetadata, SecretKeyRef, Verify,
};
use crate::schedule::DstPolicy;
use crate::status::ScheduleStatus;

/// Most entries in [`BackupStatus::recent_runs`], as in the original.
pub const MAX_RECENT_RUNS: usize = 5;

/// Databases to dump into one archive, and the storages to keep it on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// gobackup.io/v1.
    #[serde(default = "api_version")]
    pub api_version: String,
    /// Backup.
    #[serde(default = "backup_kind")]
    pub kind: String,
    /// Name, namespace and the rest.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// All other fields, shared with [`crate::legacy::CronBackup`].
    #[serde(flatten)]
    pub body: BackupBody,
}

/// What `Backup` and `CronBackup` hold beside their metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupBody {
    /// Desired state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<BackupSpec>,
    /// References as they were written below `model` (September 2024 to February 2025).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<BackupFields>,
    /// Fields at the document's root (March to September 2024, February to October 2025).
    #[serde(flatten)]
    pub root: BackupFields,
    /// Observed state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BackupStatus>,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSpec {
    /// The original's fields.
    #[serde(flatten)]
    pub fields: BackupFields,
    /// Settings of the pods that run the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobOptions>,
    /// Receivers of notifications and the events that each is notified of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
    /// Not used. Accepted because early versions had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// The original's fields, wherever a generation had them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupFields {
    /// BackupModel with compression, encryption and scripts, and the schedule as it was written in 2024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_model_ref: Option<BackupModelRef>,
    /// Databases in the same namespace to dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_refs: Option<Vec<DatabaseRef>>,
    /// Storages in the same namespace to keep the archive on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_refs: Option<Vec<StorageRef>>,
    /// Shell script to run before the dumps. If it fails, the run gets a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell script to run at the end, also after a failure. If it fails, the run gets a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
    /// How to compress the archive. Unset means no compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_with: Option<CompressWith>,
    /// How to encrypt the archive. Unset means no encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode_with: Option<EncodeWith>,
    /// How to split the archive into parts. Unset means one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_with: Option<SplitWith>,
    /// When to run. Unset means once, immediately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<BackupSchedule>,
    /// Not used. Accepted because the first Helm chart had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
}

/// How to split the archive into parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SplitWith {
    /// Size of a part: a number of bytes, or a number with K, M, G, T (powers of 1024) or KB, MB, GB, TB (powers of 1000). At least 1M.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
    /// Number of characters of the suffix of a part's name. Unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub suffix_length: Option<i64>,
    /// If true, suffixes are numbers (000), otherwise letters (aaa). Unset means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numeric_suffixes: Option<bool>,
}

/// Name of a BackupModel and the schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupModelRef {
    /// API group of the kind. Unset means gobackup.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Name of the BackupModel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<BackupSchedule>,
}

/// Reference to a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseRef {
    /// API group of the kind: gobackup.io (also if unset) or database.gobackup.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Type of the Database, in upper or lower case. The type in the Database itself is what counts.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Name of the Database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Reference to a storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageRef {
    /// API group of the kind: gobackup.io (also if unset) or storage.gobackup.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Type of the Storage, in upper or lower case. Unset means the type in the Storage itself.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Name of the Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of archives to keep there. A value above 0 replaces the Storage's keep; 0 means unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_COUNT, max = MAX_COUNT))]
    pub keep: Option<i64>,
    /// Seconds that a transfer may take. A value above 0 replaces the Storage's timeout; 0 means unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub timeout: Option<i64>,
}

/// Compression of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CompressWith {
    /// Compression: gzip, gz, tgz, taz, tar.gz, Z, bz2, lz, lzma, lzo, xz, zst or their tar names. tar or empty means no compression.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Compression level. Unset means the default of the compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub level: Option<i64>,
}

/// Encryption of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EncodeWith {
    /// Encryption: openssl (decrypted with `openssl enc -d -pbkdf2`, see pbkdf2) or age.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Password in plain text: anyone who can read this object sees it. Use passwordSecretKeyRef instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key with the password. Takes precedence over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret_key_ref: Option<SecretKeyRef>,
    /// Has no effect: openssl always uses a salt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salt: Option<bool>,
    /// If false, openssl's key is derived from the password as `openssl enc` does it without -pbkdf2: one round of the digest, which is easy to guess. For archives that have to open with a command of before. Unset means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pbkdf2: Option<bool>,
    /// If true, the result is encoded in lines of base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<bool>,
    /// If true, the same as type openssl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openssl: Option<bool>,
    /// Options of openssl: a cipher such as -aes-256-cbc, -pbkdf2, -iter N, -md NAME, -base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Cipher of openssl: aes-256-cbc (also if unset), aes-192-cbc or aes-128-cbc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// Public keys for type age, which begin with age1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Secret key with public keys for type age, one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients_secret_key_ref: Option<SecretKeyRef>,
}

/// When to run, and what to keep of past runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSchedule {
    /// Cron expression of five fields, or a descriptor such as @daily, with the meaning it has in a CronJob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin. Unset means UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What to do when daylight saving skips or repeats the local time of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_policy: Option<DstPolicy>,
    /// Delay each start by up to this many seconds, so that objects with the same schedule do not start together. The delay depends only on the object and the scheduled time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_JITTER_SECONDS))]
    pub jitter_seconds: Option<i64>,
    /// Seconds after its scheduled time within which a run may still start. Later it counts as missed. Unset means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when a run is due while another one is active: Allow, Forbid or Replace. Unset means Forbid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// If true, scheduled runs are not started. Jobs that are already running continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Number of successful Jobs to keep. Unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_KEPT_JOBS, max = MAX_KEPT_JOBS))]
    pub successful_jobs_history_limit: Option<i64>,
    /// Number of failed Jobs to keep. Unset means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_KEPT_JOBS, max = MAX_KEPT_JOBS))]
    pub failed_jobs_history_limit: Option<i64>,
}

/// Not used. Accepted because the first Helm chart had it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Persistence {
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<String>,
    /// Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
}

/// Program that makes the backup. native: the runner itself. gobackup: gobackup, whose archive the runner reads back before the run counts as successful. Unset means the operator's default, which is native unless configured otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEngine {
    /// The runner itself.
    #[default]
    Native,
    /// gobackup, in an image that has it; the runner writes its settings and checks what it stored.
    Gobackup,
}

/// Settings of the pods that run the backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobOptions {
    /// Image of the runner or, with engine gobackup, of gobackup. Unset means the operator's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image whose database clients, on its PATH, are used instead of the runner's own. It does not need to contain the runner, which is copied into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_image: Option<String>,
    /// When to pull the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets with the credentials for pulling images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Environment variables of the container, for scripts and TZ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Additional volumes of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Additional volume mounts of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels that a node must have to run the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// CPU and memory requests and limits of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Service account that the pod runs under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Tolerations of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Affinity of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Priority class of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Security context of the pod. Fields set here override the operator's defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container. Fields set here override the operator's defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Labels and annotations to add to Job and pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
    /// Number of times a failed run is retried. Unset means 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub backoff_limit: Option<i32>,
    /// Maximum duration of a Job in seconds, retries included. Unset means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds within which the pod must be running. After that the run fails with the reason that the pod gives. Unset means 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL when the pod is stopped. Unset means 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Maximum space that the compressed dumps may take on the node while the archive is made, such as 20Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir_size_limit: Option<String>,
    /// Program that makes the backup. native: the runner itself. gobackup: gobackup, whose archive the runner reads back before the run counts as successful. Unset means the operator's default, which is native unless configured otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<RunEngine>,
    /// Private key that decrypts archives of type age. Needed to verify encrypted archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// How archives are verified. Independent of this, each run reads back what it stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// If true, the archives in gobackup's own list on a storage (.gobackup-state/BACKUP_STORAGE.json) belong to this Backup, so that keep counts and removes them. The list does not name cluster or object: set this only if no gobackup and no other cluster uses the list. Unset or false means that they are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt_state: Option<bool>,
    /// Name of the model in archives and in gobackup's own list, instead of the object's own. For a model that a gobackup.yml names otherwise: the topmost directory in the archive stays what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gobackup_name: Option<String>,
}

/// Status: the original's fields in name and meaning, and the engine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStatus {
    /// What the engine observed, slot by slot.
    #[serde(flatten)]
    pub engine: ScheduleStatus,
    /// When a run last changed the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup_time: Option<Time>,
    /// When the newest successful run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_backup_time: Option<Time>,
    /// Phase of the Backup: Idle, Running, Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The most recent run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RecentRun>,
    /// The most recent runs, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub recent_runs: Vec<RecentRun>,
    /// Number of failed runs since the last successful one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_count: Option<i32>,
    /// Total number of successful runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_count: Option<i32>,
}

/// One run as the original's status shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecentRun {
    /// Name of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Phase of the run: Pending, Running, Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Cause of a failure and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Part of the log that an older operator kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn backup_kind() -> String {
    "Backup".to_owned()
}

impl Backup {
    /// A Backup with this name and spec.
    pub fn new(name: &str, spec: BackupSpec) -> Self {
        Self {
            api_version: api_version(),
            kind: backup_kind(),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            body: BackupBody {
                spec: Some(spec),
                ..BackupBody::default()
            },
        }
    }
}

impl kube::Resource for Backup {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Backup".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "backups".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
