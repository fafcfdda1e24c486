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

use crate::binlogs::Binlogs;
use crate::bounds::{
    MAX_JITTER_SECONDS, MAX_KEPT_JOBS, MAX_SECONDS, MAX_SESSIONS, MAX_STARTUP_SECONDS,
};
use crate::parts::{
    Compression, ConcurrencyPolicy, CredentialsRef, Decryption, Destination, Encryption, Engine,
    ImagePullPolicy, Notification, PodMetadata, Retention, Tls, Verify,
};
use crate::schedule::DstPolicy;
use crate::status::ScheduleStatus;

/// What to back up, when, where to store it and how long to keep it.
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
    printcolumn = r#"{"name":"Jitter","type":"integer","priority":1,"jsonPath":".spec.jitterSeconds"}"#,
    printcolumn = r#"{"name":"Size","type":"string","priority":1,"jsonPath":".status.lastSize"}"#,
    printcolumn = r#"{"name":"Failures","type":"integer","priority":1,"jsonPath":".status.consecutiveFailures"}"#,
    printcolumn = r#"{"name":"Last-Verified","type":"date","priority":1,"jsonPath":".status.lastVerifiedTime"}"#,
    printcolumn = r#"{"name":"Suspended-Since","type":"string","priority":1,"jsonPath":".status.suspendedSince"}"#,
    printcolumn = r#"{"name":"Recoverable","type":"string","priority":1,"jsonPath":".status.binlogs.windows[0].until"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Last-Run","type":"string","priority":1,"jsonPath":".status.runs[0].startTime"}"#,
    printcolumn = r#"{"name":"Last-End","type":"string","priority":1,"jsonPath":".status.runs[0].completionTime"}"#,
    printcolumn = r#"{"name":"Keep","type":"string","priority":1,"jsonPath":".spec.retention"}"#,
    printcolumn = r#"{"name":"Bucket","type":"string","priority":1,"jsonPath":".spec.destination.s3.bucket"}"#,
    printcolumn = r#"{"name":"Claim","type":"string","priority":1,"jsonPath":".spec.destination.volume.persistentVolumeClaim.claimName"}"#,
    printcolumn = r#"{"name":"Storage","type":"string","priority":1,"jsonPath":".spec.destination.storageRef.name"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MysqlBackupSpec {
    /// Cron expression of five fields, or a descriptor such as @daily or @every 6h, with the meaning it has in a CronJob.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// IANA name of the time zone of the schedule, such as Europe/Berlin. Unset means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What to do when daylight saving skips or repeats the local time of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_policy: Option<DstPolicy>,
    /// Delay each start by up to this many seconds, so that objects with the same schedule do not start together. The delay depends only on the object and the scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_JITTER_SECONDS))]
    pub jitter_seconds: Option<i64>,
    /// Seconds after its scheduled time within which a run may still start. Later it counts as missed. Unset means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when a run is due while another one is active. Allow: start it as well. Forbid: wait until the active run has ended, and start if still within the starting deadline. Replace: stop the active run, then start.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// If true, scheduled runs are not started. Jobs that are already running continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub suspend: Option<bool>,
    /// Number of successful Jobs to keep. Unset means 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_KEPT_JOBS), extend("default" = 3))]
    pub successful_jobs_history_limit: Option<i32>,
    /// Number of failed Jobs to keep. Unset means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_KEPT_JOBS), extend("default" = 1))]
    pub failed_jobs_history_limit: Option<i32>,
    /// Seconds within which the pod must be running. After that the run fails with the reason that the pod gives. Unset means 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Number of times a failed run is retried. Unset means 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub backoff_limit: Option<i32>,
    /// Maximum duration of a Job in seconds, retries included. Unset means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL when the pod is stopped. Unset means 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,

    /// Restart policy of the pod. OnFailure: restart the container in the same pod. Never: make a new pod for each attempt.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// Image of the backup program. Unset means the runner of this product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Arguments of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// When to pull the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Environment variables of the container. The runner reads HOST, PORT, USERNAME, PASSWORD, EXPIREAT, SQLPATH, APIURL, TIMEOUT, TZ, DATABASES, EXCLUDE_TABLES and MYSQLDUMP_ARGS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backup_envs: Vec<EnvVar>,
    /// ConfigMaps and Secrets whose keys become environment variables of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
    /// Additional volumes of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Additional volume mounts of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels that a node must have to run the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// CPU and memory requests and limits of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Service account that the pod runs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets with the credentials for pulling images.
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
    /// Security context of the pod. Fields set here override the operator's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container. Fields set here override the operator's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Labels and annotations to add to Job and pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,

    /// Server to back up. The same settings can be given as variables in backupEnvs; where both are set, the field here wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MysqlSource>,
    /// Where to store the artefacts. Set exactly one of volume, s3 and storageRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// How to compress. Unset means zstd at level 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// How to encrypt. Unset means no encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// Private key that decrypts the artefacts. Needed to verify encrypted artefacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Which artefacts to keep. A successful run removes the others. Unset means that EXPIREAT decides; without it, all are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How artefacts are verified. Independent of this, each run reads back what it stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Store the server's binary logs between backups, so that any moment since a backup can be restored to. Unset means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlogs: Option<Binlogs>,
    /// Receivers of notifications and the events that each is notified of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<Notification>,
}

/// Restart policy of the pod. OnFailure: restart the container in the same pod. Never: make a new pod for each attempt.
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
    /// Path of a Unix socket, instead of host and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Secret with user name and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<CredentialsRef>,
    /// Databases to dump. Empty means all except those of the server itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<String>,
    /// Tables to leave out, as database.table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tables: Vec<String>,
    /// TLS settings of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// What makes the dump. Native: the runner itself reads one snapshot over several connections, and writes a file of which single tables can be read. Client: mysqldump or mariadb-dump. Unset means Native where the server's version and everything in it are known to be dumped whole that way, and Client otherwise; the run says which it was, and why. With Native set, a run that can't is failed, and no client is needed in its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// If true, users, roles and grants are dumped too, in a section of their own that a restore skips unless asked for it. Only the engine Native can: a run that would take the client fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<bool>,
    /// Connections that the engine Native reads with, 1 to 16. Unset means the CPUs of the container's limit, at most 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SESSIONS))]
    pub sessions: Option<i32>,
    /// Additional arguments of the dump client. Only arguments from an allow list are accepted. Those that only a client knows choose the engine Client, and are a mistake where the engine is Native.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
    /// Image whose database clients are used instead of the runner's own: mysqldump and mysql, or mariadb-dump and mariadb, on its PATH. It does not need to contain the runner, which is copied into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_image: Option<String>,
}
