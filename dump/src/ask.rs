//! Questions to a server, and their answers within bounds.

use wire::{Connection, Row, Rows};

use crate::error::Error;

/// More rows of one answer are not read.
const ROWS: usize = 10_000_000;

/// The values of a row, in their order.
pub(crate) struct Values<'a> {
    row: Row<'a>,
}

impl Values<'_> {
    /// The next one as bytes; NULL is `None`.
    pub(crate) fn bytes(&mut self) -> Result<Option<Vec<u8>>, wire::Error> {
        Ok(self.row.value()?.map(<[u8]>::to_vec))
    }

    /// The next one as text; NULL is empty.
    pub(crate) fn text(&mut self) -> Result<String, wire::Error> {
        let value = self.row.value()?.unwrap_or_default();
        std::str::from_utf8(value)
            .map(str::to_owned)
            .map_err(|_| wire::Error::Malformed("a name is not UTF-8"))
    }

    /// The next one as a number; what is none is 0.
    pub(crate) fn number(&mut self) -> Result<u64, wire::Error> {
        Ok(self.text()?.parse().unwrap_or(0))
    }
}

/// Asks, and makes something of each row.
pub(crate) fn each<T>(
    control: &mut Connection,
    sql: &str,
    mut take: impl FnMut(&mut Values<'_>) -> Result<T, wire::Error>,
) -> Result<Vec<T>, wire::Error> {
    let mut rows = control.query(sql)?;
    let mut all = vec![];
    while let Some(row) = rows.read()? {
        if all.len() == ROWS {
            return Err(wire::Error::Malformed("an answer has no end"));
        }
        all.push(take(&mut Values { row })?);
    }
    Ok(all)
}

/// The first value of each row, as text.
pub(crate) fn texts(
    control: &mut Connection,
    doing: &str,
    sql: &str,
) -> Result<Vec<String>, Error> {
    each(control, sql, |row| row.text()).map_err(|e| Error::wire(doing, e))
}

/// A row of SHOW CREATE: names and values of its columns.
pub(crate) struct Shown(Vec<(String, Option<Vec<u8>>)>);

impl Shown {
    /// The value of this column; nothing where it is NULL or not there.
    pub(crate) fn bytes(&mut self, column: &str) -> Option<Vec<u8>> {
        let found = self
            .0
            .iter_mut()
            .find(|(n, _)| n.eq_ignore_ascii_case(column))?;
        found.1.take()
    }

    /// The same as text.
    pub(crate) fn text(&mut self, column: &str) -> String {
        let bytes = self.bytes(column).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// SHOW CREATE of one thing.
pub(crate) fn show(control: &mut Connection, sql: &str) -> Result<Shown, wire::Error> {
    let mut rows = control.query(sql)?;
    let names: Vec<String> = rows.columns().iter().map(|c| c.name.clone()).collect();
    let mut shown = None;
    while let Some(mut row) = rows.read()? {
        let mut values = vec![];
        for name in &names {
            values.push((name.clone(), row.value()?.map(<[u8]>::to_vec)));
        }
        shown.get_or_insert(values);
    }
    shown
        .map(Shown)
        .ok_or(wire::Error::Malformed("SHOW CREATE gives nothing"))
}

/// Bytes of an answer that are taken.
const LIMIT: usize = 64 << 20;

/// A row, its values as text: bytes that are not UTF-8 are replaced, `None` is NULL.
pub(crate) type Texts = Vec<Option<String>>;

/// The rows of a statement. `doing` is such as "asking for the server's variables".
pub(crate) fn rows(
    session: &mut Connection,
    statement: &str,
    doing: &str,
) -> Result<Vec<Texts>, Error> {
    let answer = session.query(statement);
    answer.and_then(take).map_err(|e| Error::wire(doing, e))
}

/// The first value of the first row; `None` where there is none, or it is NULL.
pub(crate) fn value(
    session: &mut Connection,
    statement: &str,
    doing: &str,
) -> Result<Option<String>, Error> {
    let first = rows(session, statement, doing)?.into_iter().next();
    Ok(first.and_then(|row| row.into_iter().next().flatten()))
}

/// What is left of an answer.
pub(crate) fn take(mut rows: Rows<'_>) -> Result<Vec<Texts>, wire::Error> {
    let columns = rows.columns().len();
    let (mut all, mut bytes) = (vec![], 0_usize);
    while let Some(mut row) = rows.read()? {
        let mut values = Vec::with_capacity(columns);
        for _ in 0..columns {
            let value = row.value()?;
            bytes += value.map_or(0, <[u8]>::len) + size_of::<Option<String>>();
            values.push(value.map(|v| String::from_utf8_lossy(v).into_owned()));
        }
        if bytes > LIMIT {
            return Err(wire::Error::TooLarge {
                what: "an answer",
                size: bytes as u64,
                limit: LIMIT as u64,
            });
        }
        all.push(values);
    }
    Ok(all)
}
