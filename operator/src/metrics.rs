//! What /metrics shows of the operator itself.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) result: &'static str,
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
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl Metrics {
    /// Registers every series; `more` may add collectors.
    pub fn new(more: impl FnOnce(&mut Registry)) -> Self {
        let mut registry = Registry::default();
        let reconciles = Family::<Outcome, Counter>::default();
        let writes = Family::<Write, Counter>::default();
        let queue = Gauge::default();
        let leader = Gauge::default();
        let start_skew = Histogram::new(exponential_buckets(0.05, 2.0, 14));
        registry.register(
            "backup_operator_reconciles",
            "Reconciles by result",
            reconciles.clone(),
        );
        registry.register(
            "backup_operator_api_writes",
            "Writes to the API server by answer",
            writes.clone(),
        );
        registry.register(
            "backup_operator_queue_length",
            "Objects that wait for a worker",
            queue.clone(),
        );
        registry.register(
            "backup_operator_leader",
            "1 while this process may write",
            leader.clone(),
        );
        registry.register(
            "mysqlbackup_start_skew_seconds",
            "Seconds from slot to created Job",
            start_skew.clone(),
        );
        more(&mut registry);
        Self {
            registry: Arc::new(registry),
            reconciles,
            writes,
            queue,
            start_skew,
            leader,
        }
    }

    /// The text of /metrics.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
