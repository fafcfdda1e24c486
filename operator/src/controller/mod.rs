//! The controller of every kind: observe → plan → apply, one object at a time, what is due first.

mod compressed;
mod foreign;
mod limits;
mod looks;
mod observed;
mod queue;
mod reconcile;
mod series;
mod shared;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use std::sync::Arc;

use chrono::TimeDelta;
use crds::text::chain;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::queue::Queue;
pub use self::reconcile::ReconcileError;
pub use self::shared::Controller;
use self::store::Store;
use crate::context::Context;
use crate::kind::Kind;
use crate::observe::{self, ObserveError};

/// Objects of many bytes that are worked on at a time.
const LARGE_AT_ONCE: usize = 4;

impl Controller {
    /// A controller of these kinds.
    #[must_use]
    pub fn new(ctx: Context, kinds: Vec<Box<dyn Kind>>) -> Arc<Self> {
        let controller = Arc::new(Self {
            resources: kinds.iter().map(|k| k.resource()).collect(),
            ctx,
            kinds,
            store: Arc::new(Store::default()),
            queue: Arc::new(Queue::default()),
            limits: limits::Limits::default(),
            looks: looks::Looks::default(),
            foreign_installations: foreign::ForeignInstallations::default(),
            large: tokio::sync::Semaphore::new(LARGE_AT_ONCE),
            unsynced: tokio::sync::watch::Sender::new(None),
        });
        series::publish(&controller);
        controller
    }

    /// Works until `stop`.
    ///
    /// # Errors
    /// If a part of it ended that works for ever: nothing would be started any more, so the process
    /// is to end and be started again.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        let lists = watch::start(&self, &mut tasks);
        let lists = i64::try_from(lists).unwrap_or(i64::MAX);
        self.unsynced
            .send_modify(|n| *n = Some(n.unwrap_or(0) + lists));
        let mut synced = self.unsynced.subscribe();
        let work = async {
            // The sender lives in self.
            let _ = synced.wait_for(|n| *n == Some(0)).await;
            self.store.completed();
            self.learn_cluster().await;
            self.ctx.leadership.gained().await;
            let (objects, jobs) = self.store.sizes();
            tracing::info!(objects, jobs, "ready");
            let mut workers = JoinSet::new();
            for _ in 0..self.ctx.config.workers.max(1) {
                workers.spawn(self.clone().work());
            }
            workers.spawn(self.clone().tick());
            workers.join_next().await
        };
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            ended = work => Err(gone("a worker", ended)),
            ended = tasks.join_next() => Err(gone("a watch", ended)),
        }
    }

    /// Reads what tells this cluster apart; runs are made with it. Without the right to it they are
    /// made without.
    async fn learn_cluster(&self) {
        while self.ctx.config.cluster.get().is_none() {
            match observe::cluster(&self.ctx).await {
                Ok(uid) => {
                    let _ = self.ctx.config.cluster.set(uid.unwrap_or_default());
                }
                Err(ObserveError::Api(kube::Error::Api(status))) if status.code < 429 => {
                    tracing::info!(error = %status.message, "the kube-system namespace can't be read; manifests of runs name no cluster");
                    let _ = self.ctx.config.cluster.set(String::new());
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "the kube-system namespace could not be read; it is tried again");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Wakes objects by the wall clock, looked at again at least every ten seconds: it may jump.
    async fn tick(self: Arc<Self>) {
        loop {
            let now = self.ctx.clock.now();
            let next = self.queue.fire(now);
            let most = TimeDelta::seconds(10);
            let wait = next.map_or(most, |at| (at - now).min(most));
            let wait = wait.to_std().unwrap_or_default() + std::time::Duration::from_millis(1);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.queue.timer_set() => {}
            }
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            // A replica that follows goes on watching; what comes due waits for its turn to lead.
            self.ctx.leadership.gained().await;
            let key = self.queue.next().await;
            self.ctx
                .metrics
                .queue
                .set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
            self.turn(&key).await;
        }
    }
}

/// Why a part that works for ever is not there any more.
fn gone<T>(what: &str, ended: Option<Result<T, JoinError>>) -> anyhow::Error {
    match ended {
        Some(Err(error)) => anyhow::anyhow!("{what} of the controller ended: {error}"),
        _ => anyhow::anyhow!("{what} of the controller ended"),
    }
}
