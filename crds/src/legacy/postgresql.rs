//! `PostgreSQL` (gobackup.io/v1 and database.gobackup.io/v1): a Database of type postgresql.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::database::{DatabaseConfig, DatabaseSpec};
use crate::storage::EndpointStatus;

/// A PostgreSQL database.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gobackup.io",
    version = "v1",
    kind = "PostgreSQL",
    root = "PostgreSql",
    plural = "postgresqls",
    singular = "postgresql",
    shortname = "psql",
    namespaced,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "PostgreSQL is a Database of type postgresql, as it was written before 2026.",
    printcolumn = r#"{"name":"Host","type":"string","jsonPath":".spec.host"}"#,
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.database"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct PostgreSqlSpec {
    /// Has no effect: the type is always postgresql.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Host name or address. Unset means localhost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TCP port. Unset means 5432.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i64>,
    /// Name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// User name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password in plain text: anyone who can read this object sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Tables to dump. Unset means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Tables to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_tables: Option<Vec<String>>,
    /// Additional arguments of pg_dump, as on a command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_options: Option<String>,
}

impl PostgreSqlSpec {
    /// The same as a Database.
    pub fn to_database(&self) -> DatabaseSpec {
        DatabaseSpec {
            type_: "postgresql".to_owned(),
            config: DatabaseConfig {
                host: self.host.clone(),
                port: self.port,
                database: self.database.clone(),
                username: self.username.clone(),
                password: self.password.clone(),
                tables: self.tables.clone(),
                exclude_tables: self.exclude_tables.clone(),
                args: self.additional_options.clone(),
                ..DatabaseConfig::default()
            },
            gobackup_name: None,
        }
    }
}
