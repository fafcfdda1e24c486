//! Segments: pieces of a log that are stored, and what is said of each.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::gtid::Gtids;

/// Bytes of a segment's manifest at most: sets of GTIDs are the only part that grows.
pub const MANIFEST: usize = 64 << 20;

/// What a server calls itself. Never its server_id: another may bear the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    /// MySQL's server_uuid; empty for MariaDB.
    pub server_uuid: String,
    /// Its host name.
    pub hostname: String,
    /// Its port.
    pub port: String,
    /// Its data directory.
    pub datadir: String,
}

impl Identity {
    /// True if both are the same server, as far as it can be told: by server_uuid, else by host name, port and directory.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        if !self.server_uuid.is_empty() || !other.server_uuid.is_empty() {
            return self.server_uuid == other.server_uuid;
        }
        !self.hostname.is_empty()
            && (&self.hostname, &self.port, &self.datadir)
                == (&other.hostname, &other.port, &other.datadir)
    }
}

/// An event that was stored, by which its log is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Where it begins.
    pub position: u64,
    /// Its CRC32, which the server wrote.
    pub sum: u32,
}

/// Why events may be missing between a segment and what was stored before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// The server removed its files before they were read.
    Purged,
    /// The server's log was begun anew, or is shorter than what was stored of it.
    Reset,
    /// Another server answers, and its log does not go on where the other's ended.
    OtherServer,
    /// The server's file is damaged, or does not go on where the one before it ended.
    Broken,
    /// The server itself says that its log lacks events.
    Incident,
    /// A segment that was stored is not there any more.
    Lost,
    /// Segments do not fit together.
    Mismatch,
}

impl Cause {
    /// What happened, and what to do against the next time.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Purged => {
                "the server removed binary logs before they were read: make it keep them longer, or read more often"
            }
            Self::Reset => {
                "the server's binary log was begun anew or lost its end: make a new backup"
            }
            Self::OtherServer => {
                "another server answers, and its log does not go on where the other's ended: make a new backup"
            }
            Self::Broken => "the server's binary log is damaged: make a new backup",
            Self::Incident => "the server says that its log lacks events: make a new backup",
            Self::Lost => "a stored segment is not there any more",
            Self::Mismatch => "stored segments do not fit together",
        }
    }
}

/// How a segment goes on from the one stored before it. Hashes are those of manifests ([`Segment::digest`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "how")]
#[non_exhaustive]
pub enum Link {
    /// Nothing was stored before it.
    First,
    /// It begins where the other ended, in the same log.
    Follows {
        /// The other's hash.
        previous: String,
    },
    /// It begins where the other ended, in the log of another server, or in another log of the same.
    Joins {
        /// The other's hash.
        previous: String,
    },
    /// Events may be missing between both.
    Gap {
        /// The other's hash.
        previous: String,
        /// Why.
        cause: Cause,
    },
}

impl Link {
    /// The hash of the segment before; `None` for the first.
    #[must_use]
    pub fn previous(&self) -> Option<&str> {
        match self {
            Self::First => None,
            Self::Follows { previous } | Self::Joins { previous } | Self::Gap { previous, .. } => {
                Some(previous)
            }
        }
    }
}

/// What is said of a segment. Its bytes are those of the server's file in `from..to`: whole transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// Whose log it is.
    pub server: Identity,
    /// The file, as the server calls it.
    pub file: String,
    /// Where it begins in the file; 0 holds what a file begins with before its first event.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// When the file was begun, in seconds since 1970 by the server's clock: a file of the same name with another moment is
    /// another file.
    pub created: u32,
    /// The file that follows, where this segment ends its file and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The event that describes the file, in hexadecimal: without it nothing reads the others. Of a file that was read from
    /// its middle as the server sends it then.
    pub description: String,
    /// The last event.
    pub last_event: Anchor,
    /// Which transactions the log held before it.
    pub before: Gtids,
    /// Which it holds at its end.
    pub after: Gtids,
    /// Transactions in it.
    pub transactions: u64,
    /// The earliest time of an event in it, in seconds since 1970 by the server's clock.
    pub first: u32,
    /// The latest.
    pub last: u32,
    /// The time of the last event of the last transaction up to its end, where one was seen. With the GTIDs it tells the same
    /// history from another one that counted as far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u32>,
    /// The server says in it that events are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incident: bool,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// How it goes on from the one before it.
    pub link: Link,
}

impl Segment {
    /// The manifest: the same bytes for the same segment.
    #[must_use]
    pub fn manifest(&self) -> Vec<u8> {
        // Maps with keys that are not text are the only values that can't be written, and there are none.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The hash by which the next segment names this one: SHA-256 of the manifest.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.manifest()))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// It is none, or is too large for one.
    pub fn read(manifest: &[u8]) -> Result<Self, String> {
        if manifest.len() > MANIFEST {
            return Err(format!(
                "a segment's manifest of {} bytes is above the limit of {MANIFEST}",
                manifest.len()
            ));
        }
        let segment: Self = serde_json::from_slice(manifest)
            .map_err(|e| format!("not the manifest of a segment: {e}"))?;
        if segment.from >= segment.to || segment.last_event.position >= segment.to {
            return Err("not the manifest of a segment: it ends before it begins".to_owned());
        }
        Ok(segment)
    }
}

/// The bytes of text in hexadecimal; `None` if it is none.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let pairs = digits.chunks_exact(2);
    let bytes = pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    bytes.collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A file's name without its number, and the number.
pub(crate) fn number(file: &str) -> Option<(&str, u64)> {
    let (base, number) = file.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}

/// True if a server that wrote the one file writes the other next.
pub(crate) fn is_successor(file: &str, next: &str) -> bool {
    match (number(file), number(next)) {
        (Some((base, n)), Some((next_base, next))) => {
            base == next_base && n.checked_add(1) == Some(next)
        }
        _ => false,
    }
}
