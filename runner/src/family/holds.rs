//! What an SQL dump holds: written into the archive's record while it is made, and compared with
//! what a restore of it holds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::dump_reader::{Summary, Table};
use crate::scratch;

/// More tables than this are not written into a record.
const MOST: usize = 20_000;

/// What a dump holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Holds {
    /// Tables, with their schema in the place of a database where the server has schemas.
    pub(super) tables: Vec<Table>,
    /// Other objects, by what they are: views, sequences.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) others: BTreeMap<String, u64>,
    /// Options of the client with which the same rows make the same text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) options: Vec<String>,
    /// What the user's own arguments left out of the dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) partial: Vec<String>,
    /// Objects by name, and values of sequences; no record holds them.
    #[serde(skip)]
    pub(super) names: BTreeSet<String>,
}

impl Holds {
    /// Of a dump of MySQL or MariaDB that was made with these arguments.
    pub(super) fn of(summary: &Summary, options: Vec<String>) -> Self {
        let others = [
            ("views", summary.views),
            ("triggers", summary.triggers),
            ("routines", summary.routines),
            ("events", summary.events),
            ("sequences", summary.sequences),
        ];
        Self {
            tables: summary.tables.clone(),
            others: others
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(what, count)| (what.to_owned(), count))
                .collect(),
            options,
            partial: vec![],
            names: BTreeSet::new(),
        }
    }

    /// Rows of all tables.
    pub(super) fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }

    /// For a record, if it is not too much for one.
    pub(super) fn recorded(self) -> Option<Box<Self>> {
        (self.tables.len() <= MOST).then(|| Box::new(self))
    }

    /// What of this a restore that holds `found` lacks or has otherwise. The restore was filled from
    /// the dump alone: what it has beyond is of the server's own making.
    pub(super) fn differences(&self, found: &Self) -> Vec<String> {
        let mut all = scratch::differences(&self.tables, &found.tables);
        for (what, expected) in &self.others {
            let found = found.others.get(what).copied().unwrap_or(0);
            if found < *expected {
                all.push(format!("{found} {what} instead of {expected}"));
            }
        }
        let lost = self.names.difference(&found.names);
        all.extend(lost.map(|name| format!("{name} is missing")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, rows: u64, hash: &str) -> Table {
        Table {
            database: "public".to_owned(),
            name: name.to_owned(),
            rows,
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn what_is_lost_or_other_is_named_and_what_is_more_is_not() {
        let expected = Holds {
            tables: vec![table("a", 3, "1"), table("b", 2, "2"), table("c", 1, "3")],
            others: [("views".to_owned(), 2)].into(),
            names: ["VIEW public.v".to_owned()].into(),
            ..Holds::default()
        };
        assert_eq!(expected.differences(&expected), [""; 0]);
        let mut more = expected.clone();
        more.tables.push(table("d", 9, "9"));
        more.others.insert("sequences".to_owned(), 1);
        more.names.insert("SEQUENCE public.s".to_owned());
        assert_eq!(expected.differences(&more), [""; 0]);
        let less = Holds {
            tables: vec![table("a", 2, "1"), table("b", 2, "x")],
            others: [("views".to_owned(), 1)].into(),
            ..Holds::default()
        };
        assert_eq!(
            expected.differences(&less),
            [
                "table public.a has 2 rows instead of 3",
                "table public.b has 2 rows but other values",
                "table public.c is missing",
                "1 views instead of 2",
                "VIEW public.v is missing",
            ]
        );
    }
}
