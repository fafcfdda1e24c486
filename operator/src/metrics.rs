//! What /metrics shows: of the operator itself, and of the users' objects. docs/metrics.md lists it.

mod collector;
mod series;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub(crate) use self::collector::{Objects, Row, Source};
pub(crate) use self::series::{Live, Series};

/// Outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) result: &'static str,
}

/// A piece of work that panicked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Panicked {
    pub(crate) task: &'static str,
}

/// One kind of write and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Write {
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) code: u16,
}

/// The operator's own series.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    pub(crate) reconciles: Family<Outcome, Counter>,
    pub(crate) writes: Family<Write, Counter>,
    pub(crate) queue: Gauge,
    pub(crate) start_skew: Histogram,
    pub(crate) leader: Gauge,
    pub(crate) objects: Objects,
    restores: Family<Outcome, Counter>,
    panics: Family<Panicked, Counter>,
}

/// Version of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl Metrics {
    /// Registers every series; `more` may add collectors.
    pub fn new(more: impl FnOnce(&mut Registry)) -> Self {
        let metrics = Self::unregistered();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        more(&mut registry);
        Self {
            registry: Arc::new(registry),
            ..metrics
        }
    }

    fn unregistered() -> Self {
        let reconciles = Family::<Outcome, Counter>::default();
        // A counter that begins with its first event hides that event from rate().
        for result in ["ok", "conflict", "error", "panic"] {
            drop(reconciles.get_or_create(&Outcome { result }));
        }
        let restores = Family::<Outcome, Counter>::default();
        for result in ["Succeeded", "Failed"] {
            drop(restores.get_or_create(&Outcome { result }));
        }
        let panics = Family::<Panicked, Counter>::default();
        for task in Task::ALL {
            let task = task.as_str();
            drop(panics.get_or_create(&Panicked { task }));
        }
        Self {
            registry: Arc::default(),
            panics,
            restores,
            reconciles,
            writes: Family::default(),
            queue: Gauge::default(),
            start_skew: Histogram::new(exponential_buckets(0.05, 2.0, 14)),
            leader: Gauge::default(),
            objects: Objects::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        let build = Family::<Build, Gauge>::default();
        let version = crds::VERSION;
        build.get_or_create(&Build { version }).set(1);
        registry.register(
            "backup_operator_build_info",
            "Version of the operator; always 1",
            build,
        );
        registry.register(
            "backup_operator_reconciles",
            "Reconciles by result",
            self.reconciles.clone(),
        );
        registry.register(
            "backup_operator_api_writes",
            "Writes to the API server by answer; code 0 is none",
            self.writes.clone(),
        );
        registry.register(
            "backup_operator_queue_length",
            "Objects that wait for a worker",
            self.queue.clone(),
        );
        registry.register(
            "backup_operator_leader",
            "1 while this process may write",
            self.leader.clone(),
        );
        registry.register(
            "backup_operator_restores",
            "Restores that ended, by result",
            self.restores.clone(),
        );
        registry.register(
            "backup_operator_panics",
            "Pieces of work that ended in a panic, by task: a fault of the program",
            self.panics.clone(),
        );
        registry.register(
            "mysqlbackup_start_skew_seconds",
            "Seconds from slot to created Job",
            self.start_skew.clone(),
        );
        registry.register_collector(Box::new(self.objects.clone()));
    }

    /// Counts a panic.
    pub(crate) fn panicked(&self, task: &'static str) {
        self.panics.get_or_create(&Panicked { task }).inc();
    }

    /// Counts a Restore that ended.
    pub(crate) fn restored(&self, result: &'static str) {
        self.restores.get_or_create(&Outcome { result }).inc();
    }

    /// Writes the text of /metrics in pieces: with many objects it is large.
    ///
    /// # Errors
    /// If `sink` refuses a piece.
    pub fn write(&self, sink: &mut impl fmt::Write) -> fmt::Result {
        encode(sink, &self.registry)
    }

    /// The text of /metrics.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = self.write(&mut text);
        text
    }
}

/// Which work a panic is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A reconcile of a scheduled object.
    Reconcile,
    /// A reconcile of a Restore.
    Restore,
    /// A watch, or what one brought.
    Watch,
    /// The series of an object at a scrape.
    Scrape,
}

impl Task {
    /// Every task.
    pub(crate) const ALL: [Self; 4] = [Self::Reconcile, Self::Restore, Self::Watch, Self::Scrape];

    /// The text used in metrics and logs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Restore => "restore",
            Self::Watch => "watch",
            Self::Scrape => "scrape",
        }
    }
}
