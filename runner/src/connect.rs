//! The way to a server: clients that run here, an option file on memory, TLS as demanded, and what
//! the server says of itself.

use std::path::PathBuf;

use crds::mysql_backup::TlsMode;

use crate::failure::Failure;
use crate::run::Context;
use crate::settings::Source;
use crate::source::{self, Client, Clients, Flavour, OptionFile, Server};

/// A server that was spoken to, where there is an SQL client to do so.
pub struct Connection {
    clients: Clients,
    scratch: PathBuf,
    tls: bool,
    /// What the server said; `None` without an SQL client.
    pub server: Option<Server>,
}

/// Finds the clients and asks the server.
///
/// # Errors
/// There is no client, or the server refuses.
pub fn connect(context: &Context, source: &Source) -> Result<Connection, Failure> {
    context.reporter.phase("Connecting");
    let clients = Clients::find(&context.settings.path)?;
    let scratch = source::scratch_directory(&context.settings.scratch)?;
    let mut connection = Connection {
        clients,
        scratch,
        tls: true,
        server: None,
    };
    let Some(sql) = connection.clients.sql(None).cloned() else {
        return Ok(connection);
    };
    let observe = |connection: &Connection| {
        let options = connection.options(context, source, sql.flavour)?;
        source::observe(&sql, &options, source, &context.cancel, &context.scrub)
    };
    connection.server = Some(match observe(&connection) {
        // Preferred: a server without TLS is spoken to without.
        Err(e) if e.reason == "TlsFailed" && source.tls == TlsMode::Preferred => {
            connection.tls = false;
            observe(&connection)?
        }
        other => other?,
    });
    if let (Some(server), Ok(client)) = (&connection.server, connection.dump()) {
        let text = format!("{}, client {}", server.variable("version"), client.version);
        context.reporter.update(|r| r.server = text);
    }
    Ok(connection)
}

impl Connection {
    /// The dump client that fits the server.
    ///
    /// # Errors
    /// There is none.
    pub fn dump(&self) -> Result<&Client, Failure> {
        self.clients.dump(self.server.as_ref().map(Server::flavour))
    }

    /// The SQL client that fits the server.
    ///
    /// # Errors
    /// There is none.
    pub fn sql(&self) -> Result<&Client, Failure> {
        self.clients
            .sql(self.server.as_ref().map(Server::flavour))
            .ok_or_else(|| {
                Failure::settings("no SQL client (mariadb, mysql): use an image that has one")
            })
    }

    /// An option file for a client of this family.
    ///
    /// # Errors
    /// It can't be written.
    pub fn options(
        &self,
        context: &Context,
        source: &Source,
        flavour: Flavour,
    ) -> Result<OptionFile, Failure> {
        OptionFile::write(&self.scratch, &context.nonce, source, flavour, self.tls)
    }
}
