//! The tar, as gobackup lays it out: `<model>/<type>/<database>/…`, directories 0750.

use crds::report::Reason;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crds::plan::Encrypt;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::backup::tee::Tee;
use crate::context::Context;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::settings::plan::BackupSettings;
use crate::stream::checksum::{Stored, hex};
use crate::stream::codec::{self, Encoder, Encryption};
use crate::stream::filter::{self, Filter};
use crate::stream::openssl::Options;

/// Writes every member through compression and encryption to all storages.
///
/// # Errors
/// A spool can't be read, or no storage is left.
pub(crate) fn write(
    context: &Context,
    backup: &BackupSettings,
    members: &[Member],
    tee: Tee,
) -> Result<(Tee, Stored), Failure> {
    let bytes = Arc::new(AtomicU64::new(0));
    let sink = Sink {
        tee,
        hash: Sha256::new(),
        bytes: Arc::clone(&bytes),
    };
    let failed = |e: io::Error| {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            Failure::new(
                Reason::ArchiveFailed,
                format!("making the archive failed: {e}"),
            )
        })
    };
    let salt = salt().map_err(failed)?;
    let plan = &backup.plan;
    let encryption = encryption(plan.encrypt.as_ref(), salt);
    let encoder = Encoder::new(sink, plan.compress, &encryption).map_err(failed)?;
    let progress = |n: u64| {
        context
            .reporter
            .counters
            .stored
            .store(bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        let _ = n;
        context.check()
    };
    let encoder = match filter::program(plan.compress.codec) {
        Some(name) => {
            let program = (name, context.settings.program(name)?);
            let filter = Filter::start(context, program, plan.compress.level, encoder)?;
            let filter = tar(context, backup, members, filter, &progress).map_err(failed)?;
            filter.finish().map_err(failed)?
        }
        None => tar(context, backup, members, encoder, &progress).map_err(failed)?,
    };
    let sink = encoder.finish().map_err(failed)?;
    let stored = Stored {
        bytes: sink.bytes.load(Ordering::Relaxed),
        sha256: hex(&sink.hash.finalize()),
    };
    context
        .reporter
        .counters
        .stored
        .store(stored.bytes, Ordering::Relaxed);
    Ok((sink.tee, stored))
}

fn encryption(encrypt: Option<&Encrypt<SecretString>>, salt: [u8; 8]) -> Encryption<'_> {
    match encrypt {
        None => Encryption::None,
        Some(Encrypt::Openssl {
            password,
            bits,
            iterations,
            digest,
            base64,
        }) => Encryption::Openssl(Options {
            password: password.expose_secret(),
            bits: *bits,
            iterations: *iterations,
            digest,
            base64: *base64,
            salt,
        }),
        Some(Encrypt::Age {
            recipients,
            recipients_file,
        }) => {
            let file = recipients_file.as_ref().map_or("", |f| f.expose_secret());
            Encryption::Age(codec::recipients(recipients, file).collect())
        }
    }
}

fn salt() -> io::Result<[u8; 8]> {
    let mut salt = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut salt)?;
    Ok(salt)
}

fn tar<W: Write>(
    context: &Context,
    backup: &BackupSettings,
    members: &[Member],
    writer: W,
    progress: &dyn Fn(u64) -> Result<(), Failure>,
) -> io::Result<W> {
    let mut builder = tar::Builder::new(writer);
    let modified = u64::try_from(context.clock.started.timestamp()).unwrap_or(0);
    let mut made: Vec<String> = vec![];
    let model = &backup.plan.model;
    directory(&mut builder, &mut made, model, modified)?;
    for member in members {
        match member {
            Member::Directory { path } => directory(&mut builder, &mut made, path, modified)?,
            Member::File {
                path, bytes, mode, ..
            } => {
                if let Some((parent, _)) = path.rsplit_once('/') {
                    directory(&mut builder, &mut made, parent, modified)?;
                }
                let mut header = tar::Header::new_gnu();
                header.set_size(*bytes);
                header.set_mode(*mode);
                header.set_mtime(modified);
                header.set_entry_type(tar::EntryType::Regular);
                let reader = Checked {
                    inner: member.open()?.take(*bytes),
                    left: *bytes,
                    progress,
                };
                builder.append_data(&mut header, path, reader)?;
            }
        }
    }
    builder.into_inner()
}

/// Adds a directory and those above it, once each.
fn directory<W: Write>(
    builder: &mut tar::Builder<W>,
    made: &mut Vec<String>,
    path: &str,
    modified: u64,
) -> io::Result<()> {
    if made.iter().any(|m| m == path) {
        return Ok(());
    }
    if let Some((parent, _)) = path.rsplit_once('/') {
        directory(builder, made, parent, modified)?;
    }
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o750);
    header.set_mtime(modified);
    header.set_entry_type(tar::EntryType::Directory);
    builder.append_data(&mut header, format!("{path}/"), io::empty())?;
    made.push(path.to_owned());
    Ok(())
}

/// A spool that must give exactly the size the header says.
struct Checked<'a, R> {
    inner: R,
    left: u64,
    progress: &'a dyn Fn(u64) -> Result<(), Failure>,
}

impl<R: Read> Read for Checked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.progress)(self.left).map_err(io::Error::other)?;
        let n = self.inner.read(buffer)?;
        if n == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::other("the spooled dump is shorter than it was"));
        }
        self.left -= n as u64;
        Ok(n)
    }
}

struct Sink {
    tee: Tee,
    hash: Sha256,
    bytes: Arc<AtomicU64>,
}

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.tee.write_all(data)?;
        self.hash.update(data);
        self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
