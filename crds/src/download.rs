//! What `backup-runner download send` writes to stdout, and `kubectl backup download` reads: one
//! line with a [`Header`], the bytes from its offset on, one line with a [`Trailer`].

use serde::{Deserialize, Serialize};

/// Path of the program in our image.
pub const PROGRAM: &str = "/usr/local/bin/backup-runner";

/// Words of the command line after [`PROGRAM`] that keep a pod waiting for `send`.
pub const HOLD: [&str; 2] = ["download", "hold"];
/// Words of the command line after [`PROGRAM`] that send an artefact.
pub const SEND: [&str; 2] = ["download", "send"];
/// Words of the command line after [`PROGRAM`] that show the transactions of stored binary logs: behind them come a line with a
/// [`BinlogHeader`], then pieces of text, each behind a line with its [`TextPart`]; one without length ends them.
pub const BINLOG: [&str; 2] = ["download", "binlog"];

/// Words of the command line after [`PROGRAM`] for the server's own files: without a file a line with [`BinlogFiles`], with one
/// what [`SEND`] gives.
pub const BINLOG_FILES: [&str; 2] = ["download", "binlogs"];

/// The server's files of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinlogFiles {
    /// They, in order.
    pub files: Vec<BinlogFile>,
    /// What whoever takes them has to know: what of the span may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One of them, as far as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinlogFile {
    /// As the server calls it; with a suffix where it is not all of it, or another has its name.
    pub name: String,
    /// Its bytes.
    pub length: u64,
    /// SHA-256 of them, hex.
    pub sha256: String,
}

/// What of stored binary logs is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinlogHeader {
    /// Transactions of the span.
    pub transactions: u64,
    /// Segments that hold them.
    pub segments: u64,
    /// Their bytes in the server's files.
    pub bytes: u64,
    /// What whoever reads it has to know: what of the span may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A piece of text comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    /// Its bytes; 0 behind the last.
    pub length: u64,
    /// Behind the last: transactions that were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
}

/// What comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Key of the artefact below the destination's root.
    pub key: String,
    /// Name of the file, without directories; of the dump itself, unless raw.
    pub name: String,
    /// Bytes of the whole.
    pub length: u64,
    /// First byte that is sent.
    pub offset: u64,
    /// SHA-256 of the whole by the manifest, hex.
    pub sha256: String,
    /// What whoever takes it has to know: what was passed over, what failed, what nothing vouches for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trailer {
    /// Bytes of the whole as read.
    pub length: u64,
    /// SHA-256 of the whole as read, hex.
    pub sha256: String,
}
