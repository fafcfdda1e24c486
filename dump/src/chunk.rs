//! Ranges of a table's key, each of some bytes, none of which overlap and which leave nothing out.

use wire::Connection;

use crate::ask;
use crate::error::Error;
use crate::parts::{Chunk, Key, Table, TableKind};
use crate::sql;

/// More chunks than this are not made of a table; they become larger.
const CHUNKS: u64 = 100_000;
/// Where the server's estimate of rows is wrong, a table is cut at most so many times as often as its bytes ask for.
const WRONG: usize = 4;

/// What can be compared: how it is selected, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// Digits.
    Integer,
    /// Digits and a point.
    Decimal,
    /// BIT, as a number.
    Bits,
    /// Text of the column's character set, as bytes.
    Text,
    Bytes,
    /// In quotes: dates, addresses.
    Plain,
}

impl Bound {
    fn of(data_type: &str) -> Option<Self> {
        Some(match data_type {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Self::Integer,
            "decimal" => Self::Decimal,
            "bit" => Self::Bits,
            "char" | "varchar" => Self::Text,
            "binary" | "varbinary" => Self::Bytes,
            "date" | "time" | "datetime" | "timestamp" | "year" | "uuid" | "inet4" | "inet6" => {
                Self::Plain
            }
            // FLOAT and DOUBLE are not what they are shown as; ENUM is not in the order of its text.
            _ => return None,
        })
    }

    fn selected(self, name: &str) -> String {
        match self {
            Self::Integer | Self::Decimal | Self::Plain => name.to_owned(),
            Self::Bits => format!("{name}+0"),
            Self::Text => format!("CONCAT('_', CHARSET({name}), ' X''', HEX({name}), '''')"),
            Self::Bytes => format!("CONCAT('X''', HEX({name}), '''')"),
        }
    }

    /// As the server takes it; `None` for what no value of its type can be.
    fn literal(self, value: &str) -> Option<String> {
        let number = |more: &[u8]| {
            let digits = value.strip_prefix('-').unwrap_or(value);
            !digits.is_empty()
                && digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || more.contains(&b))
        };
        let bytes = |value: &str| {
            let digits = value.strip_prefix("X'").and_then(|v| v.strip_suffix('\''));
            digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        match self {
            Self::Integer | Self::Bits => number(b"").then(|| value.to_owned()),
            Self::Decimal => number(b".").then(|| value.to_owned()),
            Self::Plain => Some(sql::literal(value)),
            Self::Bytes => bytes(value).then(|| value.to_owned()),
            Self::Text => {
                let (set, rest) = value.strip_prefix('_')?.split_once(' ')?;
                let plain = set.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                (plain && bytes(rest)).then(|| value.to_owned())
            }
        }
    }
}

/// Cuts a table into chunks of some `size` bytes each by the server's estimate; gives all but the last as soon as they are
/// known, in their order, and the last one back. A table without a key, or one that no snapshot holds, is one chunk.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn chunks(
    session: &mut Connection,
    table: &Table,
    index: usize,
    size: u64,
    give: &mut dyn FnMut(Chunk),
) -> Result<Chunk, Error> {
    let whole = |condition| Chunk {
        table: index,
        part: 0,
        condition,
    };
    // Of a table without transactions only a single statement sees one moment.
    let key = table.key.as_ref();
    let Some(key) = key.filter(|_| table.kind == TableKind::Transactional) else {
        return Ok(whole(String::new()));
    };
    let order = names(&key.columns).join(", ");
    let columns = usable(table, key);
    let wanted = (table.bytes / size.max(1)).min(CHUNKS);
    if columns.is_empty() || wanted < 2 || table.rows < 2 {
        return Ok(whole(format!("ORDER BY {order}")));
    }
    let mut cutter = Cutter {
        session,
        table: from(table),
        index: format!("INDEX ({})", sql::name(&key.name)),
        shown: shown(table),
        rows: (table.rows / wanted).max(1),
        columns,
        order,
        chunk: Chunk {
            table: index,
            ..Chunk::default()
        },
        lower: None,
        give,
        room: usize::try_from(wanted)
            .unwrap_or_default()
            .saturating_mul(WRONG),
    };
    cutter.cut(&mut vec![])?;
    Ok(cutter.until(None))
}

fn names(columns: &[String]) -> Vec<String> {
    columns.iter().map(|column| sql::name(column)).collect()
}

fn shown(table: &Table) -> String {
    if table.database.is_empty() {
        table.name.clone()
    } else {
        format!("{}.{}", table.database, table.name)
    }
}

/// The table as a statement names it.
fn from(table: &Table) -> String {
    if table.database.is_empty() {
        sql::name(&table.name)
    } else {
        sql::table(&table.database, &table.name)
    }
}

/// The first columns of the key that can be compared, with their names in backquotes.
fn usable(table: &Table, key: &Key) -> Vec<(String, Bound)> {
    let of = |name: &String| {
        let column = table.columns.iter().find(|c| c.name == *name)?;
        Some((sql::name(name), Bound::of(&column.data_type)?))
    };
    key.columns.iter().map_while(of).collect()
}

/// The values of a bound, for the first columns of the key.
type Values = Vec<String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The bound and what comes after it.
    From,
    /// What comes before it.
    Below,
    /// What comes after it.
    After,
}

/// A comparison of rows that a server finds in an index: `(a > 1 OR (a = 1 AND b >= 2))`.
fn compare(columns: &[(String, Bound)], bound: &Values, side: Side) -> String {
    let mut all = vec![];
    let last = bound.len().saturating_sub(1);
    for (n, ((name, _), value)) in columns.iter().zip(bound).enumerate() {
        let sign = match side {
            Side::From if n == last => ">=",
            Side::From | Side::After => ">",
            Side::Below => "<",
        };
        let equal = columns.iter().zip(bound).take(n);
        let mut terms: Vec<_> = equal
            .map(|((name, _), value)| format!("{name} = {value}"))
            .collect();
        terms.push(format!("{name} {sign} {value}"));
        all.push(terms.join(" AND "));
    }
    if let [only] = all.as_slice() {
        return only.clone();
    }
    // What the first column alone says keeps the search within a part of the index.
    let outer = match (side, columns.first(), bound.first()) {
        (Side::Below, Some((name, _)), Some(value)) => format!("{name} <= {value} AND "),
        (_, Some((name, _)), Some(value)) => format!("{name} >= {value} AND "),
        _ => String::new(),
    };
    let each: Vec<_> = all.iter().map(|terms| format!("({terms})")).collect();
    format!("{outer}({})", each.join(" OR "))
}

/// Finds where a table is cut.
struct Cutter<'a> {
    session: &'a mut Connection,
    table: String,
    index: String,
    shown: String,
    /// Rows that a chunk should have.
    rows: u64,
    columns: Vec<(String, Bound)>,
    /// `ORDER BY` what.
    order: String,
    /// The chunk at hand, without its condition.
    chunk: Chunk,
    /// Where it begins; `None` at the first.
    lower: Option<Values>,
    give: &'a mut dyn FnMut(Chunk),
    /// Chunks that may be made at most.
    room: usize,
}

impl Cutter<'_> {
    /// Cuts the rows whose first columns have these values.
    fn cut(&mut self, equal: &mut Values) -> Result<(), Error> {
        match self.columns.get(equal.len()) {
            Some((_, Bound::Integer)) => self.split(equal),
            Some(_) => self.walk(equal),
            None => Ok(()),
        }
    }

    /// The chunk at hand, which ends before this bound, or with the table.
    fn until(&mut self, upper: Option<&Values>) -> Chunk {
        let conditions = [
            self.lower
                .as_ref()
                .map(|bound| compare(&self.columns, bound, Side::From)),
            upper.map(|bound| compare(&self.columns, bound, Side::Below)),
        ];
        let conditions: Vec<_> = conditions.into_iter().flatten().collect();
        let mut chunk = self.chunk.clone();
        chunk.condition = if conditions.is_empty() {
            format!("ORDER BY {}", self.order)
        } else {
            format!("WHERE {} ORDER BY {}", conditions.join(" AND "), self.order)
        };
        chunk
    }

    /// A cut before these values.
    fn bound(&mut self, values: Values) {
        let chunk = self.until(Some(&values));
        self.chunk.part += 1;
        self.lower = Some(values);
        (self.give)(chunk);
    }

    fn is_full(&self) -> bool {
        self.chunk.part >= self.room
    }

    fn doing(&self) -> String {
        format!("looking where table {} can be cut", self.shown)
    }

    /// The first row of an answer.
    fn first(&mut self, ask: &str) -> Result<Option<ask::Texts>, Error> {
        let rows = self.session.query(ask).and_then(ask::take);
        let rows = rows.map_err(|e| Error::of_table(self.doing(), &self.shown, e))?;
        Ok(rows.into_iter().next())
    }

    /// The column that is cut, after those that are equal.
    fn column(&self, equal: &Values) -> (String, Bound) {
        let column = self.columns.get(equal.len());
        column.cloned().unwrap_or((String::new(), Bound::Integer))
    }

    /// `a = 1 AND …`.
    fn terms(&self, equal: &Values) -> Vec<String> {
        let both = self.columns.iter().zip(equal);
        both.map(|((name, _), value)| format!("{name} = {value}"))
            .collect()
    }

    /// By an integer: its values are cut evenly, and cut again where the server guesses too many rows between two.
    fn split(&mut self, equal: &mut Values) -> Result<(), Error> {
        let (name, _) = self.column(equal);
        let mut clause = self.terms(equal).join(" AND ");
        if !clause.is_empty() {
            clause = format!(" WHERE {clause}");
        }
        let ask = format!(
            "SELECT MIN({name}), MAX({name}) FROM {} FORCE {}{clause}",
            self.table, self.index
        );
        let row = self.first(&ask)?;
        let mut ends = row.into_iter().flatten().map(|v| v?.parse::<i128>().ok());
        let (Some(Some(first)), Some(Some(last))) = (ends.next(), ends.next()) else {
            return Ok(());
        };
        // From the first to the last in order: what is too large is cut in two, and what is small is joined to what comes
        // before it.
        let most = self.rows.saturating_add(self.rows / 2);
        let (mut todo, mut open) = (vec![(first, last)], 0_u64);
        while let Some((from, to)) = todo.pop() {
            if self.is_full() {
                return Ok(());
            }
            let rows = self.guess(equal, &name, from, to)?;
            if rows > most && from < to {
                let middle = from + (to - from) / 2;
                todo.push((middle + 1, to));
                todo.push((from, middle));
                continue;
            }
            if open > 0 && open.saturating_add(rows) > most {
                let mut values = equal.clone();
                values.push(from.to_string());
                self.bound(values);
                open = 0;
            }
            open += rows;
            if rows > most && equal.len() + 1 < self.columns.len() {
                // One value has them all: the next column cuts them.
                equal.push(from.to_string());
                self.cut(equal)?;
                equal.pop();
            }
        }
        Ok(())
    }

    /// Rows between two values, as the server guesses from its index.
    fn guess(&mut self, equal: &Values, name: &str, from: i128, to: i128) -> Result<u64, Error> {
        let mut terms = self.terms(equal);
        terms.push(format!("{name} BETWEEN {from} AND {to}"));
        // Of an index that it is forced to use MySQL guesses nothing.
        let ask = format!(
            "EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {} USE {} WHERE {}",
            self.table,
            self.index,
            terms.join(" AND ")
        );
        let (doing, shown) = (self.doing(), self.shown.clone());
        let wrap = |e| Error::of_table(doing.clone(), &shown, e);
        let rows = self.session.query(&ask).map_err(wrap)?;
        let at = rows
            .columns()
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case("rows"));
        let first = ask::take(rows).map_err(wrap)?.into_iter().next();
        let value = at.and_then(|at| first?.get(at)?.clone());
        // Where no row can be there the server says so in other columns.
        Ok(value.and_then(|v| v.parse().ok()).unwrap_or_default())
    }

    /// By anything that has an order: from one row to the one so many rows on.
    fn walk(&mut self, equal: &mut Values) -> Result<(), Error> {
        let rest: Vec<_> = self.columns.iter().skip(equal.len()).cloned().collect();
        let selected: Vec<_> = rest
            .iter()
            .map(|(name, bound)| bound.selected(name))
            .collect();
        let order: Vec<_> = rest.iter().map(|(name, _)| name.as_str()).collect();
        let (selected, order) = (selected.join(", "), order.join(", "));
        let (mut last, mut strict): (Option<Values>, bool) = (None, false);
        while !self.is_full() {
            let mut terms = self.terms(equal);
            let side = if strict { Side::After } else { Side::From };
            terms.extend(last.as_ref().map(|last| compare(&rest, last, side)));
            let clause = if terms.is_empty() {
                String::new()
            } else {
                format!("WHERE {}", terms.join(" AND "))
            };
            let offset = if strict { 0 } else { self.rows };
            let ask = format!(
                "SELECT {selected} FROM {} FORCE {} {clause} ORDER BY {order} LIMIT 1 OFFSET {offset}",
                self.table, self.index
            );
            let Some(row) = self.first(&ask)? else {
                return Ok(());
            };
            let literals = row
                .iter()
                .zip(&rest)
                .map(|(value, (_, bound))| bound.literal(value.as_deref()?));
            let Some(values) = literals.collect::<Option<Values>>() else {
                return Err(Error::wire(
                    self.doing(),
                    wire::Error::Malformed("a key is none"),
                ));
            };
            // The key's first columns alone need not be unique: so many rows share them that there is no cut among them.
            strict = last.as_ref() == Some(&values);
            if !strict {
                let mut bound = equal.clone();
                bound.extend(values.iter().cloned());
                self.bound(bound);
                last = Some(values);
            }
        }
        Ok(())
    }
}
