//! Frames on their way from who reads the artefact to the sessions that load them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// A frame that waits for a session.
pub(crate) struct Job {
    /// Its number in the file.
    pub(crate) frame: usize,
    /// Its table, by the number in the plan.
    pub(crate) table: usize,
    /// Nobody else loads of this table meanwhile, and its frames keep their order.
    pub(crate) alone: bool,
    /// The last of its table.
    pub(crate) last: bool,
    /// Rows in it, of a plain dump.
    pub(crate) rows: u64,
    pub(crate) stored: Vec<u8>,
}

/// Holds a few frames. Who takes a frame gives it back when it is done: a table may be loaded by one session at a time.
pub(crate) struct Queue {
    most: usize,
    /// What is being loaded counts as held too.
    in_work: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    held: usize,
    /// Frames that are being loaded.
    working: usize,
    /// Tables that one session has to itself.
    taken: BTreeSet<usize>,
    closed: bool,
    failed: bool,
}

impl Queue {
    /// Holds about `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            in_work: false,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    /// The same, where what is being loaded counts too.
    pub(crate) fn in_work(most: usize) -> Self {
        Self {
            in_work: true,
            ..Self::new(most)
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a frame; waits for room.
    pub(crate) fn give(&self, job: Job) -> Result<(), Error> {
        let mut state = self.state();
        while !state.failed && state.held > 0 && state.held + job.stored.len() > self.most {
            state = self.wait(state);
        }
        if state.failed {
            return Err(Error::Stopped);
        }
        state.held += job.stored.len();
        state.waiting.push_back(job);
        self.changed.notify_all();
        Ok(())
    }

    /// No more comes.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// All ends.
    pub(crate) fn fail(&self) {
        self.state().failed = true;
        self.changed.notify_all();
    }

    /// The next frame; `None` when all are taken.
    pub(crate) fn take(&self) -> Result<Option<Job>, Error> {
        let mut state = self.state();
        loop {
            if state.failed {
                return Err(Error::Stopped);
            }
            let free = |job: &Job| !job.alone || !state.taken.contains(&job.table);
            if let Some(at) = state.waiting.iter().position(free)
                && let Some(job) = state.waiting.remove(at)
            {
                if !self.in_work {
                    state.held -= job.stored.len();
                }
                state.working += 1;
                if job.alone {
                    state.taken.insert(job.table);
                }
                self.changed.notify_all();
                return Ok(Some(job));
            }
            if state.closed && state.waiting.is_empty() {
                return Ok(None);
            }
            state = self.wait(state);
        }
    }

    /// A frame is loaded; its table may be taken by the next.
    pub(crate) fn release(&self, job: &Job) {
        let mut state = self.state();
        if self.in_work {
            state.held -= job.stored.len();
        }
        state.working -= 1;
        if job.alone {
            state.taken.remove(&job.table);
        }
        self.changed.notify_all();
    }

    /// Waits until all that was given is loaded.
    pub(crate) fn drain(&self) -> Result<(), Error> {
        let mut state = self.state();
        while !state.failed && (state.working > 0 || !state.waiting.is_empty()) {
            state = self.wait(state);
        }
        if state.failed {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn job(frame: usize, table: usize, alone: bool) -> Job {
        Job {
            frame,
            table,
            alone,
            last: false,
            rows: 0,
            stored: vec![0; 10],
        }
    }

    #[test]
    fn a_table_is_loaded_alone_and_in_its_order_while_others_pass() {
        let queue = Queue::new(1000);
        for (frame, table, alone) in [(0, 7, true), (1, 7, true), (2, 8, false), (3, 8, false)] {
            queue.give(job(frame, table, alone)).unwrap();
        }
        queue.close();
        let first = queue.take().unwrap().unwrap();
        let next = || queue.take().unwrap().map(|job| job.frame);
        assert_eq!((first.frame, next(), next()), (0, Some(2), Some(3)));
        queue.release(&first);
        assert_eq!((next(), next()), (Some(1), None));
    }

    #[test]
    fn what_is_loaded_is_waited_for_and_counts_as_held() {
        let queue = Queue::in_work(15);
        queue.give(job(0, 0, false)).unwrap();
        let first = queue.take().unwrap().unwrap();
        std::thread::scope(|scope| {
            let giver = scope.spawn(|| queue.give(job(1, 0, false)));
            let taker = scope.spawn(|| {
                let next = queue.take().unwrap().unwrap();
                queue.release(&next);
            });
            queue.release(&first);
            giver.join().unwrap().unwrap();
            queue.drain().unwrap();
            taker.join().unwrap();
        });
        queue.fail();
        assert!(queue.drain().is_err());
    }

    #[test]
    fn who_gives_waits_for_room_and_a_failure_wakes_all() {
        let queue = Queue::new(15);
        std::thread::scope(|scope| {
            queue.give(job(0, 0, false)).unwrap();
            let giver = scope.spawn(|| {
                queue.give(job(1, 0, false))?;
                queue.give(job(2, 0, false))
            });
            assert_eq!(queue.take().unwrap().unwrap().frame, 0);
            assert_eq!(queue.take().unwrap().unwrap().frame, 1);
            assert!(giver.join().unwrap().is_ok());
            let giver = scope.spawn(|| queue.give(job(3, 0, false)));
            queue.fail();
            assert!(giver.join().unwrap().is_err() && queue.take().is_err());
        });
    }
}
