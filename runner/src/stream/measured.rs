//! A reader that measures what it gives, shared by who reads and who asks: decoders may not read to
//! the end of what they are given.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::report::Reason;
use sha2::{Digest, Sha256};

use super::checksum::{Stored, hex};
use crate::failure::Failure;

/// Bytes kept of the end.
const TAIL: usize = 4096;

/// The reader.
#[derive(Clone)]
pub struct Measured(Arc<Mutex<Measuring>>);

struct Measuring {
    source: Box<dyn Read + Send>,
    hash: Sha256,
    bytes: u64,
    tail: Vec<u8>,
    failed: Option<Failure>,
}

impl Measured {
    /// Measures what is read of `source`.
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Self(Arc::new(Mutex::new(Measuring {
            source,
            hash: Sha256::new(),
            bytes: 0,
            tail: vec![],
            failed: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Measuring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what nobody read yet; gives length and SHA-256 of all of it.
    ///
    /// # Errors
    /// What a store said of itself, whatever the layers above made of it; or it can't be read to its
    /// end. `key` is its name.
    pub fn whole(&self, key: &str) -> Result<Stored, Failure> {
        let read = io::copy(&mut self.clone(), &mut io::sink());
        let inner = self.lock();
        if let Some(failure) = &inner.failed {
            return Err(failure.clone());
        }
        read.map_err(|e| {
            Failure::new(
                Reason::NotReadBack,
                format!("{key} can't be read to its end: {e}"),
            )
        })?;
        Ok(Stored {
            bytes: inner.bytes,
            sha256: hex(&inner.hash.clone().finalize()),
        })
    }

    /// What was read so far ends with so many zeros.
    pub fn ends_in_zeros(&self, count: usize) -> bool {
        let inner = self.lock();
        let at = inner.tail.len().checked_sub(count);
        at.is_some_and(|at| inner.tail[at..].iter().all(|b| *b == 0))
    }
}

impl Read for Measured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let n = match inner.source.read(buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                let text = e.to_string();
                inner.failed = e.downcast::<Failure>().ok();
                return Err(match &inner.failed {
                    Some(failure) => io::Error::other(failure.clone()),
                    None => io::Error::other(text),
                });
            }
        };
        inner.hash.update(&buffer[..n]);
        inner.bytes += n as u64;
        keep_tail(&mut inner.tail, &buffer[..n]);
        Ok(n)
    }
}

/// Keeps the last bytes of all chunks.
pub fn keep_tail(tail: &mut Vec<u8>, chunk: &[u8]) {
    if chunk.len() >= TAIL {
        tail.clear();
        tail.extend_from_slice(&chunk[chunk.len() - TAIL..]);
        return;
    }
    let over = (tail.len() + chunk.len()).saturating_sub(TAIL);
    tail.drain(..over);
    tail.extend_from_slice(chunk);
}
