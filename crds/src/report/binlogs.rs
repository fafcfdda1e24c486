//! What a run that pulls binary logs says of them.

use serde::{Deserialize, Serialize};

use super::{MAX_MESSAGE, MAX_NAME, MAX_REASON, MAX_TIME, MAX_WARNING, clean, said};
use crate::text::word;

/// Most gaps of a report of binary logs.
pub const MAX_GAPS: usize = 5;

/// What was stored of a server's binary logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binlogs {
    /// Segments stored by this run.
    pub segments: i64,
    /// Their bytes in the server's files.
    pub bytes: i64,
    /// Their bytes in the store.
    pub stored_bytes: i64,
    /// Transactions in them.
    pub transactions: i64,
    /// Where the first begins; none where nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<LogPlace>,
    /// Where the last ends: the end of all that is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<LogPlace>,
    /// The moment, RFC 3339, by the server's clock, from which on they hold everything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub first: String,
    /// Latest time of an event that is stored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last: String,
    /// The moment, RFC 3339, by the server's clock, up to which all that was committed is stored; empty where that can't be
    /// said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Seconds by which that moment was past when the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<i64>,
    /// Logs of other servers that were joined.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub joins: i64,
    /// Gaps that were found, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// A place in a binary log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogPlace {
    /// The file, as the server calls it.
    pub file: String,
    /// The position in it.
    pub position: u64,
    /// The transactions up to there; shortened where there are very many.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gtids: String,
}

/// A time from which events may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Gap {
    /// CamelCase, machine-read.
    pub cause: String,
    /// The last moment before it that is covered, RFC 3339, by the server's clock; empty where none is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The first moment behind it that is; empty where nothing is stored behind it yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// What happened, and what helps.
    pub message: String,
    /// The segment behind it, by which a gap that is told twice is known; empty where nothing is stored behind it yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub segment: String,
}

impl Binlogs {
    /// With every text cut and cleaned, and the list cut. A new field is named here or this does not compile.
    pub(super) fn cleaned(self) -> Self {
        let Self {
            segments,
            bytes,
            stored_bytes,
            transactions,
            from,
            to,
            first,
            last,
            seen,
            lag_seconds,
            joins,
            gaps,
        } = self;
        Self {
            segments,
            bytes,
            stored_bytes,
            transactions,
            from: from.map(LogPlace::cleaned),
            to: to.map(LogPlace::cleaned),
            first: clean(&first, MAX_TIME),
            last: clean(&last, MAX_TIME),
            seen: clean(&seen, MAX_TIME),
            lag_seconds,
            joins,
            gaps: gaps.into_iter().take(MAX_GAPS).map(Gap::cleaned).collect(),
        }
    }

    /// Without what may be long.
    pub(super) fn shorten(&mut self) {
        for place in [&mut self.from, &mut self.to].into_iter().flatten() {
            place.gtids.clear();
        }
        self.gaps.truncate(1);
    }
}

impl LogPlace {
    fn cleaned(self) -> Self {
        let Self {
            file,
            position,
            gtids,
        } = self;
        Self {
            file: clean(&file, MAX_NAME),
            position,
            gtids: clean(&gtids, MAX_WARNING),
        }
    }
}

impl Gap {
    fn cleaned(self) -> Self {
        let Self {
            cause,
            from,
            to,
            message,
            segment,
        } = self;
        Self {
            cause: word(&cause, MAX_REASON),
            from: clean(&from, MAX_TIME),
            to: clean(&to, MAX_TIME),
            message: said(&message, MAX_MESSAGE),
            segment: word(&segment, MAX_REASON),
        }
    }
}
