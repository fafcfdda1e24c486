//! What stands where in a file, and its small form for a manifest.

use std::io;
use std::ops::Range;

use crate::{Piece, Section};

mod text;

/// Longest text of a key that is kept, in bytes; a longer one is left out.
pub const KEY: usize = 128;

/// What a frame holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Where it belongs.
    pub section: Section,
    /// Database that must be in use for it; empty in a dump without USE.
    pub database: String,
    /// Table, for [`Section::Data`].
    pub table: String,
    /// Rows in it.
    pub rows: u64,
    /// The text of the key of its first row; empty where there is none.
    pub first_key: String,
}

impl From<&Piece> for Meta {
    fn from(piece: &Piece) -> Self {
        Self {
            section: piece.section,
            database: piece.database.clone(),
            table: piece.table.clone(),
            rows: piece.rows,
            first_key: piece.first_key.clone(),
        }
    }
}

/// A frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where it belongs.
    pub section: Section,
    /// Database that must be in use for it; empty in a dump without USE.
    pub database: &'a str,
    /// Table, for [`Section::Data`].
    pub table: &'a str,
    /// Rows in it.
    pub rows: u64,
    /// The text of the key of its first row; empty where there is none, or it is not kept.
    pub first_key: &'a str,
    /// Where it begins in the file, in bytes, before encryption.
    pub at: u64,
    /// Its length there.
    pub stored: u64,
    /// Where its text begins in the whole text, in bytes.
    pub raw_at: u64,
    /// Length of its text.
    pub raw: u64,
}

/// The frames of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    runs: Vec<Run>,
    entries: Vec<Entry>,
    stored: u64,
    raw: u64,
}

/// Frames that follow each other and hold the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    section: Section,
    database: String,
    table: String,
    /// Number of its first frame.
    first: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    rows: u64,
    first_key: Box<str>,
    at: u64,
    raw_at: u64,
}

impl Frames {
    /// Adds the frame that comes next in the file.
    ///
    /// # Errors
    /// The file is longer than a number can say.
    pub fn add(&mut self, meta: Meta, raw: u64, stored: u64) -> io::Result<()> {
        let sums = self
            .stored
            .checked_add(stored)
            .zip(self.raw.checked_add(raw));
        let Some((end, raw_end)) = sums else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file is longer than 2^64 bytes",
            ));
        };
        let same = self.runs.last().is_some_and(|run| {
            run.section == meta.section && run.database == meta.database && run.table == meta.table
        });
        if !same {
            self.runs.push(Run {
                section: meta.section,
                database: meta.database,
                table: meta.table,
                first: self.entries.len(),
            });
        }
        let key = Some(meta.first_key).filter(|key| key.len() <= KEY);
        self.entries.push(Entry {
            rows: meta.rows,
            first_key: key.unwrap_or_default().into_boxed_str(),
            at: self.stored,
            raw_at: self.raw,
        });
        (self.stored, self.raw) = (end, raw_end);
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all of them in the file; what follows is the seek table.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Bytes of the whole text.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.raw
    }

    /// All, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        self.runs
            .iter()
            .enumerate()
            .flat_map(|(n, _)| self.of_run(n))
    }

    /// Those of a section.
    pub fn of_section(&self, section: Section) -> impl Iterator<Item = Frame<'_>> {
        self.of(move |run| run.section == section)
    }

    /// Those that hold the rows of a table; its database is empty in a dump without USE.
    pub fn of_table<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = Frame<'a>> {
        self.of(move |run| {
            run.section == Section::Data && run.database == database && run.table == table
        })
    }

    fn of<'a>(&'a self, wanted: impl Fn(&Run) -> bool + 'a) -> impl Iterator<Item = Frame<'a>> {
        self.runs
            .iter()
            .enumerate()
            .filter(move |(_, run)| wanted(run))
            .flat_map(|(n, _)| self.of_run(n))
    }

    /// The numbers of the frames of a run.
    fn numbers(&self, run: usize) -> Range<usize> {
        let first = |n: usize| self.runs.get(n).map_or(self.entries.len(), |r| r.first);
        first(run)..first(run + 1)
    }

    fn of_run(&self, number: usize) -> impl Iterator<Item = Frame<'_>> {
        let run = self.runs.get(number);
        self.numbers(number).filter_map(move |n| {
            let (run, entry) = (run?, self.entries.get(n)?);
            let (end, raw_end) = self
                .entries
                .get(n + 1)
                .map_or((self.stored, self.raw), |next| (next.at, next.raw_at));
            Some(Frame {
                section: run.section,
                database: &run.database,
                table: &run.table,
                rows: entry.rows,
                first_key: &entry.first_key,
                at: entry.at,
                stored: end - entry.at,
                raw_at: entry.raw_at,
                raw: raw_end - entry.raw_at,
            })
        })
    }
}

/// The ranges of the file that hold these frames, as few as there can be. Frames in the order of the file.
pub fn ranges<'a>(frames: impl IntoIterator<Item = Frame<'a>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = vec![];
    for frame in frames {
        let end = frame.at + frame.stored;
        match all.last_mut() {
            Some(last) if last.end == frame.at => last.end = end,
            _ => all.push(frame.at..end),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn spans<'a>(frames: impl IntoIterator<Item = Frame<'a>>) -> Vec<(u64, u64)> {
        ranges(frames)
            .into_iter()
            .map(|r| (r.start, r.end))
            .collect()
    }

    fn meta(section: Section, database: &str, table: &str) -> Meta {
        Meta {
            section,
            database: database.into(),
            table: table.into(),
            ..Meta::default()
        }
    }

    #[test]
    fn the_frames_of_a_table_are_found_and_become_few_ranges() {
        let mut frames = Frames::default();
        for (section, database, table, raw, stored) in [
            (Section::Head, "", "", 10, 7),
            (Section::Schema, "a", "", 100, 50),
            (Section::Data, "a", "t", 1000, 100),
            (Section::Data, "a", "t", 1000, 110),
            (Section::Data, "a", "u", 10, 5),
            (Section::Data, "b", "t", 10, 6),
            (Section::Programs, "a", "t", 10, 8),
            (Section::Foot, "", "", 3, 4),
        ] {
            frames
                .add(meta(section, database, table), raw, stored)
                .unwrap();
        }
        let places = |f: Frame<'_>| (f.at, f.stored, f.raw_at, f.raw);
        let of_table: Vec<_> = frames.of_table("a", "t").map(places).collect();
        assert_eq!(of_table, [(57, 100, 110, 1000), (157, 110, 1110, 1000)]);
        assert_eq!(spans(frames.of_table("a", "t")), [(57, 267)]);
        assert_eq!(spans(frames.of_table("b", "t")), [(272, 278)]);
        assert_eq!(spans(frames.of_table("b", "u")), []);
        assert_eq!(spans(frames.of_section(Section::Foot)), [(286, 290)]);
        let some = frames.iter().filter(|f| f.table == "t");
        assert_eq!(spans(some), [(57, 267), (272, 286)]);
        assert_eq!(spans(frames.iter()), [(0, 290)]);
        assert_eq!(
            (frames.len(), frames.stored(), frames.raw()),
            (8, 290, 2143)
        );
    }

    #[test]
    fn a_file_beyond_numbers_is_an_error() {
        let mut frames = Frames::default();
        frames.add(Meta::default(), u64::MAX, 1).unwrap();
        assert!(frames.add(Meta::default(), 1, 1).is_err());
        assert_eq!(frames.len(), 1);
    }
}
