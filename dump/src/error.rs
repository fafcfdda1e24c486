//! Why a dump can't be made.

/// Why a dump can't be made. None quotes a row, a password or a statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A server refused, or a connection was lost.
    #[error("{doing}: {cause}")]
    Wire {
        /// What was being done, such as "reading table shop.orders".
        doing: String,
        /// Why it failed.
        #[source]
        cause: wire::Error,
    },
    /// Something that was asked for is not there or can't be seen.
    #[error("{0}")]
    Missing(String),
    /// The server has something that is not dumped here.
    #[error("{0}")]
    Unsupported(String),
    /// Tables were changed while they were dumped.
    #[error("{0}")]
    Changed(String),
    /// Another part of the dump failed, or it was told to stop.
    #[error("stopped")]
    Stopped,
    /// The text could not be compressed or written.
    #[error("{doing}: {cause}")]
    Output {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        cause: std::io::Error,
    },
}

/// What a server says of a table that is not as it was: another definition, gone, its database gone, no such column.
const CHANGED: [u16; 5] = [1412, 1146, 1049, 1054, 1051];

impl Error {
    /// Of a connection; `doing` is such as "reading table shop.orders".
    pub fn wire(doing: impl Into<String>, cause: wire::Error) -> Self {
        Self::Wire {
            doing: doing.into(),
            cause,
        }
    }

    /// Of a connection that reads a table, or asks about it; `doing` is as in [`Error::wire`]. A table that is not as it was
    /// is [`Error::Changed`].
    pub(crate) fn of_table(doing: String, table: &str, cause: wire::Error) -> Self {
        match cause.number() {
            Some(number) if CHANGED.contains(&number) => Self::changed(table, &cause.to_string()),
            _ => Self::wire(doing, cause),
        }
    }

    /// A table is not as it was.
    pub(crate) fn changed(table: &str, how: &str) -> Self {
        Self::Changed(format!(
            "table {table} was changed, emptied or dropped while it was dumped: {how}. Back up again when nobody changes definitions"
        ))
    }
}
