//! Why a log can't be read.

use crate::fault::Break;

/// Why a log can't be read. None quotes what a user wrote.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A server refused, or a connection was lost.
    #[error("{doing}: {cause}")]
    Wire {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        cause: wire::Error,
    },
    /// The server writes no log.
    #[error(
        "the server writes no binary log: set log_bin in section [mysqld] of its configuration, and restart it"
    )]
    Off,
    /// The log is encrypted.
    #[error(
        "binary log {0} is encrypted on the server's disk: encrypted binary logs are not stored; switch encrypt_binlog (MariaDB) or binlog_encryption (MySQL) off"
    )]
    Encrypted(String),
    /// The log is not whole, and nothing can be read around it.
    #[error("the server's binary log is not whole: {0}")]
    Broken(Break),
    /// A segment can't be stored.
    #[error("a segment can't be stored: {0}")]
    Sink(#[source] std::io::Error),
    /// What the server says of itself is not understood.
    #[error("{0}")]
    Answer(String),
    /// The log changes faster than it can be read.
    #[error("the server's binary logs change while they are read; try again: {0}")]
    Unsteady(String),
}

impl Error {
    /// Of a connection; `doing` is such as "reading binary log bin.000001".
    pub(crate) fn wire(doing: impl Into<String>, cause: wire::Error) -> Self {
        Self::Wire {
            doing: doing.into(),
            cause,
        }
    }
}
