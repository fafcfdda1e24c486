//! The way to a server: clients that run here, an option file on memory, TLS as demanded, and what
//! the server says of itself.

use std::path::PathBuf;

use crate::context::Context;
use crate::database::mysql::source::{self, Client, Clients, Flavour, OptionFile, Server};
use crate::failure::Failure;
use crate::settings::Source;

/// A server that was spoken to.
pub struct Connection {
    clients: Clients,
    memory: PathBuf,
    tls: bool,
    /// What the server said.
    pub server: Server,
}

/// Finds the clients and asks the server.
///
/// # Errors
/// There is no client, or the server refuses.
pub fn connect(context: &Context, source: &Source) -> Result<Connection, Failure> {
    context.reporter.phase("Connecting");
    let clients = Clients::find(&context.settings)?;
    let memory = crate::memory::directory(&context.settings.memory)?;
    let (server, tls) = source::observe(source, context)?;
    let connection = Connection {
        clients,
        memory,
        tls,
        server,
    };
    if let Ok(client) = connection.dump() {
        let version = connection.server.variable("version");
        let text = format!("{version}, client {}", client.version);
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
        self.clients.dump(Some(self.server.flavour()))
    }

    /// The SQL client that fits the server.
    ///
    /// # Errors
    /// There is none.
    pub fn sql(&self, context: &Context) -> Result<&Client, Failure> {
        let found = self.clients.sql(Some(self.server.flavour()));
        found.ok_or_else(|| source::missing(&context.settings, "SQL client", "mariadb or mysql"))
    }

    /// An option file for a client of this flavour.
    ///
    /// # Errors
    /// It can't be written.
    pub fn options(
        &self,
        context: &Context,
        source: &Source,
        flavour: Flavour,
    ) -> Result<OptionFile, Failure> {
        OptionFile::write(&self.memory, &context.nonce, source, flavour, self.tls)
    }
}
