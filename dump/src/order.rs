//! Many threads make the pieces of a file, one writes them in the order of the file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Another thread failed: what this one makes or waits for is needed no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped, as another part of the dump failed")]
pub struct Stopped;

/// Puts pieces of `T` into order. Their place is that of their chunk, counted from 0, and in a chunk the order in which
/// they are given, by one thread.
///
/// Chunks must be begun in their order: who begins one has seen all before it begun. Then the chunk that the file needs
/// next is in somebody's hands, and that thread is held back only while the writer has something of it to write. So
/// nobody waits for ever, and what is held is `most` bytes and two pieces, beside one piece in each thread's own hands.
pub struct Order<T> {
    most: usize,
    state: Mutex<State<T>>,
    /// For who gives.
    room: Condvar,
    /// For who writes.
    ready: Condvar,
}

struct State<T> {
    /// The chunk that the file needs next.
    next: usize,
    /// How many chunks there are, as soon as it is known.
    chunks: Option<usize>,
    /// What was given and not yet taken, by chunk.
    waiting: BTreeMap<usize, Waiting<T>>,
    held: usize,
    failed: bool,
}

struct Waiting<T> {
    pieces: VecDeque<(usize, T)>,
    whole: bool,
}

impl<T> State<T> {
    fn of(&mut self, chunk: usize) -> &mut Waiting<T> {
        self.waiting.entry(chunk).or_insert_with(|| Waiting {
            pieces: VecDeque::new(),
            whole: false,
        })
    }

    /// True if a piece of this chunk may come in.
    fn has_room(&self, chunk: usize, most: usize) -> bool {
        self.held < most
            || (chunk == self.next && self.waiting.get(&chunk).is_none_or(|w| w.pieces.is_empty()))
    }
}

impl<T> Order<T> {
    /// Holds about `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::new(State {
                next: 0,
                chunks: None,
                waiting: BTreeMap::new(),
                held: 0,
                failed: false,
            }),
            room: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a piece of `bytes` bytes; `last` if it is the last of its chunk. Waits for room.
    ///
    /// # Errors
    /// The dump has failed.
    pub fn give(&self, chunk: usize, last: bool, bytes: usize, piece: T) -> Result<(), Stopped> {
        let mut state = self
            .room
            .wait_while(self.state(), |s| !s.failed && !s.has_room(chunk, self.most))
            .unwrap_or_else(PoisonError::into_inner);
        if state.failed {
            return Err(Stopped);
        }
        state.held = state.held.saturating_add(bytes);
        let waiting = state.of(chunk);
        waiting.pieces.push_back((bytes, piece));
        waiting.whole |= last;
        if chunk == state.next {
            self.ready.notify_all();
        }
        Ok(())
    }

    /// Says that no more comes of this chunk: for who did not know at the last piece, or had none.
    pub fn end(&self, chunk: usize) {
        let mut state = self.state();
        state.of(chunk).whole = true;
        if chunk == state.next {
            self.ready.notify_all();
        }
    }

    /// Says how many chunks there are, as soon as it is known.
    pub fn chunks(&self, count: usize) {
        self.state().chunks = Some(count);
        self.ready.notify_all();
    }

    /// The next piece of the file, and its chunk. Waits for it. `None` after the last.
    ///
    /// # Errors
    /// The dump has failed.
    pub fn take(&self) -> Result<Option<(usize, T)>, Stopped> {
        let mut state = self.state();
        loop {
            if state.failed {
                return Err(Stopped);
            }
            let next = state.next;
            if let Some(waiting) = state.waiting.get_mut(&next) {
                if let Some((bytes, piece)) = waiting.pieces.pop_front() {
                    state.held = state.held.saturating_sub(bytes);
                    self.room.notify_all();
                    return Ok(Some((next, piece)));
                }
                if waiting.whole {
                    state.waiting.remove(&next);
                    state.next += 1;
                    self.room.notify_all();
                    continue;
                }
            }
            if state.chunks.is_some_and(|count| next >= count) {
                return Ok(None);
            }
            state = self
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes everybody: the dump has failed.
    pub fn fail(&self) {
        let mut state = self.state();
        state.failed = true;
        state.waiting.clear();
        state.held = 0;
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Bytes that were given and not yet taken.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state().held
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    /// Runs `work` and fails if it has not ended after a minute, instead of hanging.
    fn within_a_minute<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        ended
            .recv_timeout(Duration::from_secs(60))
            .expect("it hangs")
    }

    /// Spins a while, or lets others go first.
    fn dally(turns: u8) {
        for _ in 0..turns {
            std::thread::yield_now();
        }
    }

    /// Chunks of pieces of this many bytes, made by `threads` that take chunks in their order; gives what was written, and
    /// the most that was held.
    fn written(
        chunks: &[Vec<u8>],
        threads: usize,
        most: usize,
        pace: &[u8],
    ) -> (Vec<(usize, usize)>, usize) {
        let order = Order::new(most);
        let begun = AtomicUsize::new(0);
        let pace_of = |n: usize| pace.get(n % pace.len()).copied().unwrap_or(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let chunk = begun.fetch_add(1, Ordering::SeqCst);
                        let Some(pieces) = chunks.get(chunk) else {
                            return;
                        };
                        for (n, bytes) in pieces.iter().enumerate() {
                            dally(pace_of(chunk + n));
                            // Every second chunk knows its last piece, the others end on their own.
                            let last = chunk.is_multiple_of(2) && n + 1 == pieces.len();
                            order
                                .give(chunk, last, usize::from(*bytes), (chunk, n))
                                .unwrap();
                        }
                        if !chunk.is_multiple_of(2) || pieces.is_empty() {
                            order.end(chunk);
                        }
                    }
                });
            }
            order.chunks(chunks.len());
            let (mut all, mut held) = (vec![], 0);
            while let Some((chunk, piece)) = order.take().unwrap() {
                assert_eq!(chunk, piece.0);
                held = held.max(order.held());
                dally(pace_of(all.len()));
                all.push(piece);
            }
            (all, held)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_file_is_in_order_nothing_hangs_and_little_is_held(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..40),
            threads in 1usize..9,
            most in 0usize..2000,
            pace in proptest::collection::vec(0u8..30, 1..7),
        ) {
            let wanted: Vec<(usize, usize)> = chunks
                .iter()
                .enumerate()
                .flat_map(|(c, pieces)| (0..pieces.len()).map(move |n| (c, n)))
                .collect();
            let (all, held) = within_a_minute(move || written(&chunks, threads, most, &pace));
            prop_assert_eq!(all, wanted);
            prop_assert!(held <= most + 2 * 255, "{} held of {}", held, most);
        }
    }

    #[test]
    fn a_slow_first_chunk_is_not_held_back_by_the_others() {
        let taken = within_a_minute(|| {
            let order = Order::new(10);
            std::thread::scope(|scope| {
                let others = scope.spawn(|| {
                    // More than is held: it waits for chunk 0, whose thread begins when this one already waits.
                    (0..5).try_for_each(|n| order.give(1, n == 4, 10, n + 100))
                });
                while order.held() < 10 {
                    std::thread::yield_now();
                }
                let first = scope.spawn(|| (0..5).try_for_each(|n| order.give(0, n == 4, 10, n)));
                order.chunks(2);
                let mut all = vec![];
                while let Some((_, n)) = order.take().unwrap() {
                    all.push(n);
                }
                assert_eq!(others.join().unwrap(), Ok(()));
                assert_eq!(first.join().unwrap(), Ok(()));
                all
            })
        });
        assert_eq!(taken, [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]);
    }

    #[test]
    fn who_is_next_waits_for_a_slow_store_too() {
        let order = Order::new(10);
        for n in 0..2 {
            order.give(0, false, 8, n).unwrap();
        }
        let held = order.held();
        let state = order.state();
        assert!(!state.has_room(0, 10) && !state.has_room(1, 10), "{held}");
    }

    #[test]
    fn a_failure_wakes_all() {
        within_a_minute(|| {
            let order = Order::new(1);
            std::thread::scope(|scope| {
                let givers: Vec<_> = (1..4)
                    .map(|chunk| {
                        let order = &order;
                        scope.spawn(move || {
                            order.give(chunk, false, 5, ())?;
                            order.give(chunk, true, 5, ())
                        })
                    })
                    .collect();
                let writer = scope.spawn(|| order.take());
                while order.held() == 0 {
                    std::thread::yield_now();
                }
                order.fail();
                for giver in givers {
                    assert_eq!(giver.join().unwrap(), Err(Stopped));
                }
                assert_eq!(writer.join().unwrap(), Err(Stopped));
                assert_eq!((order.held(), order.take()), (0, Err(Stopped)));
            });
        });
    }
}
