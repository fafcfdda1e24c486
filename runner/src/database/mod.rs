//! The databases that can be backed up: one folder a type, with what it needs to dump, to restore and
//! to check. None of them knows of archives.

pub mod complete;
pub mod contents;
pub mod dump;
pub mod etcd;
pub mod failures;
pub mod flaw;
pub mod influxdb;
pub mod mongodb;
pub mod mysql;
pub mod partial;
pub mod postgresql;
pub mod redis;
pub mod remarks;
pub mod restore;
pub mod restore_check;
pub mod scratch;
pub mod server_identity;
pub mod spool;

use crds::report::{Reason, exit};
use std::path::Path;

use crds::plan::{Database, DatabaseType};
use secrecy::SecretString;

use crate::context::Context;
use crate::failure::Failure;

use dump::DumpJob;
use restore_check::{RestoreCheck, not_verified};
use spool::Member;

/// Dumps one Database into the work directory; gives its entries in the archive.
///
/// # Errors
/// The dump failed or is not complete.
pub(crate) fn dump(
    context: &Context,
    model: &str,
    database: &Database<SecretString>,
    work: &Path,
) -> Result<Vec<Member>, Failure> {
    let at = format!(
        "{model}/{}/{}",
        database.database_type.as_str(),
        database.directory()
    );
    let job = DumpJob {
        context,
        database,
        work,
        at,
    };
    match database.database_type {
        DatabaseType::Postgresql => postgresql::dump::dump(&job),
        DatabaseType::Mysql | DatabaseType::Mariadb => mysql::dump::dump(&job),
        DatabaseType::Redis => redis::dump::dump(&job),
        DatabaseType::Etcd => etcd::dump::dump(&job),
        DatabaseType::Mongodb => mongodb::dump::dump(&job),
        DatabaseType::Influxdb2 => influxdb::dump::dump(&job),
        // sqlpackage takes the password on its command line alone, where every process reads it.
        DatabaseType::Mssql => Err(Failure::settings(
            "mssql can't be dumped: its client takes the password on the command line alone, where every process of the node can read it",
        )),
    }
}

/// Logs in to one Database where its client can do so without a dump; else its port must answer.
///
/// # Errors
/// It can't be reached, or refuses the login.
pub(crate) fn probe(context: &Context, database: &Database<SecretString>) -> Result<(), Failure> {
    let job = DumpJob {
        context,
        database,
        work: Path::new("/"),
        at: String::new(),
    };
    match database.database_type {
        DatabaseType::Postgresql => postgresql::dump::probe(&job),
        DatabaseType::Mysql | DatabaseType::Mariadb => mysql::dump::probe(&job),
        DatabaseType::Redis => redis::dump::probe(&job),
        DatabaseType::Etcd => etcd::dump::probe(&job),
        DatabaseType::Mongodb | DatabaseType::Influxdb2 | DatabaseType::Mssql => port_answers(&job),
    }
}

/// Something listens at the Database's host and port.
fn port_answers(job: &DumpJob<'_>) -> Result<(), Failure> {
    use std::net::{TcpStream, ToSocketAddrs};
    let d = job.database;
    let default = match d.database_type {
        DatabaseType::Mongodb => 27017,
        DatabaseType::Influxdb2 => 8086,
        _ => 1433,
    };
    let text = d.host.as_deref().unwrap_or_default();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.split('/').next().unwrap_or_default();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => {
            (host, port.parse().unwrap_or(default))
        }
        _ => (text, d.port.unwrap_or(default)),
    };
    let failed = |reason, e: std::io::Error| {
        Failure::at(
            exit::SOURCE,
            reason,
            format!("{host}:{port} does not answer: {e}; check config.host and config.port"),
        )
    };
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|e| failed(Reason::HostNotFound, e))?;
    let mut last = std::io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, std::time::Duration::from_secs(10)) {
            Ok(_) => return Ok(()),
            Err(e) => last = e,
        }
    }
    Err(failed(Reason::ConnectionFailed, last))
}

/// Restores one dump into a scratch server of its type and compares; gives what was compared.
///
/// # Errors
/// It does not load or differs; or can't be restored here, so that nothing is proven.
pub(crate) fn check(check: &RestoreCheck<'_>) -> Result<String, Failure> {
    match check.dump.database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb => mysql::restore_check::run(check),
        DatabaseType::Postgresql => postgresql::restore_check::run(check),
        DatabaseType::Redis => redis::restore_check::run(check),
        DatabaseType::Etcd => etcd::restore_check::run(check),
        DatabaseType::Mongodb | DatabaseType::Influxdb2 | DatabaseType::Mssql => Err(not_verified(
            "no verification restores a dump of this type".to_owned(),
        )),
    }
}
