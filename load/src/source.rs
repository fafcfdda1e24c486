//! Where the bytes of an artefact come from, and what a frame holds.

use std::io::{self, Read};

use dump::{Compress, Frame};

/// Bytes of a frame beyond which it is not read. A row is a frame of its own where it is large, and a server's largest row is
/// 1 GiB, of two digits a byte.
const LARGEST: u64 = 5 << 30;

/// Bytes of text for which memory is taken before any of it is there.
const AT_ONCE: u64 = 64 << 20;

/// The bytes of an artefact, before encryption.
pub trait Source: Send {
    /// Reads `length` bytes from `at` on; they take the place of what is in `into`. Calls come in the order of the file.
    ///
    /// # Errors
    /// They can't be read, or the file ends before.
    fn read(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn read(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        (**self).read(at, length, into)
    }
}

/// A stream that passes over what is not asked for.
pub struct Sequential<R> {
    inner: R,
    at: u64,
}

impl<R: Read + Send> Sequential<R> {
    /// One that stands at the beginning.
    pub fn new(inner: R) -> Self {
        Self { inner, at: 0 }
    }
}

impl<R: Read + Send> Source for Sequential<R> {
    fn read(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        let ahead = at
            .checked_sub(self.at)
            .ok_or_else(|| io::Error::other("a stream is not read backwards"))?;
        let passed = io::copy(&mut self.inner.by_ref().take(ahead), &mut io::sink())?;
        let read = self.inner.by_ref().take(length).read_to_end(into)? as u64;
        self.at += passed + read;
        if passed < ahead || read < length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it ends before its last frame does",
            ));
        }
        Ok(())
    }
}

/// Reads the text of a frame.
///
/// # Errors
/// It can't be read, is damaged, or is not as long as its manifest says.
pub fn text_of_frame(
    source: &mut dyn Source,
    frame: &Frame<'_>,
    compress: Compress,
) -> io::Result<Vec<u8>> {
    if !is_possible(frame.stored, frame.raw) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the manifest has a frame of an impossible length",
        ));
    }
    let (mut stored, mut text) = (vec![], vec![]);
    source.read(frame.at, frame.stored, &mut stored)?;
    read_text(&stored, frame.raw, compress, &mut text)?;
    Ok(text)
}

/// Reads the text of a frame, of `raw` bytes, which takes the place of what is in `into`.
///
/// # Errors
/// It is damaged, or has another length.
pub(crate) fn read_text(
    stored: &[u8],
    raw: u64,
    compress: Compress,
    into: &mut Vec<u8>,
) -> io::Result<()> {
    let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if raw > LARGEST {
        return Err(damaged("a frame is larger than any row can be"));
    }
    into.clear();
    into.reserve(usize::try_from(raw.min(AT_ONCE)).unwrap_or_default());
    let most = raw + 1;
    match compress {
        Compress::None => into.extend_from_slice(stored),
        // Where it is to be is known: it needs no window of its own.
        Compress::Zstd(_) if raw <= AT_ONCE => {
            zstd::bulk::Decompressor::new()?.decompress_to_buffer(stored, into)?;
        }
        Compress::Zstd(_) => {
            zstd::Decoder::with_buffer(stored)?
                .take(most)
                .read_to_end(into)?;
        }
        Compress::Gzip(_) => {
            flate2::bufread::GzDecoder::new(stored)
                .take(most)
                .read_to_end(into)?;
        }
    }
    if into.len() as u64 != raw {
        return Err(damaged("a frame is not as long as its manifest says"));
    }
    Ok(())
}

/// A frame's stored length can be what its text became.
pub(crate) fn is_possible(stored: u64, raw: u64) -> bool {
    raw <= LARGEST && stored <= raw + raw / 64 + (64 << 10)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_stream_passes_over_what_is_not_asked_for() {
        let mut source = Sequential::new(&b"0123456789"[..]);
        let mut into = b"before".to_vec();
        source.read(2, 3, &mut into).unwrap();
        assert_eq!(into, b"234");
        source.read(5, 1, &mut into).unwrap();
        assert_eq!(into, b"5");
        assert!(source.read(5, 1, &mut into).is_err());
        let e = source.read(8, 3, &mut into).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_frame_is_read_as_far_as_its_manifest_says() {
        let plain = vec![b'a'; 100_000];
        for compress in [Compress::Zstd(3), Compress::Gzip(6), Compress::None] {
            let mut stored = vec![];
            let mut encoder = dump::Encoder::new(compress).unwrap();
            encoder.encode(&plain, &mut stored).unwrap();
            let mut text = b"before".to_vec();
            let mut read = |stored: &[u8], raw| read_text(stored, raw, compress, &mut text);
            assert!(read(&stored, 99_999).is_err());
            assert!(read(&stored, 100_001).is_err());
            assert!(read(&stored, AT_ONCE + 1).is_err());
            assert!(read(&stored, u64::MAX).is_err());
            assert!(read(&stored[..stored.len() - 1], 100_000).is_err());
            read(&stored, 100_000).unwrap();
            assert_eq!(text, plain);
        }
    }
}
