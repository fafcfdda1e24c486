//! Of a verified log the events that are wanted: rows by the table that they name, statements by what they change. What is left
//! gives the family's own program whole statements and whole transactions; what can't be decided is refused. PURE: bytes come
//! from the caller and go where it says.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use binlog::event::{self, Event, Form, HEADER, Header, MAGIC, kind};
use flate2::Crc;

/// Bytes of a checksum.
const SUM: usize = 4;
/// An event that has to be looked at as a whole is taken up to this size.
const LARGEST: usize = 64 << 20;
/// Of an event of rows: table, flags.
const ROWS_HEAD: usize = 8;
/// The statement ends with these rows (STMT_END_F).
const STATEMENT_ENDS: u8 = 1;
/// Who does not know the event may pass it over (LOG_EVENT_IGNORABLE_F).
const IGNORABLE: u16 = 0x80;

/// Of a GTID of MariaDB: a transaction in two, its first half and its second (FL_PREPARED_XA, FL_COMPLETED_XA).
const PREPARED: u8 = 64;
const COMPLETED: u8 = 128;

/// What is done with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatementOutcome {
    /// It is of the transaction.
    Transaction,
    /// It is replayed.
    Kept,
    /// It is left out.
    Left,
    /// Nobody can tell, and why.
    Refused(String),
}

/// Who decides.
pub(super) trait Wanted {
    /// True if rows of this table are replayed.
    fn takes(&self, database: &str, table: &str) -> bool;

    /// What is done with a statement that was given while `database` was the current one.
    fn statement(&self, database: &str, text: &[u8], sql_mode: u64) -> StatementOutcome;
}

/// Why it went no further.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// Nobody reads any more.
    #[error("{0}")]
    Output(#[from] io::Error),
    /// It can't be decided.
    #[error("{0}")]
    Refused(String),
}

/// What was left out, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Transactions of which something is replayed.
    pub(super) kept: u64,
    /// Events of rows that are left out.
    pub(super) rows: u64,
    /// Statements that are left out.
    pub(super) statements: u64,
}

/// One file of a log, from its first event on.
pub(super) struct Filter<'a> {
    wanted: &'a dyn Wanted,
    file: String,
    outer: Splitter,
    inner: Option<Box<Payload>>,
    core: Core,
}

/// Events that come one after the other.
struct Core {
    checksums: bool,
    magic: usize,
    /// The transaction that came last.
    gtid: String,
    /// Where the event ends that came last; its low 32 bits.
    at: u32,
    /// The transaction ends with an event of its own, not with its first statement.
    is_many: bool,
    /// What stands at its beginning, until something of it is kept.
    opening: Option<Vec<u8>>,
    /// Tables of the statement that comes, and whether they are wanted.
    tables: HashMap<u64, bool>,
    /// Those of them that are wanted, until there are rows of one.
    maps: Vec<u8>,
    /// Rows of the statement have been given.
    given: bool,
    /// An event of rows that may be the last of its statement.
    held: Option<(Header, Vec<u8>)>,
    /// Values for the statement that comes.
    values: Vec<u8>,
    counts: Counts,
    /// Where the last transaction ends that is given, and the last event; their low 32 bits.
    ends: (u32, u32),
}

/// Bytes as parts of events.
#[derive(Default)]
struct Splitter {
    head: Vec<u8>,
    event: Option<Open>,
}

/// An event that is being read.
struct Open {
    header: Header,
    /// What of its body is looked at.
    body: Vec<u8>,
    /// The sum of what has gone of it.
    gone: Crc,
    /// Bytes of its body that are to come, and behind them of its checksum.
    left: usize,
    sum: usize,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is looked at as a whole.
    Whole,
    /// Its beginning says what is done with it.
    Rows,
    /// It goes as it comes.
    Passes,
    /// It is left out.
    Left,
    /// It holds events.
    Payload,
}

/// The events of a compressed transaction.
struct Payload {
    fields: Vec<u8>,
    begun: Option<Decoder>,
    splitter: Splitter,
    ends: u32,
}

enum Decoder {
    Plain,
    Zstd(Box<zstd::stream::raw::Decoder<'static>>),
}

impl<'a> Filter<'a> {
    /// Of a file of this name.
    pub(super) fn new(wanted: &'a dyn Wanted, file: &str) -> Self {
        Self {
            wanted,
            file: file.to_owned(),
            outer: Splitter::default(),
            inner: None,
            core: Core {
                checksums: true,
                magic: 0,
                gtid: String::new(),
                at: 0,
                is_many: false,
                opening: None,
                tables: HashMap::new(),
                maps: vec![],
                given: false,
                held: None,
                values: vec![],
                counts: Counts::default(),
                ends: (0, 0),
            },
        }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// Something can't be decided, or nobody reads any more.
    pub(super) fn feed(&mut self, mut bytes: &[u8], out: &mut dyn Write) -> Result<(), Stop> {
        let magic = (MAGIC.len() - self.core.magic).min(bytes.len());
        out.write_all(&bytes[..magic])?;
        self.core.magic += magic;
        bytes = &bytes[magic..];
        let mut outer = std::mem::take(&mut self.outer);
        let fed = outer.feed(bytes, self.core.checksums, &mut |piece, checksums| {
            let fed = self.piece(piece, out);
            *checksums = self.core.checksums;
            fed
        });
        self.outer = outer;
        fed.map_err(|stop| self.located(stop))
    }

    fn located(&self, stop: Stop) -> Stop {
        let Stop::Refused(why) = stop else {
            return stop;
        };
        let of = match self.core.gtid.as_str() {
            "" => String::new(),
            gtid => format!("transaction GTID {gtid} "),
        };
        Stop::Refused(format!("{of}in {} near {}: {why}", self.file, self.core.at))
    }

    fn piece(&mut self, piece: Piece<'_>, out: &mut dyn Write) -> Result<Way, Stop> {
        match piece {
            Piece::Begins(open) if open.header.kind == kind::PAYLOAD => {
                self.inner = Some(Box::new(Payload {
                    fields: vec![],
                    begun: None,
                    splitter: Splitter::default(),
                    ends: open.header.ends,
                }));
                Ok(Way::Payload)
            }
            Piece::Part(open, bytes) if open.way == Way::Payload => {
                let Some(mut payload) = self.inner.take() else {
                    return Ok(Way::Payload);
                };
                let fed = payload.feed(bytes, self.wanted, &mut self.core, out);
                self.inner = Some(payload);
                fed.map(|()| Way::Payload)
            }
            Piece::Ends(open) if open.way == Way::Payload => {
                let whole = self.inner.take().is_none_or(|p| p.splitter.is_between());
                if !whole {
                    return Err(refused("a compressed transaction ends within an event"));
                }
                Ok(Way::Payload)
            }
            other => self.core.piece(other, self.wanted, out),
        }
    }

    /// What was left out so far.
    pub(super) fn counts(&self) -> Counts {
        self.core.counts
    }

    /// Where the last transaction ends that was given, and the last event; their low 32 bits. `None` where none was.
    pub(super) fn ends(&self) -> Option<(u32, u32)> {
        Some(self.core.ends).filter(|(transaction, _)| *transaction > 0)
    }
}

fn refused(why: &str) -> Stop {
    Stop::Refused(why.to_owned())
}

/// A part of an event.
enum Piece<'p> {
    /// It begins: says how it goes on.
    Begins(&'p mut Open),
    /// Bytes of its body.
    Part(&'p mut Open, &'p [u8]),
    /// All of it has come.
    Ends(&'p mut Open),
}

/// Takes a piece, says which way its event goes, and whether events that follow have checksums.
type Take<'t> = dyn FnMut(Piece<'_>, &mut bool) -> Result<Way, Stop> + 't;

impl Splitter {
    fn feed(
        &mut self,
        mut bytes: &[u8],
        mut checksums: bool,
        take: &mut Take<'_>,
    ) -> Result<(), Stop> {
        while !bytes.is_empty() || self.event.as_ref().is_some_and(Open::is_whole) {
            let Some(open) = &mut self.event else {
                let (now, rest) = bytes.split_at((HEADER - self.head.len()).min(bytes.len()));
                self.head.extend_from_slice(now);
                bytes = rest;
                let Ok(raw) = <[u8; HEADER]>::try_from(self.head.as_slice()) else {
                    continue;
                };
                self.head.clear();
                let header = Header::parse(&raw).map_err(|e| Stop::Refused(e.to_string()))?;
                // A description of a file has one in any case.
                let sum = match checksums || header.kind == kind::FORMAT {
                    true => SUM,
                    false => 0,
                };
                let left = (header.size as usize).checked_sub(HEADER + sum);
                let mut open = Open {
                    header,
                    body: vec![],
                    gone: Crc::new(),
                    left: left.ok_or_else(|| refused("an event is shorter than its checksum"))?,
                    sum,
                    way: Way::Whole,
                };
                let way = take(Piece::Begins(&mut open), &mut checksums)?;
                open.way = way;
                self.event = Some(open);
                continue;
            };
            if open.left > 0 {
                let (now, rest) = bytes.split_at(open.left.min(bytes.len()));
                open.left -= now.len();
                bytes = rest;
                let way = take(Piece::Part(&mut *open, now), &mut checksums)?;
                open.way = way;
                if open.left > 0 {
                    continue;
                }
            }
            let now = open.sum.min(bytes.len());
            open.sum -= now;
            bytes = &bytes[now..];
            if open.is_whole() {
                take(Piece::Ends(&mut *open), &mut checksums)?;
                self.event = None;
            }
        }
        Ok(())
    }

    fn is_between(&self) -> bool {
        self.head.is_empty() && self.event.is_none()
    }
}

impl Open {
    fn is_whole(&self) -> bool {
        self.left == 0 && self.sum == 0
    }
}

impl Payload {
    /// Takes bytes of the event: first fields, each with type, length and value, then events.
    fn feed(
        &mut self,
        bytes: &[u8],
        wanted: &dyn Wanted,
        core: &mut Core,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let Some(decoder) = &mut self.begun else {
            self.fields.extend_from_slice(bytes);
            let Some((compression, at)) = fields(&self.fields)? else {
                return match self.fields.len() < 1024 {
                    true => Ok(()),
                    false => Err(refused("a compressed transaction of another format")),
                };
            };
            self.begun = Some(match compression {
                0 => {
                    let decoder = zstd::stream::raw::Decoder::new()
                        .map_err(|e| Stop::Refused(format!("zstd can't be had: {e}")))?;
                    Decoder::Zstd(Box::new(decoder))
                }
                255 => Decoder::Plain,
                _ => return Err(refused("a transaction is compressed in an unknown way")),
            });
            let rest = self.fields.split_off(at);
            return self.feed(&rest, wanted, core, out);
        };
        let ends = self.ends;
        let splitter = &mut self.splitter;
        let mut events = |bytes: &[u8]| {
            splitter.feed(bytes, false, &mut |mut piece, _| {
                if let Piece::Begins(open) = &mut piece {
                    // They lie in no file of their own.
                    open.header.ends = ends;
                    if open.header.kind == kind::PAYLOAD || open.header.kind == kind::FORMAT {
                        return Err(refused("a compressed transaction holds what it can't"));
                    }
                }
                core.piece(piece, wanted, out)
            })
        };
        match decoder {
            Decoder::Plain => events(bytes),
            Decoder::Zstd(decoder) => {
                use zstd::stream::raw::{InBuffer, Operation as _, OutBuffer};
                let mut plain = vec![0; 128 << 10];
                let mut input = InBuffer::around(bytes);
                loop {
                    let mut output = OutBuffer::around(&mut plain[..]);
                    let before = input.pos();
                    decoder.run(&mut input, &mut output).map_err(|e| {
                        Stop::Refused(format!("a transaction can't be decompressed: {e}"))
                    })?;
                    let made = output.pos();
                    events(&plain[..made])?;
                    if input.pos() == bytes.len() && made < plain.len() {
                        return Ok(());
                    }
                    if made == 0 && input.pos() == before {
                        return Err(refused("a compressed transaction does not end"));
                    }
                }
            }
        }
    }
}

/// The compression that fields say, and where they end; `None` if not all are there.
fn fields(bytes: &[u8]) -> Result<Option<(u64, usize)>, Stop> {
    let (mut at, mut compression) = (0, 255);
    loop {
        let Some((field, next)) = number(bytes, at)? else {
            return Ok(None);
        };
        if field == 0 {
            return Ok(Some((compression, next)));
        }
        let Some((length, next)) = number(bytes, next)? else {
            return Ok(None);
        };
        let end = usize::try_from(length)
            .ok()
            .filter(|length| *length <= 9)
            .map(|length| next + length)
            .ok_or_else(|| refused("a compressed transaction of another format"))?;
        if bytes.len() < end {
            return Ok(None);
        }
        // Its compression.
        if field == 2 {
            let Some((found, _)) = number(bytes, next)? else {
                return Ok(None);
            };
            compression = found;
        }
        at = end;
    }
}

/// A number as MySQL packs it, and where it ends.
fn number(bytes: &[u8], at: usize) -> Result<Option<(u64, usize)>, Stop> {
    let Some(first) = bytes.get(at) else {
        return Ok(None);
    };
    let length = match first {
        0..=250 => return Ok(Some((u64::from(*first), at + 1))),
        252 => 2,
        253 => 3,
        254 => 8,
        _ => return Err(refused("a number of another format")),
    };
    let Some(found) = bytes.get(at + 1..at + 1 + length) else {
        return Ok(None);
    };
    let mut whole = [0; 8];
    whole[..length].copy_from_slice(found);
    Ok(Some((u64::from_le_bytes(whole), at + 1 + length)))
}

fn is_rows(kind: u8) -> bool {
    kind::ROWS_1.contains(&kind)
        || kind::ROWS_2.contains(&kind)
        || kind::MARIADB_ROWS.contains(&kind)
        || kind == kind::PARTIAL_ROWS
}

/// A header as it stands in a file.
fn raw(header: &Header, length: usize, sum: usize) -> Result<[u8; HEADER], Stop> {
    let size = u32::try_from(HEADER + length + sum)
        .map_err(|_| refused("an event is larger than events can be"))?;
    let mut raw = [0; HEADER];
    raw[..4].copy_from_slice(&header.time.to_le_bytes());
    raw[4] = header.kind;
    raw[5..9].copy_from_slice(&header.server_id.to_le_bytes());
    raw[9..13].copy_from_slice(&size.to_le_bytes());
    raw[13..17].copy_from_slice(&header.ends.to_le_bytes());
    raw[17..].copy_from_slice(&header.flags.to_le_bytes());
    Ok(raw)
}

impl Core {
    fn piece(
        &mut self,
        piece: Piece<'_>,
        wanted: &dyn Wanted,
        out: &mut dyn Write,
    ) -> Result<Way, Stop> {
        match piece {
            Piece::Begins(open) => {
                if open.header.ends > 0 {
                    self.at = open.header.ends;
                }
                if is_rows(open.header.kind) {
                    return match open.left < ROWS_HEAD {
                        true => Err(refused("an event of rows is too short")),
                        false => Ok(Way::Rows),
                    };
                }
                self.look(open)
            }
            Piece::Part(open, bytes) => self.part(open, bytes, out),
            Piece::Ends(open) => {
                match open.way {
                    Way::Whole => self.whole(open, wanted, out)?,
                    Way::Passes => {
                        if self.checksums {
                            out.write_all(&open.gone.sum().to_le_bytes())?;
                        }
                        self.rows_ended(&open.body);
                    }
                    Way::Left if is_rows(open.header.kind) => self.rows_left(open, out)?,
                    Way::Rows | Way::Left | Way::Payload => {}
                }
                Ok(open.way)
            }
        }
    }

    /// One that is looked at as a whole.
    fn look(&self, open: &Open) -> Result<Way, Stop> {
        let length = open.left + open.body.len();
        if length > LARGEST {
            return Err(Stop::Refused(format!(
                "an event of {length} bytes is larger than is looked at"
            )));
        }
        Ok(Way::Whole)
    }

    fn part(&mut self, open: &mut Open, bytes: &[u8], out: &mut dyn Write) -> Result<Way, Stop> {
        match open.way {
            Way::Left | Way::Payload => {}
            Way::Passes => {
                open.gone.update(bytes);
                out.write_all(bytes)?;
            }
            Way::Whole => open.body.extend_from_slice(bytes),
            Way::Rows => {
                open.body.extend_from_slice(bytes);
                if open.body.len() >= ROWS_HEAD {
                    return self.rows(open, out);
                }
            }
        }
        Ok(open.way)
    }

    /// The beginning of rows: which table they are of.
    fn rows(&mut self, open: &mut Open, out: &mut dyn Write) -> Result<Way, Stop> {
        self.values.clear();
        match self.tables.get(&table_id(&open.body)) {
            None => Err(refused("rows of a table that no event before them names")),
            Some(false) => Ok(Way::Left),
            // The last of its statement may be another's.
            Some(true) if self.tables.values().any(|wanted| !wanted) => self.look(open),
            Some(true) => {
                self.open(out)?;
                self.release(out)?;
                self.give_maps(out)?;
                let length = open.left + open.body.len();
                let sum = if self.checksums { SUM } else { 0 };
                let raw = raw(&open.header, length, sum)?;
                open.gone.update(&raw);
                open.gone.update(&open.body);
                out.write_all(&raw)?;
                out.write_all(&open.body)?;
                self.given = true;
                self.note(&open.header);
                Ok(Way::Passes)
            }
        }
    }

    /// Rows were given: their tables are known until the statement ends.
    fn rows_ended(&mut self, body: &[u8]) {
        if body.get(6).is_some_and(|flags| flags & STATEMENT_ENDS != 0) {
            self.statement_ended();
        }
    }

    fn statement_ended(&mut self) {
        self.tables.clear();
        self.maps.clear();
        self.given = false;
    }

    /// Rows were left out: where they were the last of their statement, those before them are it now.
    fn rows_left(&mut self, open: &Open, out: &mut dyn Write) -> Result<(), Stop> {
        self.counts.rows += 1;
        if open
            .body
            .get(6)
            .is_none_or(|flags| flags & STATEMENT_ENDS == 0)
        {
            return Ok(());
        }
        match &mut self.held {
            Some((_, body)) => body[6] |= STATEMENT_ENDS,
            None if self.given => {
                return Err(refused("a statement names a table behind rows of another"));
            }
            None => {}
        }
        self.release(out)?;
        self.statement_ended();
        Ok(())
    }

    /// Gives the rows that were held back.
    fn release(&mut self, out: &mut dyn Write) -> Result<(), Stop> {
        let Some((header, body)) = self.held.take() else {
            return Ok(());
        };
        self.give(&header, &body, out)
    }

    fn give_maps(&mut self, out: &mut dyn Write) -> Result<(), Stop> {
        out.write_all(&std::mem::take(&mut self.maps))?;
        Ok(())
    }

    /// Something of the transaction is kept: its beginning is given.
    fn open(&mut self, out: &mut dyn Write) -> Result<(), Stop> {
        if let Some(opening) = self.opening.take() {
            self.counts.kept += 1;
            out.write_all(&opening)?;
        }
        Ok(())
    }

    /// Gives an event.
    fn give(&mut self, header: &Header, body: &[u8], out: &mut dyn Write) -> Result<(), Stop> {
        out.write_all(&self.bytes(header, body)?)?;
        self.note(header);
        Ok(())
    }

    fn note(&mut self, header: &Header) {
        if header.ends > 0 {
            self.ends.1 = header.ends;
        }
    }

    /// The same, which ends a transaction.
    fn give_end(&mut self, header: &Header, body: &[u8], out: &mut dyn Write) -> Result<(), Stop> {
        self.give(header, body, out)?;
        self.ends.0 = self.ends.1;
        Ok(())
    }

    /// An event as it stands in a file.
    fn bytes(&self, header: &Header, body: &[u8]) -> Result<Vec<u8>, Stop> {
        let sums = self.checksums || header.kind == kind::FORMAT;
        let raw = raw(header, body.len(), if sums { SUM } else { 0 })?;
        let mut bytes = raw.to_vec();
        bytes.extend_from_slice(body);
        if sums {
            let mut sum = Crc::new();
            sum.update(&bytes);
            bytes.extend_from_slice(&sum.sum().to_le_bytes());
        }
        Ok(bytes)
    }

    fn whole(
        &mut self,
        open: &mut Open,
        wanted: &dyn Wanted,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let header = open.header;
        let body = std::mem::take(&mut open.body);
        let bad = |e: binlog::Fault| Stop::Refused(e.to_string());
        match header.kind {
            kind::TABLE_MAP => {
                let (id, database, table) = table_map(&body)
                    .ok_or_else(|| refused("a table is named in another format"))?;
                let takes = wanted.takes(&database, &table);
                self.tables.insert(id, takes);
                if takes {
                    let bytes = self.bytes(&header, &body)?;
                    self.maps.extend_from_slice(&bytes);
                }
                Ok(())
            }
            k if is_rows(k) => {
                self.open(out)?;
                self.release(out)?;
                self.give_maps(out)?;
                self.given = true;
                if body[6] & STATEMENT_ENDS != 0 {
                    self.give(&header, &body, out)?;
                    self.statement_ended();
                } else {
                    self.held = Some((header, body));
                }
                Ok(())
            }
            kind::QUERY | kind::MARIADB_QUERY => {
                self.release(out)?;
                self.statement(&header, &body, wanted, out)
            }
            kind::INTVAR | kind::RAND | kind::USER_VAR => {
                let bytes = self.bytes(&header, &body)?;
                self.values.extend_from_slice(&bytes);
                Ok(())
            }
            // The texts of what follows as rows.
            kind::ROWS_QUERY | kind::MARIADB_ANNOTATE => Ok(()),
            kind::GTID | kind::ANONYMOUS_GTID | kind::TAGGED_GTID | kind::MARIADB_GTID => {
                let event = event::parse(&header, &body, body.len()).map_err(bad)?;
                if let Event::Begin(gtid, form) = event {
                    self.gtid = gtid.map(|gtid| gtid.to_string()).unwrap_or_default();
                    self.is_many = form == Form::Many;
                }
                self.values.clear();
                self.opening = Some(match header.kind {
                    kind::MARIADB_GTID => self.opening_of_mariadb(&header, &body)?,
                    _ => self.bytes(&header, &body)?,
                });
                if is_prepared(&header, &body) {
                    // Its other half comes later, and names it.
                    self.open(out)?;
                }
                Ok(())
            }
            kind::XID | kind::XA_PREPARE => {
                self.release(out)?;
                self.end(&header, &body, out)
            }
            kind::FORMAT => {
                let event = event::parse(&header, &body, body.len()).map_err(bad)?;
                if let Event::Description(found) = event {
                    self.checksums = found.checksums;
                }
                self.give(&header, &body, out)
            }
            kind::ROTATE
            | kind::STOP
            | kind::PREVIOUS_GTIDS
            | kind::MARIADB_GTID_LIST
            | kind::MARIADB_CHECKPOINT
            | kind::HEARTBEAT
            | kind::HEARTBEAT_2 => self.give(&header, &body, out),
            // They say nothing of any row.
            kind::TRANSACTION_CONTEXT | kind::VIEW_CHANGE => Ok(()),
            _ if header.flags & IGNORABLE != 0 => Ok(()),
            other => Err(Stop::Refused(format!(
                "an event of type {other}, of which nobody can tell what tables it changes: it is that of a statement, or of a server that is newer"
            ))),
        }
    }

    /// What begins a transaction of MariaDB. Its program makes statements of a GTID that give the target's log the number of the
    /// source's; into the source itself, or into one that numbers strictly, nothing could be replayed so.
    fn opening_of_mariadb(&self, header: &Header, body: &[u8]) -> Result<Vec<u8>, Stop> {
        // Thread, seconds, no database, no error, no variables; the name's end.
        const BEGIN: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0BEGIN";
        /// No USE before it (LOG_EVENT_SUPPRESS_USE_F).
        const WITHOUT_USE: u16 = 8;
        let flags = body.get(12).copied().unwrap_or_default();
        if flags & (PREPARED | COMPLETED) != 0 {
            return self.bytes(header, body);
        }
        if !self.is_many {
            return Ok(vec![]);
        }
        let begins = Header {
            kind: kind::QUERY,
            flags: WITHOUT_USE,
            ..*header
        };
        self.bytes(&begins, BEGIN)
    }

    /// The transaction ends.
    fn end(&mut self, header: &Header, body: &[u8], out: &mut dyn Write) -> Result<(), Stop> {
        self.is_many = false;
        // Nothing of it is wanted.
        if self.opening.take().is_some() {
            return Ok(());
        }
        self.give_end(header, body, out)
    }

    fn statement(
        &mut self,
        header: &Header,
        body: &[u8],
        wanted: &dyn Wanted,
        out: &mut dyn Write,
    ) -> Result<(), Stop> {
        let query = Query::read(body, header.kind == kind::MARIADB_QUERY)?;
        let values = std::mem::take(&mut self.values);
        let text = query.text.as_slice();
        match text {
            b"BEGIN" => {
                self.is_many = true;
                let bytes = self.bytes(header, body)?;
                return match &mut self.opening {
                    Some(opening) => {
                        opening.extend_from_slice(&bytes);
                        Ok(())
                    }
                    None => self.give(header, body, out),
                };
            }
            b"COMMIT" | b"ROLLBACK" => return self.end(header, body, out),
            _ => {}
        }
        match wanted.statement(&query.database, text, query.sql_mode) {
            StatementOutcome::Refused(why) => Err(Stop::Refused(format!("{why}: {}", shown(text)))),
            StatementOutcome::Left => {
                self.counts.statements += 1;
                Ok(())
            }
            StatementOutcome::Transaction => {
                // The halves of a transaction in two name each other.
                let is_xa = text
                    .get(..3)
                    .is_some_and(|b| b.eq_ignore_ascii_case(b"XA "));
                if is_xa {
                    self.open(out)?;
                    let begins = text
                        .get(..8)
                        .is_some_and(|b| b.eq_ignore_ascii_case(b"XA START"));
                    if begins {
                        self.is_many = true;
                    }
                }
                let bytes = self.bytes(header, body)?;
                if let Some(opening) = &mut self.opening {
                    opening.extend_from_slice(&bytes);
                    return Ok(());
                }
                if is_xa && !self.is_many {
                    return self.give_end(header, body, out);
                }
                self.give(header, body, out)
            }
            StatementOutcome::Kept => {
                self.open(out)?;
                out.write_all(&values)?;
                if self.is_many {
                    self.give(header, body, out)
                } else {
                    self.give_end(header, body, out)
                }
            }
        }
    }
}

/// The first half of a transaction in two, of MariaDB: the beginning itself says so.
fn is_prepared(header: &Header, body: &[u8]) -> bool {
    header.kind == kind::MARIADB_GTID && body.get(12).is_some_and(|flags| flags & PREPARED != 0)
}

/// The beginning of a statement, for people, without what may be a secret.
fn shown(text: &[u8]) -> String {
    const SHOWN: usize = 80;
    let masked = crate::database::mysql::sql::masked(&text[..text.len().min(4096)], 0);
    let text = String::from_utf8_lossy(&masked);
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into_owned(),
    }
}

fn table_id(body: &[u8]) -> u64 {
    let mut id = [0; 8];
    let length = body.len().min(6);
    id[..length].copy_from_slice(&body[..length]);
    u64::from_le_bytes(id)
}

/// Number, database and name of a table.
fn table_map(body: &[u8]) -> Option<(u64, String, String)> {
    let rest = body.get(8..)?;
    let (database, rest) = name(rest)?;
    let (table, _) = name(rest)?;
    Some((table_id(body), database, table))
}

/// A name behind its length, with a zero behind it.
fn name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    // Names of 64 characters have 256 bytes at most: more than one byte tells.
    let (length, rest) = match length {
        0..=250 => (usize::from(*length), rest),
        252 => (
            usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?)),
            rest.get(2..)?,
        ),
        _ => return None,
    };
    let name = std::str::from_utf8(rest.get(..length)?).ok()?;
    Some((name.to_owned(), rest.get(length + 1..)?))
}

/// What an event of a statement says.
struct Query {
    database: String,
    text: Vec<u8>,
    sql_mode: u64,
}

impl Query {
    fn read(body: &[u8], compressed: bool) -> Result<Self, Stop> {
        let read = || {
            let database = usize::from(*body.get(8)?);
            let status = usize::from(u16::from_le_bytes(body.get(11..13)?.try_into().ok()?));
            let variables = body.get(13..13 + status)?;
            let name = body.get(13 + status..13 + status + database)?;
            let text = body.get(13 + status + database + 1..)?;
            Some((variables, std::str::from_utf8(name).ok()?, text))
        };
        let (variables, database, text) =
            read().ok_or_else(|| refused("a statement in another format"))?;
        let (sql_mode, character_set) = status(variables);
        let plain = match compressed {
            false => text.to_vec(),
            true => inflated(text)?,
        };
        // In these a byte of a character may look like a sign.
        const UNSAFE: [u16; 15] = [1, 13, 24, 28, 84, 85, 87, 88, 86, 95, 96, 97, 248, 249, 250];
        if UNSAFE.contains(&character_set) && !plain.is_ascii() {
            return Err(refused(
                "a statement in big5, gbk, gb18030, sjis, cp932 or the like, which is not read here",
            ));
        }
        Ok(Self {
            database: database.to_owned(),
            text: plain,
            sql_mode,
        })
    }
}

/// The `sql_mode` and the client's character set among the variables of a statement.
fn status(mut bytes: &[u8]) -> (u64, u16) {
    let (mut sql_mode, mut character_set) = (0, 0);
    while let Some((code, rest)) = bytes.split_first() {
        let length = match code {
            // Flags, the step of AUTO_INCREMENT.
            0 | 3 => 4,
            1 => {
                let mode = rest.get(..8).and_then(|b| b.try_into().ok());
                sql_mode = mode.map_or(0, u64::from_le_bytes);
                8
            }
            4 => {
                let set = rest.get(..2).and_then(|b| b.try_into().ok());
                character_set = set.map_or(0, u16::from_le_bytes);
                6
            }
            // The zone, the catalog: behind their lengths.
            5 | 6 => 1 + rest.first().map_or(0, |length| usize::from(*length)),
            7 | 8 => 2,
            // What comes behind these is of no matter here.
            _ => break,
        };
        let Some(next) = rest.get(length..) else {
            break;
        };
        bytes = next;
    }
    (sql_mode, character_set)
}

/// A statement that MariaDB compressed.
fn inflated(bytes: &[u8]) -> Result<Vec<u8>, Stop> {
    let head = bytes.first().filter(|head| *head & 0xf0 == 0x80);
    let skipped = head.map(|head| 1 + usize::from(head & 7));
    let deflated = skipped
        .and_then(|at| bytes.get(at..))
        .ok_or_else(|| refused("a statement is compressed in an unknown way"))?;
    let mut text = vec![];
    let most = LARGEST as u64;
    flate2::read::ZlibDecoder::new(deflated)
        .take(most + 1)
        .read_to_end(&mut text)
        .map_err(|e| Stop::Refused(format!("a statement can't be decompressed: {e}")))?;
    if text.len() > LARGEST {
        return Err(refused("a statement is larger than is looked at"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    /// Files that real servers wrote.
    const FILES: [&[u8]; 3] = [
        include_bytes!("../../../../binlog/tests/fixtures/mariadb.000002"),
        include_bytes!("../../../../binlog/tests/fixtures/mariadb-11.000002"),
        include_bytes!("../../../../binlog/tests/fixtures/mysql.000002"),
    ];

    /// All, nothing, or tables whose name has an even number of letters.
    enum Choice {
        All,
        Nothing,
        Some,
    }

    impl Wanted for Choice {
        fn takes(&self, _database: &str, table: &str) -> bool {
            match self {
                Self::All => true,
                Self::Nothing => false,
                Self::Some => table.len().is_multiple_of(2),
            }
        }

        fn statement(&self, _database: &str, text: &[u8], _sql_mode: u64) -> StatementOutcome {
            if ["SAVEPOINT", "ROLLBACK", "XA"]
                .iter()
                .any(|w| text.starts_with(w.as_bytes()))
            {
                return StatementOutcome::Transaction;
            }
            match self {
                Self::All | Self::Some => StatementOutcome::Kept,
                Self::Nothing => StatementOutcome::Left,
            }
        }
    }

    fn filtered(
        file: &[u8],
        choice: &Choice,
        part: usize,
    ) -> (Vec<u8>, Counts, Option<(u32, u32)>) {
        let mut filter = Filter::new(choice, "bin.000002");
        let mut out = vec![];
        for bytes in file.chunks(part) {
            filter.feed(bytes, &mut out).unwrap();
        }
        assert!(filter.outer.is_between());
        (out, filter.counts(), filter.ends())
    }

    /// Events: type, body, and whether the checksum is right.
    fn events(mut file: &[u8]) -> Vec<(u8, Vec<u8>)> {
        assert_eq!(file[..4], MAGIC);
        file = &file[4..];
        let mut found = vec![];
        while !file.is_empty() {
            let header = Header::parse(file).unwrap();
            let (event, rest) = file.split_at(header.size as usize);
            let (whole, sum) = event.split_at(event.len() - 4);
            let mut crc = Crc::new();
            crc.update(whole);
            assert_eq!(crc.sum().to_le_bytes(), sum, "{header:?}");
            found.push((header.kind, whole[HEADER..].to_vec()));
            file = rest;
        }
        found
    }

    #[test]
    fn what_is_kept_is_whole_however_it_comes() {
        for file in FILES {
            let all = events(file);
            let texts = [kind::ROWS_QUERY, kind::MARIADB_ANNOTATE];
            for choice in [Choice::All, Choice::Nothing, Choice::Some] {
                let whole = filtered(file, &choice, file.len());
                for part in [1, 7, 4096] {
                    assert_eq!(filtered(file, &choice, part), whole);
                }
                let (bytes, counts, ends) = whole;
                let kept = events(&bytes);
                let count = |kinds: &dyn Fn(u8) -> bool, of: &[(u8, Vec<u8>)]| {
                    of.iter().filter(|(kind, _)| kinds(*kind)).count()
                };
                let compressed = count(&|k| k == kind::PAYLOAD, &all) > 0;
                match choice {
                    Choice::All if !compressed => {
                        // MariaDB's names of transactions become plain beginnings.
                        let same = |of: &[(u8, Vec<u8>)]| -> Vec<(u8, Vec<u8>)> {
                            let begins = |kind: u8, body: &[u8]| {
                                kind == kind::MARIADB_GTID
                                    || kind == kind::QUERY && body.ends_with(b"\0BEGIN")
                            };
                            of.iter()
                                .filter(|(k, body)| !texts.contains(k) && !begins(*k, body))
                                .cloned()
                                .collect()
                        };
                        assert_eq!(same(&kept), same(&all));
                        assert_eq!((counts.rows, counts.statements), (0, 0));
                    }
                    Choice::All => {
                        assert!(count(&is_rows, &kept) > count(&is_rows, &all));
                        assert_eq!(count(&|k| k == kind::PAYLOAD, &kept), 0);
                    }
                    Choice::Nothing => {
                        assert_eq!(count(&is_rows, &kept), 0);
                        assert_eq!(count(&|k| k == kind::TABLE_MAP || k == kind::XID, &kept), 0);
                        assert!(counts.rows > 0);
                    }
                    Choice::Some => {
                        assert!(ends.is_some() && counts.kept > 0);
                    }
                }
                // Each statement's rows end it.
                let mut open = false;
                for (kind, body) in &kept {
                    match *kind {
                        k if is_rows(k) => open = body[6] & STATEMENT_ENDS == 0,
                        kind::TABLE_MAP => {}
                        _ => assert!(!open, "a statement has no end"),
                    }
                }
            }
        }
    }

    fn event(kind: u8, body: &[u8]) -> Vec<u8> {
        let header = Header {
            time: 0,
            kind,
            server_id: 1,
            size: 0,
            ends: 100,
            flags: 0,
        };
        let mut bytes = raw(&header, body.len(), SUM).unwrap().to_vec();
        bytes.extend_from_slice(body);
        let mut sum = Crc::new();
        sum.update(&bytes);
        bytes.extend_from_slice(&sum.sum().to_le_bytes());
        bytes
    }

    fn map(id: u8, table: &str) -> Vec<u8> {
        let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0];
        body.push(u8::try_from(table.len()).unwrap());
        body.extend_from_slice(table.as_bytes());
        body.push(0);
        event(kind::TABLE_MAP, &body)
    }

    fn rows(id: u8, ends: u8, value: u8) -> Vec<u8> {
        event(30, &[id, 0, 0, 0, 0, 0, ends, 0, 2, 0, value])
    }

    /// Of a statement that changes two tables, the rows that are kept end it, wherever the others stand.
    #[test]
    fn a_statement_that_loses_its_last_rows_ends_with_those_before() {
        let gtid = event(kind::ANONYMOUS_GTID, &[0; 42]);
        let xid = event(kind::XID, &[0; 8]);
        for (order, wanted) in [
            (vec![(2, 0, 1), (2, 0, 2), (1, 1, 3)], vec![(0, 1), (1, 2)]),
            (vec![(1, 0, 1), (2, 1, 2)], vec![(1, 2)]),
            (vec![(1, 0, 1), (1, 1, 2)], vec![]),
            (vec![(2, 0, 1), (1, 0, 2), (2, 1, 3)], vec![(0, 1), (1, 3)]),
        ] {
            let mut file = MAGIC.to_vec();
            file.extend_from_slice(&gtid);
            file.extend(map(1, "odd"));
            file.extend(map(2, "even"));
            for (id, ends, value) in &order {
                file.extend(rows(*id, *ends, *value));
            }
            file.extend_from_slice(&xid);
            let (bytes, counts, _) = filtered(&file, &Choice::Some, 5);
            let found: Vec<(u8, u8)> = events(&bytes)
                .iter()
                .filter(|(k, _)| *k == 30)
                .map(|(_, body)| (body[6], body[10]))
                .collect();
            assert_eq!(found, wanted, "{order:?}");
            assert_eq!(counts.kept, u64::from(!wanted.is_empty()));
            // A transaction without anything is none.
            assert_eq!(events(&bytes).is_empty(), wanted.is_empty());
        }
        // Rows of what nobody named, and a table that is named too late.
        for parts in [
            vec![rows(9, 1, 1)],
            vec![map(2, "even"), rows(2, 0, 1), map(1, "odd"), rows(1, 1, 2)],
            vec![event(77, &[0; 4])],
            vec![event(9, &[0; 4])],
        ] {
            let mut file = MAGIC.to_vec();
            file.extend_from_slice(&gtid);
            parts.iter().for_each(|part| file.extend_from_slice(part));
            let mut filter = Filter::new(&Choice::Some, "bin.000002");
            let stop = filter.feed(&file, &mut io::sink());
            assert!(matches!(stop, Err(Stop::Refused(why)) if why.contains("bin.000002 near 100")));
        }
    }

    proptest::proptest! {
        /// Whatever stands in a file is given, left out or refused.
        #[test]
        fn no_bytes_panic(at in 4_usize..2000, with in proptest::num::u8::ANY, index in 0_usize..3) {
            let mut file = FILES[index].to_vec();
            let at = at % file.len();
            file[at] = with;
            let _ = Filter::new(&Choice::Some, "bin.000002").feed(&file, &mut io::sink());
        }
    }
}
