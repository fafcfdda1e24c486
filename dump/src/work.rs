//! The rows: several sessions read them, one thread takes them in the order of the file.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use wire::{Connection, Stop};

use crate::encode::Encoder;
use crate::error::Error;
use crate::frames::Meta;
use crate::order::Order;
use crate::parts::{Chunk, Compress, Options, Piece, Section, Server, Sum, Table, TableKind};
use crate::read::Reader;
use crate::{CHUNK, FRAME, chunk, text};

/// Bytes that wait for their turn in the file, as text and as they are stored, before a reader has to wait too.
const WAITING: usize = 8 << 20;
/// A text of fewer bytes does not keep the memory of a whole frame.
const SHORT: usize = FRAME / 4;

/// A frame of rows.
pub(crate) struct Part {
    pub(crate) meta: Meta,
    pub(crate) text: Vec<u8>,
    /// What it became; `None` if it stays as it is.
    pub(crate) stored: Option<Vec<u8>>,
}

impl Part {
    /// The memory that it takes.
    fn bytes(&self) -> usize {
        self.text.capacity() + self.stored.as_ref().map_or(0, Vec::capacity)
    }
}

/// What the readers share.
pub(crate) struct Work<'a> {
    server: &'a Server,
    tables: &'a [&'a Table],
    sessions: usize,
    state: Mutex<State>,
    /// For who waits until a table is cut.
    cut: Condvar,
    order: Order<Part>,
    encoders: Encoders,
    /// Memory of parts that were written, as text and as they were stored.
    spare: Mutex<[Vec<Vec<u8>>; 2]>,
}

#[derive(Default)]
struct State {
    /// Tables that were cut into chunks, or are being cut.
    cut: usize,
    /// Somebody is cutting one.
    cutting: bool,
    /// Chunks that nobody has begun.
    next: VecDeque<Job>,
    /// Chunks that were begun.
    begun: usize,
    sums: Vec<Sum>,
    failure: Option<Error>,
}

/// A chunk to be read.
struct Job {
    chunk: Chunk,
    last: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Work<'a> {
    /// All rows of these tables, read by so many sessions.
    pub(crate) fn new(
        options: &Options,
        server: &'a Server,
        tables: &'a [&'a Table],
        sessions: usize,
    ) -> Self {
        Self {
            server,
            tables,
            sessions,
            state: Mutex::new(State::default()),
            cut: Condvar::new(),
            order: Order::new(WAITING),
            encoders: Encoders::new(options.compress),
            spare: Mutex::default(),
        }
    }

    /// Reads all, and gives it to `write` part by part. `stop` ends the sessions' waits when that fails. The sums are those
    /// of the tables.
    ///
    /// # Errors
    /// The first of the sessions' and of `write`.
    pub(crate) fn all(
        self,
        sessions: Vec<Connection>,
        write: &mut dyn FnMut(&Part) -> Result<(), Error>,
        stop: &Stop,
    ) -> Result<Vec<Sum>, Error> {
        std::thread::scope(|scope| {
            for session in sessions {
                scope.spawn(|| self.run(session));
            }
            if let Err(e) = self.write(write) {
                // First, as it makes the readers fail too.
                if let Some(e) = e {
                    self.failed(e);
                }
                self.order.fail();
                stop.stop();
            }
        });
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        state.failure.map_or(Ok(state.sums), Err)
    }

    /// Ends all: the first failure counts.
    fn failed(&self, failure: Error) {
        lock(&self.state).failure.get_or_insert(failure);
        self.cut.notify_all();
        self.order.fail();
    }

    /// A reader's whole work.
    fn run(&self, mut session: Connection) {
        let _alarm = Alarm(self);
        let mut reader = Reader::default();
        let mut work = || {
            while let Some((number, job)) = self.next(&mut session)? {
                self.read(&mut session, &mut reader, number, &job)?;
            }
            Ok(())
        };
        match work() {
            // Another has failed, and has said so.
            Ok(()) | Err(Error::Stopped) => {}
            Err(e) => self.failed(e),
        }
    }

    /// The next chunk, in the order of the file. A table is cut when its turn comes, by one of the readers; the others read
    /// what is cut off already, and wait if that is nothing: what comes after the table has to stand behind it.
    fn next(&self, session: &mut Connection) -> Result<Option<(usize, Job)>, Error> {
        let mut state = lock(&self.state);
        loop {
            if state.failure.is_some() {
                return Err(Error::Stopped);
            }
            if let Some(job) = state.next.pop_front() {
                let number = state.begun;
                state.begun += 1;
                return Ok(Some((number, job)));
            }
            if state.cutting {
                state = self.cut.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(table) = self.tables.get(state.cut) else {
                self.order.chunks(state.begun);
                return Ok(None);
            };
            let index = state.cut;
            state.cut += 1;
            state.sums.push(Sum::default());
            if !has_rows(table) {
                continue;
            }
            state.cutting = true;
            drop(state);
            // One session alone reads a table at once.
            let size = if self.sessions > 1 { CHUNK } else { u64::MAX };
            let last = chunk::chunks(session, table, index, size, &mut |chunk| {
                let job = Job { chunk, last: false };
                lock(&self.state).next.push_back(job);
                self.cut.notify_one();
            })?;
            state = lock(&self.state);
            state.cutting = false;
            state.next.push_back(Job {
                chunk: last,
                last: true,
            });
            self.cut.notify_all();
        }
    }

    fn read(
        &self,
        session: &mut Connection,
        reader: &mut Reader,
        number: usize,
        job: &Job,
    ) -> Result<(), Error> {
        let Some(table) = self.tables.get(job.chunk.table) else {
            return Ok(());
        };
        let first = job.chunk.part == 0;
        let mut before = first.then(|| text::data_head(table));
        let mut after = job.last.then(|| text::data_foot(table));
        let mut begun = false;
        let sum = reader.read(
            session,
            self.server,
            table,
            &job.chunk,
            &mut |mut piece, last| {
                begun = true;
                piece.text.splice(0..0, before.take().unwrap_or_default());
                if last {
                    piece.text.extend(after.take().unwrap_or_default());
                }
                self.give(number, piece)
            },
        )?;
        // A table without rows gets no text at all.
        let both = [before, after].into_iter().flatten().collect::<Vec<_>>();
        if !both.is_empty() && (begun || !(first && job.last)) {
            self.give(
                number,
                Piece {
                    section: Section::Data,
                    database: table.database.clone(),
                    table: table.name.clone(),
                    text: both.concat(),
                    ..Piece::default()
                },
            )?;
        }
        self.order.end(number);
        let mut state = lock(&self.state);
        if let Some(all) = state.sums.get_mut(job.chunk.table) {
            all.rows = all.rows.saturating_add(sum.rows);
            all.hash = all.hash.wrapping_add(sum.hash);
        }
        Ok(())
    }

    /// Gives a piece to who writes. What comes back is memory for the next one.
    fn give(&self, number: usize, mut piece: Piece) -> Result<Vec<u8>, Error> {
        // A short text leaves its memory behind: many of them wait.
        let kept = (piece.text.len() < SHORT).then(|| {
            let short = piece.text.clone();
            std::mem::replace(&mut piece.text, short)
        });
        let spare = lock(&self.spare)[1].pop();
        let stored = self
            .encoders
            .encode(&piece.text, spare.unwrap_or_default())
            .map_err(|cause| Error::Output {
                doing: "compressing the dump",
                cause,
            })?;
        let part = Part {
            meta: Meta::from(&piece),
            text: piece.text,
            stored,
        };
        let bytes = part.bytes();
        self.order
            .give(number, false, bytes, part)
            .map_err(|_| Error::Stopped)?;
        let spare = || lock(&self.spare)[0].pop().unwrap_or_default();
        Ok(kept.unwrap_or_else(spare))
    }

    /// Takes what the readers give until there is no more of it. `None` as an error: a reader failed.
    fn write(
        &self,
        write: &mut dyn FnMut(&Part) -> Result<(), Error>,
    ) -> Result<(), Option<Error>> {
        while let Some((_, part)) = self.order.take().map_err(|_| None)? {
            write(&part).map_err(Some)?;
            let mut spare = lock(&self.spare);
            let both = [Some(part.text), part.stored];
            for (all, memory) in spare.iter_mut().zip(both) {
                all.extend(memory.filter(is_usual));
            }
        }
        Ok(())
    }
}

/// True if it is worth being used again: not that of a short text, nor what a large row took.
fn is_usual(memory: &Vec<u8>) -> bool {
    (SHORT..=FRAME + SHORT).contains(&memory.capacity())
}

/// True if rows of it are written.
fn has_rows(table: &Table) -> bool {
    matches!(
        table.kind,
        TableKind::Transactional | TableKind::NotTransactional
    )
}

/// Nobody waits for a thread that is no more.
struct Alarm<'a>(&'a Work<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed(Error::Unsupported(
                "a reading thread panicked: report it".to_owned(),
            ));
        }
    }
}

/// Encoders, no more of them than can work at once: each takes some megabytes.
struct Encoders {
    compress: Compress,
    all: Vec<Mutex<Option<Encoder>>>,
}

impl Encoders {
    fn new(compress: Compress) -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            compress,
            all: (0..count).map(|_| Mutex::default()).collect(),
        }
    }

    /// What a text becomes, in this memory; `None` if it stays as it is.
    fn encode(&self, text: &[u8], mut memory: Vec<u8>) -> std::io::Result<Option<Vec<u8>>> {
        if self.compress == Compress::None {
            return Ok(None);
        }
        let idle = self.all.iter().find_map(|slot| slot.try_lock().ok());
        let Some(mut slot) = idle.or_else(|| self.all.first().map(lock)) else {
            return Ok(None);
        };
        let encoder = match &mut *slot {
            Some(encoder) => encoder,
            none => none.insert(Encoder::new(self.compress)?),
        };
        encoder.encode(text, &mut memory)?;
        Ok(Some(memory))
    }
}
