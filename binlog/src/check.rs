//! Checks a log event by event: each whole, unaltered, at its place, and each file where the one before it ended.

use crate::event::{self, Event, Family, Form, HEADER, Header, SUM, Statement, kind};
use crate::fault::{Break, Fault};
use crate::gtid::{Gtid, Gtids};
use crate::segment::{Anchor, Segment, is_successor, unhex};

/// Where checking begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The file.
    pub file: String,
    /// What was stored of it last; `None` begins the file. Reading begins with that event, which is compared and is no part
    /// of what follows.
    pub stored: Option<Stored>,
    /// Which transactions the log holds there; `None` where nothing is known, at the beginning of a file alone.
    pub gtids: Option<Gtids>,
    /// When the last transaction before it ended, where that is known ([`crate::Segment::ended`]).
    pub ended: Option<u32>,
}

/// What was stored of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// When the file was begun.
    pub created: u32,
    /// The last event.
    pub last: Anchor,
}

impl Start {
    /// Where the server is asked to begin.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.stored.map_or(BEGIN, |stored| stored.last.position)
    }
}

/// Bytes of the event that describes a file, at most.
const DESCRIPTION: usize = 4096;
/// Where the first event of a file begins.
const BEGIN: u64 = event::MAGIC.len() as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The description of the file comes.
    Description,
    /// The list of what the files before hold comes.
    Before,
    /// Transactions come.
    Body,
    /// The file has ended.
    Closed,
}

/// What a part of an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its bytes are those of the file, behind what was stored.
    pub own: bool,
    /// How the event ends, if it does.
    pub ended: Option<Ended>,
}

/// Where a log is after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// In a transaction, or at the beginning of a file.
    Within,
    /// Between transactions.
    Between {
        /// One has ended with this event.
        transaction: bool,
        /// The server says that events are missing.
        incident: bool,
    },
    /// At the end of the file: [`Check::next_file`] names the one that follows and goes on in it.
    File,
    /// Where it was: the event is of no file.
    Nowhere,
}

/// Checks events as they come.
#[derive(Debug)]
pub struct Check {
    file: String,
    /// Where the last event of the file ended.
    position: u64,
    stage: Stage,
    family: Option<Family>,
    created: u32,
    /// The event that describes the file.
    description: Vec<u8>,
    /// What was stored last, until it has been compared.
    stored: Option<Stored>,
    gtids: Option<Gtids>,
    transaction: Option<(Option<Gtid>, Form)>,
    /// The server said that events are missing, since the last point between transactions.
    incident: bool,
    last: Anchor,
    time: u32,
    /// The file that the last event names.
    rotates: Option<String>,
    /// The file that follows, once the server has gone over to it.
    follows: Option<String>,
    current: Option<Current>,
}

/// An event that has not come to its end.
#[derive(Debug)]
struct Current {
    header: Header,
    own: bool,
    got: u64,
    crc: crc32fast::Hasher,
    sum: [u8; SUM],
    head: Vec<u8>,
    /// All of it, where it describes a file.
    raw: Vec<u8>,
}

impl Check {
    /// Begins there.
    #[must_use]
    pub fn new(start: Start) -> Self {
        Self {
            position: start.position(),
            file: start.file,
            stage: Stage::Description,
            family: None,
            created: 0,
            description: Vec::new(),
            stored: start.stored,
            gtids: start.gtids,
            transaction: None,
            incident: false,
            last: Anchor {
                position: 0,
                sum: 0,
            },
            time: 0,
            rotates: None,
            follows: None,
            current: None,
        }
    }

    /// Begins at the beginning of a stored segment, whose bytes are to come again.
    ///
    /// # Errors
    /// What it says of its file is not understood.
    pub fn of(segment: &Segment) -> Result<Self, Break> {
        let file = segment.file.clone();
        let mut check = Self::new(Start {
            file,
            stored: None,
            gtids: (segment.from > 0).then(|| segment.before.clone()),
            ended: None,
        });
        let describe = |check: &mut Self| {
            let raw = unhex(&segment.description).unwrap_or_default();
            let header = Header::parse(&raw)?;
            let body = raw.get(HEADER..raw.len().saturating_sub(SUM));
            let body = body.unwrap_or_default();
            check.describe(&header, event::parse(&header, body, body.len())?)?;
            check.description = raw;
            Ok(())
        };
        if segment.from > 0 {
            describe(&mut check).map_err(|fault| check.broken(fault))?;
            check.stage = Stage::Body;
            check.position = segment.from;
            check.created = segment.created;
        }
        Ok(check)
    }

    /// The event that describes the file, as the server sent it.
    #[must_use]
    pub fn description(&self) -> &[u8] {
        &self.description
    }

    /// The name of the transaction that has begun, where it has one.
    #[must_use]
    pub fn begun(&self) -> Option<&Gtid> {
        self.transaction
            .as_ref()
            .and_then(|(gtid, _)| gtid.as_ref())
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the last event ended.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// When the file was begun.
    #[must_use]
    pub fn created(&self) -> u32 {
        self.created
    }

    /// The last event of the file that came to its end.
    #[must_use]
    pub fn last(&self) -> Anchor {
        self.last
    }

    /// The time of the last event, in seconds since 1970; 0 where it has none.
    #[must_use]
    pub fn time(&self) -> u32 {
        self.time
    }

    /// Which transactions the log holds, up to the last that has ended.
    #[must_use]
    pub fn gtids(&self) -> Option<&Gtids> {
        self.gtids.as_ref()
    }

    /// True once what was stored last has been found again.
    #[must_use]
    pub fn is_recognised(&self) -> bool {
        self.stored.is_none()
    }

    /// The file that follows, after [`Ended::File`].
    #[must_use]
    pub fn follows(&self) -> Option<&str> {
        self.follows.as_deref()
    }

    /// Goes on in the file that follows.
    pub fn next_file(&mut self) {
        if let Some(next) = self.follows.take() {
            self.file = next;
            self.position = BEGIN;
            self.stage = Stage::Description;
            // A server that died within a transaction never committed it.
            self.transaction = None;
            self.rotates = None;
            self.created = 0;
        }
    }

    fn broken(&self, fault: Fault) -> Break {
        Break {
            file: self.file.clone(),
            position: self.position,
            fault,
        }
    }

    /// Takes a part of an event, the last of it where `last`; the first has at least the whole header.
    ///
    /// # Errors
    /// The log is not whole here. Nothing is to be taken any more.
    pub fn part(&mut self, bytes: &[u8], last: bool) -> Result<Step, Break> {
        self.take(bytes, last).map_err(|fault| self.broken(fault))
    }

    fn take(&mut self, bytes: &[u8], last: bool) -> Result<Step, Fault> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin(bytes)?,
        };
        let (header, whole) = (current.header, current.got == 0 && last);
        let size = u64::from(header.size);
        let got = current.got + bytes.len() as u64;
        if got > size || (last && got < size) {
            return Err(Fault::Length {
                said: header.size,
                found: got,
            });
        }
        // What the checksum is of, and the checksum.
        let hashed = (size - SUM as u64).saturating_sub(current.got);
        let hashed = usize::try_from(hashed)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        current.crc.update(&bytes[..hashed]);
        let rest = &bytes[hashed..];
        let place = SUM.saturating_sub(usize::try_from(size - got).unwrap_or(SUM) + rest.len());
        current.sum[place..place + rest.len()].copy_from_slice(rest);
        if !whole {
            let skipped = HEADER.saturating_sub(usize::try_from(current.got).unwrap_or(HEADER));
            let room = event::head(header.kind).saturating_sub(current.head.len());
            let more = &bytes[skipped.min(hashed)..hashed];
            current
                .head
                .extend_from_slice(&more[..more.len().min(room)]);
        }
        if header.kind == kind::FORMAT {
            if header.size as usize > DESCRIPTION {
                return Err(Fault::TooLarge {
                    size: header.size,
                    limit: DESCRIPTION,
                });
            }
            current.raw.extend_from_slice(bytes);
        }
        current.got = got;
        if !last {
            let own = current.own && self.stored.is_none();
            self.current = Some(current);
            return Ok(Step { own, ended: None });
        }
        let sum = u32::from_le_bytes(current.sum);
        let good = current.crc.finalize() == sum;
        let raw = std::mem::take(&mut current.raw);
        let body = if whole {
            bytes.get(HEADER..hashed).unwrap_or_default()
        } else {
            &current.head
        };
        let length = header.size as usize - HEADER - SUM;
        if !current.own {
            // The first that comes, before the file's description, may have no checksum.
            let body = match header.kind {
                kind::ROTATE if !good && whole => bytes.get(HEADER..).unwrap_or_default(),
                _ => body,
            };
            let length = if header.kind == kind::ROTATE && whole {
                body.len()
            } else {
                length
            };
            let step = self.artificial(&header, body, length, good)?;
            self.described(raw);
            return Ok(step);
        }
        if !good {
            return Err(Fault::Checksum);
        }
        let begins = self.position;
        let ends = begins + size;
        let placed = (ends & u64::from(u32::MAX)) == u64::from(header.ends);
        if !placed && !self.says_no_position(&header) {
            return Err(Fault::Position {
                ends,
                said: header.ends,
            });
        }
        let this = Anchor {
            position: begins,
            sum,
        };
        if let Some(stored) = self.stored {
            if self.stage != Stage::Body || stored.last != this {
                return Err(Fault::Replaced);
            }
            self.stored = None;
            self.step(this, ends, &header);
            // The file may have ended with it.
            match event::parse(&header, body, length)? {
                Event::Rotate { file, .. } => {
                    self.rotates = Some(file);
                    self.stage = Stage::Closed;
                }
                Event::Stop => self.stage = Stage::Closed,
                _ => {}
            }
            return Ok(Step {
                own: false,
                ended: Some(Ended::Nowhere),
            });
        }
        let ended = self.event(&header, event::parse(&header, body, length)?)?;
        if !placed && !matches!(ended, Ended::Within) {
            return Err(Fault::Position { ends, said: 0 });
        }
        self.step(this, ends, &header);
        self.described(raw);
        Ok(Step {
            own: true,
            ended: Some(ended),
        })
    }

    /// MariaDB writes the events of a transaction without their positions from 11.4 on: its first and its last have them, so
    /// that one that is missing is found at its end.
    fn says_no_position(&self, header: &Header) -> bool {
        header.ends == 0 && self.family == Some(Family::Mariadb) && self.transaction.is_some()
    }

    fn step(&mut self, last: Anchor, ends: u64, header: &Header) {
        self.last = last;
        self.position = ends;
        self.time = header.time;
    }

    fn described(&mut self, raw: Vec<u8>) {
        if !raw.is_empty() {
            self.description = raw;
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Result<Current, Fault> {
        let header = Header::parse(bytes)?;
        if (header.size as usize) < HEADER + SUM {
            return Err(Fault::Short);
        }
        if header.kind == kind::MARIADB_ENCRYPTION {
            return Err(Fault::Encrypted);
        }
        Ok(Current {
            own: !header.is_artificial(),
            header,
            got: 0,
            crc: crc32fast::Hasher::new(),
            sum: [0; SUM],
            head: Vec::new(),
            raw: Vec::new(),
        })
    }

    /// An event that lies in no file.
    fn artificial(
        &mut self,
        header: &Header,
        body: &[u8],
        length: usize,
        good: bool,
    ) -> Result<Step, Fault> {
        let nowhere = Ok(Step {
            own: false,
            ended: Some(Ended::Nowhere),
        });
        match header.kind {
            kind::ROTATE => {
                let Event::Rotate { file, .. } = event::parse(header, body, length)? else {
                    return nowhere;
                };
                if file == self.file {
                    return nowhere;
                }
                if !good && self.family.is_some() {
                    return Err(Fault::Checksum);
                }
                let wanted = self.rotates.as_deref();
                if wanted.map_or(!is_successor(&self.file, &file), |wanted| wanted != file) {
                    return Err(Fault::Successor {
                        wanted: wanted.unwrap_or("the next number").to_owned(),
                        found: file,
                    });
                }
                if self.stored.is_some() {
                    return Err(Fault::Replaced);
                }
                self.follows = Some(file);
                Ok(Step {
                    own: false,
                    ended: Some(Ended::File),
                })
            }
            kind::FORMAT => {
                if !good {
                    return Err(Fault::Checksum);
                }
                // Of a file that is read from its middle.
                let Some(stored) = self.stored else {
                    return Err(Fault::Beginning("its description is not the file's own"));
                };
                if header.time != stored.created {
                    return Err(Fault::Replaced);
                }
                self.describe(header, event::parse(header, body, length)?)?;
                self.stage = Stage::Body;
                nowhere
            }
            _ => nowhere,
        }
    }

    fn describe(&mut self, header: &Header, event: Event) -> Result<(), Fault> {
        let Event::Description(said) = event else {
            return Err(Fault::Beginning("its description does not come first"));
        };
        if !said.checksums {
            return Err(Fault::NoChecksum);
        }
        let other = match &self.gtids {
            Some(Gtids::Mysql(_)) => said.family != Family::Mysql,
            Some(Gtids::Mariadb(_)) => said.family != Family::Mariadb,
            None => false,
        };
        if other {
            return Err(Fault::Beginning("it is of the other family"));
        }
        self.family = Some(said.family);
        self.created = header.time;
        Ok(())
    }

    /// An event of the file.
    fn event(&mut self, header: &Header, event: Event) -> Result<Ended, Fault> {
        match self.stage {
            Stage::Description => {
                if self.position != BEGIN {
                    return Err(Fault::Beginning("its description does not come first"));
                }
                self.describe(header, event)?;
                self.stage = Stage::Before;
                return Ok(Ended::Within);
            }
            Stage::Before => {
                let Event::Before(begins) = event else {
                    return Err(Fault::Beginning("the list of GTIDs before it is not there"));
                };
                if let Some(ended) = &self.gtids
                    && !begins.follows(ended)
                {
                    return Err(Fault::Gtids {
                        begins: short(&begins),
                        ended: short(ended),
                    });
                }
                self.gtids = Some(begins);
                self.stage = Stage::Body;
                return Ok(self.between(false));
            }
            Stage::Closed => return Err(Fault::Format("events stand behind a file's end")),
            Stage::Body => {}
        }
        match event {
            Event::Begin(gtid, form) => {
                if self.transaction.is_some() {
                    return Err(Fault::Nested);
                }
                self.transaction = Some((gtid, form));
                return Ok(Ended::Within);
            }
            Event::Rotate { file, .. } => {
                self.rotates = Some(file);
                return Ok(self.close());
            }
            Event::Stop => return Ok(self.close()),
            Event::Description(_) | Event::Before(_) => {
                return Err(Fault::Format("what begins a file stands within it"));
            }
            _ => {}
        }
        self.incident |= event == Event::Incident;
        let Some((_, form)) = &mut self.transaction else {
            return match event {
                Event::Checkpoint | Event::Other | Event::Incident => Ok(self.between(false)),
                _ => Err(Fault::Outside(header.kind)),
            };
        };
        let ends = match (&event, *form) {
            (Event::Statement(Statement::Begins), Form::Unknown) => {
                *form = Form::Many;
                false
            }
            (Event::Statement(_), Form::Unknown | Form::Single)
            | (Event::Statement(Statement::Ends), Form::Many)
            | (Event::Incident, Form::Unknown | Form::Single)
            | (Event::Rows(true), Form::Single)
            | (Event::End, _) => true,
            _ => false,
        };
        if !ends {
            return Ok(Ended::Within);
        }
        if let (Some((Some(gtid), _)), Some(gtids)) = (self.transaction.take(), &mut self.gtids) {
            gtids.add(&gtid)?;
        }
        Ok(self.between(true))
    }

    fn between(&mut self, transaction: bool) -> Ended {
        Ended::Between {
            transaction,
            incident: std::mem::take(&mut self.incident),
        }
    }

    /// The last event of a file. A transaction that it cuts off never was.
    fn close(&mut self) -> Ended {
        self.stage = Stage::Closed;
        self.transaction = None;
        self.between(false)
    }
}

/// Text of a set for people.
fn short(gtids: &Gtids) -> String {
    let mut text = gtids.to_string();
    if let Some((end, _)) = text.char_indices().nth(300) {
        text.truncate(end);
        text.push('…');
    }
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        text
    }
}
