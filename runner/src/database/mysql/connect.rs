//! The way to a server: clients that run here, an option file on memory, TLS as demanded, and what
//! the server says of itself.

use std::path::PathBuf;

use crate::context::Context;
use crate::database::mysql::source::{self, Client, Clients, Flavour, OptionFile, Server};
use crate::failure::Failure;
use crate::settings::Source;

/// A server that was spoken to.
pub struct Connection {
    /// Those that are here; who needs one is told why there is none.
    clients: Result<Clients, Failure>,
    memory: PathBuf,
    tls: bool,
    /// What the server said.
    pub server: Server,
}

/// Finds the clients and asks the server. An image without a client is no failure yet: the native engine needs none.
///
/// # Errors
/// The server refuses.
pub fn connect(context: &Context, source: &Source) -> Result<Connection, Failure> {
    context.reporter.phase("Connecting");
    let clients = Clients::find(&context.settings);
    let memory = crate::memory::directory(&context.settings.memory)?;
    let (server, tls) = source::observe(source, context)?;
    let connection = Connection {
        clients,
        memory,
        tls,
        server,
    };
    let version = connection.server.variable("version");
    context
        .reporter
        .update(|r| version.clone_into(&mut r.server));
    Ok(connection)
}

impl Connection {
    /// The dump client that fits the server.
    ///
    /// # Errors
    /// There is none.
    pub fn dump(&self) -> Result<&Client, Failure> {
        let clients = self.clients.as_ref().map_err(Clone::clone)?;
        clients.dump(Some(self.server.flavour()))
    }

    /// The SQL client that fits the server.
    ///
    /// # Errors
    /// There is none.
    pub fn sql(&self, context: &Context) -> Result<&Client, Failure> {
        let clients = self.clients.as_ref().map_err(Clone::clone)?;
        let found = clients.sql(Some(self.server.flavour()));
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
