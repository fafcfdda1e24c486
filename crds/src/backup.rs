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

/// Databases to dump into one archive, and the storages it goes to.
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
    /// References below `model` (September 2024 to February 2025).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<BackupFields>,
    /// Fields at the document's root (March to September 2024, February to October 2025).
    #[serde(flatten)]
    pub root: BackupFields,
    /// Observed state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BackupStatus>,
}

/// Desired state: the original's fields and optional additions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSpec {
    /// The original's fields.
    #[serde(flatten)]
    pub fields: BackupFields,
    /// Pod of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobOptions>,
    /// Whom to tell of what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
    /// Unused; accepted because early versions had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
}

/// The original's fields, wherever a generation had them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupFields {
    /// BackupModel with compression, encryption and scripts, and the schedule of 2024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_model_ref: Option<BackupModelRef>,
    /// Databases to dump, in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_refs: Option<Vec<DatabaseRef>>,
    /// Storages to keep the archive on, in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_refs: Option<Vec<StorageRef>>,
    /// Shell text run before the dumps. A failure becomes a warning of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell text run at the end, also after a failure. A failure becomes a warning of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
    /// How the archive is compressed. Unset means not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_with: Option<CompressWith>,
    /// How the archive is encrypted. Unset means not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode_with: Option<EncodeWith>,
    /// Parts into which the archive is split. Unset means one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_with: Option<SplitWith>,
    /// When to run. Unset means once, now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<BackupSchedule>,
    /// Unused; accepted because the first chart had it. Retention needs no volume here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
}

/// Parts of the archive, as `split` makes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SplitWith {
    /// Size of a part: a number of bytes, or one with K, M, G, T (of 1024) or KB, MB, GB, TB (of 1000). At least 1M.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
    /// Characters of a part's suffix. Unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub suffix_length: Option<i64>,
    /// True: suffixes are numbers (000), else letters (aaa). Unset means true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numeric_suffixes: Option<bool>,
}

/// Name of a BackupModel and the schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupModelRef {
    /// Group of the kind. Unset means gobackup.io.
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
    /// Group of the kind: gobackup.io (also if unset) or database.gobackup.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Type in any case; the Database's own type counts.
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
    /// Group of the kind: gobackup.io (also if unset) or storage.gobackup.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Type in any case; unset means the Storage's own type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Name of the Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Archives to keep there. Above 0 it overrides the Storage's keep; 0 means unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_COUNT, max = MAX_COUNT))]
    pub keep: Option<i64>,
    /// Seconds a transfer may take. Above 0 it overrides the Storage's timeout; 0 means unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub timeout: Option<i64>,
}

/// Compression of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CompressWith {
    /// gzip, gz, tgz, taz, tar.gz, Z, bz2, lz, lzma, lzo, xz, zst and their tar names; tar or empty for none.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Level of the codec. Unset means its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub level: Option<i64>,
}

/// Encryption of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EncodeWith {
    /// openssl (read by `openssl enc -d -pbkdf2`) or age.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Password in plain text: anyone who can read this object sees it. Use passwordSecretKeyRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key that holds the password; wins over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret_key_ref: Option<SecretKeyRef>,
    /// Without effect: openssl always salts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salt: Option<bool>,
    /// Encode the result in base64 lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<bool>,
    /// True means type openssl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openssl: Option<bool>,
    /// openssl options: a cipher such as -aes-256-cbc, -pbkdf2, -iter N, -md NAME, -base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// aes-256-cbc (also if unset), aes-192-cbc or aes-128-cbc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
    /// Public keys of type age.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Secret key that holds public keys of type age, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients_secret_key_ref: Option<SecretKeyRef>,
}

/// When to run, and what to keep of past runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupSchedule {
    /// Cron expression of five fields, or a descriptor such as @daily, as CronJob reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// IANA name of the zone the schedule is read in. Unset means UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What happens to local times that daylight saving repeats or skips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_policy: Option<DstPolicy>,
    /// Spreads starts over this many seconds, the same for each slot and object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_JITTER_SECONDS))]
    pub jitter_seconds: Option<i64>,
    /// Seconds after its slot in which a run may still start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_SECONDS, max = MAX_SECONDS))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when a slot comes due while a run is active. Unset means Forbid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// True: no slot is started. Running Jobs go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Finished good Jobs to keep. Unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_KEPT_JOBS, max = MAX_KEPT_JOBS))]
    pub successful_jobs_history_limit: Option<i64>,
    /// Finished failed Jobs to keep. Unset means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -MAX_KEPT_JOBS, max = MAX_KEPT_JOBS))]
    pub failed_jobs_history_limit: Option<i64>,
}

/// Unused volume settings of the first chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Persistence {
    /// Unused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Unused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Unused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<String>,
    /// Unused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
}

/// What dumps, packs and stores in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEngine {
    /// The runner itself.
    #[default]
    Native,
    /// gobackup, in an image that has it; the runner writes its settings and checks what it stored.
    Gobackup,
}

/// Pod of a run: what the original had no field for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobOptions {
    /// Image of the runner, with engine gobackup that of gobackup. Unset means the operator's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image that has the databases' clients on its PATH, instead of the runner's own. It needs no runner: one is copied into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_image: Option<String>,
    /// When the image is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets to pull images with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Environment of the container, for scripts and TZ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// More volumes of the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels a node must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Resources of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Service account of the pod.
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
    /// Security context of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Labels and annotations of Job and pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
    /// Retries of a Job. Unset means 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub backoff_limit: Option<i32>,
    /// Seconds a Job may take in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds a run may take to be running before it is failed with the pod's reason. Unset means 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL. Unset means 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Most space the compressed dumps may take on the node while the archive is made, such as 20Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir_size_limit: Option<String>,
    /// What dumps, packs and stores: native, the runner itself, or gobackup, whose archive the runner reads back before the run is good. Unset means the operator's own, which is native unless it is told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<RunEngine>,
    /// The key that opens what was encrypted to age recipients, for verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// How archives are verified beyond the read back of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// True: the archives that gobackup's own list on a storage names (.gobackup-state/BACKUP_STORAGE.json) are this Backup's, so that keep counts and removes them. The list says nothing of cluster or object: set it only where no gobackup and no other cluster uses it. Unset or false: they are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt_state: Option<bool>,
}

/// Status: the original's fields in name and meaning, and the engine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStatus {
    /// What the engine observed, slot by slot.
    #[serde(flatten)]
    pub engine: ScheduleStatus,
    /// Last change of [`Self::phase`] by a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup_time: Option<Time>,
    /// Completion of the newest good run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_backup_time: Option<Time>,
    /// Idle, Running, Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The newest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RecentRun>,
    /// Newest runs, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub recent_runs: Vec<RecentRun>,
    /// Failed runs since the newest good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_count: Option<i32>,
    /// Good runs in all.
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
    /// Pending, Running, Succeeded or Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Cause and remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What an older operator kept of the log.
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
