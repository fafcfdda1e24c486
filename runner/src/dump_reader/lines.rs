//! The lines of a dump that say something: databases, definitions, programs, versions, positions.

use super::DumpReader;

/// Bytes of a position; the GTID sets of an old replica grow beyond use.
const POSITION: usize = 4096;

impl DumpReader {
    pub(super) fn read_line(&mut self, line: &str) {
        if self.continued {
            self.gtids(line);
            return;
        }
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
