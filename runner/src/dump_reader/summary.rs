//! What a dump holds.

use serde::{Deserialize, Serialize};

/// One table of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Database, as the dump names it.
    pub database: String,
    /// Table.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Sum modulo 2^128 of the XXH3-128 of each row's text `(…)`, 32 hex digits: the same for
    /// the same rows in any order.
    pub hash: String,
}

/// What a dump holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Databases named by `USE`, in their order.
    pub databases: Vec<String>,
    /// Tables in the order of the dump.
    pub tables: Vec<Table>,
    /// Views.
    pub views: u64,
    /// Triggers.
    pub triggers: u64,
    /// Procedures and functions.
    pub routines: u64,
    /// Events.
    pub events: u64,
    /// Sequences.
    pub sequences: u64,
    /// It is a whole dump, by its structure.
    pub whole: bool,
    /// What it lacks of one, as what follows "the dump"; empty if it is whole.
    pub flaw: &'static str,
    /// `-- Server version` of the header.
    pub server_version: String,
    /// Binlog position or GTID set, as the dump words it.
    pub position: String,
}

impl Summary {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }
}
