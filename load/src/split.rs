//! The text of a dump as it comes, cut into statements where the SQL client cuts it. A statement is held until its end has come,
//! and no other is. PURE.

use std::ops::Range;

use crate::comments::{is_dashes, is_mark, is_plain_comment};
use crate::kind::Kind;
use crate::settings::Settings;

/// So many bytes ahead tell what comes.
const AHEAD: usize = 32;
/// Longest statement: no server takes a longer one.
const LONGEST: usize = 1 << 30;
/// Longest delimiter.
const DELIMITER: usize = 16;

/// How the text at hand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lex {
    Code,
    Quote(u8),
    /// To the end of the line.
    Line,
    /// To `*/`.
    Block,
}

/// Cuts. Text goes in by [`Splitter::feed`], statements come out of [`Splitter::next`].
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// What is before it was given away.
    begin: usize,
    /// What is before it was looked at.
    at: usize,
    inside: bool,
    lex: Lex,
    /// In `/*! … */`, whose text is code.
    executed: bool,
    delimiter: Vec<u8>,
    settings: Settings,
    /// A backslash in a string stands before a character that is none of the string's end.
    escapes: bool,
    ended: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            buffer: vec![],
            begin: 0,
            at: 0,
            inside: false,
            lex: Lex::Code,
            executed: false,
            delimiter: b";".to_vec(),
            settings: Settings::default(),
            escapes: true,
            ended: false,
        }
    }
}

impl Splitter {
    /// The next bytes.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.begin);
        self.at -= self.begin;
        self.begin = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// No more comes.
    pub(crate) fn finish(&mut self) {
        self.ended = true;
    }

    /// The text of a statement that was given.
    pub(crate) fn text(&self, of: Range<usize>) -> &[u8] {
        self.buffer.get(of).unwrap_or_default().trim_ascii_end()
    }

    /// Heeds what a statement sets: how strings are read that come after it.
    pub(crate) fn heed(&mut self, kind: &Kind) {
        if let Kind::Set(_) = kind {
            self.settings.heed(kind);
            self.escapes = !self.settings.mode().contains("NO_BACKSLASH_ESCAPES");
        }
    }

    /// What is set where the text is read.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The next whole statement, until the next [`Splitter::feed`]; `None` if more text is needed, or there is no more.
    ///
    /// # Errors
    /// The client may cut it otherwise, in words that follow "it".
    pub(crate) fn next(&mut self) -> Result<Option<Range<usize>>, &'static str> {
        if !self.inside && !self.between()? {
            return Ok(None);
        }
        self.statement()
    }

    /// More text may change what is seen.
    fn is_short(&self, at: usize) -> bool {
        !self.ended && self.buffer.len() - at < AHEAD
    }

    /// Passes over what is no statement; true if one begins.
    fn between(&mut self) -> Result<bool, &'static str> {
        loop {
            let blanks = self.buffer[self.at..].iter();
            self.at += blanks.take_while(|b| b.is_ascii_whitespace()).count();
            self.begin = self.at;
            let rest = &self.buffer[self.at..];
            if rest.is_empty() || self.is_short(self.at) {
                return Ok(false);
            }
            let command = rest
                .split_at_checked(9)
                .filter(|(word, _)| word.eq_ignore_ascii_case(b"delimiter"))
                .is_some_and(|(_, rest)| matches!(rest.first(), Some(b' ' | b'\t')));
            if command || rest[0] == b'#' || is_dashes(rest) || is_mark(rest) {
                let Some(end) = memchr::memchr(b'\n', rest).or(self.ended.then_some(rest.len()))
                else {
                    return Ok(false);
                };
                if command {
                    self.delimiter = delimiter(&rest[9..end])?;
                }
                self.at += (end + 1).min(rest.len());
            } else if rest.starts_with(&self.delimiter) {
                self.at += self.delimiter.len();
            } else if is_plain_comment(rest) {
                let Some(end) = memchr::memmem::find(rest, b"*/") else {
                    if self.ended {
                        return Err("has a comment without an end");
                    }
                    return Ok(false);
                };
                self.at += end + 2;
            } else {
                (self.inside, self.lex, self.executed) = (true, Lex::Code, false);
                return Ok(true);
            }
        }
    }

    fn statement(&mut self) -> Result<Option<Range<usize>>, &'static str> {
        while self.at < self.buffer.len() {
            let rest = &self.buffer[self.at..];
            match self.lex {
                Lex::Code => {
                    let plain = rest
                        .iter()
                        .position(|b| SIGNS[usize::from(*b)] || *b == self.delimiter[0]);
                    let Some(plain) = plain else {
                        self.at = self.buffer.len();
                        break;
                    };
                    self.at += plain;
                    if self.is_short(self.at) {
                        break;
                    }
                    if self.buffer[self.at..].starts_with(&self.delimiter) {
                        return self.end().map(Some);
                    }
                    self.sign()?;
                }
                Lex::Quote(quote) => {
                    let found = if self.escapes && quote != b'`' {
                        memchr::memchr2(quote, b'\\', rest)
                    } else {
                        memchr::memchr(quote, rest)
                    };
                    let Some(found) = found else {
                        self.at = self.buffer.len();
                        break;
                    };
                    if rest[found] == quote {
                        // A doubled quote closes and opens again.
                        self.lex = Lex::Code;
                        self.at += found + 1;
                    } else if found + 1 < rest.len() {
                        self.at += found + 2;
                    } else {
                        self.at += found;
                        break;
                    }
                }
                Lex::Line => {
                    let end = memchr::memchr(b'\n', rest);
                    self.at += end.map_or(rest.len(), |end| end + 1);
                    if end.is_some() {
                        self.lex = Lex::Code;
                    }
                }
                Lex::Block => {
                    let end = memchr::memmem::find(rest, b"*/");
                    // A star may be the last byte that has come.
                    self.at += end.map_or(rest.len() - 1, |end| end + 2);
                    if end.is_none() {
                        break;
                    }
                    self.lex = Lex::Code;
                }
            }
        }
        if self.buffer.len() - self.begin > LONGEST {
            return Err("has a statement of more than 1 GiB");
        }
        if self.ended {
            return Err("has a statement without an end");
        }
        Ok(None)
    }

    /// The statement ends at the delimiter.
    fn end(&mut self) -> Result<Range<usize>, &'static str> {
        if self.executed {
            return Err("has a delimiter in a comment that is executed");
        }
        let statement = self.begin..self.at;
        self.at += self.delimiter.len();
        (self.begin, self.inside) = (self.at, false);
        Ok(statement)
    }

    /// A character that may mean more than itself.
    fn sign(&mut self) -> Result<(), &'static str> {
        let rest = &self.buffer[self.at..];
        let byte = rest[0];
        self.at += 1;
        match byte {
            b'\'' | b'"' | b'`' => self.lex = Lex::Quote(byte),
            b'#' => self.lex = Lex::Line,
            b'-' if is_dashes(rest) => self.lex = Lex::Line,
            b'/' if is_plain_comment(rest) => {
                self.lex = Lex::Block;
                self.at += 1;
            }
            b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*+") => self.executed = true,
            b'*' if self.executed && rest.starts_with(b"*/") => {
                self.executed = false;
                self.at += 1;
            }
            b'\\' => {
                return Err(
                    "has a backslash outside of quotes, which may be a command of the client",
                );
            }
            0 => return Err("has a NUL outside of quotes"),
            _ => {}
        }
        Ok(())
    }
}

/// What ends a run of plain bytes in code.
const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let mut n = 0;
    let all = b"'\"`#-/*\\\0";
    while n < all.len() {
        signs[all[n] as usize] = true;
        n += 1;
    }
    signs
};

fn delimiter(line: &[u8]) -> Result<Vec<u8>, &'static str> {
    let word = line.trim_ascii();
    let odd = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'\\' | b'\'' | b'"' | b'`');
    if word.is_empty() || word.len() > DELIMITER || word.iter().any(odd) || line.ends_with(b"\r") {
        return Err("has a DELIMITER that can't be read for sure");
    }
    Ok(word.to_vec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Cut from pieces of so many bytes.
    fn cut(text: &[u8], piece: usize) -> Result<Vec<String>, &'static str> {
        let mut splitter = Splitter::default();
        let mut all = vec![];
        for chunk in text.chunks(piece).map(Some).chain([None]) {
            match chunk {
                Some(chunk) => splitter.feed(chunk),
                None => splitter.finish(),
            }
            while let Some(of) = splitter.next()? {
                let text = splitter.text(of);
                all.push(String::from_utf8_lossy(text).into_owned());
            }
        }
        Ok(all)
    }

    #[test]
    fn statements_end_where_the_client_ends_them_wherever_the_text_is_cut() {
        let text = "/*M!999999\\- enable the sandbox mode */ \n-- a dump; of\n--\n# more;\n/* SET @@GLOBAL.GTID_PURGED='+a;';*/\nUSE `a;``b\\`;\n\nSET x='it''s; \\'so\\\\', y=\"a;b\" -- one; more\n , z=1;\n/*!50003 SET a = 'x;' */ ;\nCREATE /* not; now **/ TABLE t (a int);;\nDELIMITER ;;\nCREATE PROCEDURE p() BEGIN SELECT 'a\\';;'; SELECT 1; END\n;;\nDELIMITER ;\nSELECT 2-1--1;\ndelimiter $$\nx -- it's;$$\n;\n$$\nDELIMITER ;\n";
        let wanted = [
            "USE `a;``b\\`",
            "SET x='it''s; \\'so\\\\', y=\"a;b\" -- one; more\n , z=1",
            "/*!50003 SET a = 'x;' */",
            "CREATE /* not; now **/ TABLE t (a int)",
            "CREATE PROCEDURE p() BEGIN SELECT 'a\\';;'; SELECT 1; END",
            "SELECT 2-1--1",
            "x -- it's;$$\n;",
        ];
        for piece in [1, 2, 3, 7, 31, 64, 10_000] {
            assert_eq!(cut(text.as_bytes(), piece).unwrap(), wanted, "{piece}");
        }
    }

    #[test]
    fn what_the_client_may_cut_otherwise_is_told() {
        for text in [
            "SELECT 1; SELECT 'x;",
            "SELECT 1",
            "/* x",
            "SELECT 1 \\g\n;",
            "SELECT \0;",
            "/*!50003 SET x = 1; SET y = 2 */;",
            "DELIMITER \n;",
            "DELIMITER ;;\r\nSELECT 1;;",
            "DELIMITER '\n;",
        ] {
            for piece in [1, 100] {
                assert!(cut(text.as_bytes(), piece).is_err(), "{text:?}");
            }
        }
        assert!(cut(b"-- nothing\n\n", 1).unwrap().is_empty());
    }

    #[test]
    fn a_backslash_is_what_the_mode_says() {
        let mut splitter = Splitter {
            escapes: false,
            ..Splitter::default()
        };
        splitter.feed(b"SET x='\\'; SELECT '\\';");
        splitter.finish();
        let of = splitter.next().unwrap().unwrap();
        assert_eq!(splitter.text(of), b"SET x='\\'");
    }

    proptest::proptest! {
        #[test]
        fn where_the_text_is_cut_changes_nothing(text in "[a;'\"`\\\\/*!#\\- \n]{0,60}", piece in 1usize..9) {
            let text = format!("{text};");
            proptest::prop_assert_eq!(cut(text.as_bytes(), piece), cut(text.as_bytes(), 1000));
        }
    }
}
