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

use crate::bounds::{MAX_SECONDS, MAX_SESSIONS, MAX_STARTUP_SECONDS};
use crate::parts::{
    CredentialsRef, Decryption, Destination, ImagePullPolicy, PodMetadata, Tls, VolumeDestination,
};
use crate::run::{Artefact, RunResult, TimedPhase};

/// Most names in a list of tables or databases.
pub const MAX_NAMES: usize = 1000;

/// What to restore, and where to. It can't be changed: make another Restore for another restore.
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
    {"rule": "!has(self.verify) || !has(self.to.volume)", "message": "verify goes with host or socket"},
    {"rule": "!(has(self.tables) || has(self.databases) || has(self.excludeTables) || has(self.withoutForeignKeys) && self.withoutForeignKeys) || !has(self.from.kind) || self.from.kind == 'MysqlBackup'", "message": "tables, databases, excludeTables and withoutForeignKeys go with dumps of a MysqlBackup"},
    {"rule": "!has(self.withoutForeignKeys) || !self.withoutForeignKeys || has(self.tables) || has(self.databases) || has(self.excludeTables)", "message": "withoutForeignKeys goes with tables, databases or excludeTables"},
    {"rule": "!has(self.accounts) || !self.accounts || !(has(self.tables) || has(self.databases) || has(self.excludeTables))", "message": "accounts goes with a whole dump: leave tables, databases and excludeTables out"},
    {"rule": "!has(self.to.volume) || (has(self.from.kind) && self.from.kind in ['Backup', 'CronBackup'])", "message": "to.volume goes with from.kind Backup or CronBackup; kubectl backup download brings the dump of a MysqlBackup"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreSpec {
    /// Which artefact to restore.
    pub from: RestoreFrom,
    /// Private key that decrypts an encrypted dump. Unset means that of the MysqlBackup named in `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Server to restore into, or volume to put the dump onto.
    pub to: RestoreTarget,
    /// If true, everything is checked and nothing is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub dry_run: bool,
    /// If true, restore even if the target already holds data or is the server that the dump came from. Tables and keys of the same name are replaced. In PostgreSQL everything in the database is replaced, on a volume everything in the directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub overwrite: bool,
    /// If true, users, roles and grants that are in a dump of MySQL or MariaDB (spec.source.accounts of its MysqlBackup) are made too. Accounts that are there keep their passwords.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub accounts: bool,
    /// Tables to restore, as database.table, with their rows and triggers. Of a dump of the native engine (MysqlBackup) only these parts are read. Views, routines and events come with whole databases alone. Unset together with databases means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NAMES), inner(length(min = 3, max = 129)))]
    pub tables: Vec<String>,
    /// Databases to restore, with all that is in them. Tables named in tables are restored beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NAMES), inner(length(min = 1, max = 64)))]
    pub databases: Vec<String>,
    /// Tables and views not to restore, as database.table, of databases that are restored otherwise with all that is in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NAMES), inner(length(min = 3, max = 129)))]
    pub exclude_tables: Vec<String>,
    /// If true, foreign keys to tables that are neither restored nor in the target are left out. Otherwise they stop the restore before anything is changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub without_foreign_keys: bool,
    /// What to do with the definers of views, triggers, routines and events of MySQL and MariaDB. Unset means Keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definers: Option<Definers>,
    /// Account that becomes the definer if definers is To, as user@host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 288))]
    pub definer: Option<String>,
    /// What the server's binary logs hold behind the dump is replayed, up to this point. Needs spec.binlogs of the MysqlBackup. With from.latest the newest dump that leads there is taken; with another choice, that dump. All of it is proven before the target is written to, and refused with the reason if anything on the way is missing. With tables, databases or excludeTables only what the log changes of these is replayed; a statement of which that can't be told is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,

    /// What to compare with the dump after MySQL or MariaDB has loaded it. Unset means Counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<RestoreVerify>,

    /// Image of the runner. Unset means the operator's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When to pull the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets with the credentials for pulling images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Seconds within which the pod must be running. After that the restore fails with the reason that the pod gives. Unset means 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_STARTUP_SECONDS))]
    pub startup_deadline_seconds: Option<i64>,
    /// Maximum duration of the Job in seconds. Unset means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds between SIGTERM and SIGKILL when the pod is stopped. Unset means 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_SECONDS))]
    pub termination_grace_period_seconds: Option<i64>,
    /// CPU and memory requests and limits of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Additional volumes of the pod, for example one with the Unix socket that `to` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Additional volume mounts of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Labels that a node must have to run the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Service account that the pod runs under.
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
    /// Security context of the pod. Fields set here override the operator's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Security context of the container. Fields set here override the operator's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Labels and annotations to add to Job and pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
}

/// Up to where binary logs are replayed: exactly one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "[has(self.at), has(self.gtid), has(self.beforeGtid), has(self.latest) && self.latest].exists_one(x, x)", "message": "set exactly one of at, gtid, beforeGtid, latest: true"}
]))]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// All transactions before the first that has an event at or after this second, by the server's clock. RFC 3339, whole seconds, such as 2025-01-15T10:30:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub at: Option<String>,
    /// All transactions up to this one, with it. As the server writes it, such as 0-1-5 (MariaDB) or 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 (MySQL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub gtid: Option<String>,
    /// All transactions up to this one, without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub before_gtid: Option<String>,
    /// If true, all that is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
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
    /// Name of a run of the backup object, as `kubectl backup runs` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub run: Option<String>,
    /// If true, the newest artefact of the backup object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// Time in RFC 3339: the newest artefact of the backup object at this time or earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub at: Option<String>,
    /// Key of an artefact of the backup object, as `kubectl backup runs --stored` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub key: Option<String>,
    /// Name of the Database whose dump to restore from the archive of a Backup. Unset means every dump that fits the server; with to.volume, the only dump in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub database: Option<String>,
    /// Name of the Storage from which to read the archive of a Backup. Unset means the first one that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage: Option<String>,
    /// A place with artefacts, used without a backup object.
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
    /// If true, the newest artefact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// Time in RFC 3339: the newest artefact at this time or earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub at: Option<String>,
    /// With latest and at, the object whose artefacts to choose from. They are stored in the directory <namespace>/<kind>/<name>.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<StoredObject>,
}

/// The object that artefacts in a location belonged to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredObject {
    /// Kind of the object. Unset means MysqlBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Namespace of the object. Unset means that of the Restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// The server to restore into, or the volume to put the dump onto.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "[has(self.host), has(self.socket), has(self.volume)].exists_one(x, x)", "message": "set host, socket or volume, exactly one of them"},
    {"rule": "has(self.volume) != has(self.credentialsSecretRef)", "message": "host and socket need credentialsSecretRef; volume takes none"},
    {"rule": "!has(self.volume) || !(has(self.port) || has(self.database) || has(self.tls) || has(self.sessions))", "message": "port, database, tls and sessions go with host or socket"},
    {"rule": "has(self.volume) || !has(self.etcd)", "message": "etcd goes with volume"}
]))]
#[serde(rename_all = "camelCase")]
pub struct RestoreTarget {
    /// Host name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// TCP port. Unset means 3306, or 5432 for a dump of PostgreSQL, or 6379 for one of Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Path of a Unix socket, instead of host and port. Its directory must be mounted by spec.volumeMounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 107))]
    pub socket: Option<String>,
    /// Secret with user name and password. For a Redis server that has only a password, the user name is `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<CredentialsRef>,
    /// Another name for the database, if the dump holds only one. Unset means the names in the dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub database: Option<String>,
    /// TLS settings of the connection. For Redis, Preferred means no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Connections that load a dump of MySQL or MariaDB. Unset means as many as the container has CPUs, at most 4. Of PostgreSQL, with a dump of pg_dump's custom format (args -Fc) and a database that the restore makes, the sessions of pg_restore; unset means one, in one transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SESSIONS))]
    pub sessions: Option<i32>,
    /// Volume to put the dump of one Database onto, into the directory `path`: dump.rdb for Redis, the data directory of a new member for etcd, otherwise the files as they are in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeDestination>,
    /// Identity of the new member of etcd.
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
    /// Members of the new cluster, as `name=URL,...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub initial_cluster: Option<String>,
    /// Token that tells the cluster from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub initial_cluster_token: Option<String>,
    /// URLs at which the other members reach this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub initial_advertise_peer_urls: Option<String>,
}

/// What to do with the definers of views, triggers, routines and events of MySQL and MariaDB. Keep: leave them unchanged. Drop: the user who restores becomes the definer. To: the account in spec.definer becomes the definer. Unset means Keep; if the server does not allow the user to keep them, the restore fails before anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Definers {
    /// They stay what they are.
    Keep,
    /// They are left out: whoever restores becomes the definer.
    Drop,
    /// All become the account in spec.definer.
    To,
}

/// What is compared with the dump after MySQL or MariaDB has loaded it. Counts: the rows of each table are counted. Whole: all rows are read back and their hash is compared too. None: only what the server said while it loaded counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RestoreVerify {
    /// The rows of each table are counted.
    #[default]
    Counts,
    /// The same, and all rows are read back.
    Whole,
    /// Nothing more.
    None,
}

impl RestoreVerify {
    /// As a spec says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counts => "Counts",
            Self::Whole => "Whole",
            Self::None => "None",
        }
    }
}

/// User and host of an account written `user@host`; the host is what follows the last `@`. `None`
/// where one of them is missing or holds a character that no account has.
pub fn account(text: &str) -> Option<(&str, &str)> {
    let (user, host) = text.rsplit_once('@')?;
    let good = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
    (good(user) && good(host)).then_some((user, host))
}

/// State of the Restore. Pending: its Job does not exist yet. Running: its Job exists and has not finished. Succeeded: restored and compared, or with dryRun: it would be. Failed: not restored. The reason says why.
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

/// Observed state. Progress is in the log of the Job's pod, one JSON line every ten seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatus {
    /// Generation of the spec that this status refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RestorePhase>,
    /// Name of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// UID of the Job, once it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_uid: Option<String>,
    /// When the Job was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the result became final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Reason in CamelCase, for programs: Restored, WouldRestore, TargetNotEmpty, TargetIsSource, AccessDenied, Timeout and others. docs/reasons.md lists those of the runner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was restored, or the cause of a failure and what helps.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Exit code of the runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The artefact to restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artefact: Option<Artefact>,
    /// Number of bytes of the dump before compression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<i64>,
    /// Of a restore of tables or databases: number of bytes of the stored artefact that were read, or with dryRun that would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<i64>,
    /// Number of tables in the dump, or of those restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,
    /// Number of rows in the dump, or of those restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// Phases of the last pod, with the time that each took: what it read before it began, then of MySQL and MariaDB Definitions, Rows, Keys, Programs and Comparing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<TimedPhase>,
    /// Warnings of the runner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Conditions Accepted, Restored and Ready.
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

/// The artefact is restored in part.
pub fn is_part(spec: &RestoreSpec) -> bool {
    !(spec.tables.is_empty() && spec.databases.is_empty() && spec.exclude_tables.is_empty())
}
