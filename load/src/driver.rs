//! Joins the rooms: definitions, rows by several sessions, keys, programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use dump::{Compress, Frame, Frames, Section, sql};
use wire::Stop;

use crate::definition::{self, Definition};
use crate::error::Error;
use crate::journal::{Journal, Kept, Noted};
use crate::queue::{Job, Queue};
use crate::rows::sets_of;
use crate::session::{Open, Session, Warning};
use crate::source::{self, Source};
use crate::statements::Statements;
use crate::work::{Alter, Progress, State, TablePlan, Work};

/// Bytes of frames that wait for a session.
const WAITING: usize = 4 << 20;
/// Bytes of definitions that are read.
const DEFINITIONS: u64 = 1 << 30;

/// Changes a part of the text, which is whole statements.
pub type Change<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Vec<u8>, String>;

/// What is loaded, and how.
pub struct Load<'a> {
    /// Opens connections of which the server may be silent for as long as it makes keys.
    pub patient: Open<'a>,
    /// Where everything stands in the artefact.
    pub frames: &'a Frames,
    /// How its frames are compressed.
    pub compress: Compress,
    /// Which of them are loaded: all of the head and the foot are, and of a table all or none.
    pub wanted: &'a dyn Fn(&Frame<'_>) -> bool,
    /// Its bytes.
    pub source: &'a mut dyn Source,
    /// What becomes of its definitions, programs and settings.
    pub change: Change<'a>,
    /// What a database of it is called in the target.
    pub rename: &'a dyn Fn(&str) -> String,
    /// Users, roles and grants too.
    pub accounts: bool,
    /// Sessions that load, 1 to 16.
    pub sessions: usize,
    /// What tells this load from every other: who goes on with one that was cut must say the same.
    pub whose: String,
    /// A load of somebody else that was cut here is of no interest: what is there may be replaced.
    pub anew: bool,
    /// Told what is done next.
    pub phase: &'a dyn Fn(Phase),
    /// Told how far it is.
    pub progress: &'a (dyn Fn(&Progress<'_>) + Sync),
    /// A target that is started again meanwhile, has no space, or is used by others, is waited for so long.
    pub patience: Duration,
    /// Told what is waited for.
    pub waiting: &'a (dyn Fn(&str) + Sync),
}

/// What a load does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Databases and tables are made.
    Definitions,
    /// Rows.
    Rows,
    /// Keys and foreign keys.
    Keys,
    /// Views, triggers, routines, events.
    Programs,
}

/// A table that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedTable {
    /// Its database in the target.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Rows that the target took, of the whole load.
    pub rows: u64,
    /// Sum modulo 2^128 of the XXH3-128 of the text `(…)` of each row that was sent; `None` where it is not known of all.
    pub hash: Option<u128>,
    /// What the server warned about.
    pub warnings: Vec<Warning>,
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Tables, in the order of the dump.
    pub tables: Vec<LoadedTable>,
    /// What the server warned about at what is no table.
    pub warnings: Vec<Warning>,
    /// Why rows were sent by INSERT where LOAD DATA could have taken them.
    pub by_insert: Option<String>,
    /// Frames that an earlier attempt had loaded.
    pub went_on: usize,
    /// The first words of a statement that may have changed rows and is none of rows: how many there are then is not in the
    /// dump's text.
    pub by_statements: Option<String>,
}

/// A statement of the definitions.
enum Statement {
    Use(String),
    Table(usize),
    Other(Vec<u8>),
}

/// What the server warned about, by the number of the table; `None` for what is no table.
type Warned = Vec<(Option<usize>, Vec<Warning>)>;

/// The definitions, read.
#[derive(Default)]
struct Definitions {
    statements: Vec<Statement>,
    tables: Vec<TablePlan>,
}

/// A load whose definitions are read; nothing was changed yet.
pub struct Begun<'a> {
    open: Open<'a>,
    load: Load<'a>,
    all: Vec<Frame<'a>>,
    /// What the dump's head sets in each session.
    settings: Vec<Vec<u8>>,
    definitions: Definitions,
    /// The one database of a dump without USE.
    bare: Option<String>,
    control: Session,
    journal: Journal,
    kept: Kept,
}

impl<'a> Begun<'a> {
    /// Reads the definitions, and what an earlier attempt of this load did.
    ///
    /// # Errors
    /// The artefact can't be read, the target refuses, or another load was cut there.
    pub fn new(open: Open<'a>, mut load: Load<'a>) -> Result<Self, Error> {
        let frames = load.frames;
        let all: Vec<Frame<'a>> = frames.iter().filter(|f| (load.wanted)(f)).collect();
        let head = load.read(&all, &[Section::Head])?;
        let settings = statements(&head)?;
        let first: &[Section] = if load.accounts {
            &[Section::Accounts, Section::Schema]
        } else {
            &[Section::Schema]
        };
        let text = load.read(&all, first)?;
        let home = all.iter().find(|f| f.section == Section::Schema);
        let Some((home, bare)) = home.map(|f| ((load.rename)(f.database), f.database.is_empty()))
        else {
            return Err(Error::Form("the artefact holds no database".to_owned()));
        };
        // A dump without USE goes into the one database.
        let bare = bare.then(|| home.clone());
        let begins_in = bare.clone().unwrap_or_default();
        let mut definitions = definitions(&text, &begins_in, false)?;
        if refers(&definitions) {
            definitions = self::definitions(&text, &begins_in, true)?;
        }
        let mut control = Session::open(open, &settings)
            .map_err(|e| Error::wire("opening a session of the target", e))?;
        let journal = Journal::of(&home, &text);
        let kept = kept(&mut control, &journal, &load.whose, load.anew)?;
        Ok(Self {
            open,
            load,
            all,
            settings,
            definitions,
            bare,
            control,
            journal,
            kept: kept.unwrap_or_default(),
        })
    }

    /// True if an earlier attempt of this load has begun to change the target.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.kept.whose == self.load.whose
    }

    /// Loads what is not there yet, and ends.
    ///
    /// # Errors
    /// The artefact can't be read, or the target refuses.
    pub fn run(self, stop: &Stop) -> Result<Loaded, Error> {
        let mut complete = self.load(stop)?;
        complete.end()?;
        Ok(complete.loaded)
    }

    /// Loads what is not there yet. Until [`Complete::end`] the load can be gone on with: it finds all of it done.
    ///
    /// # Errors
    /// The artefact can't be read, or the target refuses.
    pub fn load(self, stop: &Stop) -> Result<Complete<'a>, Error> {
        let Self {
            open,
            mut load,
            all,
            settings,
            mut definitions,
            bare,
            mut control,
            journal,
            kept,
        } = self;
        let local = control.ask("SELECT @@local_infile");
        let local = local.is_ok_and(|rows| rows == [["1"]]);
        let work = Work {
            open,
            patient: load.patient,
            settings: &settings,
            stop,
            journal: Some(&journal),
            tables: Mutex::default(),
            frames: &all,
            compress: load.compress,
            queue: Queue::new(WAITING),
            local: AtomicBool::new(local),
            state: Mutex::new(State {
                by_insert: (!local).then(|| "local_infile is off".to_owned()),
                ..State::default()
            }),
            progress: load.progress,
            raw: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            patience: load.patience,
            waiting: load.waiting,
            most: AtomicUsize::new(usize::MAX),
            parts: Mutex::new(kept.parts.clone()),
        };
        (load.phase)(Phase::Definitions);
        if !kept.defined {
            let mut begun = kept.whose == load.whose;
            let heard = work.patiently(&mut control, open, |control| {
                let begin = (&journal, load.whose.as_str(), &mut begun);
                define(control, &definitions, bare.as_deref(), begin)
            })?;
            for (table, warnings) in heard {
                work.heard(table, warnings);
            }
        }
        let places = places(&all, &mut definitions.tables, load.rename);
        work.patiently(&mut control, open, |control| {
            ask_engines(control, &mut definitions.tables)
        })?;
        *work.tables.lock().unwrap_or_else(PoisonError::into_inner) =
            definitions.tables.into_iter().map(Arc::new).collect();
        let sessions = load.sessions.clamp(1, 16);

        let jobs = jobs(&all, &places, &kept, &work, &mut control)?;
        (load.phase)(Phase::Rows);
        rows(&work, sessions, jobs.todo, load.source);
        failure(&work)?;
        // A server that was cut off may have lost what it said it had.
        let count = work.patiently(&mut control, open, |control| journal.count(control))?;
        if count != jobs.steps {
            return Err(Error::Forgotten(format!(
                "the target lost {} frames that it had taken: it was started again without what it said was committed",
                jobs.steps.saturating_sub(count)
            )));
        }

        (load.phase)(Phase::Keys);
        keys(&work, sessions, (0, kept.defined));
        failure(&work)?;
        let mut control = work.patient_session(load.patient)?;
        let mut again = kept.defined;
        work.patiently(&mut control, load.patient, |control| {
            let again = std::mem::replace(&mut again, true);
            foreign_keys(&work, control, (0, again))
        })?;

        (load.phase)(Phase::Programs);
        let last: &[Section] = if load.accounts {
            &[Section::Programs, Section::Grants, Section::Foot]
        } else {
            &[Section::Programs, Section::Foot]
        };
        let last = statements(&load.read(&all, last)?)?;
        // Each is dropped before it is made, and what sets a session sets it again.
        let heard = work.patiently(&mut control, load.patient, |control| {
            if let Some(database) = &bare {
                enter(control, database)?;
            }
            let mut heard = vec![];
            for statement in &last {
                heard.extend(run(control, statement)?);
            }
            Ok(heard)
        })?;
        work.heard(None, heard);
        let loaded = loaded(work, kept.frames.len());
        Ok(Complete {
            loaded,
            journal,
            open,
            settings,
        })
    }
}

/// A load of which all is in the target, and which its journal still tells of.
pub struct Complete<'a> {
    /// What was loaded.
    pub loaded: Loaded,
    journal: Journal,
    open: Open<'a>,
    settings: Vec<Vec<u8>>,
}

impl Complete<'_> {
    /// Ends it: the journal goes.
    ///
    /// # Errors
    /// The target refuses.
    pub fn end(&mut self) -> Result<(), Error> {
        let session = Session::open(self.open, &self.settings);
        let mut session = session.map_err(|e| Error::wire("opening a session of the target", e))?;
        self.journal.drop(&mut session)
    }
}

/// Makes databases and tables; gives what the server warned about, by the number of the table. The journal begins in the first
/// database, once.
fn define(
    control: &mut Session,
    definitions: &Definitions,
    bare: Option<&str>,
    (journal, whose, begun): (&Journal, &str, &mut bool),
) -> Result<Warned, Error> {
    let mut heard = vec![];
    let mut entered = |control: &mut Session, database: &str| {
        enter(control, database)?;
        if !*begun {
            journal.begin(control, whose)?;
            *begun = true;
        }
        Ok(())
    };
    if let Some(database) = bare {
        entered(control, database)?;
    }
    for statement in &definitions.statements {
        let (table, warnings) = match statement {
            Statement::Use(database) => {
                entered(control, database)?;
                continue;
            }
            Statement::Table(n) => {
                let Some(table) = definitions.tables.get(*n) else {
                    continue;
                };
                let made = executed(control, &table.definition.create);
                let doing = || format!("making table {}", table.shown());
                (Some(*n), made.map_err(|e| Error::wire(doing(), e))?)
            }
            Statement::Other(statement) => (None, run(control, statement)?),
        };
        if !warnings.is_empty() {
            heard.push((table, warnings));
        }
    }
    journal.defined(control)?;
    Ok(heard)
}

impl Load<'_> {
    /// The text of these sections, as it is sent.
    fn read(&mut self, all: &[Frame<'_>], sections: &[Section]) -> Result<Vec<u8>, Error> {
        let text = text_of(all, sections, self.compress, self.source)?;
        (self.change)(&text).map_err(Error::Form)
    }
}

/// What comes of it all.
pub(crate) fn loaded(work: Work<'_>, went_on: usize) -> Loaded {
    let tables = work.tables();
    let state = work.state.into_inner();
    let mut state = state.unwrap_or_else(PoisonError::into_inner);
    let other = state.heard.remove(&None).unwrap_or_default();
    let of_table = |(n, table): (usize, &Arc<TablePlan>)| {
        let heard = state.heard.remove(&Some(n)).unwrap_or_default();
        LoadedTable {
            database: table.database.clone(),
            name: table.definition.name.clone(),
            rows: heard.rows,
            hash: heard.hash,
            warnings: heard.warnings,
        }
    };
    Loaded {
        tables: tables.iter().enumerate().map(of_table).collect(),
        warnings: other.warnings,
        by_insert: state.by_insert,
        went_on,
        by_statements: None,
    }
}

/// Rows, by several sessions; this thread reads the artefact for them.
fn rows(work: &Work<'_>, sessions: usize, todo: Vec<Job>, source: &mut dyn Source) {
    std::thread::scope(|scope| {
        let loading: Vec<_> = (0..sessions)
            .map(|_| scope.spawn(|| work.frames()))
            .collect();
        let given = todo.into_iter().try_for_each(|mut job| {
            let Some(frame) = work.frames.get(job.frame) else {
                return Ok(());
            };
            let read = source.read(frame.at, frame.stored, &mut job.stored);
            read.map_err(|e| Error::source("reading the artefact", e))?;
            work.queue.give(job)
        });
        match given {
            Ok(()) => work.queue.close(),
            Err(e) => work.failed(e),
        }
        join(work, loading);
    });
}

/// A thread that panicked has loaded nothing that it told of.
pub(crate) fn join(work: &Work<'_>, threads: Vec<ScopedJoinHandle<'_, ()>>) {
    for thread in threads {
        if thread.join().is_err() {
            work.failed(Error::Form(
                "a loading thread panicked: report it".to_owned(),
            ));
        }
    }
}

pub(crate) fn enter(session: &mut Session, database: &str) -> Result<(), Error> {
    session
        .enter(database)
        .map_err(|e| Error::wire(format!("using database {database}"), e))
}

/// The text of all frames of these sections.
fn text_of(
    all: &[Frame<'_>],
    sections: &[Section],
    compress: Compress,
    source: &mut dyn Source,
) -> Result<Vec<u8>, Error> {
    let (mut text, mut stored, mut part) = (vec![], vec![], vec![]);
    let wanted = all.iter().filter(|f| sections.contains(&f.section));
    let raw = wanted
        .clone()
        .map(|f| f.raw)
        .fold(0u64, u64::saturating_add);
    if raw > DEFINITIONS {
        return Err(Error::Form(
            "the definitions of the artefact are larger than 1 GiB".to_owned(),
        ));
    }
    for frame in wanted {
        let doing = || "reading the definitions of the artefact";
        possible(frame)?;
        source
            .read(frame.at, frame.stored, &mut stored)
            .map_err(|e| Error::source(doing(), e))?;
        source::read_text(&stored, frame.raw, compress, &mut part)
            .map_err(|e| Error::source(doing(), e))?;
        text.extend_from_slice(&part);
    }
    Ok(text)
}

fn possible(frame: &Frame<'_>) -> Result<(), Error> {
    if source::is_possible(frame.stored, frame.raw) {
        return Ok(());
    }
    Err(Error::Form(
        "the manifest has a frame of an impossible length".to_owned(),
    ))
}

fn statements(text: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    Statements::of(text)
        .map(|s| s.map(<[u8]>::to_vec))
        .collect()
}

/// The database that a statement enters.
fn entered(statement: &[u8]) -> Option<String> {
    let name = statement.strip_prefix(b"USE `")?.strip_suffix(b"`")?;
    let name = std::str::from_utf8(name).ok()?;
    Some(name.replace("``", "`"))
}

fn definitions(text: &[u8], begins_in: &str, keep: bool) -> Result<Definitions, Error> {
    let mut all = Definitions::default();
    let mut used = begins_in.to_owned();
    for statement in Statements::of(text) {
        let statement = statement?;
        if let Some(database) = entered(statement) {
            used.clone_from(&database);
            all.statements.push(Statement::Use(database));
        } else if let Some(definition) = definition::definition(statement, keep) {
            all.statements.push(Statement::Table(all.tables.len()));
            let sets = sets_of(&definition.columns);
            all.tables.push(TablePlan {
                database: used.clone(),
                definition,
                sets,
                transactional: false,
                bytes: 0,
            });
        } else {
            all.statements.push(Statement::Other(statement.to_vec()));
        }
    }
    Ok(all)
}

/// A table that keeps a foreign key may need a key of another one.
fn refers(definitions: &Definitions) -> bool {
    let mut left = definitions.tables.iter().map(|t| &t.definition);
    left.any(|d: &Definition| {
        !d.understood && memchr::memmem::find(&d.create, b" REFERENCES ").is_some()
    })
}

/// What an earlier attempt of this load did; `None` if there was none that counts.
fn kept(
    control: &mut Session,
    journal: &Journal,
    whose: &str,
    anew: bool,
) -> Result<Option<Kept>, Error> {
    match journal.read(control)? {
        Some(kept) if kept.whose != whose && anew => Ok(None),
        Some(kept) if kept.whose != whose => Err(Error::Journal(format!(
            "{} says that another restore was cut here: {}",
            journal.name(),
            kept.whose
        ))),
        kept => Ok(kept),
    }
}

pub(crate) fn executed(
    session: &mut Session,
    statement: &[u8],
) -> Result<Vec<Warning>, wire::Error> {
    let done = session.execute(statement)?;
    if done.warnings == 0 {
        return Ok(vec![]);
    }
    session.warnings()
}

/// Runs a statement that is no table; what it is called is its first words.
pub(crate) fn run(session: &mut Session, statement: &[u8]) -> Result<Vec<Warning>, Error> {
    executed(session, statement).map_err(|e| Error::wire(doing(statement), e))
}

/// That a statement of the dump is run.
pub(crate) fn doing(statement: &[u8]) -> String {
    format!("running {} of the dump", words(statement))
}

/// What a statement is called: its first words.
pub(crate) fn words(statement: &[u8]) -> String {
    let words = statement
        .split(|b| !b.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .take(2)
        .map(|word| String::from_utf8_lossy(word).to_uppercase());
    words.collect::<Vec<_>>().join(" ")
}

/// The table of each frame of rows, by the number of the frame; counts the bytes of each table.
fn places(
    all: &[Frame<'_>],
    tables: &mut [TablePlan],
    rename: &dyn Fn(&str) -> String,
) -> BTreeMap<usize, usize> {
    let mut names: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (n, table) in tables.iter().enumerate() {
        names.insert((table.database.clone(), table.definition.name.clone()), n);
    }
    let mut places = BTreeMap::new();
    for (frame, of) in all.iter().enumerate() {
        if of.section != Section::Data || of.table.is_empty() {
            continue;
        }
        let name = (rename(of.database), of.table.to_owned());
        if let Some(n) = names.get(&name) {
            places.insert(frame, *n);
            if let Some(table) = tables.get_mut(*n) {
                table.bytes = table.bytes.saturating_add(of.raw);
            }
        }
    }
    places
}

/// Which tables take back what was not committed, as the target made them.
fn ask_engines(control: &mut Session, tables: &mut [TablePlan]) -> Result<(), Error> {
    let databases: BTreeSet<&str> = tables.iter().map(|t| t.database.as_str()).collect();
    if databases.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = databases.iter().map(|d| sql::literal(d)).collect();
    let asked = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({}) AND ENGINE IN (SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES')",
        list.join(", ")
    );
    let rows = control
        .ask(&asked)
        .map_err(|e| Error::wire("asking for the engines of the tables", e))?;
    // A server may keep names in lower case.
    let key = |database: &str, name: &str| (database.to_lowercase(), name.to_lowercase());
    let transactional: BTreeSet<(String, String)> = rows
        .iter()
        .filter_map(|row| Some(key(row.first()?, row.get(1)?)))
        .collect();
    for table in tables {
        let name = key(&table.database, &table.definition.name);
        table.transactional = transactional.contains(&name);
    }
    Ok(())
}

struct Jobs {
    todo: Vec<Job>,
    /// Steps that the journal has when all is done.
    steps: u64,
}

/// The frames that are still to be loaded. A table that takes nothing back begins anew.
fn jobs(
    all: &[Frame<'_>],
    places: &BTreeMap<usize, usize>,
    kept: &Kept,
    work: &Work<'_>,
    control: &mut Session,
) -> Result<Jobs, Error> {
    let lasts: BTreeMap<usize, usize> = places.iter().map(|(f, t)| (*t, *f)).collect();
    let (mut todo, mut steps) = (vec![], 0);
    let mut emptied = BTreeSet::new();
    for (number, frame) in all.iter().enumerate() {
        if frame.section != Section::Data || frame.table.is_empty() {
            continue;
        }
        possible(frame)?;
        let Some((n, table)) = places
            .get(&number)
            .and_then(|n| Some((*n, work.table(*n)?)))
        else {
            return Err(Error::Form(format!(
                "the artefact holds rows of table {}.{} and not its definition",
                frame.database, frame.table
            )));
        };
        let last = lasts.get(&n) == Some(&number);
        if table.transactional && frame.rows == 0 {
            continue;
        }
        let step = if table.transactional {
            number
        } else {
            lasts.get(&n).copied().unwrap_or(number)
        };
        if table.transactional || last {
            steps += 1;
        }
        if let Some(noted) = kept.frames.get(&step) {
            // What takes nothing back has what is noted of all its rows with its last frame.
            let noted = if table.transactional || last {
                noted.clone()
            } else {
                Noted::default()
            };
            work.loaded(n, frame.rows, noted.hash);
            work.heard(Some(n), noted.warnings);
            work.progress(&table, frame.rows, frame.raw);
            continue;
        }
        if !table.transactional && kept.defined && emptied.insert(n) {
            let truncate = format!("TRUNCATE TABLE {}", table.quoted());
            work.patiently(control, work.open, |control| {
                control
                    .execute(truncate.as_bytes())
                    .map(drop)
                    .map_err(|e| Error::wire(format!("emptying table {}", table.shown()), e))
            })?;
        }
        todo.push(Job {
            frame: number,
            table: n,
            alone: !table.transactional,
            last,
            rows: frame.rows,
            stored: vec![],
        });
    }
    Ok(Jobs { todo, steps })
}

/// One ALTER for each table from this number on that lacks keys, the largest first.
pub(crate) fn keys(work: &Work<'_>, sessions: usize, (from, again): (usize, bool)) {
    let mut alters: Vec<(u64, Alter)> = vec![];
    for (n, table) in work.tables().iter().enumerate().skip(from) {
        if !table.definition.keys.is_empty() {
            let statement = added(table, &table.definition.keys);
            let heard = work.state().heard.get(&Some(n)).map_or(0, |h| h.rows);
            alters.push((
                // Of a plain dump its rows alone are known.
                table.bytes.max(heard),
                Alter {
                    table: n,
                    statement,
                },
            ));
        }
    }
    alters.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let sessions = sessions.min(alters.len());
    let alters = Mutex::new(alters.into_iter().map(|(_, a)| a).collect());
    std::thread::scope(|scope| {
        let making: Vec<_> = (0..sessions)
            .map(|_| scope.spawn(|| work.keys(&alters, again)))
            .collect();
        join(work, making);
    });
}

/// `ALTER TABLE … ADD …, ADD …`.
fn added(table: &TablePlan, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut statement = format!("ALTER TABLE {}", table.quoted()).into_bytes();
    for (n, key) in keys.iter().enumerate() {
        statement.extend_from_slice(if n > 0 { b", ADD " } else { b" ADD " });
        statement.extend_from_slice(key);
    }
    statement
}

/// Foreign keys, by one session: each holds two tables.
pub(crate) fn foreign_keys(
    work: &Work<'_>,
    control: &mut Session,
    (from, again): (usize, bool),
) -> Result<(), Error> {
    for (n, table) in work.tables().iter().enumerate().skip(from) {
        if table.definition.foreign_keys.is_empty() {
            continue;
        }
        let doing = || format!("making the foreign keys of table {}", table.shown());
        enter(control, &table.database)?;
        if again && has_foreign_keys(control, table).map_err(|e| Error::wire(doing(), e))? {
            continue;
        }
        let statement = added(table, &table.definition.foreign_keys);
        let warnings = executed(control, &statement).map_err(|e| Error::wire(doing(), e))?;
        work.heard(Some(n), warnings);
    }
    Ok(())
}

/// One statement makes all of a table: they are there, or none is.
fn has_foreign_keys(control: &mut Session, table: &TablePlan) -> Result<bool, wire::Error> {
    let asked = format!(
        "SELECT count(*) FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_TYPE = 'FOREIGN KEY' AND TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        sql::literal(&table.database),
        sql::literal(&table.definition.name)
    );
    let rows = control.ask(&asked)?;
    Ok(rows
        .first()
        .and_then(|row| row.first())
        .is_some_and(|n| n != "0"))
}

pub(crate) fn failure(work: &Work<'_>) -> Result<(), Error> {
    if let Some(e) = work.state().failure.take() {
        return Err(e);
    }
    if work.stop.is_stopped() {
        return Err(Error::Stopped);
    }
    Ok(())
}
