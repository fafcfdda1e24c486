//! Reads the text of a dump as it streams by: tables, rows, an order-independent hash of each
//! table's rows, the footer, the server's version and the recorded position. What it finds is
//! consistent with the dump because it is made from it.
//!
//! It never holds a row: a row within one chunk is hashed where it lies, a row across chunks by
//! a streaming hash of the same value.

use std::collections::HashMap;

use memchr::{memchr, memchr2, memchr3};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Of a line that is looked at, so many bytes are kept.
const LINE: usize = 2048;

/// One table of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Database, as the dump names it.
    pub database: String,
    /// Table.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Sum modulo 2^128 of the XXH3-128 of each row's text `(…)`, 32 hex digits: the same for
    /// the same rows in any order.
    pub hash: String,
}

/// What a dump holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Databases named by `USE`, in their order.
    pub databases: Vec<String>,
    /// Tables in the order of the dump.
    pub tables: Vec<Table>,
    /// Views.
    pub views: u64,
    /// Triggers.
    pub triggers: u64,
    /// Procedures and functions.
    pub routines: u64,
    /// Events.
    pub events: u64,
    /// The last line is the client's footer, newline included.
    pub footer: bool,
    /// `-- Server version` of the header.
    pub server_version: String,
    /// Binlog position or GTID set, as the dump words it.
    pub position: String,
}

impl Summary {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first bytes of a line are being gathered.
    Start,
    /// A line worth reading is being gathered.
    Text,
    /// To the end of the line.
    Skip,
    /// Between `INSERT` and `VALUES`.
    Header { quoted: bool, matched: usize },
    /// Between rows.
    Between,
    /// In a row, this deep in parentheses.
    Row { depth: u32 },
    /// In a string of a row.
    Text1 { depth: u32 },
    /// After a backslash in a string of a row.
    Escape { depth: u32 },
}

#[derive(Default)]
struct Sum {
    rows: u64,
    hash: u128,
}

/// The reader; feed it chunks, then [`DumpReader::finish`].
pub struct DumpReader {
    state: State,
    line: Vec<u8>,
    database: String,
    programs: bool,
    summary: Summary,
    sums: Vec<Sum>,
    index: HashMap<(String, String), usize>,
    current: usize,
    name: Vec<u8>,
    name_done: bool,
    open: Option<Box<Xxh3>>,
}

impl Default for DumpReader {
    fn default() -> Self {
        Self {
            state: State::Start,
            line: Vec::with_capacity(LINE),
            database: String::new(),
            programs: false,
            summary: Summary::default(),
            sums: vec![],
            index: HashMap::new(),
            current: 0,
            name: vec![],
            name_done: false,
            open: None,
        }
    }
}

impl DumpReader {
    /// Reads the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut at = 0;
        // Where the open row begins in this chunk; 0 if it began in an earlier one.
        let mut row = 0;
        while at < chunk.len() {
            let rest = &chunk[at..];
            at += match self.state {
                State::Start => self.start(rest),
                State::Text => self.text(rest),
                State::Skip => self.skip(rest),
                State::Header { quoted, matched } => self.header(rest, quoted, matched),
                State::Between => {
                    let n = self.between(rest);
                    if matches!(self.state, State::Row { .. }) {
                        row = at + n - 1;
                    }
                    n
                }
                State::Row { depth } => {
                    let n = self.row(rest, depth);
                    if self.state == State::Between {
                        self.close_row(&chunk[row..at + n]);
                    }
                    n
                }
                State::Text1 { depth } => self.string(rest, depth),
                State::Escape { depth } => {
                    self.state = State::Text1 { depth };
                    1
                }
            };
        }
        if matches!(
            self.state,
            State::Row { .. } | State::Text1 { .. } | State::Escape { .. }
        ) {
            self.open
                .get_or_insert_with(|| Box::new(Xxh3::new()))
                .update(&chunk[row..]);
        }
    }

    /// What the dump held. A last line without its newline does not count as read.
    pub fn finish(mut self) -> Summary {
        if !self.line.is_empty() || !matches!(self.state, State::Start) {
            self.summary.footer = false;
        }
        for (table, sum) in self.summary.tables.iter_mut().zip(&self.sums) {
            table.rows = sum.rows;
            table.hash = format!("{:032x}", sum.hash);
        }
        self.summary
    }

    fn start(&mut self, rest: &[u8]) -> usize {
        if self.line.is_empty()
            && !matches!(
                rest[0],
                b'\n' | b'I' | b'R' | b'C' | b'U' | b'D' | b'-' | b'/' | b'S'
            )
        {
            self.state = State::Skip;
            return 0;
        }
        let want = 8 - self.line.len();
        let n = want.min(rest.len());
        if let Some(end) = memchr(b'\n', &rest[..n]) {
            self.line.extend_from_slice(&rest[..end]);
            self.end_of_line();
            return end + 1;
        }
        self.line.extend_from_slice(&rest[..n]);
        if self.line.len() == 8 {
            let insert = self.line.starts_with(b"INSERT ") || self.line.starts_with(b"REPLACE ");
            if insert && !self.programs {
                self.summary.footer = false;
                self.line.clear();
                self.name.clear();
                self.name_done = false;
                self.state = State::Header {
                    quoted: false,
                    matched: 0,
                };
            } else {
                self.state = State::Text;
            }
        }
        n
    }

    fn text(&mut self, rest: &[u8]) -> usize {
        let end = memchr(b'\n', rest);
        let part = &rest[..end.unwrap_or(rest.len())];
        let room = LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..room.min(part.len())]);
        match end {
            Some(end) => {
                self.end_of_line();
                end + 1
            }
            None => rest.len(),
        }
    }

    fn skip(&mut self, rest: &[u8]) -> usize {
        self.summary.footer = false;
        match memchr(b'\n', rest) {
            Some(end) => {
                self.state = State::Start;
                end + 1
            }
            None => rest.len(),
        }
    }

    fn header(&mut self, rest: &[u8], mut quoted: bool, mut matched: usize) -> usize {
        const VALUES: &[u8] = b"VALUES";
        for (i, &byte) in rest.iter().enumerate() {
            if byte == b'`' {
                // A doubled quote closes and opens again; the name keeps one of the two.
                if !quoted && !self.name_done && !self.name.is_empty() {
                    self.name.push(b'`');
                }
                quoted = !quoted;
                matched = 0;
                continue;
            }
            if quoted {
                if !self.name_done {
                    self.name.push(byte);
                }
                continue;
            }
            if !self.name.is_empty() {
                self.name_done = true;
            }
            if matches!(byte, b';' | b'\n') {
                self.state = if byte == b';' {
                    State::Skip
                } else {
                    State::Start
                };
                return i + 1;
            }
            matched = if byte == VALUES[matched] {
                matched + 1
            } else {
                usize::from(byte == VALUES[0])
            };
            if matched == VALUES.len() {
                let name = String::from_utf8_lossy(&self.name).into_owned();
                self.current = self.table(name);
                self.state = State::Between;
                return i + 1;
            }
        }
        self.state = State::Header { quoted, matched };
        rest.len()
    }

    fn between(&mut self, rest: &[u8]) -> usize {
        for (i, &byte) in rest.iter().enumerate() {
            match byte {
                b'(' => {
                    self.state = State::Row { depth: 1 };
                    return i + 1;
                }
                b';' => {
                    self.state = State::Skip;
                    return i + 1;
                }
                _ => {}
            }
        }
        rest.len()
    }

    fn row(&mut self, rest: &[u8], depth: u32) -> usize {
        let Some(i) = memchr3(b'\'', b'(', b')', rest) else {
            return rest.len();
        };
        self.state = match rest[i] {
            b'\'' => State::Text1 { depth },
            b'(' => State::Row { depth: depth + 1 },
            _ if depth == 1 => State::Between,
            _ => State::Row { depth: depth - 1 },
        };
        i + 1
    }

    fn string(&mut self, rest: &[u8], depth: u32) -> usize {
        let Some(i) = memchr2(b'\'', b'\\', rest) else {
            return rest.len();
        };
        self.state = if rest[i] == b'\'' {
            State::Row { depth }
        } else {
            State::Escape { depth }
        };
        i + 1
    }

    fn close_row(&mut self, text: &[u8]) {
        let hash = match self.open.take() {
            Some(mut open) => {
                open.update(text);
                open.digest128()
            }
            None => xxh3_128(text),
        };
        if let Some(sum) = self.sums.get_mut(self.current) {
            sum.rows += 1;
            sum.hash = sum.hash.wrapping_add(hash);
        }
    }

    fn end_of_line(&mut self) {
        self.state = State::Start;
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.summary.footer = false;
            self.read_line(&String::from_utf8_lossy(&line));
        }
        self.line = line;
        self.line.clear();
    }

    fn read_line(&mut self, line: &str) {
        if let Some(delimiter) = line.strip_prefix("DELIMITER ") {
            self.programs = delimiter.trim() != ";";
            return;
        }
        if self.programs {
            self.program(line);
            return;
        }
        if line.starts_with("-- ") {
            self.comment(line);
        } else if line.starts_with("USE `") {
            // Views come in a second round over the databases.
            self.database = quoted_name(line);
            if !self.summary.databases.contains(&self.database) {
                self.summary.databases.push(self.database.clone());
            }
        } else if line.starts_with("CREATE TABLE ") {
            self.table(quoted_name(line));
        } else if line.starts_with("/*!50001 VIEW ") {
            self.summary.views += 1;
        } else if line.starts_with("SET @@GLOBAL.GTID_PURGED=") {
            self.position(line);
        }
    }

    fn comment(&mut self, line: &str) {
        if line.starts_with("-- Dump completed") {
            self.summary.footer = true;
        } else if let Some(version) = line.strip_prefix("-- Server version") {
            self.summary.server_version = version.trim().to_owned();
        } else if [
            "-- CHANGE MASTER TO",
            "-- CHANGE REPLICATION SOURCE TO",
            "-- SET GLOBAL gtid_slave_pos",
        ]
        .iter()
        .any(|start| line.starts_with(start))
        {
            self.position(line.trim_start_matches("-- "));
        }
    }

    fn position(&mut self, text: &str) {
        if !self.summary.position.is_empty() {
            self.summary.position.push(' ');
        }
        self.summary.position.push_str(text.trim());
    }

    /// A line between `DELIMITER ;;` and `DELIMITER ;`: the first of a program says its kind.
    fn program(&mut self, line: &str) {
        let starts = line.starts_with("CREATE ")
            || (line.starts_with("/*!")
                && line
                    .get(8..)
                    .is_some_and(|r| r.trim_start().starts_with("CREATE")));
        if !starts {
            return;
        }
        // The server gives the user's own spelling of a trigger back.
        let upper = line.to_ascii_uppercase();
        let kinds = [" TRIGGER ", " PROCEDURE ", " FUNCTION ", " EVENT "];
        let first = kinds
            .iter()
            .filter_map(|kind| upper.find(kind).map(|at| (at, *kind)))
            .min();
        match first {
            Some((_, " TRIGGER ")) => self.summary.triggers += 1,
            Some((_, " EVENT ")) => self.summary.events += 1,
            Some(_) => self.summary.routines += 1,
            None => {}
        }
    }

    fn table(&mut self, name: String) -> usize {
        let key = (self.database.clone(), name);
        if let Some(index) = self.index.get(&key) {
            return *index;
        }
        let index = self.sums.len();
        self.sums.push(Sum::default());
        self.summary.tables.push(Table {
            database: key.0.clone(),
            name: key.1.clone(),
            ..Table::default()
        });
        self.index.insert(key, index);
        index
    }
}

/// The first name in backquotes, its doubled quotes made single.
fn quoted_name(line: &str) -> String {
    let mut name = String::new();
    let mut chars = line.chars().skip_while(|c| *c != '`').skip(1).peekable();
    while let Some(c) = chars.next() {
        if c == '`' {
            if chars.peek() != Some(&'`') {
                break;
            }
            chars.next();
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    const DUMP: &str = "/*M!999999\\- enable the sandbox mode */ \n\
-- MariaDB dump 10.19\n\
-- Server version\t10.11.19-MariaDB\n\
\n\
-- CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=330;\n\
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;\n\
USE `shop`;\n\
DROP TABLE IF EXISTS `t`;\n\
CREATE TABLE `t` (\n  `id` int(11) NOT NULL COMMENT 'INSERT INTO `x` VALUES (1);'\n) ENGINE=InnoDB;\n\
LOCK TABLES `t` WRITE;\n\
INSERT INTO `t` VALUES\n(1,'it\\'s (a) \"q\"; \\\\'),\n(2,NULL),\n(3,'a''b');\n\
INSERT INTO `t` VALUES (4,_binary '\\0)'),(5,0x00FF);\n\
CREATE TABLE `od``d` (\n  `VALUES (` int\n);\n\
INSERT INTO `od``d` (`VALUES (`) VALUES (1);\n\
CREATE TABLE `empty` (\n  `id` int\n);\n\
DELIMITER ;;\n\
CREATE DEFINER=`root`@`%` PROCEDURE `p`()\n\
INSERT INTO `t` VALUES (9,'x') ;;\n\
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ /*!50003 trigger trg BEFORE INSERT ON t FOR EACH ROW set @x=1 */;;\n\
/*!50106 CREATE*/ /*!50117 DEFINER=`root`@`%`*/ /*!50106 EVENT `e` ON SCHEDULE EVERY 1 DAY DO select 1 */ ;;\n\
DELIMITER ;\n\
USE `shop`;\n\
/*!50001 VIEW `v` AS select 1 */;\n\
-- Dump completed on 2025-01-15 10:30:00\n";

    fn read(text: &[u8], size: usize) -> Summary {
        let mut reader = DumpReader::default();
        text.chunks(size.max(1)).for_each(|c| reader.feed(c));
        reader.finish()
    }

    fn counts(summary: &Summary) -> Vec<(&str, &str, u64)> {
        summary
            .tables
            .iter()
            .map(|t| (t.database.as_str(), t.name.as_str(), t.rows))
            .collect()
    }

    #[test]
    fn a_dump_is_read_whole() {
        let summary = read(DUMP.as_bytes(), 1 << 20);
        assert_eq!(
            counts(&summary),
            [("shop", "t", 5), ("shop", "od`d", 1), ("shop", "empty", 0)]
        );
        assert_eq!(summary.databases, ["shop"]);
        assert_eq!(
            (
                summary.views,
                summary.triggers,
                summary.routines,
                summary.events
            ),
            (1, 1, 1, 1)
        );
        assert_eq!(summary.server_version, "10.11.19-MariaDB");
        assert_eq!(
            summary.position,
            "CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=330;"
        );
        assert!(summary.footer);
    }

    #[test]
    fn the_hash_is_the_sum_of_the_rows_hashes() {
        let summary = read(DUMP.as_bytes(), 7);
        let rows: [&[u8]; 5] = [
            br#"(1,'it\'s (a) "q"; \\')"#,
            b"(2,NULL)",
            b"(3,'a''b')",
            br"(4,_binary '\0)')",
            b"(5,0x00FF)",
        ];
        let sum = rows.iter().fold(0u128, |s, r| s.wrapping_add(xxh3_128(r)));
        assert_eq!(summary.tables[0].hash, format!("{sum:032x}"));
        assert_eq!(summary.tables[2].hash, "0".repeat(32));
    }

    #[test]
    fn a_cut_dump_has_no_footer() {
        for cut in [1, 20, 100, DUMP.len() / 2, DUMP.len() - 1] {
            let text = &DUMP.as_bytes()[..DUMP.len() - cut];
            assert!(!read(text, 64).footer, "cut by {cut}");
        }
        let more = format!("{DUMP}more\n");
        assert!(!read(more.as_bytes(), 64).footer);
        assert!(!read(b"", 64).footer);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(size in 1usize..200) {
            prop_assert_eq!(read(DUMP.as_bytes(), size), read(DUMP.as_bytes(), 1 << 20));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), size in 1usize..64) {
            let _ = read(&bytes, size);
        }

        #[test]
        fn order_of_rows_does_not_matter(mut values in prop::collection::vec(any::<u32>(), 1..40), turn in 0usize..40) {
            let dump = |values: &[u32]| {
                let rows: Vec<String> = values.iter().map(|v| format!("({v})")).collect();
                format!("USE `d`;\nINSERT INTO `t` VALUES {};\n", rows.join(","))
            };
            let before = read(dump(&values).as_bytes(), 9);
            let turn = turn % values.len();
            values.rotate_left(turn);
            prop_assert_eq!(&before, &read(dump(&values).as_bytes(), 31));
            values[0] = values[0].wrapping_add(1);
            prop_assert_ne!(&before.tables[0].hash, &read(dump(&values).as_bytes(), 31).tables[0].hash);
        }
    }
}
