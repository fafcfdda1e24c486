//! The INSERT statements of a frame as rows of LOAD DATA. PURE.
//!
//! What a backslash stands before in a string of a dump, LOAD DATA reads the same; a tab alone needs one more.

use dump::Sum;
use xxhash_rust::xxh3::xxh3_128;

use crate::definition::{Class, Column};
use crate::statements::Statements;

/// In which character set the rows are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// `utf8mb4`: the server converts text, and there are no bytes.
    Utf8,
    /// `binary`: each value is what stands in the column.
    Binary,
}

impl Set {
    /// Its name in SQL.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8mb4",
            Self::Binary => "binary",
        }
    }
}

/// How the rows of a table can be sent, what costs the server least first; none if INSERT alone writes them for sure.
#[must_use]
pub(crate) fn sets_of(columns: &[Column]) -> &'static [Set] {
    let any = |class| columns.iter().any(|c| c.class == class);
    match (any(Class::Bytes), any(Class::Text)) {
        _ if any(Class::Other) || columns.is_empty() => &[],
        (false, false) => &[Set::Binary, Set::Utf8],
        (true, false) => &[Set::Binary],
        (false, true) => &[Set::Utf8],
        (true, true) => &[],
    }
}

/// Rows that LOAD DATA reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    /// How many, and their sum.
    pub(crate) sum: Sum,
    /// Their columns, as INSERT names them, in parentheses; empty for all of the table.
    pub(crate) columns: String,
}

/// Turns the text of a frame into rows, which take the place of what is in `out`. `None` where it holds something that LOAD DATA
/// might read otherwise than INSERT: then it is sent as it is.
#[must_use]
pub(crate) fn rows(text: &[u8], columns: &[Column], set: Set, out: &mut Vec<u8>) -> Option<Rows> {
    out.clear();
    out.reserve(text.len());
    let mut reader = Reader { rest: text, set };
    let mut all: Option<Rows> = None;
    let mut classes: Vec<Class> = vec![];
    while reader.begins()? {
        let named = reader.head()?;
        match &all {
            None => {
                classes = classes_of(columns, &named)?;
                let columns = named;
                all = Some(Rows {
                    sum: Sum::default(),
                    columns,
                });
            }
            Some(all) if all.columns == named => {}
            Some(_) => return None,
        }
        let rows = all.as_mut()?;
        loop {
            let row = reader.rest;
            reader.row(&classes, out)?;
            let length = row.len() - reader.rest.len();
            rows.sum.rows += 1;
            rows.sum.hash = rows.sum.hash.wrapping_add(xxh3_128(row.get(..length)?));
            if reader.ends()? {
                break;
            }
        }
    }
    all
}

/// The sum of the rows of an INSERT statement of a dump, whatever their values are. `None` where it has another form.
#[must_use]
pub(crate) fn sum(statement: &[u8]) -> Option<Sum> {
    let mut reader = Reader {
        rest: statement,
        set: Set::Utf8,
    };
    reader.head()?;
    let mut sum = Sum::default();
    loop {
        let row = reader.rest;
        reader.any_row()?;
        let length = row.len() - reader.rest.len();
        sum.rows += 1;
        sum.hash = sum.hash.wrapping_add(xxh3_128(row.get(..length)?));
        if reader.rest.is_empty() {
            return Some(sum);
        }
        reader.ends()?;
    }
}

/// The rows of a frame, cut into statements of their own.
pub(crate) struct Cut<'a> {
    statements: Statements<'a>,
    /// Up to the first row of the statement at hand.
    head: &'a [u8],
    /// Its rows that are still to come.
    rest: &'a [u8],
}

impl<'a> Cut<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        Self {
            statements: Statements::of(text),
            head: &[],
            rest: &[],
        }
    }

    /// Goes to the next statement where one has ended. `None` at the end, or where it has another form.
    fn enter(&mut self) -> Option<()> {
        while self.rest.is_empty() {
            let statement = self.statements.next()?.ok()?;
            if !statement.starts_with(b"INSERT INTO ") {
                continue;
            }
            let mut reader = Reader {
                rest: statement,
                set: Set::Utf8,
            };
            reader.head()?;
            self.rest = reader.rest;
            self.head = statement.get(..statement.len() - self.rest.len())?;
        }
        Some(())
    }

    /// The next row of the statement at hand, and what follows it.
    fn row(&self) -> Option<(&'a [u8], &'a [u8])> {
        let mut reader = Reader {
            rest: self.rest,
            set: Set::Utf8,
        };
        reader.any_row()?;
        let row = self.rest.get(..self.rest.len() - reader.rest.len())?;
        if !reader.rest.is_empty() {
            reader.ends()?;
        }
        Some((row, reader.rest))
    }

    /// Passes over so many rows.
    #[must_use]
    pub(crate) fn skip(&mut self, rows: u64) -> Option<()> {
        for _ in 0..rows {
            self.enter()?;
            (_, self.rest) = self.row()?;
        }
        Some(())
    }

    /// A statement of the rows that follow: as many as have at most `most` bytes, or one; and their sum. `None` where there are
    /// none, or they have another form.
    #[must_use]
    pub(crate) fn piece(&mut self, most: usize) -> Option<(Vec<u8>, Sum)> {
        self.enter()?;
        let mut text = self.head.to_vec();
        let mut sum = Sum::default();
        while !self.rest.is_empty() {
            let (row, rest) = self.row()?;
            if sum.rows > 0 {
                if text.len().saturating_add(row.len()) > most {
                    break;
                }
                text.extend_from_slice(b",\n");
            }
            text.extend_from_slice(row);
            sum.rows += 1;
            sum.hash = sum.hash.wrapping_add(xxh3_128(row));
            self.rest = rest;
        }
        text.extend_from_slice(b";\n");
        Some((text, sum))
    }
}

/// The classes of the columns that INSERT names, in its order.
fn classes_of(columns: &[Column], named: &str) -> Option<Vec<Class>> {
    let Some(mut rest) = named.strip_prefix('(').and_then(|n| n.strip_suffix(')')) else {
        return Some(columns.iter().map(|c| c.class).collect());
    };
    let mut all = vec![];
    loop {
        let mut at = 1;
        loop {
            at += rest.get(at..)?.find('`')?;
            if rest.get(at + 1..)?.starts_with('`') {
                at += 2;
                continue;
            }
            break;
        }
        let name = rest.strip_prefix('`')?.get(..at - 1)?.replace("``", "`");
        all.push(columns.iter().find(|c| c.name == name)?.class);
        rest = &rest[at + 1..];
        if rest.is_empty() {
            return Some(all);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// What MySQL's client writes before bytes between quotes.
const BINARY: &[u8] = b"_binary ";

struct Reader<'a> {
    rest: &'a [u8],
    set: Set,
}

impl Reader<'_> {
    fn skip(&mut self, what: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(what)?;
        Some(())
    }

    /// True if a statement begins; false at the end of the text. Headings are passed over.
    fn begins(&mut self) -> Option<bool> {
        loop {
            match self.rest {
                [] => return Some(false),
                [b'\n', ..] => self.rest = &self.rest[1..],
                [b'-', b'-', ..] => {
                    let end = memchr::memchr(b'\n', self.rest)?;
                    self.rest = &self.rest[end..];
                }
                _ => return Some(true),
            }
        }
    }

    /// Reads up to the first row, and gives the columns that are named.
    fn head(&mut self) -> Option<String> {
        self.skip(b"INSERT INTO `")?;
        loop {
            let end = memchr::memchr(b'`', self.rest)?;
            self.rest = self.rest.get(end + 1..)?;
            if self.rest.first() != Some(&b'`') {
                break;
            }
            self.rest = &self.rest[1..];
        }
        self.skip(b" ")?;
        let mut named = String::new();
        if self.rest.first() == Some(&b'(') {
            let (mut at, mut inside) = (1, false);
            loop {
                match *self.rest.get(at)? {
                    b'`' => inside = !inside,
                    b')' if !inside => break,
                    _ => {}
                }
                at += 1;
            }
            named = std::str::from_utf8(self.rest.get(..=at)?).ok()?.to_owned();
            self.rest = self.rest.get(at + 1..)?;
            self.skip(b" ")?;
        }
        self.skip(b"VALUES")?;
        // A client of MySQL goes on in the same line.
        self.skip(b"\n").or_else(|| self.skip(b" "))?;
        Some(named)
    }

    /// After a row: true if the statement ends.
    fn ends(&mut self) -> Option<bool> {
        if let Some(rest) = self.rest.strip_prefix(b";\n") {
            self.rest = rest;
            return Some(true);
        }
        self.skip(b",")?;
        if self.rest.first() == Some(&b'\n') {
            self.rest = &self.rest[1..];
        }
        Some(false)
    }

    /// A row of any values: what stands in quotes closes no parenthesis.
    fn any_row(&mut self) -> Option<()> {
        self.skip(b"(")?;
        let mut depth = 1usize;
        while depth > 0 {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'\'' => loop {
                    let at = memchr::memchr2(b'\'', b'\\', self.rest)?;
                    let escaped = self.rest.get(at) == Some(&b'\\');
                    self.rest = self.rest.get(at + 1 + usize::from(escaped)..)?;
                    if !escaped {
                        break;
                    }
                },
                _ => {}
            }
        }
        Some(())
    }

    fn row(&mut self, classes: &[Class], out: &mut Vec<u8>) -> Option<()> {
        self.skip(b"(")?;
        for (n, class) in classes.iter().enumerate() {
            if n > 0 {
                self.skip(b",")?;
                out.push(b'\t');
            }
            if let Some(rest) = self.rest.strip_prefix(BINARY) {
                let rest = rest.strip_prefix(b"'")?;
                if *class != Class::Bytes {
                    return None;
                }
                self.rest = self.text(rest, *class, out)?;
                continue;
            }
            match self.rest {
                [b'\'', rest @ ..] => self.rest = self.text(rest, *class, out)?,
                [b'0', b'x', rest @ ..] => self.rest = self.bytes(rest, *class, out)?,
                [b'N', b'U', b'L', b'L', rest @ ..] => {
                    out.extend_from_slice(b"\\N");
                    self.rest = rest;
                }
                _ => {
                    if *class != Class::Number {
                        return None;
                    }
                    let digits =
                        |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                    let end = self.rest.iter().position(|b| !digits(b))?;
                    let number = &self.rest[..end];
                    // INSERT reads a sign before nothing as none.
                    let zero = number.first() == Some(&b'-')
                        && number.iter().all(|b| matches!(b, b'-' | b'0' | b'.'));
                    if end == 0 || zero {
                        return None;
                    }
                    out.extend_from_slice(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
            }
        }
        out.push(b'\n');
        self.skip(b")")
    }

    /// Text after its quote; gives what follows it.
    fn text<'b>(&self, mut rest: &'b [u8], class: Class, out: &mut Vec<u8>) -> Option<&'b [u8]> {
        match (class, self.set) {
            (Class::Plain | Class::Utf8, _) => {}
            (Class::Text | Class::Latin1 | Class::Ascii, Set::Utf8) => {}
            (Class::Latin1 | Class::Ascii, Set::Binary) => {}
            // As the dump's session has them.
            (Class::Bytes, Set::Binary) => {}
            // Nothing.
            (Class::Bytes, Set::Utf8) if rest.first() == Some(&b'\'') => {}
            _ => return None,
        }
        loop {
            let at = memchr::memchr3(b'\'', b'\\', b'\t', rest)?;
            let (before, found) = rest.split_at(at);
            match (class, self.set) {
                (Class::Latin1 | Class::Ascii, Set::Binary) if !before.is_ascii() => {
                    latin1(before, out).filter(|()| class == Class::Latin1)?;
                }
                _ => out.extend_from_slice(before),
            }
            match found {
                [b'\'', after @ ..] => return (after.first() != Some(&b'\'')).then_some(after),
                [b'\t', after @ ..] => {
                    out.extend_from_slice(b"\\t");
                    rest = after;
                }
                [
                    b'\\',
                    escaped @ (b'0' | b'n' | b'r' | b'Z' | b'\'' | b'"' | b'\\'),
                    after @ ..,
                ] => {
                    out.extend_from_slice(&[b'\\', *escaped]);
                    rest = after;
                }
                _ => return None,
            }
        }
    }

    /// Bytes in digits; gives what follows them.
    fn bytes<'b>(&self, rest: &'b [u8], class: Class, out: &mut Vec<u8>) -> Option<&'b [u8]> {
        if self.set != Set::Binary || !matches!(class, Class::Bytes | Class::Utf8) {
            return None;
        }
        let mut bytes = 0;
        for pair in rest.chunks_exact(2) {
            let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
            if (high | low) > 15 {
                break;
            }
            match high << 4 | low {
                0 => out.extend_from_slice(b"\\0"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte => out.push(byte),
            }
            bytes += 1;
        }
        rest.get(2 * bytes..).filter(|_| bytes > 0)
    }
}

/// Characters of the bytes 0x80 to 0x9F, as both servers map them: cp1252, and where that has none the control of the same number.
const HIGH: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// UTF-8 as the bytes of a server's `latin1`. `None` where it has no such character.
fn latin1(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    for c in std::str::from_utf8(text).ok()?.chars() {
        let byte = match u32::from(c) {
            low @ (0..=0x7f | 0xa0..=0xff) => u8::try_from(low).ok()?,
            _ => u8::try_from(HIGH.iter().position(|h| *h == c)?).ok()? + 0x80,
        };
        out.push(byte);
    }
    Some(())
}

/// The value of a digit of sixteen; 255 for what is none.
const DIGITS: [u8; 256] = {
    let mut all = [255; 256];
    let mut n = 0u8;
    while n < 16 {
        all[b"0123456789ABCDEF"[n as usize] as usize] = n;
        all[b"0123456789abcdef"[n as usize] as usize] = n;
        n += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn columns(classes: &[Class]) -> Vec<Column> {
        let named = classes.iter().zip(["a", "b`", "c", "d", "e"]);
        named
            .map(|(class, name)| Column {
                name: name.to_owned(),
                class: *class,
            })
            .collect()
    }

    fn turned(text: &str, classes: &[Class], set: Set) -> Option<(u64, String, Vec<u8>)> {
        let mut out = b"before".to_vec();
        let rows = rows(text.as_bytes(), &columns(classes), set, &mut out)?;
        Some((rows.sum.rows, rows.columns, out))
    }

    #[test]
    fn the_sum_is_that_of_each_rows_text() {
        let rows = [
            r"(1,'it\'s),(''',0xff)",
            r"(-2.5e3,'\\',NULL)",
            r"(3,st_x('('),'')",
        ];
        let hash = rows
            .iter()
            .map(|row| xxh3_128(row.as_bytes()))
            .fold(0, u128::wrapping_add);
        for between in [",", ",\n"] {
            let text = format!(
                "INSERT INTO `a``(` (`x)`, `y`) VALUES\n{}",
                rows.join(between)
            );
            assert_eq!(sum(text.as_bytes()), Some(Sum { rows: 3, hash }));
            for end in 0..text.len() {
                let cut = sum(&text.as_bytes()[..end]);
                assert!(cut.is_none_or(|sum| sum.rows < 3), "{end}");
            }
        }
    }

    #[test]
    fn a_frame_is_cut_between_rows_and_all_of_them_come_once() {
        let rows = [r"(1,'it\'s),(')", r"(-2.5e3,NULL)", r"(3,st_x('(;'),'')"];
        let head = "INSERT INTO `a` (`x`) VALUES\n";
        let one = format!("{head}{};\n", rows.join(","));
        let text = format!("-- of a;\nSET x = 1;\n{one}{one}");
        let twice = [rows, rows].concat();
        for (most, skipped) in [(0, 0), (45, 0), (60, 2), (1000, 4), (1000, 5)] {
            let mut cut = Cut::of(text.as_bytes());
            cut.skip(skipped).unwrap();
            let (mut found, mut all) = (vec![], Sum::default());
            while let Some((text, sum)) = cut.piece(most) {
                let text = String::from_utf8(text).unwrap();
                assert!(sum.rows == 1 || text.len() <= most + 4, "{text}");
                let body = text.strip_prefix(head).unwrap();
                let body: Vec<&str> = body.strip_suffix(";\n").unwrap().split(",\n").collect();
                assert_eq!(body.len() as u64, sum.rows);
                found.extend(body.into_iter().map(str::to_owned));
                all.rows += sum.rows;
                all.hash = all.hash.wrapping_add(sum.hash);
            }
            let wanted = &twice[usize::try_from(skipped).unwrap()..];
            assert_eq!(found, wanted);
            let hash = wanted.iter().map(|row| xxh3_128(row.as_bytes()));
            let hash = hash.fold(0, u128::wrapping_add);
            assert_eq!((all.rows, all.hash), (wanted.len() as u64, hash));
        }
        assert_eq!(Cut::of(b"REPLACE INTO `a` VALUES (1);").piece(9), None);
        assert_eq!(Cut::of(b"INSERT INTO `a` VALUES (1;").piece(9), None);
    }

    #[test]
    fn rows_of_a_frame_become_lines() {
        let text = "--\n-- Dumping data for table `t`\n--\n\nINSERT INTO `t``(` VALUES\n(1,'it\\'s\\n\tq\\\\N',NULL),\n(-0e0,'','2024-01-01'),(1.5e-7,'),(','x');\nINSERT INTO `t``(` VALUES\n(2,'é','y');\n\n";
        let (count, named, out) =
            turned(text, &[Class::Number, Class::Text, Class::Plain], Set::Utf8).unwrap();
        assert_eq!((count, named.as_str()), (4, ""));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "1\tit\\'s\\n\\tq\\\\N\t\\N\n-0e0\t\t2024-01-01\n1.5e-7\t),(\tx\n2\té\ty\n"
        );
    }

    #[test]
    fn bytes_are_sent_as_they_are() {
        let text = "INSERT INTO `t` (`b``)`, `a`) VALUES\n(0x0009610A5C27FF,'a\\0'),\n('',0xC3);\n";
        let all = [
            Column {
                name: "a".into(),
                class: Class::Utf8,
            },
            Column {
                name: "b`)".into(),
                class: Class::Bytes,
            },
        ];
        let mut out = vec![];
        let rows = rows(text.as_bytes(), &all, Set::Binary, &mut out).unwrap();
        assert_eq!((rows.sum.rows, rows.columns.as_str()), (2, "(`b``)`, `a`)"));
        assert_eq!(out, b"\\0\\ta\\n\\\\'\xff\ta\\0\n\t\xc3\n");
    }

    #[test]
    fn bytes_between_quotes_are_those_of_the_dump() {
        let text = "INSERT INTO `t` VALUES (1,_binary 'a\\0\t\\'\\Z'),(2,'\\\\x');\nINSERT INTO `t` VALUES (3,'');\n";
        let (count, _, out) = turned(text, &[Class::Number, Class::Bytes], Set::Binary).unwrap();
        assert_eq!(count, 3);
        assert_eq!(out, b"1\ta\\0\\t\\'\\Z\n2\t\\\\x\n3\t\n");
    }

    #[test]
    fn what_might_be_read_otherwise_stays_an_insert() {
        let one = |value: &str, class, set| {
            turned(
                &format!("INSERT INTO `t` VALUES\n({value});\n"),
                &[class],
                set,
            )
        };
        // A member of an ENUM by its number, bytes in place of text, text that is to be converted.
        assert_eq!(one("3", Class::Utf8, Set::Utf8), None);
        assert_eq!(one("0xFF", Class::Utf8, Set::Utf8), None);
        assert_eq!(one("0xFF", Class::Text, Set::Binary), None);
        assert_eq!(one("'x'", Class::Text, Set::Binary), None);
        assert_eq!(one("'x'", Class::Bytes, Set::Utf8), None);
        assert_eq!(one("_binary 'x'", Class::Utf8, Set::Binary), None);
        assert_eq!(one("_binary 0xFF", Class::Bytes, Set::Binary), None);
        assert_eq!(one("'x'", Class::Number, Set::Utf8), None);
        assert_eq!(one("'x''y'", Class::Utf8, Set::Utf8), None);
        assert_eq!(one("'x\\%'", Class::Utf8, Set::Utf8), None);
        assert_eq!(one("-0", Class::Number, Set::Utf8), None);
        assert_eq!(one("-0.00", Class::Number, Set::Utf8), None);
        assert_eq!(one("1+1x", Class::Number, Set::Utf8), None);
        assert_eq!(one("0xF", Class::Bytes, Set::Binary), None);
        assert!(one("0xFF", Class::Utf8, Set::Binary).is_some());
        let many = |text: &str| turned(text, &[Class::Number], Set::Utf8);
        for text in [
            "INSERT INTO `t` VALUES\n(1,2);\n",
            "INSERT INTO `t` VALUES\n();\n",
            "INSERT INTO `t` VALUES\n(1)",
            "INSERT INTO `t` VALUES\n(1);\nSET x=1;\n",
            "INSERT INTO `t` (`z`) VALUES\n(1);\n",
            "REPLACE INTO `t` VALUES\n(1);\n",
            "",
        ] {
            assert_eq!(many(text), None, "{text}");
        }
    }

    #[test]
    fn a_table_is_sent_in_the_set_that_keeps_all_its_columns() {
        use Class::{Bytes, Number, Other, Plain, Text, Utf8};
        let sets = |classes: &[Class]| sets_of(&columns(classes));
        assert_eq!(sets(&[Number, Plain, Utf8, Text]), [Set::Utf8]);
        assert_eq!(
            sets(&[Number, Class::Latin1, Class::Ascii]),
            [Set::Binary, Set::Utf8]
        );
        assert_eq!(
            sets(&[Plain, Utf8, Bytes, Class::Latin1, Class::Ascii]),
            [Set::Binary]
        );
        assert_eq!(sets(&[Text, Bytes]), []);
        assert_eq!(sets(&[Number, Other]), []);
        assert_eq!(sets(&[]), []);
    }

    // What SELECT HEX(CONVERT(CONVERT(0x80…9f USING latin1) USING utf8mb4)) gives.
    const HIGH_IN_UTF8: &str = "E282ACC281E2809AC692E2809EE280A6E280A0E280A1CB86E280B0C5A0E280B9C592C28DC5BDC28FC290E28098E28099E2809CE2809DE280A2E28093E28094CB9CE284A2C5A1E280BAC593C29DC5BEC5B8";

    #[test]
    fn latin1_is_what_servers_mean_by_it() {
        let bytes = HIGH_IN_UTF8.as_bytes().chunks(2);
        let mut text: Vec<u8> = bytes
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        text.extend(('\u{a0}'..='\u{ff}').collect::<String>().into_bytes());
        let mut out = vec![];
        latin1(&text, &mut out).unwrap();
        assert_eq!(out, (0x80..=0xff).collect::<Vec<u8>>());
        for none in ["\u{80}", "\u{100}", "日"] {
            assert_eq!(latin1(none.as_bytes(), &mut vec![]), None, "{none}");
        }
        assert_eq!(latin1(b"\xe9", &mut vec![]), None);
    }

    #[test]
    fn text_of_other_sets_is_sent_as_bytes_where_it_is_sure_what_they_are() {
        use Class::{Ascii, Bytes, Latin1};
        let text = "INSERT INTO `t` VALUES\n('caf\u{e9}\\n\u{20ac}','x',0xe9);\n";
        let (_, _, sent) = turned(text, &[Latin1, Ascii, Bytes], Set::Binary).unwrap();
        assert_eq!(sent, b"caf\xe9\\n\x80\tx\t\xe9\n");
        let other = "INSERT INTO `t` VALUES\n('x','\u{e9}',0xe9);\n";
        assert_eq!(turned(other, &[Latin1, Ascii, Bytes], Set::Binary), None);
        let other = "INSERT INTO `t` VALUES\n('\u{100}','x',0xe9);\n";
        assert_eq!(turned(other, &[Latin1, Ascii, Bytes], Set::Binary), None);
        let other = "INSERT INTO `t` VALUES\n('\u{100}','\u{e9}');\n";
        let (_, _, sent) = turned(other, &[Latin1, Ascii], Set::Utf8).unwrap();
        assert_eq!(sent, "\u{100}\t\u{e9}\n".as_bytes());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_rows_or_not(text in "[INSERTO`VALU\n(),'\\\\0xNL;a -]{0,80}") {
            let mut out = vec![];
            let all = columns(&[Class::Utf8, Class::Number]);
            let _ = rows(text.as_bytes(), &all, Set::Utf8, &mut out);
            let text = format!("INSERT INTO `t` VALUES\n({text}");
            let _ = rows(text.as_bytes(), &all, Set::Binary, &mut out);
        }
    }
}
