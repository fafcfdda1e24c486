//! `--max-active-runs`: places taken by starts in flight, and who waits for one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::queue::Key;
use crate::engine::Plan;

#[derive(Debug, Default)]
struct Inner {
    /// Objects whose start is in flight, with their namespaces.
    starting: HashMap<Key, Box<str>>,
    waiting: VecDeque<Key>,
    waits: HashSet<Key>,
}

/// Places in flight and the line of those who wait.
#[derive(Debug, Default)]
pub(super) struct Limits {
    inner: Mutex<Inner>,
}

/// A place that is held while a start is in flight.
pub(super) struct Place<'a> {
    limits: &'a Limits,
    key: Option<Key>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.limits.lock().starting.remove(key);
        }
    }
}

impl Limits {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts in flight: in all and in a namespace.
    pub(super) fn starting(&self, namespace: &str) -> (usize, usize) {
        let inner = self.lock();
        let here = inner.starting.values().filter(|n| ***n == *namespace);
        (inner.starting.len(), here.count())
    }

    /// Nothing is held.
    pub(super) fn no_place(&self) -> Place<'_> {
        Place {
            limits: self,
            key: None,
        }
    }

    /// Takes a place. `fits` is told how many starts are in flight, in all and in the namespace;
    /// nobody else takes a place while it decides.
    pub(super) fn take(
        &self,
        key: &Key,
        namespace: &str,
        fits: impl FnOnce(usize, usize) -> bool,
    ) -> Option<Place<'_>> {
        let mut inner = self.lock();
        let here = inner
            .starting
            .values()
            .filter(|n| ***n == *namespace)
            .count();
        if !fits(inner.starting.len(), here) {
            return None;
        }
        inner.starting.insert(key.clone(), namespace.into());
        Some(Place {
            limits: self,
            key: Some(key.clone()),
        })
    }

    /// Puts an object that waits at the end of the line; one that does not leaves it.
    pub(super) fn hold(&self, key: &Key, plan: &Plan) {
        let mut inner = self.lock();
        if plan.waits_for_room() {
            if inner.waits.insert(key.clone()) {
                inner.waiting.push_back(key.clone());
            }
        } else {
            inner.waits.remove(key);
        }
    }

    /// The next that waits.
    pub(super) fn next(&self) -> Option<Key> {
        let mut inner = self.lock();
        while let Some(key) = inner.waiting.pop_front() {
            if inner.waits.remove(&key) {
                return Some(key);
            }
        }
        None
    }
}
