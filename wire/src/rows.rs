//! The rows of a statement, as text, borrowed from the read buffer.

use std::ops::Range;

use crate::answer::{self, Done};
use crate::error::Error;
use crate::parse::Fields;
use crate::session::Session;

/// How a column's text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Digits, sign, point and exponent alone.
    Number,
    /// A number of bits, as bytes.
    Bit,
    /// Text of a character set; dates, ENUM, SET and JSON too.
    Text,
    /// Bytes without a character set.
    Binary,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the result.
    pub name: String,
    /// How its text is read.
    pub kind: Kind,
    /// The protocol's number of its type (MYSQL_TYPE_…).
    pub code: u8,
    /// The number of its collation; 63 is binary.
    pub collation: u16,
}

/// The collation of bytes.
const BINARY: u16 = 63;
/// More columns a table can't have.
const COLUMNS: u64 = 4096;

impl Column {
    fn parse(packet: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields(packet);
        // Catalogue, schema, table and its real name.
        for _ in 0..4 {
            fields.bytes()?;
        }
        let name = String::from_utf8_lossy(fields.bytes()?).into_owned();
        fields.bytes()?;
        // The length of what follows.
        fields.integer()?;
        let collation = fields.u16()?;
        fields.u32()?;
        let code = fields.u8()?;
        let kind = match code {
            // DECIMAL, TINY, SHORT, LONG, FLOAT, DOUBLE; LONGLONG, INT24; YEAR; NEWDECIMAL.
            0..=5 | 8 | 9 | 13 | 246 => Kind::Number,
            16 => Kind::Bit,
            // VARCHAR, the BLOBs, VAR_STRING, STRING, GEOMETRY; VECTOR.
            15 | 249..=255 | 242 if collation == BINARY => Kind::Binary,
            _ => Kind::Text,
        };
        Ok(Self {
            name,
            kind,
            code,
            collation,
        })
    }
}

/// The rows of a statement, one after the other. Read to the end: what is left makes the connection useless.
#[derive(Debug)]
pub struct Rows<'a> {
    session: &'a mut Session,
    columns: Vec<Column>,
    done: Option<Done>,
}

impl<'a> Rows<'a> {
    /// Reads the head of a result whose first packet has been read.
    pub(crate) fn begin(session: &'a mut Session, first: Range<usize>) -> Result<Self, Error> {
        let head = session.packets.get(first);
        let columns = match head.first() {
            Some(0x00) => 0,
            Some(0xff) => return Err(answer::refusal(head)),
            Some(0xfb) => return Err(session.refuse_file()),
            _ => Fields(head).integer()?,
        };
        if columns == 0 {
            let done = answer::done(head)?;
            session.ended(&done);
            return Ok(Self {
                session,
                columns: Vec::new(),
                done: Some(done),
            });
        }
        if columns > COLUMNS {
            return Err(Error::Malformed("a result has too many columns"));
        }
        session.unread = true;
        let mut all = Vec::new();
        for _ in 0..columns {
            let packet = session.packets.read()?;
            all.push(Column::parse(session.packets.get(packet))?);
        }
        if !session.deprecates_eof {
            let packet = session.packets.read()?;
            if !answer::ends_rows(session.packets.get(packet)) {
                return Err(Error::Malformed("the columns have no end"));
            }
        }
        Ok(Self {
            session,
            columns: all,
            done: None,
        })
    }

    /// The columns; none where the statement gives no rows.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// The server ends the rows with an error, or the connection is lost.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Row<'_>>, Error> {
        if self.done.is_some() {
            return Ok(None);
        }
        let packet = self.session.packets.read()?;
        let bytes = self.session.packets.get(packet.clone());
        match bytes.first() {
            Some(0xff) => {
                self.session.unread = false;
                self.done = Some(Done::default());
                Err(answer::refusal(bytes))
            }
            Some(0xfe) if answer::ends_rows(bytes) => {
                let done = answer::end(bytes)?;
                self.session.ended(&done);
                self.done = Some(done);
                Ok(None)
            }
            _ => Ok(Some(Row {
                fields: Fields(self.session.packets.get(packet)),
            })),
        }
    }

    /// Reads what is left, and says how the statement ended.
    ///
    /// # Errors
    /// As [`Rows::read`].
    pub fn finish(mut self) -> Result<Done, Error> {
        while self.read()?.is_some() {}
        Ok(self.done.unwrap_or_default())
    }
}

/// A row. Its values are read from left to right.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    fields: Fields<'a>,
}

impl<'a> Row<'a> {
    /// The next value as the server wrote it; `None` is NULL.
    ///
    /// # Errors
    /// There is none left, or it ends after the row does.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Error> {
        self.fields.value()
    }

    /// The next value as text, which is not NULL.
    ///
    /// # Errors
    /// It is NULL, is not UTF-8, or as [`Row::value`].
    pub fn text(&mut self) -> Result<&'a str, Error> {
        let value = self
            .value()?
            .ok_or(Error::Malformed("NULL in place of text"))?;
        std::str::from_utf8(value).map_err(|_| Error::Malformed("a text is not UTF-8"))
    }

    /// Bytes of the values that were not read yet, with their lengths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.0.len()
    }

    /// True if all values were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.0.is_empty()
    }
}
