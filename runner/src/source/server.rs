//! What the server is, holds and allows, read by the SQL client before the dump.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::mysql_backup::TlsMode;

use super::child::Dump;
use super::client::{Client, Flavour};
use super::errors::{explain, number};
use super::option_file::OptionFile;
use crate::cancel::Cancel;
use crate::failure::Failure;
use crate::scrub::Scrub;
use crate::settings::{Databases, Source};

/// Schemas of the server itself, never dumped: they do not restore into another version.
pub(super) const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// The server as observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Server variables: version, hostname, port, datadir, log_bin, server_uuid, gtid_mode, ….
    pub variables: BTreeMap<String, String>,
    /// Databases the user sees, the server's own left out.
    pub databases: Vec<String>,
    /// Privileges on everything.
    pub global_privileges: BTreeSet<String>,
    /// Grants as the server words them.
    pub grants: Vec<String>,
    /// Bytes of data and indexes, as the server estimates them.
    pub estimate: Option<u64>,
    /// Tables whose engine knows no transactions: database.table.
    pub not_transactional: Vec<String>,
    /// FLOAT columns: database.table.column.
    pub floats: Vec<String>,
    /// Tables with generated columns: database.table.
    pub generated: Vec<String>,
    /// Routines whose body the user may not read: database.routine.
    pub hidden_routines: Vec<String>,
    /// Databases whose events the user may not read.
    pub hidden_events: Vec<String>,
    /// The binlog position belongs to the snapshot (MariaDB).
    pub snapshot_position: bool,
}

impl Server {
    /// Its family.
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
        self.global_privileges.contains("ALL PRIVILEGES")
            || privileges
                .iter()
                .any(|p| self.global_privileges.contains(*p))
    }
}

const FIRST: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','version_comment','hostname','port','datadir','log_bin','server_uuid','gtid_mode','lower_case_table_names');\n\
SHOW SESSION STATUS LIKE 'Ssl_cipher';\n\
SELECT '@@databases';\nSHOW DATABASES;\n\
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
    cancel: &Cancel,
    scrub: &Arc<Scrub>,
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
        Dump::run(client, &args, sql, cancel, scrub)
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
    // What follows only makes warnings and the percentage: where it fails, the dump itself tells.
    let (text, _) = ask(&second(&wanted), &["--force"])?;
    details(&text, &mut server);
    let events: String = std::iter::once("SET SESSION lock_wait_timeout=2;\n".to_owned())
        .chain(
            wanted
                .iter()
                .map(|d| format!("SHOW EVENTS FROM {} LIKE '';\n", identifier(d))),
        )
        .collect();
    let (_, ended) = ask(&events, &["--force"])?;
    server.hidden_events = ended
        .messages
        .iter()
        .filter(|m| number(m) == Some(1044))
        .filter_map(|m| {
            m.rsplit("database '")
                .next()?
                .strip_suffix('\'')
                .map(str::to_owned)
        })
        .collect();
    Ok(server)
}

/// MariaDB's clients before 11.4 speak without TLS to a server that offers none, even if told to use it.
fn demand_tls(source: &Source, server: &Server) -> Result<(), Failure> {
    let demanded = !matches!(source.tls, TlsMode::Disabled | TlsMode::Preferred);
    if demanded && server.variable("Ssl_cipher").is_empty() {
        return Err(Failure::source(
            "TlsFailed",
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
                    server.databases.push(line.to_owned());
                }
            }
            "@@grants" => grant(line, &mut server),
            _ => {
                server.snapshot_position |= line.to_lowercase().starts_with("binlog_snapshot_file")
            }
        }
    }
    server
}

fn grant(line: &str, server: &mut Server) {
    // The line may hold the hash of a password; only what is granted is kept.
    let text = line.split(" IDENTIFIED ").next().unwrap_or_default();
    server.grants.push(text.to_owned());
    let Some((privileges, on)) = text
        .strip_prefix("GRANT ")
        .and_then(|t| t.split_once(" ON "))
    else {
        return;
    };
    if on.starts_with("*.*") {
        server
            .global_privileges
            .extend(privileges.split(',').map(|p| p.trim().to_owned()));
    }
}

fn second(databases: &[String]) -> String {
    let list = literals(databases);
    format!(
        "SET SESSION lock_wait_timeout=2;\n\
         SELECT 'estimate', COALESCE(SUM(DATA_LENGTH),0) FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({list});\n\
         SELECT 'engine', CONCAT(TABLE_SCHEMA,'.',TABLE_NAME) FROM information_schema.TABLES t JOIN information_schema.ENGINES e ON e.ENGINE=t.ENGINE WHERE TABLE_SCHEMA IN ({list}) AND TABLE_TYPE='BASE TABLE' AND e.TRANSACTIONS<>'YES' LIMIT 200;\n\
         SELECT 'float', CONCAT(TABLE_SCHEMA,'.',TABLE_NAME,'.',COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({list}) AND DATA_TYPE='float' LIMIT 200;\n\
         SELECT DISTINCT 'generated', CONCAT(TABLE_SCHEMA,'.',TABLE_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({list}) AND COALESCE(GENERATION_EXPRESSION,'')<>'' LIMIT 200;\n\
         SELECT 'routine', CONCAT(ROUTINE_SCHEMA,'.',ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA IN ({list}) AND ROUTINE_DEFINITION IS NULL LIMIT 200;\n"
    )
}

fn details(text: &str, server: &mut Server) {
    for line in text.lines() {
        match line.split_once('\t') {
            Some(("estimate", value)) => server.estimate = value.parse().ok(),
            Some(("engine", name)) => server.not_transactional.push(name.to_owned()),
            Some(("float", name)) => server.floats.push(name.to_owned()),
            Some(("generated", name)) => server.generated.push(name.to_owned()),
            Some(("routine", name)) => server.hidden_routines.push(name.to_owned()),
            _ => {}
        }
    }
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
        let text = "hostname\tdb-0\nlog_bin\tON\nversion\t10.11.19-MariaDB-log\n@@databases\ninformation_schema\nshop\nMYSQL\n@@grants\nGRANT SELECT, RELOAD ON *.* TO `bk`@`%` IDENTIFIED BY PASSWORD '*AA'\nGRANT EVENT ON `shop`.* TO `bk`@`%`\n@@snapshot\nBinlog_snapshot_file\tb.1\n";
        let server = first(text);
        assert_eq!(server.databases, ["shop"]);
        assert_eq!(server.flavour(), Flavour::MariaDb);
        assert_eq!(server.version(), (10, 11));
        assert!(server.may(&["RELOAD"]) && !server.may(&["EVENT"]));
        assert!(server.snapshot_position);
        assert!(!server.grants.iter().any(|g| g.contains("*AA")));
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(literal("a'b\\"), "'a''b\\\\'");
    }
}
