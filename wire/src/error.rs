//! Why a server can't be spoken to.

use std::fmt;
use std::io;
use std::time::Duration;

/// What a server refused, in its own words. They may quote values of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Its number, such as 1045.
    pub number: u16,
    /// SQLSTATE, such as `28000`; empty before the login.
    pub state: String,
    /// Its words; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.state.is_empty() {
            write!(f, "ERROR {}: {}", self.number, self.text)
        } else {
            write!(f, "ERROR {} ({}): {}", self.number, self.state, self.text)
        }
    }
}

impl std::error::Error for ServerError {}

/// Why a server can't be spoken to. None quotes a password or a statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host's name is not known.
    #[error("host {host:?} can't be resolved: {cause}")]
    UnknownHost {
        /// The name.
        host: String,
        /// Why.
        cause: io::Error,
    },
    /// Nobody listens at the address.
    #[error("can't connect to {address}: {cause}")]
    Unreachable {
        /// Host and port, or the socket.
        address: String,
        /// Why.
        cause: io::Error,
    },
    /// TLS could not be agreed on, or the certificate is not believed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// TLS is demanded and the server has none.
    #[error("the server offers no TLS")]
    NoTls,
    /// The server wants an authentication that is not known here.
    #[error("the user's authentication plugin {0:?} is not supported")]
    Plugin(String),
    /// The password would have to be sent as it is, or under a key that nobody vouches for.
    #[error("the password is not sent: {0}")]
    PasswordKept(&'static str),
    /// The server refused.
    #[error(transparent)]
    Server(#[from] Box<ServerError>),
    /// The connection ended in the middle.
    #[error("the connection was lost: {0}")]
    Lost(#[source] io::Error),
    /// The server said or took nothing for so long.
    #[error("the server has been silent for {} seconds", .0.as_secs())]
    Stalled(Duration),
    /// [`crate::Stop`] was told to stop.
    #[error("stopped")]
    Stopped,
    /// What came is not the protocol.
    #[error("the server does not keep to the protocol: {0}")]
    Malformed(&'static str),
    /// More came than is taken.
    #[error("{what} of {size} bytes is above the limit of {limit}")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Bytes, as far as they are known.
        size: u64,
        /// Bytes that are taken.
        limit: u64,
    },
    /// Rows of an earlier statement have not been read to their end.
    #[error("rows of an earlier statement are unread")]
    Unread,
    /// What was to be sent could not be read.
    #[error("what was to be sent can't be read: {0}")]
    Source(#[source] io::Error),
}

impl Error {
    /// The number of the server's error, if it refused.
    #[must_use]
    pub fn number(&self) -> Option<u16> {
        match self {
            Self::Server(e) => Some(e.number),
            _ => None,
        }
    }

    /// True if the connection is of no use any more. After a refusal it is.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Server(_) | Self::Unread)
    }
}
