//! Where in a plain dump of PostgreSQL one stands, as psql reads it: between statements, in one, in
//! something quoted, in a comment. Rows of COPY do not come by here. PURE.

/// Where the next byte stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Top,
    Code,
    /// In `'…'`; with a backslash that counts, or after one.
    String {
        escapes: bool,
        escaped: bool,
    },
    Name,
    /// In the tag that begins a string quoted by dollars.
    Tag(Vec<u8>),
    /// In such a string; so many bytes of its end have come by.
    Dollars {
        end: Vec<u8>,
        matched: usize,
    },
    Dash {
        top: bool,
    },
    Line {
        top: bool,
    },
    Slash {
        top: bool,
    },
    Block {
        top: bool,
        depth: u32,
        before: u8,
    },
}

/// So much of a statement is looked at.
const HEAD: usize = 64;

/// Follows the text.
#[derive(Debug)]
pub(crate) struct Syntax {
    place: Place,
    /// Open parentheses.
    depth: u32,
    /// The byte before, and whether it and the one before it are of a word.
    last: u8,
    words: (bool, bool),
    /// Backslashes count in every string.
    escapes: bool,
    head: Vec<u8>,
}

impl Default for Syntax {
    fn default() -> Self {
        Self {
            place: Place::Top,
            depth: 0,
            last: b'\n',
            words: (false, false),
            escapes: false,
            head: vec![],
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

impl Syntax {
    /// Between statements.
    pub(crate) fn is_top(&self) -> bool {
        self.place == Place::Top
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, text: &[u8]) {
        for &byte in text {
            self.take(byte);
            self.words = (self.words.1, is_word(byte));
            self.last = byte;
        }
    }

    fn take(&mut self, byte: u8) {
        use Place::{Block, Code, Dash, Dollars, Line, Name, Slash, String, Tag, Top};
        let before = |top: bool| if top { Top } else { Code };
        match &mut self.place {
            Top if byte.is_ascii_whitespace() => {}
            Top | Code => self.code(byte),
            String { escaped, .. } if *escaped => *escaped = false,
            String { .. } if byte == b'\'' => self.place = Code,
            String { escapes, escaped } => *escaped = *escapes && byte == b'\\',
            Name if byte == b'"' => self.place = Code,
            Name => {}
            Tag(tag) if byte == b'$' => {
                let end = [b"$", tag.as_slice(), b"$"].concat();
                self.place = Dollars { end, matched: 0 };
            }
            Tag(tag) if is_word(byte) && !(tag.is_empty() && byte.is_ascii_digit()) => {
                tag.push(byte);
            }
            Tag(_) => {
                self.place = Code;
                self.code(byte);
            }
            Dollars { end, matched } => {
                *matched = match end.get(*matched) == Some(&byte) {
                    true => *matched + 1,
                    false => usize::from(byte == b'$'),
                };
                if *matched == end.len() {
                    self.place = Code;
                }
            }
            Dash { top } if byte == b'-' => self.place = Line { top: *top },
            Slash { top } if byte == b'*' => {
                self.place = Block {
                    top: *top,
                    depth: 1,
                    before: 0,
                };
            }
            Dash { .. } | Slash { .. } => {
                self.place = Code;
                self.code(byte);
            }
            Line { top } if byte == b'\n' => self.place = before(*top),
            Line { .. } => {}
            Block {
                top,
                depth,
                before: b,
            } => {
                let pair = (*b, byte);
                *b = byte;
                match pair {
                    (b'*', b'/') => (*depth, *b) = (*depth - 1, 0),
                    (b'/', b'*') => (*depth, *b) = (depth.saturating_add(1), 0),
                    _ => {}
                }
                if *depth == 0 {
                    self.place = before(*top);
                }
            }
        }
        if !self.is_top() && self.head.len() < HEAD {
            self.head.push(byte);
        }
    }

    fn code(&mut self, byte: u8) {
        let top = self.is_top();
        let after_word = self.words.1;
        // `E'…'`, and no word that ends so.
        let marked = matches!(self.last, b'e' | b'E') && !self.words.0;
        self.place = match byte {
            b'\'' => Place::String {
                escapes: self.escapes || marked,
                escaped: false,
            },
            b'"' => Place::Name,
            b'$' if !after_word => Place::Tag(vec![]),
            b'-' => Place::Dash { top },
            b'/' => Place::Slash { top },
            // A command of psql goes to the end of its line.
            b'\\' if top => Place::Line { top },
            b';' if self.depth == 0 => {
                if self.head.starts_with(b"SET standard_conforming_strings = ") {
                    self.escapes = self.head.ends_with(b"off");
                }
                self.head.clear();
                Place::Top
            }
            b'(' => {
                self.depth = self.depth.saturating_add(1);
                Place::Code
            }
            b')' => {
                self.depth = self.depth.saturating_sub(1);
                Place::Code
            }
            _ => Place::Code,
        };
    }
}

/// By its first bytes a dump is SQL, and not in one of pg_dump's own formats.
pub(crate) fn is_text(head: &[u8]) -> bool {
    !head.starts_with(b"PGDMP") && head.get(257..262).is_none_or(|m| m != b"ustar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_or_a_comment_ends_no_statement() {
        let top = |text: &str| {
            let mut syntax = Syntax::default();
            syntax.feed(text.as_bytes());
            syntax.is_top()
        };
        for whole in [
            "",
            "SELECT 1;\n",
            "SELECT 'a;''b\\';",
            "SELECT E'a\\';''b';",
            "SELECT type'\\';",
            "SELECT \"a\"\"b;'\";",
            "SELECT $$a;'$$, $_$ $$ ; $_$, $1;",
            "SELECT a$b$c;",
            "-- it's\n",
            "--\n",
            "/* a /* it's; */ */",
            "SELECT 1 - 2 / 3; -- it's\n",
            "\\connect \"a'b\"\n",
            "\\restrict x\n",
            "SET standard_conforming_strings = off;SELECT 'a\\'b';",
            "SET standard_conforming_strings = on;SELECT 'a\\';",
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);",
        ] {
            assert!(top(whole), "{whole}");
        }
        for open in [
            "SELECT 1",
            "SELECT ';",
            "SELECT E'\\';",
            "SELECT \";",
            "SELECT $a$;$$;",
            "SELECT $a$;$b$;",
            "/* /* */",
            "-- a",
            "SELECT 1 -- a;\n",
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1;",
        ] {
            assert!(!top(open), "{open}");
        }
    }
}
