//! Rows of a chunk, as INSERT statements.

use wire::Connection;
use xxhash_rust::xxh3::xxh3_128;

use crate::FRAME;
use crate::column::{self, Class, Sets};
use crate::error::Error;
use crate::parts::{Chunk, Piece, Section, Server, Sum, Table};
use crate::row::{self, How};
use crate::snapshot::SAVEPOINT;
use crate::sql;

/// Bytes of a statement: what clients write by default.
const STATEMENT: usize = 1 << 20;
/// What ends a statement.
const END: &[u8] = b";\n";
/// ER_SP_DOES_NOT_EXIST, of a savepoint too.
const NO_SAVEPOINT: u16 = 1305;
/// Room for the text before and after a table's rows, in bytes.
const BESIDE: usize = 4 << 10;

/// Takes a piece, and if it is the last of its chunk; gives memory for the next one.
pub type Emit<'a> = &'a mut dyn FnMut(Piece, bool) -> Result<Vec<u8>, Error>;

/// Reads chunks over one session, with buffers that are used again.
#[derive(Debug, Default)]
pub struct Reader {
    text: Vec<u8>,
    plan: Option<Plan>,
    sets: Sets,
}

/// How a table is read.
#[derive(Debug)]
struct Plan {
    database: String,
    table: String,
    /// Until the condition.
    select: String,
    /// Until the first row.
    insert: Vec<u8>,
    /// What the server says of each that is selected.
    announced: Vec<wire::Column>,
    hows: Vec<How>,
    /// Where the key is among them.
    key: Vec<usize>,
}

impl Reader {
    /// Reads a chunk of a table, and gives its text in pieces of at most [`FRAME`] bytes; a larger row is a piece of its own.
    /// `emit` is told which is the last, and gives memory for the next one.
    /// The session is one of a [`crate::Snapshot`]; its database is in use where the table names none. It keeps the table's
    /// definition from being changed until a chunk of another table is read; on MariaDB with a binary log, until it ends.
    ///
    /// # Errors
    /// The table was changed or is gone, the server does not do what it should, the connection is lost, or `emit` fails.
    /// After any of them the session is of no use.
    pub fn read(
        &mut self,
        session: &mut Connection,
        server: &Server,
        table: &Table,
        chunk: &Chunk,
        emit: Emit<'_>,
    ) -> Result<Sum, Error> {
        let failed = Failed::of(table);
        let wrap = |e| failed.wrap(e);
        let last = self.plan.take();
        let same = |plan: &Plan| plan.database == table.database && plan.table == table.name;
        let of_table = last.as_ref().is_some_and(same);
        if last.is_some() && !of_table {
            release(session).map_err(wrap)?;
        }
        if !of_table {
            same_definition(session, table, &failed)?;
        }
        // Each value comes in the character set of its column, and without a conversion that could lose something.
        let raw = "SET @dump_results = @@character_set_results, character_set_results = NULL";
        session.execute(raw).map_err(wrap)?;
        let plan = match last {
            Some(plan) if of_table => plan,
            _ => self.plan(session, server, table, &failed)?,
        };
        let force = match (&table.key, chunk.condition.is_empty()) {
            (Some(key), false) => format!(" FORCE INDEX ({})", sql::name(&key.name)),
            _ => String::new(),
        };
        let statement = format!("{}{force} {}", plan.select, chunk.condition);
        let mut rows = session.query(&statement).map_err(wrap)?;
        if rows.columns().is_empty() {
            return Err(wrap(wire::Error::Malformed("it gives no rows")));
        }
        if rows.columns() != plan.announced {
            return Err(failed.changed("its columns are of other types than they were"));
        }
        let mut text = Text::new(&plan, std::mem::take(&mut self.text));
        let mut sum = Sum::default();
        while let Some(mut row) = rows.read().map_err(wrap)? {
            let start = text.begin(row.len(), emit)?;
            for (n, how) in plan.hows.iter().enumerate() {
                if n > 0 {
                    text.bytes.push(b',');
                }
                match row.value().map_err(wrap)? {
                    None => text.bytes.extend_from_slice(b"NULL"),
                    Some(value) => how
                        .write(value, &mut text.bytes)
                        .map_err(|row::Odd| failed.odd(&plan.announced, n))?,
                }
            }
            if !row.is_empty() {
                return Err(wrap(wire::Error::Malformed(
                    "a row goes on after its last column",
                )));
            }
            text.bytes.push(b')');
            let written = text.bytes.get(start..).unwrap_or_default();
            sum.rows += 1;
            sum.hash = sum.hash.wrapping_add(xxh3_128(written));
            text.end(start, emit)?;
        }
        self.text = text.finish(emit)?;
        let back = "SET character_set_results = @dump_results";
        session.execute(back).map_err(wrap)?;
        self.plan = Some(plan);
        Ok(sum)
    }

    fn plan(
        &mut self,
        session: &mut Connection,
        server: &Server,
        table: &Table,
        failed: &Failed,
    ) -> Result<Plan, Error> {
        let columns = column::written(table, server, &failed.table)?;
        let selected: Vec<_> = columns.iter().map(|c| c.selected.as_str()).collect();
        let from = qualified(table);
        let history = if table.versioned {
            " FOR SYSTEM_TIME ALL"
        } else {
            ""
        };
        let select = format!("SELECT {} FROM {from}{history}", selected.join(", "));
        let named = table.columns.iter().any(|c| c.generated || c.invisible);
        let names: Vec<_> = columns.iter().map(|c| c.name.as_str()).collect();
        let into = sql::name(&table.name);
        let insert = if named {
            format!("INSERT INTO {into} ({}) VALUES\n", names.join(", "))
        } else {
            format!("INSERT INTO {into} VALUES\n")
        };
        let keys = table.key.iter().flat_map(|key| &key.columns);
        let keys: Option<Vec<_>> = keys
            .map(|key| names.iter().position(|name| *name == sql::name(key)))
            .collect();
        let rows = session.query(&format!("{select} LIMIT 0"));
        let rows = rows.map_err(|e| failed.wrap(e))?;
        let announced = rows.columns().to_vec();
        rows.finish().map_err(|e| failed.wrap(e))?;
        if announced.len() != columns.len() {
            return Err(failed.wrap(wire::Error::Malformed(
                "there are not as many columns as were asked for",
            )));
        }
        let mut hows = vec![];
        for (column, announced) in columns.iter().zip(&announced) {
            if !column.class.fits(announced) {
                return Err(failed.changed(&format!(
                    "column {} is not of type {}",
                    column.name, column.data_type
                )));
            }
            let how = match column.class {
                Class::Text => self.sets.how(session, server, announced.collation),
                class => Ok(class.how()),
            };
            hows.push(how?);
        }
        Ok(Plan {
            database: table.database.clone(),
            table: table.name.clone(),
            select,
            insert: insert.into_bytes(),
            announced,
            hows,
            key: keys.unwrap_or_default(),
        })
    }
}

/// The table is still what its definition in the dump says. From here on nobody changes it until the session lets go of it:
/// columns of one type that swapped their names could not be told by the rows.
fn same_definition(session: &mut Connection, table: &Table, failed: &Failed) -> Result<(), Error> {
    let from = qualified(table);
    let hold = format!("SELECT 1 FROM {from} LIMIT 0");
    session.execute(&hold).map_err(|e| failed.wrap(e))?;
    let shown = (|| {
        let mut rows = session.query(&format!("SHOW CREATE TABLE {from}"))?;
        let mut shown = None;
        while let Some(mut row) = rows.read()? {
            row.value()?;
            shown = row.value()?.map(<[u8]>::to_vec);
        }
        Ok(shown.unwrap_or_default())
    })();
    let shown = shown.map_err(|e| failed.wrap(e))?;
    if sql::columns(&shown) == sql::columns(&table.create) {
        return Ok(());
    }
    Err(failed.changed("its columns are others than when the dump began"))
}

/// The table, with its database unless that is in use.
fn qualified(table: &Table) -> String {
    if table.database.is_empty() {
        sql::name(&table.name)
    } else {
        sql::table(&table.database, &table.name)
    }
}

/// Lets go of the tables that the session has read, so that others may change them; what it sees stays.
fn release(session: &mut Connection) -> Result<(), wire::Error> {
    match session.execute(&format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}")) {
        Err(e) if e.number() == Some(NO_SAVEPOINT) => Ok(()),
        done => done.map(drop),
    }
}

/// Says what failed.
struct Failed {
    table: String,
}

impl Failed {
    fn of(table: &Table) -> Self {
        let table = if table.database.is_empty() {
            table.name.clone()
        } else {
            format!("{}.{}", table.database, table.name)
        };
        Self { table }
    }

    fn wrap(&self, e: wire::Error) -> Error {
        Error::of_table(format!("reading table {}", self.table), &self.table, e)
    }

    fn changed(&self, how: &str) -> Error {
        Error::changed(&self.table, how)
    }

    fn odd(&self, columns: &[wire::Column], at: usize) -> Error {
        let column = columns.get(at).map_or("", |column| &column.name);
        Error::wire(
            format!("reading column {column} of table {}", self.table),
            wire::Error::Malformed("a number is none"),
        )
    }
}

/// The text of a chunk, cut into statements and pieces.
struct Text<'a> {
    plan: &'a Plan,
    bytes: Vec<u8>,
    /// Rows in it.
    rows: u64,
    /// Where the statement at hand begins, and the rows in it.
    statement: usize,
    statement_rows: u64,
    /// Where what stands before the row at hand begins.
    before: usize,
    first_key: String,
}

impl<'a> Text<'a> {
    fn new(plan: &'a Plan, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self {
            plan,
            bytes,
            rows: 0,
            statement: 0,
            statement_rows: 0,
            before: 0,
            first_key: String::new(),
        }
    }

    /// A row of so many bytes begins; gives its place. Where its text, which is seldom longer than twice that, may be one
    /// too many, what comes before is closed first.
    #[inline]
    fn begin(&mut self, row: usize, emit: Emit<'_>) -> Result<usize, Error> {
        let needed = self.plan.insert.len() + END.len() + row.saturating_mul(2);
        if self.bytes.len().saturating_add(needed) > FRAME.min(self.bytes.capacity()) {
            self.make_room(needed, emit)?;
        }
        Ok(self.open())
    }

    #[cold]
    fn make_room(&mut self, needed: usize, emit: Emit<'_>) -> Result<(), Error> {
        if self.rows > 0 && self.bytes.len().saturating_add(needed) > FRAME {
            self.close();
            self.emit(false, emit)?;
        }
        let filled = self.bytes.len().saturating_add(needed);
        if filled > FRAME / 4 {
            // At once, and no more than that: memory grows by doubling else.
            let whole = filled.max(FRAME + BESIDE);
            self.bytes.reserve_exact(whole - self.bytes.len());
        }
        Ok(())
    }

    /// What stands before a row.
    fn open(&mut self) -> usize {
        self.before = self.bytes.len();
        if self.statement_rows == 0 {
            self.statement = self.before;
            self.bytes.extend_from_slice(&self.plan.insert);
        } else {
            self.bytes.extend_from_slice(b",\n");
        }
        let start = self.bytes.len();
        self.bytes.push(b'(');
        start
    }

    /// The row at this place is whole. Where it is one too many, what comes before is closed first.
    #[inline]
    fn end(&mut self, start: usize, emit: Emit<'_>) -> Result<(), Error> {
        let end = self.bytes.len();
        let closed = end + self.plan.insert.len() + END.len();
        if self.rows > 0 && closed > FRAME {
            let row = self.cut(start);
            self.emit(false, emit)?;
            self.begin_with(&row);
        } else if self.statement_rows > 0 && end - self.statement > STATEMENT {
            let row = self.cut(start);
            self.begin_with(&row);
        }
        if self.rows == 0 && !self.plan.key.is_empty() {
            let row = self.bytes.get(self.plan.insert.len()..);
            self.first_key = row::values(row.unwrap_or_default(), &self.plan.key);
        }
        self.rows += 1;
        self.statement_rows += 1;
        Ok(())
    }

    /// Takes the last row off, and ends the statement before it.
    #[cold]
    fn cut(&mut self, start: usize) -> Vec<u8> {
        let row = self.bytes.split_off(start);
        self.bytes.truncate(self.before);
        self.close();
        row
    }

    #[cold]
    fn begin_with(&mut self, row: &[u8]) {
        self.open();
        self.bytes.pop();
        self.bytes.extend_from_slice(row);
    }

    fn close(&mut self) {
        if self.statement_rows > 0 {
            self.bytes.extend_from_slice(END);
            self.statement_rows = 0;
        }
    }

    #[cold]
    fn emit(&mut self, last: bool, emit: Emit<'_>) -> Result<(), Error> {
        let piece = Piece {
            section: Section::Data,
            database: self.plan.database.clone(),
            table: self.plan.table.clone(),
            rows: std::mem::take(&mut self.rows),
            first_key: std::mem::take(&mut self.first_key),
            text: std::mem::take(&mut self.bytes),
        };
        self.bytes = emit(piece, last)?;
        self.bytes.clear();
        Ok(())
    }

    /// Gives what is left, and the buffer back.
    fn finish(mut self, emit: Emit<'_>) -> Result<Vec<u8>, Error> {
        self.close();
        if self.rows > 0 {
            self.emit(true, emit)?;
        }
        Ok(self.bytes)
    }
}
