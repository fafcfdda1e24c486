//! What the server is, and the settings of a session that dumps it.

use wire::Connection;

use crate::ask;
use crate::error::Error;
use crate::parts::{Flavour, Server};

/// Seconds that a server waits for us: a store may take its time.
const PATIENCE: u32 = 86_400;

/// Asks the server who it is.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn server(control: &mut Connection) -> Result<Server, Error> {
    let doing = "asking the server for its version";
    let said = ask::each(control, "SELECT @@version, @@version_comment", |row| {
        Ok((row.text()?, row.text()?))
    })
    .map_err(|e| Error::wire(doing, e))?;
    let (version, comment) = said.into_iter().next().unwrap_or_default();
    let mariadb = version.contains("MariaDB") || comment.to_lowercase().contains("mariadb");
    let mut parts = version.split(['.', '-']);
    let mut next = || parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
    Ok(Server {
        flavour: if mariadb {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        },
        numbers: (next(), next(), next()),
        version,
    })
}

/// Settings that every server of these flavours knows, as both clients make them and where they make none.
const SETTINGS: [&str; 8] = [
    // A key may hold a day that no calendar knows, and MySQL compares with it under this mode alone.
    "sql_mode='ALLOW_INVALID_DATES'",
    "time_zone='+00:00'",
    "sql_quote_show_create=1",
    // A limit of the server would cut every table.
    "sql_select_limit=18446744073709551615",
    // A table that is larger would be refused.
    "sql_big_selects=1",
    "sql_auto_is_null=0",
    "transaction_isolation='REPEATABLE-READ'",
    "lock_wait_timeout=60",
];

/// Sets up a session of a dump.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn prepare(session: &mut Connection, server: &Server) -> Result<(), Error> {
    let mut settings: Vec<String> = SETTINGS.iter().map(|s| (*s).to_owned()).collect();
    settings.push(format!("net_write_timeout={PATIENCE}"));
    settings.push(format!("net_read_timeout={PATIENCE}"));
    settings.push(format!("wait_timeout={PATIENCE}"));
    match server.flavour {
        Flavour::MariaDb => {
            settings.retain(|s| !s.starts_with("transaction_isolation"));
            settings.push("tx_isolation='REPEATABLE-READ'".to_owned());
            settings.push("max_statement_time=0".to_owned());
            settings.push("system_versioning_asof=DEFAULT".to_owned());
            if server.numbers >= (10, 6, 0) {
                settings.push("idle_transaction_timeout=0".to_owned());
                settings.push("idle_readonly_transaction_timeout=0".to_owned());
            }
        }
        Flavour::MySql => {
            settings.push("max_execution_time=0".to_owned());
            // Sizes as they are, not as they were a day ago.
            settings.push("information_schema_stats_expiry=0".to_owned());
            if server.numbers >= (8, 0, 30) {
                settings.push("show_gipk_in_create_table_and_information_schema=1".to_owned());
            }
        }
    }
    for statement in [
        "SET NAMES utf8mb4".to_owned(),
        format!("SET SESSION {}", settings.join(", SESSION ")),
    ] {
        session
            .execute(&statement)
            .map_err(|e| Error::wire("setting up a session", e))?;
    }
    Ok(())
}
