//! A dump as the SQL that psql loads: one of pg_dump's own formats comes through pg_restore.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crds::report::Reason;

use crate::database::postgresql::own_formats::HEAD;
use crate::database::postgresql::plain_dump::syntax::is_text;
use crate::database::restore::{Hashed, Job, StoredDump, damaged};
use crate::failure::Failure;
use crate::process::{Ended, Program};

/// Bytes that are passed on at once.
const PIECE: usize = 256 * 1024;

/// What a dump is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// SQL.
    Text,
    /// pg_dump's custom format, of which pg_restore loads several tables at once.
    Custom,
    /// pg_dump's tar.
    Tar,
}

impl Format {
    fn of(head: &[u8]) -> Self {
        if head.starts_with(b"PGDMP") {
            Self::Custom
        } else if is_text(head) {
            Self::Text
        } else {
            Self::Tar
        }
    }
}

/// Passes a dump on as SQL, and reads it to its end; gives its format, and whether all was taken. `sink` takes a piece, and
/// says whether more is wanted.
///
/// # Errors
/// It can't be read, or pg_restore does not understand it.
pub(super) fn sql(
    job: &Job<'_>,
    dump: &StoredDump,
    entry: &mut dyn Read,
    sink: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<(Format, bool), Failure> {
    let mut head = Vec::with_capacity(HEAD);
    (&mut *entry)
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(|e| damaged(job.key(), e))?;
    let format = Format::of(&head);
    let mut all = head.as_slice().chain(entry);
    if format == Format::Text {
        let mut taken = true;
        pump(job, &mut all, |piece| taken = taken && sink(piece))?;
        return Ok((format, taken));
    }
    let args = vec!["--file=-".to_owned()];
    let mut running = program(job, args)?.start(job.context, true)?;
    let (Some(mut input), Some(output)) = (running.stdin.take(), running.stdout.take()) else {
        return Err(Failure::new(
            Reason::ClientNotStarted,
            "pg_restore has no input or no output",
        ));
    };
    let (fed, taken) = std::thread::scope(|scope| {
        let passed = scope.spawn(move || pass(output, sink));
        // A client that stops reading tells why itself; the dump is read to its end, for its checksum.
        let mut open = true;
        let fed = pump(job, &mut all, |piece| {
            open = open && input.write_all(piece).is_ok();
        });
        if fed.is_err() {
            running.terminate();
        }
        drop(input);
        (fed, passed.join())
    });
    fed?;
    let ended = running.wait()?;
    match taken {
        Ok(Ok(false)) => Ok((format, false)),
        Ok(Ok(true)) if ended.good() => Ok((format, true)),
        Ok(Err(e)) if ended.good() => Err(Failure::new(
            Reason::ClientFailed,
            format!("reading pg_restore failed: {e}"),
        )),
        _ => Err(refused(job, dump, &ended)),
    }
}

/// pg_restore, with these arguments.
pub(super) fn program(job: &Job<'_>, args: Vec<String>) -> Result<Program, Failure> {
    let path = job.context.settings.program("pg_restore")?;
    Ok(Program::new(path, args))
}

/// Why pg_restore does not read a dump.
fn refused(job: &Job<'_>, dump: &StoredDump, ended: &Ended) -> Failure {
    let said = ended.messages.join(" / ");
    let remedy = if said.contains("unsupported version") {
        "it is of a later PostgreSQL: set spec.job.clientImage of the backup to an image with its clients"
    } else {
        "see its message; `kubectl backup download` brings the archive"
    };
    Failure::new(
        Reason::RestoreFailed,
        format!(
            "pg_restore does not read {} of {}: it ended with {}: {said}: {remedy}; nothing was changed",
            dump.path,
            job.key(),
            ended.status_text()
        ),
    )
}

/// Reads to the end, in pieces.
fn pump(job: &Job<'_>, from: &mut dyn Read, mut each: impl FnMut(&[u8])) -> Result<(), Failure> {
    let mut buffer = vec![0; PIECE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(damaged(job.key(), e)),
        }
    }
}

/// Gives all of it to `sink`, or as much as it takes.
fn pass(mut from: impl Read, sink: &mut (dyn FnMut(&[u8]) -> bool + Send)) -> io::Result<bool> {
    let mut buffer = vec![0; PIECE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(n) if !sink(&buffer[..n]) => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A copy of a dump on the work volume; gone with the value.
pub(super) struct Spooled {
    /// Where it is.
    pub(super) path: PathBuf,
}

impl Spooled {
    /// Copies it, and compares it with its record.
    ///
    /// # Errors
    /// There is no room; it can't be read; it is not what was checked before.
    pub(super) fn new(
        job: &Job<'_>,
        dump: &StoredDump,
        entry: &mut dyn Read,
    ) -> Result<Self, Failure> {
        let spooled = Self {
            path: job.work.join(format!("dump-{}", job.context.nonce)),
        };
        let mut file = create(job.work, &spooled.path).map_err(|e| no_room(&spooled.path, &e))?;
        let mut hashed = Hashed::new(job.context, entry);
        let mut full = None;
        pump(job, &mut hashed, |piece| {
            if full.is_none() {
                full = file.write_all(piece).err();
            }
        })?;
        if let Some(e) = full {
            return Err(no_room(&spooled.path, &e));
        }
        if !hashed.is(dump) {
            return Err(not_what_was_checked());
        }
        Ok(spooled)
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn create(directory: &Path, path: &Path) -> io::Result<File> {
    std::fs::create_dir_all(directory)?;
    File::create(path)
}

fn no_room(path: &Path, e: &io::Error) -> Failure {
    Failure::new(
        Reason::WorkdirFailed,
        format!(
            "{} can't be written: {e}; several sessions (spec.to.sessions, --sessions) take a copy of the dump: give spec.job.workdirSizeLimit of the backup more, or restore with one; nothing was changed",
            path.display()
        ),
    )
}

/// The second reading gave something else than the first.
pub(super) fn not_what_was_checked() -> Failure {
    Failure::new(
        Reason::RestoreIncomplete,
        "what was read is not the dump that was checked before; nothing was changed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_known_by_its_head() {
        let mut tar = vec![b'x'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(Format::of(b"PGDMP\x01"), Format::Custom);
        assert_eq!(Format::of(&tar), Format::Tar);
        assert_eq!(Format::of(b"--\n-- PostgreSQL"), Format::Text);
    }
}
