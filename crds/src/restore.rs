//! `Restore` (batch.isekiro.com/v1): one artefact into one server, once.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, PodSecurityContext, ResourceRequirements, SecurityContext,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_SECONDS, MAX_STARTUP_SECONDS};
use crate::parts::{
    CredentialsRef, Decryption, Destination, ImagePullPolicy, PodMetadata, Tls, VolumeDestination,
};
use crate::run::{Artefact, RunResult};

/// A restore of a stored dump into a MySQL, MariaDB, PostgreSQL, Redis or Valkey server, or onto a volume.
///
/// Another restore is another object: the spec can't be changed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "batch.isekiro.com",
    version = "v1",
    kind = "Restore",
    plural = "restores",
    singular = "restore",
    shortname = "rst",
    namespaced,
    status = "RestoreStatus",
    derive = "PartialEq",
    doc = "Restore loads a stored dump into a MySQL, MariaDB, PostgreSQL, Redis or Valkey server, or puts it onto a volume, once.",
    printcolumn = r#"{"name":"From","type":"string","jsonPath":".spec.from.name"}"#,
    printcolumn = r#"{"name":"To","type":"string","jsonPath":".spec.to.host"}"#,
    printcolumn = r#"{"name":"To-Claim","type":"string","jsonPath":".spec.to.volume.persistentVolumeClaim.claimName"}"#,
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.to.database"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.reason"}"#,
    printcolumn = r#"{"name":"Rows","type":"integer","jsonPath":".status.rows"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Dry-Run","type":"boolean","priority":1,"jsonPath":".spec.dryRun"}"#,
    printcolumn = r#"{"name":"Tables","type":"integer","priority":1,"jsonPath":".status.tables"}"#,
    printcolumn = r#"{"name":"Started","type":"date","priority":1,"jsonPath":".status.startTime"}"#,
    printcolumn = r#"{"name":"Finished","type":"date","priority":1,"jsonPath":".status.completionTime"}"#,
    printcolumn = r#"{"name":"Job","type":"string","priority":1,"jsonPath":".status.job"}"#,
    printcolumn = r#"{"name":"Artefact","type":"string","priority":1,"jsonPath":".status.artefact.key"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self == oldSelf", "message": "a Restore runs once, its spec can't be changed; create another one"},
    {"rule": "has(self.definer) == (has(self.definers) && self.definers == 'To')", "message": "definers To needs definer, as user@host, and definer goes with it alone"},
    {"rule": "!has(self.definers) || !has(self.to.volume)", "message": "definers goes with host or socket"},
    {"rule": "!has(self.to.volume) || (has(self.from.kind) && self.from.kind in ['Backup', 'CronBackup'])", "message": "to.volume goes with from.kind Backup or CronBackup; kubectl backup download brings the dump of a MysqlBackup"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreSpec {
    /// What to restore.
    pub from: RestoreFrom,
    /// The age key that opens an encrypted dump. Unset means that of the MysqlBackup named in from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Where to restore to.
    pub to: RestoreTarget,
    /// True: all is checked, nothing is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub dry_run: bool,
    /// True: restore also where something is, and into the server the dump came from. Tables and keys of the same name are replaced; in PostgreSQL all that the database holds, on a volume all that the directory holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub overwrite: bool,
    /// What becomes of the definers of views, triggers, routines and events of MySQL and MariaDB: Keep, Drop (whoever restores becomes the definer) or To (all become spec.definer). Unset means Keep; a server that does not let the user keep them is told before anything is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definers: Option<Definers>,
    /// The account that becomes the definer, as user@host, with definers To.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 288))]
    pub definer: Option<String>,

    /// Image of the runner. Unset means the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When the image is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Seconds the restore may take to be running before it is failed with the pod's reason. Unset means 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Seconds the Job may take in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL. Unset means 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// More volumes of the pod: for a socket in to, for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Mounts of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Service account of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
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
}

/// An artefact: one of a backup object (name, and one of run, latest, at, key), or one in a bare
/// location, which works after object and cluster are lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.name) != has(self.location)", "message": "set name, for a backup object of this namespace, or location; exactly one of them"},
    {"rule": "!has(self.name) || [has(self.run), has(self.latest) && self.latest, has(self.at), has(self.key)].exists_one(x, x)", "message": "with name, set exactly one of run, latest: true, at, key"},
    {"rule": "!has(self.location) || !(has(self.kind) || has(self.run) || has(self.latest) || has(self.at) || has(self.key))", "message": "kind, run, latest and at go with name; put key, latest or at into location"},
    {"rule": "!(has(self.database) || has(self.storage)) || (has(self.kind) && self.kind != 'MysqlBackup')", "message": "database and storage go with kind Backup or CronBackup"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// Kind of the backup object: MysqlBackup, or Backup or CronBackup of gobackup.io. Unset means MysqlBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self in ['MysqlBackup', 'Backup', 'CronBackup']", "message": "must be MysqlBackup, Backup or CronBackup"}
    ]))]
    pub kind: Option<String>,
    /// Name of the backup object in this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Name of a run of it, as `kubectl backup runs` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub run: Option<String>,
    /// Its newest artefact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// Its newest artefact of this moment or earlier, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub at: Option<String>,
    /// Key of one of its artefacts, as `kubectl backup runs --stored` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub key: Option<String>,
    /// Name of the Database whose dump in the archive of a Backup is meant. Unset means every dump that fits the server; with to.volume, the only one there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub database: Option<String>,
    /// Name of the Storage from which the archive of a Backup is read. Unset means the first one that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage: Option<String>,
    /// A place where artefacts are, without a backup object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<RestoreLocation>,
}

/// A place where artefacts are, and which of them: exactly one of key, latest, at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "[has(self.key), has(self.latest) && self.latest, has(self.at)].exists_one(x, x)", "message": "set exactly one of key, latest: true, at"},
    {"rule": "has(self.object) != has(self.key)", "message": "latest and at need object, whose artefacts are meant (they lie in <namespace>/<kind>/<name>); a key names its artefact alone"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreLocation {
    /// Where the artefacts are.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "[has(self.volume), has(self.s3), has(self.storageRef)].exists_one(x, x)", "message": "set exactly one of volume, s3, storageRef"}
    ]))]
    pub destination: Destination,
    /// Key of the artefact below the destination's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub key: Option<String>,
    /// The newest artefact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// The newest artefact of this moment or earlier, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub at: Option<String>,
    /// Whose artefacts are meant, with latest and at: they lie in the directory <namespace>/<kind>/<name>.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<StoredObject>,
}

/// The object that artefacts in a location belonged to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredObject {
    /// Its kind. Unset means MysqlBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its namespace. Unset means the Restore's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The server to restore into, or the volume to put the dump onto.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "[has(self.host), has(self.socket), has(self.volume)].exists_one(x, x)", "message": "set host, socket or volume, exactly one of them"},
    {"rule": "has(self.volume) != has(self.credentialsSecretRef)", "message": "host and socket need credentialsSecretRef; volume takes none"},
    {"rule": "!has(self.volume) || !(has(self.port) || has(self.database) || has(self.tls))", "message": "port, database and tls go with host or socket"},
    {"rule": "has(self.volume) || !has(self.etcd)", "message": "etcd goes with volume"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreTarget {
    /// Host name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// TCP port. Unset means 3306, for a dump of PostgreSQL 5432, of Redis 6379.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Unix socket, instead of host and port; its directory is a mount of spec.volumeMounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 107))]
    pub socket: Option<String>,
    /// Secret with user name and password. The user of a Redis that has only a password is `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<CredentialsRef>,
    /// Another name for the dump's one database. Unset means the names it was dumped under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub database: Option<String>,
    /// Transport security. For Redis, Preferred is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Volume onto which the dump of one Database is put, into the directory path: for Redis dump.rdb, for etcd the data directory of a new member, else the files as they are in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// Who the new member of etcd is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdMember>,
}

/// A new member of etcd, as `etcdutl snapshot restore` takes it. What is unset is the tool's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// Name of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The members it is to form a cluster with, as `name=URL,...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub initial_cluster: Option<String>,
    /// What tells that cluster from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub initial_cluster_token: Option<String>,
    /// URLs at which the others reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub initial_advertise_peer_urls: Option<String>,
}

/// What becomes of the definers of views, triggers, routines and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Definers {
    /// They stay what they are.
    Keep,
    /// They are left out: whoever restores becomes the definer.
    Drop,
    /// All become the account in spec.definer.
    To,
}

/// User and host of an account written `user@host`; the host is what follows the last `@`. `None`
/// where one of them is missing or holds a character that no account has.
pub fn account(text: &str) -> Option<(&str, &str)> {
    let (user, host) = text.rsplit_once('@')?;
    let good = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
    (good(user) && good(host)).then_some((user, host))
}

/// Where a Restore stands. The last two are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RestorePhase {
    /// Its Job is not there yet; the condition Accepted says why.
    Pending,
    /// Its Job exists and is not finished.
    Running,
    /// Restored and compared, or with dryRun: it would be.
    Succeeded,
    /// Not restored, the reason says why.
    Failed,
}

impl RestorePhase {
    /// The text used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// True if it can't change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// The same as the result of a run.
    pub fn as_result(self) -> RunResult {
        match self {
            Self::Pending => RunResult::Waiting,
            Self::Running => RunResult::Running,
            Self::Succeeded => RunResult::Succeeded,
            Self::Failed => RunResult::Failed,
        }
    }
}

/// Status of a Restore: what was seen of its one Job. Progress is in the log of the Job's pod, one
/// JSON line every ten seconds, as with a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatus {
    /// Generation of the spec this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RestorePhase>,
    /// Name of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// UID of the Job, once it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// When the Job was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the outcome became final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// CamelCase, machine-read: Restored, WouldRestore, TargetNotEmpty, TargetIsSource, AccessDenied, Timeout, …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was restored, or cause and remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Exit code of the runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The artefact that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artefact: Option<Artefact>,
    /// Bytes of the dump before compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<i64>,
    /// Tables of the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Rows of the dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// What the runner warned about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Accepted, Restored, Ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The backup that is named keeps its archives on Storages: it is one of gobackup.io.
pub fn from_archive(from: &RestoreFrom) -> bool {
    from.name.is_some() && matches!(kind_of(from), "Backup" | "CronBackup")
}

/// Kind of the backup object that `from` names.
pub fn kind_of(from: &RestoreFrom) -> &str {
    from.kind.as_deref().unwrap_or("MysqlBackup")
}
