//! Length and SHA-256 of what is stored, and whether what is read back has them.

use crds::report::Reason;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Bytes of a read.
pub const BUFFER: usize = 256 * 1024;

/// What went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Begins to read something.
pub type Open<'a> = Box<dyn FnOnce() -> Result<Box<dyn Read + Send>, Failure> + 'a>;

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

    /// The next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
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
            self.add(&buffer[..n]);
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
            Failure::new(
                Reason::NotReadBack,
                format!("{key} could not be read back: {e}"),
            )
        })
    })?;
    if read.bytes != sent.bytes {
        return Err(Failure::new(
            Reason::ReadBackDiffers,
            format!(
                "{key}: {} bytes were stored but {} read back; it is not kept: check the store's health, then run again",
                sent.bytes, read.bytes
            ),
        ));
    }
    if read.sha256 != sent.sha256 {
        return Err(Failure::new(
            Reason::ReadBackDiffers,
            format!(
                "{key}: what was read back has SHA-256 {} instead of {}; it is not kept: check the store's health, then run again",
                read.sha256, sent.sha256
            ),
        ));
    }
    Ok(())
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
            assert_eq!(
                (failure.exit_code, failure.reason.as_str()),
                (5, "ReadBackDiffers")
            );
        }
    }
}
