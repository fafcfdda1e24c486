//! The packets that end a statement: done, refused, no more rows.

use crate::error::{Error, ServerError};
use crate::packet::FULL;
use crate::parse::Fields;

/// A statement is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that it changed.
    pub affected: u64,
    /// Warnings that `SHOW WARNINGS` would list.
    pub warnings: u16,
    /// Another result of the same statement follows.
    pub(crate) more: bool,
}

/// SERVER_MORE_RESULTS_EXISTS.
const MORE_RESULTS: u16 = 8;

/// Reads what follows the first byte of OK.
pub(crate) fn done(packet: &[u8]) -> Result<Done, Error> {
    let mut fields = Fields(packet.get(1..).unwrap_or_default());
    let affected = fields.integer()?;
    fields.integer()?;
    let status = fields.u16()?;
    Ok(Done {
        affected,
        warnings: fields.u16()?,
        more: status & MORE_RESULTS != 0,
    })
}

/// True if this packet stands where a row could, and is none. A row that begins so is as long as a packet can be.
#[inline]
pub(crate) fn ends_rows(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < FULL
}

/// Reads the end of rows: an EOF packet of old, or OK under another first byte.
pub(crate) fn end(packet: &[u8]) -> Result<Done, Error> {
    if let [_, a, b, c, d] = packet {
        return Ok(Done {
            affected: 0,
            warnings: u16::from_le_bytes([*a, *b]),
            more: u16::from_le_bytes([*c, *d]) & MORE_RESULTS != 0,
        });
    }
    done(packet)
}

/// A server's words are cut here.
const WORDS: usize = 4096;

/// Reads a refusal.
pub(crate) fn refusal(packet: &[u8]) -> Error {
    let mut fields = Fields(packet.get(1..).unwrap_or_default());
    let Ok(number) = fields.u16() else {
        return Error::Malformed("a refusal without a number");
    };
    let mut state = "";
    if let [b'#', rest @ ..] = fields.0
        && let Some((five, words)) = rest.split_at_checked(5)
    {
        state = std::str::from_utf8(five).unwrap_or_default();
        fields.0 = words;
    }
    Error::Server(Box::new(ServerError {
        number,
        state: state.to_owned(),
        text: String::from_utf8_lossy(&fields.0[..fields.0.len().min(WORDS)]).into_owned(),
    }))
}
