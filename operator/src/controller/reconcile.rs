//! One object's turn: observe → plan → apply.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use crds::condition::{self, reason};
use crds::labels;
use crds::report::clean;
use crds::run::MAX_MESSAGE;
use crds::text::chain;
use thiserror::Error;
use tracing::Instrument as _;

use super::queue::{Key, Priority};
use super::shared::Controller;
use super::store::View;
use super::{limits, looks};
use crate::apply::{self, ApplyError, Changes, Target};
use crate::engine::{self, Look, Observed, Room, Seed};
use crate::guard;
use crate::metrics::Outcome;
use crate::metrics::Task;
use crate::observe::{self, ObserveError};

/// Bytes of an object beyond which few are worked on at a time.
const LARGE: usize = 32 * 1024;

/// Most often that a reconcile is repeated within itself.
const ROUNDS: usize = 4;

/// Conflicts in a row that are tried again at once.
const QUICK_RETRIES: u32 = 5;

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

/// What was read past every cache in this reconcile.
#[derive(Clone, Copy, Debug, Default)]
struct Fresh {
    /// The object and its Jobs.
    object: bool,
    /// Its pods.
    pods: bool,
}

/// What a round of observing and planning came to.
enum Round {
    /// What the plan asked for was read: another round.
    Again,
    /// The object is gone, or can't be read.
    Nothing,
    /// A plan to be applied.
    Decided(Box<Decided>),
}

/// A plan, and what it was made from.
struct Decided {
    view: View,
    observed: Observed,
    plan: engine::Plan,
}

impl Controller {
    /// One object's turn: its reconcile, and what becomes of it. A panic costs this turn alone.
    pub(super) async fn turn(&self, key: &Key) {
        // Not `name`: in the log's JSON that is the span's own.
        let mut parts = key.split('/');
        let span = tracing::info_span!(
            "reconcile",
            kind = parts.next(),
            namespace = parts.next(),
            object = parts.next(),
            uid = parts.next()
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

    /// Observes, plans, applies.
    async fn reconcile(&self, key: &Key) -> Result<(), ReconcileError> {
        let mut fresh = Fresh::default();
        for _ in 0..ROUNDS {
            let since = self.ctx.leadership.since();
            let since = since.ok_or(ReconcileError::NotLeading)?;
            // A large object takes many times its text while it is planned for.
            let _held = match self.store.bytes_of(key) {
                n if n > LARGE => self.large.acquire().await.ok(),
                _ => None,
            };
            let now = self.ctx.clock.now();
            let decided = match self.observe_and_plan(key, &mut fresh, since, now).await? {
                Round::Again => continue,
                Round::Nothing => return Ok(()),
                Round::Decided(decided) => *decided,
            };
            let Decided {
                view,
                observed,
                plan,
            } = decided;
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

    /// Makes a plan from what is known, and reads live what it asks for.
    async fn observe_and_plan(
        &self,
        key: &Key,
        fresh: &mut Fresh,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Round, ReconcileError> {
        let Some(view) = self.store.view(key) else {
            self.queue.forget(key);
            return Ok(Round::Nothing);
        };
        let observed = match self.observed(&view, fresh.object, since) {
            Ok(mut observed) => {
                observed.foreign_installations = self
                    .foreign_installations
                    .of(&self.ctx, &observed.status)
                    .await;
                observed.pods_live = fresh.pods;
                observed
            }
            Err(problem) => {
                self.unreadable(&view, &problem, now).await?;
                return Ok(Round::Nothing);
            }
        };
        let build = |seed: &Seed| self.build(&view, &observed.object, seed);
        let plan = engine::plan(&observed, now, &build);
        if plan.needs_live {
            self.read_live(key, &view, &observed).await?;
            fresh.object = true;
        }
        if plan.needs_pods {
            self.read_pods(key, &observed).await?;
            fresh.pods = true;
        }
        if plan.needs_live || plan.needs_pods {
            return Ok(Round::Again);
        }
        Ok(Round::Decided(Box::new(Decided {
            view,
            observed,
            plan,
        })))
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
            stored: &view.kept.status,
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
            self.store.remove_foreign_job(key, &uid);
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
