//! Events, as far as order, positions, times and transactions need them. Numbers and layouts are those of MySQL's
//! libs/mysql/binlog/event and of MariaDB's sql/log_event.h.

use crate::fault::Fault;
use crate::fields::Fields;
use crate::gtid::{Gtid, Gtids, Origin, Set, State};

/// Bytes of an event's header.
pub const HEADER: usize = 19;
/// What a file begins with, before its first event.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];
/// Bytes of a checksum.
pub(crate) const SUM: usize = 4;
/// Lists of GTIDs are taken up to this size.
const LIST: usize = 16 << 20;
/// The event was made up for who reads (LOG_EVENT_ARTIFICIAL_F).
const ARTIFICIAL: u16 = 0x20;

/// An event's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970, of when its statement began.
    pub time: u32,
    /// Its type.
    pub kind: u8,
    /// The number of the server that wrote it first.
    pub server_id: u32,
    /// Bytes, header and checksum among them.
    pub size: u32,
    /// The low 32 bits of where it ends in its file; 0 where it is of none.
    pub ends: u32,
    /// Its flags.
    pub flags: u16,
}

impl Header {
    /// Reads the header of an event.
    ///
    /// # Errors
    /// There are not so many bytes, or it says it is shorter than its header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(bytes);
        let header = Self {
            time: fields.u32()?,
            kind: fields.u8()?,
            server_id: fields.u32()?,
            size: fields.u32()?,
            ends: fields.u32()?,
            flags: fields.u16()?,
        };
        if (header.size as usize) < HEADER {
            return Err(Fault::Format("an event is shorter than its header"));
        }
        Ok(header)
    }

    /// True if it lies in no file: made up for who reads, or the description of a file that is read from its middle.
    #[must_use]
    pub fn is_artificial(&self) -> bool {
        self.flags & ARTIFICIAL != 0
            || (self.ends == 0 && matches!(self.kind, kind::FORMAT | kind::ROTATE))
            || matches!(self.kind, kind::HEARTBEAT | kind::HEARTBEAT_2)
    }
}

/// Types of events.
pub mod kind {
    /// A statement.
    pub const QUERY: u8 = 2;
    /// The server was shut down.
    pub const STOP: u8 = 3;
    /// Another file follows.
    pub const ROTATE: u8 = 4;
    /// A value of AUTO_INCREMENT for the statement that follows.
    pub const INTVAR: u8 = 5;
    /// A seed for the statement that follows.
    pub const RAND: u8 = 13;
    /// A variable for the statement that follows.
    pub const USER_VAR: u8 = 14;
    /// The first of a file.
    pub const FORMAT: u8 = 15;
    /// The end of a transaction.
    pub const XID: u8 = 16;
    /// The table that rows are of.
    pub const TABLE_MAP: u8 = 19;
    /// Rows of MariaDB.
    pub const ROWS_1: std::ops::RangeInclusive<u8> = 23..=25;
    /// Events are missing.
    pub const INCIDENT: u8 = 26;
    /// Nothing happened.
    pub const HEARTBEAT: u8 = 27;
    /// The statement that made the rows that follow, of MySQL.
    pub const ROWS_QUERY: u8 = 29;
    /// Rows of MySQL.
    pub const ROWS_2: std::ops::RangeInclusive<u8> = 30..=32;
    /// A transaction of MySQL begins.
    pub const GTID: u8 = 33;
    /// The same without a name.
    pub const ANONYMOUS_GTID: u8 = 34;
    /// What earlier files hold, of MySQL.
    pub const PREVIOUS_GTIDS: u8 = 35;
    /// What a transaction of a group read and wrote.
    pub const TRANSACTION_CONTEXT: u8 = 36;
    /// A group has other members.
    pub const VIEW_CHANGE: u8 = 37;
    /// The first half of a transaction in two.
    pub const XA_PREPARE: u8 = 38;
    /// Rows of MySQL of which parts of JSON values are given.
    pub const PARTIAL_ROWS: u8 = 39;
    /// A transaction, compressed.
    pub const PAYLOAD: u8 = 40;
    /// Nothing happened.
    pub const HEARTBEAT_2: u8 = 41;
    /// A transaction of MySQL begins, whose GTID has a tag.
    pub const TAGGED_GTID: u8 = 42;
    /// The statement that made the rows that follow, of MariaDB.
    pub const MARIADB_ANNOTATE: u8 = 160;
    /// Which file a crashed server begins with.
    pub const MARIADB_CHECKPOINT: u8 = 161;
    /// A transaction of MariaDB begins.
    pub const MARIADB_GTID: u8 = 162;
    /// What earlier files hold, of MariaDB.
    pub const MARIADB_GTID_LIST: u8 = 163;
    /// The file is encrypted from here on.
    pub const MARIADB_ENCRYPTION: u8 = 164;
    /// A statement, compressed.
    pub const MARIADB_QUERY: u8 = 165;
    /// Rows of MariaDB, compressed.
    pub const MARIADB_ROWS: std::ops::RangeInclusive<u8> = 166..=171;
}

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MySQL, and what is made of it.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// What a file says of itself in its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Whose file it is.
    pub family: Family,
    /// The server's version.
    pub version: String,
    /// True if each event ends with its CRC32.
    pub checksums: bool,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By what its first statement says (MySQL).
    Unknown,
    /// With its first statement, such as DDL.
    Single,
    /// With XID, COMMIT, ROLLBACK or XA PREPARE.
    Many,
}

/// What an event means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The first of a file.
    Description(Description),
    /// Another file follows.
    Rotate {
        /// Its name.
        file: String,
        /// Where reading goes on in it.
        position: u64,
    },
    /// The server was shut down.
    Stop,
    /// What the files before this one hold.
    Before(Gtids),
    /// A transaction begins; without a name where gtid_mode is off.
    Begin(Option<Gtid>, Form),
    /// A statement.
    Statement(Statement),
    /// The transaction ends, whatever its form.
    End,
    /// Rows; true if their statement ends with them.
    Rows(bool),
    /// The server says that events are missing.
    Incident,
    /// The file is encrypted from here on.
    Encryption,
    /// Of no transaction, and without meaning here.
    Checkpoint,
    /// Nothing that matters here.
    Other,
}

/// What a statement means for the transaction it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// BEGIN or XA START.
    Begins,
    /// COMMIT or ROLLBACK, not to a savepoint.
    Ends,
    /// Any other.
    Plain,
}

/// How many bytes behind the header [`parse`] reads of an event of this type, at most.
#[must_use]
pub fn head(kind: u8) -> usize {
    match kind {
        kind::FORMAT | kind::ROTATE | kind::TAGGED_GTID => 1024,
        // Lengths, the status variables, the database, the first words.
        kind::QUERY => 13 + (1 << 16) + 256 + 16,
        kind::PREVIOUS_GTIDS | kind::MARIADB_GTID_LIST => LIST,
        _ => 64,
    }
}

/// Reads an event: `body` is what stands between its header and its checksum, its first [`head`] bytes at least. `length` is
/// that of the whole body.
///
/// # Errors
/// It is none that a server writes, or is larger than is taken.
pub fn parse(header: &Header, body: &[u8], length: usize) -> Result<Event, Fault> {
    let mut fields = Fields(body);
    let whole = |fields: &mut Fields<'_>| {
        if fields.0.len() < length {
            return Err(Fault::TooLarge {
                size: header.size,
                limit: head(header.kind),
            });
        }
        Ok(())
    };
    Ok(match header.kind {
        kind::FORMAT => {
            whole(&mut fields)?;
            description(fields)?
        }
        kind::ROTATE => {
            whole(&mut fields)?;
            let position = fields.u64()?;
            Event::Rotate {
                file: name(fields.0)?,
                position,
            }
        }
        kind::STOP => Event::Stop,
        kind::PREVIOUS_GTIDS => {
            whole(&mut fields)?;
            Event::Before(Gtids::Mysql(Set::decode(fields.0)?))
        }
        kind::MARIADB_GTID_LIST => {
            whole(&mut fields)?;
            Event::Before(Gtids::Mariadb(State::decode(fields.0)?))
        }
        kind::GTID => {
            fields.u8()?;
            let origin = Origin {
                uuid: fields.array()?,
                tag: String::new(),
            };
            Event::Begin(Some(numbered(origin, fields.u64()?)?), Form::Unknown)
        }
        kind::TAGGED_GTID => Event::Begin(Some(tagged(fields)?), Form::Unknown),
        kind::ANONYMOUS_GTID => Event::Begin(None, Form::Unknown),
        kind::MARIADB_GTID => {
            let (number, domain, flags) = (fields.u64()?, fields.u32()?, fields.u8()?);
            // FL_STANDALONE.
            let form = if flags & 1 != 0 {
                Form::Single
            } else {
                Form::Many
            };
            let gtid = Gtid::Mariadb(domain, header.server_id, number);
            Event::Begin(Some(gtid), form)
        }
        kind::QUERY => Event::Statement(statement(fields, length)?),
        // Only long texts are compressed, and those that begin and end transactions are short.
        kind::MARIADB_QUERY => Event::Statement(Statement::Plain),
        kind::XID | kind::XA_PREPARE | kind::PAYLOAD => Event::End,
        k if kind::ROWS_1.contains(&k)
            || kind::ROWS_2.contains(&k)
            || kind::MARIADB_ROWS.contains(&k) =>
        {
            fields.take(6)?;
            // STMT_END_F.
            Event::Rows(fields.u16()? & 1 != 0)
        }
        kind::INCIDENT => Event::Incident,
        kind::MARIADB_ENCRYPTION => Event::Encryption,
        kind::MARIADB_CHECKPOINT => Event::Checkpoint,
        _ => Event::Other,
    })
}

fn description(mut fields: Fields<'_>) -> Result<Event, Fault> {
    if fields.u16()? != 4 {
        return Err(Fault::Format("a log of before MySQL 5.0"));
    }
    let version = fields.take(50)?;
    let version = version.split(|b| *b == 0).next().unwrap_or_default();
    fields.u32()?;
    if usize::from(fields.u8()?) != HEADER {
        return Err(Fault::Format("headers of another length"));
    }
    // One length for each type of event that the server knows, then the checksum's algorithm.
    let Some((algorithm, lengths)) = fields.0.split_last() else {
        return Err(Fault::Short);
    };
    // MariaDB knows types that no MySQL has.
    let family = if lengths.len() >= usize::from(kind::MARIADB_GTID_LIST) {
        Family::Mariadb
    } else {
        Family::Mysql
    };
    Ok(Event::Description(Description {
        family,
        version: String::from_utf8_lossy(version).into_owned(),
        checksums: match algorithm {
            0 => false,
            1 => true,
            _ => return Err(Fault::Format("checksums of an unknown kind")),
        },
    }))
}

/// The name of a file of a log: nothing that leads elsewhere.
fn name(bytes: &[u8]) -> Result<String, Fault> {
    let bad = Fault::Format("a file's name is none");
    let name = std::str::from_utf8(bytes).map_err(|_| bad.clone())?;
    let plain = name.bytes().all(|b| b > b' ' && b != b'/' && b != 0x7f);
    if !plain || name.is_empty() || name.len() > 255 || name.starts_with('.') {
        return Err(bad);
    }
    Ok(name.to_owned())
}

fn numbered(origin: Origin, number: u64) -> Result<Gtid, Fault> {
    if number == 0 || number >= 1 << 63 {
        return Err(Fault::Format("a GTID's number is none"));
    }
    Ok(Gtid::Mysql(origin, number))
}

/// Reads the first fields of GTID_TAGGED_LOG_EVENT: version, size, the last field that can't be ignored; then, each behind
/// its number: flags, UUID, number, tag.
fn tagged(mut fields: Fields<'_>) -> Result<Gtid, Fault> {
    const FORM: Fault = Fault::Format("a tagged GTID of another format");
    for _ in 0..3 {
        fields.integer()?;
    }
    let at = |wanted: u64, fields: &mut Fields<'_>| {
        if fields.integer()? == wanted {
            Ok(())
        } else {
            Err(FORM)
        }
    };
    at(0, &mut fields)?;
    fields.integer()?;
    at(1, &mut fields)?;
    let mut origin = Origin::default();
    for byte in &mut origin.uuid {
        *byte = u8::try_from(fields.integer()?).map_err(|_| FORM)?;
    }
    at(2, &mut fields)?;
    // The sign is the lowest bit.
    let number = fields.integer()?;
    if number & 1 != 0 {
        return Err(FORM);
    }
    at(3, &mut fields)?;
    let length = usize::try_from(fields.integer()?).map_err(|_| FORM)?;
    let tag = fields.take(length)?;
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_';
    if tag.len() > 32 || !tag.iter().all(plain) {
        return Err(FORM);
    }
    origin.tag = String::from_utf8_lossy(tag).into_owned();
    numbered(origin, number >> 1)
}

/// What a QUERY_EVENT says, by its first words.
fn statement(mut fields: Fields<'_>, length: usize) -> Result<Statement, Fault> {
    // Thread, seconds.
    fields.take(8)?;
    let database = usize::from(fields.u8()?);
    fields.u16()?;
    let status = usize::from(fields.u16()?);
    fields.take(status)?;
    // The name ends with a zero.
    fields.take(database + 1)?;
    let text = length.saturating_sub(13 + status + database + 1);
    let is = |words: &str| text == words.len() && fields.0.get(..text) == Some(words.as_bytes());
    let begins = |words: &str| fields.0.starts_with(words.as_bytes());
    Ok(if is("BEGIN") || begins("XA START") {
        Statement::Begins
    } else if is("COMMIT") || is("ROLLBACK") {
        Statement::Ends
    } else {
        Statement::Plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Whatever a server sends is read or refused.
        #[test]
        fn no_bytes_panic(kind in proptest::num::u8::ANY, bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), more in 0_usize..1000) {
            let mut header = [0; HEADER];
            header[4] = kind;
            header[9] = 100;
            let header = Header::parse(&header).unwrap();
            let _ = parse(&header, &bytes, bytes.len() + more);
            let _ = Header::parse(&bytes);
        }

        #[test]
        fn a_tagged_gtid_is_read_or_refused(bytes in proptest::collection::vec(0_u8..8, 0..80)) {
            let _ = tagged(Fields(&bytes));
        }
    }
}
