//! One module an engine: the real client, its completeness check, and gobackup's names.

mod etcd;
mod influxdb;
mod mongodb;
mod mysql;
mod postgresql;
mod redis;

use std::path::{Path, PathBuf};

use crds::gobackup::plan::{Database, Engine};
use secrecy::SecretString;

use crate::failure::Failure;
use crate::run::Context;

use super::spool::Member;

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

/// One dump under way.
struct Dump<'a> {
    context: &'a Context,
    database: &'a Database<SecretString>,
    work: &'a Path,
    /// Directory in the archive.
    at: String,
}

impl Dump<'_> {
    /// A name in the work directory that no other dump of the run has.
    fn work_name(&self, name: &str) -> String {
        format!(
            "{}-{}-{name}",
            self.database.engine.as_str(),
            self.database.name
        )
    }

    /// Writes a file that only this user may read, on memory.
    ///
    /// # Errors
    /// There is no directory on memory, or it is full.
    fn private_file(&self, name: &str, content: &str) -> Result<PrivateFile, Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let directory = crate::source::scratch_directory(&self.context.settings.scratch)?;
        let path = directory.join(format!("{}-{}", self.context.nonce, self.work_name(name)));
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
}

/// A private file; removed when dropped.
struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    fn text(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Every file below `root`, as entries below `at`; they stay where they are until stored.
///
/// # Errors
/// The directory can't be read.
fn tree(root: &Path, at: &str) -> Result<Vec<Member>, Failure> {
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
            members.extend(tree(&entry.path(), &path)?);
            continue;
        }
        let file = std::fs::File::open(entry.path()).map_err(failed)?;
        let measured = crate::verify::measure(file).map_err(failed)?;
        members.push(Member::File {
            path,
            spool: entry.path(),
            compressed: false,
            bytes: measured.bytes,
            sha256: measured.sha256,
            mode: 0o644,
        });
    }
    Ok(members)
}
