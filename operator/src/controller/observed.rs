//! What a plan is made from, and the Jobs it may hold.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::condition::reason;
use crds::validate::{self, Problem};
use crds::{ScheduleStatus, labels};
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;

use super::shared::Controller;
use super::store::View;
use crate::digest;
use crate::engine::{Limit, Object, Observed, Room, Seed, Unbuilt};
use crate::kind::Kind;

impl Controller {
    pub(super) fn observed(
        &self,
        view: &View,
        live: bool,
        since: DateTime<Utc>,
    ) -> Result<Observed, String> {
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
            foreign_jobs: view.foreign_jobs.clone(),
            installation: config.installation.clone(),
            foreign_installations: BTreeMap::new(),
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

    /// The Job of a seed, if the policy lets its pod be. No Job is sent that was not judged here.
    pub(super) fn build(&self, view: &View, object: &Object, seed: &Seed) -> Result<Job, Unbuilt> {
        let kind = self.kinds[view.kind].as_ref();
        let job = kind.job(object, &view.kept.spec, seed);
        let job = job.map_err(|message| Unbuilt {
            reason: reason::INVALID_SPEC,
            message,
        })?;
        let denied = self.denied(&job);
        if denied.is_empty() {
            return Ok(job);
        }
        Err(Unbuilt {
            reason: reason::POLICY_DENIED,
            message: validate::join(&denied),
        })
    }

    /// What the policy finds in the pod of a Job.
    fn denied(&self, job: &Job) -> Vec<Problem> {
        let config = &self.ctx.config;
        let template = job.spec.as_ref().map(|s| &s.template);
        template.map_or_else(Vec::new, |t| config.policy.check(t, &config.runner_image))
    }

    /// What the policy finds in the pods that runs, verifications and notices would have.
    fn forbidden(&self, kind: &dyn Kind, object: &Object, spec: &Value) -> Vec<Problem> {
        let config = &self.ctx.config;
        if config.policy.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Problem> = Vec::new();
        for seed in Seed::probes() {
            // A spec that can't be expressed as a Job is told of where one is to be made.
            let Ok(job) = kind.job(object, spec, &seed) else {
                continue;
            };
            for problem in self.denied(&job) {
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

    /// The room left with this number of starts in flight, in all and in the namespace.
    pub(super) fn room_with(
        &self,
        namespace: &str,
        (starting, starting_here): (usize, usize),
    ) -> Room {
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
}

/// What other controllers do to the object, with the remedy. Jobs that were there at first sight
/// are taken over; one that comes later means that its maker still works.
fn foreign(view: &View) -> Option<String> {
    if let Some(name) = view.cron_jobs.first() {
        return Some(format!(
            "CronJob {name} belongs to this object and starts its backups; stop the controller that made it, then `kubectl delete cronjob {name}` or suspend it"
        ));
    }
    let name = &view.foreign_jobs.first()?.name;
    let seen_before = !view.kept.status["accountedUntil"].is_null();
    seen_before.then(|| format!(
        "another controller made Job {name} for this object; stop that controller, then `kubectl delete job {name}`"
    ))
}
