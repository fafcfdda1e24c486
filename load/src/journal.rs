//! What of a load is done, kept in the target: a table with a row for each frame, written in the frame's own transaction. Whoever
//! goes on with the load reads it.

use std::collections::BTreeMap;

use dump::sql;

use crate::error::Error;
use crate::session::{self, Session, Warning};

/// Whose load it is.
const WHOSE: u64 = 0;
/// All databases and tables are made.
const DEFINED: u64 = 1;
/// Frame 0.
const FRAMES: u64 = 2;
/// Frame 0, of which only the first rows are there.
const PARTS: u64 = 1 << 40;
/// Characters of a note.
const NOTE: usize = 255 - 21;
/// Characters of a warning's words.
const WORDS: usize = 120;
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
    /// Frames that are loaded.
    pub(crate) frames: BTreeMap<usize, Noted>,
    /// Frames of which some rows are loaded.
    pub(crate) parts: BTreeMap<usize, Part>,
}

/// What is noted of rows that are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Sum of their hashes; `None` where it is not known of all.
    pub(crate) hash: Option<u128>,
    /// What the server warned about, as much as there is room for.
    pub(crate) warnings: Vec<Warning>,
}

/// The first rows of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: u64,
    pub(crate) noted: Noted,
}

impl Default for Noted {
    fn default() -> Self {
        Self {
            hash: Some(0),
            warnings: vec![],
        }
    }
}

impl Noted {
    /// More rows came.
    pub(crate) fn add(&mut self, hash: Option<u128>, warnings: Vec<Warning>) {
        self.hash = self.hash.zip(hash).map(|(a, b)| a.wrapping_add(b));
        session::add(&mut self.warnings, warnings);
    }

    /// A line for the sum, and one for each warning, cut.
    fn write(&self) -> String {
        let hash = self.hash.map(|hash| format!("{hash:032x}"));
        let mut note = hash.unwrap_or_default();
        for Warning {
            level,
            number,
            count,
            text,
        } in &self.warnings
        {
            let text = text.replace('\n', " ");
            let text: String = text.chars().take(WORDS).collect();
            let line = format!("\n{level} {number} {count} {text}");
            if note.chars().count() + line.chars().count() > NOTE {
                break;
            }
            note.push_str(&line);
        }
        note
    }

    fn read(note: &str) -> Self {
        let mut lines = note.split('\n');
        let hash = u128::from_str_radix(lines.next().unwrap_or_default(), 16);
        let warning = |line: &str| {
            let mut parts = line.splitn(4, ' ');
            Some(Warning {
                level: parts.next()?.to_owned(),
                number: parts.next()?.parse().ok()?,
                count: parts.next()?.parse().ok()?,
                text: parts.next()?.to_owned(),
            })
        };
        Self {
            hash: hash.ok(),
            warnings: lines.filter_map(warning).collect(),
        }
    }
}

impl Part {
    fn read(note: &str) -> Option<Self> {
        let (rows, noted) = note.split_once(' ')?;
        Some(Self {
            rows: rows.parse().ok()?,
            noted: Noted::read(noted),
        })
    }
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
                Ok(step) if step >= PARTS => {
                    let frame = usize::try_from(step - PARTS).ok();
                    kept.parts.extend(frame.zip(Part::read(note)));
                }
                Ok(step) => {
                    let frame = usize::try_from(step - FRAMES).ok();
                    kept.frames
                        .extend(frame.map(|frame| (frame, Noted::read(note))));
                }
                Err(_) => {}
            }
        }
        if !begun {
            // One that was cut before its first row: nothing was done.
            self.drop(session)?;
            return Ok(None);
        }
        Ok(Some(kept))
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

    /// What may have been said before its answer was lost.
    fn put(&self, session: &mut Session, step: u64, note: &str) -> Result<(), wire::Error> {
        let replace = format!("REPLACE INTO {} VALUES ({step}, {note})", self.table);
        session.execute(replace.as_bytes()).map(drop)
    }

    /// All databases and tables are made.
    pub(crate) fn defined(&self, session: &mut Session) -> Result<(), Error> {
        self.put(session, DEFINED, "''")
            .map_err(|e| Error::wire(format!("writing {}", self.name()), e))
    }

    /// A frame is loaded: part of its transaction.
    pub(crate) fn loaded(
        &self,
        session: &mut Session,
        frame: usize,
        noted: &Noted,
    ) -> Result<(), wire::Error> {
        // A second time, it would be refused.
        let insert = format!(
            "INSERT INTO {} VALUES ({}, {})",
            self.table,
            FRAMES + frame as u64,
            sql::literal(&noted.write())
        );
        session.execute(insert.as_bytes()).map(drop)
    }

    /// These first rows of a frame are loaded: part of the transaction of the last of them.
    pub(crate) fn part(
        &self,
        session: &mut Session,
        frame: usize,
        part: &Part,
    ) -> Result<(), wire::Error> {
        let note = format!("{} {}", part.rows, part.noted.write());
        self.put(session, PARTS + frame as u64, &sql::literal(&note))
    }

    /// The rest of a frame came too: part of its transaction.
    pub(crate) fn joined(&self, session: &mut Session, frame: usize) -> Result<(), wire::Error> {
        let step = PARTS + frame as u64;
        let delete = format!("DELETE FROM {} WHERE step = {step}", self.table);
        session.execute(delete.as_bytes()).map(drop)
    }

    /// What is there of a frame that is not whole.
    pub(crate) fn has_part(
        &self,
        session: &mut Session,
        frame: usize,
    ) -> Result<Part, wire::Error> {
        let step = PARTS + frame as u64;
        let asked = format!("SELECT note FROM {} WHERE step = {step}", self.table);
        let rows = session.ask(&asked)?;
        let note = rows.first().and_then(|row| row.first());
        Ok(note.and_then(|note| Part::read(note)).unwrap_or_default())
    }

    /// What is noted of the frame, if it is loaded.
    pub(crate) fn has(
        &self,
        session: &mut Session,
        frame: usize,
    ) -> Result<Option<Noted>, wire::Error> {
        let step = FRAMES + frame as u64;
        let asked = format!("SELECT note FROM {} WHERE step = {step}", self.table);
        let rows = session.ask(&asked)?;
        let note = rows.first().and_then(|row| row.first());
        Ok(note.map(|note| Noted::read(note)))
    }

    /// Frames that are loaded.
    pub(crate) fn count(&self, session: &mut Session) -> Result<u64, Error> {
        let asked = format!(
            "SELECT count(*) FROM {} WHERE step >= {FRAMES} AND step < {PARTS}",
            self.table
        );
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
    fn what_is_noted_is_read_as_it_is_written_and_has_room() {
        let warning = |number: u32, text: &str| Warning {
            level: "Warning".to_owned(),
            number,
            count: 70_000,
            text: text.to_owned(),
        };
        let long = "é".repeat(500);
        for (hash, warnings) in [
            (Some(0xc0d), vec![]),
            (
                None,
                vec![warning(1265, "Data truncated for column 'a b' at row 1")],
            ),
            (Some(1), vec![warning(1, &long), warning(2, &long)]),
        ] {
            let noted = Noted { hash, warnings };
            let note = noted.write();
            assert!(note.chars().count() <= NOTE, "{note}");
            let mut read = Noted::read(&note);
            assert_eq!(read.hash, hash);
            let part = Part::read(&format!("{} {note}", u64::MAX));
            assert_eq!(
                part.map(|p| (p.rows, p.noted)),
                Some((u64::MAX, read.clone()))
            );
            if noted.warnings.len() == 2 {
                assert_eq!(read.warnings.len(), 1);
                read.warnings[0].text.clone_from(&long);
                assert_eq!(read.warnings[0], noted.warnings[0]);
            } else {
                assert_eq!(read, noted);
            }
        }
        assert_eq!(Part::read("7"), None);
    }

    #[test]
    fn its_name_is_none_of_the_dump() {
        assert_eq!(Journal::of("a`b", b"").table, "`a``b`.`_backup_restore`");
        let taken = b"CREATE TABLE `_backup_restore` (x); CREATE VIEW `_backup_restore_` AS";
        assert_eq!(Journal::of("d", taken).name(), "d._backup_restore__");
    }
}
