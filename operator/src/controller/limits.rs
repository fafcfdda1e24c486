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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use crds::ScheduleStatus;
    use crds::run::{Run, RunResult, Trigger};

    use super::*;

    fn key(name: &str) -> Key {
        name.into()
    }

    /// A plan in which a run waits for this reason.
    fn waiting(reason: &str) -> Plan {
        let mut run = Run::new("shop-1", Trigger::Schedule, RunResult::Waiting);
        run.reason = reason.to_owned();
        Plan {
            steps: vec![],
            status: ScheduleStatus {
                runs: vec![run],
                ..ScheduleStatus::default()
            },
            wake: None,
            needs_live: false,
            needs_pods: false,
            looks: vec![],
        }
    }

    #[test]
    fn places_in_flight_count_in_all_and_in_their_namespace_until_dropped() {
        let limits = Limits::default();
        let at_most = |all: usize, here: usize| move |a: usize, h: usize| a < all && h < here;
        let first = limits.take(&key("1"), "a", at_most(3, 2)).unwrap();
        let second = limits.take(&key("2"), "a", at_most(3, 2)).unwrap();
        assert!(limits.take(&key("3"), "a", at_most(3, 2)).is_none());
        let third = limits.take(&key("4"), "b", at_most(3, 2)).unwrap();
        assert!(limits.take(&key("5"), "b", at_most(3, 2)).is_none());
        assert_eq!(
            (limits.starting("a"), limits.starting("b")),
            ((3, 2), (3, 1))
        );
        drop(first);
        assert_eq!(limits.starting("a"), (2, 1));
        drop(limits.no_place());
        assert_eq!(limits.starting("a"), (2, 1));
        drop((second, third));
        assert_eq!(limits.starting("a"), (0, 0));
    }

    #[test]
    fn those_who_wait_for_a_place_come_in_turn_and_once() {
        let limits = Limits::default();
        for name in ["1", "2", "1", "3"] {
            limits.hold(&key(name), &waiting("MaxActiveRuns"));
        }
        limits.hold(&key("4"), &waiting("ConcurrencyForbid"));
        limits.hold(&key("2"), &waiting("ConcurrencyForbid"));
        assert_eq!(limits.next(), Some(key("1")));
        limits.hold(&key("1"), &waiting("MaxActiveRuns"));
        assert_eq!(limits.next(), Some(key("3")));
        assert_eq!(limits.next(), Some(key("1")));
        assert_eq!(limits.next(), None);
    }
}
