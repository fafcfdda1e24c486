//! What every part shares: client, clock, settings, leadership, metrics.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::metrics::Metrics;
use crate::policy::Policy;

/// Shared by all parts.
#[derive(Clone, Debug)]
pub struct Context {
    /// The only way to the API server.
    pub client: ApiClient,
    /// The wall clock, read once a reconcile.
    pub clock: Clock,
    /// Settings that do not change while running.
    pub config: Arc<Config>,
    /// Whether this process may write.
    pub leadership: Leadership,
    /// Counters.
    pub metrics: Metrics,
}

/// A client with a `Debug` that shows nothing.
#[derive(Clone)]
pub struct ApiClient(pub Client);

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiClient")
    }
}

/// Settings that do not change while running.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Name of this process in events.
    pub instance: String,
    /// Name by which this installation claims objects: namespace/name of its Lease.
    pub installation: String,
    /// UID of the kube-system namespace, once it was read.
    pub cluster: Arc<OnceLock<String>>,
    /// Most active runs in all.
    pub max_active_runs: Option<usize>,
    /// Most active runs in a namespace.
    pub max_active_runs_per_namespace: Option<usize>,
    /// Objects worked on at a time.
    pub workers: usize,
    /// What pods may not have.
    pub policy: Policy,
    /// Image of the runner, which the policy allows always.
    pub runner_image: String,
}

/// A wall clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the clock"
        )]
        Self(Arc::new(Utc::now))
    }

    /// Any clock.
    pub fn new(read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

/// Whether this process may write, and since when. Without leader election always.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: Arc<RwLock<Option<Term>>>,
    changed: watch::Sender<bool>,
}

/// One stretch of leading.
#[derive(Clone, Copy, Debug)]
struct Term {
    since: DateTime<Utc>,
    /// By the monotonic clock; `None` never ends.
    until: Option<Instant>,
}

impl Leadership {
    /// Leads from `now` on, without a lease.
    #[must_use]
    pub fn always(now: DateTime<Utc>) -> Self {
        let leadership = Self::none();
        leadership.begin(now, None);
        leadership
    }

    /// Does not lead yet.
    #[must_use]
    pub fn none() -> Self {
        Self {
            term: Arc::default(),
            changed: watch::Sender::new(false),
        }
    }

    fn begin(&self, since: DateTime<Utc>, until: Option<Instant>) {
        *self.term.write().unwrap_or_else(PoisonError::into_inner) = Some(Term { since, until });
        self.changed.send_replace(true);
    }

    /// The lease was acquired or renewed: valid to `until`. A term that had run out begins anew.
    pub fn renew(&self, now: DateTime<Utc>, until: Instant) {
        let since = self.since().unwrap_or(now);
        self.begin(since, Some(until));
    }

    /// The lease is gone.
    pub fn lose(&self) {
        *self.term.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.send_replace(false);
    }

    /// Since when this process leads, if the lease still holds by the monotonic clock.
    #[must_use]
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.term()
            .filter(|t| t.until.is_none_or(|until| Instant::now() < until))
            .map(|t| t.since)
    }

    /// The fence, asked before each write: true while no other process can hold the lease. Judged
    /// by the monotonic clock at the moment of the call, so it is false in a process that was
    /// frozen past its lease before anything has told it so.
    #[must_use]
    pub fn is_leader_now(&self) -> bool {
        self.since().is_some()
    }

    /// Waits until this process leads.
    pub async fn gained(&self) {
        let mut changed = self.changed.subscribe();
        // The sender lives in self, so this ends only with leadership.
        let _ = changed.wait_for(|_| self.is_leader_now()).await;
    }

    /// Waits until this process does not lead any more.
    pub async fn lost(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_leader_now() {
            let until = self.term().and_then(|term| term.until);
            let ended = async {
                match until {
                    // Whoever renews may hang; time alone ends leadership.
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ended => {}
                _ = changed.changed() => {}
            }
        }
    }

    fn term(&self) -> Option<Term> {
        *self.term.read().unwrap_or_else(PoisonError::into_inner)
    }
}
