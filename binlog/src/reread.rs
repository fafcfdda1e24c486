//! Stored segments, read again event by event: each is what was stored, and where in it a backup's log goes on and a target
//! lies. Pure: bytes come from the caller.

use sha2::{Digest, Sha256};

use crate::chain::{Base, Target};
use crate::check::{Check, Ended};
use crate::event::{HEADER, Header, MAGIC};
use crate::fault::Break;
use crate::gtid::Gtids;
use crate::segment::{Anchor, Segment, hex};

/// A point between two transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The file, as the server calls it.
    pub file: String,
    /// The position in it.
    pub position: u64,
    /// The transactions up to there.
    pub gtids: Gtids,
    /// In which of the segments that were begun it lies, from 0 on.
    pub segment: usize,
}

/// What was found on the way to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it ends.
    pub end: Point,
    /// Transactions on the way, from the backup on.
    pub transactions: u64,
    /// The latest time of an event of them, in seconds since 1970 by the server's clock; 0 where there is none.
    pub last: u32,
    /// For each of the segments that were begun, where the last transaction in it ends that is on the way.
    pub ends: Vec<Option<u64>>,
    /// The target itself was met: what comes behind it is not wanted.
    pub met: bool,
}

/// Why segments do not lead to a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Astray {
    /// A segment is not what was stored.
    #[error("what is stored of {0} is not what the server sent: {1}")]
    Altered(String, String),
    /// No transaction ends where the backup was made.
    #[error("no transaction ends at {position} of {file}, which the backup names as its moment")]
    NoPoint {
        /// The file.
        file: String,
        /// The position.
        position: u64,
    },
    /// The log has other GTIDs where the backup was made.
    #[error(
        "the log has {log} at the backup's position or behind it, and the backup says {backup}"
    )]
    OtherGtids {
        /// Those of the log.
        log: String,
        /// Those of the backup.
        backup: String,
    },
    /// The backup holds what lies behind the target.
    #[error("the backup holds transactions that are not before the target: take an older one")]
    BeforeBase,
}

impl From<Break> for Astray {
    fn from(at: Break) -> Self {
        let Break {
            file,
            position,
            fault,
        } = at;
        Self::Altered(file, format!("at {position}: {fault}"))
    }
}

/// Takes a part of an event, the last of it or not.
type Take<'a> = dyn FnMut(&[u8], bool) -> Result<(), Break> + 'a;

/// Bytes of a file as parts of events.
#[derive(Debug, Default)]
struct Parts {
    /// The beginning of a header.
    head: Vec<u8>,
    /// Bytes of the event that are to come.
    left: usize,
}

impl Parts {
    /// Gives the parts of the next bytes; the first of an event has its header at least.
    fn feed(&mut self, mut bytes: &[u8], take: &mut Take<'_>) -> Result<(), Break> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (now, rest) = bytes.split_at(self.left.min(bytes.len()));
                self.left -= now.len();
                take(now, self.left == 0)?;
                bytes = rest;
                continue;
            }
            let wanted = HEADER - self.head.len();
            let (now, rest) = bytes.split_at(wanted.min(bytes.len()));
            self.head.extend_from_slice(now);
            bytes = rest;
            if self.head.len() < HEADER {
                return Ok(());
            }
            let head = std::mem::take(&mut self.head);
            // One that says less is refused by who takes it.
            let size = Header::parse(&head).map_or(HEADER, |header| header.size as usize);
            self.left = size.saturating_sub(HEADER);
            take(&head, self.left == 0)?;
        }
        Ok(())
    }

    fn is_between(&self) -> bool {
        self.left == 0 && self.head.is_empty()
    }
}

/// Goes through segments in the order of a plan.
#[derive(Debug)]
pub struct Reread {
    target: Option<Target>,
    /// Where the backup was made, until that point has been found.
    base: Option<(u64, Option<Gtids>)>,
    /// The last point between transactions.
    point: Option<Point>,
    /// Where the transaction that comes has begun, and whether the target is in it.
    begun: Option<Begun>,
    found: Option<Found>,
    transactions: u64,
    last: u32,
    /// Of each segment that was begun, where its last transaction ends that counts.
    ends: Vec<Option<u64>>,
    /// A transaction that counts has just ended.
    counts: bool,
    /// What a backup of MySQL holds: the log behind it holds nothing of it.
    held: Option<Gtids>,
    /// The later backup's position is one of the file of the segment that is being read.
    ends_here: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    late: bool,
    named: bool,
    last: u32,
}

/// A segment that is being read.
#[derive(Debug)]
pub struct Reading<'a> {
    segment: &'a Segment,
    check: Check,
    parts: Parts,
    hash: Sha256,
    magic: usize,
    bytes: u64,
}

impl Reread {
    /// From where a backup was made, with its GTIDs where they are known; up to the target, or to the end of what comes.
    #[must_use]
    pub fn new(position: u64, gtids: Option<Gtids>, target: Option<Target>) -> Self {
        Self {
            target,
            base: Some((position, gtids.filter(|gtids| !gtids.is_empty()))),
            point: None,
            begun: None,
            found: None,
            transactions: 0,
            last: 0,
            ends: Vec::new(),
            counts: false,
            held: None,
            ends_here: false,
        }
    }

    /// Begins a segment.
    ///
    /// # Errors
    /// What it says of its file is not understood.
    pub fn begin<'a>(&mut self, segment: &'a Segment) -> Result<Reading<'a>, Astray> {
        let reading = Reading::new(segment)?;
        self.ends.push(None);
        self.ends_here = matches!(&self.target, Some(Target::Backup(later))
            if segment.server.is(&later.server)
                && segment.file == later.file
                && segment.created <= later.until);
        if segment.from > 0 {
            self.between(&segment.file, segment.from, Some(&segment.before))?;
        }
        Ok(reading)
    }

    /// Takes the next bytes of the segment.
    ///
    /// # Errors
    /// They are not what was stored, or do not lead to the target.
    pub fn feed(&mut self, reading: &mut Reading<'_>, bytes: &[u8]) -> Result<(), Astray> {
        let file = reading.segment.file.as_str();
        let mut astray = None;
        reading.feed(bytes, &mut |check, ended| {
            if astray.is_none() {
                astray = self.event(file, check, ended).err();
            }
        })?;
        astray.map_or(Ok(()), Err)
    }

    fn event(&mut self, file: &str, check: &Check, ended: Ended) -> Result<(), Astray> {
        if self.found.is_some() {
            return Ok(());
        }
        let time = check.time();
        match ended {
            Ended::Within => {
                let Some(begun) = self.begun.as_mut() else {
                    if check.gtids().is_some() {
                        self.begun = Some(Begun::default());
                        return self.event(file, check, ended);
                    }
                    return Ok(());
                };
                begun.see(time, self.target.as_ref(), check);
                if let (Some(held), Some(gtid)) = (&self.held, check.begun())
                    && held.contains(gtid)
                {
                    return Err(Astray::OtherGtids {
                        log: gtid.to_string(),
                        backup: short(held),
                    });
                }
                Ok(())
            }
            Ended::Between { transaction, .. } => {
                let mut begun = self.begun.take().unwrap_or_default();
                if transaction {
                    begun.see(time, self.target.as_ref(), check);
                }
                self.ended(begun, transaction)?;
                self.between(file, check.position(), check.gtids())
            }
            Ended::File | Ended::Nowhere => Ok(()),
        }
    }

    /// A transaction, or an event outside one, has ended.
    fn ended(&mut self, begun: Begun, transaction: bool) -> Result<(), Astray> {
        if self.base.is_some() {
            // It is in the backup.
            return match begun.late || begun.named {
                true => Err(Astray::BeforeBase),
                false => Ok(()),
            };
        }
        let without = begun.late || (begun.named && self.is_before());
        if without {
            self.stop(true);
            return Ok(());
        }
        self.transactions += u64::from(transaction);
        self.counts = transaction;
        self.last = self.last.max(begun.last);
        if begun.named {
            // With the point that follows.
            self.point = None;
        }
        Ok(())
    }

    fn is_before(&self) -> bool {
        matches!(self.target, Some(Target::BeforeGtid(_)))
    }

    fn stop(&mut self, met: bool) {
        if let Some(end) = self.point.clone() {
            self.found = Some(Found {
                end,
                transactions: self.transactions,
                last: self.last,
                ends: self.ends.clone(),
                met,
            });
        }
    }

    fn between(&mut self, file: &str, position: u64, gtids: Option<&Gtids>) -> Result<(), Astray> {
        let Some(gtids) = gtids else { return Ok(()) };
        if self.found.is_some() {
            return Ok(());
        }
        if let Some((wanted, backup)) = &self.base {
            if position > *wanted {
                return Err(Astray::NoPoint {
                    file: file.to_owned(),
                    position: *wanted,
                });
            }
            if position == *wanted {
                if let Some(backup) = backup {
                    is_of(backup, gtids)?;
                    self.held = Some(backup.clone()).filter(|held| matches!(held, Gtids::Mysql(_)));
                }
                self.base = None;
            }
        }
        let met = self.point.is_none() && self.transactions > 0;
        self.point = Some(Point {
            file: file.to_owned(),
            position,
            gtids: gtids.clone(),
            segment: self.ends.len().saturating_sub(1),
        });
        if std::mem::take(&mut self.counts)
            && let Some(end) = self.ends.last_mut()
        {
            *end = Some(position);
        }
        if met && matches!(self.target, Some(Target::Gtid(_))) {
            self.stop(true);
        }
        self.reached(file, position, gtids)
    }

    /// Stops where the later backup was made, if that is the target.
    fn reached(&mut self, file: &str, position: u64, gtids: &Gtids) -> Result<(), Astray> {
        let Some(Target::Backup(later)) = self.target.as_ref().filter(|_| self.ends_here) else {
            return Ok(());
        };
        let Base {
            position: wanted,
            gtids: backup,
            ..
        } = later.as_ref();
        if position < *wanted {
            return Ok(());
        }
        if position > *wanted {
            return Err(Astray::NoPoint {
                file: file.to_owned(),
                position: *wanted,
            });
        }
        if let Some(backup) = backup {
            is_of(backup, gtids)?;
        }
        self.stop(true);
        Ok(())
    }

    /// Ends a segment.
    ///
    /// # Errors
    /// It is not what was stored, or the backup's moment is not in it.
    pub fn end(&mut self, reading: Reading<'_>) -> Result<(), Astray> {
        let segment = reading.segment;
        reading.end()?;
        self.begun = None;
        match &self.base {
            Some((position, _)) => Err(Astray::NoPoint {
                file: segment.file.clone(),
                position: *position,
            }),
            None => Ok(()),
        }
    }

    /// What was found; where no target was met, the end of what came. `None` where nothing came.
    #[must_use]
    pub fn finish(mut self) -> Option<Found> {
        if self.found.is_none() {
            self.stop(false);
        }
        self.found
    }
}

impl Begun {
    fn see(&mut self, time: u32, target: Option<&Target>, check: &Check) {
        self.last = self.last.max(time);
        match target {
            Some(Target::Moment(moment)) => self.late |= time >= *moment,
            Some(Target::Gtid(gtid) | Target::BeforeGtid(gtid)) => {
                self.named |= check.begun() == Some(gtid);
            }
            Some(Target::Backup(_) | Target::Latest) | None => {}
        }
    }
}

impl<'a> Reading<'a> {
    /// Begins one that is to be no more than what was stored.
    ///
    /// # Errors
    /// What it says of its file is not understood.
    pub fn new(segment: &'a Segment) -> Result<Self, Astray> {
        Ok(Self {
            segment,
            check: Check::of(segment)?,
            parts: Parts::default(),
            hash: Sha256::new(),
            magic: if segment.from == 0 { 0 } else { MAGIC.len() },
            bytes: 0,
        })
    }

    /// Takes the next bytes; says how each event ends.
    ///
    /// # Errors
    /// They are not those of a log.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        ended: &mut dyn FnMut(&Check, Ended),
    ) -> Result<(), Astray> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        let (magic, rest) = bytes.split_at((MAGIC.len() - self.magic).min(bytes.len()));
        if magic != &MAGIC[self.magic..self.magic + magic.len()] {
            return Err(self.altered("it does not begin as a binary log"));
        }
        self.magic += magic.len();
        let check = &mut self.check;
        self.parts.feed(rest, &mut |part, last| {
            if let Some(how) = check.part(part, last)?.ended {
                ended(check, how);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn altered(&self, why: &str) -> Astray {
        let Segment { file, from, to, .. } = self.segment;
        Astray::Altered(format!("{file} from {from} to {to}"), why.to_owned())
    }

    /// All has come.
    ///
    /// # Errors
    /// It is not what was stored.
    pub fn end(self) -> Result<(), Astray> {
        let (segment, check) = (self.segment, &self.check);
        if self.bytes != segment.to - segment.from {
            let why = format!(
                "it has {} bytes instead of {}",
                self.bytes,
                segment.to - segment.from
            );
            return Err(self.altered(&why));
        }
        if hex(&self.hash.clone().finalize()) != segment.sha256 {
            return Err(self.altered("its SHA-256 is not that of its manifest"));
        }
        let anchor: Anchor = check.last();
        if !self.parts.is_between()
            || check.position() != segment.to
            || check.created() != segment.created
            || anchor != segment.last_event
            || check.gtids() != Some(&segment.after)
        {
            return Err(self.altered("it does not end as its manifest says"));
        }
        Ok(())
    }
}

/// The log's transactions up to a backup's position are the backup's.
fn is_of(backup: &Gtids, log: &Gtids) -> Result<(), Astray> {
    // MySQL's server may hold more than its log ever had.
    let fits = match backup {
        Gtids::Mysql(_) => backup.covers(log),
        Gtids::Mariadb(_) => log.is_at(backup),
    };
    if fits {
        return Ok(());
    }
    Err(Astray::OtherGtids {
        log: short(log),
        backup: short(backup),
    })
}

/// Text of a set for people.
fn short(gtids: &Gtids) -> String {
    let text = gtids.to_string();
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None if text.is_empty() => "no GTID".to_owned(),
        None => text,
    }
}

/// What is to stand before bytes from the middle of a segment's file, so that the family's own program reads them; `None` where
/// the segment does not say it.
#[must_use]
pub fn head(segment: &Segment) -> Option<Vec<u8>> {
    let mut head = MAGIC.to_vec();
    head.extend(crate::segment::unhex(&segment.description).filter(|d| !d.is_empty())?);
    Some(head)
}
