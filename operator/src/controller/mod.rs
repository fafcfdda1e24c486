//! The controller of every kind: observe → plan → apply, one object at a time, what is due first.

mod compressed;
mod foreign;
mod limits;
mod looks;
mod queue;
mod series;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use crds::condition::{self, reason};
use crds::report::clean;
use crds::run::MAX_MESSAGE;
use crds::validate::Problem;
use crds::{ScheduleStatus, labels};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;
use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use self::queue::{Key, Priority, Queue};
use self::store::{SharedStore, Store, View};
use crate::apply::{self, ApplyError, Changes, Target, chain};
use crate::context::Context;
use crate::digest::{self, Kept};
use crate::engine::{self, Limit, Look, Object, Observed, Room, Seed};
use crate::guard::{self, Task};
use crate::kind::Kind;
use crate::metrics::Outcome;
use crate::observe::{self, ObserveError};

/// Bytes of an object beyond which few are worked on at a time.
const LARGE: usize = 32 * 1024;
/// How many.
const LARGE_AT_ONCE: usize = 4;

/// Most often that a reconcile is repeated within itself.
const ROUNDS: usize = 4;

/// Conflicts in a row that are tried again at once.
const QUICK_RETRIES: u32 = 5;

/// The controller.
pub struct Controller {
    ctx: Context,
    kinds: Vec<Box<dyn Kind>>,
    resources: Vec<ApiResource>,
    store: SharedStore,
    queue: Arc<Queue>,
    limits: limits::Limits,
    looks: looks::Looks,
    rivals: foreign::Rivals,
    /// Places for large objects in work.
    large: tokio::sync::Semaphore,
    /// Lists still to be read; below zero if one was read before all were begun.
    unsynced: tokio::sync::watch::Sender<Option<i64>>,
}

/// Why a reconcile is tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// A live read failed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A write failed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Another process leads.
    #[error("this replica does not lead")]
    NotLeading,
    /// A fault of this program.
    #[error("a panic, which is a fault of the operator: please report it with this line: {0}")]
    Panicked(String),
}

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
            rivals: foreign::Rivals::default(),
            large: tokio::sync::Semaphore::new(LARGE_AT_ONCE),
            unsynced: tokio::sync::watch::Sender::new(None),
        });
        series::publish(&controller);
        controller
    }

    /// True once every list was read.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.unsynced.borrow() == Some(0)
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

    /// One list was read.
    fn synced(&self) {
        self.unsynced.send_modify(|n| *n = Some(n.unwrap_or(0) - 1));
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

    /// One object's turn: its reconcile, and what becomes of it. A panic costs this turn alone.
    async fn turn(&self, key: &Key) {
        let span = tracing::info_span!(
            "reconcile",
            kind = Empty,
            namespace = Empty,
            name = Empty,
            uid = key.rsplit('/').next()
        );
        let turn = async {
            let work = self.reconcile(key);
            let result = guard::caught(&self.ctx.metrics, Task::Reconcile, work).await;
            let result = result.unwrap_or_else(|said| Err(ReconcileError::Panicked(said)));
            self.after(key, result);
        };
        turn.instrument(span).await;
        self.queue.done(key);
    }

    /// Counts the outcome; a failure is tried again, later each time.
    fn after(&self, key: &Key, result: Result<(), ReconcileError>) {
        let label = |result| Outcome { result };
        let Err(error) = result else {
            self.queue.succeeded(key);
            self.ctx
                .metrics
                .reconciles
                .get_or_create(&label("ok"))
                .inc();
            return;
        };
        if matches!(
            error,
            ReconcileError::NotLeading | ReconcileError::Apply(ApplyError::NotLeading)
        ) {
            self.queue.push(key.clone(), Priority::Due);
            return;
        }
        let conflict = matches!(&error, ReconcileError::Apply(e) if e.code() == Some(409));
        let failures = self.queue.failed(key);
        if conflict && failures <= QUICK_RETRIES {
            // The newer object was read already.
            self.ctx
                .metrics
                .reconciles
                .get_or_create(&label("conflict"))
                .inc();
            self.queue.push(key.clone(), Priority::Follow);
            return;
        }
        let panicked = matches!(error, ReconcileError::Panicked(_));
        let outcome = label(if panicked { "panic" } else { "error" });
        self.ctx.metrics.reconciles.get_or_create(&outcome).inc();
        let wait = TimeDelta::milliseconds((250_i64 << failures.min(10)).min(120_000));
        if panicked {
            tracing::error!(error = %chain(&error), failures, ?wait, "a reconcile panicked; this object is tried again later each time");
            // No earlier wake-up, or it would panic as often as the object asks to be looked at.
            self.queue.wake_at(key, Some(self.ctx.clock.now() + wait));
            return;
        }
        tracing::warn!(error = %chain(&error), failures, ?wait, "reconcile failed; it is tried again");
        self.queue.wake_by(key, self.ctx.clock.now() + wait);
    }

    fn set_object(&self, kind: usize, kept: &Kept) -> (Key, bool) {
        let key = kept.object.key(&self.resources[kind].kind);
        self.store.set_object(&key, kind, kept)
    }

    fn object_gone(&self, key: &str) {
        let key = self.store.remove_object(key);
        self.queue.forget(&key);
    }

    /// A Job changed; one that ended may make room for a run that waits for a place.
    fn job_news(&self, key: Key, ended: bool) {
        if ended && let Some(next) = self.limits.next() {
            self.queue.push(next, Priority::Due);
        }
        self.queue.push(key, Priority::Follow);
    }

    /// Observes, plans, applies.
    async fn reconcile(&self, key: &Key) -> Result<(), ReconcileError> {
        let (mut live, mut pods_live) = (false, false);
        for _ in 0..ROUNDS {
            let since = self
                .ctx
                .leadership
                .since()
                .ok_or(ReconcileError::NotLeading)?;
            // A large object takes many times its text while it is planned for.
            let _held = match self.store.bytes_of(key) {
                n if n > LARGE => self.large.acquire().await.ok(),
                _ => None,
            };
            let Some(view) = self.store.view(key) else {
                self.queue.forget(key);
                return Ok(());
            };
            self.name_span(&view);
            let now = self.ctx.clock.now();
            let observed = match self.observed(&view, live, since) {
                Ok(mut observed) => {
                    observed.rivals = self.rivals.of(&self.ctx, &observed.status).await;
                    observed.pods_live = pods_live;
                    observed
                }
                Err(problem) => return self.unreadable(&view, &problem, now).await,
            };
            let plan = engine::plan(&observed, now);
            if plan.needs_live {
                self.read_live(key, &view, &observed).await?;
                live = true;
            }
            if plan.needs_pods {
                self.read_pods(key, &observed).await?;
                pods_live = true;
            }
            if plan.needs_live || plan.needs_pods {
                continue;
            }
            self.queue.wake_at(key, plan.wake);
            self.limits.hold(key, &plan);
            let Some(_place) = self.place(key, &observed, &plan) else {
                // Others took the last place since this was observed.
                self.queue.push(key.clone(), Priority::Due);
                return Ok(());
            };
            let changed = self.apply(key, &view, &observed, &plan, now).await?;
            let told = self.look(key, &observed, &plan.looks, now).await;
            if changed || told {
                self.queue.push(key.clone(), Priority::Follow);
            } else {
                self.settle(key, &observed);
            }
            return Ok(());
        }
        Ok(())
    }

    /// Says in the span of the turn whose turn it is.
    fn name_span(&self, view: &View) {
        let span = tracing::Span::current();
        span.record("kind", self.resources[view.kind].kind.as_str());
        span.record("namespace", view.kept.object.namespace());
        span.record("name", view.kept.object.name());
    }

    fn observed(&self, view: &View, live: bool, since: DateTime<Utc>) -> Result<Observed, String> {
        let kind = self.kinds[view.kind].as_ref();
        let kept = &view.kept;
        let mut object = kept
            .object
            .clone()
            .into_object(self.resources[view.kind].kind.clone());
        if let Some(bytes) = object.annotations.get(labels::TOO_LARGE) {
            return Err(digest::too_large(bytes));
        }
        let config = &self.ctx.config;
        object.cluster = config.cluster.get().cloned().unwrap_or_default();
        let (settings, mut problems) = kind.read(&object, &kept.spec)?;
        problems.extend(self.forbidden(kind, &object, &kept.spec));
        let status = match &kept.status {
            serde_json::Value::Null => ScheduleStatus::default(),
            status => serde_json::from_value(status.clone())
                .map_err(|e| format!("status does not fit its type: {e}"))?,
        };
        Ok(Observed {
            room: self.room(&object.namespace),
            foreign: foreign(view),
            strangers: view.strangers.clone(),
            installation: config.installation.clone(),
            rivals: BTreeMap::new(),
            kind_conditions: kind.conditions(&object, &kept.spec),
            object,
            settings,
            problems,
            status,
            jobs: view.jobs.clone(),
            pods: view.pods.clone(),
            failures: view.failures.clone(),
            obstacles: view.obstacles.clone(),
            live,
            pods_live: false,
            leading_since: since,
        })
    }

    /// What the policy finds in the pods that runs, verifications and notices would have.
    fn forbidden(&self, kind: &dyn Kind, object: &Object, spec: &Value) -> Vec<Problem> {
        let config = &self.ctx.config;
        if config.policy.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Problem> = Vec::new();
        for seed in Seed::probes() {
            // A spec that can't be said as a Job is told about where one is to be made.
            let job = kind.job(object, spec, &seed).ok();
            let Some(template) = job.and_then(|j| j.spec).map(|s| s.template) else {
                continue;
            };
            for problem in config.policy.check(&template, &config.runner_image) {
                if !found.contains(&problem) {
                    found.push(problem);
                }
            }
        }
        found
    }

    fn room(&self, namespace: &str) -> Room {
        let config = &self.ctx.config;
        let (total, here) = (config.max_active_runs, config.max_active_runs_per_namespace);
        if total.is_none() && here.is_none() {
            return Room::default();
        }
        let starting = self.limits.starting(namespace);
        self.room_with(namespace, starting)
    }

    /// The room left with so many starts in flight, in all and in the namespace.
    fn room_with(&self, namespace: &str, (starting, starting_here): (usize, usize)) -> Room {
        let config = &self.ctx.config;
        let (total, here) = (config.max_active_runs, config.max_active_runs_per_namespace);
        let (all, in_namespace) = self.store.active_runs(namespace);
        Room {
            total: total.map(|most| Limit {
                most,
                active: all + starting,
            }),
            namespace: here.map(|most| Limit {
                most,
                active: in_namespace + starting_here,
            }),
        }
    }

    /// Takes a place for the run a plan starts, if there are limits; `None` if there is none left.
    fn place(
        &self,
        key: &Key,
        observed: &Observed,
        plan: &engine::Plan,
    ) -> Option<limits::Place<'_>> {
        let starts = plan.starts();
        let limited = observed.room != Room::default();
        if starts == 0 || !limited {
            return Some(self.limits.no_place());
        }
        let namespace = &observed.object.namespace;
        self.limits.take(key, namespace, |all, here| {
            self.room_with(namespace, (all, here)).full().is_none()
        })
    }

    async fn read_live(
        &self,
        key: &Key,
        view: &View,
        observed: &Observed,
    ) -> Result<(), ObserveError> {
        let resource = &self.resources[view.kind];
        match observe::live(&self.ctx, resource, &observed.object).await? {
            None => self.object_gone(key),
            Some((object, jobs)) => {
                self.take_object(view.kind, object);
                self.store.set_jobs(key, jobs);
            }
        }
        Ok(())
    }

    /// Reads the pods of an object past every cache.
    async fn read_pods(&self, key: &Key, observed: &Observed) -> Result<(), ObserveError> {
        for pod in observe::live_pods(&self.ctx, &observed.object).await? {
            self.store.set_pod(key, pod);
        }
        Ok(())
    }

    /// Reads the events that may tell what keeps Jobs from starting. True if there is news. They are
    /// read in turn, whatever the number of Jobs, and that they can't be read holds nothing up.
    async fn look(
        &self,
        key: &Key,
        observed: &Observed,
        looks: &[Look],
        now: DateTime<Utc>,
    ) -> bool {
        let mut news = false;
        for look in looks {
            let Some(_turn) = self.looks.turn(now) else {
                self.queue.wake_by(key, now + looks::AGAIN);
                break;
            };
            let found =
                observe::warning(&self.ctx, &observed.object.namespace, &look.subject).await;
            let words = found.unwrap_or_else(|error| {
                tracing::info!(object = %key, error = %chain(&error), "events can't be read; what keeps a Job from starting is not shown");
                None
            });
            let obstacle = look.found(&observed.obstacles, words, now);
            self.queue.wake_by(key, now + looks::AGAIN);
            news |= self.store.set_obstacle(key, obstacle);
        }
        if looks.is_empty() && !observed.obstacles.is_empty() {
            let waiting = observed.jobs.iter().filter(|j| j.is_active());
            let waiting: HashSet<&str> = waiting.map(|j| &*j.uid).collect();
            self.store.begun(key, &waiting);
        }
        news
    }

    fn take_object(&self, kind: usize, object: DynamicObject) {
        if let Some(kept) = digest::object(object, self.kinds[kind].as_ref()) {
            self.set_object(kind, &kept);
        }
    }

    /// Applies a plan and takes the answers into the store. True if the next plan may differ.
    async fn apply(
        &self,
        key: &Key,
        view: &View,
        observed: &Observed,
        plan: &engine::Plan,
        now: DateTime<Utc>,
    ) -> Result<bool, ReconcileError> {
        let target = Target {
            object: &observed.object,
            spec: &view.kept.spec,
            resource: &self.resources[view.kind],
            kind: self.kinds[view.kind].as_ref(),
            seen: &observed.status,
            resource_version: &view.kept.resource_version,
            failures: &observed.failures,
        };
        let mut changes = Changes::default();
        let result = apply::apply(&self.ctx, &target, plan, now, &mut changes).await;
        let changed = self.take(key, view.kind, changes);
        if let Err(error) = &result
            && error.code() == Some(409)
        {
            self.read_live(key, view, observed).await?;
        }
        result?;
        Ok(changed)
    }

    fn take(&self, key: &Key, kind: usize, changes: Changes) -> bool {
        let mut changed = false;
        for job in changes.jobs {
            self.store.clear_failures(key, &job.name);
            changed |= self.store.set_job(key, job).1;
        }
        for uid in changes.deleted {
            self.store.job_deleting(key, &uid);
        }
        for uid in changes.taken_over {
            changed = true;
            self.store.remove_stranger(key, &uid);
        }
        for failure in changes.failures {
            changed = true;
            self.store.set_failure(key, failure);
        }
        for object in changes.references {
            self.kinds[kind].set_reference(&object, false);
        }
        for object in changes.objects {
            changed = true;
            self.take_object(kind, object);
        }
        changed
    }

    /// Drops the pods of runs whose outcome stands in status.
    fn settle(&self, key: &Key, observed: &Observed) {
        let final_run = |uid: &str| {
            let mut runs = observed.status.runs.iter();
            runs.any(|r| r.job_uid.as_deref() == Some(uid) && r.result.is_final())
        };
        let known = |uid: &str| observed.jobs.iter().any(|j| *j.uid == *uid);
        let open = |uid: &&str| {
            let run = observed
                .status
                .runs
                .iter()
                .any(|r| r.job_uid.as_deref() == Some(*uid));
            !final_run(uid) && (run || known(uid))
        };
        let pods = observed.pods.iter().map(|p| &*p.job_uid);
        let open: HashSet<&str> = pods.filter(open).collect();
        if open.len() < observed.pods.len() {
            self.store.settle(key, &open);
        }
    }

    /// An object that does not fit its type: named once, with a condition; no other waits for it.
    async fn unreadable(
        &self,
        view: &View,
        problem: &str,
        now: DateTime<Utc>,
    ) -> Result<(), ReconcileError> {
        let resource = &self.resources[view.kind];
        let object = view.kept.object.clone().into_object(resource.kind.clone());
        let old = view
            .kept
            .status
            .get("conditions")
            .cloned()
            .unwrap_or_default();
        let old: Vec<_> = serde_json::from_value(old).unwrap_or_default();
        let mut new = old.clone();
        let message = clean(problem, MAX_MESSAGE);
        for type_ in [condition::ACCEPTED, condition::READY] {
            condition::set(
                &mut new,
                type_,
                false,
                reason::UNREADABLE,
                message.clone(),
                object.generation,
                now,
            );
        }
        if new == old {
            return Ok(());
        }
        tracing::warn!(problem = %message, manager = labels::MANAGER, "an object can't be read; it is left alone");
        let conditions = serde_json::to_value(&new).map_err(ApplyError::Encode)?;
        let object = apply::mark_unreadable(&self.ctx, &object, resource, conditions).await?;
        self.take_object(view.kind, object);
        Ok(())
    }
}

/// Why a part that works for ever is not there any more.
fn gone<T>(what: &str, ended: Option<Result<T, JoinError>>) -> anyhow::Error {
    match ended {
        Some(Err(error)) => anyhow::anyhow!("{what} of the controller ended: {error}"),
        _ => anyhow::anyhow!("{what} of the controller ended"),
    }
}

/// What other controllers do to the object, with the remedy. Jobs that were there at first sight
/// are taken over; one that comes later means that its maker still works.
fn foreign(view: &View) -> Option<String> {
    if let Some(name) = view.cron_jobs.first() {
        return Some(format!(
            "CronJob {name} belongs to this object and starts its backups; stop the controller that made it, then `kubectl delete cronjob {name}` or suspend it"
        ));
    }
    let name = &view.strangers.first()?.name;
    let seen_before = !view.kept.status["accountedUntil"].is_null();
    seen_before.then(|| format!(
        "another controller made Job {name} for this object; stop that controller, then `kubectl delete job {name}`"
    ))
}
