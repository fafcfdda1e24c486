//! `Restore`: one Job an object. observe (live) → plan (pure) → apply.

mod apply;
mod archive;
mod job;
mod observe;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use crds::labels;
use crds::restore::Restore;
use crds::text::chain;
use crds::time::plus_seconds;
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::watcher;
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use self::observe::Observed;
use self::plan::Step;
use crate::apply::ApplyError;
use crate::context::Context;
use crate::engine::{Look, Obstacle, StartFailure};
use crate::guard;
use crate::metrics::Task;
use crate::observe::ObserveError;

/// Longest wait before a failed reconcile is tried again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Restores that are worked on at a time.
const AT_ONCE: u16 = 8;

/// Seconds after which a refusal that was not repeated is forgotten.
const KEPT_SECONDS: i64 = 3_600;

/// Most Restores whose failures are counted.
const MOST_FAILING: usize = 1_000;

/// Why a reconcile is tried again.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// A read failed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A write failed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A fault of this program.
    #[error("a panic, which is a fault of the operator: please report it with this line: {0}")]
    Panicked(String),
}

/// What reconciles share.
pub(crate) struct Restores {
    ctx: Context,
    /// Starts that were refused, by UID.
    refused: Mutex<HashMap<String, StartFailure>>,
    /// What events said of Jobs that do not start, by UID of the Restore.
    obstacles: Mutex<HashMap<String, Obstacle>>,
    /// Failures in a row, by namespace and name.
    failures: Mutex<HashMap<String, u32>>,
}

impl Restores {
    pub(crate) fn new(ctx: Context) -> Self {
        Self {
            ctx,
            refused: Mutex::default(),
            obstacles: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Observes, plans, applies; gives when to look again.
    pub(crate) async fn reconcile(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Duration>, RestoreError> {
        let known = |uid: &str| {
            let refused = lock(&self.refused).get(uid).cloned();
            (refused, lock(&self.obstacles).get(uid).cloned())
        };
        let Some(seen) = observe::observe(&self.ctx, namespace, name, known).await? else {
            return Ok(None);
        };
        let now = self.ctx.clock.now();
        let plan = plan::plan(&seen, now);
        let failure = apply::apply(&self.ctx, &seen, &plan, now).await?;
        let told = self.look(&seen, plan.look.as_ref(), now).await;
        let created = plan.steps.iter().any(|s| matches!(s, Step::Create(_)));
        let uid = &seen.object.uid;
        let refused = failure.is_some();
        match failure {
            Some(failure) => {
                let mut refused = lock(&self.refused);
                // Those that were not tried again are of Restores that are gone.
                refused.retain(|_, old| plus_seconds(old.retry_at, KEPT_SECONDS) > now);
                refused.insert(uid.clone(), failure);
            }
            None if created || plan.status.phase.is_some_and(|p| p.is_final()) => {
                lock(&self.refused).remove(uid);
            }
            None => {}
        }
        let ended = seen.status.phase.is_none_or(|p| !p.is_final());
        if let Some(phase) = plan.status.phase.filter(|p| ended && p.is_final()) {
            self.ctx.metrics.restored(phase.as_str());
        }
        if created || refused || told {
            return Ok(Some(Duration::from_secs(1)));
        }
        Ok(plan
            .wake
            .map(|at| (at - now).to_std().unwrap_or_default().max(TICK)))
    }
}

impl Restores {
    /// Reads the events that may tell what keeps the Job from starting. True if there is news. That
    /// they can't be read holds nothing up.
    async fn look(&self, seen: &Observed, look: Option<&Look>, now: DateTime<Utc>) -> bool {
        let uid = &seen.object.uid;
        if !matches!(seen.job, observe::Named::Ours(_))
            || seen.status.phase.is_some_and(|p| p.is_final())
        {
            lock(&self.obstacles).remove(uid);
        }
        let Some(look) = look else { return false };
        let found = crate::observe::warning(&self.ctx, &seen.object.namespace, &look.subject).await;
        let words = found.unwrap_or_else(|error| {
            tracing::info!(restore = %seen.object.name, namespace = %seen.object.namespace, error = %chain(&error), "events can't be read; what keeps the Job from starting is not shown");
            None
        });
        let obstacle = look.found(seen.obstacle.as_slice(), words, now);
        let before = lock(&self.obstacles).insert(uid.clone(), obstacle.clone());
        before.and_then(|b| b.words) != obstacle.words
    }
}

/// The shortest wait between two looks.
const TICK: Duration = Duration::from_millis(500);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works until `stop`.
///
/// # Errors
/// If a watch ended that works for ever: no Restore would be looked at any more.
pub async fn run(ctx: Context, stop: CancellationToken) -> anyhow::Result<()> {
    let names = &ctx.config.namespaces;
    let scopes: Vec<Option<String>> = if names.is_empty() {
        vec![None]
    } else {
        names.iter().cloned().map(Some).collect()
    };
    let shared = Arc::new(Restores::new(ctx));
    let all = scopes
        .into_iter()
        .map(|scope| follow(shared.clone(), scope));
    tokio::select! {
        () = stop.cancelled() => Ok(()),
        _ = futures::future::select_all(all.map(Box::pin)) => Err(anyhow::anyhow!("a watch of Restores ended")),
    }
}

/// Watches Restores and their Jobs of one scope for ever.
async fn follow(shared: Arc<Restores>, scope: Option<String>) {
    let client = shared.ctx.client.0.clone();
    let resource = ApiResource::erase::<Restore>(&());
    let (objects, jobs): (Api<DynamicObject>, Api<Job>) = match &scope {
        Some(ns) => (
            Api::namespaced_with(client.clone(), ns, &resource),
            Api::namespaced(client, ns),
        ),
        None => (Api::all_with(client.clone(), &resource), Api::all(client)),
    };
    let labelled = watcher::Config::default().labels(labels::RESTORE_UID);
    // Each reads all it needs live: so few at a time are in memory.
    let config = controller::Config::default().concurrency(AT_ONCE);
    Controller::new_with(objects, watcher::Config::default(), resource)
        .owns(jobs, labelled)
        .with_config(config)
        .run(reconcile, retry, shared)
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(
    object: Arc<DynamicObject>,
    shared: Arc<Restores>,
) -> Result<Action, RestoreError> {
    // A replica that follows goes on watching; it acts when it leads.
    shared.ctx.leadership.gained().await;
    let meta = &object.metadata;
    let (namespace, name) = (
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    );
    let span = tracing::info_span!(
        "reconcile",
        kind = "Restore",
        namespace,
        object = name,
        uid = meta.uid.as_deref().unwrap_or_default()
    );
    let work = shared.reconcile(namespace, name).instrument(span);
    let result = guard::caught(&shared.ctx.metrics, Task::Restore, work).await;
    let wake = result.unwrap_or_else(|said| Err(RestoreError::Panicked(said)))?;
    lock(&shared.failures).remove(&key(&object));
    Ok(wake.map_or_else(Action::await_change, Action::requeue))
}

/// Later each time; a conflict at once, since everything is read anew.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature of kube's controller"
)]
fn retry(object: Arc<DynamicObject>, error: &RestoreError, shared: Arc<Restores>) -> Action {
    let failures = {
        let mut all = lock(&shared.failures);
        if all.len() >= MOST_FAILING {
            // Some of them are of Restores that are gone; the others begin to count anew.
            all.clear();
        }
        let count = all.entry(key(&object)).or_insert(0);
        *count += 1;
        *count
    };
    let conflict = matches!(error, RestoreError::Apply(e) if e.code() == Some(409));
    let wait = Duration::from_millis(250_u64 << failures.min(8)).min(PATIENCE);
    if !conflict {
        tracing::warn!(error = %chain(error), restore = %key(&object), failures, "a restore's reconcile failed; it is tried again");
    }
    Action::requeue(wait)
}

fn key(object: &DynamicObject) -> String {
    let meta = &object.metadata;
    format!(
        "{}/{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default()
    )
}
