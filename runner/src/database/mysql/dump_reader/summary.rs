//! What a dump holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::contents::{Contents, Table};

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
    /// Procedures, functions and libraries.
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

    /// For a record of a dump that was made with these arguments.
    pub fn contents(&self, options: Vec<String>) -> Contents {
        let others = [
            ("views", self.views),
            ("triggers", self.triggers),
            ("routines", self.routines),
            ("events", self.events),
            ("sequences", self.sequences),
        ];
        Contents {
            tables: self.tables.clone(),
            others: others
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(what, count)| (what.to_owned(), count))
                .collect::<BTreeMap<_, _>>(),
            options,
            native: false,
            partial: vec![],
            names: BTreeSet::new(),
        }
    }
}
