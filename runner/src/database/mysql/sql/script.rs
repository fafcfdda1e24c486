//! Splits a dump into statements, with the rules of the SQL client: `DELIMITER`, quotes, comments.

use std::ops::Range;

use crate::database::mysql::sql::finds::Found;
use crate::database::mysql::sql::rules::{Rewrite, Rules};
use crate::database::mysql::sql::tokens::{dashes, executable, of_word};
use crate::database::mysql::sql::{MARK, OTHER};

/// So many bytes ahead tell what comes.
const AHEAD: usize = 16;
/// Longest statement that holds no rows.
const LONGEST: usize = 16 << 20;

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Between statements.
    Between,
    /// In a line of the client's own: a comment, or `DELIMITER`.
    Line,
    /// In a statement.
    Statement,
    /// In the rows of an INSERT.
    Rows,
}

/// NeedKind the text at hand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lex {
    Code,
    /// In this quote.
    Quote(u8),
    /// To the end of the line.
    Line,
    /// To `*/`.
    Block,
}

/// Reads a dump in chunks and gives what is to be sent for it.
pub struct Script {
    rules: Rules,
    input: Vec<u8>,
    at: At,
    lex: Lex,
    /// The client's line, or the statement.
    text: Vec<u8>,
    delimiter: Vec<u8>,
    refused: Option<String>,
    /// The table that was marked last.
    marked: Option<usize>,
    /// Ranges of the dump that are passed over, in their order, and how far it was read, in bytes.
    without: Vec<Range<u64>>,
    position: u64,
}

impl Script {
    /// A reader that changes what it reads as is wished.
    pub fn new(wish: Rewrite) -> Self {
        Self {
            rules: Rules::new(wish),
            input: vec![],
            at: At::Between,
            lex: Lex::Code,
            text: vec![],
            delimiter: b";".to_vec(),
            refused: None,
            marked: None,
            without: vec![],
            position: 0,
        }
    }

    /// The same with a statement before each table, by which the client says where it is: it prints
    /// [`crate::database::mysql::sql::MARK`] and the table's number, or [`crate::database::mysql::sql::OTHER`] for what is no table.
    pub fn with_marks(mut self) -> Self {
        self.marked = Some(OTHER);
        self
    }

    /// The same with what a first reading found.
    pub fn knowing(wish: Rewrite, found: &Found) -> Self {
        let mut script = Self::new(wish);
        script.rules.know(found);
        script
    }

    /// The same, which passes over these ranges of the dump: whole statements, in their order.
    pub fn without(mut self, ranges: &[Range<u64>]) -> Self {
        self.without = ranges.to_vec();
        self
    }

    /// Adds what is not passed over of the next bytes to `input`.
    fn take(&mut self, mut chunk: &[u8], input: &mut Vec<u8>) {
        while !chunk.is_empty() {
            let at = self.position;
            let next = self.without.iter().find(|range| range.end > at);
            let (end, kept) = match next {
                Some(range) if range.contains(&at) => (range.end, false),
                Some(range) => (range.start, true),
                None => (u64::MAX, true),
            };
            let n = usize::try_from(end - at).map_or(chunk.len(), |n| n.min(chunk.len()));
            let (now, rest) = chunk.split_at(n);
            if kept {
                input.extend_from_slice(now);
            }
            self.position += n as u64;
            chunk = rest;
        }
    }

    /// Takes the next bytes and adds what is to be sent to `out`.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut input = std::mem::take(&mut self.input);
        self.take(chunk, &mut input);
        let limit = input.len().saturating_sub(AHEAD);
        let read = self.read(&input, limit, out);
        input.drain(..read);
        self.input = input;
    }

    /// The end of the dump.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let input = std::mem::take(&mut self.input);
        self.read(&input, input.len(), out);
        if self.at == At::Statement {
            self.statement(&[], out);
        } else {
            out.append(&mut self.text);
        }
    }

    /// What was found so far.
    ///
    /// # Errors
    /// The text is no dump: a statement has no end.
    pub fn found(self) -> Result<Found, String> {
        match self.refused {
            Some(text) => Err(text),
            None => Ok(self.rules.found()),
        }
    }

    /// Marks the table at hand where it is another one.
    fn mark(&mut self, out: &mut Vec<u8>) {
        let table = self.rules.table();
        if self.marked.is_some_and(|marked| marked != table) {
            out.extend_from_slice(format!("SELECT '{MARK}{table}'").as_bytes());
            out.extend_from_slice(&self.delimiter);
            out.push(b'\n');
            self.marked = Some(table);
        }
    }

    /// Reads up to `limit` and gives how far it came.
    fn read(&mut self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while at < limit {
            at += match self.at {
                At::Between => self.between(&input[at..], out),
                At::Line => self.line(&input[at..limit], out),
                At::Statement => self.code(&input[at..], out),
                At::Rows => self.rows(&input[at..], limit - at, out),
            };
        }
        at.min(input.len())
    }

    fn between(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let byte = rest[0];
        if byte.is_ascii_whitespace() {
            out.push(byte);
            return 1;
        }
        // A mark of MariaDB's client, by which it takes no command of its own any more.
        let mark = executable(rest).is_some_and(|n| rest.get(n) == Some(&b'\\'));
        let command = rest.len() > 9
            && rest[..9].eq_ignore_ascii_case(b"delimiter")
            && matches!(rest[9], b' ' | b'\t');
        if byte == b'#' || rest.starts_with(b"--") || mark || command {
            self.at = At::Line;
            return 0;
        }
        if self.delimiter.len() < AHEAD && rest.starts_with(&self.delimiter) {
            out.extend_from_slice(&self.delimiter);
            return self.delimiter.len();
        }
        self.at = At::Statement;
        self.lex = Lex::Code;
        0
    }

    fn line(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        let end = memchr::memchr(b'\n', rest);
        let part = &rest[..end.map_or(rest.len(), |end| end + 1)];
        self.text.extend_from_slice(part);
        if end.is_some() {
            if self.text[..9.min(self.text.len())].eq_ignore_ascii_case(b"delimiter") {
                let word = String::from_utf8_lossy(&self.text[9..]).trim().to_owned();
                if word.is_empty() || word.len() >= AHEAD {
                    self.refuse("a DELIMITER that can't be read");
                }
                self.delimiter = word.into_bytes();
            }
            out.append(&mut self.text);
            self.at = At::Between;
        }
        part.len()
    }

    /// One step in a statement.
    fn code(&mut self, rest: &[u8], out: &mut Vec<u8>) -> usize {
        if self.lex == Lex::Code {
            if rest.starts_with(&self.delimiter) {
                let delimiter = self.delimiter.clone();
                self.statement(&delimiter, out);
                return delimiter.len();
            }
            let word = !self.text.last().copied().is_some_and(of_word);
            let values = word && rest.len() > 6 && rest[..6].eq_ignore_ascii_case(b"values");
            if (rest[0] == b'(' || values) && self.is_insert() {
                let text = std::mem::take(&mut self.text);
                let text = self.rules.insert(text);
                self.mark(out);
                out.extend_from_slice(&text);
                self.at = At::Rows;
                return 0;
            }
        }
        let (n, lex) = step(self.lex, rest, self.rules.escapes());
        self.lex = lex;
        if self.text.len() > LONGEST {
            self.refuse("a statement of more than 16 MiB that holds no rows");
            self.text.clear();
        }
        self.text.extend_from_slice(&rest[..n]);
        n
    }

    fn is_insert(&self) -> bool {
        let word = self.text.iter().take_while(|b| of_word(**b)).count();
        [&b"INSERT"[..], b"REPLACE"]
            .iter()
            .any(|verb| self.text[..word].eq_ignore_ascii_case(verb))
    }

    /// Rows, in pieces as long as can be.
    fn rows(&mut self, rest: &[u8], limit: usize, out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while at < limit {
            at += match self.lex {
                Lex::Quote(quote) if self.rules.escapes() || quote == b'`' => {
                    match memchr::memchr2(quote, b'\\', &rest[at..limit]) {
                        None => limit - at,
                        Some(0) => self.step(&rest[at..]),
                        Some(n) => n,
                    }
                }
                Lex::Code => match rest[at..limit].iter().position(|b| SIGNS[usize::from(*b)]) {
                    None if self.delimiter == b";" => limit - at,
                    None => self.step(&rest[at..]),
                    Some(_) if rest[at..].starts_with(&self.delimiter) => {
                        out.extend_from_slice(&rest[..at]);
                        out.extend_from_slice(&self.delimiter);
                        self.at = At::Between;
                        return at + self.delimiter.len();
                    }
                    Some(n) if n > 0 && self.delimiter == b";" => n,
                    Some(_) => self.step(&rest[at..]),
                },
                Lex::Quote(_) | Lex::Line | Lex::Block => self.step(&rest[at..]),
            };
        }
        out.extend_from_slice(&rest[..at.min(rest.len())]);
        at
    }

    fn step(&mut self, rest: &[u8]) -> usize {
        let (n, lex) = step(self.lex, rest, self.rules.escapes());
        self.lex = lex;
        n
    }

    fn statement(&mut self, delimiter: &[u8], out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        if let Some(text) = self.rules.statement(text) {
            self.mark(out);
            out.extend_from_slice(&text);
            out.extend_from_slice(delimiter);
        }
        self.at = At::Between;
    }

    fn refuse(&mut self, what: &str) {
        self.refused.get_or_insert_with(|| what.to_owned());
    }
}

/// What ends a run of plain bytes between rows.
const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    signs[b'\'' as usize] = true;
    signs[b'"' as usize] = true;
    signs[b'`' as usize] = true;
    signs[b'#' as usize] = true;
    signs[b'-' as usize] = true;
    signs[b'/' as usize] = true;
    signs[b';' as usize] = true;
    signs
};

/// One step: how many bytes belong together, and how the next are read.
fn step(lex: Lex, rest: &[u8], escapes: bool) -> (usize, Lex) {
    let byte = rest[0];
    match lex {
        Lex::Code => match byte {
            b'\'' | b'"' | b'`' => (1, Lex::Quote(byte)),
            b'#' => (1, Lex::Line),
            b'-' if dashes(rest) => (2, Lex::Line),
            b'/' if executable(rest).is_none() && rest.starts_with(b"/*") => (2, Lex::Block),
            _ => (1, Lex::Code),
        },
        Lex::Quote(quote) => match byte {
            b'\\' if escapes && quote != b'`' => (2.min(rest.len()), lex),
            // A doubled quote closes and opens again.
            byte if byte == quote => (1, Lex::Code),
            _ => (1, lex),
        },
        Lex::Line if byte == b'\n' => (1, Lex::Code),
        Lex::Block if rest.starts_with(b"*/") => (2, Lex::Code),
        Lex::Line | Lex::Block => (1, lex),
    }
}
