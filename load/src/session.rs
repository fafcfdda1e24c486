//! A session of the target as the dump's head sets it.

use wire::{Connection, Done};

/// Opens a connection to the target.
pub type Open<'a> = &'a (dyn Fn() -> Result<Connection, wire::Error> + Sync);

/// A comment that this server passes over is an empty statement to it.
const EMPTY: u16 = 1065;
/// ER_SPECIFIC_ACCESS_DENIED_ERROR.
const NOT_ALLOWED: u16 = 1227;
/// More values of an answer are not kept.
const ROWS: usize = 10_000_000;

/// Warnings of the server of one number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warning {
    /// Note, Warning or Error.
    pub level: String,
    /// Its number.
    pub number: u32,
    /// How many there were, of one statement as many as the server lists: 65,535, or its own `max_error_count` where the user
    /// may not set that.
    pub count: u64,
    /// The words of the first of them. They may quote a value.
    pub text: String,
}

/// Kinds of warnings that are kept.
const KINDS: usize = 64;

/// Adds warnings to those that were heard before.
pub(crate) fn add(all: &mut Vec<Warning>, more: Vec<Warning>) {
    for warning in more {
        let same = |w: &&mut Warning| (w.number, &w.level) == (warning.number, &warning.level);
        if let Some(known) = all.iter_mut().find(same) {
            known.count = known.count.saturating_add(warning.count);
        } else if all.len() < KINDS {
            all.push(warning);
        }
    }
}

/// A connection, and the database that it uses.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    used: String,
}

impl Session {
    /// Opens one, and runs `settings` in it.
    pub(crate) fn open(open: Open<'_>, settings: &[Vec<u8>]) -> Result<Self, wire::Error> {
        let mut connection = open()?;
        connection.execute("SET NAMES utf8mb4")?;
        for statement in settings {
            execute(&mut connection, statement)?;
        }
        // Others of this load hold a table for as long as the server takes for a frame of it.
        connection.execute("SET SESSION innodb_lock_wait_timeout = 3600")?;
        // With unique_checks off, MariaDB fills an empty table in bulk: who reads it meanwhile and the load then wait for each
        // other for ever (seen with 10.11.19). The unique keys that a dump switches it off for are made afterwards.
        connection.execute("SET SESSION unique_checks = 1")?;
        // Sessions that use a table hold off who replaces it, and he all who come after him. The server says so in time, so that
        // these get through, and whoever asked decides how often he asks.
        connection.execute("SET SESSION lock_wait_timeout = 5")?;
        // All that a server can list. MySQL lets not everybody say so, and its own limit does.
        match connection.execute("SET SESSION max_error_count = 65535") {
            Err(e) if e.number() == Some(NOT_ALLOWED) => {}
            done => {
                done?;
            }
        }
        // One may have nothing to do for as long as others load.
        connection.execute("SET SESSION wait_timeout = 604800")?;
        Ok(Self {
            connection,
            used: String::new(),
        })
    }

    /// Runs a statement.
    pub(crate) fn execute(&mut self, statement: &[u8]) -> Result<Done, wire::Error> {
        execute(&mut self.connection, statement)
    }

    /// Uses a database.
    pub(crate) fn enter(&mut self, database: &str) -> Result<(), wire::Error> {
        if self.used != database {
            let statement = format!("USE {}", dump::sql::name(database));
            self.connection.execute(&statement)?;
            database.clone_into(&mut self.used);
        }
        Ok(())
    }

    /// The rows of an answer; NULL is empty.
    pub(crate) fn ask(&mut self, statement: &str) -> Result<Vec<Vec<String>>, wire::Error> {
        let mut rows = self.connection.query(statement)?;
        let columns = rows.columns().len();
        let mut all = vec![];
        while let Some(mut row) = rows.read()? {
            if all.len() == ROWS {
                return Err(wire::Error::Malformed("an answer has no end"));
            }
            let mut values = Vec::with_capacity(columns);
            for _ in 0..columns {
                let value = row.value()?.unwrap_or_default();
                values.push(String::from_utf8_lossy(value).into_owned());
            }
            all.push(values);
        }
        Ok(all)
    }

    /// What the server warned about at the last statement.
    pub(crate) fn warnings(&mut self) -> Result<Vec<Warning>, wire::Error> {
        let mut rows = self.connection.query("SHOW WARNINGS")?;
        let mut all = vec![];
        while let Some(mut row) = rows.read()? {
            let mut next = || -> Result<String, wire::Error> {
                let value = row.value()?.unwrap_or_default();
                Ok(String::from_utf8_lossy(value).into_owned())
            };
            let warning = Warning {
                level: next()?,
                number: next()?.parse().unwrap_or_default(),
                count: 1,
                text: next()?,
            };
            add(&mut all, vec![warning]);
        }
        Ok(all)
    }
}

fn execute(connection: &mut Connection, statement: &[u8]) -> Result<Done, wire::Error> {
    match connection.execute_bytes(statement) {
        Err(e) if e.number() == Some(EMPTY) => Ok(Done::default()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_counted_by_their_number_and_their_kinds_are_bounded() {
        let one = |number: u32, text: &str| Warning {
            level: "Warning".to_owned(),
            number,
            count: 1,
            text: text.to_owned(),
        };
        let mut all = vec![];
        for n in 0..1000 {
            add(
                &mut all,
                vec![one(1265, &format!("row {n}")), one(n, "other")],
            );
        }
        assert_eq!(all.len(), KINDS);
        assert_eq!((all[0].count, all[0].text.as_str()), (1000, "row 0"));
    }
}
