//! Makes a file durable and reads it back while more is written to it, so that little is left to
//! wait for at the end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::stream::checksum::{BUFFER, Meter, Stored};
use rustix::fs::{Advice, fadvise};

/// So many bytes are written before they are made durable.
const FLUSH: u64 = 16 << 20;
/// Only whole ones are read before the end: a page that is still written to would come from the
/// cache.
const BLOCK: u64 = BUFFER as u64;

/// A thread beside the one that writes. It shares the open file, whose write errors the system
/// tells once: who closes the file must hear of them from [`Flusher::end`].
pub(super) struct Flusher {
    wake: SyncSender<u64>,
    thread: JoinHandle<io::Result<ReadBack>>,
    /// Bytes at the last waking.
    woken: u64,
}

impl Flusher {
    /// Starts it for the file at `path`, open for writing as `file`.
    ///
    /// # Errors
    /// The file can't be shared.
    pub(super) fn start(file: &File, path: &Path) -> io::Result<Self> {
        let file = file.try_clone()?;
        let mut back = ReadBack::open(path);
        let (wake, written) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            for written in written {
                file.sync_data()?;
                back.read_to(written / BLOCK * BLOCK);
            }
            Ok(back)
        });
        Ok(Self {
            wake,
            thread,
            woken: 0,
        })
    }

    /// Says how many bytes are written.
    pub(super) fn wrote(&mut self, bytes: u64) {
        if bytes - self.woken >= FLUSH && self.wake.try_send(bytes).is_ok() {
            self.woken = bytes;
        }
    }

    /// What was read back so far.
    ///
    /// # Errors
    /// Writing failed.
    pub(super) fn end(self) -> io::Result<ReadBack> {
        drop(self.wake);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the flushing thread panicked")))
    }
}

/// What a file holds, read past the cache from its beginning on.
pub(super) struct ReadBack {
    /// Or why it can't be read.
    file: io::Result<File>,
    meter: Meter,
}

impl ReadBack {
    fn open(path: &Path) -> Self {
        Self {
            file: File::open(path),
            meter: Meter::default(),
        }
    }

    /// Reads on to `end` or the end of the file. What is there must be durable: only clean pages
    /// can be dropped from the cache. A failure is kept for [`ReadBack::finish`].
    fn read_to(&mut self, end: u64) {
        let Ok(file) = &mut self.file else { return };
        let from = self.meter.bytes();
        past_cache(file, from);
        if let Err(e) = self.meter.read(file.take(end.saturating_sub(from))) {
            self.file = Err(e);
        }
    }

    /// Reads the rest, once all is durable.
    ///
    /// # Errors
    /// The file can't be read.
    pub(super) fn finish(mut self) -> io::Result<Stored> {
        self.read_to(u64::MAX);
        self.file?;
        Ok(self.meter.finish())
    }
}

/// Drops the clean pages of a file from `from` on, so that reading them asks the volume. A file
/// system that can't is read as it is.
pub(super) fn past_cache(file: &File, from: u64) {
    let _ = fadvise(file, from, None, Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use sha2::{Digest, Sha256};

    use super::*;
    use crate::stream::checksum::hex;

    /// Writes `bytes` bytes; `spoil` may change the file before the last is written. Gives what was
    /// read back, what was sent, and how many bytes were read back before the file was closed.
    fn written(bytes: usize, spoil: impl FnOnce(&File)) -> (Stored, Stored, u64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let mut file = File::create(&path).unwrap();
        let mut flusher = Flusher::start(&file, &path).unwrap();
        let content: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
        let (first, last) = content.split_at(bytes.saturating_sub(1));
        for chunk in first.chunks(300_001) {
            file.write_all(chunk).unwrap();
            flusher.wrote(file.metadata().unwrap().len());
        }
        spoil(&file);
        file.write_all(last).unwrap();
        let back = flusher.end().unwrap();
        let early = back.meter.bytes();
        file.sync_all().unwrap();
        let sent = Stored {
            bytes: bytes as u64,
            sha256: hex(&Sha256::digest(&content)),
        };
        (back.finish().unwrap(), sent, early)
    }

    #[test]
    fn all_is_read_back_whatever_the_length() {
        for bytes in [0, 1, BUFFER, 16 << 20, (40 << 20) + 7] {
            let (back, sent, early) = written(bytes, |_| {});
            assert_eq!(back, sent);
            // What is written beyond the first flush need not have been seen.
            assert_eq!(early >= FLUSH, bytes as u64 > FLUSH, "{early} of {bytes}");
        }
    }

    #[test]
    fn what_the_file_lost_is_seen() {
        let (back, sent, _) = written(1 << 20, |file| file.set_len(1000).unwrap());
        assert_ne!(back, sent);
        // Beyond what can have been read before it was lost.
        let end = (40 << 20) - 10;
        let (back, sent, _) = written(40 << 20, |file| {
            file.write_all_at(b"other", end).unwrap();
        });
        assert_eq!(back.bytes, sent.bytes);
        assert_ne!(back.sha256, sent.sha256);
    }
}
