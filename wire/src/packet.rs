//! Packets: three bytes of length, one of sequence, and what they carry. Several of 16 MiB are one.

use std::ops::Range;

use crate::error::Error;
use crate::stream::Stream;

/// A packet of this length goes on in the next one.
pub(crate) const FULL: usize = 0xff_ffff;
const HEADER: usize = 4;
/// Bytes read at once: the buffer's size while packets are small.
const CHUNK: usize = 1 << 18;

/// Reads packets from a stream, and writes them.
#[derive(Debug)]
pub(crate) struct Packets {
    pub(crate) stream: Stream,
    buffer: Vec<u8>,
    /// What is read and not yet taken.
    filled: Range<usize>,
    /// The sequence number of the next packet, in both directions.
    sequence: u8,
    limit: usize,
    /// Of a packet that is taken in parts: bytes still to come of what its last header announced, and whether another
    /// header follows them.
    left: usize,
    goes_on: bool,
    out: Vec<u8>,
}

impl Packets {
    pub(crate) fn new(stream: Stream, limit: usize) -> Self {
        Self {
            stream,
            buffer: vec![0; CHUNK],
            filled: 0..0,
            sequence: 0,
            limit,
            left: 0,
            goes_on: false,
            out: Vec::new(),
        }
    }

    /// From now on packets may be of so many bytes.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// A command begins.
    pub(crate) fn restart(&mut self) {
        self.sequence = 0;
    }

    /// True if nothing was read ahead: what follows TLS must not come before it.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn get(&self, packet: Range<usize>) -> &[u8] {
        self.buffer.get(packet).unwrap_or_default()
    }

    /// Reads a packet; it stays where it is until the next is read.
    #[inline]
    pub(crate) fn read(&mut self) -> Result<Range<usize>, Error> {
        let length = self.header()?;
        if length == FULL {
            return self.joined();
        }
        self.check(length)?;
        self.fill(length)?;
        let packet = self.filled.start..self.filled.start + length;
        self.filled.start = packet.end;
        Ok(packet)
    }

    /// Packets that are one, moved together.
    #[cold]
    fn joined(&mut self) -> Result<Range<usize>, Error> {
        let mut whole = Vec::new();
        let mut length = FULL;
        loop {
            self.check(whole.len().saturating_add(length))?;
            let mut left = length;
            while left > 0 {
                if self.filled.is_empty() {
                    self.fill(1)?;
                }
                let n = left.min(self.filled.len());
                whole.extend_from_slice(&self.buffer[self.filled.start..self.filled.start + n]);
                self.filled.start += n;
                left -= n;
            }
            if length < FULL {
                break;
            }
            length = self.header()?;
        }
        // Behind the packet stays what was read beyond it.
        let end = whole.len();
        whole.extend_from_slice(&self.buffer[self.filled.clone()]);
        self.filled = end..whole.len();
        self.buffer = whole;
        Ok(0..end)
    }

    /// The next part of a packet, and whether the packet ends with it. A packet is whole where it is smaller than the buffer;
    /// of a larger one no more than that is ever in memory, so no limit holds.
    pub(crate) fn part(&mut self) -> Result<(Range<usize>, bool), Error> {
        if self.left == 0 {
            self.left = self.header()?;
            self.goes_on = self.left == FULL;
        }
        self.fill(self.left.min(CHUNK))?;
        let taken = self.left.min(self.filled.len());
        let part = self.filled.start..self.filled.start + taken;
        self.filled.start = part.end;
        self.left -= taken;
        Ok((part, self.left == 0 && !self.goes_on))
    }

    #[inline]
    fn check(&self, size: usize) -> Result<(), Error> {
        if size > self.limit {
            return Err(Error::TooLarge {
                what: "a packet",
                size: size as u64,
                limit: self.limit as u64,
            });
        }
        Ok(())
    }

    #[inline]
    fn header(&mut self) -> Result<usize, Error> {
        self.fill(HEADER)?;
        let at = self.filled.start;
        let [a, b, c, sequence] = self.buffer[at..at + HEADER] else {
            return Err(Error::Malformed("no header"));
        };
        self.filled.start += HEADER;
        // An error may come at any time, also as an answer to nothing: then it says more than its number.
        if sequence != self.sequence && self.ahead()? != Some(0xff) {
            return Err(Error::Malformed("a packet is out of sequence"));
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(u32::from_le_bytes([a, b, c, 0]) as usize)
    }

    /// The first byte of what a header announced.
    #[cold]
    fn ahead(&mut self) -> Result<Option<u8>, Error> {
        self.fill(1)?;
        Ok(self.buffer.get(self.filled.start).copied())
    }

    /// Has at least `n` bytes in the buffer. It grows with what comes, not with what was announced.
    #[inline]
    fn fill(&mut self, n: usize) -> Result<(), Error> {
        if self.filled.len() >= n {
            return Ok(());
        }
        self.fill_slowly(n)
    }

    fn fill_slowly(&mut self, n: usize) -> Result<(), Error> {
        let have = self.filled.len();
        if self.buffer.len() > 4 * CHUNK && n <= CHUNK && have <= CHUNK {
            // After a large packet the memory goes back.
            self.buffer = self.buffer[self.filled.clone()].to_vec();
            self.buffer.resize(CHUNK, 0);
        } else if self.filled.start > 0 {
            self.buffer.copy_within(self.filled.clone(), 0);
        }
        self.filled = 0..have;
        while self.filled.len() < n {
            if self.filled.end == self.buffer.len() {
                let grown = (self.buffer.len() * 2).min(n.max(CHUNK));
                self.buffer.resize(grown.max(self.filled.end + 1), 0);
            }
            self.filled.end += self.stream.read(&mut self.buffer[self.filled.end..])?;
        }
        Ok(())
    }

    /// Sends a packet, in several where it is large.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut chunks = payload.chunks(FULL);
        loop {
            // A packet that fills the last one exactly is ended by an empty one.
            let chunk = chunks.next().unwrap_or_default();
            let [a, b, c, ..] = chunk.len().to_le_bytes();
            self.out.clear();
            self.out.extend_from_slice(&[a, b, c, self.sequence]);
            self.out.extend_from_slice(chunk);
            self.sequence = self.sequence.wrapping_add(1);
            self.stream.write(&self.out)?;
            if chunk.len() < FULL {
                break;
            }
        }
        if self.out.capacity() > 4 * CHUNK {
            self.out = Vec::new();
        }
        Ok(())
    }
}
