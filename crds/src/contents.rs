//! What is in an artefact, by its manifest or record: what `backup-runner download contents` writes to stdout as one line of JSON,
//! and `kubectl backup show` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Words of the command line after [`crate::download::PROGRAM`] that tell what is in an artefact.
pub const CONTENTS: [&str; 2] = ["download", "contents"];

/// What is in an artefact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Contents {
    /// Key of the artefact below the destination's root.
    pub key: String,
    /// Name of its run.
    pub run: String,
    /// Start of its run, RFC 3339.
    pub started_at: String,
    /// Version of the server; empty where there are several, or it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// What made the dump: Native or Client; empty where there is no choice, or it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// `age`, `openssl`, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub encryption: String,
    /// A restore can read single tables of it.
    pub in_parts: bool,
    /// Bytes before compression, of all dumps.
    pub raw_bytes: u64,
    /// Bytes that are stored.
    pub stored_bytes: u64,
    /// Databases, in the order of the dump.
    pub databases: Vec<Database>,
    /// How many of what is no table there are: views, triggers, routines, events, sequences.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// What was left out of it when it was made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// Files of an archive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// What whoever reads this has to know: what was passed over, what failed, what nothing vouches for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A database in an artefact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Database {
    /// File of the archive that has it; empty in the dump of a MysqlBackup.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its name; a schema where the server has schemas.
    pub name: String,
    /// Its tables, in the order of the dump.
    pub tables: Vec<Table>,
}

/// A table in an artefact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Bytes of the text of its rows, where the artefact has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<u64>,
    /// Bytes of them that are stored, before encryption, where the artefact has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
}

/// A file in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
}

impl Contents {
    /// Its tables.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.databases.iter().flat_map(|d| &d.tables)
    }
}
