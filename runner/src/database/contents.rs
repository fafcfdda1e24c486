//! What an SQL dump holds: written into the archive's record while it is made, and compared with
//! what a restore of it holds.

use crds::report::Reason;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// More tables than this are not written into a record.
const MOST: usize = 20_000;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Contents {
    /// Tables, with their schema in the place of a database where the server has schemas.
    pub tables: Vec<Table>,
    /// Other objects, by what they are: views, sequences.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// Options of the client with which the same rows make the same text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The native engine read the rows: it makes the same text of the same rows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
    /// What the user's own arguments left out of the dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// Objects by name, and values of sequences; no record holds them.
    #[serde(skip)]
    pub names: BTreeSet<String>,
}

impl Contents {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }

    /// For a record, if it is not too much for one.
    pub fn recorded(self) -> Option<Box<Self>> {
        (self.tables.len() <= MOST).then(|| Box::new(self))
    }

    /// What of this a restore that holds `found` lacks or has otherwise. The restore was filled from
    /// the dump alone: what it has beyond is of the server's own making.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut all = differences(&self.tables, &found.tables);
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

/// Tables that are missing, or have other rows, in words.
pub(crate) fn differences(expected: &[Table], found: &[Table]) -> Vec<String> {
    let by_name: HashMap<_, _> = found.iter().map(|t| ((&t.database, &t.name), t)).collect();
    let mut differences = vec![];
    for table in expected {
        let name = match table.database.as_str() {
            "" => table.name.clone(),
            database => format!("{database}.{}", table.name),
        };
        match by_name.get(&(&table.database, &table.name)) {
            None => differences.push(format!("table {name} is missing")),
            Some(t) if t.rows != table.rows => differences.push(format!(
                "table {name} has {} rows instead of {}",
                t.rows, table.rows
            )),
            Some(t) if t.hash != table.hash => {
                differences.push(format!("table {name} has {} rows but other values", t.rows));
            }
            Some(_) => {}
        }
    }
    differences
}

/// The failure of a restore that differs; it names the first of the differences.
pub(crate) fn differs(what: &str, differences: &[String]) -> Failure {
    let shown = differences.len().min(3);
    let more = match differences.len() - shown {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = differences[..shown].join("; ");
    Failure::new(
        Reason::RestoreDiffers,
        format!("a restore of {what} differs: {shown}{more}"),
    )
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
        let expected = Contents {
            tables: vec![table("a", 3, "1"), table("b", 2, "2"), table("c", 1, "3")],
            others: [("views".to_owned(), 2)].into(),
            names: ["VIEW public.v".to_owned()].into(),
            ..Contents::default()
        };
        assert_eq!(expected.differences(&expected), [""; 0]);
        let mut more = expected.clone();
        more.tables.push(table("d", 9, "9"));
        more.others.insert("sequences".to_owned(), 1);
        more.names.insert("SEQUENCE public.s".to_owned());
        assert_eq!(expected.differences(&more), [""; 0]);
        let less = Contents {
            tables: vec![table("a", 2, "1"), table("b", 2, "x")],
            others: [("views".to_owned(), 1)].into(),
            ..Contents::default()
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
