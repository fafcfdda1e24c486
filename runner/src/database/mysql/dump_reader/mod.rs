//! Reads the text of a dump as it streams by: tables, rows, an order-independent hash of each
//! table's rows, the server's version and the recorded position, and whether the dump is whole. What
//! it finds is consistent with the dump because it is made from it.
//!
//! A dump is whole by its structure: it ends between two statements, has put back every setting that
//! it put away at its beginning, and then closes with the client's last line, once. The words of that
//! line in a row, a program or a name close nothing.
//!
//! It never holds a row: a row within one chunk is hashed where it lies, a row across chunks by
//! a streaming hash of the same value.

mod lines;
mod summary;
mod syntax;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use memchr::{memchr, memchr3};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::database::contents::Table;
use crate::stream::pipeline::Observer;

use syntax::{NAME, Syntax};

pub use summary::Summary;

/// Of a line that is looked at, so many bytes are kept.
const LINE: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first bytes of a line are being gathered.
    Start,
    /// A line worth reading is being gathered.
    Text,
    /// To the end of the line.
    Skip,
    /// Between `INSERT` and `VALUES`.
    Header { quoted: bool, matched: usize },
    /// Between rows.
    Between,
    /// In a row, this deep in parentheses.
    Row { depth: u32 },
    /// In a string of a row.
    Text1 { depth: u32 },
    /// After a backslash in a string of a row.
    Escape { depth: u32 },
}

/// Where a line began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Began {
    /// Between statements.
    #[default]
    Top,
    /// In a statement.
    Code,
    /// In something quoted or a comment: it says nothing.
    Hidden,
}

#[derive(Default)]
struct Sum {
    rows: u64,
    hash: u128,
}

/// The reader; feed it chunks, then [`DumpReader::finish`].
pub struct DumpReader {
    state: State,
    syntax: Syntax,
    /// Where the line at hand began.
    began: Began,
    /// Opening lines, of each kind.
    heads: [u32; lines::HEADS.len()],
    /// Rows went on where no row of a client does.
    torn: bool,
    /// Closing lines.
    closings: u32,
    /// Nothing but blank lines came after the last of them.
    closed: bool,
    line: Vec<u8>,
    /// A statement whose name goes on in the next line, so far.
    named: String,
    database: String,
    programs: bool,
    /// The next line belongs to a GTID set.
    continued: bool,
    summary: Summary,
    sums: Vec<Sum>,
    index: HashMap<(String, String), usize>,
    current: usize,
    name: Vec<u8>,
    name_done: bool,
    /// Characters of the name at hand, be it the table's or a column's.
    name_length: usize,
    open: Option<Box<Xxh3>>,
}

impl Default for DumpReader {
    fn default() -> Self {
        Self {
            state: State::Start,
            syntax: Syntax::default(),
            began: Began::Top,
            heads: [0; lines::HEADS.len()],
            torn: false,
            closings: 0,
            closed: false,
            line: Vec::with_capacity(LINE),
            named: String::new(),
            database: String::new(),
            programs: false,
            continued: false,
            summary: Summary::default(),
            sums: vec![],
            index: HashMap::new(),
            current: 0,
            name: vec![],
            name_done: false,
            name_length: 0,
            open: None,
        }
    }
}

impl DumpReader {
    /// Reads the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut at = 0;
        // Where the open row begins in this chunk; 0 if it began in an earlier one.
        let mut row = 0;
        while at < chunk.len() {
            let rest = &chunk[at..];
            at += match self.state {
                State::Start => self.start(rest),
                State::Text => self.text(rest),
                State::Skip => self.skip(rest),
                State::Header { quoted, matched } => self.header(rest, quoted, matched),
                State::Between => {
                    let n = self.between(rest);
                    if matches!(self.state, State::Row { .. }) {
                        row = at + n - 1;
                    }
                    n
                }
                State::Row { depth } => {
                    let n = self.row(rest, depth);
                    if self.state == State::Between {
                        self.close_row(&chunk[row..at + n]);
                    }
                    n
                }
                State::Text1 { depth } => self.string(rest, depth),
                State::Escape { depth } => {
                    self.state = State::Text1 { depth };
                    1
                }
            };
        }
        if matches!(
            self.state,
            State::Row { .. } | State::Text1 { .. } | State::Escape { .. }
        ) {
            self.open
                .get_or_insert_with(|| Box::new(Xxh3::new()))
                .update(&chunk[row..]);
        }
    }

    /// What the dump held. A last line without its newline does not count as read.
    pub fn finish(mut self) -> Summary {
        self.summary.flaw = self.flaw();
        self.summary.whole = self.summary.flaw.is_empty();
        for (table, sum) in self.summary.tables.iter_mut().zip(&self.sums) {
            table.rows = sum.rows;
            table.hash = format!("{:032x}", sum.hash);
        }
        self.summary
    }

    /// What it lacks of a whole dump.
    fn flaw(&self) -> &'static str {
        let at_rest = self.line.is_empty() && self.state == State::Start;
        if !at_rest || !self.syntax.is_top() || !self.syntax.is_usual() {
            "ends in the middle of a statement"
        } else if self.torn || self.syntax.is_broken() {
            "is torn: a part of it is missing"
        } else if self.closings > 1
            || self.heads.iter().any(|n| *n > 1)
            || self.syntax.begins_again()
        {
            "is more than one dump"
        } else if self.closings == 0 {
            "has no closing line \"-- Dump completed\""
        } else if !self.closed {
            "goes on after its closing line"
        } else {
            ""
        }
    }

    fn start(&mut self, rest: &[u8]) -> usize {
        if self.line.is_empty() {
            self.began = if self.syntax.is_top() {
                Began::Top
            } else if self.syntax.is_open() {
                Began::Code
            } else {
                Began::Hidden
            };
            let telling = matches!(
                rest[0],
                b'\n' | b'I' | b'R' | b'C' | b'U' | b'D' | b'-' | b'/' | b'S'
            );
            let awaited = self.continued || !self.named.is_empty();
            // What hides a line may be of a dump that was cut, and the line of another one's head.
            let silent = self.began == Began::Hidden && self.syntax.is_in_name();
            if !awaited && (!telling || silent) {
                self.closed = false;
                self.state = State::Skip;
                return 0;
            }
        }
        let want = 8 - self.line.len();
        let n = want.min(rest.len());
        if let Some(end) = memchr(b'\n', &rest[..n]) {
            self.line.extend_from_slice(&rest[..end]);
            self.syntax.feed(&self.line);
            self.syntax.feed(b"\n");
            self.end_of_line();
            return end + 1;
        }
        self.line.extend_from_slice(&rest[..n]);
        if self.line.len() == 8 {
            let insert = self.line.starts_with(b"INSERT ") || self.line.starts_with(b"REPLACE ");
            if insert && !self.programs && self.began == Began::Top {
                self.closed = false;
                self.line.clear();
                self.name.clear();
                self.name_done = false;
                self.state = State::Header {
                    quoted: false,
                    matched: 0,
                };
            } else {
                self.syntax.feed(&self.line);
                self.state = State::Text;
            }
        }
        n
    }

    fn text(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'\n', rest);
        let part = &rest[..end.unwrap_or(rest.len())];
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..room.min(part.len())]);
        self.syntax.feed(part);
        match end {
            Some(end) => {
                self.syntax.feed(b"\n");
                self.end_of_line();
                end + 1
            }
            None => rest.len(),
        }
    }

    fn skip(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        self.syntax.feed(&rest[..end]);
        if rest[..end].ends_with(b"\n") {
            self.state = State::Start;
        }
        end
    }

    fn header(&mut self, rest: &[u8], mut quoted: bool, mut matched: usize) -> usize {
        const VALUES: &[u8] = b"VALUES";
        for (i, &byte) in rest.iter().enumerate() {
            if byte == b'`' {
                // A doubled quote closes and opens again; the name keeps one of the two.
                if !quoted && !self.name_done && !self.name.is_empty() {
                    self.name.push(b'`');
                }
                quoted = !quoted;
                (matched, self.name_length) = (0, 0);
                continue;
            }
            if quoted {
                self.name_length += usize::from(byte & 0xc0 != 0x80);
                self.torn |= self.name_length > NAME;
                if !self.name_done {
                    self.name.push(byte);
                }
                continue;
            }
            if !self.name.is_empty() {
                self.name_done = true;
            }
            if byte == b';' {
                self.state = State::Skip;
                return i + 1;
            }
            if byte == b'\n' {
                self.syntax.enter();
                self.state = State::Start;
                return i + 1;
            }
            matched = if byte == VALUES[matched] {
                matched + 1
            } else {
                usize::from(byte == VALUES[0])
            };
            if matched == VALUES.len() {
                let name = String::from_utf8_lossy(&self.name).into_owned();
                self.current = self.table(name);
                self.state = State::Between;
                return i + 1;
            }
        }
        self.state = State::Header { quoted, matched };
        rest.len()
    }

    fn between(&mut self, rest: &[u8]) -> usize {
        for (i, &byte) in rest.iter().enumerate() {
            match byte {
                b'(' => {
                    self.state = State::Row { depth: 1 };
                    return i + 1;
                }
                b';' => {
                    self.state = State::Skip;
                    return i + 1;
                }
                b',' | b' ' | b'\n' => {}
                _ => self.torn = true,
            }
        }
        rest.len()
    }

    fn row(&mut self, rest: &[u8], depth: u32) -> usize {
        let Some(i) = memchr3(b'\'', b'(', b')', rest) else {
            return rest.len();
        };
        self.state = match rest[i] {
            b'\'' => State::Text1 { depth },
            b'(' => State::Row { depth: depth + 1 },
            _ if depth == 1 => State::Between,
            _ => State::Row { depth: depth - 1 },
        };
        i + 1
    }

    fn string(&mut self, rest: &[u8], depth: u32) -> usize {
        let Some(i) = memchr3(b'\'', b'\\', b'\n', rest) else {
            return rest.len();
        };
        match rest[i] {
            b'\'' => self.state = State::Row { depth },
            b'\\' => self.state = State::Escape { depth },
            // Clients write it as `\n`.
            _ => self.torn = true,
        }
        i + 1
    }

    fn close_row(&mut self, text: &[u8]) {
        let hash = match self.open.take() {
            Some(mut open) => {
                open.update(text);
                open.digest128()
            }
            None => xxh3_128(text),
        };
        if let Some(sum) = self.sums.get_mut(self.current) {
            sum.rows += 1;
            sum.hash = sum.hash.wrapping_add(hash);
        }
    }

    fn end_of_line(&mut self) {
        self.state = State::Start;
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.closed = false;
            self.take_line(&String::from_utf8_lossy(&line));
        }
        self.line = line;
        self.line.clear();
    }

    fn table(&mut self, name: String) -> usize {
        let key = (self.database.clone(), name);
        if let Some(index) = self.index.get(&key) {
            return *index;
        }
        let index = self.sums.len();
        self.sums.push(Sum::default());
        self.summary.tables.push(Table {
            database: key.0.clone(),
            name: key.1.clone(),
            ..Table::default()
        });
        self.index.insert(key, index);
        index
    }
}

impl Observer for DumpReader {
    type Seen = Summary;

    fn feed(&mut self, chunk: &[u8]) {
        Self::feed(self, chunk);
    }

    fn finish(self) -> Summary {
        Self::finish(self)
    }
}
