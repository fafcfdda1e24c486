//! The dump of one Database into a directory on a volume, for a server that starts with it: a
//! dump.rdb, the data directory of a new etcd member, and of the others their files as they are.
//!
//! All is made in a directory of its own within the target. What the target held goes only when
//! that is whole.

use crds::report::Reason;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

use crate::database::etcd::member;
use crate::database::restore::{Hashed, Job, StoredDump, damaged};
use crate::failure::Failure;
use crate::report::Ticker;

/// What a filesystem puts into its root itself.
const OF_THE_FILESYSTEM: &str = "lost+found";

/// Restores into `target`.
///
/// # Errors
/// The archive differs from its record, the target is not free, or can't be written.
pub(crate) fn restore(job: &Job<'_>, target: &Path) -> Result<(), Failure> {
    let etcd = job.dumps.iter().any(|d| d.database_type == "etcd");
    for dump in job.dumps {
        below(Path::new(""), dump)?;
    }
    job.check(&mut |_, _| {})?;
    job.context.reporter.phase("Connecting");
    let tool = if etcd { Some(member::tool(job)?) } else { None };
    let held = look(target)?;
    if let (Some(one), false) = (held.first(), job.options.overwrite) {
        return Err(Failure::occupied(
            Reason::TargetNotEmpty,
            &format!(
                "{} holds {} files and directories already, {one} for one",
                target.display(),
                held.len()
            ),
        ));
    }
    job.show_bytes();
    let mut what = format!(
        "{} files of {} into {}",
        job.dumps.len(),
        job.what(),
        target.display()
    );
    if etcd {
        what = format!(
            "the data directory of a new member of {} into {}",
            job.what(),
            target.display()
        );
    }
    if !held.is_empty() {
        what.push_str(&format!(
            ", in place of all it holds ({} files and directories)",
            held.len()
        ));
    }
    if job.options.dry_run {
        job.would(&what);
        return Ok(());
    }
    job.context.reporter.phase("Restoring");
    let _ticker = Ticker::start(std::sync::Arc::clone(&job.context.reporter), || {});
    let stage = Stage::new(target, &job.context.nonce)?;
    let written = if etcd {
        stage.path.join("snapshot")
    } else {
        stage.fresh()
    };
    write(job, &written, etcd)?;
    if let Some(tool) = tool {
        what.push_str(&member::make(job, &tool, &written, &stage.fresh())?);
    }
    sync(&stage.fresh())?;
    job.context.check()?;
    stage.change(target)?;
    job.done(&what);
    Ok(())
}

/// Where a dump's file is to be below `root`.
fn below(root: &Path, dump: &StoredDump) -> Result<PathBuf, Failure> {
    let path = Path::new(&dump.schema);
    let plain = path.components().all(|c| matches!(c, Component::Normal(_)));
    if plain && !dump.schema.is_empty() {
        return Ok(root.join(path));
    }
    Err(Failure::new(
        Reason::ArchiveDamaged,
        format!("{} is no path of a file in an archive", dump.path),
    ))
}

/// What the target holds. That it can be written is seen without writing.
fn look(target: &Path) -> Result<Vec<String>, Failure> {
    let mut there = target;
    let found = loop {
        match fs::read_dir(there) {
            Ok(found) => break found,
            Err(e) if e.kind() == ErrorKind::NotFound => match there.parent() {
                Some(parent) => there = parent,
                None => return Err(refused(target, &e)),
            },
            Err(e) => return Err(refused(there, &e)),
        }
    };
    access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|e| refused(there, &e.into()))?;
    if there != target {
        return Ok(vec![]);
    }
    let mut names = vec![];
    for entry in found {
        let entry = entry.map_err(|e| refused(target, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != OF_THE_FILESYSTEM {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Writes the chosen dumps, and reads back what stands there. A single file of etcd is `to` itself.
fn write(job: &Job<'_>, to: &Path, single: bool) -> Result<(), Failure> {
    let place = |dump: &StoredDump| {
        if single {
            Ok(to.to_owned())
        } else {
            below(to, dump)
        }
    };
    job.walk(&mut |_, dump, entry| {
        let path = place(dump)?;
        if let Some(parent) = path.parent() {
            directories(parent)?;
        }
        let mut hashed = Hashed::new(job.context, entry);
        let mut buffer = vec![0; 256 * 1024];
        let options = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o660)
            .open(&path);
        let mut file = options.map_err(|e| refused(&path, &e))?;
        loop {
            let n = match hashed.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(damaged(job.key(), e)),
            };
            file.write_all(&buffer[..n])
                .map_err(|e| refused(&path, &e))?;
        }
        file.sync_all().map_err(|e| refused(&path, &e))?;
        if hashed.is(dump) {
            return Ok(());
        }
        Err(incomplete(
            "what was read is not the dump that was checked before; nothing was changed",
        ))
    })?;
    for dump in job.dumps {
        let path = place(dump)?;
        if !holds(job, &path, dump)? {
            return Err(incomplete(&format!(
                "{} does not hold what was written: check the volume's health; what the target held is untouched",
                path.display()
            )));
        }
    }
    Ok(())
}

/// What stands in the file is the dump.
fn holds(job: &Job<'_>, path: &Path, dump: &StoredDump) -> Result<bool, Failure> {
    let mut file = File::open(path).map_err(|e| refused(path, &e))?;
    let mut hashed = Hashed::new(job.context, &mut file);
    let read = io::copy(&mut hashed, &mut io::sink());
    // A run that is to end stops the reading too.
    job.context.check()?;
    read.map_err(|e| refused(path, &e))?;
    Ok(hashed.is(dump))
}

/// Where all is made, within the target so that it is on the same volume.
struct Stage {
    path: PathBuf,
}

impl Stage {
    fn new(target: &Path, nonce: &str) -> Result<Self, Failure> {
        directories(target)?;
        let path = target.join(format!(".restore-{nonce}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| refused(&path, &e))?;
        Ok(Self { path })
    }

    /// What is to be in the target.
    fn fresh(&self) -> PathBuf {
        self.path.join("new")
    }

    /// What is in the target goes, what was made takes its place. If that fails what was there comes
    /// back.
    fn change(self, target: &Path) -> Result<(), Failure> {
        let (old, fresh) = (self.path.join("old"), self.fresh());
        directories(&old)?;
        let mine = self.path.file_name().map(std::ffi::OsStr::to_owned);
        let stays =
            |name: &std::ffi::OsStr| name == OF_THE_FILESYSTEM || Some(name) == mine.as_deref();
        let (mut gone, mut come) = (vec![], vec![]);
        let moved = shift(target, &old, &stays, &mut gone)
            .and_then(|()| shift(&fresh, target, &|_| false, &mut come))
            .and_then(|()| File::open(target)?.sync_all());
        let Err(e) = moved else {
            return Ok(());
        };
        let failure = refused(target, &e);
        let back = come
            .iter()
            .map(|name| (target.join(name), fresh.join(name)));
        let mut back = back.chain(gone.iter().map(|name| (old.join(name), target.join(name))));
        let Err(why) = back.try_for_each(|(from, to)| fs::rename(from, to)) else {
            return Err(failure);
        };
        let message = format!(
            "{}; what the target held could not be put back ({why}) and is in {}",
            failure.message,
            old.display()
        );
        std::mem::forget(self);
        Err(Failure { message, ..failure })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), "what a restore left can't be removed: {e}");
        }
    }
}

/// Moves what is in one directory into another; `moved` has the names.
fn shift(
    from: &Path,
    to: &Path,
    stays: &dyn Fn(&std::ffi::OsStr) -> bool,
    moved: &mut Vec<std::ffi::OsString>,
) -> io::Result<()> {
    // All names first: a directory that changes while it is read may leave some out.
    let names: io::Result<Vec<_>> = fs::read_dir(from)?.map(|e| Ok(e?.file_name())).collect();
    for name in names? {
        if !stays(&name) {
            fs::rename(from.join(&name), to.join(&name))?;
            moved.push(name);
        }
    }
    Ok(())
}

fn directories(path: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o770).create(path);
    made.map_err(|e| refused(path, &e))
}

/// Files and directories are on the disk.
fn sync(path: &Path) -> Result<(), Failure> {
    let failed = |e: io::Error| refused(path, &e);
    if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            sync(&entry.map_err(failed)?.path())?;
        }
    }
    File::open(path).and_then(|f| f.sync_all()).map_err(failed)
}

fn incomplete(text: &str) -> Failure {
    Failure::new(Reason::RestoreIncomplete, text)
}

/// Why the volume refuses.
fn refused(path: &Path, e: &io::Error) -> Failure {
    let path = path.display();
    match e.kind() {
        ErrorKind::PermissionDenied => Failure::new(
            Reason::PermissionDenied,
            format!(
                "user {} can't write to {path} ({e}): set spec.podSecurityContext (runAsUser, fsGroup) to who owns it, or give it to that user",
                rustix::process::getuid().as_raw()
            ),
        ),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::new(
            Reason::NoSpace,
            format!("{path}: {e}: the volume of spec.to.volume is full; what it held is untouched"),
        ),
        ErrorKind::ReadOnlyFilesystem => Failure::new(
            Reason::ReadOnly,
            format!("{path}: {e}: the volume of spec.to.volume is read-only"),
        ),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => Failure::new(
            Reason::AlreadyExists,
            format!("{path}: {e}: it is no directory; name another one with spec.to.volume.path"),
        ),
        _ => Failure::new(Reason::StoreFailed, format!("{path}: {e}")),
    }
}
