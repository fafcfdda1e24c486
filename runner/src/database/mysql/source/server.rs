//! What the server is, holds and allows, read by the SQL client before the dump.

use crds::report::Reason;
use std::collections::BTreeMap;

use crds::parts::TlsMode;

use crate::database::mysql::source::client::{Client, Flavour};
use crate::database::mysql::source::errors::{explain, is_lost, number};
use crate::database::mysql::source::grants::Grants;
use crate::database::mysql::source::option_file::OptionFile;
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::process::{Ended, Parent};
use crate::settings::{Databases, Source};

/// Schemas of the server itself, never dumped: they do not restore into another version.
pub(super) const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// Rows that a server gives where no limit is set.
const NO_LIMIT: &str = "18446744073709551615";
/// So many names of a kind are read; the rest is counted.
const NAMED: usize = 200;
/// So many tables are read; of a server with more it is not compared which of them are in the dump.
const TABLES: usize = 200_000;
/// Databases that are asked for in one call.
const AT_ONCE: usize = 10;
/// Engines of which clients dump no rows, as those are elsewhere, or no table at all.
const ELSEWHERE: &str =
    "'MRG_MYISAM','MRG_ISAM','CONNECT','OQGRAPH','SPIDER','VP','FEDERATED','S3'";

/// Names of a kind: the first, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The first of them.
    pub first: Vec<String>,
    /// All of them.
    pub total: usize,
}

impl Names {
    /// These alone.
    pub fn of(names: Vec<String>) -> Self {
        Self {
            total: names.len(),
            first: names,
        }
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0 && self.first.is_empty()
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: Vec<&str> = self.first.iter().take(3).map(String::as_str).collect();
        write!(f, "{}", shown.join(", "))?;
        match self.total.saturating_sub(shown.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The server as observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Server variables: version, hostname, port, datadir, log_bin, server_uuid, gtid_mode, ….
    pub variables: BTreeMap<String, String>,
    /// Databases the user sees, the server's own left out.
    pub databases: Vec<String>,
    /// What the user may.
    pub grants: Grants,
    /// Rows that the server gives this user of a table at most (`sql_select_limit`).
    pub row_limit: Option<String>,
    /// Bytes of data and indexes, as the server estimates them.
    pub estimate: Option<u64>,
    /// Tables that a dump of what is asked for has to hold: database, table. `None` if there are too many.
    pub tables: Option<Vec<(String, String)>>,
    /// Those of the tables to leave out that are there: database.table.
    pub left_out: Names,
    /// Tables whose engine knows no transactions: database.table.
    pub not_transactional: Names,
    /// Tables whose rows no client dumps, as their engine has them elsewhere: database.table.
    pub elsewhere: Names,
    /// Tables with system versioning: database.table.
    pub versioned: Names,
    /// Those of them whose history is by transactions, which no client dumps: database.table.
    pub versioned_by_transaction: Names,
    /// FLOAT columns: database.table.column.
    pub floats: Names,
    /// Tables with generated columns: database.table.
    pub generated: Names,
    /// Routines whose body the user may not read: database.routine.
    pub hidden_routines: Names,
    /// Databases whose routines are not all listed for the user.
    pub unlisted_routines: Names,
    /// Databases whose triggers are not all listed for the user.
    pub unlisted_triggers: Names,
    /// Databases whose events the user may not read.
    pub hidden_events: Names,
    /// Databases of which the user sees single tables only.
    pub partly_seen: Names,
    /// What the client said where the server refused a question about what the dump will lack.
    pub unanswered: Option<String>,
    /// The binlog position belongs to the snapshot (MariaDB).
    pub snapshot_position: bool,
}

impl Server {
    /// What it calls itself.
    pub fn identity(&self) -> ServerIdentity {
        let variable = |name: &str| self.variable(name).to_owned();
        ServerIdentity {
            server_uuid: variable("server_uuid"),
            hostname: variable("hostname"),
            port: variable("port"),
            datadir: variable("datadir"),
        }
    }

    /// Its flavour.
    pub fn flavour(&self) -> Flavour {
        if self.variable("version").contains("MariaDB")
            || self.variable("version_comment").contains("mariadb")
        {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        }
    }

    /// A variable, or "".
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        let mut parts = self.variable("version").split(['.', '-']);
        let mut next = || parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
        (next(), next())
    }

    /// True if the user has one of these privileges on everything.
    pub fn may(&self, privileges: &[&str]) -> bool {
        let global = self.grants.global();
        global.contains("ALL PRIVILEGES") || privileges.iter().any(|p| global.contains(*p))
    }
}

const FIRST: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','version_comment','hostname','port','datadir','log_bin','server_uuid','gtid_mode','lower_case_table_names');\n\
SHOW SESSION STATUS LIKE 'Ssl_cipher';\n\
SELECT '@@databases';\nSHOW DATABASES;\n\
SELECT '@@limit';\nSELECT @@session.sql_select_limit;\n\
SELECT '@@grants';\nSHOW GRANTS;\n\
SELECT '@@snapshot';\nSHOW GLOBAL STATUS LIKE 'binlog_snapshot_file';\n";

/// Reads server, databases, grants, and what a dump of `source` will meet.
///
/// # Errors
/// The server can't be reached or refuses.
pub fn observe(
    client: &Client,
    options: &OptionFile,
    source: &Source,
    of: &impl Parent,
) -> Result<Server, Failure> {
    let ask = |sql: &str, more: &[&str]| {
        let mut args = vec![
            options.argument(),
            "--batch".to_owned(),
            "--skip-column-names".to_owned(),
            "--connect-timeout=15".to_owned(),
            "--default-character-set=utf8mb4".to_owned(),
        ];
        args.extend(more.iter().map(|a| (*a).to_owned()));
        client.run(of, &args, sql)
    };
    let (text, ended) = ask(FIRST, &[])?;
    if !ended.good() {
        return Err(explain(&client.name(), &ended, source));
    }
    let mut server = first(&text);
    demand_tls(source, &server)?;
    let wanted = match &source.databases {
        Databases::All => server.databases.clone(),
        Databases::Listed(names) => names.clone(),
    };
    if wanted.is_empty() {
        return Ok(server);
    }
    // A question that a server does not understand or refuses leaves the others their answers.
    let survey = |sql: &str| {
        let (text, ended) = ask(sql, &["--force"])?;
        match broken(&ended) {
            true => Err(explain(&client.name(), &ended, source)),
            false => Ok((text, ended)),
        }
    };
    let (text, ended) = survey(&second(&wanted, &source.exclude_tables))?;
    details(&text, &mut server);
    server.unanswered = ended.messages.iter().find(|m| is_refusal(m)).cloned();
    let mut hidden = vec![];
    for some in wanted.chunks(AT_ONCE) {
        let events: String = std::iter::once("SET SESSION lock_wait_timeout=2;\n".to_owned())
            .chain(
                some.iter()
                    .map(|d| format!("SHOW EVENTS FROM {} LIKE '';\n", identifier(d))),
            )
            .collect();
        let (_, ended) = survey(&events)?;
        for message in ended.messages {
            match events_hidden_in(&message) {
                Some(database) => hidden.push(database),
                None if is_refusal(&message) => {
                    server.unanswered.get_or_insert(message);
                }
                None => {}
            }
        }
    }
    server.hidden_events = Names::of(hidden);
    unseen(&mut server, &wanted);
    Ok(server)
}

/// The server refuses the question: what it has no column or table for, it has no such thing of.
fn is_refusal(message: &str) -> bool {
    !matches!(number(message), None | Some(1054 | 1109 | 1146))
}

/// The database whose events the user may not see, by what the server answers to `SHOW EVENTS`.
fn events_hidden_in(message: &str) -> Option<String> {
    let end = message.rsplit_once("database '")?.1.strip_suffix('\'');
    let database = end.filter(|_| number(message) == Some(1044));
    database.map(str::to_owned)
}

/// The client's connection broke, or the client was ended: what it did not answer is not known.
fn broken(ended: &Ended) -> bool {
    let lost = |m: &String| number(m).is_some_and(is_lost);
    ended.stalled.is_some() || ended.status.code().is_none() || ended.messages.iter().any(lost)
}

/// What the grants say of things that a server lists only for who may see them.
fn unseen(server: &mut Server, wanted: &[String]) {
    let lacking = |any: &[&str]| {
        let without = |d: &&String| !server.grants.on_all_of(d, any);
        wanted.iter().filter(without).cloned().collect::<Vec<_>>()
    };
    let partly = lacking(&["SELECT"]);
    // Where each table there is has a grant of its own, none that is there lacks its triggers.
    let mut triggers = lacking(&["TRIGGER"]);
    triggers.retain(|database| {
        let covered = |t: &str| server.grants.on_table(database, t, &["TRIGGER"]);
        let all = server.tables.iter().flatten();
        let mut seen = all.filter(|(d, _)| d == database).peekable();
        seen.peek().is_none() || !seen.all(|(_, t)| covered(t))
    });
    // Who reads all bodies, and who may call or make routines, is shown all of them.
    let read = ["SELECT"];
    let bodies = server.may(&["SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"])
        || server.grants.on_table("mysql", "proc", &read);
    let mut routines = lacking(&[
        "EXECUTE",
        "ALTER ROUTINE",
        "CREATE ROUTINE",
        "SHOW CREATE ROUTINE",
    ]);
    routines.retain(|_| !bodies);
    server.partly_seen = Names::of(partly);
    server.unlisted_triggers = Names::of(triggers);
    server.unlisted_routines = Names::of(routines);
}

/// Which of these tables are there now: database, table.
///
/// # Errors
/// The server can't be asked.
pub fn still_there(
    client: &Client,
    options: &OptionFile,
    tables: &[(String, String)],
    of: &impl Parent,
) -> Result<Vec<(String, String)>, Failure> {
    let pairs: Vec<String> = tables
        .iter()
        .map(|(d, t)| format!("({},{})", literal(d), literal(t)))
        .collect();
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({});\n",
        pairs.join(",")
    );
    let args = [
        options.argument(),
        "--batch".to_owned(),
        "--skip-column-names".to_owned(),
        "--connect-timeout=15".to_owned(),
        "--default-character-set=utf8mb4".to_owned(),
    ];
    let (text, _) = client.run(of, &args, &sql)?;
    let pairs = text.lines().filter_map(|l| l.split_once('\t'));
    Ok(pairs.map(|(d, t)| (unescaped(d), unescaped(t))).collect())
}

/// MariaDB's clients before 11.4 speak without TLS to a server that offers none, even if told to use it.
fn demand_tls(source: &Source, server: &Server) -> Result<(), Failure> {
    let demanded = !matches!(source.tls, TlsMode::Disabled | TlsMode::Preferred);
    if demanded && server.variable("Ssl_cipher").is_empty() {
        return Err(Failure::new(
            Reason::TlsFailed,
            format!(
                "spec.source.tls.mode is {:?} but the server offers no TLS: set it up there, or lower the mode",
                source.tls
            ),
        ));
    }
    Ok(())
}

fn first(text: &str) -> Server {
    let mut server = Server::default();
    let mut section = "";
    for line in text.lines() {
        if line.starts_with("@@") {
            section = line;
            continue;
        }
        match section {
            "" => {
                if let Some((name, value)) = line.split_once('\t') {
                    server.variables.insert(name.to_owned(), value.to_owned());
                }
            }
            "@@databases" => {
                if !SYSTEM.contains(&line.to_lowercase().as_str()) {
                    server.databases.push(unescaped(line));
                }
            }
            "@@limit" => {
                server.row_limit = Some(line.to_owned()).filter(|l| l != NO_LIMIT);
            }
            "@@grants" => server.grants.take(&unescaped(line)),
            _ => {
                server.snapshot_position |= line.to_lowercase().starts_with("binlog_snapshot_file")
            }
        }
    }
    server
}

fn second(databases: &[String], left_out: &[(String, String)]) -> String {
    let list = literals(databases);
    let excluded: Vec<String> = left_out.iter().map(|(d, t)| format!("{d}.{t}")).collect();
    let excluded = match excluded.as_slice() {
        [] => "''".to_owned(),
        names => literals(names),
    };
    let wanted = |alias: &str| {
        format!(
            "{alias}TABLE_SCHEMA IN ({list}) AND CONCAT({alias}TABLE_SCHEMA,'.',{alias}TABLE_NAME) NOT IN ({excluded})"
        )
    };
    let table = "CONCAT(TABLE_SCHEMA,'.',TABLE_NAME)";
    let (of_table, of_engine) = (wanted(""), wanted("t."));
    let kinds = [
        (
            "engine",
            table.to_owned(),
            format!(
                "TABLES t JOIN information_schema.ENGINES e ON e.ENGINE=t.ENGINE WHERE {of_engine} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND e.TRANSACTIONS<>'YES'"
            ),
        ),
        (
            "elsewhere",
            table.to_owned(),
            format!("TABLES WHERE {of_table} AND UPPER(ENGINE) IN ({ELSEWHERE})"),
        ),
        (
            "excluded",
            table.to_owned(),
            format!("TABLES WHERE {table} IN ({excluded})"),
        ),
        (
            "versioned",
            table.to_owned(),
            format!("TABLES WHERE {of_table} AND TABLE_TYPE='SYSTEM VERSIONED'"),
        ),
        (
            "transactions",
            format!("DISTINCT {table}"),
            format!(
                "COLUMNS WHERE {of_table} AND GENERATION_EXPRESSION='ROW START' AND DATA_TYPE='bigint'"
            ),
        ),
        (
            "float",
            "CONCAT(TABLE_SCHEMA,'.',TABLE_NAME,'.',COLUMN_NAME)".to_owned(),
            format!("COLUMNS WHERE {of_table} AND DATA_TYPE='float'"),
        ),
        (
            "generated",
            format!("DISTINCT {table}"),
            format!(
                "COLUMNS WHERE {of_table} AND COALESCE(GENERATION_EXPRESSION,'') NOT IN ('','ROW START','ROW END')"
            ),
        ),
        (
            "routine",
            "CONCAT(ROUTINE_SCHEMA,'.',ROUTINE_NAME)".to_owned(),
            format!("ROUTINES WHERE ROUTINE_SCHEMA IN ({list}) AND ROUTINE_DEFINITION IS NULL"),
        ),
    ];
    let mut sql = format!(
        "SET SESSION lock_wait_timeout=2, sql_select_limit={NO_LIMIT};\n\
         SELECT 'estimate', COALESCE(SUM(DATA_LENGTH),0) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({list});\n"
    );
    for (kind, what, from) in kinds {
        sql.push_str(&format!(
            "SELECT '{kind}', n FROM (SELECT {what} n FROM information_schema.{from} LIMIT {NAMED}) x;\n\
             SELECT '#{kind}', COUNT({what}) FROM information_schema.{from};\n"
        ));
    }
    sql.push_str(&format!(
        "SELECT 'table', TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {of_table} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND COALESCE(UPPER(ENGINE),'') NOT IN ({ELSEWHERE}) LIMIT {};\nSELECT 'tables';\n",
        TABLES + 1
    ));
    sql
}

fn details(text: &str, server: &mut Server) {
    let mut tables = vec![];
    for line in text.lines() {
        if line == "tables" {
            // The list came to its end.
            server.tables = Some(std::mem::take(&mut tables)).filter(|t| t.len() <= TABLES);
            continue;
        }
        let Some((kind, rest)) = line.split_once('\t') else {
            continue;
        };
        match kind {
            "estimate" => server.estimate = rest.parse().ok(),
            "table" => {
                let pair = rest.split_once('\t');
                tables.extend(pair.map(|(d, t)| (unescaped(d), unescaped(t))));
            }
            _ => {
                let names = match kind.trim_start_matches('#') {
                    "engine" => &mut server.not_transactional,
                    "elsewhere" => &mut server.elsewhere,
                    "excluded" => &mut server.left_out,
                    "versioned" => &mut server.versioned,
                    "transactions" => &mut server.versioned_by_transaction,
                    "float" => &mut server.floats,
                    "generated" => &mut server.generated,
                    "routine" => &mut server.hidden_routines,
                    _ => continue,
                };
                match kind.starts_with('#') {
                    true => names.total = rest.parse().unwrap_or(names.first.len()),
                    false => names.first.push(unescaped(rest)),
                }
            }
        }
    }
}

/// A value as it is: in batches the client writes line ends, tabs and backslashes by a backslash.
pub(super) fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        value.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    value
}

fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Names as a list of SQL strings.
pub fn literals(names: &[String]) -> String {
    let all: Vec<String> = names.iter().map(|n| literal(n)).collect();
    all.join(",")
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_are_sorted_into_a_server() {
        let text = "hostname\tdb-0\nlog_bin\tON\nversion\t10.11.19-MariaDB-log\n@@databases\ninformation_schema\nshop\nMYSQL\n@@limit\n7\n@@grants\nGRANT SELECT, RELOAD ON *.* TO `bk`@`%` IDENTIFIED BY PASSWORD '*AA'\nGRANT EVENT ON `shop`.* TO `bk`@`%`\n@@snapshot\nBinlog_snapshot_file\tb.1\n";
        let server = first(text);
        assert_eq!(server.databases, ["shop"]);
        assert_eq!(server.flavour(), Flavour::MariaDb);
        assert_eq!(server.version(), (10, 11));
        assert!(server.may(&["RELOAD"]) && !server.may(&["EVENT"]));
        assert!(server.snapshot_position);
        assert_eq!(server.row_limit.as_deref(), Some("7"));
        assert!(server.grants.on_all_of("shop", &["EVENT"]));
        assert!(!server.grants.on_all_of("other", &["EVENT"]));
    }

    #[test]
    fn t5_what_a_user_is_not_shown_follows_from_its_grants() {
        let wanted = ["shop".to_owned(), "own".to_owned()];
        let mut server = first(
            "@@grants\nGRANT SELECT ON `shop`.* TO `u`@`%`\nGRANT ALL PRIVILEGES ON `own`.* TO `u`@`%`\n",
        );
        unseen(&mut server, &wanted);
        let shop = Names::of(vec!["shop".to_owned()]);
        assert_eq!(server.unlisted_triggers, shop);
        assert_eq!(server.unlisted_routines, shop);
        assert!(server.partly_seen.is_empty());
        let mut server = first(
            "@@grants\nGRANT SELECT, TRIGGER ON `shop`.`t` TO `u`@`%`\nGRANT SELECT ON `mysql`.`proc` TO `u`@`%`\n",
        );
        let pair = |d: &str, t: &str| (d.to_owned(), t.to_owned());
        server.tables = Some(vec![pair("shop", "t")]);
        unseen(&mut server, &wanted[..1]);
        assert_eq!(server.partly_seen, shop);
        assert!(server.unlisted_triggers.is_empty() && server.unlisted_routines.is_empty());
        server.tables = Some(vec![pair("shop", "t"), pair("shop", "u")]);
        unseen(&mut server, &wanted[..1]);
        assert_eq!(server.unlisted_triggers, shop);
    }

    #[test]
    fn t5_names_are_read_and_all_are_counted() {
        let mut server = Server::default();
        let text =
            "estimate\t12\nfloat\ta.b\\nc.d\n#float\t4711\n#engine\t0\ntable\td\\te\tt\ntables\n";
        details(text, &mut server);
        assert_eq!(server.estimate, Some(12));
        assert_eq!(server.floats.to_string(), "a.b\nc.d and 4710 more");
        assert!(server.not_transactional.is_empty());
        assert_eq!(
            server.tables,
            Some(vec![("d\te".to_owned(), "t".to_owned())])
        );
        let mut cut = Server::default();
        details("table\td\tt\n", &mut cut);
        assert_eq!(cut.tables, None);
    }

    /// Numbers by the server's own list of errors.
    #[test]
    fn what_a_server_answers_to_the_question_for_events() {
        for (message, hidden, refusal) in [
            (
                "ERROR 1044 (42000) at line 2: Access denied for user 'bk'@'%' to database 'shop'",
                Some("shop"),
                true,
            ),
            // In another language nothing says which.
            (
                "ERROR 1044 (42000) at line 2: Benutzer 'bk'@'%' hat keine Zugriffsberechtigung für Datenbank 'shop'.",
                None,
                true,
            ),
            (
                "ERROR 1205 (HY000) at line 3: Lock wait timeout exceeded; try restarting transaction",
                None,
                true,
            ),
            (
                "ERROR 1577 (HY000) at line 2: Cannot proceed, because event scheduler is disabled",
                None,
                true,
            ),
            (
                "ERROR 1146 (42S02) at line 2: Table 'mysql.event' doesn't exist",
                None,
                false,
            ),
            ("WARNING: option --x is deprecated", None, false),
        ] {
            assert_eq!(events_hidden_in(message).as_deref(), hidden, "{message}");
            assert_eq!(is_refusal(message), refusal, "{message}");
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(literal("a'b\\"), "'a''b\\\\'");
    }
}
