//! Asks a server what it is and what its log has.

use std::time::Duration;

use wire::Connection;

use crate::error::Error;
use crate::event::Family;
use crate::gtid::{Gtids, Set};
use crate::needs::{Need, VARIABLES, needs};
use crate::plan::{File, Server};
use crate::segment::Identity;

/// More files than a server may list.
const FILES: usize = 1_000_000;
/// The server was started without a log (ER_NO_BINARY_LOGGING).
const NO_LOG: u16 = 1381;

/// What a server is and has, and its clock in seconds since 1970, read before all else: what was committed until then is in
/// what is read afterwards.
///
/// # Errors
/// The server refuses, such as for a right that is lacking ([`crate::needs`]), or the connection is lost.
pub fn observe(connection: &mut Connection) -> Result<(Server, u32), Error> {
    let asking = |cause| Error::wire("asking what the server is", cause);
    let now = rows(connection, "SELECT UNIX_TIMESTAMP()", 1).map_err(asking)?;
    let now = value(&now).parse().unwrap_or_default();
    let variables = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'hostname', 'port', 'datadir', 'server_uuid')";
    let variables = rows(connection, variables, 2).map_err(asking)?;
    let variable = |name: &str| {
        let of = |row: &&Vec<String>| row.first().is_some_and(|n| n.eq_ignore_ascii_case(name));
        let row = variables.iter().find(of);
        row.and_then(|row| row.get(1)).cloned().unwrap_or_default()
    };
    let mariadb = connection.greeting().is_mariadb()
        || variable("version").contains("MariaDB")
        || variable("version_comment").contains("mariadb");
    let identity = Identity {
        server_uuid: variable("server_uuid"),
        hostname: variable("hostname"),
        port: variable("port"),
        datadir: variable("datadir"),
    };
    let listing = |cause| Error::wire("listing the server's binary logs", cause);
    let files = match rows(connection, "SHOW BINARY LOGS", 3) {
        Err(e) if e.number() == Some(NO_LOG) => Vec::new(),
        other => other.map_err(listing)?,
    };
    let files = files.into_iter().map(|row| {
        let mut row = row.into_iter();
        Some(File {
            name: row.next()?,
            size: row.next()?.parse().ok()?,
            encrypted: row.next().is_some_and(|e| e.eq_ignore_ascii_case("yes")),
        })
    });
    let files: Option<Vec<File>> = files.collect();
    let files = files.ok_or_else(|| {
        Error::Answer("the server's list of binary logs is not understood".to_owned())
    })?;
    let mut global = |name: &str| {
        let found = rows(connection, &format!("SELECT @@GLOBAL.{name}"), 1).map_err(asking)?;
        Ok::<_, Error>(value(&found).to_owned())
    };
    let (executed, purged) = if mariadb {
        let state = global("gtid_binlog_state")?.parse();
        (
            Gtids::Mariadb(state.map_err(Error::Answer)?),
            Set::default(),
        )
    } else {
        let executed = global("gtid_executed")?.parse();
        let purged = global("gtid_purged")?.parse();
        (
            Gtids::Mysql(executed.map_err(Error::Answer)?),
            purged.map_err(Error::Answer)?,
        )
    };
    let family = if mariadb {
        Family::Mariadb
    } else {
        Family::Mysql
    };
    let server = Server {
        identity,
        family,
        files,
        executed,
        purged,
    };
    Ok((server, now))
}

/// What a server, or the user that `open` logs in, lacks so that its log can be kept where it is read each `interval`.
///
/// # Errors
/// As [`observe`].
pub fn lacks(
    open: &mut dyn FnMut() -> Result<Connection, wire::Error>,
    interval: Duration,
) -> Result<Vec<Need>, Error> {
    let mut connection = open().map_err(|e| Error::wire("logging in", e))?;
    let connection = &mut connection;
    let asking = |cause| Error::wire("asking what the server is", cause);
    let names: Vec<String> = VARIABLES.iter().map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let variables = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
    let pairs = rows(connection, &variables, 2).map_err(asking)?;
    let pairs = pairs.into_iter().filter_map(|row| {
        let mut row = row.into_iter();
        Some((row.next()?.to_ascii_lowercase(), row.next()?))
    });
    let grants = rows(connection, "SHOW GRANTS", 1).map_err(asking)?;
    let grants: Vec<String> = grants.into_iter().flatten().collect();
    let user = rows(connection, "SELECT CURRENT_USER()", 1).map_err(asking)?;
    let user = match value(&user).rsplit_once('@') {
        Some((name, host)) => format!("'{}'@'{}'", name.replace('\'', "''"), host),
        None => value(&user).to_owned(),
    };
    let family = if connection.greeting().is_mariadb() {
        Family::Mariadb
    } else {
        Family::Mysql
    };
    Ok(needs(family, &pairs.collect(), &grants, &user, interval))
}

/// Up to so many values of each row, as text.
fn rows(
    connection: &mut Connection,
    statement: &str,
    values: usize,
) -> Result<Vec<Vec<String>>, wire::Error> {
    let mut rows = connection.query(statement)?;
    let values = values.min(rows.columns().len());
    let mut all = Vec::new();
    while let Some(mut row) = rows.read()? {
        if all.len() == FILES {
            return Err(wire::Error::Malformed("an answer has no end"));
        }
        let read = (0..values).map(|_| {
            let value = row.value()?.unwrap_or_default();
            Ok(String::from_utf8_lossy(value).into_owned())
        });
        all.push(read.collect::<Result<_, wire::Error>>()?);
    }
    Ok(all)
}

fn value(rows: &[Vec<String>]) -> &str {
    let first = rows.first().and_then(|row| row.first());
    first.map(String::as_str).unwrap_or_default()
}
