//! What each session of a load does: frames, then keys.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dump::{Compress, Frame, Sum, sql};
use wire::Stop;

use crate::definition::Definition;
use crate::error::Error;
use crate::journal::Journal;
use crate::queue::{Job, Queue};
use crate::rows::{self, Set};
use crate::session::{Open, Session, Warning};
use crate::source;
use crate::statements::Statements;

/// A target that went away is waited for so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(500);
/// ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK.
const LOCKED: [u16; 2] = [1205, 1213];
/// A server that shuts down: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED.
const ENDING: [u16; 2] = [1053, 1927];
/// A frame is tried so often against others' locks.
const TRIES: usize = 5;
/// LOAD DATA LOCAL is switched off: ER_NOT_ALLOWED_COMMAND, ER_CLIENT_LOCAL_FILES_DISABLED.
const NOT_LOCAL: [u16; 2] = [1148, 3948];
/// ER_DUP_KEYNAME.
const KEY_THERE: u16 = 1061;
/// So many warnings of a table are kept.
const KEPT: usize = 64;

/// A table that is loaded.
pub(crate) struct TablePlan {
    /// Its database in the target.
    pub(crate) database: String,
    pub(crate) definition: Definition,
    /// How its rows are sent; `None` as INSERT.
    pub(crate) set: Option<Set>,
    /// The target takes back what was not committed.
    pub(crate) transactional: bool,
    /// Bytes of its text.
    pub(crate) bytes: u64,
}

impl TablePlan {
    pub(crate) fn shown(&self) -> String {
        format!("{}.{}", self.database, self.definition.name)
    }

    pub(crate) fn quoted(&self) -> String {
        sql::table(&self.database, &self.definition.name)
    }
}

/// What was heard of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) rows: u64,
    /// Sum of the hashes of its rows; `None` where it is not known of all.
    pub(crate) hash: Option<u128>,
    pub(crate) warnings: Vec<Warning>,
}

impl Default for Heard {
    fn default() -> Self {
        Self {
            rows: 0,
            hash: Some(0),
            warnings: vec![],
        }
    }
}

/// What became of a frame.
#[derive(Default)]
struct Attempt {
    rows: u64,
    hash: Option<u128>,
    warnings: Vec<Warning>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) failure: Option<Error>,
    /// By the number of the table; `None` for what is no table.
    pub(crate) heard: BTreeMap<Option<usize>, Heard>,
    /// Why rows are sent by INSERT.
    pub(crate) by_insert: Option<String>,
}

/// What the sessions share.
pub(crate) struct Work<'a> {
    pub(crate) open: Open<'a>,
    /// For what the server is silent about for long.
    pub(crate) patient: Open<'a>,
    pub(crate) settings: &'a [Vec<u8>],
    pub(crate) stop: &'a Stop,
    /// What of the load is done; a plain dump has none.
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) tables: Mutex<Vec<Arc<TablePlan>>>,
    pub(crate) frames: &'a [Frame<'a>],
    pub(crate) compress: Compress,
    pub(crate) queue: Queue,
    pub(crate) local: AtomicBool,
    pub(crate) state: Mutex<State>,
    pub(crate) loaded: &'a (dyn Fn(u64) + Sync),
    pub(crate) done: AtomicU64,
}

/// Wakes the others where a thread panics: they would wait for the table that it has to itself.
struct Alarm<'a>(&'a Queue);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

/// Keys that are made of one table at once.
pub(crate) struct Alter {
    pub(crate) table: usize,
    pub(crate) statement: Vec<u8>,
}

impl Work<'_> {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table of this number.
    pub(crate) fn table(&self, number: usize) -> Option<Arc<TablePlan>> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.get(number).map(Arc::clone)
    }

    /// All tables, in the order of the dump.
    pub(crate) fn tables(&self) -> Vec<Arc<TablePlan>> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.clone()
    }

    /// Ends all: the first failure counts.
    pub(crate) fn failed(&self, failure: Error) {
        if !matches!(failure, Error::Stopped) {
            self.state().failure.get_or_insert(failure);
        }
        self.queue.fail();
    }

    /// Keeps what the server warned about.
    pub(crate) fn heard(&self, table: Option<usize>, warnings: Vec<Warning>) {
        let mut state = self.state();
        let heard = state.heard.entry(table).or_default();
        for warning in warnings {
            if heard.warnings.len() < KEPT && !heard.warnings.contains(&warning) {
                heard.warnings.push(warning);
            }
        }
    }

    /// Rows of a table are in the target, with this sum of their hashes.
    pub(crate) fn loaded(&self, table: usize, rows: u64, hash: Option<u128>) {
        let mut state = self.state();
        let heard = state.heard.entry(Some(table)).or_default();
        heard.rows = heard.rows.saturating_add(rows);
        let sum = heard.hash.zip(hash);
        heard.hash = sum.map(|(a, b)| a.wrapping_add(b));
    }

    /// Bytes of text that are in the target.
    pub(crate) fn progress(&self, raw: u64) {
        let before = self.done.fetch_add(raw, Ordering::Relaxed);
        (self.loaded)(before.saturating_add(raw));
    }

    pub(crate) fn session(&self, open: Open<'_>) -> Result<Session, Error> {
        Session::open(open, self.settings)
            .map_err(|e| Error::wire("opening a session of the target", e))
    }

    /// A session in place of one that was lost; the target may have been started again.
    fn again(&self, open: Open<'_>, doing: &str, lost: wire::Error) -> Result<Session, Error> {
        let end = Instant::now().checked_add(PATIENCE);
        loop {
            if self.stop.is_stopped() || self.state().failure.is_some() {
                return Err(Error::Stopped);
            }
            if let Ok(session) = Session::open(open, self.settings) {
                return Ok(session);
            }
            if end.is_none_or(|end| Instant::now() >= end) {
                return Err(Error::wire(doing, lost));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A session's whole work on rows.
    pub(crate) fn frames(&self) {
        let _alarm = Alarm(&self.queue);
        let worked = self.session(self.open).and_then(|mut session| {
            let mut lines = vec![];
            while let Some(job) = self.queue.take()? {
                self.frame(&mut session, &job, &mut lines)?;
                self.queue.release(&job);
            }
            Ok(())
        });
        if let Err(e) = worked {
            self.failed(e);
        }
    }

    fn frame(&self, session: &mut Session, job: &Job, lines: &mut Vec<u8>) -> Result<(), Error> {
        let Some(table) = self.table(job.table) else {
            return Ok(());
        };
        let table = table.as_ref();
        let frame = self.frames.get(job.frame);
        let doing = || {
            let Some(frame) = frame else {
                return format!("loading rows of table {}", table.shown());
            };
            let key = match frame.first_key {
                "" => String::new(),
                key => format!(", which begins at key {key}"),
            };
            format!(
                "loading frame {} of table {}{key}",
                job.frame,
                table.shown()
            )
        };
        let (text, wanted) = match frame {
            Some(frame) => {
                let text = source::text(&job.stored, frame.raw, self.compress);
                let text = text.map_err(|e| Error::source(doing(), e))?;
                (Cow::Owned(text), frame.rows)
            }
            None => (Cow::Borrowed(job.stored.as_slice()), job.rows),
        };
        let mut tries = 0;
        let done = loop {
            let e = match self.attempt(session, job, table, &text, lines) {
                Ok(loaded) => break loaded,
                Err(e) => e,
            };
            tries += 1;
            let number = e.number().unwrap_or_default();
            if !table.transactional || matches!(e, wire::Error::Stopped) {
                return Err(Error::wire(doing(), e));
            }
            if LOCKED.contains(&number) && tries < TRIES {
                session
                    .execute(b"ROLLBACK")
                    .map_err(|e| Error::wire(doing(), e))?;
                continue;
            }
            if !(e.is_final() || ENDING.contains(&number)) || tries >= TRIES {
                return Err(Error::wire(doing(), e));
            }
            // Its end may have come without its answer.
            let Some(journal) = self.journal else {
                return Err(Error::wire(doing(), e));
            };
            *session = self.again(self.open, &doing(), e)?;
            let there = journal.has(session, job.frame);
            if there.map_err(|e| Error::wire(doing(), e))? {
                break Attempt {
                    rows: wanted,
                    hash: summed(&text),
                    warnings: vec![],
                };
            }
        };
        if done.rows != wanted {
            return Err(Error::Rows(format!(
                "{}: the target took {} of its {wanted} rows",
                doing(),
                done.rows,
            )));
        }
        self.loaded(job.table, done.rows, done.hash);
        self.heard(Some(job.table), done.warnings);
        self.progress(text.len() as u64);
        Ok(())
    }

    /// Loads a frame, and says so in the journal, in one transaction; gives what the server took.
    fn attempt(
        &self,
        session: &mut Session,
        job: &Job,
        table: &TablePlan,
        text: &[u8],
        lines: &mut Vec<u8>,
    ) -> Result<Attempt, wire::Error> {
        session.enter(&table.database)?;
        if !table.transactional {
            let loaded = inserted(session, table, text)?;
            if let Some(journal) = self.journal.filter(|_| job.last) {
                let before = self.state().heard.get(&Some(job.table)).cloned();
                let before = before.unwrap_or_default().hash;
                let all = before.zip(loaded.hash).map(|(a, b)| a.wrapping_add(b));
                journal.loaded(session, job.frame, all)?;
            }
            return Ok(loaded);
        }
        session.execute(b"START TRANSACTION")?;
        let loaded = match self.lines(session, table, text, lines)? {
            Some(sum) => Attempt {
                rows: sum.rows,
                hash: Some(sum.hash),
                warnings: vec![],
            },
            None => inserted(session, table, text)?,
        };
        if let Some(journal) = self.journal {
            journal.loaded(session, job.frame, loaded.hash)?;
        }
        session.execute(b"COMMIT")?;
        Ok(loaded)
    }

    /// Loads a frame by LOAD DATA; `None` where INSERT has to do it, and nothing of it is there.
    fn lines(
        &self,
        session: &mut Session,
        table: &TablePlan,
        text: &[u8],
        lines: &mut Vec<u8>,
    ) -> Result<Option<Sum>, wire::Error> {
        let Some(set) = table.set.filter(|_| self.local.load(Ordering::Relaxed)) else {
            return Ok(None);
        };
        let Some(rows) = rows::rows(text, &table.definition.columns, set, lines) else {
            return Ok(None);
        };
        let statement = format!(
            "LOAD DATA LOCAL INFILE 'stream' INTO TABLE {} CHARACTER SET {} FIELDS TERMINATED BY '\\t' ENCLOSED BY '' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' {}",
            sql::name(&table.definition.name),
            set.name(),
            rows.columns
        );
        match session.connection.load(&statement, &lines[..]) {
            Ok(done) if done.affected == rows.sum.rows && done.warnings == 0 => {
                return Ok(Some(rows.sum));
            }
            // What it made something else of, INSERT decides about.
            Ok(_) => {}
            Err(wire::Error::Server(e))
                if !LOCKED.contains(&e.number) && !ENDING.contains(&e.number) =>
            {
                if NOT_LOCAL.contains(&e.number) {
                    self.local.store(false, Ordering::Relaxed);
                    self.state().by_insert.get_or_insert(e.to_string());
                }
            }
            Err(e) => return Err(e),
        }
        session.execute(b"ROLLBACK")?;
        session.execute(b"START TRANSACTION")?;
        Ok(None)
    }

    /// A session's whole work on keys.
    pub(crate) fn keys(&self, alters: &Mutex<VecDeque<Alter>>, again: bool) {
        let next = || {
            alters
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
        };
        let worked = self.session(self.patient).and_then(|mut session| {
            while let Some(alter) = next() {
                if self.state().failure.is_some() {
                    return Err(Error::Stopped);
                }
                self.alter(&mut session, &alter, again)?;
            }
            Ok(())
        });
        if let Err(e) = worked {
            self.failed(e);
        }
    }

    fn alter(&self, session: &mut Session, alter: &Alter, mut again: bool) -> Result<(), Error> {
        let Some(table) = self.table(alter.table) else {
            return Ok(());
        };
        let doing = format!("making the keys of table {}", table.shown());
        let mut tries = 0;
        loop {
            tries += 1;
            let done = session.execute(&alter.statement);
            match done {
                Ok(done) => {
                    if done.warnings > 0 {
                        let warnings = session.warnings().map_err(|e| Error::wire(&doing, e))?;
                        self.heard(Some(alter.table), warnings);
                    }
                    return Ok(());
                }
                // One statement made them all before this load was cut.
                Err(e) if again && e.number() == Some(KEY_THERE) => return Ok(()),
                Err(e) if e.is_final() && tries < TRIES && !matches!(e, wire::Error::Stopped) => {
                    *session = self.again(self.patient, &doing, e)?;
                    again = true;
                }
                Err(e) => return Err(Error::wire(doing, e)),
            }
        }
    }
}

/// The sum of the hashes of a frame's rows.
fn summed(text: &[u8]) -> Option<u128> {
    let mut all = 0u128;
    for statement in Statements::of(text) {
        let statement = statement.ok()?;
        if statement.starts_with(b"INSERT INTO ") {
            all = all.wrapping_add(rows::sum(statement)?.hash);
        }
    }
    Some(all)
}

/// Sends the statements of a frame; gives what the server took.
fn inserted(session: &mut Session, table: &TablePlan, text: &[u8]) -> Result<Attempt, wire::Error> {
    let versioned = table.definition.versioned;
    if versioned {
        session.execute(b"/*M!101100 SET SESSION system_versioning_insert_history = 1 */")?;
    }
    let mut all = Attempt {
        hash: Some(0),
        ..Attempt::default()
    };
    for statement in Statements::of(text) {
        let statement =
            statement.map_err(|_| wire::Error::Malformed("a statement of the dump has no end"))?;
        let insert = statement.starts_with(b"INSERT INTO ");
        // What is set for the rows of a table is set above, for each frame.
        if versioned && !insert {
            continue;
        }
        let done = session.execute(statement)?;
        if insert {
            all.rows += done.affected;
            let sum = rows::sum(statement).map(|sum| sum.hash);
            all.hash = all.hash.zip(sum).map(|(a, b)| a.wrapping_add(b));
        }
        if done.warnings > 0 {
            all.warnings.extend(session.warnings()?);
        }
    }
    if versioned {
        session.execute(b"/*M!101100 SET SESSION system_versioning_insert_history = DEFAULT */")?;
    }
    Ok(all)
}
