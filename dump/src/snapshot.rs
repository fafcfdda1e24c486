//! Sessions that see the same, by the first rung that holds.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, Stop};

use crate::ask;
use crate::error::Error;
use crate::parts::{Flavour, Options, Position, Rung, Server};
use crate::sql;

/// Sessions that see the same rows, whatever is written meanwhile.
#[derive(Debug)]
pub struct Snapshot {
    /// The sessions, as many as were asked for, or one.
    pub sessions: Vec<Connection>,
    /// What makes them see the same.
    pub rung: Rung,
    /// How long it took until they did.
    pub took: Duration,
    /// Better rungs that did not hold, and why.
    pub passed: Vec<(Rung, String)>,
    /// What is worth knowing beside that, in words.
    pub notes: Vec<String>,
    /// Where in the binary log it is; `None` where that is not known exactly.
    pub position: Option<Position>,
    /// While it is kept, the server lets nobody change definitions; `None` where the user may not ask for that.
    pub guard: Option<Connection>,
}

/// Sessions begin again and again for so long until they see the same.
const TRIES: Duration = Duration::from_secs(2);
/// A lock is waited for so long: behind it others wait.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Where a session goes back to between two tables, so that it holds no table that it has read.
pub(crate) const SAVEPOINT: &str = "dump_begin";

const BEGINNING: &str = "beginning the snapshot";
const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
const SILENT: &str = "the server does not say which position of its binary log a session sees";
/// A position has to be told so often in a row, and is asked for so often at most.
const TOLD: u32 = 3;
const ASKED: u32 = 12;
/// MariaDB has these, and Percona Server.
const SNAPSHOT_POSITION: &str =
    "SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')";

/// A user without a privilege, or a server without room: numbers of their errors.
const DENIED: [u16; 5] = [1044, 1045, 1142, 1143, 1227];
const FULL: [u16; 3] = [1040, 1203, 1226];
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const NO_SUCH_TABLE: [u16; 3] = [1049, 1051, 1146];
const INTERRUPTED: [u16; 4] = [1053, 1317, 1927, 3169];

/// What a rung gives, or why it does not hold.
type Tried = Result<Option<Position>, String>;

/// Opens sessions and makes them see the same. `prepare` is done to each of them first. `tables` are those whose rows are
/// read; the second rung locks them.
///
/// # Errors
/// No session can be opened, a table is gone, or a connection is lost.
pub fn begin(
    open: &dyn Fn() -> Result<Connection, wire::Error>,
    prepare: &dyn Fn(&mut Connection) -> Result<(), Error>,
    server: &Server,
    options: &Options,
    tables: &[(String, String)],
    stop: &Stop,
) -> Result<Snapshot, Error> {
    let begun = Instant::now();
    let door = Door { open, prepare };
    let (mut sessions, mut notes) = (vec![door.session()?], vec![]);
    while sessions.len() < options.sessions {
        match door.session() {
            Ok(session) => sessions.push(session),
            Err(Error::Wire { cause, .. }) if is_one_of(&cause, &FULL) => {
                notes.push(format!(
                    "the server lets in {} of {} sessions: {cause}",
                    sessions.len(),
                    options.sessions
                ));
                break;
            }
            Err(e) => return Err(e),
        }
    }
    let guard = guard(&door, server)?;
    let mut snapshot = Snapshot {
        sessions,
        rung: Rung::Single,
        took: Duration::ZERO,
        passed: vec![],
        notes,
        position: None,
        guard,
    };
    if snapshot.sessions.len() > 1 {
        snapshot.climb(&door, server, tables, stop)?;
    }
    if snapshot.rung == Rung::Single {
        snapshot.sessions.truncate(1);
        start(&mut snapshot.sessions)?;
        snapshot.position = snapshot_position(&mut snapshot.sessions[0])?;
    }
    for session in &mut snapshot.sessions {
        let save = format!("SAVEPOINT {SAVEPOINT}");
        session
            .execute(&save)
            .map_err(|e| Error::wire(BEGINNING, e))?;
    }
    snapshot.gtid(server)?;
    snapshot.took = begun.elapsed();
    Ok(snapshot)
}

impl Snapshot {
    /// Tries the rungs for several sessions.
    fn climb(
        &mut self,
        door: &Door<'_>,
        server: &Server,
        tables: &[(String, String)],
        stop: &Stop,
    ) -> Result<(), Error> {
        for rung in [Rung::Agreed, Rung::LockTables] {
            if stop.is_stopped() {
                return Err(Error::wire(BEGINNING, wire::Error::Stopped));
            }
            let tried = match rung {
                Rung::Agreed => self.agree(server)?,
                _ => self.under_lock(door, server, &lock_tables(tables))?,
            };
            match tried {
                Ok(position) => {
                    (self.rung, self.position) = (rung, position);
                    return Ok(());
                }
                Err(why) => self.passed.push((rung, why)),
            }
        }
        Ok(())
    }

    /// All begin at the same moment until they see the same position of the binary log.
    fn agree(&mut self, server: &Server) -> Result<Tried, Error> {
        match logged(&mut self.sessions[0], server)? {
            Logged::No(why) => return Ok(Err(why)),
            Logged::Unseen(why) => self.notes.push(why),
            Logged::Yes => {}
        }
        let (begun, mut tries) = (Instant::now(), 0_u32);
        loop {
            tries += 1;
            start(&mut self.sessions)?;
            let Some(first) = snapshot_position(&mut self.sessions[0])? else {
                return Ok(Err(SILENT.to_owned()));
            };
            let mut same = true;
            for session in self.sessions.iter_mut().skip(1) {
                same = same && snapshot_position(session)?.as_ref() == Some(&first);
            }
            if same {
                return Ok(Ok(Some(first)));
            }
            if begun.elapsed() >= TRIES {
                return Ok(Err(format!(
                    "{} sessions began {tries} times within {} s, and never at the same position of the binary log",
                    self.sessions.len(),
                    TRIES.as_secs()
                )));
            }
        }
    }

    /// All begin while a session holds a lock.
    fn under_lock(&mut self, door: &Door<'_>, server: &Server, lock: &str) -> Result<Tried, Error> {
        let (mut holder, killer) = match (door.locker()?, door.locker()?) {
            (Ok(holder), Ok(killer)) => (holder, killer),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        if let Err(cause) = patiently(&mut holder, lock, killer)? {
            return refused(cause);
        }
        start(&mut self.sessions)?;
        let position = self.locked_position(server)?;
        holder
            .execute("UNLOCK TABLES")
            .map_err(|e| Error::wire("unlocking the tables", e))?;
        Ok(Ok(position))
    }

    /// The position while nothing that is read can be written.
    fn locked_position(&mut self, server: &Server) -> Result<Option<Position>, Error> {
        if let Some(position) = snapshot_position(&mut self.sessions[0])? {
            return Ok(Some(position));
        }
        if server.flavour == Flavour::MariaDb {
            return Ok(None);
        }
        let session = &mut self.sessions[0];
        let doing = "asking for the position of the binary log";
        let status = match ask::rows(session, log_status(server), doing) {
            Err(Error::Wire { cause, .. }) if is_one_of(&cause, &DENIED) => {
                self.notes.push(format!(
                    "the position of the binary log is not known, for which REPLICATION CLIENT would have to be granted: {cause}"
                ));
                return Ok(None);
            }
            rows => rows?,
        };
        let Some(row) = status.into_iter().next() else {
            return Ok(None);
        };
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let (file, offset) = (values.next(), values.next());
        let gtid = values.nth(2).unwrap_or_default().replace(['\n', ' '], "");
        let (Some(file), Some(Ok(offset))) = (file, offset.map(|text| text.parse())) else {
            return Ok(None);
        };
        Ok(Some(Position { file, offset, gtid }))
    }

    /// MariaDB says which GTIDs a position has.
    fn gtid(&mut self, server: &Server) -> Result<(), Error> {
        let Some(position) = &mut self.position else {
            return Ok(());
        };
        if server.flavour == Flavour::MariaDb && position.gtid.is_empty() {
            let ask = format!(
                "SELECT BINLOG_GTID_POS({}, {})",
                sql::literal(&position.file),
                position.offset
            );
            let doing = "asking for the GTIDs of the snapshot";
            position.gtid = ask::value(&mut self.sessions[0], &ask, doing)?.unwrap_or_default();
        }
        Ok(())
    }
}

/// How sessions are opened.
struct Door<'a> {
    open: &'a dyn Fn() -> Result<Connection, wire::Error>,
    prepare: &'a dyn Fn(&mut Connection) -> Result<(), Error>,
}

impl Door<'_> {
    fn session(&self) -> Result<Connection, Error> {
        let mut session = (self.open)().map_err(|e| Error::wire("opening a session", e))?;
        (self.prepare)(&mut session)?;
        // Any other isolation would make a snapshot of each statement.
        session
            .execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .map_err(|e| Error::wire("preparing a session", e))?;
        Ok(session)
    }

    /// A session for a lock; why there is none where the server is full.
    fn locker(&self) -> Result<Result<Connection, String>, Error> {
        let mut session = match self.session() {
            Err(Error::Wire { cause, .. }) if is_one_of(&cause, &FULL) => {
                return Ok(Err(format!("no session is left for the lock: {cause}")));
            }
            session => session?,
        };
        let wait = format!("SET SESSION lock_wait_timeout={}", LOCK_WAIT.as_secs());
        session
            .execute(&wait)
            .map_err(|e| Error::wire("preparing a lock", e))?;
        Ok(Ok(session))
    }
}

fn is_one_of(e: &wire::Error, numbers: &[u16]) -> bool {
    e.number().is_some_and(|n| numbers.contains(&n))
}

/// Begins in all sessions, sent to all before any answer is read.
fn start(sessions: &mut [Connection]) -> Result<(), Error> {
    let wrap = |e| Error::wire(BEGINNING, e);
    for session in &mut *sessions {
        session.begin(BEGIN).map_err(wrap)?;
    }
    for session in sessions {
        session.answer().and_then(ask::take).map_err(wrap)?;
    }
    Ok(())
}

/// The position that this session's snapshot has; `None` where the server does not say.
///
/// MariaDB keeps what it answers in one place for all who ask, so that two who ask at the same moment may both be told of
/// the one's. So our sessions ask one after the other, and an answer counts when it was given several times: monitoring
/// asks too.
fn snapshot_position(session: &mut Connection) -> Result<Option<Position>, Error> {
    let (mut last, mut times) = (None, 0);
    for _ in 0..ASKED {
        let rows = ask::rows(session, SNAPSHOT_POSITION, BEGINNING)?;
        let Some(position) = position_of(&rows) else {
            return Ok(None);
        };
        times = if last.as_ref() == Some(&position) {
            times + 1
        } else {
            1
        };
        last = Some(position);
        if times == TOLD {
            return Ok(last);
        }
    }
    Ok(None)
}

/// Of rows (name, value); `None` where the server has no binary log.
fn position_of(rows: &[ask::Texts]) -> Option<Position> {
    let value = |wanted: &str| {
        let row = rows.iter().find(|row| match row.first() {
            Some(Some(name)) => name.eq_ignore_ascii_case(wanted),
            _ => false,
        })?;
        row.get(1)?.clone()
    };
    let file = value("Binlog_snapshot_file").filter(|file| !file.is_empty())?;
    let offset = value("Binlog_snapshot_position")?.parse().ok()?;
    Some(Position {
        file,
        offset,
        gtid: String::new(),
    })
}

/// Whether all that is committed shows in the position of the binary log.
enum Logged {
    Yes,
    No(String),
    Unseen(String),
}

/// Two sessions at the same position see the same only if nothing is committed beside the binary log.
fn logged(session: &mut Connection, server: &Server) -> Result<Logged, Error> {
    let no = |why: &str| Ok(Logged::No(why.to_owned()));
    let doing = "asking what the binary log holds";
    let pairs =
        |session: &mut Connection, statement: &str| -> Result<Vec<(String, String)>, Error> {
            let rows = ask::rows(session, statement, doing)?;
            let pair = |row: ask::Texts| {
                let mut values = row.into_iter().map(Option::unwrap_or_default);
                let name = values.next().unwrap_or_default().to_ascii_lowercase();
                (name, values.next().unwrap_or_default())
            };
            Ok(rows.into_iter().map(pair).collect())
        };
    let of = |pairs: &[(String, String)], wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    if position_of(&ask::rows(session, SNAPSHOT_POSITION, doing)?).is_none() {
        let variables = pairs(session, "SHOW GLOBAL VARIABLES LIKE 'log_bin'")?;
        return if of(&variables, "log_bin") == "ON" {
            no(SILENT)
        } else {
            no("the server writes no binary log")
        };
    }
    let variables = pairs(
        session,
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_slave_updates', 'log_replica_updates', 'wsrep_on')",
    )?;
    let updates = of(&variables, "log_slave_updates") == "ON"
        || of(&variables, "log_replica_updates") == "ON";
    if !updates {
        if of(&variables, "wsrep_on") == "ON" {
            return no(
                "the binary log does not hold what other nodes write (log_slave_updates is OFF)",
            );
        }
        let status = pairs(session, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")?;
        if of(&status, "slaves_running") != "0" {
            return no(
                "the binary log does not hold what is replicated (log_slave_updates is OFF)",
            );
        }
    }
    match ask::rows(session, log_status(server), doing) {
        Ok(rows) => {
            let filter = |row: &ask::Texts, at: usize| {
                let words = row.get(at).cloned().flatten();
                words.is_some_and(|words| !words.is_empty())
            };
            if rows.iter().any(|row| filter(row, 2) || filter(row, 3)) {
                return no("the binary log leaves databases out (binlog_do_db, binlog_ignore_db)");
            }
            Ok(Logged::Yes)
        }
        Err(Error::Wire { cause, .. }) if is_one_of(&cause, &DENIED) => {
            let set = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_do_db', 'binlog_ignore_db') AND Value <> ''";
            if !pairs(session, set)?.is_empty() {
                return no("the binary log leaves databases out (binlog_do_db, binlog_ignore_db)");
            }
            if server.flavour == Flavour::MariaDb && server.numbers >= (11, 7, 0) {
                return Ok(Logged::Yes);
            }
            Ok(Logged::Unseen(
                "whether the binary log leaves databases out (binlog_do_db, binlog_ignore_db) can't be seen: if it does, the sessions may differ in them; BINLOG MONITOR lets the user see it"
                    .to_owned(),
            ))
        }
        Err(e) => Err(e),
    }
}

/// File, position, databases that are logged, those that are not, and of MySQL the GTIDs.
fn log_status(server: &Server) -> &'static str {
    if server.flavour == Flavour::MySql && server.numbers >= (8, 2, 0) {
        "SHOW BINARY LOG STATUS"
    } else {
        "SHOW MASTER STATUS"
    }
}

fn lock_tables(tables: &[(String, String)]) -> String {
    let each = tables.iter().map(|(database, table)| {
        let name = if database.is_empty() {
            sql::name(table)
        } else {
            sql::table(database, table)
        };
        format!("{name} READ")
    });
    format!("LOCK TABLES {}", each.collect::<Vec<_>>().join(", "))
}

/// Runs a statement that waits for locks, and ends its session where it takes too long: what it has locked already and
/// whoever waits behind it would wait too.
fn patiently(
    holder: &mut Connection,
    lock: &str,
    mut killer: Connection,
) -> Result<Result<(), wire::Error>, Error> {
    let id = ask::value(holder, "SELECT CONNECTION_ID()", "preparing a lock")?;
    let id: u64 = id.and_then(|id| id.parse().ok()).unwrap_or_default();
    let (done, over) = mpsc::channel();
    let locked = thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let ended = over.recv_timeout(LOCK_WAIT + Duration::from_secs(1));
            if ended != Ok(true) {
                // If it fails, lock_wait_timeout ends the wait.
                let _ = killer.execute(&format!("KILL {id}"));
            }
        });
        let locked = holder.execute(lock);
        let answered = !locked.as_ref().is_err_and(wire::Error::is_final);
        let _ = done.send(answered);
        let _ = watch.join();
        locked
    });
    Ok(locked.map(drop))
}

/// Why a lock was not had, or what ends the dump.
fn refused(cause: wire::Error) -> Result<Tried, Error> {
    let seconds = LOCK_WAIT.as_secs();
    if is_one_of(&cause, &DENIED) {
        return Ok(Err(format!("LOCK TABLES is not granted: {cause}")));
    }
    if is_one_of(&cause, &NO_SUCH_TABLE) {
        return Err(Error::Changed(format!(
            "a table was dropped while the dump began: {cause}"
        )));
    }
    let killed = is_one_of(&cause, &INTERRUPTED) || matches!(cause, wire::Error::Lost(_));
    if killed || is_one_of(&cause, &[LOCK_WAIT_TIMEOUT]) {
        return Ok(Err(format!(
            "the lock could not be had within {seconds} s, as others hold the tables: {cause}"
        )));
    }
    if cause.is_final() {
        return Err(Error::wire("locking the tables", cause));
    }
    Ok(Err(cause.to_string()))
}

/// A session that keeps definitions from being changed, where the user may have it.
fn guard(door: &Door<'_>, server: &Server) -> Result<Option<Connection>, Error> {
    // MariaDB's BACKUP LOCK is for one table at a time, and the table that a session reads can't be changed anyway.
    if server.flavour != Flavour::MySql || server.numbers < (8, 0, 0) {
        return Ok(None);
    }
    let Ok(mut session) = door.locker()? else {
        return Ok(None);
    };
    match session.execute("LOCK INSTANCE FOR BACKUP") {
        Ok(_) => Ok(Some(session)),
        Err(e) if e.is_final() => Err(Error::wire("keeping definitions from being changed", e)),
        Err(_) => Ok(None),
    }
}
