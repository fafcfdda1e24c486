//! Restores databases out of an archive. `BACKUP_SPEC` says it so:
//!
//! - `object`: whose archive it is; `plan.storages` and `plan.encrypt`: where it is and what opens
//!   it; `identityFile`: the age identity.
//! - `source`: the server to restore into, with `usernameFile` and `passwordFile`.
//! - `options.restore`: `{key | run | at, dump, database, definers, definer, directory,
//!   etcd, overwrite, dryRun}`.
//!   `dump` is the name of one Database in the archive; without it every dump that fits the server is
//!   restored. `database` is another name for the one database of the dump. With `directory` the dump
//!   of one Database is put there instead, on a mounted volume, and `source` is not looked at.
//!
//! The archive is read twice. First all of it: the stored bytes are compared with the record, the
//! dumps with theirs, and what they hold is seen. Then, if the target is free, they are loaded.

mod choice;
mod files;
mod mysql;
mod postgresql;
mod redis;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering;

use crds::report::exit;
use sha2::{Digest, Sha256};

use super::actions::{self, Found};
use super::fetch;
use crate::context::Context;
use crate::failure::Failure;
use crate::settings::Source;
use crate::settings::options::Restore;
use crate::settings::plan::Family;
use crate::verify::hex;

use choice::{Dump, Server};

/// Restores.
///
/// # Errors
/// The archive differs from its record, holds nothing that can be restored, the target is not free,
/// or the server refuses.
pub(super) fn run(context: &Context, family: &Family) -> Result<(), Failure> {
    let options = context.settings.restore()?;
    // Before anything is read: wrong settings are told at once.
    let target = match &options.directory {
        Some(directory) => Target::Directory(directory),
        None => Target::Server(context.settings.source()?),
    };
    context.reporter.phase("ReadingBack");
    let found = fetch::choose(context, family, &options.choice)?;
    context
        .reporter
        .update(|r| r.artefacts = vec![actions::artefact(&found)]);
    let (record, dump) = (&found.record, options.dump.as_deref());
    let job = |dumps| Job {
        context,
        family,
        found: &found,
        dumps,
        options: &options,
    };
    let target = match target {
        Target::Directory(directory) => {
            return files::restore(&job(&choice::files(record, dump)?), directory);
        }
        Target::Server(target) => target,
    };
    let chosen = choice::choose(record, dump, options.database.as_deref())?;
    for text in &chosen.left {
        context.reporter.warn(text);
    }
    let job = job(&chosen.dumps);
    match chosen.server {
        Server::Mysql => mysql::restore(&job, target),
        Server::Postgresql => postgresql::restore(&job, target),
        Server::Redis => redis::restore(&job, target),
    }
}

/// Where to restore to.
enum Target<'a> {
    Directory(&'a Path),
    Server(&'a Source),
}

/// What is done with a chosen dump: its number, the dump, and its bytes.
type Each<'a> = dyn FnMut(usize, &Dump, &mut dyn Read) -> Result<(), Failure> + 'a;

/// Bytes of a dump on their way, counted and hashed, until the run is to end.
struct Hashed<'a> {
    context: &'a Context,
    inner: &'a mut dyn Read,
    hash: Sha256,
    bytes: u64,
    /// The archive could not be read on.
    broken: bool,
}

impl<'a> Hashed<'a> {
    fn new(context: &'a Context, inner: &'a mut dyn Read) -> Self {
        Self {
            context,
            inner,
            hash: Sha256::new(),
            bytes: 0,
            broken: false,
        }
    }

    /// What was read is this dump, as far as is on record.
    fn is(&self, dump: &Dump) -> bool {
        self.bytes == dump.bytes && hex(&self.hash.clone().finalize()) == dump.sha256
    }
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.context.check().map_err(std::io::Error::other)?;
        let n = self.inner.read(buffer).inspect_err(|e| {
            self.broken |= e.kind() != std::io::ErrorKind::Interrupted;
        })?;
        self.hash.update(&buffer[..n]);
        self.bytes += n as u64;
        let raw = &self.context.reporter.counters.raw;
        raw.store(self.bytes, Ordering::Relaxed);
        Ok(n)
    }
}

/// One restore under way.
struct Job<'a> {
    context: &'a Context,
    family: &'a Family,
    found: &'a Found,
    dumps: &'a [Dump],
    options: &'a Restore,
}

impl Job<'_> {
    fn key(&self) -> &str {
        &self.found.record.key
    }

    /// Reads the whole archive; `each` sees every chunk of every chosen dump, by its number.
    ///
    /// # Errors
    /// Something differs from the record.
    fn check(&self, each: &mut dyn FnMut(usize, &[u8])) -> Result<(), Failure> {
        let mut buffer = vec![0; 256 * 1024];
        self.compared(&mut |i, _, dump| {
            loop {
                match dump.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(n) => each(i, &buffer[..n]),
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(fetch::damaged(self.key(), e)),
                }
            }
        })
    }

    /// Reads the whole archive; each chosen dump is read by `each`, then to its end, and compared
    /// with the record. What differs is told rather than what `each` says of it.
    ///
    /// # Errors
    /// Something differs from the record; what `each` says.
    fn compared(&self, each: &mut Each<'_>) -> Result<(), Failure> {
        self.walk(&mut |i, dump, entry| {
            let mut hashed = Hashed::new(self.context, entry);
            let outcome = each(i, dump, &mut hashed);
            if hashed.broken {
                return outcome;
            }
            let rest = std::io::copy(&mut hashed, &mut std::io::sink());
            rest.map_err(|e| fetch::damaged(self.key(), e))?;
            if hashed.is(dump) {
                return outcome;
            }
            Err(Failure::verification(
                "ArchiveDamaged",
                format!(
                    "{} in {} is not the file that was dumped",
                    dump.path,
                    self.key()
                ),
            ))
        })
    }

    /// Every chosen dump in the order of the archive, each read by `each`.
    ///
    /// # Errors
    /// The archive can't be read to its end, or lacks a dump; what `each` says.
    fn walk(&self, each: &mut Each<'_>) -> Result<(), Failure> {
        let broken = |e| fetch::damaged(self.key(), e);
        let tar = fetch::open(self.context, self.family, self.found)?;
        let mut archive = tar::Archive::new(tar);
        let mut met = vec![false; self.dumps.len()];
        let mut outcome = Ok(());
        for entry in archive.entries().map_err(broken)? {
            self.context.check()?;
            let mut entry = entry.map_err(broken)?;
            let path = entry.path().map_err(broken)?.display().to_string();
            let Some(i) = self.dumps.iter().position(|d| d.path == path) else {
                continue;
            };
            if let (Some(dump), Some(met)) = (self.dumps.get(i), met.get_mut(i)) {
                *met = true;
                outcome = each(i, dump, &mut entry);
            }
            match &outcome {
                Ok(()) => {}
                Err(e) if e.exit_code == exit::VERIFICATION => break,
                Err(_) => return outcome,
            }
        }
        // Only at its end the stored bytes are known to be those of the record; if they are not,
        // that is why something in them differs.
        std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(broken)?;
        outcome?;
        let lost = met.iter().position(|met| !met);
        match lost.and_then(|i| self.dumps.get(i)) {
            None => Ok(()),
            Some(dump) => Err(Failure::verification(
                "ArchiveDamaged",
                format!("{} does not hold {}", self.key(), dump.path),
            )),
        }
    }

    /// Says in the report what was found.
    fn show(&self, tables: u64, rows: u64) {
        let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
        self.show_bytes();
        self.context.reporter.update(|r| {
            r.tables = number(tables);
            r.rows = number(rows);
        });
    }

    /// The same, where there are no tables.
    fn show_bytes(&self) {
        let bytes = self.dumps.iter().map(|d| d.bytes).sum();
        self.context.reporter.expect(bytes);
        self.context
            .reporter
            .update(|r| r.raw_bytes = i64::try_from(bytes).ok());
    }

    /// `postgresql/maindb, postgresql/other of KEY`.
    fn what(&self) -> String {
        let names: Vec<String> = self.dumps.iter().map(Dump::name).collect();
        format!("{} of {}", names.join(", "), self.key())
    }

    /// Ends a dry run.
    fn would(&self, what: &str) {
        self.context.reporter.update(|r| {
            "WouldRestore".clone_into(&mut r.reason);
            r.message = format!("would restore {what}");
        });
    }

    /// Ends a restore.
    fn done(&self, what: &str) {
        self.context.reporter.update(|r| {
            "Restored".clone_into(&mut r.reason);
            r.message = format!("restored {what}");
        });
    }

    /// The failure of one dump, with those that were loaded before it.
    fn failed(&self, at: usize, e: Failure) -> Failure {
        let name = self.dumps.get(at).map(Dump::name).unwrap_or_default();
        let before: Vec<String> = self.dumps.iter().take(at).map(Dump::name).collect();
        let before = if before.is_empty() {
            String::new()
        } else {
            format!("; {} was restored before it", before.join(", "))
        };
        Failure {
            message: format!("{name}: {}{before}", e.message),
            ..e
        }
    }
}
