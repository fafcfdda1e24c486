//! Where in a dump's text one stands, as the client that loads it reads it: between statements, in
//! one, in something quoted, in a comment. Rows are read elsewhere and do not come by here. PURE.

use std::collections::BTreeSet;

/// So much of a statement is looked at.
const HEAD: usize = 1024;
/// No name has more characters: that of a column of a view has so many at most.
pub(super) const NAME: usize = 256;
/// No server is of this version: what stands under it is a comment.
const NEVER: &[u8] = b"!999999";

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Between statements.
    Top,
    /// In a statement.
    Code,
    /// In something that this character closes.
    Quoted { by: u8, escaped: bool },
    /// After one dash, or two, which with a blank begin a comment.
    Dashes { two: bool, top: bool },
    /// In a comment to the end of the line.
    Line { top: bool },
    /// After a slash, or a slash and a star.
    Slash { star: bool, top: bool },
    /// After `/*M`, which a `!` may follow.
    SlashStarM { top: bool },
    /// In a comment to `*/`.
    Block { star: bool, top: bool },
}

/// Follows the text.
#[derive(Debug)]
pub(super) struct Syntax {
    place: Place,
    /// In `/*! … */`, whose text is code.
    executed: bool,
    /// A star in it, which a slash may follow.
    star: bool,
    delimiter: Vec<u8>,
    /// So many of its bytes have come by.
    matched: usize,
    /// In the mode NO_BACKSLASH_ESCAPES.
    plain: bool,
    head: Vec<u8>,
    /// Settings that were put away at the beginning.
    saved: BTreeSet<String>,
    /// Those that were put back.
    restored: BTreeSet<String>,
    /// One was put away twice.
    again: bool,
    /// Characters of the name at hand.
    name: usize,
    /// A name was met that none can be: what closes it opened another.
    broken: bool,
}

impl Default for Syntax {
    fn default() -> Self {
        Self {
            place: Place::Top,
            executed: false,
            star: false,
            delimiter: b";".to_vec(),
            matched: 0,
            plain: false,
            head: vec![],
            saved: BTreeSet::new(),
            restored: BTreeSet::new(),
            again: false,
            name: 0,
            broken: false,
        }
    }
}

impl Syntax {
    /// Between statements.
    pub(super) fn is_top(&self) -> bool {
        self.place == Place::Top
    }

    /// In nothing that hides what a line says: no comment of several lines, nothing quoted.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.place, Place::Top | Place::Code)
    }

    /// In a name.
    pub(super) fn is_in_name(&self) -> bool {
        matches!(self.place, Place::Quoted { by: b'`', .. })
    }

    /// Statements end with a semicolon, as they do outside of programs.
    pub(super) fn is_usual(&self) -> bool {
        self.delimiter == b";"
    }

    /// All settings that were put away have been put back.
    pub(super) fn is_restored(&self) -> bool {
        self.saved.is_subset(&self.restored)
    }

    /// A second head was met: the settings were put away twice.
    pub(super) fn begins_again(&self) -> bool {
        self.again
    }

    /// What was read can't be the text of a client from its beginning on.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// From here on statements end so; what stands before it is no statement.
    pub(super) fn delimit(&mut self, by: &[u8]) {
        self.delimiter = by.to_vec();
        self.matched = 0;
        self.head.clear();
        (self.place, self.executed) = (Place::Top, false);
    }

    /// A statement has begun that was read elsewhere, and goes on.
    pub(super) fn enter(&mut self) {
        self.place = Place::Code;
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, text: &[u8]) {
        for &byte in text {
            self.take(byte);
        }
    }

    fn take(&mut self, byte: u8) {
        use Place::{Block, Code, Dashes, Line, Quoted, Slash, SlashStarM, Top};
        let before = |top: bool| if top { Top } else { Code };
        match self.place {
            Top if byte.is_ascii_whitespace() => {}
            Top | Code => self.code(byte),
            Quoted { escaped: true, by } => self.place = Quoted { by, escaped: false },
            Quoted { by, .. } if byte == by => self.place = Code,
            Quoted { by, .. } if byte == b'\\' && by != b'`' && !self.plain => {
                self.place = Quoted { by, escaped: true };
            }
            Quoted { by: b'`', .. } => {
                self.name += usize::from(byte & 0xc0 != 0x80);
                self.broken |= self.name > NAME;
            }
            Quoted { .. } => {}
            Dashes { two: false, top } if byte == b'-' => self.place = Dashes { two: true, top },
            Dashes { two: true, .. } if byte == b'-' => {
                self.place = Dashes {
                    two: true,
                    top: false,
                };
            }
            Dashes { two: true, top } if byte == b'\n' => self.place = before(top),
            Dashes { two: true, top } if byte.is_ascii_whitespace() || byte.is_ascii_control() => {
                self.place = Line { top };
            }
            Dashes { .. } | Slash { star: false, .. } if byte != b'*' => {
                self.place = Code;
                self.code(byte);
            }
            Dashes { .. } => self.place = Code,
            Line { top } if byte == b'\n' => self.place = before(top),
            Line { .. } => {}
            Slash { star: false, top } => self.place = Slash { star: true, top },
            Slash { star: true, .. } if byte == b'!' => self.execute(),
            Slash { star: true, top } if byte == b'M' => self.place = SlashStarM { top },
            SlashStarM { .. } if byte == b'!' => self.execute(),
            Slash { star: true, top } | SlashStarM { top } => {
                let star = byte == b'*';
                self.place = Block { star, top };
            }
            Block { star: true, top } if byte == b'/' => self.place = before(top),
            Block { top, .. } => {
                let star = byte == b'*';
                self.place = Block { star, top };
            }
        }
        let in_statement = matches!(self.place, Code | Quoted { .. });
        if in_statement && self.head.len() < HEAD {
            self.head.push(byte);
        }
    }

    fn execute(&mut self) {
        (self.place, self.executed, self.star) = (Place::Code, true, false);
    }

    fn code(&mut self, byte: u8) {
        let top = self.is_top();
        if self.executed {
            let closed = self.star && byte == b'/';
            self.star = byte == b'*';
            if closed {
                self.executed = false;
                if self.head.starts_with(NEVER) {
                    self.head.clear();
                    self.place = Place::Top;
                }
                return;
            }
        } else if self.delimiter.get(self.matched) == Some(&byte) {
            self.matched += 1;
            self.place = Place::Code;
            if self.matched == self.delimiter.len() {
                self.end();
            }
            return;
        }
        (self.matched, self.name) = (0, 0);
        self.place = match byte {
            b'\'' | b'"' | b'`' => Place::Quoted {
                by: byte,
                escaped: false,
            },
            b'-' => Place::Dashes { two: false, top },
            b'#' => Place::Line { top },
            b'/' => Place::Slash { star: false, top },
            _ => Place::Code,
        };
    }

    /// The statement has ended.
    fn end(&mut self) {
        self.matched = 0;
        self.place = Place::Top;
        let head = std::mem::take(&mut self.head);
        let text = String::from_utf8_lossy(&head);
        self.setting(text.trim_start());
        self.head = head;
        self.head.clear();
    }

    fn setting(&mut self, text: &str) {
        // What `/*` began is not in the head: it came before its `!`.
        let version = |c: char| c.is_ascii_digit();
        let versioned = text
            .strip_prefix('!')
            .map(|t| t.trim_start_matches(version));
        let text = versioned.unwrap_or(text);
        let Some(set) = text.trim_start().strip_prefix("SET ") else {
            return;
        };
        let upper = set.trim_start().to_ascii_uppercase();
        if upper.starts_with("SQL_MODE") {
            self.plain = upper.contains("NO_BACKSLASH_ESCAPES");
        }
        // What is put away about a single table has no version.
        if !self.is_usual() || versioned.is_none() {
            return;
        }
        let name = |rest: &str| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        };
        if let Some(rest) = set.strip_prefix("@OLD_") {
            let name = name(rest);
            let restored = self.restored.remove(&name);
            self.again |= !self.saved.insert(name) && !restored;
        } else if let Some((_, rest)) = set.split_once("=@OLD_") {
            self.restored.insert(name(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> Syntax {
        let mut syntax = Syntax::default();
        syntax.feed(text.as_bytes());
        syntax
    }

    #[test]
    fn what_is_quoted_or_a_comment_ends_no_statement() {
        for whole in [
            "",
            "\n",
            "SELECT 1;",
            "SELECT 'a;''b\\';', \"c\\\";\", `d;```;",
            "-- a comment; it's one\n",
            "--\n--\n\n",
            "# it's one\n",
            "/* it's; one */",
            "/**/",
            "/***/ ",
            "/*M!999999\\- enable the sandbox mode */ ",
            "/*!50003 CREATE*/ /*!50017 DEFINER=`r`@`%`*/ /*!50003 VIEW `v` AS SELECT 'a*/' */;",
            "/*!50003 SET x = 1; SET y = 2 */;",
            "SELECT 1 - -1, 2--1, 6/2, a/*b;*/ -- c;\n;",
            "SELECT /*+ hint; */ 1;",
            "SELECT 1 --- it's one\n;",
        ] {
            assert!(after(whole).is_top(), "{whole}: {:?}", after(whole).place);
        }
        for open in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 'a\\';",
            "SELECT `a\\;",
            "/* a;",
            "/*! a;",
            "-- a;",
            "SELECT 1 -- a;\n",
            "SELECT 1 /* a; */",
        ] {
            assert!(!after(open).is_top(), "{open}");
        }
    }

    #[test]
    fn the_mode_says_what_a_backslash_is() {
        let plain = "/*!50003 SET sql_mode              = 'ANSI,NO_BACKSLASH_ESCAPES' */ ;\n";
        assert!(after(&format!("{plain}SELECT '\\';")).is_top());
        let back = format!("{plain}/*!50003 SET sql_mode = @saved_sql_mode */ ;\n");
        assert!(!after(&format!("{back}SELECT '\\';")).is_top());
    }

    #[test]
    fn programs_end_by_their_own_delimiter() {
        let mut syntax = Syntax::default();
        syntax.delimit(b";;");
        syntax.feed(b"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT ';;'; END ;");
        assert!(!syntax.is_top() && !syntax.is_usual());
        syntax.feed(b";\n");
        assert!(syntax.is_top());
    }

    #[test]
    fn what_was_put_away_is_put_back() {
        let mut syntax = after(
            "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='X' */;\n/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */;",
        );
        assert!(!syntax.is_restored() && !syntax.begins_again());
        syntax.feed(b"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;SELECT '/*M!100616 SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY */;';");
        assert!(!syntax.is_restored());
        syntax.feed(b"\n/*M!100616 SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY */;\n");
        assert!(syntax.is_restored() && !syntax.begins_again());
        for _ in 0..2 {
            syntax.feed(b"SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0;\n");
            assert!(syntax.is_restored() && !syntax.begins_again());
        }
        let again = b"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='X' */;\n";
        syntax.feed(again);
        assert!(!syntax.is_restored() && !syntax.begins_again());
        syntax.feed(again);
        assert!(syntax.begins_again());
    }
}
