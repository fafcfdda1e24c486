//! Which part of a dump is taken. PURE.

use std::collections::BTreeSet;

use dump::{Frame, Section};

/// A table, sequence or view, after its database.
pub type Named = (String, String);

/// What of a dump is taken: databases with all that is in them, and tables with their rows and triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Databases that are taken with all that is in them.
    pub databases: BTreeSet<String>,
    /// Tables and sequences that are taken beside that.
    pub tables: BTreeSet<Named>,
    /// Tables, sequences and views that are left out.
    pub without: BTreeSet<Named>,
    /// Foreign keys that are left out: the table, and the constraint.
    pub foreign_keys: BTreeSet<(Named, String)>,
}

impl Selection {
    /// True if views, routines and events of this database are taken.
    pub fn is_whole(&self, database: &str) -> bool {
        self.databases.contains(database)
    }

    /// True if anything of this database is taken.
    pub fn enters(&self, database: &str) -> bool {
        self.is_whole(database) || self.tables.iter().any(|(of, _)| of == database)
    }

    /// True if this table, sequence or view is taken.
    pub fn takes(&self, named: &Named) -> bool {
        (self.is_whole(&named.0) || self.tables.contains(named)) && !self.without.contains(named)
    }

    /// True if this frame has something of it.
    pub fn wants(&self, frame: &Frame<'_>) -> bool {
        match frame.section {
            Section::Head | Section::Foot => true,
            Section::Accounts | Section::Grants => false,
            Section::Schema | Section::Programs => self.enters(frame.database),
            // What only enters a database is nobody's rows.
            Section::Data => {
                !frame.table.is_empty()
                    && self.takes(&(frame.database.to_owned(), frame.table.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn named(text: &str) -> Named {
        let (database, name) = text.split_once('.').unwrap();
        (database.to_owned(), name.to_owned())
    }

    #[test]
    fn what_is_taken_and_which_frames_have_it() {
        let selection = Selection {
            databases: ["crm".to_owned()].into(),
            tables: [named("shop.orders"), named("shop.both")].into(),
            without: [named("crm.log"), named("shop.both")].into(),
            ..Selection::default()
        };
        for (name, taken) in [
            ("shop.orders", true),
            ("shop.both", false),
            ("shop.customers", false),
            ("crm.orders", true),
            ("crm.log", false),
            ("other.orders", false),
        ] {
            assert_eq!(selection.takes(&named(name)), taken, "{name}");
        }
        let frame = |section, database, table| Frame {
            section,
            database,
            table,
            rows: 0,
            first_key: "",
            at: 0,
            stored: 0,
            raw_at: 0,
            raw: 0,
        };
        for (section, database, table, wanted) in [
            (Section::Head, "", "", true),
            (Section::Foot, "", "", true),
            (Section::Accounts, "", "", false),
            (Section::Grants, "", "", false),
            (Section::Schema, "shop", "", true),
            (Section::Schema, "other", "", false),
            (Section::Programs, "shop", "", true),
            (Section::Programs, "other", "", false),
            (Section::Data, "shop", "", false),
            (Section::Data, "shop", "orders", true),
            (Section::Data, "shop", "customers", false),
            (Section::Data, "crm", "log", false),
            (Section::Data, "crm", "x", true),
        ] {
            let frame = frame(section, database, table);
            assert_eq!(selection.wants(&frame), wanted, "{frame:?}");
        }
    }
}
