//! Bytes of a snapshot, counted and summed, and the lengths and strings they are written in.

use std::io::{ErrorKind, Read};

use crate::database::redis::crc64::crc64;
use crate::database::redis::rdb::{Error, LARGEST, lzf};

/// Bytes that are asked for at once.
const CHUNK: usize = 64 * 1024;

/// How long something is, or how it is packed.
enum Length {
    Plain(u64),
    Packed(u8),
}

/// The bytes.
pub(crate) struct Input<R> {
    inner: R,
    buffer: Vec<u8>,
    from: usize,
    at: u64,
    sum: u64,
    keeping: bool,
    kept: Vec<u8>,
    passed: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: vec![],
            from: 0,
            at: 0,
            sum: 0,
            keeping: false,
            kept: vec![],
            passed: 0,
        }
    }

    /// How many were read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// CRC-64 of what was read.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// From here on bytes are counted, and kept if asked.
    pub(crate) fn begin(&mut self, keep: bool) {
        self.keeping = keep;
        self.kept = vec![];
        self.passed = 0;
    }

    /// What was kept; no more is.
    pub(crate) fn taken(&mut self) -> Vec<u8> {
        self.keeping = false;
        std::mem::take(&mut self.kept)
    }

    /// How many went by since the beginning.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Nothing follows.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Error> {
        Ok(self.fill()? == 0)
    }

    /// Bytes that are there, at least one unless nothing follows.
    fn fill(&mut self) -> Result<usize, Error> {
        if self.from == self.buffer.len() {
            self.buffer.resize(CHUNK, 0);
            self.from = 0;
            let n = loop {
                match self.inner.read(&mut self.buffer) {
                    Ok(n) => break n,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => {
                        self.buffer.clear();
                        return Err(e.into());
                    }
                }
            };
            self.buffer.truncate(n);
        }
        Ok(self.buffer.len() - self.from)
    }

    /// Takes `n` bytes; `each` sees them piece by piece.
    fn take(&mut self, n: u64, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut left = n;
        while left > 0 {
            let there = self.fill()?;
            if there == 0 {
                return Err(Error::Cut(self.at));
            }
            let count = usize::try_from(left).map_or(there, |left| left.min(there));
            let piece = &self.buffer[self.from..self.from + count];
            self.sum = crc64(self.sum, piece);
            self.passed = self.passed.saturating_add(count as u64);
            // What is too large is passed over to its end, and told.
            if self.keeping && self.passed <= LARGEST {
                self.kept.extend_from_slice(piece);
            }
            each(piece);
            self.from += count;
            self.at += count as u64;
            left -= count as u64;
        }
        Ok(())
    }

    /// Passes over `n` bytes.
    pub(crate) fn pass(&mut self, n: u64) -> Result<(), Error> {
        self.take(n, |_| {})
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = Vec::with_capacity(N);
        let at = self.at;
        self.take(N as u64, |piece| bytes.extend_from_slice(piece))?;
        bytes.try_into().map_err(|_| Error::Cut(at))
    }

    fn length(&mut self) -> Result<Length, Error> {
        let at = self.at;
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(Length::Plain(match (first >> 6, first) {
            (0, _) => u64::from(low),
            (1, _) => u64::from(u16::from_be_bytes([low, self.byte()?])),
            (3, _) => return Ok(Length::Packed(low)),
            (_, 0x80) => u64::from(u32::from_be_bytes(self.array()?)),
            (_, 0x81) => u64::from_be_bytes(self.array()?),
            _ => return Err(Error::Bad(at, "a length that can't be".to_owned())),
        }))
    }

    /// A length or a number that is written as one.
    pub(crate) fn number(&mut self) -> Result<u64, Error> {
        let at = self.at;
        match self.length()? {
            Length::Plain(n) => Ok(n),
            Length::Packed(_) => Err(Error::Bad(at, "no length where one must be".to_owned())),
        }
    }

    /// Passes over a string.
    pub(crate) fn pass_string(&mut self) -> Result<(), Error> {
        let at = self.at;
        match self.length()? {
            Length::Plain(n) => self.pass(n),
            Length::Packed(0) => self.pass(1),
            Length::Packed(1) => self.pass(2),
            Length::Packed(2) => self.pass(4),
            Length::Packed(3) => {
                let packed = self.number()?;
                self.number()?;
                self.pass(packed)
            }
            Length::Packed(_) => Err(Error::Bad(at, "a string packed in no known way".to_owned())),
        }
    }

    /// Reads a string of at most `most` bytes.
    pub(crate) fn string(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let at = self.at;
        let text = |n: i64| n.to_string().into_bytes();
        match self.length()? {
            Length::Plain(n) => self.raw(at, n, most),
            Length::Packed(0) => self.array().map(i8::from_le_bytes).map(|n| text(n.into())),
            Length::Packed(1) => self.array().map(i16::from_le_bytes).map(|n| text(n.into())),
            Length::Packed(2) => self.array().map(i32::from_le_bytes).map(|n| text(n.into())),
            Length::Packed(3) => {
                let (packed, whole) = (self.number()?, self.number()?);
                if whole > most {
                    return Err(too_long(at));
                }
                let packed = self.raw(at, packed, most)?;
                lzf::unpack(&packed, whole)
                    .ok_or_else(|| Error::Bad(at, "a string that can't be unpacked".to_owned()))
            }
            Length::Packed(_) => Err(Error::Bad(at, "a string packed in no known way".to_owned())),
        }
    }

    fn raw(&mut self, at: u64, n: u64, most: u64) -> Result<Vec<u8>, Error> {
        if n > most {
            return Err(too_long(at));
        }
        let mut bytes = vec![];
        self.take(n, |piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }
}

fn too_long(at: u64) -> Error {
    Error::Bad(at, "a string longer than it may be".to_owned())
}
