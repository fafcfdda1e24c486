//! What each session of a load does: frames, then keys.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dump::{Compress, Frame, Sum, sql};
use wire::Stop;

use crate::definition::Definition;
use crate::error::Error;
use crate::journal::{Journal, Noted, Part};
use crate::queue::{Job, Queue};
use crate::refusal::{is_full, is_held, is_locked, is_lost, is_too_large};
use crate::rows::{self, Set};
use crate::session::{self, Open, Session, Warning};
use crate::source;
use crate::statements::Statements;

/// Between two attempts to reach a target that went away, or to find space in one that is full.
const PAUSE: Duration = Duration::from_millis(500);
/// Memory that a session keeps from one frame to the next, in bytes of each buffer: more than a usual frame takes.
const KEPT: usize = 8 << 20;
/// A frame is tried so often against others' locks.
const TRIES: usize = 5;
/// A transaction is cut no smaller than so many bytes of text: what is refused then is a row.
const SMALLEST: usize = 1024;
/// LOAD DATA LOCAL is switched off: ER_NOT_ALLOWED_COMMAND, ER_CLIENT_LOCAL_FILES_DISABLED.
const NOT_LOCAL: [u16; 2] = [1148, 3948];
/// ER_DUP_KEYNAME.
const KEY_THERE: u16 = 1061;

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Bytes of text that are in the target.
    pub raw: u64,
    /// Rows that are.
    pub rows: u64,
    /// Database and name of the table that was worked on last.
    pub table: (&'a str, &'a str),
}

/// A table that is loaded.
pub(crate) struct TablePlan {
    /// Its database in the target.
    pub(crate) database: String,
    pub(crate) definition: Definition,
    /// How its rows can be sent, the best way first; else as INSERT.
    pub(crate) sets: &'static [Set],
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
    pub(crate) progress: &'a (dyn Fn(&Progress<'_>) + Sync),
    /// Bytes of text that are in the target, and rows.
    pub(crate) raw: AtomicU64,
    pub(crate) rows: AtomicU64,
    /// A target that went away, is full, or is used by others, is waited for so long.
    pub(crate) patience: Duration,
    /// Told what is waited for.
    pub(crate) waiting: &'a (dyn Fn(&str) + Sync),
    /// Bytes of text that a transaction may have, as far as the target has refused larger ones.
    pub(crate) most: AtomicUsize,
    /// Frames of which an earlier attempt loaded the first rows.
    pub(crate) parts: Mutex<BTreeMap<usize, Part>>,
}

/// Memory that a session uses again for each frame.
#[derive(Default)]
struct Buffers {
    text: Vec<u8>,
    /// The same as rows of LOAD DATA.
    lines: Vec<u8>,
}

impl Buffers {
    /// Gives back what a frame of one large row took.
    fn trim(&mut self) {
        for buffer in [&mut self.text, &mut self.lines] {
            if buffer.capacity() > KEPT {
                *buffer = vec![];
            }
        }
    }
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
        session::add(
            &mut state.heard.entry(table).or_default().warnings,
            warnings,
        );
    }

    /// Rows of a table are in the target, with this sum of their hashes.
    pub(crate) fn loaded(&self, table: usize, rows: u64, hash: Option<u128>) {
        let mut state = self.state();
        let heard = state.heard.entry(Some(table)).or_default();
        heard.rows = heard.rows.saturating_add(rows);
        let sum = heard.hash.zip(hash);
        heard.hash = sum.map(|(a, b)| a.wrapping_add(b));
    }

    /// More rows of a table are in the target, of so many bytes of text; or work on its keys begins.
    pub(crate) fn progress(&self, table: &TablePlan, rows: u64, raw: u64) {
        let raw_before = self.raw.fetch_add(raw, Ordering::Relaxed);
        let rows_before = self.rows.fetch_add(rows, Ordering::Relaxed);
        (self.progress)(&Progress {
            raw: raw_before.saturating_add(raw),
            rows: rows_before.saturating_add(rows),
            table: (&table.database, &table.definition.name),
        });
    }

    pub(crate) fn session(&self, open: Open<'_>) -> Result<Session, Error> {
        Session::open(open, self.settings)
            .map_err(|e| Error::wire("opening a session of the target", e))
    }

    /// A session, of a target that may be started again meanwhile.
    pub(crate) fn patient_session(&self, open: Open<'_>) -> Result<Session, Error> {
        match Session::open(open, self.settings) {
            Err(e) if is_away(&e) => self.again(open, "opening a session of the target", e),
            opened => opened.map_err(|e| Error::wire("opening a session of the target", e)),
        }
    }

    fn ended(&self) -> bool {
        self.stop.is_stopped() || self.state().failure.is_some()
    }

    /// A session in place of one that was lost; the target may have been started again.
    fn again(&self, open: Open<'_>, doing: &str, lost: wire::Error) -> Result<Session, Error> {
        match self.reached(open, doing, &lost)? {
            Some(session) => Ok(session),
            None => Err(Error::wire(doing, lost)),
        }
    }

    /// The same; `None` where the target was waited for long enough.
    fn reached(
        &self,
        open: Open<'_>,
        doing: &str,
        lost: &wire::Error,
    ) -> Result<Option<Session>, Error> {
        let started = Instant::now();
        let mut told = false;
        loop {
            if self.ended() {
                return Err(Error::Stopped);
            }
            let e = match Session::open(open, self.settings) {
                Ok(session) => return Ok(Some(session)),
                Err(e) => e,
            };
            if started.elapsed() >= self.patience {
                return Ok(None);
            }
            if !std::mem::replace(&mut told, true) {
                (self.waiting)(&format!("{doing}: {lost}; {e}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits a moment for space in a target that is full, or for others to let a table go; false when it was waited for long
    /// enough. `since` is when that began.
    pub(crate) fn waits(
        &self,
        since: &mut Option<Instant>,
        doing: &str,
        refused: &wire::Error,
    ) -> bool {
        let began = since.unwrap_or_else(|| {
            (self.waiting)(&format!("{doing}: {refused}"));
            Instant::now()
        });
        *since = Some(began);
        if began.elapsed() >= self.patience || self.ended() {
            return false;
        }
        std::thread::sleep(PAUSE);
        true
    }

    /// Runs what may be run again until it is done: on a new session where one was lost, and once more while the target is full
    /// or others hold what is changed.
    pub(crate) fn patiently<T>(
        &self,
        session: &mut Session,
        open: Open<'_>,
        mut run: impl FnMut(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut tries, mut since) = (0, None);
        loop {
            let (doing, cause) = match run(session) {
                Err(Error::Wire { doing, cause }) => (doing, cause),
                done => return done,
            };
            let passes = is_full(&cause) || is_held(&cause);
            if passes && self.waits(&mut since, &doing, &cause) {
                continue;
            }
            tries += 1;
            if !is_lost(&cause) || tries >= TRIES {
                return Err(Error::Wire { doing, cause });
            }
            *session = self.again(open, &doing, cause)?;
        }
    }

    /// A session's whole work on rows.
    pub(crate) fn frames(&self) {
        let _alarm = Alarm(&self.queue);
        let worked = self.patient_session(self.open).and_then(|mut session| {
            let mut buffers = Buffers::default();
            while let Some(job) = self.queue.take()? {
                self.frame(&mut session, &job, &mut buffers)?;
                buffers.trim();
                self.queue.release(&job);
            }
            Ok(())
        });
        if let Err(e) = worked {
            self.failed(e);
        }
    }

    fn frame(
        &self,
        session: &mut Session,
        job: &Job,
        Buffers { text: room, lines }: &mut Buffers,
    ) -> Result<(), Error> {
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
                source::read_text(&job.stored, frame.raw, self.compress, room)
                    .map_err(|e| Error::source(doing(), e))?;
                (room.as_slice(), frame.rows)
            }
            None => (job.stored.as_slice(), job.rows),
        };
        let mut there = self
            .parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&job.frame)
            .unwrap_or_default();
        let (mut tries, mut full) = (0, None);
        let done = loop {
            let (before, most) = (there.rows, self.most.load(Ordering::Relaxed));
            let e = match self.attempt(session, job, table, (text, wanted), &mut there, lines) {
                Ok(loaded) => break loaded,
                Err(e) => e,
            };
            tries = if there.rows == before { tries + 1 } else { 1 };
            if matches!(e, wire::Error::Stopped) {
                return Err(Error::wire(doing(), e));
            }
            if !table.transactional {
                // Another attempt begins the table anew: it finds the target there again.
                if is_lost(&e) && self.journal.is_some() {
                    self.reached(self.open, &doing(), &e)?;
                }
                return Err(Error::wire(doing(), e));
            }
            let passes = is_full(&e) && self.waits(&mut full, &doing(), &e)
                || is_too_large(&e) && self.cut(most.min(text.len()))
                || is_locked(&e) && tries < TRIES;
            let e = match passes.then(|| session.execute(b"ROLLBACK")) {
                Some(Ok(_)) => continue,
                Some(Err(e)) => e,
                None => e,
            };
            if !is_lost(&e) || tries >= TRIES {
                return Err(Error::wire(doing(), e));
            }
            // Its end may have come without its answer.
            let Some(journal) = self.journal else {
                return Err(Error::wire(doing(), e));
            };
            *session = self.again(self.open, &doing(), e)?;
            let whole = journal.has(session, job.frame);
            if let Some(noted) = whole.map_err(|e| Error::wire(doing(), e))? {
                break Attempt {
                    rows: wanted,
                    hash: noted.hash,
                    warnings: noted.warnings,
                };
            }
            let part = journal.has_part(session, job.frame);
            there = part.map_err(|e| Error::wire(doing(), e))?;
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
        self.progress(table, done.rows, text.len() as u64);
        Ok(())
    }

    /// Cuts transactions to half of what was refused; false where they are as small as they get.
    fn cut(&self, refused: usize) -> bool {
        let most = (refused / 2).max(SMALLEST);
        self.most.fetch_min(most, Ordering::Relaxed);
        refused > SMALLEST
    }

    /// Loads a frame of so many rows, and says so in the journal, in one transaction, or in as many as the target wants; gives
    /// what it took. `there` are the rows that were committed before.
    fn attempt(
        &self,
        session: &mut Session,
        job: &Job,
        table: &TablePlan,
        (text, wanted): (&[u8], u64),
        there: &mut Part,
        lines: &mut Vec<u8>,
    ) -> Result<Attempt, wire::Error> {
        session.enter(&table.database)?;
        if !table.transactional {
            let loaded = self.inserted(session, table, text)?;
            if let Some(journal) = self.journal.filter(|_| job.last) {
                let before = self.state().heard.get(&Some(job.table)).cloned();
                let before = before.unwrap_or_default();
                let mut all = Noted {
                    hash: before.hash,
                    warnings: before.warnings,
                };
                all.add(loaded.hash, loaded.warnings.clone());
                journal.loaded(session, job.frame, &all)?;
            }
            return Ok(loaded);
        }
        if there.rows > 0 || text.len() > self.most.load(Ordering::Relaxed) {
            return self.pieces(session, job, table, (text, wanted), there, lines);
        }
        session.execute(b"START TRANSACTION")?;
        let loaded = self.taken(session, table, text, lines)?;
        if let Some(journal) = self.journal {
            let noted = Noted {
                hash: loaded.hash,
                warnings: loaded.warnings.clone(),
            };
            journal.loaded(session, job.frame, &noted)?;
        }
        session.execute(b"COMMIT")?;
        Ok(loaded)
    }

    /// Loads text in a transaction that has begun.
    fn taken(
        &self,
        session: &mut Session,
        table: &TablePlan,
        text: &[u8],
        lines: &mut Vec<u8>,
    ) -> Result<Attempt, wire::Error> {
        match self.lines(session, table, text, lines)? {
            Some(sum) => Ok(Attempt {
                rows: sum.rows,
                hash: Some(sum.hash),
                warnings: vec![],
            }),
            None => self.inserted(session, table, text),
        }
    }

    /// The rest of a frame, in transactions of a size that the target takes. How far it came stands in the journal.
    fn pieces(
        &self,
        session: &mut Session,
        job: &Job,
        table: &TablePlan,
        (text, wanted): (&[u8], u64),
        there: &mut Part,
        lines: &mut Vec<u8>,
    ) -> Result<Attempt, wire::Error> {
        let other = || wire::Error::Malformed("rows of the dump can't be cut");
        let mut cut = rows::Cut::of(text);
        cut.skip(there.rows).ok_or_else(other)?;
        while there.rows < wanted {
            let most = self.most.load(Ordering::Relaxed);
            let (piece, sum) = cut.piece(most).ok_or_else(other)?;
            session.execute(b"START TRANSACTION")?;
            let loaded = self.taken(session, table, &piece, lines)?;
            let mut after = there.clone();
            after.rows = after.rows.saturating_add(loaded.rows);
            after.noted.add(loaded.hash, loaded.warnings);
            if loaded.rows != sum.rows {
                // What is missing is told by who counts.
                session.execute(b"ROLLBACK")?;
                *there = after;
                break;
            }
            if let Some(journal) = self.journal {
                if after.rows < wanted {
                    journal.part(session, job.frame, &after)?;
                } else {
                    journal.joined(session, job.frame)?;
                    journal.loaded(session, job.frame, &after.noted)?;
                }
            }
            session.execute(b"COMMIT")?;
            *there = after;
        }
        let Noted { hash, warnings } = there.noted.clone();
        Ok(Attempt {
            rows: there.rows,
            hash,
            warnings,
        })
    }

    /// Loads a frame by LOAD DATA; `None` where INSERT has to do it, and nothing of it is there.
    fn lines(
        &self,
        session: &mut Session,
        table: &TablePlan,
        text: &[u8],
        lines: &mut Vec<u8>,
    ) -> Result<Option<Sum>, wire::Error> {
        if !self.local.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let columns = &table.definition.columns;
        let mut ways = table.sets.iter();
        let way = ways.find_map(|set| Some((set, rows::rows(text, columns, *set, lines)?)));
        let Some((set, rows)) = way else {
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
            Err(e) if is_locked(&e) || is_lost(&e) || is_full(&e) || is_too_large(&e) => {
                return Err(e);
            }
            Err(e) => {
                if e.number().is_some_and(|n| NOT_LOCAL.contains(&n)) {
                    self.local.store(false, Ordering::Relaxed);
                    self.state().by_insert.get_or_insert(e.to_string());
                }
            }
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
        let worked = self.patient_session(self.patient).and_then(|mut session| {
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
        self.progress(&table, 0, 0);
        let mut before = false;
        let warnings = self.patiently(session, self.patient, |session| {
            // What was lost may have been done.
            again |= std::mem::replace(&mut before, true);
            match session.execute(&alter.statement) {
                Ok(done) if done.warnings > 0 => session.warnings(),
                Ok(_) => Ok(vec![]),
                // One statement made them all before this load was cut.
                Err(e) if again && e.number() == Some(KEY_THERE) => Ok(vec![]),
                Err(e) => Err(e),
            }
            .map_err(|e| Error::wire(&doing, e))
        })?;
        self.heard(Some(alter.table), warnings);
        Ok(())
    }

    /// Sends the statements of a frame; gives what the server took.
    fn inserted(
        &self,
        session: &mut Session,
        table: &TablePlan,
        text: &[u8],
    ) -> Result<Attempt, wire::Error> {
        let versioned = table.definition.versioned;
        if versioned {
            session.execute(b"/*M!101100 SET SESSION system_versioning_insert_history = 1 */")?;
        }
        let mut all = Attempt {
            hash: Some(0),
            ..Attempt::default()
        };
        for statement in Statements::of(text) {
            let statement = statement
                .map_err(|_| wire::Error::Malformed("a statement of the dump has no end"))?;
            let insert = statement.starts_with(b"INSERT INTO ");
            // What is set for the rows of a table is set above, for each frame.
            if versioned && !insert {
                continue;
            }
            // Nobody has looked at what stands among the rows of a frame before the target was changed.
            if self.journal.is_some() && !insert && !is_of_keys(statement, table) {
                return Err(wire::Error::Malformed(
                    "a frame of rows holds another statement",
                ));
            }
            let done = session.execute(statement)?;
            if insert {
                all.rows += done.affected;
                let sum = rows::sum(statement).map(|sum| sum.hash);
                all.hash = all.hash.zip(sum).map(|(a, b)| a.wrapping_add(b));
            }
            if done.warnings > 0 {
                session::add(&mut all.warnings, session.warnings()?);
            }
        }
        if versioned {
            session
                .execute(b"/*M!101100 SET SESSION system_versioning_insert_history = DEFAULT */")?;
        }
        Ok(all)
    }
}

/// The target can't be reached, or does not let anybody in yet: ER_CON_COUNT_ERROR, ER_SERVER_SHUTDOWN.
fn is_away(e: &wire::Error) -> bool {
    match e {
        wire::Error::Unreachable { .. } | wire::Error::Lost(_) | wire::Error::Stalled(_) => true,
        e => matches!(e.number(), Some(1040 | 1053)),
    }
}

/// True if a statement switches the keys of a table that is not transactional off or on, as a dump does around its rows.
fn is_of_keys(statement: &[u8], table: &TablePlan) -> bool {
    let name = sql::name(&table.definition.name);
    ["DISABLE", "ENABLE"]
        .iter()
        .any(|how| statement == format!("/*!40000 ALTER TABLE {name} {how} KEYS */").as_bytes())
}
