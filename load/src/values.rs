//! An INSERT of a dump whose rows are written out: its values are literals, so that it reads nothing and other rows do not
//! matter to it. PURE.

use std::ops::Range;

/// An INSERT in the form in which clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insert {
    /// Its table, of the database in use.
    pub(crate) table: String,
    /// The columns that it names; none for all of the table.
    pub(crate) columns: Option<Vec<String>>,
    /// Where its rows stand in the statement.
    pub(crate) rows: Range<usize>,
}

/// Reads the head. `None` if it is another form.
#[must_use]
pub(crate) fn insert(statement: &[u8]) -> Option<Insert> {
    let rest = statement.strip_prefix(b"INSERT INTO ")?;
    let (table, rest) = name(rest)?;
    let mut rest = rest.strip_prefix(b" ")?;
    let mut columns = None;
    if let Some(mut list) = rest.strip_prefix(b"(") {
        let mut all = vec![];
        loop {
            let (column, after) = name(list).or_else(|| word(list))?;
            all.push(column);
            if let Some(after) = after.strip_prefix(b") ") {
                rest = after;
                break;
            }
            list = after.strip_prefix(b",")?.trim_ascii_start();
        }
        columns = Some(all);
    }
    let rest = rest.strip_prefix(b"VALUES")?;
    let rest = rest
        .strip_prefix(b" ")
        .or_else(|| rest.strip_prefix(b"\n"))?;
    Some(Insert {
        table,
        columns,
        rows: statement.len() - rest.len()..statement.len(),
    })
}

/// The name between backquotes at the beginning, and what follows.
fn name(text: &[u8]) -> Option<(String, &[u8])> {
    let inner = text.strip_prefix(b"`")?;
    let mut at = 0;
    loop {
        at += memchr::memchr(b'`', inner.get(at..)?)?;
        if inner.get(at + 1) != Some(&b'`') {
            break;
        }
        at += 2;
    }
    let name = std::str::from_utf8(&inner[..at]).ok()?;
    Some((name.replace("``", "`"), &inner[at + 1..]))
}

/// The name without quotes at the beginning, and what follows.
fn word(text: &[u8]) -> Option<(String, &[u8])> {
    let of = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let rest = digits(text, of)?;
    let name = &text[..text.len() - rest.len()];
    Some((String::from_utf8_lossy(name).into_owned(), rest))
}

/// Counts rows of `width` literals each, or of any number; with `counter`, the column of that place has a number in each row.
/// `None` if there is anything else in them.
#[must_use]
pub(crate) fn rows(text: &[u8], width: Option<usize>, counter: Option<usize>) -> Option<u64> {
    let mut rest = text;
    let mut count = 0;
    loop {
        rest = rest.strip_prefix(b"(")?;
        let mut column = 0;
        loop {
            let after = literal(rest)?;
            if counter == Some(column) && !matches!(rest.first()?, b'0'..=b'9' | b'-') {
                return None;
            }
            rest = after;
            column += 1;
            match rest.strip_prefix(b",") {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest = rest.strip_prefix(b")")?;
        if width.is_some_and(|width| width != column) {
            return None;
        }
        count += 1;
        if rest.is_empty() {
            return Some(count);
        }
        rest = rest.strip_prefix(b",")?;
        if let [b'\n' | b' ', after @ ..] = rest {
            rest = after;
        }
    }
}

/// What follows the literal at the beginning.
fn literal(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'\'', rest @ ..] => string(rest),
        [b'N', b'U', b'L', b'L', rest @ ..] => Some(rest),
        [b'0', b'x', rest @ ..] => digits(rest, u8::is_ascii_hexdigit),
        [b'b', b'\'', rest @ ..] => digits(rest, |b| matches!(b, b'0' | b'1'))?.strip_prefix(b"'"),
        [b'x' | b'X', b'\'', rest @ ..] => digits(rest, u8::is_ascii_hexdigit)?.strip_prefix(b"'"),
        [b'_', rest @ ..] => {
            let rest = digits(rest, |b| b.is_ascii_lowercase() || b.is_ascii_digit())?;
            let rest = rest.trim_ascii_start();
            match rest {
                [b'\'', rest @ ..] => string(rest),
                [b'0', b'x', rest @ ..] => digits(rest, u8::is_ascii_hexdigit),
                _ => None,
            }
        }
        [b'0'..=b'9' | b'-' | b'.', ..] => digits(text, |b| {
            matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        }),
        _ => None,
    }
}

/// What follows bytes of this kind, of which there is one at least.
fn digits(text: &[u8], of: impl Fn(&u8) -> bool) -> Option<&[u8]> {
    let length = text.iter().take_while(|b| of(b)).count();
    text.get(length..).filter(|_| length > 0)
}

/// What follows a string, after its quote.
fn string(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let at = memchr::memchr2(b'\'', b'\\', text)?;
        if text[at] == b'\\' {
            text = text.get(at + 2..)?;
            continue;
        }
        text = &text[at + 1..];
        match text.strip_prefix(b"'") {
            Some(rest) => text = rest,
            None => return Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn count(text: &str, width: usize, counter: Option<usize>) -> Option<u64> {
        let of = insert(text.as_bytes())?;
        rows(&text.as_bytes()[of.rows], Some(width), counter)
    }

    #[test]
    fn rows_of_literals_are_counted() {
        for (text, wanted) in [
            (
                "INSERT INTO `t` VALUES (1,'a'),(2,NULL),(-1.5e-7,'it''s \\'),(')",
                3,
            ),
            ("INSERT INTO `t` VALUES\n(1,'a'),\n(2,0xFF)", 2),
            (
                "INSERT INTO `t` VALUES (1,_binary '\\0\\'x'),(0.5,_utf8mb4 0xC3A9),(0,b'01'),(7,x'0f')",
                4,
            ),
            ("INSERT INTO `t``x` (`a`, `b``)`) VALUES (1,2)", 1),
            (
                "INSERT INTO `t` (`a`, row_start) VALUES (1,'2026-01-01')",
                1,
            ),
        ] {
            assert_eq!(count(text, 2, None), Some(wanted), "{text}");
            assert_eq!(count(text, 2, Some(0)), Some(wanted), "{text}");
        }
        let of = insert(b"INSERT INTO `t``x` (`a`, `b``)`) VALUES (1,2)").unwrap();
        assert_eq!(of.table, "t`x");
        assert_eq!(of.columns.unwrap(), ["a", "b`)"]);
    }

    #[test]
    fn what_reads_or_counts_by_itself_is_none() {
        for text in [
            "INSERT INTO `t` VALUES (1,NOW())",
            "INSERT INTO `t` VALUES (1,DEFAULT)",
            "INSERT INTO `t` VALUES (1,(SELECT max(a) FROM u))",
            "INSERT INTO `t` VALUES (1,@x)",
            "INSERT INTO `t` VALUES (1,'a' 'b')",
            "INSERT INTO `t` VALUES (1,'a') ON DUPLICATE KEY UPDATE a=2",
            "INSERT INTO `t` VALUES (1,'a'),(2)",
            "INSERT INTO `t` VALUES (1,'a','b')",
            "INSERT INTO `t` VALUES (1,'a",
            "INSERT INTO `t` VALUES ()",
            "INSERT INTO `t` VALUES (1,TRUE)",
            "INSERT INTO `t` VALUES (1,_binary)",
            "INSERT INTO `t` SELECT 1,2",
            "INSERT INTO `t` SET a=1",
            "INSERT INTO `d`.`t` VALUES (1,2)",
            "INSERT INTO `t` VALUES (1, 2)",
        ] {
            assert_eq!(count(text, 2, None), None, "{text}");
        }
        // A counter that counts by itself.
        for text in ["(1,NULL)", "(1,'')"] {
            let text = format!("INSERT INTO `t` VALUES {text}");
            assert!(count(&text, 2, None).is_some());
            assert_eq!(count(&text, 2, Some(1)), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_rows_or_not(text in "[()',\\\\0x1NUL_b -]{0,60}") {
            let _ = rows(text.as_bytes(), Some(2), Some(0));
            let _ = rows(text.as_bytes(), None, None);
            let _ = insert(format!("INSERT INTO `{text}").as_bytes());
        }
    }
}
