//! A table's definition in the form in which SHOW CREATE gives it, taken apart: what the table needs while its rows come in, and
//! which keys are better made of all rows at once. What is not of this form stays as it is. PURE.

use std::ops::Range;

/// A definition of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Its name.
    pub(crate) name: String,
    /// What makes the table: without the keys below.
    pub(crate) create: Vec<u8>,
    /// Its columns in their order.
    pub(crate) columns: Vec<Column>,
    /// Keys that are made afterwards, each as ALTER TABLE adds it, in their order.
    pub(crate) keys: Vec<Vec<u8>>,
    /// Foreign keys that are made after all keys of all tables.
    pub(crate) foreign_keys: Vec<Vec<u8>>,
    /// Its rows have a history (system versioning), which is written as it was.
    pub(crate) versioned: bool,
    /// All of it was understood.
    pub(crate) understood: bool,
    /// It has a primary key, which its rows are ordered by: in what order they come in does not matter.
    pub(crate) ordered: bool,
    /// The column that counts by itself where a row has no number for it.
    pub(crate) counter: Option<String>,
    /// Columns that are computed of others: no row has a value for them.
    pub(crate) computed: Vec<String>,
    /// Columns that an INSERT which names none leaves out.
    pub(crate) invisible: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// How its values can be loaded.
    pub(crate) class: Class,
}

/// What the values of a column are to LOAD DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Digits, without quotes.
    Number,
    /// Text that is ASCII and is read the same in every character set: dates and times.
    Plain,
    /// Bytes.
    Bytes,
    /// Text whose bytes in the column are those in the dump.
    Utf8,
    /// Text of `latin1`, which is converted here.
    Latin1,
    /// Text of another character set in which ASCII is what it is in the dump.
    Ascii,
    /// Text that the server has to convert, or to take for what it is.
    Text,
    /// What INSERT alone writes for sure.
    Other,
}

/// Character sets in which ASCII stands for itself, as bytes of their own.
const ASCII: [&str; 24] = [
    "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852",
    "cp866", "koi8r", "koi8u", "greek", "hebrew", "tis620", "macce", "macroman", "euckr", "ujis",
    "eucjpms", "gb2312", "gbk", "gb18030", "big5",
];

/// What a table says whose rows have a history.
const VERSIONED: &[u8] = b"WITH SYSTEM VERSIONING";

/// Takes a statement apart. `None` if it makes no table; a table that is not understood keeps its keys and has no columns.
/// `keep` leaves all keys in it.
#[must_use]
pub(crate) fn definition(statement: &[u8], keep: bool) -> Option<Definition> {
    let rest = statement.strip_prefix(b"CREATE TABLE ")?;
    let (name, length) = quoted(rest)?;
    let whole = Definition {
        name,
        create: statement.to_vec(),
        // In words that may mean something else: then INSERT writes its rows, as it could any.
        versioned: find(statement, VERSIONED).is_some(),
        ..Definition::default()
    };
    let begin = statement.len() - rest.len() + length;
    Some(understood(statement, begin, &whole, keep).unwrap_or(whole))
}

/// A part of a definition between its outer parentheses.
enum Item {
    Column(Column, Facts),
    Primary(Key),
    Key(Key),
    /// Comes after all others, whatever its place.
    FullText,
    Foreign,
    Check,
}

struct Key {
    unique: bool,
    /// Its first column; none where that is an expression.
    first: Option<String>,
    /// It is none that ALTER TABLE adds just so.
    special: bool,
}

struct Facts {
    generated: bool,
    counts: bool,
    invisible: bool,
}

fn understood(
    statement: &[u8],
    begin: usize,
    whole: &Definition,
    keep: bool,
) -> Option<Definition> {
    let (items, end) = items(statement, begin)?;
    let options = code(statement.get(end..)?);
    let has = |word: &str| find(&options, word.as_bytes()).is_some();
    let charset = word_after(&options, "CHARSET=");
    let mut parsed = vec![];
    for item in &items {
        parsed.push(parse(statement.get(item.clone())?, charset.as_deref())?);
    }
    let mut all = whole.clone();
    all.understood = true;
    all.versioned = find(&options, VERSIONED).is_some();
    for item in &parsed {
        if let Item::Column(column, facts) = item {
            if facts.generated {
                all.computed.push(column.name.clone());
            }
            if facts.invisible {
                all.invisible.push(column.name.clone());
            }
            if facts.counts {
                all.counter = Some(column.name.clone());
            }
            all.columns.push(column.clone());
        }
    }
    all.ordered = parsed.iter().any(|item| matches!(item, Item::Primary(_)));
    if !all.computed.is_empty() || all.versioned {
        for column in &mut all.columns {
            column.class = Class::Other;
        }
    }
    if keep || all.versioned || !has("ENGINE=InnoDB") {
        return Some(all);
    }
    let primary = parsed.iter().find_map(|item| match item {
        Item::Primary(key) => Some(key),
        _ => None,
    });
    let partitioned = has("PARTITION BY");
    // A server keeps its keys in an order of its own, in which those that are there come before those that are added: what
    // has to be there takes all before it along.
    let mut kept = 0;
    for (n, item) in parsed.iter().enumerate() {
        let Item::Key(key) = item else { continue };
        let counter = &all.counter;
        let counts = counter.is_some()
            && key.first == *counter
            && primary.is_none_or(|p| p.first != *counter);
        // The first unique key is what the table is ordered by, where it has no primary one.
        let orders = primary.is_none() && (key.unique || partitioned);
        if counts || orders || key.special {
            kept = n + 1;
        }
    }
    let mut dropped = vec![];
    for (n, (item, range)) in parsed.iter().zip(&items).enumerate() {
        let list = match item {
            Item::Key(_) if n >= kept => &mut all.keys,
            Item::Foreign => &mut all.foreign_keys,
            _ => continue,
        };
        list.push(statement.get(range.clone())?.to_vec());
        dropped.push(n);
    }
    if dropped.is_empty() {
        return Some(all);
    }
    let first = items.first()?;
    let mut create = statement.get(..first.start)?.to_vec();
    let left = (0..items.len()).filter(|n| !dropped.contains(n));
    for (i, n) in left.enumerate() {
        if i > 0 {
            create.extend_from_slice(b",\n  ");
        }
        create.extend_from_slice(statement.get(items.get(n)?.clone())?);
    }
    create.extend_from_slice(statement.get(items.last()?.end..)?);
    all.create = create;
    Some(all)
}

/// The places of the items between the outer parentheses, and where the text after them begins.
fn items(statement: &[u8], begin: usize) -> Option<(Vec<Range<usize>>, usize)> {
    const OPEN: &[u8] = b" (\n  ";
    if !statement.get(begin..)?.starts_with(OPEN) {
        return None;
    }
    let mut all = vec![];
    let mut start = begin + OPEN.len();
    let (mut at, mut depth) = (start, 0usize);
    loop {
        match *statement.get(at)? {
            quote @ (b'\'' | b'"' | b'`') => at += in_quotes(statement.get(at..)?, quote)?,
            b'(' => {
                depth += 1;
                at += 1;
            }
            b')' if depth == 0 => {
                // The last line begins with it.
                if statement.get(at - 1) != Some(&b'\n') {
                    return None;
                }
                all.push(start..at - 1);
                return Some((all, at));
            }
            b')' => {
                depth -= 1;
                at += 1;
            }
            b',' if depth == 0 => {
                if !statement.get(at..)?.starts_with(b",\n  ") {
                    return None;
                }
                all.push(start..at);
                at += 4;
                start = at;
            }
            _ => at += 1,
        }
    }
}

/// Bytes from a quote to behind the one that closes it.
fn in_quotes(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The text with blanks in place of what stands in quotes.
fn code(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let length = match byte {
            b'\'' | b'"' | b'`' => in_quotes(&text[at..], byte).unwrap_or(text.len() - at),
            _ => 0,
        };
        out[at..at + length].fill(b' ');
        at += length.max(1);
    }
    out
}

fn find(text: &[u8], words: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, words)
}

/// The word after `words`.
fn word_after(text: &[u8], words: &str) -> Option<String> {
    let at = find(text, words.as_bytes())? + words.len();
    let word = text[at..]
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
    Some(word.map(|b| char::from(*b)).collect())
}

/// The name between backquotes at the beginning, and the bytes it takes.
fn quoted(text: &[u8]) -> Option<(String, usize)> {
    if text.first() != Some(&b'`') {
        return None;
    }
    let length = in_quotes(text, b'`')?;
    let name = std::str::from_utf8(text.get(1..length - 1)?).ok()?;
    Some((name.replace("``", "`"), length))
}

fn parse(item: &[u8], charset: Option<&str>) -> Option<Item> {
    if item.first() == Some(&b'`') {
        return column(item, charset);
    }
    let key = |begin: &str, unique: bool| {
        let rest = item.strip_prefix(begin.as_bytes())?;
        let length = if unique && begin.starts_with("PRIMARY") {
            0
        } else {
            let (_, length) = quoted(rest)?;
            // A blank, or a word on how it is made.
            length
        };
        let open = length + find(rest.get(length..)?, b"(")?;
        let words = code(rest.get(open..)?);
        Some(Key {
            unique,
            first: quoted(rest.get(open + 1..)?).map(|(name, _)| name),
            special: find(&words, b"WITHOUT OVERLAPS").is_some(),
        })
    };
    let special = |begin: &str| {
        let mut key = key(begin, false)?;
        key.special = true;
        Some(key)
    };
    if item.starts_with(b"PRIMARY KEY ") {
        return key("PRIMARY KEY ", true).map(Item::Primary);
    }
    if item.starts_with(b"UNIQUE KEY ") {
        return key("UNIQUE KEY ", true).map(Item::Key);
    }
    if item.starts_with(b"KEY ") {
        return key("KEY ", false).map(Item::Key);
    }
    if item.starts_with(b"SPATIAL KEY ") {
        return special("SPATIAL KEY ").map(Item::Key);
    }
    if item.starts_with(b"FULLTEXT KEY ") {
        return Some(Item::FullText);
    }
    let constraint = item.strip_prefix(b"CONSTRAINT ")?;
    let (_, length) = quoted(constraint)?;
    let what = constraint.get(length..)?;
    if what.starts_with(b" FOREIGN KEY (") {
        return Some(Item::Foreign);
    }
    what.starts_with(b" CHECK (").then_some(Item::Check)
}

fn column(item: &[u8], charset: Option<&str>) -> Option<Item> {
    let (name, length) = quoted(item)?;
    let text = code(item.get(length..)?);
    let text = text.strip_prefix(b" ")?;
    let type_ = text.iter().take_while(|b| b.is_ascii_alphanumeric());
    let type_: String = type_.map(|b| char::from(b.to_ascii_lowercase())).collect();
    let has = |words: &str| find(text, words.as_bytes()).is_some();
    let set = word_after(text, " CHARACTER SET ")
        .or_else(|| word_after(text, " COLLATE ").map(|c| prefix(&c)))
        .or_else(|| charset.map(str::to_owned));
    let class = match type_.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float"
        | "double" | "year" => Class::Number,
        "date" | "time" | "datetime" | "timestamp" => Class::Plain,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "bit" => {
            Class::Bytes
        }
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => {
            match set.as_deref() {
                Some("utf8mb4" | "utf8mb3" | "utf8" | "ascii") => Class::Utf8,
                Some("latin1") => Class::Latin1,
                Some(set) if ASCII.contains(&set) => Class::Ascii,
                _ => Class::Text,
            }
        }
        "json" | "uuid" | "inet4" | "inet6" => Class::Text,
        _ => Class::Other,
    };
    let facts = Facts {
        generated: has(" GENERATED ALWAYS ") || has(" AS ("),
        counts: has(" AUTO_INCREMENT"),
        invisible: has(" INVISIBLE"),
    };
    Some(Item::Column(Column { name, class }, facts))
}

/// The character set of a collation.
fn prefix(collation: &str) -> String {
    collation.split('_').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn of(text: &str) -> Definition {
        definition(text.as_bytes(), false).unwrap()
    }

    fn texts(all: &[Vec<u8>]) -> Vec<String> {
        all.iter()
            .map(|t| String::from_utf8(t.clone()).unwrap())
            .collect()
    }

    /// Keys and foreign keys that are made afterwards.
    fn later(text: &str) -> (Vec<String>, Vec<String>) {
        let of = of(text);
        assert!(of.understood, "{text}");
        (texts(&of.keys), texts(&of.foreign_keys))
    }

    // As MariaDB 10.11 and MySQL 9 show it.
    const ORDERS: &str = "CREATE TABLE `or``ders` (\n  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,\n  `who` varchar(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT 'a,\\n  KEY `x` (`y`)' COMMENT 'it''s, (so',\n  `how` enum('a)','b','CHARACTER SET latin1') COLLATE utf8mb4_bin NOT NULL,\n  `at` datetime(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),\n  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),\n  `b` varbinary(16) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `w` (`who`(5) DESC),\n  KEY `f` ((lower(`who`))) COMMENT 'a, b',\n  KEY `i` (`how`) /*!80000 INVISIBLE */,\n  FULLTEXT KEY `ft` (`who`),\n  CONSTRAINT `fk,` FOREIGN KEY (`who`) REFERENCES `other` (`id`) ON DELETE SET NULL,\n  CONSTRAINT `c` CHECK (`id` > 0)\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";

    #[test]
    fn keys_and_foreign_keys_are_made_afterwards_and_the_rest_stays() {
        let all = of(ORDERS);
        assert_eq!(
            (all.name.as_str(), all.understood, all.versioned),
            ("or`ders", true, false)
        );
        assert_eq!(
            texts(&all.keys),
            [
                "UNIQUE KEY `w` (`who`(5) DESC)",
                "KEY `f` ((lower(`who`))) COMMENT 'a, b'",
                "KEY `i` (`how`) /*!80000 INVISIBLE */"
            ]
        );
        assert_eq!(
            texts(&all.foreign_keys),
            ["CONSTRAINT `fk,` FOREIGN KEY (`who`) REFERENCES `other` (`id`) ON DELETE SET NULL"]
        );
        let create = String::from_utf8(all.create).unwrap();
        let (columns, rest) = create.split_once(",\n  PRIMARY KEY (`id`)").unwrap();
        assert!(ORDERS.starts_with(columns));
        assert_eq!(
            rest,
            ",\n  FULLTEXT KEY `ft` (`who`),\n  CONSTRAINT `c` CHECK (`id` > 0)\n) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
        );
        let classes: Vec<Class> = all.columns.iter().map(|c| c.class).collect();
        assert_eq!(
            classes,
            [
                Class::Number,
                Class::Latin1,
                Class::Utf8,
                Class::Plain,
                Class::Utf8,
                Class::Bytes
            ]
        );
        let kept = definition(ORDERS.as_bytes(), true).unwrap();
        assert_eq!(
            (kept.create, kept.keys.len()),
            (ORDERS.as_bytes().to_vec(), 0)
        );
    }

    fn table(items: &str, options: &str) -> String {
        format!("CREATE TABLE `t` (\n  {items}\n) {options}")
    }

    #[test]
    fn a_key_that_the_table_needs_stays_and_so_do_those_before_it() {
        let inno = "ENGINE=InnoDB DEFAULT CHARSET=latin1";
        let columns = "`id` int NOT NULL AUTO_INCREMENT,\n  `a` int";
        // The counter's key is not the primary one.
        let text = table(
            &format!(
                "{columns},\n  PRIMARY KEY (`a`,`id`),\n  KEY `a` (`a`),\n  KEY `id` (`id`),\n  KEY `b` (`a`)"
            ),
            inno,
        );
        assert_eq!(later(&text).0, ["KEY `b` (`a`)"]);
        // No primary key: the first unique one orders the rows.
        let text = table(
            &format!(
                "{columns},\n  UNIQUE KEY `u` (`id`),\n  UNIQUE KEY `v` (`a`),\n  KEY `b` (`a`)"
            ),
            inno,
        );
        assert_eq!(later(&text).0, ["KEY `b` (`a`)"]);
        let text = table(
            "`a` int,\n  `g` point NOT NULL,\n  KEY `a` (`a`),\n  SPATIAL KEY `g` (`g`),\n  KEY `b` (`a`)",
            inno,
        );
        assert_eq!(later(&text).0, ["KEY `b` (`a`)"]);
        assert_eq!(of(&text).columns[1].class, Class::Other);
        // A partition by a key that is no primary one.
        let text = table(
            "`a` int,\n  KEY `a` (`a`)",
            "ENGINE=InnoDB\n PARTITION BY HASH (`a`)",
        );
        assert_eq!(later(&text).0, [""; 0]);
        let foreign =
            "`a` int,\n  KEY `a` (`a`),\n  CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `t` (`a`)";
        assert_eq!(later(&table(foreign, "ENGINE=MyISAM")), (vec![], vec![]));
        assert_eq!(later(&table(foreign, inno)).1.len(), 1);
    }

    #[test]
    fn what_only_insert_writes_for_sure_is_known() {
        let text = table(
            "`a` int,\n  `b` int GENERATED ALWAYS AS (`a` + 1) VIRTUAL",
            "ENGINE=InnoDB",
        );
        assert!(of(&text).columns.iter().all(|c| c.class == Class::Other));
        let text = table("`a` int", "ENGINE=InnoDB WITH SYSTEM VERSIONING");
        assert!(of(&text).versioned && of(&text).columns[0].class == Class::Other);
        // The words in a comment are none.
        let text = table(
            "`a` int COMMENT ' AS (x) GENERATED ALWAYS '",
            "ENGINE=InnoDB COMMENT='WITH SYSTEM VERSIONING'",
        );
        assert!(!of(&text).versioned && of(&text).columns[0].class == Class::Number);
    }

    #[test]
    fn what_is_not_understood_stays_as_it_is() {
        for text in [
            "CREATE TABLE `t` (`a` int, KEY (`a`)) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n  `a` int,\n  VECTOR KEY `v` (`a`)\n) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n  `a` int,\n  PERIOD FOR `p` (`x`, `y`)\n) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n  `a` int DEFAULT 'x,\n  KEY `a` (`a`)\n) ENGINE=InnoDB",
            "CREATE TABLE `t` LIKE `u`",
            "CREATE TABLE `t` (\n  `s` timestamp(6) GENERATED ALWAYS AS ROW START,\n  PERIOD FOR SYSTEM_TIME (`s`, `e`)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING",
        ] {
            let of = of(text);
            assert!(!of.understood && of.columns.is_empty(), "{text}");
            assert_eq!(of.versioned, text.contains("VERSIONING"));
            assert_eq!(
                (of.create.as_slice(), of.name.as_str()),
                (text.as_bytes(), "t")
            );
        }
        for text in [
            "CREATE TABLE t (a int)",
            "CREATE VIEW `v` AS",
            "SELECT 1",
            "",
        ] {
            assert_eq!(definition(text.as_bytes(), false), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart_or_left(text in "[`'\"(),\\\\ \nKEYa]{0,60}") {
            let text = format!("CREATE TABLE `t` (\n  {text}\n) ENGINE=InnoDB");
            let of = definition(text.as_bytes(), false).unwrap();
            proptest::prop_assert!(of.understood || of.create == text.as_bytes());
        }
    }
}
