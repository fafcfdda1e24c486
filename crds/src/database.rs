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
    /// Which server it is.
    #[serde(rename = "type")]
    #[schemars(required, extend("enum" = ["postgresql", "mysql", "mariadb", "mongodb", "redis", "mssql", "influxdb", "influxdb2", "etcd"]))]
    pub type_: String,
    /// How to reach it and what to dump.
    #[schemars(required)]
    pub config: DatabaseConfig,
}

/// Settings, named as in a gobackup.yml. Which of them count depends on the type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DatabaseConfig {
    /// Host name or address. influxdb: also a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means the server's usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// Unix socket, instead of host and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Dump every database of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_databases: Option<bool>,
    /// User name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Secret key that holds the user name; wins over username.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeySelector>,
    /// Password in plain text: anyone who can read this object sees it. Use password_ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Secret key that holds the password; wins over password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeySelector>,
    /// More arguments for the dump client, as on a command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Tables to dump. Unset means all. postgresql, mysql, mariadb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Tables left out. postgresql, mysql, mariadb, mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tables: Option<Vec<String>>,
    /// Prefixes of collections left out. mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tables_prefix: Option<Vec<String>>,
    /// Connection string, instead of the fields above. mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Secret key that holds the connection string. mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri_ref: Option<SecretKeySelector>,
    /// Database that knows the user. mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_db: Option<String>,
    /// Include the oplog; needs every database. mongodb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oplog: Option<bool>,
    /// Accept any server certificate. mssql.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_server_certificate: Option<bool>,
    /// API token in plain text: anyone who can read this object sees it. Use token_ref. influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Secret key that holds the API token. influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ref: Option<SecretKeySelector>,
    /// Bucket to dump. Unset means all. influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Organisation. influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Accept any server certificate. influxdb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_verify: Option<bool>,
    /// Member to take the snapshot from, with or without scheme. etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Members; the first one gives the snapshot. etcd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
    /// How to read redis: over the network (sync) or from a mounted file (copy). redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["copy", "sync"]))]
    pub mode: Option<String>,
    /// File of mode copy. redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdb_path: Option<String>,
    /// Without effect: a dump over the network is a fresh one. redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invoke_save: Option<bool>,
    /// Without effect; use mode. redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<bool>,
    /// Without effect; use mode. redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<bool>,
    /// More arguments for redis-cli, added to args. redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_redis: Option<String>,
    /// Shell text run before this dump. A failure fails the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell text run after this dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
}
