//! `Database` (gobackup.io/v1): one database server and what to dump of it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::storage::{EndpointStatus, SecretKeySelector};

/// A database and how to reach it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gobackup.io",
    version = "v1",
    kind = "Database",
    plural = "databases",
    singular = "database",
    shortname = "db",
    namespaced,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "Database is a database server that a Backup dumps.",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Host","type":"string","jsonPath":".spec.config.host"}"#,
    printcolumn = r#"{"name":"Reachable","type":"string","jsonPath":".status.conditions[?(@.type=='Reachable')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseSpec {
    /// Type of the server.
    #[serde(rename = "type")]
    #[schemars(required, extend("enum" = ["postgresql", "mysql", "mariadb", "mongodb", "redis", "mssql", "influxdb", "influxdb2", "etcd"]))]
    pub type_: String,
    /// How to connect, and what to dump.
    #[schemars(required)]
    pub config: DatabaseConfig,
    /// Name of this database in archives, instead of the object's own. For a database that a gobackup.yml names otherwise: the path in the archive stays what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gobackup_name: Option<String>,
}

/// Settings, named as in a gobackup.yml. Which of them count depends on the type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DatabaseConfig {
    /// Host name or address. influxdb: also a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means the default of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// Path of a Unix socket, instead of host and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// If true, every database of the server is dumped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_databases: Option<bool>,
    /// User name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Secret key with the user name. Takes precedence over username.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeySelector>,
    /// Password in plain text: anyone who can read this object sees it. Use password_ref instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key with the password. Takes precedence over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeySelector>,
    /// Additional arguments of the dump client, as on a command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Tables to dump. Unset means all. For postgresql, mysql and mariadb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Tables to leave out. For postgresql, mysql, mariadb and mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tables: Option<Vec<String>>,
    /// Prefixes of collections to leave out. For mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tables_prefix: Option<Vec<String>>,
    /// Connection string, instead of host, port, user name and password. For mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Secret key with the connection string. For mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri_ref: Option<SecretKeySelector>,
    /// Database in which the user is defined. For mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_db: Option<String>,
    /// If true, the oplog is included. Requires a dump of all databases. For mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oplog: Option<bool>,
    /// If true, any server certificate is accepted. For mssql.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_server_certificate: Option<bool>,
    /// API token in plain text: anyone who can read this object sees it. Use token_ref instead. For influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Secret key with the API token. For influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ref: Option<SecretKeySelector>,
    /// Bucket to dump. Unset means all. For influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Organisation. For influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// If true, any server certificate is accepted. For influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_verify: Option<bool>,
    /// Member to take the snapshot from: an address with or without scheme. For etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Members. The snapshot is taken from the first one. For etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
    /// How to get the dump: sync over the network, or copy from a mounted file. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["copy", "sync"]))]
    pub mode: Option<String>,
    /// Path of the mounted file for mode copy. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdb_path: Option<String>,
    /// Has no effect: a dump over the network is always up to date. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invoke_save: Option<bool>,
    /// Has no effect; use mode. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<bool>,
    /// Has no effect; use mode. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<bool>,
    /// Additional arguments of redis-cli, added to args. For redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_redis: Option<String>,
    /// Shell script to run before this dump. If it fails, the run fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell script to run after this dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
}
