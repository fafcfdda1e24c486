//! Reads stored objects back and compares length and SHA-256.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::pipeline::{Stored, hex};
use crate::report::Reporter;
use crate::store::{ARCHIVED, Upload};

/// Bytes of a read.
pub const BUFFER: usize = 256 * 1024;

/// Length and SHA-256 of what was read so far.
#[derive(Default)]
pub struct Meter {
    hash: Sha256,
    bytes: u64,
}

impl Meter {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all that `reader` gives.
    ///
    /// # Errors
    /// The reader's; what came before it counts.
    pub fn read(&mut self, mut reader: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            self.hash.update(&buffer[..n]);
            self.bytes += n as u64;
        }
    }

    /// The end.
    pub fn finish(self) -> Stored {
        Stored {
            bytes: self.bytes,
            sha256: hex(&self.hash.finalize()),
        }
    }
}

/// Length and SHA-256 of everything `reader` gives.
///
/// # Errors
/// The reader's.
pub fn measure(reader: impl Read) -> io::Result<Stored> {
    let mut meter = Meter::default();
    meter.read(reader)?;
    Ok(meter.finish())
}

/// What `reader` gives equals what was sent.
///
/// # Errors
/// It differs, or can't be read.
pub fn compare(key: &str, reader: impl Read, sent: &Stored) -> Result<(), Failure> {
    equal(key, measure(reader), sent)
}

/// What was read of `key` equals what was sent.
///
/// # Errors
/// It differs, or could not be read.
pub fn equal(key: &str, read: io::Result<Stored>, sent: &Stored) -> Result<(), Failure> {
    let read = read.map_err(|e| {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            Failure::store("NotReadBack", format!("{key} could not be read back: {e}"))
        })
    })?;
    if read.bytes != sent.bytes {
        return Err(Failure::verification(
            "ReadBackDiffers",
            format!(
                "{key}: {} bytes were stored but {} read back; it is not kept: check the store's health, then run again",
                sent.bytes, read.bytes
            ),
        ));
    }
    if read.sha256 != sent.sha256 {
        return Err(Failure::verification(
            "ReadBackDiffers",
            format!(
                "{key}: what was read back has SHA-256 {} instead of {}; it is not kept: check the store's health, then run again",
                read.sha256, sent.sha256
            ),
        ));
    }
    Ok(())
}

/// Reads what was closed back; true if it is what was sent. Only where the store itself says that it
/// has the object in an archive class, which it gives to nobody yet, its length must do: then it is
/// false, and the run is never called read back.
///
/// # Errors
/// It differs, or can't be read for another reason.
pub fn read_back(
    reporter: &Reporter,
    upload: &mut dyn Upload,
    key: &str,
    sent: &Stored,
) -> Result<bool, Failure> {
    match equal(key, upload.measure(), sent) {
        Err(e) if e.reason == ARCHIVED && upload.stored_size() == Some(sent.bytes) => {
            reporter.warn(&format!(
                "{key} was stored with its full length but could not be read back: {e}"
            ));
            reporter.update(|r| "NotReadBack".clone_into(&mut r.reason));
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_lost_byte_and_a_flipped_bit_are_seen() {
        // SHA-256 of "abc" from FIPS 180-2, appendix B.1.
        let sent = Stored {
            bytes: 3,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into(),
        };
        assert_eq!(compare("k", &b"abc"[..], &sent), Ok(()));
        for wrong in [&b"ab"[..], b"abb", b""] {
            let failure = compare("k", wrong, &sent).unwrap_err();
            assert_eq!((failure.exit_code, failure.reason), (5, "ReadBackDiffers"));
        }
    }
}
