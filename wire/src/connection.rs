//! A connection to a server, and what it is told to do.

use std::io::Read;

use crate::answer::Done;
use crate::binlog::{Binlog, From};
use crate::error::Error;
use crate::greeting::Greeting;
use crate::infile;
use crate::login;
use crate::packet::Packets;
use crate::rows::Rows;
use crate::session::{QUERY, Session};
use crate::settings::Settings;
use crate::stream::Stream;

/// A connection that is logged in.
#[derive(Debug)]
pub struct Connection {
    session: Session,
    greeting: Greeting,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server can't be reached, TLS fails, or the login does.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        let limits = &settings.limits;
        let (stop, pulse) = (settings.stop.clone(), settings.pulse.clone());
        let stream = Stream::open(&settings.address, limits, stop, pulse)?;
        Self::over(stream, settings)
    }

    /// Logs in over a stream.
    pub(crate) fn over(stream: Stream, settings: &Settings) -> Result<Self, Error> {
        let mut packets = Packets::new(stream, login::PACKET);
        let greeting = login::login(&mut packets, settings)?;
        packets.stream.idle(settings.limits.idle);
        packets.limit(settings.limits.packet);
        let deprecates_eof = greeting
            .capabilities
            .has(crate::greeting::Capabilities::DEPRECATE_EOF);
        Ok(Self {
            session: Session::new(packets, deprecates_eof),
            greeting,
        })
    }

    /// What the server said of itself.
    #[must_use]
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// True if nobody on the way can read what is said.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.session.packets.stream.secure
    }

    /// Runs a statement that may give rows.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub fn query(&mut self, statement: &str) -> Result<Rows<'_>, Error> {
        let first = self.session.command(QUERY, statement.as_bytes())?;
        Rows::begin(&mut self.session, first)
    }

    /// Runs a statement whose rows, if it gives any, are of no interest; the results of all that it calls too.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub fn execute(&mut self, statement: &str) -> Result<Done, Error> {
        self.execute_bytes(statement.as_bytes())
    }

    /// The same of a statement that need not be UTF-8.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute_bytes(&mut self, statement: &[u8]) -> Result<Done, Error> {
        let first = self.session.command(QUERY, statement)?;
        let mut done = Rows::begin(&mut self.session, first)?.finish()?;
        while done.more {
            let first = self.session.packets.read()?;
            done = Rows::begin(&mut self.session, first)?.finish()?;
        }
        Ok(done)
    }

    /// Sends a statement and does not wait for its answer: [`Connection::answer`] does. Several connections begin at the
    /// same moment so.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn begin(&mut self, statement: &str) -> Result<(), Error> {
        self.session.send(QUERY, statement.as_bytes())?;
        self.session.unread = true;
        Ok(())
    }

    /// The answer to what [`Connection::begin`] sent.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub fn answer(&mut self) -> Result<Rows<'_>, Error> {
        let first = self.session.packets.read()?;
        self.session.unread = false;
        Rows::begin(&mut self.session, first)
    }

    /// Runs `LOAD DATA LOCAL INFILE 'stream' …` with all that `source` gives. No file is ever read, whatever the server asks
    /// for. Where the source fails, the connection is of no use any more, and the server takes the statement back.
    ///
    /// # Errors
    /// The server refuses, the source can't be read, or the connection is lost.
    pub fn load(&mut self, statement: &str, source: impl Read) -> Result<Done, Error> {
        infile::load(&mut self.session, statement, source)
    }

    /// Reads the server's binary log, as the replica of this number, which no other may bear. `follow` stays and waits for
    /// more; else it ends with the log.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub fn binlog(
        &mut self,
        from: &From,
        server_id: u32,
        follow: bool,
    ) -> Result<Binlog<'_>, Error> {
        let mariadb = self.greeting.is_mariadb();
        Binlog::begin(&mut self.session, mariadb, from, server_id, follow)
    }
}
