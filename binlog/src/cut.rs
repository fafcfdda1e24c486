//! Cuts a log into segments of whole transactions while it comes. Memory is bounded whatever the size of a transaction.

use std::io;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::check::{Check, Ended, Start};
use crate::event::MAGIC;
use crate::fault::{Break, Fault};
use crate::gtid::{Gtids, Set};
use crate::segment::{Anchor, Identity, Link, Segment, hex};

/// Bytes of a transaction that are kept in memory. A larger one begins a segment of its own and is handed over as it comes,
/// so that a segment never has to be cut back: it is whole, or nothing in it is.
const HELD: usize = 1 << 20;

/// When a segment is closed, at the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From so many bytes on.
    pub bytes: u64,
    /// After so long.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            age: Duration::MAX,
        }
    }
}

/// Where segments go. Calls come in this order: `begin`, any number of `write`, then `end` or `abandon`.
pub trait Sink {
    /// A segment of a file begins at this position.
    ///
    /// # Errors
    /// It can't be taken; nothing more comes.
    fn begin(&mut self, file: &str, from: u64) -> io::Result<()>;
    /// Bytes of it.
    ///
    /// # Errors
    /// As [`Sink::begin`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// It is whole, and this is what is to be said of it. What comes next builds on it: it must be stored and read back.
    ///
    /// # Errors
    /// As [`Sink::begin`].
    fn end(&mut self, segment: &Segment) -> io::Result<()>;
    /// It is none: its one transaction did not come to its end. Where even that fails, nothing vouches for the bytes.
    fn abandon(&mut self);
}

/// Why cutting ends.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The log is not whole.
    #[error(transparent)]
    Broken(#[from] Break),
    /// A segment can't be stored.
    #[error("a segment can't be stored: {0}")]
    Sink(#[from] io::Error),
}

/// What was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Segments that were ended.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their transactions.
    pub transactions: u64,
}

/// Another log that goes on where a stored one ended: what comes before that point is passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// What the stored log held at its end.
    pub at: Gtids,
    /// When the last of these transactions ended: GTIDs alone do not tell two histories apart that counted as far.
    pub ended: Option<u32>,
    /// What the server holds without having it in its log (MySQL's gtid_purged).
    pub beside: Set,
}

/// A segment that has been begun.
#[derive(Debug)]
struct Open {
    hash: Sha256,
    bytes: u64,
}

/// What is known of the segment up to the last point between transactions.
#[derive(Clone, Debug)]
struct Mark {
    from: u64,
    to: u64,
    last_event: Anchor,
    transactions: u64,
    first: u32,
    last: u32,
    incident: bool,
    /// The transactions before it; `None` until a file has said so.
    before: Option<Gtids>,
    /// When its first byte came.
    begun: Option<Duration>,
}

impl Mark {
    fn at(from: u64, before: Option<Gtids>) -> Self {
        Self {
            from,
            to: from,
            last_event: Anchor {
                position: 0,
                sum: 0,
            },
            transactions: 0,
            first: 0,
            last: 0,
            incident: false,
            before,
            begun: None,
        }
    }
}

/// Cuts what comes.
#[derive(Debug)]
pub struct Cut {
    check: Check,
    server: Identity,
    limits: Limits,
    link: Link,
    join: Option<Join>,
    mark: Mark,
    open: Option<Open>,
    /// Bytes that are not handed over: up to `settled` of whole transactions.
    held: Vec<u8>,
    settled: usize,
    /// The transaction that comes is the only one of its segment, and is handed over as it comes.
    alone: bool,
    /// The earliest and latest time since the last point between transactions.
    times: Option<(u32, u32)>,
    /// When the last transaction ended.
    ended: Option<u32>,
    last: Option<Segment>,
    count: Count,
}

impl Cut {
    /// Cuts the log of this server from there on; `link` is that of the first segment.
    #[must_use]
    pub fn new(
        start: Start,
        join: Option<Join>,
        server: Identity,
        link: Link,
        limits: Limits,
    ) -> Self {
        let before = start.gtids.clone().filter(|_| start.stored.is_some());
        let ended = start.ended.filter(|_| join.is_none());
        let check = Check::new(Start {
            // Only what the server's own files say is known of a log that is to be joined.
            gtids: start.gtids.filter(|_| join.is_none()),
            ..start
        });
        Self {
            check,
            server,
            limits,
            link,
            join,
            mark: Mark::at(0, before),
            open: None,
            held: Vec::new(),
            settled: 0,
            alone: false,
            times: None,
            ended,
            last: None,
            count: Count::default(),
        }
    }

    /// What was cut.
    #[must_use]
    pub fn count(&self) -> Count {
        self.count
    }

    /// The last segment that was ended.
    #[must_use]
    pub fn last(&self) -> Option<&Segment> {
        self.last.as_ref()
    }

    /// True if the log goes on from what was stored: the last event stored was found, the point to join at was reached.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.join.is_none() && self.check.is_recognised()
    }

    /// Takes a part of an event; `now` is the caller's clock, from any moment on.
    ///
    /// # Errors
    /// The log is broken, or a segment can't be stored. What was whole before is to be kept by [`Cut::finish`].
    pub fn part(
        &mut self,
        bytes: &[u8],
        last: bool,
        now: Duration,
        sink: &mut dyn Sink,
    ) -> Result<(), Stop> {
        let step = self.check.part(bytes, last)?;
        let passed = self.join.is_some();
        if step.own && !passed {
            self.mark.begun.get_or_insert(now);
            if self.open.is_none() && self.held.is_empty() {
                let position = self.began(bytes, last);
                self.mark.from = position;
                self.mark.to = position;
                if position == 0 {
                    self.held.extend_from_slice(&MAGIC);
                }
            }
            self.held.extend_from_slice(bytes);
        }
        match step.ended {
            Some(Ended::Within) => self.time(),
            Some(Ended::Between {
                transaction,
                incident,
            }) => {
                self.time();
                if transaction {
                    self.ended = Some(self.check.time());
                }
                if passed {
                    return self.reached();
                }
                self.settle(transaction, incident);
                if self.open.as_ref().map_or(0, |open| open.bytes) + self.settled as u64
                    >= self.limits.bytes
                    || self
                        .mark
                        .begun
                        .is_some_and(|begun| now.saturating_sub(begun) >= self.limits.age)
                {
                    self.close(None, sink)?;
                }
            }
            Some(Ended::File) => self.file(sink)?,
            Some(Ended::Nowhere) | None => {}
        }
        if self.held.len() > HELD {
            self.hand_over(sink)?;
        }
        Ok(())
    }

    /// Where the part that was just taken begins in the file; what stands before a file's first event belongs to it.
    fn began(&self, bytes: &[u8], ended: bool) -> u64 {
        let position = self.check.position();
        let begins = if ended {
            position - bytes.len() as u64
        } else {
            position
        };
        if begins == MAGIC.len() as u64 {
            0
        } else {
            begins
        }
    }

    fn time(&mut self) {
        let time = self.check.time();
        if time != 0 {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    /// While it is passed over: has the log come to where the other ended?
    fn reached(&mut self) -> Result<(), Stop> {
        self.times = None;
        let (Some(join), Some(here)) = (&self.join, self.check.gtids()) else {
            return Ok(());
        };
        if here.beside(&join.beside).is_at(&join.at) {
            if self.ended.is_none() || self.ended != join.ended {
                return Err(self.not_joined());
            }
            self.mark = Mark::at(self.check.position(), Some(here.clone()));
            self.join = None;
        }
        Ok(())
    }

    fn not_joined(&self) -> Stop {
        Stop::Broken(Break {
            file: self.check.file().to_owned(),
            position: self.check.position(),
            fault: Fault::NotJoined,
        })
    }

    /// A point between transactions: all that is held is whole.
    fn settle(&mut self, transaction: bool, incident: bool) {
        self.settled = self.held.len();
        self.alone = false;
        let mark = &mut self.mark;
        mark.to = self.check.position();
        mark.last_event = self.check.last();
        mark.transactions += u64::from(transaction);
        mark.incident |= incident;
        if mark.before.is_none() {
            mark.before = self.check.gtids().cloned();
        }
        if let Some((first, last)) = self.times.take() {
            mark.first = if mark.first == 0 {
                first
            } else {
                mark.first.min(first)
            };
            mark.last = mark.last.max(last);
        }
    }

    /// The file has ended.
    fn file(&mut self, sink: &mut dyn Sink) -> Result<(), Stop> {
        if self.join.is_some() {
            return Err(self.not_joined());
        }
        // A transaction that the server did not bring to its end belongs to the file, and never was.
        if self.held.len() > self.settled || self.alone {
            self.settle(false, false);
        }
        let next = self.check.follows().map(str::to_owned);
        self.close(next, sink)?;
        self.check.next_file();
        self.mark = Mark::at(0, None);
        Ok(())
    }

    /// Hands over what is held, so that memory stays bounded.
    fn hand_over(&mut self, sink: &mut dyn Sink) -> Result<(), Stop> {
        self.flush(self.settled, sink)?;
        self.settled = 0;
        if self.held.len() > HELD || self.alone {
            if !self.alone && self.mark.transactions > 0 {
                self.close(None, sink)?;
            }
            self.alone = true;
            self.flush(self.held.len(), sink)?;
        }
        Ok(())
    }

    /// Gives the sink the first bytes that are held.
    fn flush(&mut self, bytes: usize, sink: &mut dyn Sink) -> Result<(), Stop> {
        if bytes == 0 {
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                sink.begin(self.check.file(), self.mark.from)?;
                none.insert(Open {
                    hash: Sha256::new(),
                    bytes: 0,
                })
            }
        };
        let taken = &self.held[..bytes];
        open.hash.update(taken);
        open.bytes += bytes as u64;
        sink.write(taken)?;
        self.held.drain(..bytes);
        Ok(())
    }

    /// Ends the segment at the last point between transactions.
    fn close(&mut self, next: Option<String>, sink: &mut dyn Sink) -> Result<(), Stop> {
        self.flush(self.settled, sink)?;
        self.settled = 0;
        let after = self.check.gtids().cloned();
        let (Some(open), Some(after)) = (self.open.take(), after) else {
            return Ok(());
        };
        let mark = std::mem::replace(&mut self.mark, Mark::at(0, Some(after.clone())));
        self.mark.from = mark.to;
        self.mark.to = mark.to;
        let segment = Segment {
            server: self.server.clone(),
            file: self.check.file().to_owned(),
            from: mark.from,
            to: mark.to,
            created: self.check.created(),
            next,
            description: hex(self.check.description()),
            last_event: mark.last_event,
            before: mark.before.unwrap_or_else(|| after.clone()),
            after,
            transactions: mark.transactions,
            first: mark.first,
            last: mark.last,
            ended: self.ended,
            incident: mark.incident,
            sha256: hex(&open.hash.finalize()),
            link: self.link.clone(),
        };
        sink.end(&segment)?;
        self.link = Link::Follows {
            previous: segment.digest(),
        };
        self.count.segments += 1;
        self.count.bytes += open.bytes;
        self.count.transactions += segment.transactions;
        self.last = Some(segment);
        Ok(())
    }

    /// Ends with what is whole; also after the log was found broken. True if a transaction had begun and not ended.
    ///
    /// # Errors
    /// A segment can't be stored.
    pub fn finish(&mut self, sink: &mut dyn Sink) -> Result<bool, Stop> {
        if self.alone {
            // Nothing else is in it but a file's beginning, which comes again.
            if self.open.take().is_some() {
                sink.abandon();
            }
            self.held.clear();
            self.alone = false;
            return Ok(true);
        }
        let cut = self.held.len() > self.settled;
        self.held.truncate(self.settled);
        self.close(None, sink)?;
        Ok(cut)
    }
}
