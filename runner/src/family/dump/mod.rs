//! One module an engine: the real client, its completeness check, and gobackup's names.

mod etcd;
mod influxdb;
mod mongodb;
mod mysql;
pub(super) mod postgresql;
pub(super) mod redis;

use std::path::{Path, PathBuf};

use crds::plan::{Database, Engine};
use secrecy::SecretString;

use crate::context::Context;
use crate::failure::Failure;

use super::partial;
use super::process::explain;
use super::spool::Member;
use super::whole::{self, Flaw};
use crate::source::{self, Ended};

/// Dumps one Database into the work directory; gives its entries in the archive.
///
/// # Errors
/// The dump failed or is not complete.
pub(super) fn dump(
    context: &Context,
    model: &str,
    database: &Database<SecretString>,
    work: &Path,
) -> Result<Vec<Member>, Failure> {
    let at = format!("{model}/{}/{}", database.engine.as_str(), database.name);
    let job = Dump {
        context,
        database,
        work,
        at,
    };
    match database.engine {
        Engine::Postgresql => postgresql::dump(&job),
        Engine::Mysql | Engine::Mariadb => mysql::dump(&job),
        Engine::Redis => redis::dump(&job),
        Engine::Etcd => etcd::dump(&job),
        Engine::Mongodb => mongodb::dump(&job),
        Engine::Influxdb2 => influxdb::dump(&job),
        // sqlpackage takes the password on its command line alone, where every process reads it.
        Engine::Mssql => Err(Failure::settings(
            "mssql can't be dumped: its client takes the password on the command line alone, where every process of the node can read it",
        )),
    }
}

/// Logs in to one Database where its client can do so without a dump; else its port must answer.
///
/// # Errors
/// It can't be reached, or refuses the login.
pub(super) fn probe(context: &Context, database: &Database<SecretString>) -> Result<(), Failure> {
    let job = Dump {
        context,
        database,
        work: Path::new("/"),
        at: String::new(),
    };
    match database.engine {
        Engine::Postgresql => postgresql::probe(&job),
        Engine::Mysql | Engine::Mariadb => mysql::probe(&job),
        Engine::Redis => redis::probe(&job),
        Engine::Etcd => etcd::probe(&job),
        Engine::Mongodb | Engine::Influxdb2 | Engine::Mssql => port_answers(&job),
    }
}

/// Something listens at the Database's host and port.
fn port_answers(job: &Dump<'_>) -> Result<(), Failure> {
    use std::net::{TcpStream, ToSocketAddrs};
    let d = job.database;
    let default = match d.engine {
        Engine::Mongodb => 27017,
        Engine::Influxdb2 => 8086,
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
        Failure::source(
            reason,
            format!("{host}:{port} does not answer: {e}; check config.host and config.port"),
        )
    };
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|e| failed("HostNotFound", e))?;
    let mut last = std::io::Error::other("the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, std::time::Duration::from_secs(10)) {
            Ok(_) => return Ok(()),
            Err(e) => last = e,
        }
    }
    Err(failed("ConnectionFailed", last))
}

/// One dump under way.
struct Dump<'a> {
    context: &'a Context,
    database: &'a Database<SecretString>,
    work: &'a Path,
    /// Directory in the archive.
    at: String,
}

impl Dump<'_> {
    /// A warning that names the Database.
    fn warn(&self, text: &str) {
        let name = &self.database.name;
        self.context
            .reporter
            .warn(&format!("Database {name}: {text}"));
    }

    /// What its own arguments leave out of the dump, told too.
    fn partial(&self) -> Vec<String> {
        partial::tell(self.context, self.database)
    }

    /// The client ended well, and what it said then is told.
    fn ended(&self, client: &str, ended: &Ended) -> Result<(), Failure> {
        if !ended.good() {
            return Err(explain(client, ended));
        }
        for remark in source::remarks(client, ended) {
            self.warn(&remark);
        }
        Ok(())
    }

    /// A name in the work directory that no other dump of the run has.
    fn work_name(&self, name: &str) -> String {
        format!(
            "{}-{}-{name}",
            self.database.engine.as_str(),
            self.database.name
        )
    }

    /// As [`private_file`], with a name that no other dump of the run has.
    ///
    /// # Errors
    /// There is no directory on memory, or it is full.
    fn private_file(&self, name: &str, content: &str) -> Result<PrivateFile, Failure> {
        private_file(self.context, &self.work_name(name), content)
    }
}

/// Writes a file that only this user may read, on memory.
///
/// # Errors
/// There is no directory on memory, or it is full.
pub(super) fn private_file(
    context: &Context,
    name: &str,
    content: &str,
) -> Result<PrivateFile, Failure> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let directory = crate::source::scratch_directory(&context.settings.scratch)?;
    let path = directory.join(format!("{}-{name}", context.nonce));
    let guard = PrivateFile { path };
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&guard.path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(|e| {
            Failure::other(
                "ScratchFailed",
                format!(
                    "writing the client's password file in {} failed: {e}",
                    directory.display()
                ),
            )
        })?;
    Ok(guard)
}

/// A private file; removed when dropped.
pub(super) struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// Its path.
    pub(super) fn text(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The failure of a dump that is not what it has to be.
pub(super) fn incomplete(client: &str, what: &str, flaw: Flaw) -> Failure {
    match flaw {
        Flaw::Broken(flaw) => Failure::source(
            "IncompleteDump",
            format!("{client} ended well but {what} {flaw}: it is not kept; run again"),
        ),
        Flaw::Io(e) => Failure::other("WorkdirFailed", format!("reading {what} failed: {e}")),
    }
}

/// Every file below `root`, as entries below `at`, each of them whole; they stay where they are until
/// stored.
///
/// # Errors
/// The directory can't be read, or a file is not whole.
fn tree(job: &Dump<'_>, root: &Path, at: &str) -> Result<Vec<Member>, Failure> {
    let failed = |e: std::io::Error| {
        Failure::other(
            "WorkdirFailed",
            format!("reading {} failed: {e}", root.display()),
        )
    };
    let mut members = vec![];
    let mut entries: Vec<_> = std::fs::read_dir(root)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{at}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(failed)?.is_dir() {
            members.push(Member::Directory { path: path.clone() });
            members.extend(tree(job, &entry.path(), &path)?);
            continue;
        }
        job.context.check()?;
        let member = file(job, &entry.path(), path, 0o644)?;
        members.push(member);
    }
    Ok(members)
}

/// A file as an entry of this path, if it is whole.
///
/// # Errors
/// It is not, or can't be read.
fn file(job: &Dump<'_>, from: &Path, path: String, mode: u32) -> Result<Member, Failure> {
    let name = path.rsplit('/').next().unwrap_or(&path);
    let what = format!("its file {name}");
    let bad = |flaw| incomplete("the client", &what, flaw);
    let open = || std::fs::File::open(from).map_err(|e| bad(Flaw::Io(e)));
    whole::check(job.database.engine, &path, &mut open()?).map_err(bad)?;
    let measured = crate::verify::measure(open()?).map_err(|e| bad(Flaw::Io(e)))?;
    Ok(Member::File {
        path,
        spool: from.to_owned(),
        compressed: false,
        bytes: measured.bytes,
        sha256: measured.sha256,
        mode,
        server: None,
        holds: None,
    })
}
