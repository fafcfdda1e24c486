//! Which events of a log belong to a part of a backup. PURE.

use super::filter::{StatementOutcome, Wanted};
use crate::database::mysql::sql::{Named, Selection, StatementChange, touched};

/// A part of a backup, and what the log changes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mysql_backup) struct Part {
    /// What was chosen of the backup.
    pub(in crate::mysql_backup) selection: Selection,
    /// All but what is left out: databases that come later are of it, too.
    pub(in crate::mysql_backup) rest: bool,
    /// Databases of the backup.
    pub(in crate::mysql_backup) known: Vec<String>,
}

fn shown((database, name): &Named) -> String {
    format!("{database}.{name}")
}

impl Part {
    fn has(&self, named: &Named) -> bool {
        self.selection.takes(named) || self.rest && !self.selection.without.contains(named)
    }

    fn is_whole(&self, database: &str) -> bool {
        let lacks = self.selection.without.iter().any(|(of, _)| of == database);
        self.is_taken(database) && !lacks
    }

    /// Views, routines and events of the database are of the part.
    fn is_taken(&self, database: &str) -> bool {
        self.rest || self.selection.is_whole(database)
    }

    fn enters(&self, database: &str) -> bool {
        self.rest || self.selection.enters(database)
    }

    /// A name of the part that differs in case alone: one server takes both for the same, another does not.
    fn like(&self, named: &Named) -> bool {
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        let selection = &self.selection;
        let of_tables = |(d, t): &Named| same(d, &named.0) && same(t, &named.1);
        selection.tables.iter().any(of_tables)
            || selection.without.iter().any(of_tables)
            || selection
                .databases
                .iter()
                .any(|d| same(d, &named.0) && *d != named.0)
    }

    fn tables(&self, names: &[Named], refers: &[Named]) -> StatementOutcome {
        // What is named exactly is what is meant.
        let exactly = |named: &Named| {
            let selection = &self.selection;
            selection.tables.contains(named)
                || selection.without.contains(named)
                || selection.is_whole(&named.0) && !self.like(named)
        };
        if let Some(named) = names
            .iter()
            .find(|named| !exactly(named) && self.like(named))
        {
            return StatementOutcome::Refused(format!(
                "a statement changes {}, and what was chosen has a name that differs from it in case alone",
                shown(named)
            ));
        }
        let (of_part, others): (Vec<&Named>, Vec<&Named>) =
            names.iter().partition(|named| self.has(named));
        match (of_part.first(), others.first()) {
            (Some(one), Some(other)) => StatementOutcome::Refused(format!(
                "one statement changes {}, which was chosen, and {}, which was not",
                shown(one),
                shown(other)
            )),
            (None, _) => StatementOutcome::Left,
            (Some(one), None) => match refers.iter().find(|named| !self.has(named)) {
                Some(other) => StatementOutcome::Refused(format!(
                    "a statement makes {} of {}, or has it refer to it, which was not chosen",
                    shown(one),
                    shown(other)
                )),
                None => StatementOutcome::Kept,
            },
        }
    }

    fn database(&self, name: &str) -> StatementOutcome {
        if self.is_whole(name) {
            return StatementOutcome::Kept;
        }
        let lower = name.to_lowercase();
        let selection = &self.selection;
        let mut of_part = selection
            .databases
            .iter()
            .chain(selection.tables.iter().map(|(database, _)| database))
            .chain(selection.without.iter().map(|(database, _)| database));
        if of_part.any(|database| database.to_lowercase() == lower) {
            return StatementOutcome::Refused(format!(
                "a statement changes database {name} itself, of which a part was chosen"
            ));
        }
        StatementOutcome::Left
    }

    fn programs(&self, databases: &[String], reads: &[String]) -> StatementOutcome {
        let taken = databases.iter().filter(|d| self.is_taken(d)).count();
        if taken == 0 {
            return StatementOutcome::Left;
        }
        if taken < databases.len() {
            return StatementOutcome::Refused(
                "one statement changes views of databases that were chosen and of others"
                    .to_owned(),
            );
        }
        let absent = |name: &&String| self.known.contains(name) && !self.is_whole(name);
        match reads.iter().find(absent) {
            Some(name) => StatementOutcome::Refused(format!(
                "a view reads database {name}, which was not chosen as a whole"
            )),
            None => StatementOutcome::Kept,
        }
    }
}

impl Wanted for Part {
    fn takes(&self, database: &str, table: &str) -> bool {
        self.has(&(database.to_owned(), table.to_owned()))
    }

    fn statement(&self, database: &str, text: &[u8], sql_mode: u64) -> StatementOutcome {
        match touched(text, database, sql_mode) {
            StatementChange::Transaction => StatementOutcome::Transaction,
            StatementChange::Nothing => StatementOutcome::Left,
            StatementChange::Tables { names, refers } => self.tables(&names, &refers),
            // One of which a part was chosen is there: whatever drops it is refused.
            StatementChange::NewDatabase(name) => match self.is_taken(&name) {
                true => StatementOutcome::Kept,
                false => StatementOutcome::Left,
            },
            StatementChange::Database(name) => self.database(&name),
            StatementChange::Programs { databases, reads } => self.programs(&databases, &reads),
            StatementChange::Trigger(database, Some(table)) => {
                match self.takes(&database, &table) {
                    true => StatementOutcome::Kept,
                    false => StatementOutcome::Left,
                }
            }
            StatementChange::Trigger(database, None) if self.is_whole(&database) => {
                StatementOutcome::Kept
            }
            StatementChange::Trigger(database, None) if !self.enters(&database) => {
                StatementOutcome::Left
            }
            StatementChange::Trigger(database, None) => StatementOutcome::Refused(format!(
                "a trigger of database {database} goes, and which table it is of is not said"
            )),
            StatementChange::Unknown(why) => {
                StatementOutcome::Refused(format!("a statement can't be placed: {why}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Named {
        let (database, name) = text.split_once('.').unwrap();
        (database.to_owned(), name.to_owned())
    }

    fn part(databases: &[&str], tables: &[&str], without: &[&str]) -> Part {
        Part {
            selection: Selection {
                databases: databases.iter().map(|d| (*d).to_owned()).collect(),
                tables: tables.iter().map(|t| named(t)).collect(),
                without: without.iter().map(|t| named(t)).collect(),
                ..Selection::default()
            },
            rest: databases.is_empty() && tables.is_empty(),
            known: ["shop", "crm", "other"].map(str::to_owned).into(),
        }
    }

    /// What becomes of a statement for single tables, for a whole database, and for all but some tables.
    #[test]
    fn what_is_of_the_part_is_replayed_what_is_not_is_left_and_the_rest_is_refused() {
        let parts = [
            part(&[], &["shop.orders", "shop.items"], &[]),
            part(&["shop"], &[], &["shop.log"]),
            part(&[], &[], &["shop.log"]),
        ];
        let fate = |part: &Part, text: &str| match part.statement("shop", text.as_bytes(), 0) {
            StatementOutcome::Kept => 'k',
            StatementOutcome::Left => '-',
            StatementOutcome::Transaction => 't',
            StatementOutcome::Refused(_) => '!',
        };
        for (text, wanted) in [
            ("drop table orders", "kkk"),
            ("drop table orders, items", "kkk"),
            ("drop table customers", "-kk"),
            ("drop table log", "---"),
            ("drop table orders, customers", "!kk"),
            ("drop table orders, log", "!!!"),
            ("drop table Orders", "!kk"),
            ("drop table LOG", "-!!"),
            ("drop table SHOP.orders", "!!k"),
            ("drop table crm.orders", "--k"),
            (
                "rename table orders to orders_old, orders_new to orders",
                "!kk",
            ),
            ("alter table orders rename to crm.orders", "!!k"),
            ("create table orders like customers", "!kk"),
            (
                "alter table orders add foreign key (a) references log (a)",
                "!!!",
            ),
            (
                "alter table orders add foreign key (a) references items (a)",
                "kkk",
            ),
            ("create table crm.x like orders", "--k"),
            ("create database shop", "-kk"),
            ("drop database shop", "!!!"),
            ("drop database crm", "--k"),
            ("create database fresh", "--k"),
            ("create view v as select * from orders", "-kk"),
            ("create view v as select * from crm.x", "-!k"),
            ("create view v as select * from shop.log", "-!!"),
            ("create view crm.v as select 1", "--k"),
            ("create procedure p() begin drop table orders; end", "-kk"),
            (
                "create trigger t before insert on orders for each row set new.a = 1",
                "kkk",
            ),
            (
                "create trigger t before insert on log for each row set new.a = 1",
                "---",
            ),
            ("drop trigger t", "!!!"),
            ("drop trigger crm.t", "--k"),
            ("grant select on shop.orders to x", "---"),
            ("savepoint s", "ttt"),
            ("insert orders values (1)", "!!!"),
            ("create table orders select 1", "!!!"),
        ] {
            let found: String = parts.iter().map(|part| fate(part, text)).collect();
            assert_eq!(found, wanted, "{text}");
        }
        assert!(parts[0].takes("shop", "orders") && !parts[0].takes("shop", "Orders"));
        assert!(parts[1].takes("shop", "new") && !parts[1].takes("shop", "log"));
        assert!(parts[2].takes("fresh", "new") && !parts[2].takes("shop", "log"));
    }
}
