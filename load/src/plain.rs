//! Loads a plain dump by several sessions. One thread reads it and runs its statements in their order; rows that are written out
//! go to whoever is free, and keys are made afterwards. What is not of a form that clients write waits until all before it is
//! done, and then runs as the client would have run it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dump::{Compress, sql};
use wire::Stop;

use crate::definition;
use crate::driver::{self, Loaded, Phase};
use crate::error::Error;
use crate::kind::{Assigned, Kind, kind};
use crate::queue::{Job, Queue};
use crate::refusal::is_held;
use crate::rows::sets_of;
use crate::session::{Open, Session, Warning};
use crate::split::Splitter;
use crate::survey::Shape;
use crate::values;
use crate::work::{Progress, State, TablePlan, Work};

/// Bytes of rows that go to a session at once, if there are as many of a table.
const BATCH: usize = 1 << 20;
/// Bytes of rows that wait for a session or are being loaded.
const HELD: usize = 8 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Settings of a session by which rows may become others.
const OF_ROWS: [&str; 12] = [
    "character_set_client",
    "character_set_connection",
    "check_constraint_checks",
    "collation_connection",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "innodb_strict_mode",
    "names",
    "sql_mode",
    "system_versioning_insert_history",
    "time_zone",
    "unique_checks",
];
/// Settings by which they do not.
const NOT_OF_ROWS: [&str; 8] = [
    "autocommit",
    "character_set_results",
    "default_storage_engine",
    "information_schema_stats_expiry",
    "note_verbosity",
    "sql_notes",
    "sql_quote_show_create",
    "storage_engine",
];

/// A plain dump, and how it is loaded.
pub struct Plain<'a> {
    /// Opens connections of which the server may be silent for as long as a statement takes.
    pub patient: Open<'a>,
    /// The text, as it is sent.
    pub text: &'a mut dyn Read,
    /// What a first reading of it found.
    pub shape: Shape,
    /// The database in use at its beginning, which exists.
    pub database: Option<String>,
    /// Sessions that load, 1 to 16.
    pub sessions: usize,
    /// Told what is done next.
    pub phase: &'a dyn Fn(Phase),
    /// Told how far it is.
    pub progress: &'a (dyn Fn(&Progress<'_>) + Sync),
    /// A target that has no space, or is used by others, is waited for so long.
    pub patience: Duration,
    /// Told what is waited for.
    pub waiting: &'a (dyn Fn(&str) + Sync),
}

impl Plain<'_> {
    /// Loads it.
    ///
    /// # Errors
    /// It can't be read, or the target refuses.
    pub fn run(self, open: Open<'_>, stop: &Stop) -> Result<Loaded, Error> {
        let mut control = Session::open(self.patient, &[])
            .map_err(|e| Error::wire("opening a session of the target", e))?;
        if let Some(database) = &self.database {
            driver::enter(&mut control, database)?;
        }
        let local = control.ask("SELECT @@local_infile");
        let local = local.is_ok_and(|rows| rows == [["1"]]);
        (self.phase)(Phase::Definitions);
        let mut reader = Reader::new(self.text);
        let mut settings = vec![];
        let first = loop {
            let Some(of) = reader.next()? else { break None };
            let statement = reader.splitter.text(of.clone());
            let kind = kind(statement);
            if !matches!(kind, Kind::Set(_)) {
                break Some((of, kind));
            }
            driver::run(&mut control, statement)?;
            settings.push(statement.to_vec());
            reader.splitter.heed(&kind);
        };
        let work = Work {
            open,
            patient: self.patient,
            settings: &settings,
            stop,
            journal: None,
            tables: Mutex::default(),
            frames: &[],
            compress: Compress::None,
            queue: Queue::in_work(HELD),
            local: AtomicBool::new(local),
            state: Mutex::new(State {
                by_insert: (!local).then(|| "local_infile is off".to_owned()),
                ..State::default()
            }),
            progress: self.progress,
            raw: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            patience: self.patience,
            waiting: self.waiting,
            most: AtomicUsize::new(usize::MAX),
            parts: Mutex::default(),
        };
        let sessions = self.sessions.clamp(1, 16);
        let mut by_statements = None;
        std::thread::scope(|scope| {
            let loading: Vec<_> = (0..sessions)
                .map(|_| scope.spawn(|| work.frames()))
                .collect();
            let mut load = InOrder {
                utf8: reader.splitter.settings().get("names") == Some("utf8mb4"),
                settings: fingerprint(&mut control),
                work: &work,
                control,
                sessions,
                keep: self.shape.keep,
                phase: self.phase,
                database: self.database.clone().unwrap_or_default(),
                index: BTreeMap::new(),
                filled: vec![],
                batch: None,
                settled: 0,
                sealed: 0,
                unsure: true,
                same: false,
                unknown: false,
                by_statements: None,
            };
            let done = load.all(&mut reader, first, stop);
            by_statements = load.by_statements.take();
            match done {
                Ok(()) => work.queue.close(),
                Err(e) => work.failed(e),
            }
            driver::join(&work, loading);
        });
        driver::failure(&work)?;
        let mut loaded = driver::loaded(work, 0);
        loaded.by_statements = by_statements;
        Ok(loaded)
    }
}

/// Reads statements.
struct Reader<'a> {
    text: &'a mut dyn Read,
    splitter: Splitter,
    buffer: Vec<u8>,
    ended: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a mut dyn Read) -> Self {
        Self {
            text,
            splitter: Splitter::default(),
            buffer: vec![0; CHUNK],
            ended: false,
        }
    }

    fn next(&mut self) -> Result<Option<std::ops::Range<usize>>, Error> {
        loop {
            let next = self.splitter.next();
            if let Some(of) = next.map_err(|flaw| Error::Form(format!("the dump {flaw}")))? {
                return Ok(Some(of));
            }
            if self.ended {
                return Ok(None);
            }
            match self.text.read(&mut self.buffer) {
                Ok(0) => {
                    self.ended = true;
                    self.splitter.finish();
                }
                Ok(n) => self.splitter.feed(&self.buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::source("reading the dump", e)),
            }
        }
    }
}

/// What the server says of a session's settings; `None` where it does not say.
fn fingerprint(session: &mut Session) -> Option<Vec<Vec<String>>> {
    let names: Vec<String> = OF_ROWS.iter().map(|n| sql::literal(n)).collect();
    let asked = format!(
        "SHOW SESSION VARIABLES WHERE Variable_name IN ({})",
        names.join(", ")
    );
    session.ask(&asked).ok().filter(|rows| !rows.is_empty())
}

/// How the rows of a table go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To whichever session is free.
    Any,
    /// To one session at a time, in their order.
    Alone,
    /// In their order with all else.
    Here,
}

/// Rows that are gathered.
struct Batch {
    table: usize,
    alone: bool,
    rows: u64,
    text: Vec<u8>,
}

/// The statements in their order.
struct InOrder<'w, 'a> {
    work: &'w Work<'a>,
    control: Session,
    sessions: usize,
    keep: bool,
    phase: &'w dyn Fn(Phase),
    /// The text is UTF-8.
    utf8: bool,
    /// What the settings were when the sessions began.
    settings: Option<Vec<Vec<String>>>,
    /// The database in use.
    database: String,
    /// Tables by database and name, as the dump makes them.
    index: BTreeMap<(String, String), usize>,
    filled: Vec<Way>,
    batch: Option<Batch>,
    /// Tables before this one have their keys.
    settled: usize,
    /// Tables before this one may have triggers.
    sealed: usize,
    /// Something was set since the settings were compared.
    unsure: bool,
    /// They were the same then.
    same: bool,
    /// Something was set that is not known.
    unknown: bool,
    /// The first words of the first statement that may have changed rows and is none of rows.
    by_statements: Option<String>,
}

impl InOrder<'_, '_> {
    fn all(
        &mut self,
        reader: &mut Reader<'_>,
        first: Option<(std::ops::Range<usize>, Kind)>,
        stop: &Stop,
    ) -> Result<(), Error> {
        let mut next = first;
        loop {
            let (of, kind) = match next.take() {
                Some(first) => first,
                None => match reader.next()? {
                    Some(of) => (of.clone(), kind(reader.splitter.text(of))),
                    None => break,
                },
            };
            if stop.is_stopped() {
                return Err(Error::Stopped);
            }
            self.statement(&kind, reader.splitter.text(of))?;
            reader.splitter.heed(&kind);
        }
        self.settle()
    }

    fn statement(&mut self, kind: &Kind, statement: &[u8]) -> Result<(), Error> {
        if *kind == Kind::Insert {
            return self.insert(statement);
        }
        self.give()?;
        match kind {
            Kind::Set(all) => self.set(all, statement),
            Kind::Use(database) => {
                self.database.clone_from(database);
                driver::enter(&mut self.control, database)
            }
            Kind::Table => self.table(statement),
            Kind::Keys { table, enable } => self.keys(table, *enable, statement),
            Kind::Apart | Kind::Commit => self.run(None, statement),
            Kind::Drop(table) => {
                let key = (self.database.clone(), table.clone());
                if self.index.remove(&key).is_some() {
                    self.settle()?;
                }
                self.run(None, statement)
            }
            Kind::Trigger => {
                self.work.queue.drain()?;
                self.sealed = self.filled.len();
                self.run(None, statement)
            }
            // Locks are there for others, and would be held against the sessions.
            Kind::Lock => Ok(()),
            Kind::Insert | Kind::Transaction | Kind::Foreign | Kind::Other | Kind::Definition => {
                if *kind != Kind::Definition {
                    self.changed_by(statement);
                }
                self.settle()?;
                self.run(None, statement)
            }
        }
    }

    /// Runs a statement in its place.
    fn run(&mut self, table: Option<usize>, statement: &[u8]) -> Result<(), Error> {
        let doing = driver::doing(statement);
        let warnings = self.granted(&doing, statement);
        self.work
            .heard(table, warnings.map_err(|e| Error::wire(doing, e))?);
        Ok(())
    }

    /// Runs a statement. One that others held off has done nothing, and is run again.
    fn granted(&mut self, doing: &str, statement: &[u8]) -> Result<Vec<Warning>, wire::Error> {
        let mut since = None;
        loop {
            match driver::executed(&mut self.control, statement) {
                Err(e) if is_held(&e) && self.work.waits(&mut since, doing, &e) => {}
                done => return done,
            }
        }
    }

    fn changed_by(&mut self, statement: &[u8]) {
        self.by_statements
            .get_or_insert_with(|| driver::words(statement));
    }

    fn set(&mut self, all: &[Assigned], statement: &[u8]) -> Result<(), Error> {
        for one in all {
            match one {
                Assigned::User(..) => {}
                Assigned::Session(name, _) if OF_ROWS.contains(&name.as_str()) => {
                    self.unsure = true;
                }
                Assigned::Session(name, _) if NOT_OF_ROWS.contains(&name.as_str()) => {}
                Assigned::Session(..) | Assigned::Else => self.unknown = true,
            }
        }
        if self.unknown {
            self.settle()?;
        }
        self.run(None, statement)
    }

    /// Makes a table without the keys that are better made of all its rows.
    fn table(&mut self, statement: &[u8]) -> Result<(), Error> {
        let Some(definition) = definition::definition(statement, self.keep) else {
            self.settle()?;
            return self.run(None, statement);
        };
        let sets = if self.utf8 {
            sets_of(&definition.columns)
        } else {
            &[]
        };
        let mut plan = TablePlan {
            database: self.database.clone(),
            definition,
            sets,
            transactional: false,
            bytes: 0,
        };
        let doing = format!("making table {}", plan.shown());
        let made = self.granted(&doing, &plan.definition.create);
        let warnings = made.map_err(|e| Error::wire(&doing, e))?;
        let asked = is_transactional(&mut self.control, &plan);
        let transactional = asked.map_err(|e| Error::wire(&doing, e))?;
        plan.transactional = transactional;
        let definition = &plan.definition;
        let way = if !definition.understood || definition.versioned {
            Way::Here
        } else if transactional && definition.ordered {
            Way::Any
        } else {
            Way::Alone
        };
        let key = (self.database.clone(), definition.name.clone());
        let number = self.filled.len();
        self.index.insert(key, number);
        self.filled.push(way);
        let mut tables = self
            .work
            .tables
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        tables.push(Arc::new(plan));
        drop(tables);
        self.work.heard(Some(number), warnings);
        Ok(())
    }

    /// A table that takes nothing back lets its keys rest while rows come in; to others this means nothing.
    fn keys(&mut self, table: &str, enable: bool, statement: &[u8]) -> Result<(), Error> {
        let key = (self.database.clone(), table.to_owned());
        let number = self.index.get(&key).copied();
        match number.and_then(|n| self.work.table(n)) {
            Some(plan) if plan.transactional => return Ok(()),
            Some(_) if enable => self.work.queue.drain()?,
            Some(_) => {}
            None => self.settle()?,
        }
        self.run(number, statement)
    }

    fn insert(&mut self, statement: &[u8]) -> Result<(), Error> {
        let Some((table, way, rows)) = self.written_out(statement) else {
            // What else it does, only the server knows.
            self.changed_by(statement);
            self.settle()?;
            return self.run(None, statement);
        };
        if self.unsure {
            self.unsure = false;
            let now = fingerprint(&mut self.control);
            self.same = now.is_some() && now == self.settings;
        }
        if way == Way::Here || self.unknown || !self.same {
            self.give()?;
            // Rows before these may be on their way.
            self.work.queue.drain()?;
            let doing = || "loading rows in their order".to_owned();
            let done = self.control.execute(statement);
            let done = done.map_err(|e| Error::wire(doing(), e))?;
            let mut warnings: Vec<Warning> = vec![];
            if done.warnings > 0 {
                let heard = self.control.warnings();
                warnings = heard.map_err(|e| Error::wire(doing(), e))?;
            }
            self.work.loaded(table, done.affected, None);
            self.work.heard(Some(table), warnings);
            if let Some(plan) = self.work.table(table) {
                let raw = statement.len() as u64;
                self.work.progress(&plan, done.affected, raw);
            }
            return Ok(());
        }
        if self
            .batch
            .as_ref()
            .is_some_and(|batch| batch.table != table)
        {
            self.give()?;
        }
        let batch = self.batch.get_or_insert_with(|| Batch {
            table,
            alone: way == Way::Alone,
            rows: 0,
            text: Vec::with_capacity(BATCH),
        });
        batch.rows += rows;
        batch.text.extend_from_slice(statement);
        batch.text.extend_from_slice(b";\n");
        if batch.text.len() >= BATCH {
            self.give()?;
        }
        Ok(())
    }

    /// The table, the way and the number of rows that are written out, of a table of the dump that has no triggers.
    fn written_out(&self, statement: &[u8]) -> Option<(usize, Way, u64)> {
        let insert = values::insert(statement)?;
        let text = statement.get(insert.rows)?;
        let key = (self.database.clone(), insert.table);
        let number = *self.index.get(&key)?;
        if number < self.sealed {
            return None;
        }
        let way = *self.filled.get(number)?;
        if way == Way::Here {
            return Some((number, way, values::rows(text, None, None)?));
        }
        let plan = self.work.table(number)?;
        let definition = &plan.definition;
        let visible = || {
            let all = definition.columns.iter().map(|c| &c.name);
            all.filter(|name| !definition.invisible.contains(name))
        };
        let counter = definition.counter.as_ref();
        let (width, counter) = match &insert.columns {
            None if !definition.invisible.is_empty() => return None,
            None => (
                visible().count(),
                visible().position(|c| Some(c) == counter),
            ),
            Some(named) => {
                let mut all = definition.columns.iter().map(|c| &c.name);
                if !all.all(|c| named.contains(c) || definition.computed.contains(c)) {
                    return None;
                }
                (named.len(), named.iter().position(|c| Some(c) == counter))
            }
        };
        Some((number, way, values::rows(text, Some(width), counter)?))
    }

    /// Gives what is gathered to a session.
    fn give(&mut self) -> Result<(), Error> {
        let Some(batch) = self.batch.take() else {
            return Ok(());
        };
        self.work.queue.give(Job {
            frame: 0,
            table: batch.table,
            alone: batch.alone,
            last: false,
            rows: batch.rows,
            stored: batch.text,
        })
    }

    /// Waits for all rows that came, and makes the keys of their tables.
    fn settle(&mut self) -> Result<(), Error> {
        self.give()?;
        self.work.queue.drain()?;
        let from = std::mem::replace(&mut self.settled, self.filled.len());
        if from == self.filled.len() {
            return Ok(());
        }
        (self.phase)(Phase::Keys);
        driver::keys(self.work, self.sessions, (from, false));
        driver::failure(self.work)?;
        let mut session = self.work.session(self.work.patient)?;
        driver::foreign_keys(self.work, &mut session, (from, false))?;
        (self.phase)(Phase::Rows);
        Ok(())
    }
}

/// The target takes back what is not committed of this table.
fn is_transactional(control: &mut Session, table: &TablePlan) -> Result<bool, wire::Error> {
    let name = &table.definition.name;
    // A server may keep names in lower case.
    let asked = format!(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({}, {}) AND TABLE_NAME IN ({}, {}) AND ENGINE IN (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES')",
        sql::literal(&table.database),
        sql::literal(&table.database.to_lowercase()),
        sql::literal(name),
        sql::literal(&name.to_lowercase()),
    );
    Ok(!control.ask(&asked)?.is_empty())
}
