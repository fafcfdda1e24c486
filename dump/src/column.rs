//! Which columns are written, and how their values are.

use std::collections::HashMap;
use std::rc::Rc;

use wire::{Connection, Kind};

use crate::ask;
use crate::error::Error;
use crate::parts::{Column, Flavour, Server, Table};
use crate::row::{How, Single, Wide};
use crate::sql;

/// What a type's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Number,
    Float,
    Double,
    /// Bytes, bits, shapes, vectors.
    Bytes,
    /// Text of a character set.
    Text,
    /// Text that is ASCII: dates, addresses.
    Plain,
    Json,
}

/// A column that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// As INSERT has it.
    pub(crate) name: String,
    /// As SELECT has it.
    pub(crate) selected: String,
    pub(crate) class: Class,
    pub(crate) data_type: String,
}

/// The columns that are written. `shown` is the table as a user knows it.
pub(crate) fn written(table: &Table, server: &Server, shown: &str) -> Result<Vec<Written>, Error> {
    let mut all = vec![];
    for column in table.columns.iter().filter(|column| !column.generated) {
        let name = sql::name(&column.name);
        let Some(class) = Class::of(column) else {
            return Err(Error::Unsupported(format!(
                "column {} of table {shown} is of type {}, which is not dumped here",
                column.name, column.data_type
            )));
        };
        all.push(Written {
            selected: class.selected(column, server),
            name,
            class,
            data_type: column.data_type.clone(),
        });
    }
    if all.is_empty() {
        return Err(Error::Unsupported(format!(
            "table {shown} has no column that could be written"
        )));
    }
    Ok(all)
}

impl Class {
    fn of(column: &Column) -> Option<Self> {
        Some(match column.data_type.as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => {
                Self::Number
            }
            "float" => Self::Float,
            "double" => Self::Double,
            "bit" | "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob"
            | "vector" | "geometry" | "point" | "linestring" | "polygon" | "multipoint"
            | "multilinestring" | "multipolygon" | "geometrycollection" | "geomcollection" => {
                Self::Bytes
            }
            // The number is written: two values are shown as ''.
            "enum" | "set" if has_empty_member(&column.column_type) => Self::Number,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum"
            | "set" => Self::Text,
            "date" | "time" | "datetime" | "timestamp" | "uuid" | "inet4" | "inet6" => Self::Plain,
            "json" => Self::Json,
            _ => return None,
        })
    }

    /// What is selected, so that the server shows the whole value.
    fn selected(self, column: &Column, server: &Server) -> String {
        let name = sql::name(&column.name);
        match self {
            Self::Number if matches!(column.data_type.as_str(), "enum" | "set") => {
                format!("CAST({name} AS UNSIGNED)")
            }
            // As a FLOAT it would be cut to six digits.
            Self::Float if server.flavour == Flavour::MySql && server.numbers < (8, 0, 17) => {
                format!("{name}*1e0")
            }
            Self::Float => format!("CAST({name} AS DOUBLE)"),
            _ => name,
        }
    }

    /// True if what the server announces is of this class.
    pub(crate) fn fits(self, announced: &wire::Column) -> bool {
        match self {
            Self::Number | Self::Float | Self::Double => announced.kind == Kind::Number,
            Self::Bytes => matches!(announced.kind, Kind::Binary | Kind::Bit),
            Self::Text | Self::Plain | Self::Json => {
                matches!(announced.kind, Kind::Text | Kind::Binary)
            }
        }
    }

    /// How its values are written; text needs to know its character set.
    pub(crate) fn how(self) -> How {
        match self {
            Self::Number => How::Number,
            Self::Float => How::Float,
            Self::Double => How::Double,
            Self::Bytes => How::Bytes,
            Self::Text | Self::Json => How::Utf8(4),
            Self::Plain => How::Ascii,
        }
    }
}

/// Of `enum('a','')` and `set(…)`. Quotes within a member are doubled.
fn has_empty_member(column_type: &str) -> bool {
    let mut rest = column_type;
    while let Some((_, member)) = rest.split_once('\'') {
        let mut at = 0;
        loop {
            let Some(quote) = member.get(at..).and_then(|rest| rest.find('\'')) else {
                return false;
            };
            at += quote + 1;
            if !member[at..].starts_with('\'') {
                break;
            }
            at += 1;
        }
        if at == 1 {
            return true;
        }
        rest = &member[at..];
    }
    false
}

/// What is known of the server's character sets, by the numbers of their collations.
#[derive(Debug, Default)]
pub(crate) struct Sets(HashMap<u16, How>);

const DOING: &str = "asking for a character set";
/// The collation of bytes.
const BINARY: u16 = 63;

impl Sets {
    /// How text of a collation is written.
    pub(crate) fn how(
        &mut self,
        session: &mut Connection,
        server: &Server,
        collation: u16,
    ) -> Result<How, Error> {
        if collation == BINARY {
            return Ok(How::Bytes);
        }
        if let Some(how) = self.0.get(&collation) {
            return Ok(how.clone());
        }
        let how = match set_of(session, server, collation)?.as_str() {
            "utf8mb4" => How::Utf8(4),
            "utf8mb3" | "utf8" => How::Utf8(3),
            "ascii" => How::Ascii,
            "ucs2" => How::Wide(Wide::Ucs2),
            "utf16" => How::Wide(Wide::Utf16),
            "utf16le" => How::Wide(Wide::Utf16Le),
            "utf32" => How::Wide(Wide::Utf32),
            set => other(session, set)?,
        };
        self.0.insert(collation, how.clone());
        Ok(how)
    }
}

/// The name of the character set of a collation.
fn set_of(session: &mut Connection, server: &Server, collation: u16) -> Result<String, Error> {
    let ask = |table: &str| {
        format!("SELECT character_set_name FROM information_schema.{table} WHERE id = {collation}")
    };
    let mut set = ask::value(session, &ask("collations"), DOING)?;
    // MariaDB's collations of several sets stand there alone.
    if set.is_none() && server.flavour == Flavour::MariaDb && server.numbers >= (10, 10, 0) {
        set = ask::value(
            session,
            &ask("collation_character_set_applicability"),
            DOING,
        )?;
    }
    let plain = |set: &String| set.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    set.filter(plain).ok_or_else(|| {
        Error::Unsupported(format!(
            "the server does not say which character set collation {collation} is of"
        ))
    })
}

/// A set that is not Unicode, by the server's own tables.
fn other(session: &mut Connection, set: &str) -> Result<How, Error> {
    let longest = format!(
        "SELECT maxlen FROM information_schema.character_sets WHERE character_set_name = '{set}'"
    );
    let single = ask::value(session, &longest, DOING)?.as_deref() == Some("1");
    let bytes: Vec<u8> = (0..if single { 255 } else { 127 })
        .chain([if single { 255 } else { 127 }])
        .collect();
    let text = format!("CONVERT(X'{}' USING {set})", hex(&bytes));
    let unicode = format!("CONVERT({text} USING utf8mb4)");
    let ask = format!("SELECT HEX({unicode}), HEX(CONVERT({unicode} USING {set}))");
    let row = ask::rows(session, &ask, DOING)?.into_iter().next();
    let mut values = row
        .into_iter()
        .flatten()
        .map(|v| unhex(&v.unwrap_or_default()));
    let (there, back) = (
        values.next().unwrap_or_default(),
        values.next().unwrap_or_default(),
    );
    let characters: Vec<char> = String::from_utf8_lossy(&there).chars().collect();
    if characters.len() != bytes.len() || back.len() != bytes.len() {
        return Ok(How::Bytes);
    }
    let same = bytes.iter().zip(&back).zip(characters);
    let characters: Vec<_> = same
        .map(|((byte, back), c)| (byte == back).then_some(c))
        .collect();
    let ascii = (0..128_u8).all(|b| characters.get(usize::from(b)) == Some(&Some(char::from(b))));
    Ok(match (single, ascii) {
        (true, _) => How::Single(Rc::new(Single { characters, ascii })),
        (false, true) => How::Ascii,
        (false, false) => How::Bytes,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    pairs
        .iter()
        .map(|[a, b]| digit(*a) << 4 | digit(*b))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_member_is_found() {
        for empty in [
            "enum('')",
            "enum('a','')",
            "set('','b')",
            "enum('''','')",
            "enum('a'',','')",
        ] {
            assert!(has_empty_member(empty), "{empty}");
        }
        for none in [
            "enum('a')",
            "enum('''')",
            "enum('''''','a''')",
            "enum('a','(,'')')",
            "set('a,''')",
        ] {
            assert!(!has_empty_member(none), "{none}");
        }
    }
}
