//! The tokens of one statement of MySQL or MariaDB.

use std::ops::Range;

/// What the session's `sql_mode` means for the reading of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modes {
    /// ANSI_QUOTES: `"` quotes a name.
    pub(super) ansi: bool,
    /// NO_BACKSLASH_ESCAPES: a backslash is a character like others.
    pub(super) plain: bool,
}

impl Modes {
    /// Those of a value of `sql_mode`.
    pub(super) fn of(value: &str) -> Self {
        let upper = value.to_ascii_uppercase();
        Self {
            ansi: upper.contains("ANSI"),
            plain: upper.contains("NO_BACKSLASH_ESCAPES"),
        }
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, a name without quotes, or a number.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string.
    Text,
    /// `@name`, `@@name`.
    Variable,
    /// One character.
    Sign(u8),
}

/// A token and where it is. Comments are none; what an executable comment holds is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

impl Token {
    /// A name, with or without quotes, as the server knows it.
    pub(super) fn name(&self, text: &[u8]) -> Option<String> {
        let bytes = text.get(self.at.clone())?;
        match self.kind {
            Kind::Word => Some(String::from_utf8_lossy(bytes).into_owned()),
            Kind::Quoted => Some(unquoted(bytes)),
            Kind::Text | Kind::Variable | Kind::Sign(_) => None,
        }
    }

    /// It is this keyword, in whatever case.
    pub(super) fn is(&self, text: &[u8], word: &str) -> bool {
        self.kind == Kind::Word
            && text
                .get(self.at.clone())
                .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// It is this character.
    pub(super) fn sign(&self, sign: u8) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

/// The text between quotes, doubled ones made single.
pub(super) fn unquoted(bytes: &[u8]) -> String {
    let Some((quote, rest)) = bytes.split_first() else {
        return String::new();
    };
    let inner = rest.strip_suffix(&[*quote]).unwrap_or(rest);
    let text = String::from_utf8_lossy(inner);
    let (one, two) = (char::from(*quote).to_string(), [*quote; 2].map(char::from));
    text.replace(&two.iter().collect::<String>(), &one)
}

/// True if a name without quotes may hold it.
pub(super) fn of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// `--` begins a comment if something blank follows.
pub(super) fn dashes(text: &[u8]) -> bool {
    text.starts_with(b"--") && text.get(2).is_none_or(|b| *b <= b' ')
}

/// Bytes of the opening of an executable comment (`/*!50013`, `/*M!100100`) at the start of this text.
pub(super) fn executable(text: &[u8]) -> Option<usize> {
    let begin = ["/*!", "/*M!"]
        .iter()
        .find(|b| text.starts_with(b.as_bytes()))?;
    let digits = text[begin.len()..].iter().take(6);
    Some(begin.len() + digits.take_while(|b| b.is_ascii_digit()).count())
}

/// The end of a string that begins at `from`: the place after its closing quote, or the text's end.
fn string_end(text: &[u8], from: usize, escapes: bool) -> usize {
    let quote = text[from];
    let mut at = from + 1;
    while at < text.len() {
        match text[at] {
            b'\\' if escapes => at += 1,
            byte if byte == quote => {
                if text.get(at + 1) != Some(&quote) {
                    return at + 1;
                }
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The tokens of a statement.
pub(super) fn tokens(text: &[u8], modes: Modes) -> Vec<Token> {
    let mut found = vec![];
    let (mut at, mut open) = (0, 0u32);
    while at < text.len() {
        let rest = &text[at..];
        let byte = rest[0];
        let (kind, end) = match byte {
            b'#' => {
                at = line_end(text, at);
                continue;
            }
            b'-' if dashes(rest) => {
                at = line_end(text, at);
                continue;
            }
            b'/' if executable(rest).is_some() => {
                open += 1;
                at += executable(rest).unwrap_or(3);
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = memchr::memmem::find(&rest[2..], b"*/");
                at = end.map_or(text.len(), |end| at + end + 4);
                continue;
            }
            b'*' if open > 0 && rest.starts_with(b"*/") => {
                open -= 1;
                at += 2;
                continue;
            }
            b'`' => (Kind::Quoted, string_end(text, at, false)),
            b'"' if modes.ansi => (Kind::Quoted, string_end(text, at, false)),
            b'\'' | b'"' => (Kind::Text, string_end(text, at, !modes.plain)),
            b'@' => (Kind::Variable, variable_end(text, at, modes)),
            byte if of_word(byte) => {
                let length = rest.iter().take_while(|b| of_word(**b)).count();
                (Kind::Word, at + length)
            }
            byte if byte.is_ascii_whitespace() || byte == 0 => {
                at += 1;
                continue;
            }
            byte => (Kind::Sign(byte), at + 1),
        };
        found.push(Token {
            kind,
            at: at..end.max(at + 1),
        });
        at = end.max(at + 1);
    }
    found
}

/// Where a name is that may have its database before it.
pub(super) fn qualified(all: &[Token], text: &[u8], at: usize) -> (Option<usize>, Option<usize>) {
    let name = |i: usize| all.get(i).is_some_and(|t| t.name(text).is_some());
    if name(at) && all.get(at + 1).is_some_and(|t| t.sign(b'.')) && name(at + 2) {
        return (Some(at), Some(at + 2));
    }
    (None, name(at).then_some(at))
}

fn line_end(text: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |end| from + end + 1)
}

fn variable_end(text: &[u8], from: usize, modes: Modes) -> usize {
    let system = text[from..].starts_with(b"@@");
    let at = from + if system { 2 } else { 1 };
    match text.get(at) {
        Some(b'`' | b'\'' | b'"') => string_end(text, at, !modes.plain && text[at] != b'`'),
        _ => {
            let name = |b: &&u8| of_word(**b) || **b == b'.';
            at + text[at..].iter().take_while(name).count()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn words(text: &str, modes: Modes) -> Vec<&str> {
        let all = tokens(text.as_bytes(), modes);
        all.into_iter().map(|t| &text[t.at]).collect()
    }

    #[test]
    fn strings_names_and_comments_are_told_apart() {
        let text = "/*!50001 CREATE*/ /*!50013 DEFINER=`ro``ot`@`%`*/ view a.`b c` as select 'it''s \\' --', \"x\" -- b.c\n, @x, @@session.y /* d.e */ # f.g\n;";
        assert_eq!(
            words(text, Modes::default()),
            [
                "CREATE",
                "DEFINER",
                "=",
                "`ro``ot`",
                "@`%`",
                "view",
                "a",
                ".",
                "`b c`",
                "as",
                "select",
                "'it''s \\' --'",
                ",",
                "\"x\"",
                ",",
                "@x",
                ",",
                "@@session.y",
                ";"
            ]
        );
        let modes = Modes::of("ANSI_QUOTES,NO_BACKSLASH_ESCAPES");
        assert_eq!(words("'\\' \"a\".b", modes), ["'\\'", "\"a\"", ".", "b"]);
        let all = tokens(b"\"a\"\"b\"", modes);
        assert_eq!(all[0].name(b"\"a\"\"b\"").as_deref(), Some("a\"b"));
    }

    #[test]
    fn text_that_ends_anywhere_is_read() {
        let text = "/*!50001 create `a``b` 'c\\'d' \"e\" -- f\n /* g */ @`h` #i";
        for end in 0..text.len() {
            tokens(&text.as_bytes()[..end], Modes::default());
        }
    }
}
