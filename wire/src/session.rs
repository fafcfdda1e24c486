//! Commands and the packets that answer them, and whether an answer has been read to its end.

use std::ops::Range;

use crate::answer::Done;
use crate::error::Error;
use crate::packet::Packets;

/// COM_QUERY.
pub(crate) const QUERY: u8 = 3;
/// COM_QUIT.
const QUIT: u8 = 1;

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) packets: Packets,
    /// Nothing stands between columns and rows.
    pub(crate) deprecates_eof: bool,
    /// Something of an earlier command is still to come.
    pub(crate) unread: bool,
}

impl Session {
    pub(crate) fn new(packets: Packets, deprecates_eof: bool) -> Self {
        Self {
            packets,
            deprecates_eof,
            unread: false,
        }
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: u8, body: &[u8]) -> Result<(), Error> {
        if self.unread {
            return Err(Error::Unread);
        }
        self.packets.restart();
        let mut packet = Vec::with_capacity(body.len() + 1);
        packet.push(command);
        packet.extend_from_slice(body);
        self.packets.write(&packet)
    }

    /// Sends a command and reads the first packet of its answer.
    pub(crate) fn command(&mut self, command: u8, body: &[u8]) -> Result<Range<usize>, Error> {
        self.send(command, body)?;
        self.packets.read()
    }

    /// The server asks for a file of this machine: it gets an empty one, or it would wait, and the connection is not used
    /// again.
    pub(crate) fn refuse_file(&mut self) -> Error {
        self.unread = true;
        match self.packets.write(&[]) {
            Ok(()) => Error::Malformed("the server asks for a file of this machine"),
            Err(e) => e,
        }
    }

    /// A result has ended; another may follow.
    pub(crate) fn ended(&mut self, done: &Done) {
        self.unread = done.more;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Without it the server counts a connection that was cut. It does not answer.
        if !self.unread {
            self.packets.restart();
            let _ = self.packets.write(&[QUIT]);
        }
    }
}
