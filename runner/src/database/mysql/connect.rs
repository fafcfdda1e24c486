//! The way to a server: clients that run here, an option file on memory, TLS as demanded, and what
//! the server says of itself.

use crds::report::Reason;
use std::path::PathBuf;

use crds::parts::TlsMode;

use crate::context::Context;
use crate::database::mysql::source::{self, Client, Clients, Flavour, OptionFile, Server};
use crate::failure::Failure;
use crate::settings::Source;

/// Logins that fail so may succeed with the client of the server's own flavour, which knows its
/// plugins and checks certificates its way, or without TLS where the mode allows: MariaDB's client
/// sends the password of caching_sha2_password as if there were TLS, which the server denies.
const TO_TRY_AGAIN: [Reason; 3] = [
    Reason::TlsFailed,
    Reason::AuthPluginMissing,
    Reason::AccessDenied,
];

/// A server that was spoken to, where there is an SQL client to do so.
pub struct Connection {
    clients: Clients,
    /// Why there is no SQL client, where there is none.
    no_sql: Failure,
    memory: PathBuf,
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
    let clients = Clients::find(&context.settings)?;
    let memory = crate::memory::directory(&context.settings.memory)?;
    let mut connection = Connection {
        clients,
        no_sql: source::missing(&context.settings, "SQL client", "mariadb or mysql"),
        memory,
        tls: true,
        server: None,
    };
    let Some(sql) = connection.clients.sql(None).cloned() else {
        return Ok(connection);
    };
    let observe = |connection: &Connection, sql: &Client| {
        let options = connection.options(context, source, sql.flavour)?;
        source::observe(sql, &options, source, context)
    };
    let observed = match observe(&connection, &sql) {
        Err(e) if TO_TRY_AGAIN.contains(&e.reason) => {
            let greeting = source::greet(source);
            let fitting = connection.clients.sql(greeting.map(|g| g.flavour)).cloned();
            let plain = source.tls == TlsMode::Preferred
                && greeting.map_or(e.reason == Reason::TlsFailed, |g| !g.tls);
            connection.tls = !plain;
            match fitting {
                Some(other) if other != sql || plain => observe(&connection, &other),
                _ => Err(e),
            }
        }
        observed => observed,
    };
    connection.server = Some(observed?);
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
            .ok_or_else(|| self.no_sql.clone())
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

    /// Which of these tables are there now: database, table.
    ///
    /// # Errors
    /// The server can't be asked.
    pub fn still_there(
        &self,
        context: &Context,
        source: &Source,
        tables: &[(String, String)],
    ) -> Result<Vec<(String, String)>, Failure> {
        let client = self.sql()?;
        let options = self.options(context, source, client.flavour)?;
        source::still_there(client, &options, tables, context)
    }
}
