//! Why a dump can't be loaded.

/// Why a dump can't be loaded. None quotes a row, a password or a statement; a server's own words may.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The target refused, or a connection was lost.
    #[error("{doing}: {cause}")]
    Wire {
        /// What was being done, such as "loading frame 7 of table shop.orders".
        doing: String,
        /// Why it failed.
        #[source]
        cause: wire::Error,
    },
    /// The target holds fewer rows than it was given.
    #[error("{0}")]
    Rows(String),
    /// The target lost what it said was committed.
    #[error("{0}")]
    Forgotten(String),
    /// The artefact can't be read, or is not what its frames say.
    #[error("{doing}: {cause}")]
    Source {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
    /// What is in the artefact is not a dump of ours.
    #[error("{0}")]
    Form(String),
    /// Another load was cut in this target.
    #[error("{0}")]
    Journal(String),
    /// Another part of the load failed, or it was told to stop.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Of a connection; `doing` is such as "loading frame 7 of table shop.orders".
    pub fn wire(doing: impl Into<String>, cause: wire::Error) -> Self {
        Self::Wire {
            doing: doing.into(),
            cause,
        }
    }

    pub(crate) fn source(doing: impl Into<String>, cause: std::io::Error) -> Self {
        Self::Source {
            doing: doing.into(),
            cause,
        }
    }
}
