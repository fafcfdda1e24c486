//! The lines of a dump that say something: databases, definitions, programs, versions, positions.

use crate::database::mysql::dump_reader::{Began, DumpReader, LINE};

/// Bytes of a position; the GTID sets of an old replica grow beyond use.
const POSITION: usize = 4096;

/// How lines of a dump's head begin; each is there once.
pub(super) const HEADS: [&str; 3] = ["-- MySQL dump ", "-- MariaDB dump ", "-- Server version\t"];
/// What may name something whose name holds a line end.
const NAMING: [&str; 3] = ["USE `", "CREATE TABLE ", "CREATE SEQUENCE "];

impl DumpReader {
    /// Reads a line, or what a line end in a name has made several lines of.
    pub(super) fn take_line(&mut self, line: &str) {
        if self.named.is_empty() {
            for (count, head) in self.heads.iter_mut().zip(HEADS) {
                *count += u32::from(line.starts_with(head));
            }
        }
        let begins = self.began == Began::Top && NAMING.iter().any(|n| line.starts_with(n));
        if self.named.is_empty() && !(begins && self.syntax.is_in_name()) {
            return self.read_line(line);
        }
        self.named.push_str(line);
        if self.syntax.is_in_name() && self.named.len() < LINE {
            self.named.push('\n');
            return;
        }
        let whole = std::mem::take(&mut self.named);
        self.began = Began::Top;
        self.read_line(&whole);
    }

    fn read_line(&mut self, line: &str) {
        if self.continued {
            self.gtids(line);
            return;
        }
        if self.began == Began::Hidden {
            return;
        }
        if self.began == Began::Code {
            // The last line of a view's statement.
            if !self.programs && line.starts_with("/*!50001 VIEW ") {
                self.summary.views += 1;
            }
            return;
        }
        if let Some(delimiter) = line.strip_prefix("DELIMITER ") {
            self.programs = delimiter.trim() != ";";
            self.syntax.delimit(delimiter.trim().as_bytes());
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
        } else if line.starts_with("CREATE SEQUENCE ") {
            self.summary.sequences += 1;
        } else if line.starts_with("/*!50001 VIEW ") {
            self.summary.views += 1;
        } else if let Some(set) = line
            .strip_prefix("SET @@GLOBAL.GTID_PURGED=")
            .or_else(|| line.strip_prefix("/* SET @@GLOBAL.GTID_PURGED="))
        {
            self.position("GTID_PURGED=");
            self.gtids(set);
        }
    }

    fn comment(&mut self, line: &str) {
        if line.starts_with("-- Dump completed") {
            // Before that it is a comment that older clients broke where a name holds a line end.
            if self.syntax.is_restored() {
                self.closings += 1;
                self.closed = true;
            }
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

    /// A GTID set: one server a line, the last one ends with quote and semicolon.
    fn gtids(&mut self, line: &str) {
        let text = line.trim_end_matches("*/");
        self.continued = !text.ends_with(';');
        if self.summary.position.len() + text.len() <= POSITION {
            self.summary.position.push_str(text);
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
        let kinds = [
            " TRIGGER ",
            " PROCEDURE ",
            " FUNCTION ",
            " EVENT ",
            " LIBRARY ",
        ];
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
