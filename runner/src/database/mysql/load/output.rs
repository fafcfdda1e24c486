//! What the server says of what is loaded: its warnings, by table.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};

use crate::database::mysql::sql::{MARK, OTHER};
use crate::scrub::without_rows;

/// So many warnings of a table are kept.
const KEPT: usize = 3;
/// Longest line that is read.
const LINE: u64 = 4096;

/// Warnings that say that a row is not what was sent, or is not there.
const OF_ROWS: [u32; 26] = [
    1048, 1062, 1261, 1262, 1263, 1264, 1265, 1292, 1299, 1300, 1364, 1365, 1366, 1367, 1406, 1411,
    1441, 1452, 1525, 1526, 1586, 1690, 1748, 3751, 3819, 4025,
];
/// Warnings that are no news: what was to be dropped is not there, a word is old, a computed value
/// is computed anew.
const NO_NEWS: [u32; 15] = [
    1007, 1008, 1050, 1051, 1091, 1287, 1305, 1356, 1360, 1449, 1681, 1831, 1906, 3135, 3719,
];

/// What it said of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOutput {
    /// Of its rows: values it changed, rows it did not take.
    pub rows: Vec<String>,
    /// Of its definition.
    pub definition: Vec<String>,
}

/// What it said of one kind, of all tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindOutput {
    /// How often.
    pub count: u64,
    /// At which tables, by their numbers.
    pub tables: BTreeSet<usize>,
    /// Where and in which words it said so first.
    pub first: (usize, String),
}

/// What it said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOutput {
    /// Number of the table that was loaded last, from 1; 0 for other things.
    pub last: usize,
    /// By the number of the table.
    pub told: BTreeMap<usize, TableOutput>,
    /// Of rows, by the number of the warning.
    pub of_rows: BTreeMap<u32, KindOutput>,
    /// Of definitions, likewise.
    pub of_definitions: BTreeMap<u32, KindOutput>,
}

impl LoadOutput {
    /// Reads all that the client prints.
    pub(super) fn listen(output: impl Read) -> Self {
        let mut heard = Self::default();
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.by_ref().take(LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return heard,
                Ok(_) => heard.line(String::from_utf8_lossy(&line).trim_end()),
            }
        }
    }

    fn line(&mut self, line: &str) {
        if let Some(number) = line.strip_prefix(MARK) {
            self.last = number.parse().unwrap_or(OTHER);
            return;
        }
        let Some((level, rest)) = line.split_once(" (Code ") else {
            return;
        };
        let Some((code, text)) = rest.split_once("): ") else {
            return;
        };
        let Ok(code) = code.parse::<u32>() else {
            return;
        };
        if matches!(level, "Warning" | "Error" | "Note") {
            self.warned(self.last, level, code, (text, 1));
        }
    }

    /// Takes so many warnings of a kind at the table of this number, with the words of one.
    pub(crate) fn warned(
        &mut self,
        table: usize,
        level: &str,
        code: u32,
        (text, count): (&str, u64),
    ) {
        let of_rows = OF_ROWS.contains(&code);
        if !of_rows && (level == "Note" || NO_NEWS.contains(&code)) {
            return;
        }
        let told = self.told.entry(table).or_default();
        let list = if of_rows {
            &mut told.rows
        } else {
            &mut told.definition
        };
        let said = format!("{} ({code})", without_rows(text));
        let kinds = if of_rows {
            &mut self.of_rows
        } else {
            &mut self.of_definitions
        };
        let kind = kinds.entry(code).or_insert_with(|| KindOutput {
            first: (table, said.clone()),
            ..KindOutput::default()
        });
        kind.count = kind.count.saturating_add(count);
        kind.tables.insert(table);
        if list.len() < KEPT && !list.contains(&said) {
            list.push(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l5_warnings_belong_to_the_table_at_hand_and_quote_no_row() {
        // As MySQL 9.7 and MariaDB 10.11 print them.
        let text = "@@table 1\nNote (Code 1051): Unknown table 'ww.t'\n@@table 2\nWarning (Code 1264): Out of range value for column 'd' at row 1\nWarning (Code 1366): Incorrect string value: 'S3cr3t' for column `ww`.`t`.`c` at row 2\n@@table 0\nWarning (Code 1681): old\nWarning (Code 1266): Using storage engine InnoDB for table 't'\n";
        let heard = LoadOutput::listen(text.as_bytes());
        assert_eq!(heard.last, 0);
        let all = heard.told.clone();
        let told = |n: usize| all.get(&n).cloned().unwrap_or_default();
        assert_eq!(told(1), TableOutput::default());
        assert_eq!(
            told(2).rows,
            [
                "Out of range value for column 'd' at row 1 (1264)",
                "Incorrect string value: '…' for column `ww`.`t`.`c` at row 2 (1366)"
            ]
        );
        let of = |number| heard.of_rows.get(&number).map(|k| (k.count, k.first.0));
        assert_eq!(
            [of(1264), of(1366), of(1681)],
            [Some((1, 2)), Some((1, 2)), None]
        );
        let definitions: Vec<u32> = heard.of_definitions.into_keys().collect();
        assert_eq!(definitions, [1266]);
        assert_eq!(
            told(0).definition,
            ["Using storage engine InnoDB for table 't' (1266)"]
        );
    }
}
