//! A restore of dumps into a server or onto a volume: what all types of databases need for it.

use crds::report::Reason;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::settings::options::Restore;
use crate::stream::checksum::hex;

/// A dump that is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredDump {
    /// Path in the archive.
    pub(crate) path: String,
    /// The engine, as gobackup names it.
    pub(crate) database_type: String,
    /// Name of the Database.
    pub(crate) database: String,
    /// Name of the database on the server, by the file's name; for files, their path within the dump.
    pub(crate) schema: String,
    /// Bytes.
    pub(crate) bytes: u64,
    /// SHA-256.
    pub(crate) sha256: String,
    /// What its server calls itself.
    pub(crate) server: ServerIdentity,
    /// Arguments it was made with, where they are on record.
    pub(crate) arguments: Vec<String>,
    /// The native engine made it.
    pub(crate) native: bool,
}

impl StoredDump {
    /// `postgresql/maindb`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.database_type, self.database)
    }
}

/// What is done with a chosen dump: its number, the dump, and its bytes.
pub(crate) type Each<'a> = dyn FnMut(usize, &StoredDump, &mut dyn Read) -> Result<(), Failure> + 'a;

/// Where dumps are read from.
pub(crate) trait Dumps {
    /// What it is called.
    fn key(&self) -> &str;

    /// Each of `dumps` in the order they stand there, read by `each`.
    ///
    /// # Errors
    /// It can't be read to its end, or lacks a dump; what `each` says.
    fn walk(&self, dumps: &[StoredDump], each: &mut Each<'_>) -> Result<(), Failure>;
}

/// Why the tar can't be read.
pub(crate) fn damaged(key: &str, error: io::Error) -> Failure {
    error.downcast::<Failure>().unwrap_or_else(|e| {
        Failure::new(
            Reason::ArchiveDamaged,
            format!("{key} can't be unpacked: {e}"),
        )
    })
}

/// Bytes of a dump on their way, counted and hashed, until the run is to end.
pub(crate) struct Hashed<'a> {
    context: &'a Context,
    inner: &'a mut dyn Read,
    hash: Sha256,
    bytes: u64,
    /// The archive could not be read on.
    broken: bool,
}

impl<'a> Hashed<'a> {
    pub(crate) fn new(context: &'a Context, inner: &'a mut dyn Read) -> Self {
        Self {
            context,
            inner,
            hash: Sha256::new(),
            bytes: 0,
            broken: false,
        }
    }

    /// What was read is this dump, as far as is on record.
    pub(crate) fn is(&self, dump: &StoredDump) -> bool {
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
pub(crate) struct Job<'a> {
    pub(crate) context: &'a Context,
    /// TCP port of the server to restore into, where one is given: each type has its own default.
    pub(crate) port: Option<u16>,
    pub(crate) archive: &'a dyn Dumps,
    /// A directory for a copy of a dump; it need not be there.
    pub(crate) work: &'a Path,
    pub(crate) dumps: &'a [StoredDump],
    pub(crate) options: &'a Restore,
}

impl Job<'_> {
    pub(crate) fn key(&self) -> &str {
        self.archive.key()
    }

    /// Reads the whole archive; `each` sees every chunk of every chosen dump, by its number.
    ///
    /// # Errors
    /// Something differs from the record.
    pub(crate) fn check(&self, each: &mut dyn FnMut(usize, &[u8])) -> Result<(), Failure> {
        let mut buffer = vec![0; 256 * 1024];
        self.compared(&mut |i, _, dump| {
            loop {
                match dump.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(n) => each(i, &buffer[..n]),
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(damaged(self.key(), e)),
                }
            }
        })
    }

    /// Reads the whole archive; each chosen dump is read by `each`, then to its end, and compared
    /// with the record. What differs is told rather than what `each` says of it.
    ///
    /// # Errors
    /// Something differs from the record; what `each` says.
    pub(crate) fn compared(&self, each: &mut Each<'_>) -> Result<(), Failure> {
        self.walk(&mut |i, dump, entry| {
            let mut hashed = Hashed::new(self.context, entry);
            let outcome = each(i, dump, &mut hashed);
            if hashed.broken {
                return outcome;
            }
            let rest = std::io::copy(&mut hashed, &mut std::io::sink());
            rest.map_err(|e| damaged(self.key(), e))?;
            if hashed.is(dump) {
                return outcome;
            }
            Err(Failure::new(
                Reason::ArchiveDamaged,
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
    pub(crate) fn walk(&self, each: &mut Each<'_>) -> Result<(), Failure> {
        self.archive.walk(self.dumps, each)
    }

    /// Says in the report what was found.
    pub(crate) fn show(&self, tables: u64, rows: u64) {
        let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
        self.show_bytes();
        self.context.reporter.update(|r| {
            r.tables = number(tables);
            r.rows = number(rows);
        });
    }

    /// The same, where there are no tables.
    pub(crate) fn show_bytes(&self) {
        let bytes = self.dumps.iter().map(|d| d.bytes).sum();
        self.context.reporter.expect(bytes);
        self.context
            .reporter
            .update(|r| r.raw_bytes = i64::try_from(bytes).ok());
    }

    /// `postgresql/maindb, postgresql/other of KEY`.
    pub(crate) fn what(&self) -> String {
        let names: Vec<String> = self.dumps.iter().map(StoredDump::name).collect();
        format!("{} of {}", names.join(", "), self.key())
    }

    /// Ends a dry run.
    pub(crate) fn would(&self, what: &str) {
        self.context.reporter.update(|r| {
            Reason::WouldRestore.as_str().clone_into(&mut r.reason);
            r.message = format!("would restore {what}");
        });
    }

    /// Ends a restore.
    pub(crate) fn done(&self, what: &str) {
        self.context.reporter.update(|r| {
            Reason::Restored.as_str().clone_into(&mut r.reason);
            r.message = format!("restored {what}");
        });
    }

    /// The failure of one dump, with those that were loaded before it.
    pub(crate) fn failed(&self, at: usize, e: Failure) -> Failure {
        let name = self.dumps.get(at).map(StoredDump::name).unwrap_or_default();
        let before: Vec<String> = self.dumps.iter().take(at).map(StoredDump::name).collect();
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
