//! One dump of a Database under way: what all types of databases need for it.

use crds::report::Reason;
use std::io::Read;
use std::path::Path;

use crds::plan::Database;
use secrecy::SecretString;

use crate::context::Context;
use crate::database::failures::explain;
use crate::database::flaw::Flaw;
use crate::database::remarks::remarks;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::memory::PrivateFile;
use crate::process::Ended;

/// One dump under way.
pub(crate) struct DumpJob<'a> {
    pub(crate) context: &'a Context,
    pub(crate) database: &'a Database<SecretString>,
    pub(crate) work: &'a Path,
    /// Directory in the archive.
    pub(crate) at: String,
}

impl DumpJob<'_> {
    /// A warning that names the Database.
    pub(crate) fn warn(&self, text: &str) {
        let name = &self.database.name;
        self.context
            .reporter
            .warn(&format!("Database {name}: {text}"));
    }

    /// The client ended well, and what it said then is told.
    pub(crate) fn ended(&self, client: &str, ended: &Ended) -> Result<(), Failure> {
        if !ended.good() {
            return Err(explain(client, ended));
        }
        for remark in remarks(client, ended) {
            self.warn(&remark);
        }
        Ok(())
    }

    /// A name in the work directory that no other dump of the run has.
    pub(crate) fn work_name(&self, name: &str) -> String {
        format!(
            "{}-{}-{name}",
            self.database.database_type.as_str(),
            self.database.name
        )
    }

    /// As [`Context::private_file`], with a name that no other dump of the run has.
    ///
    /// # Errors
    /// There is no directory on memory, or it is full.
    pub(crate) fn private_file(&self, name: &str, content: &str) -> Result<PrivateFile, Failure> {
        self.context.private_file(&self.work_name(name), content)
    }
}

/// The failure of a dump that is not what it has to be.
pub(crate) fn incomplete(client: &str, what: &str, flaw: Flaw) -> Failure {
    match flaw {
        Flaw::Broken(flaw) => Failure::new(
            Reason::IncompleteDump,
            format!("{client} ended well but {what} {flaw}: it is not kept; run again"),
        ),
        Flaw::Io(e) => Failure::new(Reason::WorkdirFailed, format!("reading {what} failed: {e}")),
    }
}

/// How a file, of this path in the dump, is seen to be whole.
pub(crate) type Whole = fn(&str, &mut dyn Read) -> Result<(), Flaw>;

/// Every file below `root`, as entries below `at`, each of them whole; they stay where they are until
/// stored.
///
/// # Errors
/// The directory can't be read, or a file is not whole.
pub(crate) fn tree(
    job: &DumpJob<'_>,
    root: &Path,
    at: &str,
    whole: Whole,
) -> Result<Vec<Member>, Failure> {
    let failed = |e: std::io::Error| {
        Failure::new(
            Reason::WorkdirFailed,
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
            members.extend(tree(job, &entry.path(), &path, whole)?);
            continue;
        }
        job.context.check()?;
        let member = file(&entry.path(), (path, 0o644), whole)?;
        members.push(member);
    }
    Ok(members)
}

/// A file as an entry of this path, if it is whole.
///
/// # Errors
/// It is not, or can't be read.
pub(crate) fn file(
    from: &Path,
    (path, mode): (String, u32),
    whole: Whole,
) -> Result<Member, Failure> {
    let name = path.rsplit('/').next().unwrap_or(&path);
    let what = format!("its file {name}");
    let bad = |flaw| incomplete("the client", &what, flaw);
    let open = || std::fs::File::open(from).map_err(|e| bad(Flaw::Io(e)));
    whole(&path, &mut open()?).map_err(bad)?;
    let measured = crate::stream::checksum::measure(open()?).map_err(|e| bad(Flaw::Io(e)))?;
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
