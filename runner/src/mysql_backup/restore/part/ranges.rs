//! The stored bytes of an artefact, of which only ranges are read, and what is in them after decryption.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use load::Source;

use crate::store::Store;

/// Bytes that are fetched where nothing was planned: an age header has some hundred.
const SMALL: u64 = 4 << 10;
/// Bytes that are taken from the store at once.
const BUFFER: u64 = 64 << 10;
/// Bytes of text, and of text with its tag, of which each chunk of age is.
const CHUNK: u64 = 64 << 10;
/// See [`CHUNK`].
const ENCRYPTED: u64 = CHUNK + 16;
/// Bytes of definitions that are kept, so that they are read once.
const KEPT: usize = 16 << 20;

/// Stored bytes that are fetched by ranges; clones read on in the same place.
#[derive(Clone)]
pub(super) struct Ranges(Arc<Mutex<State>>);

struct State {
    store: Arc<dyn Store>,
    key: String,
    length: u64,
    /// Ranges that will be read, in their order.
    planned: Vec<Range<u64>>,
    /// Where the reader is.
    at: u64,
    /// What was fetched last, and where that begins.
    buffer: Vec<u8>,
    from: u64,
    /// An open range: where it is, and what comes.
    open: Option<(u64, Box<dyn Read + Send>)>,
    /// Bytes that came.
    read: Arc<AtomicU64>,
}

impl Ranges {
    /// Of an object of this length; what comes is counted in `read`.
    pub(super) fn new(store: Arc<dyn Store>, key: &str, length: u64, read: Arc<AtomicU64>) -> Self {
        Self(Arc::new(Mutex::new(State {
            store,
            key: key.to_owned(),
            length,
            planned: vec![],
            at: 0,
            buffer: vec![],
            from: 0,
            open: None,
            read,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what will be read, so that each range is one request.
    pub(super) fn plan(&self, ranges: Vec<Range<u64>>) {
        self.state().planned = ranges;
    }

    /// Where the reader is.
    pub(super) fn at(&self) -> u64 {
        self.state().at
    }
}

impl State {
    /// Fetches the bytes at the reader's place; nothing where there is nothing more.
    fn fetch(&mut self) -> io::Result<()> {
        let at = self.at;
        self.buffer.clear();
        self.from = at;
        if let Some((place, open)) = self.open.take()
            && place == at
            && self.take(open)?
        {
            return Ok(());
        }
        if at >= self.length {
            return Ok(());
        }
        let planned = self.planned.iter().find(|range| range.contains(&at));
        let end = planned.map_or(at.saturating_add(SMALL), |range| range.end);
        let opened = self.store.open_part(&self.key, at..end.min(self.length));
        let open = opened.map_err(io::Error::other)?.ok_or_else(|| {
            let text = format!("{} is not there any more, or not in parts", self.key);
            io::Error::new(io::ErrorKind::NotFound, text)
        })?;
        self.take(open).map(drop)
    }

    /// Takes the next bytes of what was opened; false if there are none.
    fn take(&mut self, mut open: Box<dyn Read + Send>) -> io::Result<bool> {
        let n = open.by_ref().take(BUFFER).read_to_end(&mut self.buffer)? as u64;
        self.read.fetch_add(n, Ordering::Relaxed);
        if n > 0 {
            self.open = Some((self.from + n, open));
        }
        Ok(n > 0)
    }
}

impl Read for Ranges {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        let held = |state: &State| {
            let skip = usize::try_from(state.at.checked_sub(state.from)?).ok()?;
            Some(skip).filter(|skip| *skip < state.buffer.len())
        };
        if held(&state).is_none() && !target.is_empty() {
            state.fetch()?;
        }
        let skip = held(&state).unwrap_or(state.buffer.len());
        let rest = state.buffer.get(skip..).unwrap_or_default();
        let n = rest.len().min(target.len());
        target[..n].copy_from_slice(&rest[..n]);
        state.at += n as u64;
        Ok(n)
    }
}

impl Seek for Ranges {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut state = self.state();
        let place = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => state.at.checked_add_signed(by),
            SeekFrom::End(by) => state.length.checked_add_signed(by),
        };
        state.at = place.ok_or_else(|| io::Error::other("a place before the beginning"))?;
        Ok(state.at)
    }
}

/// What is read by seeking, as a source of frames.
pub(super) struct Seeking<R>(pub(super) R);

impl<R: Read + Seek + Send> Source for Seeking<R> {
    fn read(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        self.0.seek(SeekFrom::Start(at))?;
        let read = self.0.by_ref().take(length).read_to_end(into)? as u64;
        if read < length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it ends before its last frame does",
            ));
        }
        Ok(())
    }
}

/// A source whose first bytes are kept, so that definitions are read once.
pub(super) struct KeptSource<S> {
    inner: S,
    kept: BTreeMap<u64, Vec<u8>>,
    held: usize,
}

impl<S: Source> KeptSource<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            kept: BTreeMap::new(),
            held: 0,
        }
    }

    /// Reads, and keeps it where it is not too much.
    pub(super) fn keep(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        self.read(at, length, into)?;
        if self.held + into.len() <= KEPT && !self.kept.contains_key(&at) {
            self.held += into.len();
            self.kept.insert(at, into.clone());
        }
        Ok(())
    }

    /// The same that was kept, with another source for the rest.
    pub(super) fn over<T: Source>(self, inner: T) -> KeptSource<T> {
        KeptSource {
            inner,
            kept: self.kept,
            held: self.held,
        }
    }
}

impl<S: Source> Source for KeptSource<S> {
    fn read(&mut self, at: u64, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        match self.kept.get(&at) {
            Some(kept) if kept.len() as u64 == length => {
                into.clone_from(kept);
                Ok(())
            }
            _ => self.inner.read(at, length, into),
        }
    }
}

/// The chunks of an age file that hold these ranges of its text, and the last one, which tells that nothing is missing: ranges
/// of the file, whose text begins at `header`.
pub(super) fn encrypted(text: &[Range<u64>], header: u64, length: u64) -> Vec<Range<u64>> {
    let last = length.saturating_sub(header + 1) / ENCRYPTED;
    let mut all: Vec<Range<u64>> = text
        .iter()
        .map(|range| range.start / CHUNK..range.end.div_ceil(CHUNK))
        .collect();
    all.push(last..last + 1);
    let mut joined: Vec<Range<u64>> = vec![];
    for range in all {
        match joined.last_mut() {
            Some(before) if range.start <= before.end => before.end = before.end.max(range.end),
            _ => joined.push(range),
        }
    }
    let place = |chunk: u64| {
        header
            .saturating_add(chunk.saturating_mul(ENCRYPTED))
            .min(length)
    };
    joined
        .into_iter()
        .map(|range| place(range.start)..place(range.end))
        .collect()
}

/// Bytes of these ranges.
pub(super) fn bytes(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::{Attempt, VolumeStore};

    fn a_volume(content: &[u8]) -> (tempfile::TempDir, Arc<dyn Store>) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("o"), content).unwrap();
        let attempt = Attempt {
            run: "r".into(),
            pod: "p".into(),
            nonce: "n".into(),
        };
        let store = VolumeStore::open(directory.path(), attempt).unwrap();
        (directory, Arc::new(store))
    }

    #[test]
    fn what_is_planned_is_fetched_and_little_more() {
        let content: Vec<u8> = (0..2_000_000u32).map(|n| (n / 7) as u8).collect();
        let (_directory, store) = a_volume(&content);
        let read = Arc::new(AtomicU64::new(0));
        let ranges = Ranges::new(store, "o", 2_000_000, Arc::clone(&read));
        ranges.plan(vec![0..100, 500_000..800_000, 1_999_990..2_000_000]);
        let mut source = KeptSource::new(Seeking(ranges));
        let mut into = vec![];
        for _ in 0..2 {
            source.keep(0, 100, &mut into).unwrap();
            assert_eq!(into, content[..100]);
        }
        for at in [500_000, 650_000, 799_000] {
            source.read(at, 1000, &mut into).unwrap();
            assert_eq!(into, content[at as usize..][..1000]);
        }
        source.read(1_999_990, 10, &mut into).unwrap();
        assert_eq!(into, content[1_999_990..]);
        assert!(source.read(1_999_990, 11, &mut into).is_err());
        let all = read.load(Ordering::Relaxed);
        // What is passed over of a range costs what is fetched at once.
        assert!((3110..=100 + 3 * BUFFER + 20).contains(&all), "{all}");
    }

    #[test]
    fn an_age_file_is_read_by_its_chunks() {
        let identity = age::x25519::Identity::generate();
        let to = identity.to_public();
        for length in [
            1u64,
            CHUNK - 1,
            CHUNK,
            CHUNK + 1,
            10 * CHUNK,
            10 * CHUNK + 5,
        ] {
            let text: Vec<u8> = (0..length).map(|n| (n / 3) as u8).collect();
            let stored = age::encrypt(&to, &text).unwrap();
            let (_directory, store) = a_volume(&stored);
            let read = Arc::new(AtomicU64::new(0));
            let size = stored.len() as u64;
            let ranges = Ranges::new(store, "o", size, Arc::clone(&read));
            let decryptor = age::Decryptor::new(ranges.clone()).unwrap();
            let identities = [&identity as &dyn age::Identity];
            let mut plain = decryptor.decrypt(identities.into_iter()).unwrap();
            let wanted = length / 3..(length / 3 + 70_000).min(length);
            let planned = encrypted(std::slice::from_ref(&wanted), ranges.at(), size);
            let most = bytes(&planned) + 3 * SMALL + ENCRYPTED;
            // The last chunk, for the length, and again where it is wanted.
            assert!(planned.last().unwrap().end == size, "{planned:?}");
            ranges.plan(planned);
            assert_eq!(plain.seek(SeekFrom::End(0)).unwrap(), length);
            let mut into = vec![];
            let mut source = Seeking(plain);
            let count = wanted.end - wanted.start;
            source.read(wanted.start, count, &mut into).unwrap();
            assert!(into == text[wanted.start as usize..wanted.end as usize]);
            let all = read.load(Ordering::Relaxed);
            assert!(all <= most, "{all} of {most} for {length}");
        }
    }
}
