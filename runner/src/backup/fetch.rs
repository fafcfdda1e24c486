//! Fetches an archive: which one is meant, its stored bytes compared with the record, and the tar
//! in it. Downloads and restores go through here.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use crds::download::Header;
use crds::report::{Reason, exit};
use sha2::{Digest, Sha256};

use crate::artefact::{self, Verdicts};
use crate::backup::found::{self, Found};
use crate::backup::open::{self, Closed};
use crate::backup::record::FileRecord;
use crate::backup::storages;
use crate::backup::target::StoredArchives;
use crate::context::Context;
use crate::database::restore::damaged;
use crate::failure::Failure;
use crate::settings::options::{Choice, Wanted};
use crate::settings::plan::BackupSettings;
use crate::stream::checksum::{self, Open, Stored, hex};
use crate::stream::measured::Measured;

/// A reader on the way of whom nothing comes may be cut off: it hears of us so often.
const BEAT: Duration = Duration::from_secs(10);

/// The archive that is meant, on the first storage that has it. What a storage that can't be read
/// has is not known: that is warned of.
///
/// # Errors
/// No storage has it, or none can be used.
pub(crate) fn choose(
    context: &Context,
    backup: &BackupSettings,
    choice: &Choice,
) -> Result<Found, Failure> {
    context.settings.check()?;
    let (targets, lost) = storages::reach(context, backup)?;
    let places = StoredArchives::on(context, backup, targets);
    let (meant, more) = match artefact::choose(&places, choice, Verdicts::Heed) {
        Ok(chosen) => chosen,
        Err(e) => return Err(Failure::all([vec![e], lost].concat())),
    };
    for e in lost.iter().chain(&more) {
        context.reporter.warn(&e.message);
    }
    let mut meant = meant.into_iter();
    let found = meant.next().map(|m| m.artefact);
    found.ok_or_else(|| Failure::settings("there is no storage"))
}

/// Reads length and checksum of an archive of which no record says it, and warns of that.
///
/// # Errors
/// It is gone, or can't be read.
fn measure_stored(
    context: &Context,
    found: &mut Found,
    beat: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !found.record.is_measured() {
        return Ok(());
    }
    let key = found.record.key.clone();
    context.reporter.warn(&format!(
        "no record says what was stored as {key}: that it is whole shows its format alone"
    ));
    let stored = measure(&mut found::whole_reader(found)?, &key, beat)?;
    found.record.stored_bytes = stored.bytes;
    found.record.stored_sha256 = stored.sha256;
    Ok(())
}

/// Reads which files are in an archive of which no record says it, too.
///
/// # Errors
/// The key is missing or wrong, no library reads the codec, or the archive is gone or damaged.
pub(crate) fn measure_files(
    context: &Context,
    backup: &BackupSettings,
    found: &mut Found,
) -> Result<(), Failure> {
    measure_stored(context, found, &mut || context.check())?;
    if !found.record.is_measured() {
        return Ok(());
    }
    let key = found.record.key.clone();
    let broken = |e| damaged(&key, e);
    let mut archive = tar::Archive::new(open(context, backup, found)?);
    let mut files = vec![];
    for entry in archive.entries().map_err(broken)? {
        context.check()?;
        let mut entry = entry.map_err(broken)?;
        if entry.header().entry_type().is_file() {
            let path = entry.path().map_err(broken)?.display().to_string();
            let measured = checksum::measure(&mut entry).map_err(broken)?;
            files.push(FileRecord {
                path: path.strip_prefix("./").unwrap_or(&path).to_owned(),
                bytes: measured.bytes,
                sha256: measured.sha256,
                ..FileRecord::default()
            });
        }
    }
    found.record.files = files;
    Ok(())
}

/// What a download sends, and how to begin.
///
/// # Errors
/// It is not there, can't be opened, or differs from its record.
pub(crate) fn download<'a>(
    context: &'a Context,
    backup: &'a BackupSettings,
    wanted: &Wanted,
    beat: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(Header, Open<'a>), Failure> {
    let mut found = choose(context, backup, &wanted.choice)?;
    measure_stored(context, &mut found, beat)?;
    let record = &found.record;
    let name = record.key.rsplit('/').next().unwrap_or_default();
    let (name, whole) = match (wanted.raw, &wanted.expect) {
        (true, _) => (name.to_owned(), stored(&found)),
        (false, Some(expected)) => (tar_name(name), expected.clone()),
        // Nothing is sent of what turns out damaged at its end, and the length is known by then.
        (false, None) => (
            tar_name(name),
            measure(&mut open(context, backup, &found)?, &record.key, beat)?,
        ),
    };
    let header = Header {
        key: record.key.clone(),
        name,
        length: whole.bytes,
        offset: wanted.offset,
        sha256: whole.sha256,
        warnings: vec![],
    };
    let raw = wanted.raw;
    let open: Open<'a> = Box::new(move || {
        if raw {
            return found::whole_reader(&found);
        }
        Ok(Box::new(open(context, backup, &found)?))
    });
    Ok((header, open))
}

/// `T.tar` of `T.tar.gz.enc`.
fn tar_name(name: &str) -> String {
    let bare = name.strip_suffix(".enc").unwrap_or(name);
    let bare = bare.strip_suffix(".age").unwrap_or(bare);
    let codec = open::codec_of(name).map(|(codec, ..)| codec);
    let bare = codec.and_then(|c| bare.strip_suffix(c.extension()));
    format!("{}.tar", bare.unwrap_or(name))
}

fn measure(
    tar: &mut dyn Read,
    key: &str,
    beat: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Stored, Failure> {
    let (mut hash, mut bytes) = (Sha256::new(), 0u64);
    let mut buffer = vec![0; 256 * 1024];
    let mut last = Instant::now();
    loop {
        match tar.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                hash.update(&buffer[..n]);
                bytes += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(damaged(key, e)),
        }
        if last.elapsed() >= BEAT {
            last = Instant::now();
            beat()?;
        }
    }
    Ok(Stored {
        bytes,
        sha256: hex(&hash.finalize()),
    })
}

fn stored(found: &Found) -> Stored {
    Stored {
        bytes: found.record.stored_bytes,
        sha256: found.record.stored_sha256.clone(),
    }
}

/// Opens the tar in the archive. Where it ends, or can't be read on, the stored bytes have been
/// compared with the record: what differs is told as that.
///
/// # Errors
/// The key is missing or wrong, no library reads the codec, or the archive is gone or damaged.
pub(crate) fn open(
    context: &Context,
    backup: &BackupSettings,
    found: &Found,
) -> Result<Tar, Failure> {
    let key = &found.record.key;
    let read = Measured::new(found::whole_reader(found)?);
    let identity = found::identity(context)?;
    let encrypt = backup.plan.encrypt.as_ref();
    let opened = open::tar(Box::new(read.clone()), key, encrypt, identity.as_deref());
    match opened {
        Ok(Ok(inner)) => Ok(Tar {
            inner,
            read,
            key: key.clone(),
            stored: stored(found),
            settled: false,
        }),
        Ok(Err(Closed::NoIdentity)) => Err(Failure::settings(format!(
            "{key} is encrypted to age recipients and no identity is given: name its Secret with --decrypt-secret (spec.decryption of a Restore), or take the stored bytes with download --raw"
        ))),
        Ok(Err(Closed::NoDecoder)) => Err(Failure::settings(format!(
            "{key} is compressed by a program whose format the runner does not read: take the stored bytes with download --raw and open them with that program"
        ))),
        Err(e) => {
            if e.exit_code == exit::VERIFICATION {
                settle(&read, key, &stored(found))?;
            }
            Err(e)
        }
    }
}

/// The tar in an archive.
pub(crate) struct Tar {
    inner: Box<dyn Read + Send>,
    read: Measured,
    key: String,
    stored: Stored,
    settled: bool,
}

impl Tar {
    fn settle(&mut self) -> io::Result<()> {
        if self.settled {
            return Ok(());
        }
        self.settled = true;
        let settled = settle(&self.read, &self.key, &self.stored);
        settled.map_err(io::Error::other)
    }
}

impl Read for Tar {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(0) if !buffer.is_empty() => {
                self.settle()?;
                Ok(0)
            }
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                self.settle()?;
                Err(e)
            }
            other => other,
        }
    }
}

/// All that was read, and what the decoders left, is what is on record.
fn settle(read: &Measured, key: &str, expected: &Stored) -> Result<(), Failure> {
    let read = read.whole(key)?;
    if read == *expected {
        return Ok(());
    }
    Err(Failure::new(
        Reason::ReadBackDiffers,
        format!(
            "{key} is not what was stored: {} bytes with SHA-256 {} are on record, {} with {} were read; use another archive or another storage that has it, and check the store's health",
            expected.bytes, expected.sha256, read.bytes, read.sha256
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_tar_has_the_archives_name() {
        for (name, tar) in [
            ("2025.01.15.tar", "2025.01.15.tar"),
            ("2025.01.15.tar.gz.enc", "2025.01.15.tar"),
            (
                "2025.01.15.ns.nightly.tar.zst.age",
                "2025.01.15.ns.nightly.tar",
            ),
            ("odd", "odd.tar"),
        ] {
            assert_eq!(tar_name(name), tar);
        }
    }

    /// `hello` and its SHA-256 by sha256sum.
    fn hello() -> Stored {
        Stored {
            bytes: 5,
            sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".to_owned(),
        }
    }

    fn tar(text: &'static [u8], stop: usize) -> Tar {
        let read = Measured::new(Box::new(text));
        let decoder = read.clone().take(stop as u64);
        Tar {
            inner: Box::new(decoder),
            read,
            key: "k".to_owned(),
            stored: hello(),
            settled: false,
        }
    }

    #[test]
    fn stored_bytes_are_compared_even_beyond_what_a_decoder_reads() {
        for stop in [3, 5, 9] {
            let mut read = vec![];
            tar(b"hello", stop).read_to_end(&mut read).unwrap();
            assert_eq!(read, b"hello"[..stop.min(5)]);
        }
        for text in [&b"hellO"[..], b"hell", b"hello!"] {
            for stop in [3, 9] {
                let error = tar(text, stop).read_to_end(&mut vec![]).unwrap_err();
                let failure = error.downcast::<Failure>().unwrap();
                assert_eq!(failure.reason, "ReadBackDiffers", "{text:?} {stop}");
            }
        }
    }
}
