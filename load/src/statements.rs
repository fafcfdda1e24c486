//! The text of a dump but for its rows, cut into statements as the SQL client cuts it. PURE.

use crate::comments::{is_dashes, is_mark, is_plain_comment};
use crate::error::Error;

/// How the text at hand is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lex {
    Code,
    Quote(u8),
    /// To the end of the line.
    Line,
    /// To `*/`.
    Block,
}

/// The statements of a text: quotes, comments and `DELIMITER` are heeded, comments between statements left out.
pub(crate) struct Statements<'a> {
    rest: &'a [u8],
    delimiter: &'a [u8],
}

impl<'a> Statements<'a> {
    /// Those of whole statements.
    #[must_use]
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            delimiter: b";",
        }
    }

    fn line(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b'\n', self.rest).map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        line
    }

    /// Passes over what is no statement.
    fn between(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            let rest = self.rest;
            let command = rest
                .split_at_checked(9)
                .filter(|(word, _)| word.eq_ignore_ascii_case(b"delimiter"))
                .filter(|(_, rest)| matches!(rest.first(), Some(b' ' | b'\t')));
            if command.is_some() {
                let line = self.line();
                self.delimiter = line.get(9..).unwrap_or_default().trim_ascii();
            } else if rest.first() == Some(&b'#') || is_dashes(rest) || is_mark(rest) {
                self.line();
            } else if !self.delimiter.is_empty() && rest.starts_with(self.delimiter) {
                self.rest = &rest[self.delimiter.len()..];
            } else if is_plain_comment(rest) {
                let end = memchr::memmem::find(rest, b"*/").map_or(rest.len(), |at| at + 2);
                self.rest = &rest[end..];
            } else {
                return;
            }
        }
    }

    /// Bytes up to the delimiter; `None` where it does not come.
    fn end(&self) -> Option<usize> {
        // A program's own delimiter does not stand in it, and its quotes are those of its own mode.
        if self.delimiter != b";" {
            return memchr::memmem::find(self.rest, self.delimiter);
        }
        let (mut at, mut lex) = (0, Lex::Code);
        while let Some(rest) = self.rest.get(at..).filter(|rest| !rest.is_empty()) {
            let byte = rest[0];
            at += 1;
            match lex {
                Lex::Code => match byte {
                    b';' => return Some(at - 1),
                    b'\'' | b'"' | b'`' => lex = Lex::Quote(byte),
                    b'#' => lex = Lex::Line,
                    b'-' if is_dashes(rest) => lex = Lex::Line,
                    b'/' if is_plain_comment(rest) => {
                        lex = Lex::Block;
                        at += 1;
                    }
                    _ => {}
                },
                Lex::Quote(quote) if byte == b'\\' && quote != b'`' => at += 1,
                // A doubled quote closes and opens again.
                Lex::Quote(quote) if byte == quote => lex = Lex::Code,
                Lex::Line if byte == b'\n' => lex = Lex::Code,
                Lex::Block if rest.starts_with(b"*/") => {
                    lex = Lex::Code;
                    at += 1;
                }
                Lex::Quote(_) | Lex::Line | Lex::Block => {}
            }
        }
        None
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.between();
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.end() else {
            self.rest = &[];
            return Some(Err(Error::Form(
                "a statement of the dump has no end".to_owned(),
            )));
        };
        let (statement, rest) = self.rest.split_at(end);
        self.rest = &rest[self.delimiter.len()..];
        Some(Ok(statement.trim_ascii_end()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        Statements::of(text.as_bytes())
            .map(|s| String::from_utf8(s.unwrap().to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn statements_end_where_the_client_ends_them() {
        let text = "/*M!999999\\- enable the sandbox mode */ \n-- a dump; of\n--\n# more;\n/* SET @@GLOBAL.GTID_PURGED='+a;';*/\nUSE `a;``b`;\n\nSET x='it''s; \\'so\\\\', y=\"a;b\" -- one; more\n , z=1;\n/*!50003 SET a = 'x;' */ ;\nCREATE /* not; now */ TABLE t (a int);;\n";
        assert_eq!(
            cut(text),
            [
                "USE `a;``b`",
                "SET x='it''s; \\'so\\\\', y=\"a;b\" -- one; more\n , z=1",
                "/*!50003 SET a = 'x;' */",
                "CREATE /* not; now */ TABLE t (a int)",
            ]
        );
    }

    #[test]
    fn a_program_goes_to_its_own_delimiter_whatever_its_quotes_are() {
        let text = "DELIMITER ;;\nCREATE PROCEDURE p() BEGIN SELECT 'a\\'; SELECT 1; END\n;;\nDELIMITER ;\nSELECT 2;\nDELIMITER $$\nx -- it's;\n$$\nDELIMITER ;\n";
        assert_eq!(
            cut(text),
            [
                "CREATE PROCEDURE p() BEGIN SELECT 'a\\'; SELECT 1; END",
                "SELECT 2",
                "x -- it's;",
            ]
        );
    }

    #[test]
    fn a_text_that_ends_early_is_told() {
        let all: Vec<_> = Statements::of(b"SELECT 1; SELECT 'x;").collect();
        assert!(matches!(&all[..], [Ok(b"SELECT 1"), Err(Error::Form(_))]));
        assert!(cut("-- nothing\n\n").is_empty());
    }
}
