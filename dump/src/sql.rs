//! Names and text as SQL writes them.

/// A name between backquotes.
#[must_use]
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A table with its database.
#[must_use]
pub fn table(database: &str, table: &str) -> String {
    format!("{}.{}", name(database), name(table))
}

/// What a backslash stands before in a string of a dump, as mysql_real_escape_string has it, and what follows it; 0 for none.
pub static ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    table[0] = b'0';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[0x1a] = b'Z';
    table[b'\'' as usize] = b'\'';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Text between quotes. A quote in it is doubled, so that it ends the text in no sql_mode; a backslash is meant for a session
/// without NO_BACKSLASH_ESCAPES.
#[must_use]
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A table's definition without the ` AUTO_INCREMENT=N` of its last lines, which its rows bring back.
#[must_use]
pub fn without_next(create: &[u8]) -> Vec<u8> {
    const NEXT: &[u8] = b" AUTO_INCREMENT=";
    let Some(options) = memchr::memmem::rfind(create, b"\n) ") else {
        return create.to_vec();
    };
    let Some(at) = memchr::memmem::find(&create[options..], NEXT) else {
        return create.to_vec();
    };
    let from = options + at;
    let digits = create[from + NEXT.len()..]
        .iter()
        .take_while(|b| b.is_ascii_digit());
    let to = from + NEXT.len() + digits.count();
    [&create[..from], &create[to..]].concat()
}

/// The columns that a definition of a table names, in their order: each with the first word of its type. The rest of their text
/// a server may word otherwise each time it opens the table.
#[must_use]
pub fn columns(create: &[u8]) -> Vec<&[u8]> {
    let lines = create.split(|b| *b == b'\n');
    lines
        .filter(|line| line.starts_with(b"  `"))
        .map(|line| {
            let named = line[3..].iter().position(|b| *b == b'`');
            let after = named.map_or(line.len(), |at| at + 4);
            let word = line.get(after + 1..).unwrap_or_default();
            let end = word.iter().position(|b| matches!(b, b' ' | b',' | b'('));
            &line[..end.map_or(line.len(), |at| after + 1 + at)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_change_places_are_seen_and_expressions_are_not() {
        let create = |a: &str, b: &str, how: &str| {
            format!(
                "CREATE TABLE `t` (\n  `{a}` int NOT NULL,\n  `{b}` int(11) DEFAULT {how},\n  `g``x` text,\n  PRIMARY KEY (`{a}`)\n) ENGINE=InnoDB AUTO_INCREMENT=7"
            )
        };
        let first = create("a", "b", "(_utf8mb4'x')");
        assert_eq!(
            columns(first.as_bytes()),
            [&b"  `a` int"[..], b"  `b` int", b"  `g``x`"]
        );
        let other = create("a", "b", "(_latin1'x')");
        assert_eq!(columns(first.as_bytes()), columns(other.as_bytes()));
        let swapped = create("b", "a", "(_utf8mb4'x')");
        assert_ne!(columns(first.as_bytes()), columns(swapped.as_bytes()));
        assert!(columns(b"  `").len() == 1 && columns(b"").is_empty());
    }

    #[test]
    fn only_the_tables_own_next_value_is_taken_off() {
        let create = |next: &str| {
            format!(
                "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5'\n) ENGINE=ARCHIVE{next} DEFAULT CHARSET=utf8mb4"
            )
        };
        for next in [" AUTO_INCREMENT=17", ""] {
            let without = without_next(create(next).as_bytes());
            assert_eq!(without, create("").as_bytes());
        }
    }

    #[test]
    fn names_and_texts_keep_every_character() {
        assert_eq!(table("a`b", "c d"), "`a``b`.`c d`");
        assert_eq!(literal("a'b\\c\"é"), r#"'a''b\\c"é'"#);
    }
}
