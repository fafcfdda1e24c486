//! `MysqlBackup` (batch.isekiro.com/v1): the original's fields, names and types unchanged, and
//! optional additions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, CSIVolumeSource, EmptyDirVolumeSource, EnvFromSource, EnvVar, EphemeralVolumeSource,
    HostPathVolumeSource, LocalObjectReference, NFSVolumeSource, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, ResourceRequirements, SecurityContext, Toleration, Volume, VolumeMount,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{
    MAX_COUNT, MAX_DURATION_TEXT, MAX_JITTER_SECONDS, MAX_KEPT_JOBS, MAX_SECONDS,
    MAX_STARTUP_SECONDS,
};
use crate::schedule::DstPolicy;
use crate::status::ScheduleStatus;

/// A scheduled backup of a MySQL or MariaDB server.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "batch.isekiro.com",
    version = "v1",
    kind = "MysqlBackup",
    plural = "mysqlbackups",
    singular = "mysqlbackup",
    shortname = "mbk",
    namespaced,
    status = "ScheduleStatus",
    derive = "PartialEq",
    doc = "MysqlBackup backs up a MySQL or MariaDB server on a schedule.",
    printcolumn = r#"{"name":"Schedule","type":"string","jsonPath":".spec.schedule"}"#,
    printcolumn = r#"{"name":"Zone","type":"string","jsonPath":".status.schedule.timeZone"}"#,
    printcolumn = r#"{"name":"Suspend","type":"boolean","jsonPath":".spec.suspend"}"#,
    printcolumn = r#"{"name":"Active","type":"integer","jsonPath":".status.activeCount"}"#,
    printcolumn = r#"{"name":"Last-Schedule","type":"date","jsonPath":".status.lastScheduleTime"}"#,
    printcolumn = r#"{"name":"Last-Result","type":"string","jsonPath":".status.lastResult"}"#,
    printcolumn = r#"{"name":"Last-Success","type":"date","jsonPath":".status.lastSuccessfulTime"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Next-Schedule","type":"string","priority":1,"jsonPath":".status.nextScheduleTime"}"#,
    printcolumn = r#"{"name":"Size","type":"string","priority":1,"jsonPath":".status.lastSize"}"#,
    printcolumn = r#"{"name":"Failures","type":"integer","priority":1,"jsonPath":".status.consecutiveFailures"}"#,
    printcolumn = r#"{"name":"Last-Verified","type":"date","priority":1,"jsonPath":".status.lastVerifiedTime"}"#,
    printcolumn = r#"{"name":"Suspended-Since","type":"string","priority":1,"jsonPath":".status.suspendedSince"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Last-Run","type":"string","priority":1,"jsonPath":".status.runs[0].startTime"}"#,
    printcolumn = r#"{"name":"Last-End","type":"string","priority":1,"jsonPath":".status.runs[0].completionTime"}"#,
    printcolumn = r#"{"name":"Keep","type":"integer","priority":1,"jsonPath":".spec.retention.keepLast"}"#,
    printcolumn = r#"{"name":"Bucket","type":"string","priority":1,"jsonPath":".spec.destination.s3.bucket"}"#,
    printcolumn = r#"{"name":"Claim","type":"string","priority":1,"jsonPath":".spec.destination.volume.persistentVolumeClaim.claimName"}"#,
    printcolumn = r#"{"name":"Storage","type":"string","priority":1,"jsonPath":".spec.destination.storageRef.name"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MysqlBackupSpec {
    /// Cron expression of five fields, or a descriptor such as @daily or @every 6h, as CronJob reads it.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// IANA name of the zone the schedule is read in. Unset means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What happens to local times that daylight saving repeats or skips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_policy: Option<DstPolicy>,
    /// Spreads starts over this many seconds, the same for each slot and object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_JITTER_SECONDS))]
    pub jitter_seconds: Option<i64>,
    /// Seconds after its slot in which a run may still start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when a slot comes due while a run is active.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// True: no slot is started. Running Jobs go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub suspend: Option<bool>,
    /// Finished good Jobs to keep. Unset means 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_KEPT_JOBS), extend("default" = 3))]
    pub successful_jobs_history_limit: Option<i32>,
    /// Finished failed Jobs to keep. Unset means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_KEPT_JOBS), extend("default" = 1))]
    pub failed_jobs_history_limit: Option<i32>,
    /// Seconds a run may take to be running before it is failed with the pod's reason. Unset means 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Retries of a Job. Unset means 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub backoff_limit: Option<i32>,
    /// Seconds a Job may take in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL. Unset means 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,

    /// Restart policy of the pod.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// Image of the backup program. Unset means this product's runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Arguments of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// When the image is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Environment of the container: HOST, PORT, USERNAME, PASSWORD, EXPIREAT, SQLPATH, APIURL, TIMEOUT, TZ, DATABASES, EXCLUDE_TABLES, MYSQLDUMP_ARGS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backup_envs: Vec<EnvVar>,
    /// More environment from ConfigMaps and Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
    /// Volumes of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Service account of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Tolerations of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Affinity of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Priority class of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Security context of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Labels and annotations of Job and pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,

    /// Where to dump from: the typed form of backupEnvs. A typed field wins over its variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MysqlSource>,
    /// Where to store: exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// How to compress. Unset means zstd, level 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// How to encrypt. Unset means not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// The key that opens what was encrypted, for verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Which artefacts to keep. Unset means all, or EXPIREAT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How artefacts are verified beyond the read back of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Whom to tell of what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
}

/// What to do when a slot comes due while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Start beside the others.
    #[default]
    Allow,
    /// Wait; start when the active run has ended, if still within the deadline.
    Forbid,
    /// End the active run, then start.
    Replace,
}

/// Restart policy of a Job's pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// Restart the container in place.
    OnFailure,
    /// A new pod for each try.
    #[default]
    Never,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImagePullPolicy {
    /// Each time.
    Always,
    /// If the node has none.
    IfNotPresent,
    /// Never.
    Never,
}

/// Labels and annotations for Job and pod; the prefix batch.isekiro.com/ is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in it.
    pub key: String,
}

/// A MySQL or MariaDB server and what to dump of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MysqlSource {
    /// Host name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means 3306.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Unix socket, instead of host and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Secret with user name and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<CredentialsRef>,
    /// Databases to dump. Empty means all but the server's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<String>,
    /// Tables left out, as database.table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tables: Vec<String>,
    /// Transport security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// More arguments for the dump client, from an allow list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
    /// Image that has the clients on its PATH (mysqldump and mysql, or mariadb-dump and mariadb), instead of the runner's own. It needs no runner: one is copied into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_image: Option<String>,
}

/// A Secret with user name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the user name. Unset means username.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_key: Option<String>,
    /// Key of the password. Unset means password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_key: Option<String>,
}

/// Transport security to the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// How much is demanded.
    #[serde(default)]
    pub mode: TlsMode,
    /// CA certificate, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// How much transport security is demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsMode {
    /// None is used.
    Disabled,
    /// Used if the server offers it.
    #[default]
    Preferred,
    /// Demanded; the certificate is not checked.
    Required,
    /// Demanded; the certificate must come from the CA.
    VerifyCA,
    /// Demanded; from the CA and for this host name.
    VerifyIdentity,
}

/// Where to store: exactly one of volume, s3, storageRef.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// A volume of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// An S3 bucket, or a compatible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Destination>,
    /// A gobackup.io Storage in the same namespace, of any type. What is kept there is up to retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_ref: Option<LocalObjectReference>,
}

/// A volume to store on: exactly one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeDestination {
    /// Directory on the volume. Unset means its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// An NFS export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NFSVolumeSource>,
    /// A directory of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathVolumeSource>,
    /// A CSI volume. To store on: of a driver that mounts a share which is there before the pod and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csi: Option<CSIVolumeSource>,
    /// A claim made for the pod, and gone with it: for spec.verify.volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// A directory that is gone with the pod: for spec.verify.volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolumeSource>,
}

/// An S3 bucket, or a compatible one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Destination {
    /// Bucket.
    pub bucket: String,
    /// Key prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// URL of the service. Unset means AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region. Unset means us-east-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Bucket in the path instead of the host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
    /// Secret with the keys. Unset means the pod's own identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<S3CredentialsRef>,
    /// CA certificate of the endpoint, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_key_ref: Option<SecretKeyRef>,
}

/// A Secret with S3 keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3CredentialsRef {
    /// Name of the Secret.
    pub name: String,
    /// Key of the access key id. Unset means accessKeyId.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id_key: Option<String>,
    /// Key of the secret access key. Unset means secretAccessKey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_access_key_key: Option<String>,
    /// Key of a session token. Unset means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token_key: Option<String>,
}

/// How to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// Codec.
    #[serde(default, rename = "type")]
    pub type_: CompressionType,
    /// Level: zstd 1 to 19 (3), gzip 1 to 9 (6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 19))]
    pub level: Option<i32>,
}

/// Codecs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompressionType {
    /// Zstandard.
    #[default]
    Zstd,
    /// gzip.
    Gzip,
    /// None.
    None,
}

/// How to encrypt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Encryption {
    /// age, to public keys: the cluster can't open what it stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeEncryption>,
}

/// Recipients of age encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeEncryption {
    /// Public keys, age1….
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Secret key that holds public keys, one a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients_secret_key_ref: Option<SecretKeyRef>,
}

/// The key that opens what was encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// age identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeDecryption>,
}

/// Identity of age decryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgeDecryption {
    /// Secret key that holds the identity, AGE-SECRET-KEY-1….
    pub identity_secret_key_ref: SecretKeyRef,
}

/// Which artefacts to keep: the union of all rules. The newest good one always stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The newest so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_last: Option<i32>,
    /// The newest of each of so many hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_hourly: Option<i32>,
    /// The newest of each of so many days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_daily: Option<i32>,
    /// The newest of each of so many ISO weeks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_weekly: Option<i32>,
    /// The newest of each of so many months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_COUNT))]
    pub keep_monthly: Option<i32>,
    /// All younger than this, a Go duration such as 720h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_DURATION_TEXT))]
    pub max_age: Option<String>,
    /// File name pattern (`*` and `?`) of older artefacts without a manifest that retention may also remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt_pattern: Option<String>,
}

/// How artefacts are verified beyond the read back of each run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// Checksum: re-read what is stored. Restore: load it into a scratch server and compare.
    #[serde(default)]
    pub mode: VerifyMode,
    /// Every so many good runs. Unset means each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub every: Option<i32>,
    /// Volume of the scratch server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// Resources of the scratch server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// Ways to verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VerifyMode {
    /// Re-read what is stored.
    #[default]
    Checksum,
    /// Load it into a scratch server and compare.
    Restore,
}

/// Whom to tell of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Protocol of the receiver.
    #[serde(rename = "type")]
    pub type_: NotificationType,
    /// Secret key that holds the URL.
    pub url_secret_key_ref: SecretKeyRef,
    /// What to tell of. Empty means Failure and Recovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub events: Vec<NotificationEvent>,
    /// The former name of events, which YAML reads as a boolean unless it is quoted. Set one of the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_EVENTS))]
    pub on: Vec<NotificationEvent>,
}

/// Most entries of a list of events.
const MAX_EVENTS: usize = 16;

/// Protocols of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NotificationType {
    /// Feishu or Lark group bot.
    Feishu,
    /// Slack incoming webhook.
    Slack,
    /// DingTalk group bot.
    DingTalk,
    /// Discord webhook.
    Discord,
    /// JSON by POST.
    Webhook,
    /// Mail, smtp:// or smtps:// URL with from and to.
    Mail,
    /// Dead-man ping: GET on success, GET …/fail on failure.
    Ping,
}

/// What to tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NotificationEvent {
    /// A good run.
    Success,
    /// A failed run.
    Failure,
    /// A good run after a failed one.
    Recovery,
    /// No good run for longer than the schedule allows.
    Overdue,
    /// Slots that could not be started: outage, deadline, limits. Not those of a suspension, of
    /// `skip-slots-until` or of `concurrencyPolicy`.
    Missed,
}

impl NotificationEvent {
    /// The text used in names and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::Recovery => "Recovery",
            Self::Overdue => "Overdue",
            Self::Missed => "Missed",
        }
    }
}

impl Notification {
    /// A receiver that does not say what it wants to hear of.
    pub fn new(type_: NotificationType, url_secret_key_ref: SecretKeyRef) -> Self {
        Self {
            type_,
            url_secret_key_ref,
            events: vec![],
            on: vec![],
        }
    }

    /// What the receiver wants to hear of, under either name; Failure and Recovery where it does
    /// not say.
    pub fn wanted(&self) -> &[NotificationEvent] {
        const DEFAULT: [NotificationEvent; 2] =
            [NotificationEvent::Failure, NotificationEvent::Recovery];
        [self.events.as_slice(), self.on.as_slice()]
            .into_iter()
            .find(|events| !events.is_empty())
            .unwrap_or(&DEFAULT)
    }

    /// True if `events` and `on` are both set and do not say the same.
    pub fn contradicts_itself(&self) -> bool {
        let says = |all: &[NotificationEvent], other: &[NotificationEvent]| {
            other.iter().all(|event| all.contains(event))
        };
        let both = !self.events.is_empty() && !self.on.is_empty();
        let alike = says(&self.events, &self.on) && says(&self.on, &self.events);
        both && !alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(fields: &str) -> Notification {
        let text = format!("type: Slack\nurlSecretKeyRef: {{name: a, key: b}}\n{fields}");
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn o12_events_is_the_name_and_on_is_read_too() {
        use NotificationEvent::{Failure, Missed, Overdue, Recovery, Success};
        let rows: [(&str, &[NotificationEvent]); 6] = [
            ("", &[Failure, Recovery]),
            ("events: [Missed, Overdue]", &[Missed, Overdue]),
            ("'on': [Success]", &[Success]),
            ("events: []\n'on': [Success]", &[Success]),
            ("events: [Failure]\n'on': []", &[Failure]),
            (
                "events: [Failure, Missed]\n'on': [Missed, Failure]",
                &[Failure, Missed],
            ),
        ];
        for (fields, wanted) in rows {
            let found = receiver(fields);
            assert_eq!(found.wanted(), wanted, "{fields}");
            assert!(!found.contradicts_itself(), "{fields}");
        }
        for fields in [
            "events: [Failure]\n'on': [Missed]",
            "events: [Failure]\n'on': [Failure, Missed]",
        ] {
            assert!(receiver(fields).contradicts_itself(), "{fields}");
            let spec = MysqlBackupSpec {
                schedule: "@daily".into(),
                notifications: vec![receiver(fields)],
                ..MysqlBackupSpec::default()
            };
            let found = crate::validate::mysql_backup(&spec);
            assert_eq!(found[0].path, "spec.notifications[0]", "{found:?}");
            assert!(found[0].message.contains("keep events and remove on"));
        }
    }
}
