//! Why what a server sends is not its log, or not one that is kept.

/// What is wrong with an event. None quotes what a user wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An event is shorter than its fields.
    #[error("an event ends within its fields")]
    Short,
    /// An event has another length than its header says.
    #[error("an event says it has {said} bytes and has {found}")]
    Length {
        /// Bytes, by its header.
        said: u32,
        /// Bytes that came.
        found: u64,
    },
    /// The CRC32 at an event's end is not that of its bytes.
    #[error("the checksum of an event is not that of its bytes")]
    Checksum,
    /// An event says that it ends elsewhere: events before it are missing, or too many.
    #[error("an event that ends at {ends} says that it ends at {said}")]
    Position {
        /// Where it ends.
        ends: u64,
        /// Where it says it does: the low 32 bits.
        said: u32,
    },
    /// A field has a value that no server writes.
    #[error("{0}")]
    Format(&'static str),
    /// What is to be in memory at once is too much of it.
    #[error("an event of {size} bytes is above the limit of {limit}")]
    TooLarge {
        /// Bytes of the event.
        size: u32,
        /// Bytes that are taken.
        limit: usize,
    },
    /// The file has no checksums.
    #[error("the file has no checksums: set binlog_checksum=CRC32")]
    NoChecksum,
    /// The file is encrypted: what comes is not what lies on the server's disk.
    #[error(
        "the file is encrypted: encrypted binary logs are not stored; switch encrypt_binlog (MariaDB) or binlog_encryption (MySQL) off"
    )]
    Encrypted,
    /// A file begins with other events than it must.
    #[error("the file does not begin as one of the server's: {0}")]
    Beginning(&'static str),
    /// A file begins with other GTIDs than the one before it ended with.
    #[error("the file begins behind {begins}, the log before it ended with {ended}")]
    Gtids {
        /// What the file says was there before.
        begins: String,
        /// What was there.
        ended: String,
    },
    /// A GTID comes twice.
    #[error("GTID {0} comes a second time")]
    Twice(String),
    /// A transaction begins before the one before it has ended.
    #[error("a transaction begins within another")]
    Nested,
    /// An event of no transaction.
    #[error("an event of type {0} stands outside a transaction")]
    Outside(u8),
    /// Another file follows than the one that should.
    #[error("{found:?} follows, not {wanted:?}")]
    Successor {
        /// The file that follows.
        found: String,
        /// The file that should.
        wanted: String,
    },
    /// A log that was to be joined does not come to where the stored one ended.
    #[error(
        "the log does not come to where the stored one ended: transactions are missing, or stand in another order"
    )]
    NotJoined,
    /// What was stored as the last event is not what stands there now: another log bears the same name.
    #[error(
        "the last event that was stored is not there any more: another log bears the file's name"
    )]
    Replaced,
}

/// Where a log is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} at {position}: {fault}")]
pub struct Break {
    /// The file, as the server calls it.
    pub file: String,
    /// Where the event begins.
    pub position: u64,
    /// What is wrong.
    pub fault: Fault,
}
