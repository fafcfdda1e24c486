//! Which object is looked at next: what is due first, then what follows up, each object by one
//! worker at a time, with one wake-up an object.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

pub(crate) use crate::ownership::Key;

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Status writes and the rest.
    Follow,
    /// A slot may be due: a Job is to be created.
    Due,
}

#[derive(Debug, Default)]
struct Inner {
    due: VecDeque<Key>,
    follow: VecDeque<Key>,
    /// Waiting keys, and at which priority.
    waiting: HashMap<Key, Priority>,
    /// Keys a worker has; whether they are to be looked at again.
    working: HashMap<Key, Option<Priority>>,
    timers: BTreeSet<(DateTime<Utc>, Key)>,
    timer_of: HashMap<Key, DateTime<Utc>>,
    failures: HashMap<Key, u32>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    ready: Notify,
    timer: Notify,
}

impl Inner {
    fn push(&mut self, key: Key, priority: Priority) -> bool {
        if let Some(again) = self.working.get_mut(&key) {
            *again = Some(again.map_or(priority, |p| p.max(priority)));
            return false;
        }
        match self.waiting.get(&key) {
            Some(Priority::Due) => return false,
            Some(Priority::Follow) if priority == Priority::Follow => return false,
            // Its place among the followers is skipped when it comes up.
            _ => {}
        }
        self.waiting.insert(key.clone(), priority);
        match priority {
            Priority::Due => self.due.push_back(key),
            Priority::Follow => self.follow.push_back(key),
        }
        true
    }

    fn pop(&mut self) -> Option<Key> {
        for priority in [Priority::Due, Priority::Follow] {
            loop {
                let lane = match priority {
                    Priority::Due => &mut self.due,
                    Priority::Follow => &mut self.follow,
                };
                let Some(key) = lane.pop_front() else { break };
                if self.waiting.get(&key) == Some(&priority) {
                    self.waiting.remove(&key);
                    self.working.insert(key.clone(), None);
                    return Some(key);
                }
            }
        }
        None
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key.
    pub(crate) fn push(&self, key: Key, priority: Priority) {
        if self.lock().push(key, priority) {
            self.ready.notify_one();
        }
    }

    /// Sets the one wake-up of a key; `None` removes it.
    pub(crate) fn wake_at(&self, key: &Key, at: Option<DateTime<Utc>>) {
        let mut inner = self.lock();
        if let Some(old) = inner.timer_of.remove(key) {
            inner.timers.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            inner.timer_of.insert(key.clone(), at);
            inner.timers.insert((at, key.clone()));
        }
        drop(inner);
        self.timer.notify_one();
    }

    /// Wakes a key again at the latest by `at`; an earlier wake-up stays.
    pub(crate) fn wake_by(&self, key: &Key, at: DateTime<Utc>) {
        let set = self.lock().timer_of.get(key).copied();
        if set.is_none_or(|set| set > at) {
            self.wake_at(key, Some(at));
        }
    }

    /// Forgets a key whose object is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.wake_at(key, None);
        self.lock().failures.remove(key);
    }

    /// Moves what is due by `now` to the front lane; returns when to look again.
    pub(crate) fn fire(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut inner = self.lock();
        let mut fired = 0;
        while let Some((at, key)) = inner.timers.first().cloned() {
            if at > now {
                break;
            }
            inner.timers.remove(&(at, key.clone()));
            inner.timer_of.remove(&key);
            fired += usize::from(inner.push(key, Priority::Due));
        }
        let next = inner.timers.first().map(|(at, _)| *at);
        drop(inner);
        for _ in 0..fired {
            self.ready.notify_one();
        }
        next
    }

    /// Waits until a timer was set.
    pub(crate) async fn timer_set(&self) {
        self.timer.notified().await;
    }

    /// The next key; a worker must say [`Queue::done`] afterwards.
    pub(crate) async fn next(&self) -> Key {
        loop {
            let ready = self.ready.notified();
            let (key, more) = {
                let mut inner = self.lock();
                (inner.pop(), !inner.waiting.is_empty())
            };
            if let Some(key) = key {
                // A permit is kept for one waiter only; pass it on while there is work.
                if more {
                    self.ready.notify_one();
                }
                return key;
            }
            ready.await;
        }
    }

    /// The next key if one is ready.
    #[cfg(test)]
    pub(crate) fn try_next(&self) -> Option<Key> {
        self.lock().pop()
    }

    /// A worker has finished with a key.
    pub(crate) fn done(&self, key: &Key) {
        let mut inner = self.lock();
        let again = inner.working.remove(key).flatten();
        let pushed = again.is_some_and(|priority| inner.push(key.clone(), priority));
        drop(inner);
        if pushed {
            self.ready.notify_one();
        }
    }

    /// Counts a failure; returns how many there were in a row.
    pub(crate) fn failed(&self, key: &Key) -> u32 {
        let mut inner = self.lock();
        let count = inner.failures.entry(key.clone()).or_insert(0);
        *count += 1;
        *count
    }

    /// Ends a row of failures.
    pub(crate) fn succeeded(&self, key: &Key) {
        self.lock().failures.remove(key);
    }

    /// Keys that wait for a worker.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn key(name: &str) -> Key {
        name.into()
    }

    #[test]
    fn what_is_due_goes_first_and_once() {
        let queue = Queue::default();
        queue.push(key("a"), Priority::Follow);
        queue.push(key("b"), Priority::Follow);
        queue.push(key("b"), Priority::Due);
        queue.push(key("b"), Priority::Follow);
        assert_eq!(queue.try_next(), Some(key("b")));
        assert_eq!(queue.try_next(), Some(key("a")));
        assert_eq!(queue.try_next(), None);
    }

    #[test]
    fn a_key_in_work_comes_back_after_it() {
        let queue = Queue::default();
        queue.push(key("a"), Priority::Due);
        assert_eq!(queue.try_next(), Some(key("a")));
        queue.push(key("a"), Priority::Follow);
        assert_eq!(queue.try_next(), None);
        queue.done(&key("a"));
        assert_eq!(queue.try_next(), Some(key("a")));
        queue.done(&key("a"));
        assert_eq!(queue.try_next(), None);
    }

    #[test]
    fn one_timer_a_key_fires_in_order() {
        let queue = Queue::default();
        let at = |s| DateTime::from_timestamp(s, 0).unwrap();
        queue.wake_at(&key("a"), Some(at(10)));
        queue.wake_at(&key("a"), Some(at(20)));
        queue.wake_at(&key("b"), Some(at(15)));
        assert_eq!(queue.fire(at(10)), Some(at(15)));
        assert_eq!(queue.try_next(), None);
        assert_eq!(queue.fire(at(30)), None);
        assert_eq!(queue.try_next(), Some(key("b")));
        assert_eq!(queue.try_next(), Some(key("a")));
    }
}
