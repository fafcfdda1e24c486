//! What to dump.

use serde::{Deserialize, Serialize};

use super::none;

/// Types of database servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseType {
    /// PostgreSQL.
    Postgresql,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// MongoDB.
    Mongodb,
    /// Redis or Valkey.
    Redis,
    /// Microsoft SQL Server.
    Mssql,
    /// InfluxDB 2.
    Influxdb2,
    /// etcd.
    Etcd,
}

impl DatabaseType {
    /// The name gobackup gives it: the directory in the archive.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
            Self::Mongodb => "mongodb",
            Self::Redis => "redis",
            Self::Mssql => "mssql",
            Self::Influxdb2 => "influxdb2",
            Self::Etcd => "etcd",
        }
    }

    /// The client of this type, where the runner's image has none.
    pub fn client_to_bring(self) -> Option<&'static str> {
        match self {
            Self::Mongodb => Some("mongodump"),
            Self::Influxdb2 => Some("influx"),
            _ => None,
        }
    }

    /// Reads a type in any case; `influxdb` is the operator's word for gobackup's influxdb2.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "postgresql" | "postgres" => Self::Postgresql,
            "mysql" => Self::Mysql,
            "mariadb" => Self::Mariadb,
            "mongodb" => Self::Mongodb,
            "redis" => Self::Redis,
            "mssql" => Self::Mssql,
            "influxdb" | "influxdb2" => Self::Influxdb2,
            "etcd" => Self::Etcd,
            _ => return None,
        })
    }
}

/// One dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Database<C> {
    /// Name of the Database.
    pub name: String,
    /// Directory in the archive, where it is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gobackup_name: Option<String>,
    /// Which server.
    #[serde(rename = "engine")]
    pub database_type: DatabaseType,
    /// Host name or address; influxdb: URL; etcd: endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// User name.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub username: Option<C>,
    /// Password; influxdb: API token; mongodb with `uri`: unused.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub password: Option<C>,
    /// Connection string of mongodb.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub uri: Option<C>,
    /// Name of the database, bucket or, if unset, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Organisation of influxdb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Database that knows the user, of mongodb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_db: Option<String>,
    /// Tables to dump; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Tables left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tables: Vec<String>,
    /// Prefixes of collections left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_prefixes: Vec<String>,
    /// More arguments for the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Include the oplog, of mongodb.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oplog: bool,
    /// Accept any server certificate: mssql, influxdb.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_verify: bool,
    /// File to copy instead of a dump over the network, of redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_from: Option<String>,
    /// Shell text before this dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_script: Option<String>,
    /// Shell text after this dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_script: Option<String>,
}

impl<C> Database<C> {
    /// The directory in the archive, and the key in a gobackup.yml.
    pub fn directory(&self) -> &str {
        self.gobackup_name.as_deref().unwrap_or(&self.name)
    }

    /// The same database with every secret replaced.
    pub(super) fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Database<D> {
        let mut at = |field: &str, value: Option<C>| {
            value.map(|v| f(&format!("databases/{}/{field}", self.name), v))
        };
        Database {
            username: at("username", self.username),
            password: at("password", self.password),
            uri: at("uri", self.uri),
            name: self.name,
            gobackup_name: self.gobackup_name,
            database_type: self.database_type,
            host: self.host,
            port: self.port,
            socket: self.socket,
            database: self.database,
            org: self.org,
            auth_db: self.auth_db,
            tables: self.tables,
            exclude_tables: self.exclude_tables,
            exclude_prefixes: self.exclude_prefixes,
            args: self.args,
            oplog: self.oplog,
            skip_verify: self.skip_verify,
            copy_from: self.copy_from,
            before_script: self.before_script,
            after_script: self.after_script,
        }
    }
}
