//! Loads a snapshot: every value goes as it stands in the file, by `RESTORE`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;

use crate::database::redis::rdb::{Error, Item, Key, Reader};
use crate::database::redis::server::{Reply, Server, refused};
use crate::failure::Failure;

/// Most commands under way: their replies fit in the socket's buffers, so that neither side waits
/// for the other.
const UNDER_WAY: usize = 512;
/// Most bytes of values under way, beside one more value.
const BYTES: usize = 8 << 20;
/// Keys that expire within so many minutes are counted by the minute.
const MINUTES: usize = 24 * 60;

/// What a snapshot holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Version of its format.
    pub(crate) version: u16,
    /// Keys by database.
    pub(crate) keys: BTreeMap<u64, u64>,
    /// Those of them that have expired at the moment given.
    pub(crate) expired: BTreeMap<u64, u64>,
    /// Libraries of functions.
    pub(crate) functions: u64,
    /// Modules with data beside keys.
    pub(crate) modules: BTreeSet<String>,
    /// Replication id of the server it came from, where it is known.
    pub(crate) replication_id: Option<String>,
    /// What the server called its version.
    pub(crate) made_by: Option<String>,
}

impl Survey {
    /// Keys that are not expired, by database; those without any are left out.
    pub(crate) fn living(&self) -> BTreeMap<u64, u64> {
        let expired = |database| self.expired.get(database).copied().unwrap_or(0);
        let living = self.keys.iter().map(|(d, n)| (*d, n - expired(d)));
        living.filter(|(_, n)| *n > 0).collect()
    }
}

/// Reads a snapshot to its end. `now` in milliseconds since 1970.
///
/// # Errors
/// It is none, or not whole, or holds what can't be restored.
pub(crate) fn survey(snapshot: impl Read, now: u64) -> Result<Survey, Error> {
    let mut reader = Reader::new(snapshot, false)?;
    let mut found = Survey::default();
    while let Some(item) = reader.next()? {
        match item {
            Item::Key(key) => {
                *found.keys.entry(key.database).or_default() += 1;
                if key.expired(now) {
                    *found.expired.entry(key.database).or_default() += 1;
                }
            }
            Item::Functions(_) => found.functions += 1,
            Item::ModuleData(module) => {
                found.modules.insert(module);
            }
        }
    }
    found.version = reader.version();
    found.replication_id = reader.note("repl-id").map(str::to_owned);
    let maker = reader.note("valkey-ver").map(|v| format!("Valkey {v}"));
    let redis = reader.note("redis-ver").map(|v| format!("Redis {v}"));
    found.made_by = maker.or(redis);
    Ok(found)
}

/// What was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Keys by database.
    pub(crate) keys: BTreeMap<u64, u64>,
    /// Those of them that will expire some time later than a day from now, or never.
    lasting: BTreeMap<u64, u64>,
    /// Those that expire sooner, by the minute.
    passing: BTreeMap<u64, Vec<u64>>,
    /// Keys that had expired, and were left out.
    pub(crate) expired: u64,
    /// Libraries of functions.
    pub(crate) functions: u64,
}

impl Loaded {
    fn count(&mut self, database: u64, expires: Option<u64>, now: u64) {
        *self.keys.entry(database).or_default() += 1;
        let minute = expires.map(|at| at.saturating_sub(now) / 60_000);
        let minute = minute.and_then(|m| usize::try_from(m).ok());
        match minute.filter(|m| *m < MINUTES) {
            None => *self.lasting.entry(database).or_default() += 1,
            Some(minute) => {
                let minutes = self
                    .passing
                    .entry(database)
                    .or_insert_with(|| vec![0; MINUTES]);
                if let Some(count) = minutes.get_mut(minute) {
                    *count += 1;
                }
            }
        }
    }

    /// Keys that must be there still, `minutes` after the beginning.
    pub(crate) fn at_least(&self, database: u64, minutes: u64) -> u64 {
        let lasting = self.lasting.get(&database).copied().unwrap_or(0);
        // The server's clock may be ahead of ours by a minute.
        let gone = usize::try_from(minutes)
            .unwrap_or(MINUTES)
            .saturating_add(2);
        let passing = self.passing.get(&database).map_or(&[][..], Vec::as_slice);
        lasting + passing.iter().skip(gone).sum::<u64>()
    }

    /// All keys.
    pub(crate) fn total(&self) -> u64 {
        self.keys.values().sum()
    }
}

/// Why a snapshot is not loaded to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It can't be read.
    Snapshot(Error),
    /// The server refuses it, or is lost.
    Server(Failure),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Snapshot(e)
    }
}

impl From<Failure> for Stop {
    fn from(e: Failure) -> Self {
        Self::Server(e)
    }
}

/// Loads a snapshot; with `replace` over keys and functions of the same name. Keys that are expired
/// at `now`, in milliseconds since 1970, are left out.
///
/// # Errors
/// The snapshot can't be read, or the server refuses a key; those before it are loaded.
pub(crate) fn load(
    server: &mut Server<'_>,
    snapshot: impl Read,
    replace: bool,
    now: u64,
) -> Result<Loaded, Stop> {
    let mut reader = Reader::new(snapshot, true)?;
    let version = reader.version();
    let mut loaded = Loaded::default();
    let mut way = Way::default();
    let mut selected = None;
    while let Some(item) = reader.next()? {
        match item {
            Item::Key(key) if key.expired(now) => loaded.expired += 1,
            Item::Key(key) => {
                let database = key.database;
                if selected != Some(database) {
                    let number = database.to_string();
                    way.send(
                        server,
                        &[b"SELECT", number.as_bytes()],
                        What::Database(database),
                    )?;
                    selected = Some(database);
                }
                loaded.count(database, key.expires, now);
                restore(server, &mut way, key, version, replace)?;
            }
            Item::Functions(code) => {
                let mut words: Vec<&[u8]> = vec![b"FUNCTION", b"LOAD"];
                if replace {
                    words.push(b"REPLACE");
                }
                words.push(&code);
                way.send(server, &words, What::Functions)?;
                loaded.functions += 1;
            }
            Item::ModuleData(_) => {}
        }
    }
    way.settle(server, 0, 0)?;
    Ok(loaded)
}

fn restore(
    server: &mut Server<'_>,
    way: &mut Way,
    key: Key,
    version: u16,
    replace: bool,
) -> Result<(), Failure> {
    let what = What::Database(key.database);
    let expires = key.expires.unwrap_or(0).to_string();
    let idle = key.idle.map(|n| n.to_string());
    let frequency = key.frequency.map(|n| n.to_string());
    let mut key = key;
    let name = std::mem::take(&mut key.name);
    let payload = key.payload(version);
    let mut words: Vec<&[u8]> = vec![b"RESTORE", &name, expires.as_bytes(), &payload, b"ABSTTL"];
    if replace {
        words.push(b"REPLACE");
    }
    // A server takes one of them.
    match (&idle, &frequency) {
        (Some(idle), _) => words.extend([&b"IDLETIME"[..], idle.as_bytes()]),
        (None, Some(frequency)) => words.extend([&b"FREQ"[..], frequency.as_bytes()]),
        (None, None) => {}
    }
    way.send(server, &words, what)
}

/// What a reply that is awaited speaks of.
#[derive(Clone, Copy)]
enum What {
    Database(u64),
    Functions,
}

/// Commands that were sent and not answered.
#[derive(Default)]
struct Way {
    sent: VecDeque<(What, usize)>,
    bytes: usize,
}

impl Way {
    fn send(
        &mut self,
        server: &mut Server<'_>,
        words: &[&[u8]],
        what: What,
    ) -> Result<(), Failure> {
        server.context.check()?;
        let bytes = words.iter().map(|w| w.len()).sum();
        // Half of them, so that what goes out goes many at once.
        if self.sent.len() >= UNDER_WAY || self.bytes > BYTES {
            self.settle(server, UNDER_WAY / 2, BYTES / 2)?;
        }
        server.wire.send(words)?;
        self.sent.push_back((what, bytes));
        self.bytes += bytes;
        Ok(())
    }

    /// Awaits replies until no more than this is under way.
    fn settle(
        &mut self,
        server: &mut Server<'_>,
        most: usize,
        bytes: usize,
    ) -> Result<(), Failure> {
        while self.sent.len() > most || self.bytes > bytes {
            let Some((what, bytes)) = self.sent.pop_front() else {
                return Ok(());
            };
            self.bytes -= bytes;
            if let Reply::Error(said) = server.wire.reply()? {
                let what = match what {
                    What::Database(database) => format!("database {database}"),
                    What::Functions => "a library of functions".to_owned(),
                };
                return Err(refused(&server.context.scrub.clean(&said), &what));
            }
        }
        Ok(())
    }
}
