//! What the server is, holds and allows, asked before the dump.

use std::collections::BTreeMap;

use crate::database::mysql::source::client::Flavour;
use crate::database::mysql::source::session::{Session, TextRow};
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::process::Parent;
use crate::settings::{Databases, Source};
use dump::Grants;
use dump::sql::literal;

/// Schemas of the server itself, never dumped: they do not restore into another version.
pub(super) const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// Rows that a server gives where no limit is set.
const NO_LIMIT: &str = "18446744073709551615";
/// So many names of a kind are read; the rest is counted.
const NAMED: usize = 200;
/// So many tables are read; of a server with more it is not compared which of them are in the dump.
const TABLES: usize = 200_000;
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
    /// What the server said where it refused a question about what the dump will lack.
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

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','version_comment','hostname','port','datadir','log_bin','server_uuid','gtid_mode','lower_case_table_names')";

/// Reads server, databases, grants, and what a dump of `source` will meet; true with it if TLS is on.
///
/// # Errors
/// The server can't be reached or refuses.
pub fn observe(source: &Source, of: &dyn Parent) -> Result<(Server, bool), Failure> {
    let mut session = Session::open(source, of)?;
    let mut server = first(&mut session)?;
    let secure = session.is_secure();
    let wanted = match &source.databases {
        Databases::All => server.databases.clone(),
        Databases::Listed(names) => names.clone(),
    };
    if !wanted.is_empty() {
        details(&mut session, &wanted, &source.exclude_tables, &mut server)?;
        unseen(&mut server, &wanted);
    }
    Ok((server, secure))
}

fn first(session: &mut Session<'_>) -> Result<Server, Failure> {
    let mut server = Server::default();
    let limit = session.demand("SELECT @@session.sql_select_limit")?;
    server.row_limit = limit.into_iter().flatten().find(|limit| limit != NO_LIMIT);
    if server.row_limit.is_some() {
        // It would cut the answers too.
        session.demand(&format!("SET SESSION sql_select_limit={NO_LIMIT}"))?;
    }
    for row in session.demand(VARIABLES)? {
        if let [name, value] = &row[..] {
            server.variables.insert(name.clone(), value.clone());
        }
    }
    let mut one = |sql: &str| Ok(session.demand(sql)?.into_iter().flatten());
    server.databases = one("SHOW DATABASES")?
        .filter(|name| !SYSTEM.contains(&name.to_lowercase().as_str()))
        .collect();
    one("SHOW GRANTS")?.for_each(|grant| server.grants.take(&grant));
    let snapshot = one("SHOW GLOBAL STATUS LIKE 'binlog_snapshot_file'")?;
    server.snapshot_position = snapshot.count() > 0;
    Ok(server)
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
    source: &Source,
    tables: &[(String, String)],
    of: &dyn Parent,
) -> Result<Vec<(String, String)>, Failure> {
    let pairs: Vec<String> = tables
        .iter()
        .map(|(d, t)| format!("({},{})", literal(d), literal(t)))
        .collect();
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({})",
        pairs.join(",")
    );
    Ok(in_pairs(Session::open(source, of)?.demand(&sql)?))
}

/// The first two values of each row.
fn in_pairs(rows: Vec<TextRow>) -> Vec<(String, String)> {
    let pair = |row: TextRow| {
        let mut values = row.into_iter();
        values.next().zip(values.next())
    };
    rows.into_iter().filter_map(pair).collect()
}

/// The server refuses the question. What it has no column or table for, it has no such thing of; that a database is not there
/// the dump says itself.
fn is_refusal(number: u16) -> bool {
    !matches!(number, 1049 | 1054 | 1109 | 1146)
}

/// What a dump will meet. A question that a server does not understand or refuses leaves the others their answers.
fn details(
    session: &mut Session<'_>,
    databases: &[String],
    left_out: &[(String, String)],
    server: &mut Server,
) -> Result<(), Failure> {
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
    let mut unanswered = None;
    let mut ask = |sql: &str| -> Result<Option<Vec<TextRow>>, Failure> {
        Ok(match session.ask(sql)? {
            Ok(rows) => Some(rows),
            Err(e) => {
                if is_refusal(e.number) {
                    unanswered.get_or_insert(e);
                }
                None
            }
        })
    };
    ask(&format!(
        "SET SESSION lock_wait_timeout=2, sql_select_limit={NO_LIMIT}"
    ))?;
    let estimate = ask(&format!(
        "SELECT COALESCE(SUM(DATA_LENGTH),0) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({list})"
    ))?;
    server.estimate = estimate.and_then(|rows| rows.first()?.first()?.parse().ok());
    let kinds = [
        (
            &mut server.not_transactional,
            table.to_owned(),
            format!(
                "TABLES t JOIN information_schema.ENGINES e ON e.ENGINE=t.ENGINE WHERE {of_engine} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND e.TRANSACTIONS<>'YES'"
            ),
        ),
        (
            &mut server.elsewhere,
            table.to_owned(),
            format!("TABLES WHERE {of_table} AND UPPER(ENGINE) IN ({ELSEWHERE})"),
        ),
        (
            &mut server.left_out,
            table.to_owned(),
            format!("TABLES WHERE {table} IN ({excluded})"),
        ),
        (
            &mut server.versioned,
            table.to_owned(),
            format!("TABLES WHERE {of_table} AND TABLE_TYPE='SYSTEM VERSIONED'"),
        ),
        (
            &mut server.versioned_by_transaction,
            format!("DISTINCT {table}"),
            format!(
                "COLUMNS WHERE {of_table} AND GENERATION_EXPRESSION='ROW START' AND DATA_TYPE='bigint'"
            ),
        ),
        (
            &mut server.floats,
            "CONCAT(TABLE_SCHEMA,'.',TABLE_NAME,'.',COLUMN_NAME)".to_owned(),
            format!("COLUMNS WHERE {of_table} AND DATA_TYPE='float'"),
        ),
        (
            &mut server.generated,
            format!("DISTINCT {table}"),
            format!(
                "COLUMNS WHERE {of_table} AND COALESCE(GENERATION_EXPRESSION,'') NOT IN ('','ROW START','ROW END')"
            ),
        ),
        (
            &mut server.hidden_routines,
            "CONCAT(ROUTINE_SCHEMA,'.',ROUTINE_NAME)".to_owned(),
            format!("ROUTINES WHERE ROUTINE_SCHEMA IN ({list}) AND ROUTINE_DEFINITION IS NULL"),
        ),
    ];
    for (names, what, from) in kinds {
        let from = format!("information_schema.{from}");
        let rows = ask(&format!("SELECT {what} FROM {from} LIMIT {NAMED}"))?;
        names.first = rows.into_iter().flatten().flatten().collect();
        let rows = ask(&format!("SELECT COUNT({what}) FROM {from}"))?;
        let total = rows.and_then(|rows| rows.first()?.first()?.parse().ok());
        names.total = total.unwrap_or(names.first.len());
    }
    let rows = ask(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {of_table} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') AND COALESCE(UPPER(ENGINE),'') NOT IN ({ELSEWHERE}) LIMIT {}",
        TABLES + 1
    ))?;
    server.tables = rows.map(in_pairs).filter(|t| t.len() <= TABLES);
    let mut hidden = vec![];
    for database in databases {
        let asked = session.ask(&format!(
            "SHOW EVENTS FROM {} LIKE ''",
            dump::sql::name(database)
        ))?;
        match asked {
            Err(e) if e.number == 1044 => hidden.push(database.clone()),
            Err(e) if is_refusal(e.number) => {
                unanswered.get_or_insert(e);
            }
            Ok(_) | Err(_) => {}
        }
    }
    server.hidden_events = Names::of(hidden);
    server.unanswered = unanswered.map(|e| e.to_string());
    Ok(())
}

/// Names as a list of SQL strings.
pub fn literals(names: &[String]) -> String {
    let all: Vec<String> = names.iter().map(|n| literal(n)).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(grants: &[&str]) -> Server {
        let mut server = Server::default();
        grants.iter().for_each(|grant| server.grants.take(grant));
        server
    }

    #[test]
    fn t5_what_a_user_is_not_shown_follows_from_its_grants() {
        let wanted = ["shop".to_owned(), "own".to_owned()];
        let mut server = granted(&[
            "GRANT SELECT ON `shop`.* TO `u`@`%`",
            "GRANT ALL PRIVILEGES ON `own`.* TO `u`@`%`",
        ]);
        unseen(&mut server, &wanted);
        let shop = Names::of(vec!["shop".to_owned()]);
        assert_eq!(server.unlisted_triggers, shop);
        assert_eq!(server.unlisted_routines, shop);
        assert!(server.partly_seen.is_empty());
        let mut server = granted(&[
            "GRANT SELECT, TRIGGER ON `shop`.`t` TO `u`@`%`",
            "GRANT SELECT ON `mysql`.`proc` TO `u`@`%`",
        ]);
        let pair = |d: &str, t: &str| (d.to_owned(), t.to_owned());
        server.tables = Some(vec![pair("shop", "t")]);
        unseen(&mut server, &wanted[..1]);
        assert_eq!(server.partly_seen, shop);
        assert!(server.unlisted_triggers.is_empty() && server.unlisted_routines.is_empty());
        server.tables = Some(vec![pair("shop", "t"), pair("shop", "u")]);
        unseen(&mut server, &wanted[..1]);
        assert_eq!(server.unlisted_triggers, shop);
    }
}
