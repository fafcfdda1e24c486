//! Which transactions are asked for: those that change a database or a table, or have a statement that names it. One too many is
//! shown rather than one too few.

/// Databases and tables that are asked for; none means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    database: Option<String>,
    table: Option<(String, String)>,
}

impl Named {
    /// A database, a table as `database.table`, or neither.
    ///
    /// # Errors
    /// The table's name has no database before it.
    pub(crate) fn new(database: Option<String>, table: Option<&str>) -> Result<Self, String> {
        let table = table.map(|text| {
            let parts = text
                .split_once('.')
                .filter(|(a, b)| !a.is_empty() && !b.is_empty());
            let owned = |(a, b): (&str, &str)| (a.to_owned(), b.to_owned());
            parts
                .map(owned)
                .ok_or_else(|| format!("{text:?} is not database.table"))
        });
        Ok(Self {
            database,
            table: table.transpose()?,
        })
    }

    /// True if everything is meant.
    pub(super) fn all(&self) -> bool {
        self.database.is_none() && self.table.is_none()
    }

    /// A line that says which table rows are of.
    pub(super) fn rows(&self, line: &[u8]) -> bool {
        let Some((database, table)) = table_of(line) else {
            return false;
        };
        let is = |name: &str, found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        self.database
            .as_ref()
            .is_some_and(|name| is(name, &database))
            || self
                .table
                .as_ref()
                .is_some_and(|(d, t)| is(d, &database) && is(t, &table))
    }

    /// A statement that was given while `current` was the database.
    pub(super) fn statement(&self, text: &[u8], current: &[u8]) -> bool {
        let of_database = self.database.as_ref().is_some_and(|name| {
            current.eq_ignore_ascii_case(name.as_bytes()) || mentions(text, name)
        });
        of_database
            || self.table.as_ref().is_some_and(|(database, table)| {
                let whole = mentions(text, "DATABASE") || mentions(text, "SCHEMA");
                mentions(text, table) || (whole && mentions(text, database))
            })
    }
}

/// True if the text has the name as a word, in whatever case.
fn mentions(text: &[u8], name: &str) -> bool {
    let name = name.replace('`', "``");
    let name = name.as_bytes();
    let of_word = |b: Option<&u8>| {
        b.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | 0x80..))
    };
    let last = text.len().checked_sub(name.len());
    (0..last.map_or(0, |last| last + 1)).any(|at| {
        let end = at + name.len();
        text[at..end].eq_ignore_ascii_case(name)
            && !of_word(at.checked_sub(1).and_then(|before| text.get(before)))
            && !of_word(text.get(end))
    })
}

/// The table that a line of rows, or the event that announces them, names.
fn table_of(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    const BEFORE: [&[u8]; 3] = [b"### INSERT INTO ", b"### UPDATE ", b"### DELETE FROM "];
    const MAP: &[u8] = b"\tTable_map: ";
    let rest = match BEFORE.iter().find_map(|before| line.strip_prefix(*before)) {
        Some(rest) => rest,
        None => {
            let at = memchr::memmem::find(line, MAP).filter(|_| line.starts_with(b"#"))?;
            &line[at + MAP.len()..]
        }
    };
    let (database, rest) = quoted(rest)?;
    let (table, _) = quoted(rest.strip_prefix(b".")?)?;
    Some((database, table))
}

/// A name in backticks at the beginning, and what comes behind it.
pub(super) fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"`")?;
    let mut name = vec![];
    loop {
        let end = memchr::memchr(b'`', rest)?;
        name.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(b"`") {
            Some(more) => {
                name.push(b'`');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_changes_a_table_or_may_name_it_is_found() {
        let table = Named::new(None, Some("shop.t")).unwrap();
        let database = Named::new(Some("shop".into()), None).unwrap();
        for (line, of_table, of_database) in [
            ("### INSERT INTO `shop`.`t`", true, true),
            ("### UPDATE `Shop`.`T`", true, true),
            ("### DELETE FROM `shop`.`u`", false, true),
            ("### DELETE FROM `shop2`.`t`", false, false),
            (
                "#261129 13:33:59 server id 11  end_log_pos 0 CRC32 0x51e508fc \tTable_map: `shop`.`t` mapped to number 18",
                true,
                true,
            ),
            ("###   @2='### INSERT INTO `shop`.`t`'", false, false),
        ] {
            assert_eq!(table.rows(line.as_bytes()), of_table, "{line}");
            assert_eq!(database.rows(line.as_bytes()), of_database, "{line}");
        }
        for (text, current, of_table, of_database) in [
            (
                "DROP TABLE `t` /* generated by server */",
                "shop",
                true,
                true,
            ),
            ("DROP TABLE shop.t", "other", true, true),
            ("rename table x to SHOP.`T`", "other", true, true),
            ("DROP DATABASE shop", "", true, true),
            ("DROP TABLE `tt`", "shop", false, true),
            ("DROP TABLE shop2.tt", "other", false, false),
            ("CREATE DATABASE shop2", "", false, false),
        ] {
            let current = current.as_bytes();
            assert_eq!(
                table.statement(text.as_bytes(), current),
                of_table,
                "{text}"
            );
            assert_eq!(
                database.statement(text.as_bytes(), current),
                of_database,
                "{text}"
            );
        }
        assert!(Named::new(None, Some("t")).is_err() && Named::default().all());
    }

    #[test]
    fn names_in_backticks_are_read() {
        assert_eq!(quoted(b"`a``b`.`c`"), Some((b"a`b".to_vec(), &b".`c`"[..])));
        assert_eq!(quoted(b"`a"), None);
        assert_eq!(quoted(b"a"), None);
    }
}
