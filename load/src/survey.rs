//! The first reading of a plain dump: whether several sessions can load it so that what is there afterwards is what the client
//! would have made of it. PURE.

use crate::definition;
use crate::kind::{Assigned, Kind, kind};
use crate::settings::Settings;
use crate::split::Splitter;

/// Character sets in which no byte of a character looks like a quote or a backslash.
const SETS: [&str; 7] = [
    "utf8mb4", "utf8", "utf8mb3", "latin1", "binary", "ascii", "latin2",
];
/// Modes in which a string is not what it is in the text of a client.
const MODES: [&str; 4] = ["NO_BACKSLASH_ESCAPES", "ANSI", "ORACLE", "PIPES_AS_CONCAT"];

/// What a load has to know of a plain dump beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// All tables keep their keys: one that is not understood may need a key of another one.
    pub(crate) keep: bool,
}

/// Reads a plain dump, as it is sent.
#[derive(Default)]
pub struct Survey {
    splitter: Splitter,
    flaw: Option<&'static str>,
    /// A table or rows have come.
    begun: bool,
    keep: bool,
    /// A statement is not committed by itself.
    gathers: bool,
    /// Rows came that are not committed.
    open: bool,
}

impl Survey {
    /// The next bytes.
    pub fn feed(&mut self, text: &[u8]) {
        if self.flaw.is_none() {
            self.splitter.feed(text);
            self.read();
        }
    }

    /// What it is.
    ///
    /// # Errors
    /// Why the client has to load it, in words that follow "it".
    pub fn finish(mut self) -> Result<Shape, &'static str> {
        if self.flaw.is_none() {
            self.splitter.finish();
            self.read();
        }
        match self.flaw {
            Some(flaw) => Err(flaw),
            None if self.open => Err("ends in a transaction that is not committed"),
            None => Ok(Shape { keep: self.keep }),
        }
    }

    fn read(&mut self) {
        let mut splitter = std::mem::take(&mut self.splitter);
        while self.flaw.is_none() {
            match splitter.next() {
                Ok(Some(of)) => {
                    let kind = kind(splitter.text(of.clone()));
                    splitter.heed(&kind);
                    self.statement(&kind, splitter.text(of), splitter.settings());
                }
                Ok(None) => break,
                Err(flaw) => self.flaw = Some(flaw),
            }
        }
        self.splitter = splitter;
    }

    fn statement(&mut self, kind: &Kind, statement: &[u8], settings: &Settings) {
        match kind {
            Kind::Foreign => {
                self.flaw =
                    Some("has what is no statement of SQL, perhaps a command of the client");
            }
            Kind::Transaction => self.flaw = Some("has transactions of its own"),
            Kind::Set(all) => self.set(all, settings),
            Kind::Insert => {
                self.open |= self.gathers;
                self.begins(settings);
            }
            Kind::Other => self.open |= self.gathers,
            Kind::Use(_) => {}
            Kind::Table => {
                self.open = false;
                self.keep |= definition::definition(statement, false).is_none_or(|of| {
                    let refers = memchr::memmem::find(&of.create, b" REFERENCES ").is_some();
                    !of.understood && refers
                });
                self.begins(settings);
            }
            // All of these end a transaction.
            Kind::Lock
            | Kind::Commit
            | Kind::Keys { .. }
            | Kind::Apart
            | Kind::Drop(_)
            | Kind::Trigger
            | Kind::Definition => self.open = false,
        }
    }

    /// What a dump's head has to say before its first table.
    fn begins(&mut self, settings: &Settings) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let (names, mode) = (settings.get("names").unwrap_or_default(), settings.mode());
        if !is_off(settings, "foreign_key_checks") {
            self.flaw = Some("does not switch foreign_key_checks off before its tables");
        } else if !SETS.contains(&names) {
            self.flaw = Some("is in a character set in which a quote may be part of a character");
        } else if !mode.contains("NO_AUTO_VALUE_ON_ZERO")
            || MODES.iter().any(|other| mode.contains(other))
        {
            self.flaw = Some("sets another sql_mode for its rows than clients do");
        }
    }

    fn set(&mut self, all: &[Assigned], settings: &Settings) {
        if !self.begun && all.contains(&Assigned::Else) {
            self.flaw = Some("has a setting in its head that is not known");
        }
        self.gathers = is_off(settings, "autocommit");
        // What was open is committed where each statement is again.
        self.open &= self.gathers;
    }
}

fn is_off(settings: &Settings, name: &str) -> bool {
    let value = settings.get(name);
    value.is_some_and(|v| v == "0" || v.eq_ignore_ascii_case("off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "/*!50503 SET NAMES utf8mb4 */;\n/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;\n/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;\nCREATE TABLE `t` (\n  `a` int\n);\n";

    fn of(text: &str) -> Result<Shape, &'static str> {
        let mut survey = Survey::default();
        for chunk in text.as_bytes().chunks(7) {
            survey.feed(chunk);
        }
        survey.finish()
    }

    fn after(rest: &str) -> Result<Shape, &'static str> {
        of(&format!("{HEAD}{rest}"))
    }

    #[test]
    fn what_clients_write_is_followed() {
        for rest in [
            "INSERT INTO `t` VALUES (1);\n",
            "LOCK TABLES `t` WRITE;\nset autocommit=0;\nINSERT INTO `t` VALUES (1);\nUNLOCK TABLES;\ncommit;\n",
            "SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0;\nINSERT INTO `t` VALUES (1);\nCOMMIT;\nSET AUTOCOMMIT=@OLD_AUTOCOMMIT;\n",
            "INSERT INTO `t` VALUES (1);\n/*!50003 SET sql_mode = 'NO_BACKSLASH_ESCAPES' */ ;\nDELIMITER ;;\nCREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET @x = '\\';;\nDELIMITER ;\n/*!50003 SET sql_mode = @saved_sql_mode */ ;\nSELECT '\\';';\n",
            "INSERT INTO `t` SELECT * FROM u;DELETE FROM t;",
        ] {
            assert_eq!(after(rest), Ok(Shape { keep: false }), "{rest}");
        }
        // A database that has no tables comes first, with its programs: each under its own mode, which is put back.
        let (head, table) = HEAD.split_at(HEAD.find("CREATE").unwrap());
        let program = "/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;\n/*!50003 SET sql_mode              = 'ANSI' */ ;\nDELIMITER ;;\nCREATE DEFINER=`a`@`b` PROCEDURE `p`() begin select 1; end ;;\nDELIMITER ;\n/*!50003 SET sql_mode              = @saved_sql_mode */ ;\n";
        let first = format!("{head}{program}{table}");
        assert_eq!(of(&first), Ok(Shape { keep: false }));
        let lost = first.replace("= @saved_sql_mode", "= @another");
        assert!(of(&lost).unwrap_err().contains("sql_mode"));
        let refers = "CREATE TABLE `u` (`a` int, CONSTRAINT x FOREIGN KEY (a) REFERENCES t(a));INSERT INTO `t` VALUES (1);";
        assert_eq!(after(refers), Ok(Shape { keep: true }));
    }

    #[test]
    fn what_the_client_has_to_load_is_told() {
        for (rest, words) in [
            (
                "INSERT INTO `t` VALUES (1);ROLLBACK;",
                "transactions of its own",
            ),
            (
                "START TRANSACTION;INSERT INTO `t` VALUES (1);COMMIT;",
                "transactions of its own",
            ),
            (
                "set autocommit=0;INSERT INTO `t` VALUES (1);",
                "not committed",
            ),
            ("source x;\n", "command of the client"),
            ("INSERT INTO `t` VALUES (1) \\G\n;", "backslash"),
            ("INSERT INTO `t` VALUES (1)", "without an end"),
        ] {
            let flaw = after(rest).unwrap_err();
            assert!(flaw.contains(words), "{rest}: {flaw}");
        }
        for (from, to, words) in [
            ("utf8mb4", "gbk", "character set"),
            (
                "FOREIGN_KEY_CHECKS=0",
                "FOREIGN_KEY_CHECKS=1",
                "foreign_key_checks",
            ),
            ("NO_AUTO_VALUE_ON_ZERO", "", "sql_mode"),
            (
                "NO_AUTO_VALUE_ON_ZERO",
                "NO_AUTO_VALUE_ON_ZERO,ANSI_QUOTES",
                "sql_mode",
            ),
            ("SET NAMES utf8mb4", "SET GLOBAL x=1", "setting in its head"),
        ] {
            let text = format!("{}INSERT INTO `t` VALUES (1);", HEAD.replace(from, to));
            let flaw = of(&text).unwrap_err();
            assert!(flaw.contains(words), "{to}: {flaw}");
        }
    }
}
