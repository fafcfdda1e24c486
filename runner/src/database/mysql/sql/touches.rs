//! What a statement of a binary log changes, by its tokens: tables, a database, programs of one, or nothing that a backup of a part
//! has. What can't be told for sure is said to be unknown, never guessed.

use super::selection::Named;
use super::tokens::{Kind, Modes, Token, qualified, tokens};

/// Numbers in `sql_mode`: ANSI_QUOTES, NO_BACKSLASH_ESCAPES.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

/// What a statement changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementChange {
    /// It is of the transaction: begins, ends or divides it.
    Transaction,
    /// Accounts, caches, statistics: nothing of any database.
    Nothing,
    /// These tables or sequences; and those that its definition refers to.
    Tables {
        /// What is changed.
        names: Vec<Named>,
        /// What must be there for that.
        refers: Vec<Named>,
    },
    /// A database itself.
    Database(String),
    /// A database that is made.
    NewDatabase(String),
    /// Views, routines or events of these databases; and databases that a view's text names.
    Programs {
        /// Whose they are.
        databases: Vec<String>,
        /// What may be read when it is made.
        reads: Vec<String>,
    },
    /// A trigger of this database, of a table where that is said.
    Trigger(String, Option<String>),
    /// It can't be told, and why.
    Unknown(&'static str),
}

const AS_STATEMENT: &str =
    "it was logged as a statement and not as rows, so that the tables it changes can't be told";
const WITHOUT_DATABASE: &str = "it names a table without its database";
const OTHER: &str = "it is no statement of which the tables are known";

/// What a statement changes that was given while `database` was the current one (empty: none), under this `sql_mode`.
pub fn touched(text: &[u8], database: &str, sql_mode: u64) -> StatementChange {
    let modes = Modes {
        ansi: sql_mode & ANSI_QUOTES != 0,
        plain: sql_mode & NO_BACKSLASH_ESCAPES != 0,
    };
    let all = tokens(text, modes);
    let end = all
        .iter()
        .rposition(|token| !token.sign(b';'))
        .map_or(0, |last| last + 1);
    let statement = Statement {
        text,
        all: &all[..end],
        database,
    };
    statement.touched().unwrap_or_else(StatementChange::Unknown)
}

struct Statement<'a> {
    text: &'a [u8],
    all: &'a [Token],
    database: &'a str,
}

type Told<T> = Result<T, &'static str>;

impl Statement<'_> {
    fn is(&self, at: usize, word: &str) -> bool {
        self.all.get(at).is_some_and(|t| t.is(self.text, word))
    }

    fn any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    fn sign(&self, at: usize, sign: u8) -> bool {
        self.all.get(at).is_some_and(|t| t.sign(sign))
    }

    /// Behind these words, if they stand there.
    fn past(&self, at: usize, words: &[&str]) -> usize {
        let all = words.iter().enumerate().all(|(i, w)| self.is(at + i, w));
        if all { at + words.len() } else { at }
    }

    fn past_condition(&self, at: usize) -> usize {
        let at = self.past(at, &["IF", "NOT", "EXISTS"]);
        self.past(at, &["IF", "EXISTS"])
    }

    /// A name with its database, and what comes behind it.
    fn name(&self, at: usize) -> Told<(Named, usize)> {
        let named = |at: usize| self.all.get(at).and_then(|t| t.name(self.text));
        match qualified(self.all, self.text, at) {
            (Some(database), Some(name)) => Ok((
                (
                    named(database).unwrap_or_default(),
                    named(name).unwrap_or_default(),
                ),
                at + 3,
            )),
            (None, Some(_)) if self.database.is_empty() => Err(WITHOUT_DATABASE),
            (None, Some(name)) => Ok((
                (self.database.to_owned(), named(name).unwrap_or_default()),
                at + 1,
            )),
            _ => Err(OTHER),
        }
    }

    /// Names with commas between them, up to the end or one of these words.
    fn names(&self, mut at: usize, ends: &[&str]) -> Told<Vec<Named>> {
        let mut found = vec![];
        loop {
            let (name, next) = self.name(at)?;
            found.push(name);
            if next >= self.all.len() || self.any(next, ends) {
                return Ok(found);
            }
            if !self.sign(next, b',') {
                return Err(OTHER);
            }
            at = next + 1;
        }
    }

    fn touched(&self) -> Told<StatementChange> {
        const TRANSACTION: [&str; 7] = [
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT",
            "RELEASE",
            "START",
            "XA",
        ];
        const NOTHING: [&str; 8] = [
            "FLUSH", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "GRANT", "REVOKE", "RESET",
        ];
        if self.any(0, &TRANSACTION) {
            return Ok(StatementChange::Transaction);
        }
        if self.any(0, &NOTHING) {
            return Ok(StatementChange::Nothing);
        }
        if self.is(0, "SET") {
            let of_accounts =
                self.any(1, &["PASSWORD", "ROLE"]) || self.is(1, "DEFAULT") && self.is(2, "ROLE");
            return if of_accounts {
                Ok(StatementChange::Nothing)
            } else {
                Err(AS_STATEMENT)
            };
        }
        if self.is(0, "TRUNCATE") {
            let at = self.past(1, &["TABLE"]);
            return self.tables(self.names(at, &["WAIT", "NOWAIT"])?);
        }
        if self.is(0, "DELETE") {
            // What a server writes for a table in memory that it has lost.
            let (name, next) = self.name(self.past(1, &["FROM"]))?;
            if next == self.all.len() {
                return self.tables(vec![name]);
            }
            return Err(AS_STATEMENT);
        }
        if self.is(0, "RENAME") {
            return self.rename();
        }
        if self.is(0, "DROP") {
            return self.drop();
        }
        if self.is(0, "CREATE") || self.is(0, "ALTER") {
            return self.define(self.is(0, "ALTER"));
        }
        Err(AS_STATEMENT)
    }

    fn tables(&self, names: Vec<Named>) -> Told<StatementChange> {
        Ok(StatementChange::Tables {
            names,
            refers: vec![],
        })
    }

    fn rename(&self) -> Told<StatementChange> {
        if self.any(1, &["USER", "ROLE"]) {
            return Ok(StatementChange::Nothing);
        }
        if !self.any(1, &["TABLE", "TABLES"]) {
            return Err(OTHER);
        }
        let (mut at, mut names) = (self.past_condition(2), vec![]);
        loop {
            let (from, next) = self.name(at)?;
            let next = match self.is(next, "WAIT") {
                true => next + 2,
                false => self.past(next, &["NOWAIT"]),
            };
            if !self.is(next, "TO") {
                return Err(OTHER);
            }
            let (to, next) = self.name(next + 1)?;
            names.extend([from, to]);
            if next >= self.all.len() {
                return self.tables(names);
            }
            if !self.sign(next, b',') {
                return Err(OTHER);
            }
            at = next + 1;
        }
    }

    fn drop(&self) -> Told<StatementChange> {
        let at = self.past_condition(2);
        if self.any(1, &["TEMPORARY", "USER", "ROLE"]) {
            return Ok(StatementChange::Nothing);
        }
        if self.any(1, &["PREPARE"]) {
            return Ok(StatementChange::Nothing);
        }
        if self.any(1, &["TABLE", "TABLES", "SEQUENCE"]) {
            let ends = ["RESTRICT", "CASCADE", "WAIT", "NOWAIT"];
            return self.tables(self.names(at, &ends)?);
        }
        if self.any(1, &["DATABASE", "SCHEMA"]) {
            let name = self.all.get(at).and_then(|t| t.name(self.text));
            return name.map(StatementChange::Database).ok_or(OTHER);
        }
        if self.is(1, "INDEX") {
            return self.on(at);
        }
        if self.is(1, "VIEW") {
            let names = self.names(at, &["RESTRICT", "CASCADE"])?;
            return Ok(StatementChange::Programs {
                databases: names.into_iter().map(|(database, _)| database).collect(),
                reads: vec![],
            });
        }
        if self.is(1, "TRIGGER") {
            let ((database, _), _) = self.name(at)?;
            return Ok(StatementChange::Trigger(database, None));
        }
        if self.any(1, &["PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "LIBRARY"]) {
            return self.program(self.past_condition(self.past(at, &["BODY"])));
        }
        Err(OTHER)
    }

    /// The table behind the first ON.
    fn on(&self, from: usize) -> Told<StatementChange> {
        let on = (from..self.all.len()).find(|at| self.is(*at, "ON"));
        let (name, _) = self.name(on.ok_or(OTHER)? + 1)?;
        self.tables(vec![name])
    }

    fn program(&self, at: usize) -> Told<StatementChange> {
        let ((database, _), _) = self.name(at)?;
        Ok(StatementChange::Programs {
            databases: vec![database],
            reads: vec![],
        })
    }

    /// CREATE and ALTER.
    fn define(&self, alters: bool) -> Told<StatementChange> {
        const MODIFIERS: [&str; 10] = [
            "OR",
            "REPLACE",
            "AGGREGATE",
            "UNIQUE",
            "FULLTEXT",
            "VECTOR",
            "ONLINE",
            "OFFLINE",
            "IGNORE",
            "SPATIAL",
        ];
        let mut at = 1;
        loop {
            if self.is(at, "DEFINER") && self.sign(at + 1, b'=') {
                at += 3;
                let host = self.all.get(at);
                if host.is_some_and(|t| t.kind == Kind::Variable) {
                    at += 1;
                }
                if self.sign(at, b'(') && self.sign(at + 1, b')') {
                    at += 2;
                }
            } else if self.is(at, "ALGORITHM") && self.sign(at + 1, b'=')
                || self.is(at, "SQL") && self.is(at + 1, "SECURITY")
            {
                at += 3;
            } else if self.any(at, &MODIFIERS) && !self.is(at + 1, "REFERENCE") {
                at += 1;
            } else {
                break;
            }
        }
        let behind = self.past_condition(at + 1);
        if self.any(at, &["TEMPORARY", "USER", "ROLE", "INSTANCE"]) {
            return Ok(StatementChange::Nothing);
        }
        if self.is(at, "TABLE") {
            return self.table(behind, alters);
        }
        if self.is(at, "SEQUENCE") {
            let (name, _) = self.name(behind)?;
            return self.tables(vec![name]);
        }
        if self.is(at, "INDEX") {
            return self.on(behind);
        }
        if self.any(at, &["DATABASE", "SCHEMA"]) {
            let name = self.all.get(behind).and_then(|t| t.name(self.text));
            // ALTER DATABASE may leave its name out.
            const OPTIONS: [&str; 8] = [
                "CHARACTER",
                "CHARSET",
                "COLLATE",
                "DEFAULT",
                "ENCRYPTION",
                "READ",
                "COMMENT",
                "UPGRADE",
            ];
            if alters && (name.is_none() || self.any(behind, &OPTIONS)) {
                return match self.database {
                    "" => Err(WITHOUT_DATABASE),
                    current => Ok(StatementChange::Database(current.to_owned())),
                };
            }
            let change = match alters {
                true => StatementChange::Database,
                false => StatementChange::NewDatabase,
            };
            return name.map(change).ok_or(OTHER);
        }
        if self.is(at, "VIEW") {
            let ((database, _), next) = self.name(behind)?;
            return Ok(StatementChange::Programs {
                databases: vec![database],
                reads: self.qualifiers(next),
            });
        }
        if self.is(at, "TRIGGER") {
            let (_, next) = self.name(behind)?;
            let on = (next..self.all.len()).find(|at| self.is(*at, "ON"));
            let ((of, table), _) = self.name(on.ok_or(OTHER)? + 1)?;
            // A trigger is of its table's database.
            return Ok(StatementChange::Trigger(of, Some(table)));
        }
        if self.any(
            at,
            &["PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "LIBRARY"],
        ) {
            let at = self.past_condition(self.past(behind, &["BODY"]));
            if (at..self.all.len()).any(|at| self.is(at, "SONAME")) {
                return Err(OTHER);
            }
            return self.program(at);
        }
        Err(OTHER)
    }

    /// Names that stand before a dot.
    fn qualifiers(&self, from: usize) -> Vec<String> {
        let mut found: Vec<String> = (from..self.all.len())
            .filter(|at| self.sign(at + 1, b'.'))
            .filter_map(|at| self.all[at].name(self.text))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// CREATE TABLE and ALTER TABLE, from the table's name on.
    fn table(&self, at: usize, alters: bool) -> Told<StatementChange> {
        let (name, next) = self.name(at)?;
        let (mut names, mut refers) = (vec![name], vec![]);
        let like = if self.sign(next, b'(') {
            next + 1
        } else {
            next
        };
        if !alters && self.is(like, "LIKE") {
            refers.push(self.name(like + 1)?.0);
        }
        for at in next..self.all.len() {
            if self.any(at, &["SELECT", "UNION", "VALUES", "INTERSECT", "EXCEPT"])
                && !(self.is(at, "VALUES") && self.any(at + 1, &["IN", "LESS"]))
            {
                return Err(AS_STATEMENT);
            }
            if self.is(at, "REFERENCES") {
                refers.push(self.name(at + 1)?.0);
            }
            if self.any(at, &["NEXTVAL", "LASTVAL"]) && self.sign(at + 1, b'(') {
                refers.push(self.name(at + 2)?.0);
            }
            if self.any(at, &["NEXT", "PREVIOUS"])
                && self.is(at + 1, "VALUE")
                && self.is(at + 2, "FOR")
            {
                refers.push(self.name(at + 3)?.0);
            }
            if !alters {
                continue;
            }
            let renames = self.is(at, "RENAME") && !self.any(at + 1, &["COLUMN", "INDEX", "KEY"]);
            if renames {
                let to = self.past(self.past(at + 1, &["TO"]), &["AS"]);
                let to = if self.sign(to, b'=') { to + 1 } else { to };
                names.push(self.name(to)?.0);
            }
            // EXCHANGE PARTITION … WITH TABLE, CONVERT PARTITION … TO TABLE, CONVERT TABLE … TO PARTITION.
            if self.is(at, "TABLE") {
                names.push(self.name(at + 1)?.0);
            }
        }
        Ok(StatementChange::Tables { names, refers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Named {
        let (database, name) = text.split_once('.').unwrap_or(("d", text));
        (database.to_owned(), name.to_owned())
    }

    fn tables(names: &[&str], refers: &[&str]) -> StatementChange {
        StatementChange::Tables {
            names: names.iter().map(|n| named(n)).collect(),
            refers: refers.iter().map(|n| named(n)).collect(),
        }
    }

    fn programs(databases: &[&str], reads: &[&str]) -> StatementChange {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        StatementChange::Programs {
            databases: owned(databases),
            reads: owned(reads),
        }
    }

    /// As MariaDB 10.11, 11.8 and MySQL 9.7 write them into their logs.
    #[test]
    fn what_a_statement_changes_is_told_by_its_tokens() {
        for (text, wanted) in [
            ("BEGIN", StatementChange::Transaction),
            ("SAVEPOINT `s`", StatementChange::Transaction),
            ("XA START X'61',X'',1", StatementChange::Transaction),
            ("GRANT ALL ON a.b TO c", StatementChange::Nothing),
            (
                "CREATE USER 'a'@'%' IDENTIFIED VIA x USING '*0'",
                StatementChange::Nothing,
            ),
            ("ALTER USER 'a'@'%'", StatementChange::Nothing),
            ("SET PASSWORD FOR 'a'@'%'='*0'", StatementChange::Nothing),
            ("ANALYZE TABLE t", StatementChange::Nothing),
            (
                "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`",
                StatementChange::Nothing,
            ),
            (
                "DROP TABLE `t` /* generated by server */",
                tables(&["t"], &[]),
            ),
            (
                "DROP TABLE IF EXISTS `a`.`t`,`u`,b.v /* generated by server */",
                tables(&["a.t", "u", "b.v"], &[]),
            ),
            ("DROP TABLE t CASCADE", tables(&["t"], &[])),
            ("TRUNCATE t", tables(&["t"], &[])),
            ("TRUNCATE TABLE a.t", tables(&["a.t"], &[])),
            ("DELETE FROM `a`.`mem`", tables(&["a.mem"], &[])),
            (
                "rename table a to b, x.c to `y`.`d`",
                tables(&["a", "b", "x.c", "y.d"], &[]),
            ),
            (
                "CREATE TABLE IF NOT EXISTS `t` (id int references other(id), v int default 1)",
                tables(&["t"], &["other"]),
            ),
            ("create table a.t like b.u", tables(&["a.t"], &["b.u"])),
            ("create table t (like u)", tables(&["t"], &["u"])),
            (
                "CREATE TABLE `t` (\n  `select` int, c int comment 'SELECT x REFERENCES y'\n)",
                tables(&["t"], &[]),
            ),
            (
                "create or replace table t (n bigint default (next value for `d`.`s`), m int default nextval(e.s))",
                tables(&["t"], &["d.s", "e.s"]),
            ),
            (
                "CREATE TABLE t (id int) PARTITION BY LIST (id) (PARTITION p VALUES IN (1))",
                tables(&["t"], &[]),
            ),
            (
                "create table t as select 1",
                StatementChange::Unknown(AS_STATEMENT),
            ),
            ("alter table t rename to a.u", tables(&["t", "a.u"], &[])),
            (
                "alter table t rename column a to b, add column c int",
                tables(&["t"], &[]),
            ),
            (
                "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE a.u",
                tables(&["t", "a.u"], &[]),
            ),
            (
                "alter table t add constraint c foreign key (a) references a.b (c)",
                tables(&["t"], &["a.b"]),
            ),
            ("create unique index i on t (a)", tables(&["t"], &[])),
            ("drop index i on a.t", tables(&["a.t"], &[])),
            ("CREATE SEQUENCE s", tables(&["s"], &[])),
            (
                "create database x",
                StatementChange::NewDatabase("x".into()),
            ),
            (
                "DROP SCHEMA IF EXISTS `x`",
                StatementChange::Database("x".into()),
            ),
            (
                "ALTER DATABASE CHARACTER SET = utf8mb4",
                StatementChange::Database("d".into()),
            ),
            (
                "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `a`.`v` AS select b.t.x from b.t",
                programs(&["a"], &["b", "t"]),
            ),
            ("drop view v, a.w", programs(&["d", "a"], &[])),
            (
                "CREATE DEFINER=`trigger`@`%` PROCEDURE `p`() begin drop table t; end",
                programs(&["d"], &[]),
            ),
            (
                "CREATE DEFINER=CURRENT_USER() FUNCTION a.f() returns int return 1",
                programs(&["a"], &[]),
            ),
            ("DROP EVENT IF EXISTS e", programs(&["d"], &[])),
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER `x` BEFORE INSERT ON `a`.`t` FOR EACH ROW set new.id = 1",
                StatementChange::Trigger("a".into(), Some("t".into())),
            ),
            (
                "drop trigger if exists x",
                StatementChange::Trigger("d".into(), None),
            ),
            (
                "INSERT INTO t VALUES (1)",
                StatementChange::Unknown(AS_STATEMENT),
            ),
            ("update t set a = 1", StatementChange::Unknown(AS_STATEMENT)),
            (
                "DELETE FROM t WHERE id = 1",
                StatementChange::Unknown(AS_STATEMENT),
            ),
            (
                "CREATE TABLESPACE x ADD DATAFILE 'y'",
                StatementChange::Unknown(OTHER),
            ),
            (
                "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
                StatementChange::Unknown(OTHER),
            ),
            ("", StatementChange::Unknown(AS_STATEMENT)),
        ] {
            assert_eq!(touched(text.as_bytes(), "d", 0), wanted, "{text}");
        }
        assert_eq!(
            touched(b"drop table t", "", 0),
            StatementChange::Unknown(WITHOUT_DATABASE)
        );
        assert_eq!(
            touched(b"drop table \"a\".\"t\"", "", ANSI_QUOTES),
            tables(&["a.t"], &[])
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(create|alter|drop|rename|truncate|delete)( (table|view|trigger|on|to|definer|=|`a`|b|\\.|,|\\(|references|rename)){0,12}") {
            let _ = touched(text.as_bytes(), "d", 0);
        }
    }
}
