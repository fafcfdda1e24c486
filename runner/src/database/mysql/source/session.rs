//! A connection of our own to the server of a source: what it is asked, no client is asked.

use std::path::Path;
use std::sync::Arc;

use crds::parts::TlsMode;
use crds::report::Reason;
use rustls::pki_types::ServerName;
use wire::{Address, Connection, Error, Settings, Tls};

use crate::database::mysql::source::errors::of_session;
use crate::failure::Failure;
use crate::process::Parent;
use crate::scrub::without_rows;
use crate::settings::Source;
use crate::trust::{Verify, client_config};

/// More rows of an answer are not kept.
const ROWS: usize = 1_000_000;
/// No name that a server is asked for is near it.
const PACKET: usize = 64 << 20;

/// A connection that is logged in, and whose server it is.
pub(super) struct Session<'a> {
    connection: Connection,
    source: &'a Source,
    of: &'a dyn Parent,
}

/// A row: text as the server wrote it; NULL is empty.
pub(super) type TextRow = Vec<String>;

impl<'a> Session<'a> {
    /// Logs in, with TLS as the source demands it.
    ///
    /// # Errors
    /// The server can't be reached or refuses.
    pub(super) fn open(source: &'a Source, of: &'a dyn Parent) -> Result<Self, Failure> {
        let mut settings = settings(source, of)?;
        settings.limits.packet = PACKET;
        let open = || {
            let mut connection = Connection::open(&settings)?;
            connection.execute("SET NAMES utf8mb4")?;
            Ok(connection)
        };
        let connection = open().map_err(|e| scrubbed(of_session(&e, source), of))?;
        Ok(Self {
            connection,
            source,
            of,
        })
    }

    /// True if TLS is on.
    pub(super) fn is_secure(&self) -> bool {
        self.connection.is_secure()
    }

    /// Asks; what the server refuses is an answer too, any other end is a failure.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn ask(
        &mut self,
        sql: &str,
    ) -> Result<Result<Vec<TextRow>, wire::ServerError>, Failure> {
        match self.rows(sql) {
            Ok(rows) => Ok(Ok(rows)),
            Err(Error::Server(e)) if !super::errors::is_lost(e.number.into()) => Ok(Err(*e)),
            Err(e) => Err(scrubbed(of_session(&e, self.source), self.of)),
        }
    }

    /// Asks what any server answers.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub(super) fn demand(&mut self, sql: &str) -> Result<Vec<TextRow>, Failure> {
        let answer = self.rows(sql);
        answer.map_err(|e| scrubbed(of_session(&e, self.source), self.of))
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<TextRow>, Error> {
        let mut rows = self.connection.query(sql)?;
        let columns = rows.columns().len();
        let mut all = vec![];
        while let Some(mut row) = rows.read()? {
            if all.len() == ROWS {
                return Err(Error::Malformed("an answer has no end"));
            }
            let mut values = Vec::with_capacity(columns);
            for _ in 0..columns {
                let value = row.value()?.unwrap_or_default();
                values.push(String::from_utf8_lossy(value).into_owned());
            }
            all.push(values);
        }
        Ok(all)
    }
}

/// How a connection to the server of a source is made, with TLS as it demands; the run's end ends its waits.
///
/// # Errors
/// TLS can't be set up.
pub(crate) fn settings(source: &Source, of: &dyn Parent) -> Result<Settings, Failure> {
    let address = match &source.socket {
        Some(socket) => Address::Socket(Path::new(socket).to_owned()),
        None => Address::Tcp(source.host.clone(), source.port),
    };
    let mut settings = Settings::new(address, &source.username, source.password.clone());
    settings.tls = tls(source)?;
    settings.limits.idle = of.cancel().idle();
    settings.stop = of.cancel().stop();
    Ok(settings)
}

/// Without secrets and without rows.
pub(crate) fn scrubbed(e: Failure, of: &dyn Parent) -> Failure {
    Failure {
        message: without_rows(&of.scrub().clean(&e.message)),
        ..e
    }
}

fn tls(source: &Source) -> Result<Option<Tls>, Failure> {
    let verify = match source.tls {
        TlsMode::Disabled => return Ok(None),
        // A socket is of this machine.
        _ if source.socket.is_some() => return Ok(None),
        TlsMode::Preferred | TlsMode::Required => Verify::Nothing,
        TlsMode::VerifyCA => Verify::Issuer,
        TlsMode::VerifyIdentity => Verify::Host,
    };
    let failed = |e: &dyn std::fmt::Display| {
        Failure::new(
            Reason::TlsFailed,
            format!("TLS can't be set up ({e}): check spec.source.tls"),
        )
    };
    let config = client_config(verify, source.ca_file.as_deref()).map_err(|e| failed(&e))?;
    Ok(Some(Tls {
        config: Arc::new(config),
        name: ServerName::try_from(source.host.clone()).map_err(|e| failed(&e))?,
        required: source.tls != TlsMode::Preferred,
    }))
}
