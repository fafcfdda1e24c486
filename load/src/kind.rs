//! What a statement of a dump is to a load by several sessions. What is not known here is none of the forms that clients write:
//! it runs in its order, when all before it is done. PURE.

use crate::comments::is_dashes;

/// What a statement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SET of what is said.
    Set(Vec<Assigned>),
    /// USE of a database.
    Use(String),
    /// `CREATE TABLE` in the form of SHOW CREATE: see `definition`.
    Table,
    /// `INSERT INTO`, which may be rows: see `values`.
    Insert,
    /// `ALTER TABLE … DISABLE KEYS` or ENABLE: of this table.
    Keys {
        /// Its name.
        table: String,
        /// ENABLE.
        enable: bool,
    },
    /// Has nothing to do with rows: a database, a stand-in of a view, a routine.
    Apart,
    /// `DROP TABLE IF EXISTS` of this one table.
    Drop(String),
    /// A trigger is made.
    Trigger,
    /// LOCK TABLES, UNLOCK TABLES.
    Lock,
    /// COMMIT.
    Commit,
    /// What takes rows back, or a transaction that is not each statement's own: not followed.
    Transaction,
    /// Another statement, which ends a transaction that is open.
    Definition,
    /// Another statement.
    Other,
    /// No statement of a server.
    Foreign,
}

/// What a SET sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Assigned {
    /// A variable of the user's, in lower case and without `@`, and its value, which reads nothing but variables.
    User(String, String),
    /// A variable of the session, in lower case, and its value. `names` is SET NAMES.
    Session(String, String),
    /// Something else.
    Else,
}

/// Verbs of statements that run in their order.
const VERBS: [&str; 21] = [
    "UPDATE", "DELETE", "SELECT", "CALL", "DO", "TRUNCATE", "RENAME", "ANALYZE", "OPTIMIZE",
    "GRANT", "REVOKE", "FLUSH", "CREATE", "DROP", "ALTER", "INSERT", "REPLACE", "LOAD", "REPAIR",
    "CHECK", "WITH",
];
/// Verbs that end a transaction.
const DEFINE: [&str; 7] = [
    "CREATE", "DROP", "ALTER", "TRUNCATE", "RENAME", "GRANT", "REVOKE",
];

/// Says what a statement is.
#[must_use]
pub(crate) fn kind(statement: &[u8]) -> Kind {
    if statement.starts_with(b"INSERT INTO `") {
        return Kind::Insert;
    }
    if statement.starts_with(b"CREATE TABLE `") {
        return Kind::Table;
    }
    let words = words(statement);
    let word = |n: usize| words.get(n).map_or("", |w| w.plain.as_str());
    let name = |n: usize| words.get(n).and_then(|w| w.name.clone());
    let last = words.len();
    match (word(0), word(1)) {
        ("SET", _) => Kind::Set(assigned(&bare(statement))),
        ("USE", "") if last == 2 => name(1).map_or(Kind::Other, Kind::Use),
        ("LOCK" | "UNLOCK", "TABLES" | "TABLE") => Kind::Lock,
        ("COMMIT", "") if last == 1 => Kind::Commit,
        ("ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" | "BEGIN" | "COMMIT", _)
        | ("START", "TRANSACTION") => Kind::Transaction,
        ("ALTER", "TABLE") if last == 5 && word(4) == "KEYS" => match (name(2), word(3)) {
            (Some(table), "ENABLE") => Kind::Keys {
                table,
                enable: true,
            },
            (Some(table), "DISABLE") => Kind::Keys {
                table,
                enable: false,
            },
            _ => Kind::Definition,
        },
        ("DROP", "TABLE") if last == 5 && (word(2), word(3)) == ("IF", "EXISTS") => {
            name(4).map_or(Kind::Definition, Kind::Drop)
        }
        ("DROP", "VIEW" | "PROCEDURE" | "FUNCTION" | "PACKAGE") => Kind::Apart,
        ("ALTER", "DATABASE") => Kind::Apart,
        // The next value of a sequence, of numbers alone.
        ("DO" | "SELECT", "SETVAL") if statement.iter().filter(|b| **b == b'(').count() == 1 => {
            Kind::Apart
        }
        ("CREATE", _) => created(statement, &words),
        (verb, _) if DEFINE.contains(&verb) => Kind::Definition,
        (verb, _) if VERBS.contains(&verb) => Kind::Other,
        _ => Kind::Foreign,
    }
}

fn created(statement: &[u8], words: &[Word]) -> Kind {
    const KINDS: [&str; 10] = [
        "TABLE",
        "VIEW",
        "TRIGGER",
        "PROCEDURE",
        "FUNCTION",
        "PACKAGE",
        "EVENT",
        "DATABASE",
        "SEQUENCE",
        "TEMPORARY",
    ];
    let of = words
        .iter()
        .skip(1)
        .find_map(|w| KINDS.iter().find(|kind| w.plain == **kind));
    let reads = |word: &str| {
        let upper = statement.to_ascii_uppercase();
        memchr::memmem::find(&upper, word.as_bytes()).is_some()
    };
    match of.copied() {
        Some("DATABASE" | "PROCEDURE" | "FUNCTION" | "PACKAGE") => Kind::Apart,
        // The stand-in of a view, which reads nothing.
        Some("VIEW") if !reads("FROM") => Kind::Apart,
        Some("TABLE")
            if statement.starts_with(b"/*!")
                && !reads("SELECT")
                && !reads("LIKE")
                && !reads("REFERENCES") =>
        {
            Kind::Apart
        }
        Some("TRIGGER") => Kind::Trigger,
        _ => Kind::Definition,
    }
}

/// A word of a statement, in upper case, or a name between backquotes.
struct Word {
    plain: String,
    name: Option<String>,
}

/// So many words are looked at.
const WORDS: usize = 24;

/// The first words: comments that are executed are code, all others and signs are left out.
fn words(statement: &[u8]) -> Vec<Word> {
    let mut all = vec![];
    let mut rest = statement;
    while all.len() < WORDS {
        rest = rest.trim_ascii_start();
        let Some(first) = rest.first() else { break };
        let of_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | 0x80..);
        if let Some(begin) = ["/*!", "/*M!"]
            .iter()
            .find(|b| rest.starts_with(b.as_bytes()))
        {
            rest = &rest[begin.len()..];
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            rest = &rest[digits..];
        } else if rest.starts_with(b"/*") {
            let end = memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
        } else if is_dashes(rest) || *first == b'#' {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            rest = &rest[end..];
        } else if matches!(first, b'`' | b'\'' | b'"') {
            let mut at = 1;
            let end = loop {
                let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr(*first, rest))
                else {
                    break rest.len();
                };
                at += found + 1;
                if rest.get(at) != Some(first) {
                    break at;
                }
                at += 1;
            };
            let inside = rest.get(1..end - 1).unwrap_or_default();
            let name = String::from_utf8(inside.to_vec())
                .ok()
                .filter(|_| *first == b'`');
            all.push(Word {
                plain: String::new(),
                name: name.map(|name| name.replace("``", "`")),
            });
            rest = &rest[end..];
        } else if of_word(first) {
            let length = rest.iter().take_while(|b| of_word(b)).count();
            all.push(Word {
                plain: String::from_utf8_lossy(&rest[..length]).to_ascii_uppercase(),
                name: None,
            });
            rest = &rest[length..];
        } else if rest.starts_with(b"*/") {
            rest = &rest[2..];
        } else {
            // A sign: a name with its database before it is none of the simple forms.
            if *first == b'.' {
                all.push(Word {
                    plain: ".".to_owned(),
                    name: None,
                });
            }
            rest = &rest[1..];
        }
    }
    all
}

/// A SET without the comment around it.
fn bare(statement: &[u8]) -> String {
    let text = String::from_utf8_lossy(statement);
    let inner = ["/*!", "/*M!"]
        .iter()
        .find_map(|begin| text.strip_prefix(begin));
    match inner.and_then(|inner| inner.strip_suffix("*/")) {
        Some(inner) => inner
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim()
            .to_owned(),
        None => text.trim().to_owned(),
    }
}

fn assigned(set: &str) -> Vec<Assigned> {
    let Some(rest) = set
        .get(..3)
        .filter(|w| w.eq_ignore_ascii_case("SET"))
        .and_then(|_| set.get(3..))
    else {
        return vec![Assigned::Else];
    };
    let rest = rest.trim();
    if rest.contains(['(', '/', '#', ';']) || rest.contains("--") {
        return vec![Assigned::Else];
    }
    let upper = rest.to_ascii_uppercase();
    if let Some(set) = upper.strip_prefix("NAMES ") {
        let value = set.trim().trim_matches('\'').to_ascii_lowercase();
        return vec![Assigned::Session("names".to_owned(), value)];
    }
    parts(rest).into_iter().map(one).collect()
}

/// What stands between commas outside of quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut all, mut begin, mut quote) = (vec![], 0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"' | '`') => quote = Some(c),
            (Some(by), c) if by == c => quote = None,
            (None, ',') => {
                all.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(&text[begin..]);
    all
}

fn one(part: &str) -> Assigned {
    let Some((name, value)) = part.split_once('=') else {
        return Assigned::Else;
    };
    let name = name
        .trim()
        .trim_end_matches(':')
        .trim()
        .to_ascii_lowercase();
    let value = value.trim();
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let quoted = |by: char| value.len() > 1 && value.starts_with(by) && value.ends_with(by);
    let plain = quoted('\'') || quoted('"') || {
        let of = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '.' | '-' | '+');
        !value.is_empty() && value.chars().all(of)
    };
    if !plain {
        return Assigned::Else;
    }
    let unquoted = || value.trim_matches(['\'', '"']).to_owned();
    if let Some(user) = name.strip_prefix('@').filter(|n| !n.starts_with('@')) {
        return if is_name(user) {
            Assigned::User(user.to_owned(), unquoted())
        } else {
            Assigned::Else
        };
    }
    let name = name.trim_start_matches("@@");
    let session = ["session.", "local.", "session ", "local "];
    let name = session
        .iter()
        .find_map(|s| name.strip_prefix(s))
        .unwrap_or(name);
    if is_name(name) {
        Assigned::Session(name.to_owned(), unquoted())
    } else {
        Assigned::Else
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str, value: &str) -> Assigned {
        Assigned::Session(name.to_owned(), value.to_owned())
    }

    fn user(name: &str, value: &str) -> Assigned {
        Assigned::User(name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_clients_write_is_known() {
        let of = |text: &str| kind(text.as_bytes());
        assert_eq!(
            of("/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO,X' */"),
            Kind::Set(vec![
                user("old_sql_mode", "@@SQL_MODE"),
                session("sql_mode", "NO_AUTO_VALUE_ON_ZERO,X")
            ])
        );
        assert_eq!(
            of("/*M!100616 SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY */"),
            Kind::Set(vec![session("note_verbosity", "@OLD_NOTE_VERBOSITY")])
        );
        assert_eq!(
            of("/*!50503 SET NAMES utf8mb4 */"),
            Kind::Set(vec![session("names", "utf8mb4")])
        );
        assert_eq!(
            of("SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0"),
            Kind::Set(vec![
                user("old_autocommit", "@@AUTOCOMMIT"),
                session("autocommit", "0")
            ])
        );
        assert_eq!(
            of("set autocommit=0"),
            Kind::Set(vec![session("autocommit", "0")])
        );
        assert_eq!(
            of("/*!101100 SET @old=@@session.x, @@session.x=1 */"),
            Kind::Set(vec![user("old", "@@session.x"), session("x", "1")])
        );
        for odd in [
            "SET @@GLOBAL.GTID_PURGED='x'",
            "SET GLOBAL x = 1",
            "SET @x = (SELECT count(*) FROM t)",
            "SET ROLE x",
            "SET STATEMENT x=1 FOR SELECT 1",
        ] {
            assert_eq!(of(odd), Kind::Set(vec![Assigned::Else]), "{odd}");
        }
        assert_eq!(of("USE `a``b`"), Kind::Use("a`b".to_owned()));
        let keys = |enable| Kind::Keys {
            table: "t`".to_owned(),
            enable,
        };
        assert_eq!(
            of("/*!40000 ALTER TABLE `t``` DISABLE KEYS */"),
            keys(false)
        );
        assert_eq!(of("/*!40000 ALTER TABLE `t``` ENABLE KEYS */"), keys(true));
        assert_eq!(of("DROP TABLE IF EXISTS `t`"), Kind::Drop("t".to_owned()));
        for apart in [
            "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
            "/*!50001 CREATE VIEW `v` AS SELECT\n 1 AS `id`*/",
            "/*!50001 CREATE TABLE `v` (\n  `id` tinyint NOT NULL\n) ENGINE=MyISAM */",
            "/*!50001 DROP VIEW IF EXISTS `v`*/",
            "CREATE DEFINER=`root`@`%` PROCEDURE `p`() begin insert into t select * from u; end",
            "ALTER DATABASE `shop` CHARACTER SET latin1",
            "DO SETVAL(`s`, 1, 0)",
            "SELECT SETVAL(`s`, 5, 1)",
        ] {
            assert_eq!(of(apart), Kind::Apart, "{apart}");
        }
        assert_eq!(
            of(
                "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `VIEW` BEFORE INSERT ON `t` FOR EACH ROW set @x=1 */"
            ),
            Kind::Trigger
        );
        assert_eq!(of("INSERT INTO `t` VALUES (1)"), Kind::Insert);
        assert_eq!(of("CREATE TABLE `t` (\n"), Kind::Table);
        assert_eq!(of("UNLOCK TABLES"), Kind::Lock);
        assert_eq!(of("commit"), Kind::Commit);
    }

    #[test]
    fn what_may_depend_on_rows_is_none_of_those() {
        let of = |text: &str| kind(text.as_bytes());
        for definition in [
            "DROP TABLE IF EXISTS `t`, `u`",
            "DROP TABLE IF EXISTS `d`.`t`",
            "DROP TABLE `t`",
            "ALTER TABLE `d`.`t` ENABLE KEYS",
            "ALTER TABLE `t` ADD KEY (a)",
            "CREATE TABLE IF NOT EXISTS `t` (a int)",
            "/*!50001 CREATE TABLE `v` AS SELECT * FROM t */",
            "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`r`@`%` SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select 1 from `t` */",
            "/*!50106 CREATE*/ /*!50117 DEFINER=`r`@`%`*/ /*!50106 EVENT `e` ON SCHEDULE EVERY 1 DAY DO SELECT 1 */",
            "CREATE INDEX x ON t (a)",
            "CREATE SEQUENCE `s` start with 1",
            "DROP DATABASE IF EXISTS `d`",
        ] {
            assert_eq!(of(definition), Kind::Definition, "{definition}");
        }
        for other in [
            "INSERT IGNORE INTO `t` VALUES (1)",
            "INSERT INTO t VALUES (1)",
            "REPLACE INTO `t` VALUES (1)",
            "insert into `t` values (1)",
            "DELETE FROM t",
            "DO SETVAL(`s`, (SELECT max(a) FROM t), 0)",
        ] {
            assert_eq!(of(other), Kind::Other, "{other}");
        }
        for transaction in [
            "ROLLBACK",
            "START TRANSACTION",
            "BEGIN",
            "SAVEPOINT a",
            "COMMIT AND CHAIN",
        ] {
            assert_eq!(of(transaction), Kind::Transaction, "{transaction}");
        }
        for foreign in [
            "source x",
            "charset utf8",
            "x",
            "(1)",
            "",
            "USE `a`.`b`",
            "USE a",
        ] {
            assert_eq!(of(foreign), Kind::Foreign, "{foreign}");
        }
    }
}
