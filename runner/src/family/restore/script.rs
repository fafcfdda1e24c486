//! A plain dump of PostgreSQL as it goes by: whether it is whole, and how much it holds.

use super::super::dump::postgresql::{FOOTERS, is_text};

/// So much of a line's beginning tells what it is.
const BEGIN: usize = 64;
/// So much of the dump's end holds its closing line.
const TAIL: usize = 4096;

/// Counts tables and rows. Text in a function's body may look like a statement: the numbers are for
/// people.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Tables that are made.
    pub(super) tables: u64,
    /// Rows that are copied.
    pub(super) rows: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    line: Vec<u8>,
    end: Vec<u8>,
    copying: bool,
}

impl Script {
    /// Takes the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let room = 512usize.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        let kept = chunk.len().saturating_sub(TAIL);
        self.tail.extend_from_slice(&chunk[kept..]);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        for part in chunk.split_inclusive(|b| *b == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = BEGIN.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(&text[..room]);
            self.end
                .extend_from_slice(&text[text.len().saturating_sub(BEGIN)..]);
            let over = self.end.len().saturating_sub(BEGIN);
            self.end.drain(..over);
            if text.len() < part.len() {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        match (self.copying, self.line.as_slice()) {
            (true, b"\\.") => self.copying = false,
            (true, _) => self.rows += 1,
            (false, line) if line.starts_with(b"COPY ") => {
                self.copying = self.end.ends_with(b" FROM stdin;");
            }
            (false, line) if line.starts_with(b"CREATE TABLE ") => self.tables += 1,
            (false, line) if line.starts_with(b"INSERT INTO ") => self.rows += 1,
            _ => {}
        }
        self.line.clear();
        self.end.clear();
    }

    /// SQL, and not one of pg_dump's own formats.
    pub(super) fn is_text(&self) -> bool {
        is_text(&self.head)
    }

    /// The closing line is there.
    pub(super) fn is_whole(&self) -> bool {
        let tail = String::from_utf8_lossy(&self.tail);
        !self.copying && FOOTERS.iter().any(|footer| tail.contains(footer))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// As pg_dump 15 writes it, cut.
    const DUMP: &str = "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.t (\n    id integer NOT NULL,\n    v text\n);\n\n\nCOPY public.t (id, v) FROM stdin;\n1\tCREATE TABLE x\n2\tCOPY y FROM stdin;\nCREATE TABLE \\N\n\\.\n\n\nCREATE TABLE public.\"COPY \" (\n    x integer\n);\n--\n-- PostgreSQL database dump complete\n--\n\n";

    #[test]
    fn rows_are_never_statements_however_the_dump_comes_in_pieces() {
        for size in 1..80 {
            let mut script = Script::default();
            DUMP.as_bytes().chunks(size).for_each(|c| script.feed(c));
            assert_eq!((script.tables, script.rows), (2, 3), "{size}");
            assert!(script.is_text() && script.is_whole(), "{size}");
        }
    }

    #[test]
    fn what_is_cut_off_or_no_text_is_seen() {
        let mut script = Script::default();
        script.feed(&DUMP.as_bytes()[..DUMP.len() - 20]);
        assert!(!script.is_whole());
        let mut custom = Script::default();
        custom.feed(b"PGDMP\x01\x0e");
        assert!(!custom.is_text());
    }
}
