//! The events of a server's binary log, as they lie in its files.

use crate::answer;
use crate::error::Error;
use crate::session::Session;

/// Where reading begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// At a position of a file; the first event of each file is at 4.
    Position(String, u32),
    /// Behind what was said in `@slave_connect_state` (MariaDB).
    ConnectState,
    /// Behind these transactions, in the protocol's encoding of a GTID set (MySQL, COM_BINLOG_DUMP_GTID).
    Gtids(Vec<u8>),
}

/// The server ends at the end of its log (BINLOG_DUMP_NON_BLOCK).
const NON_BLOCK: u16 = 1;
/// MariaDB sends its annotations of rows too; without them positions have holes (BINLOG_SEND_ANNOTATE_ROWS_EVENT).
const ANNOTATE: u16 = 2;
/// Gtids stand in place of a file (BINLOG_THROUGH_GTID).
const THROUGH_GTID: u16 = 4;

/// Events, one after the other.
#[derive(Debug)]
pub struct Binlog<'a> {
    session: &'a mut Session,
    done: bool,
    /// An event has begun and not ended, read by parts.
    within: bool,
}

/// Bytes of an event, and whether it ends with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The bytes; the first of an event hold its header.
    pub bytes: &'a [u8],
    /// True if the event ends with them.
    pub last: bool,
}

impl<'a> Binlog<'a> {
    pub(crate) fn begin(
        session: &'a mut Session,
        mariadb: bool,
        from: &From,
        server_id: u32,
        follow: bool,
    ) -> Result<Self, Error> {
        let mut flags = if mariadb { ANNOTATE } else { 0 };
        if !follow {
            flags |= NON_BLOCK;
        }
        let mut body = Vec::new();
        let command = match from {
            From::Position(..) | From::ConnectState => {
                let (file, position) = match from {
                    From::Position(file, position) => (file.as_str(), *position),
                    _ => ("", 4),
                };
                body.extend_from_slice(&position.to_le_bytes());
                body.extend_from_slice(&flags.to_le_bytes());
                body.extend_from_slice(&server_id.to_le_bytes());
                body.extend_from_slice(file.as_bytes());
                0x12
            }
            From::Gtids(set) => {
                let length = u32::try_from(set.len())
                    .map_err(|_| Error::Malformed("a set of GTIDs is too long"))?;
                body.extend_from_slice(&(flags | THROUGH_GTID).to_le_bytes());
                body.extend_from_slice(&server_id.to_le_bytes());
                body.extend_from_slice(&0u32.to_le_bytes());
                body.extend_from_slice(&4u64.to_le_bytes());
                body.extend_from_slice(&length.to_le_bytes());
                body.extend_from_slice(set);
                0x1e
            }
        };
        session.send(command, &body)?;
        session.unread = true;
        Ok(Self {
            session,
            done: false,
            within: false,
        })
    }

    /// The next event with its header, and its checksum where the server writes one; `None` at the end of the log.
    ///
    /// # Errors
    /// The server refuses, such as what it has purged; the connection is lost.
    pub fn read(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.done {
            return Ok(None);
        }
        let packet = self.session.packets.read()?;
        match self.session.packets.get(packet.clone()).first() {
            Some(0x00) => Ok(self.session.packets.get(packet).get(1..)),
            Some(0xfe) => {
                self.done = true;
                self.session.unread = false;
                Ok(None)
            }
            Some(0xff) => {
                self.done = true;
                self.session.unread = false;
                Err(answer::refusal(self.session.packets.get(packet)))
            }
            _ => Err(Error::Malformed("an event of another form")),
        }
    }
    /// As [`Binlog::read`], in parts of some 256 KiB: memory does not grow with the event. An event is read by one of both.
    ///
    /// # Errors
    /// As [`Binlog::read`].
    pub fn part(&mut self) -> Result<Option<Part<'_>>, Error> {
        if self.done {
            return Ok(None);
        }
        let (range, last) = self.session.packets.part()?;
        let begins = !std::mem::replace(&mut self.within, !last);
        let bytes = self.session.packets.get(range);
        if !begins {
            return Ok(Some(Part { bytes, last }));
        }
        match bytes.first() {
            Some(0x00) => Ok(Some(Part {
                bytes: bytes.get(1..).unwrap_or_default(),
                last,
            })),
            Some(0xfe) => {
                self.done = true;
                self.session.unread = false;
                Ok(None)
            }
            Some(0xff) => {
                self.done = true;
                self.session.unread = false;
                Err(answer::refusal(bytes))
            }
            _ => Err(Error::Malformed("an event of another form")),
        }
    }
}
