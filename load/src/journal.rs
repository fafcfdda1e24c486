//! What of a load is done, kept in the target: a table with a row for each frame, written in the frame's own transaction. Whoever
//! goes on with the load reads it.

use std::collections::BTreeMap;

use dump::sql;

use crate::error::Error;
use crate::session::Session;

/// Whose load it is.
const WHOSE: u64 = 0;
/// All databases and tables are made.
const DEFINED: u64 = 1;
/// Frame 0.
const FRAMES: u64 = 2;
/// ER_NO_SUCH_TABLE.
const NO_TABLE: u16 = 1146;
/// ER_BAD_DB_ERROR.
const NO_DATABASE: u16 = 1049;

/// The journal of a load.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Its table, with its database.
    table: String,
}

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Whose load it is.
    pub(crate) whose: String,
    /// All databases and tables are made.
    pub(crate) defined: bool,
    /// Frames that are loaded, and the sum of their rows' hashes, where it is known.
    pub(crate) frames: BTreeMap<usize, Option<u128>>,
}

impl Journal {
    /// In this database, under a name that does not stand in the dump's definitions.
    pub(crate) fn of(database: &str, definitions: &[u8]) -> Self {
        let mut name = "_backup_restore".to_owned();
        while memchr::memmem::find(definitions, format!("`{name}`").as_bytes()).is_some() {
            name.push('_');
        }
        Self {
            table: sql::table(database, &name),
        }
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> String {
        self.table.replace('`', "")
    }

    /// Reads it; `None` where there is none.
    pub(crate) fn read(&self, session: &mut Session) -> Result<Option<Kept>, Error> {
        let doing = format!("reading {}", self.name());
        let asked = session.ask(&format!("SELECT step, note FROM {}", self.table));
        let rows = match asked {
            Err(e) if matches!(e.number(), Some(NO_TABLE | NO_DATABASE)) => return Ok(None),
            rows => rows.map_err(|e| Error::wire(doing, e))?,
        };
        let mut kept = Kept::default();
        let mut begun = false;
        for row in rows {
            let [step, note] = &row[..] else { continue };
            match step.parse::<u64>() {
                Ok(WHOSE) => {
                    begun = true;
                    kept.whose.clone_from(note);
                }
                Ok(DEFINED) => kept.defined = true,
                Ok(step) => {
                    let hash = u128::from_str_radix(note, 16).ok();
                    let frame = usize::try_from(step - FRAMES);
                    kept.frames.extend(frame.ok().map(|frame| (frame, hash)));
                }
                Err(_) => {}
            }
        }
        // One that was cut before its first row: nothing was done.
        Ok(begun.then_some(kept))
    }

    /// Begins it.
    pub(crate) fn begin(&self, session: &mut Session, whose: &str) -> Result<(), Error> {
        self.drop(session)?;
        let create = format!(
            "CREATE TABLE {} (step bigint unsigned NOT NULL PRIMARY KEY, note varchar(255) CHARACTER SET utf8mb4 NOT NULL) ENGINE=InnoDB COMMENT='what of a restore is done; gone at its end'",
            self.table
        );
        let doing = || format!("making {}", self.name());
        session
            .execute(create.as_bytes())
            .map_err(|e| Error::wire(doing(), e))?;
        let whose = sql::literal(whose);
        self.put(session, WHOSE, &whose)
            .map_err(|e| Error::wire(doing(), e))
    }

    fn put(&self, session: &mut Session, step: u64, note: &str) -> Result<(), wire::Error> {
        let insert = format!("INSERT INTO {} VALUES ({step}, {note})", self.table);
        session.execute(insert.as_bytes()).map(drop)
    }

    /// All databases and tables are made.
    pub(crate) fn defined(&self, session: &mut Session) -> Result<(), Error> {
        self.put(session, DEFINED, "''")
            .map_err(|e| Error::wire(format!("writing {}", self.name()), e))
    }

    /// A frame is loaded, with this sum of its rows' hashes: part of its transaction.
    pub(crate) fn loaded(
        &self,
        session: &mut Session,
        frame: usize,
        hash: Option<u128>,
    ) -> Result<(), wire::Error> {
        let note = hash.map_or_else(String::new, |hash| format!("{hash:032x}"));
        self.put(session, FRAMES + frame as u64, &sql::literal(&note))
    }

    /// True if the frame is loaded.
    pub(crate) fn has(&self, session: &mut Session, frame: usize) -> Result<bool, wire::Error> {
        let step = FRAMES + frame as u64;
        let asked = format!("SELECT 1 FROM {} WHERE step = {step}", self.table);
        Ok(!session.ask(&asked)?.is_empty())
    }

    /// Frames that are loaded.
    pub(crate) fn count(&self, session: &mut Session) -> Result<u64, Error> {
        let asked = format!("SELECT count(*) FROM {} WHERE step >= {FRAMES}", self.table);
        let rows = session
            .ask(&asked)
            .map_err(|e| Error::wire(format!("reading {}", self.name()), e))?;
        let count = rows.first().and_then(|row| row.first()?.parse().ok());
        Ok(count.unwrap_or_default())
    }

    /// Ends it.
    pub(crate) fn drop(&self, session: &mut Session) -> Result<(), Error> {
        let drop = format!("DROP TABLE IF EXISTS {}", self.table);
        session
            .execute(drop.as_bytes())
            .map(std::mem::drop)
            .map_err(|e| Error::wire(format!("dropping {}", self.name()), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_name_is_none_of_the_dump() {
        assert_eq!(Journal::of("a`b", b"").table, "`a``b`.`_backup_restore`");
        let taken = b"CREATE TABLE `_backup_restore` (x); CREATE VIEW `_backup_restore_` AS";
        assert_eq!(Journal::of("d", taken).name(), "d._backup_restore__");
    }
}
