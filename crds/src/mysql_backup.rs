//! `MysqlBackup` (batch.isekiro.com/v1): the original's fields, names and types unchanged, and
//! optional additions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, LocalObjectReference, PodSecurityContext,
    ResourceRequirements, SecurityContext, Toleration, Volume, VolumeMount,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_JITTER_SECONDS, MAX_KEPT_JOBS, MAX_SECONDS, MAX_STARTUP_SECONDS};
use crate::parts::{
    Compression, ConcurrencyPolicy, CredentialsRef, Decryption, Destination, Encryption,
    ImagePullPolicy, Notification, PodMetadata, Retention, Tls, Verify,
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

/// Restart policy of a Job's pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// Restart the container in place.
    OnFailure,
    /// A new pod for each try.
    #[default]
    Never,
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
