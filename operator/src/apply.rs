//! The only place that writes to the API server (the Lease and the webhook's certificate apart).

mod reach;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use crds::labels::{MANAGER, RESUME_AT};
use crds::report::clean;
use crds::request::TOO_LONG;
use crds::run::{MAX_MESSAGE, Trigger};
use crds::text::chain;
use crds::time::parse_rfc3339;
use crds::{ScheduleStatus, labels};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::events::v1::Event;
use kube::api::{
    Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use thiserror::Error;

use crate::context::Context;
use crate::digest;
use crate::engine::reason;
use crate::engine::{EventSpec, ForeignJob, JobDigest, Object, Plan, Seed, StartFailure, Step};
use crate::event;
use crate::kind::Kind;
use crate::metrics::Write;
use crate::ownership::is_controlled_by;

/// Longest wait for the answer to one write. A write that took effect is met again by its name.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a plan is applied to.
pub(crate) struct Target<'a> {
    pub(crate) object: &'a Object,
    pub(crate) spec: &'a Value,
    pub(crate) resource: &'a ApiResource,
    pub(crate) kind: &'a dyn Kind,
    pub(crate) seen: &'a ScheduleStatus,
    pub(crate) resource_version: &'a str,
    pub(crate) failures: &'a [StartFailure],
}

/// What the API server answered: to be taken into the store even if a later write failed.
#[derive(Default)]
pub(crate) struct Changes {
    /// Jobs created or adopted.
    pub(crate) jobs: Vec<JobDigest>,
    /// UIDs of Jobs whose deletion was answered.
    pub(crate) deleted: Vec<String>,
    /// UIDs of Jobs of another program that were labelled.
    pub(crate) taken_over: Vec<String>,
    /// Starts that failed.
    pub(crate) failures: Vec<StartFailure>,
    /// The object, as answered.
    pub(crate) objects: Vec<DynamicObject>,
    /// Databases and Storages whose condition was written, as answered.
    pub(crate) references: Vec<DynamicObject>,
}

/// Why a write failed and all is to be tried again.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// This process may not write any more.
    #[error("the lease has run out")]
    NotLeading,
    /// No answer in time; the write may have taken effect.
    #[error("no answer to {verb} {resource} within {PATIENCE:?}")]
    Silent {
        /// What was tried.
        verb: &'static str,
        /// On what.
        resource: &'static str,
    },
    /// The API server refused or could not be reached.
    #[error("failed to {verb} {resource}")]
    Api {
        /// What was tried.
        verb: &'static str,
        /// On what.
        resource: &'static str,
        /// Its answer.
        #[source]
        source: kube::Error,
    },
    /// Status can't be said as JSON.
    #[error("failed to encode status")]
    Encode(#[from] serde_json::Error),
}

impl ApplyError {
    /// HTTP status of the API server's answer, if there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api {
                source: kube::Error::Api(status),
                ..
            } => Some(status.code),
            _ => None,
        }
    }
}

/// Applies every step, then patches status if it changed.
pub(crate) async fn apply(
    ctx: &Context,
    target: &Target<'_>,
    plan: &Plan,
    now: DateTime<Utc>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    for step in &plan.steps {
        match step {
            Step::CreateJob { seed, job } => create(ctx, target, seed, job, now, changes).await?,
            Step::CannotBuild { seed, why } => {
                let failure = failure(target, seed, why.reason, &why.message, now);
                changes.failures.push(failure);
            }
            Step::DeleteJob {
                name,
                uid,
                foreground,
            } => {
                delete(ctx, target, name, uid, *foreground).await?;
                changes.deleted.push(uid.clone());
            }
            Step::RemoveAnnotations(pairs) => {
                remove_annotations(ctx, target, pairs, changes).await?
            }
            Step::LabelJob(foreign_job) => label(ctx, target, foreign_job, changes).await?,
            Step::Resume { at } => resume(ctx, target, at, changes).await?,
            Step::Reach(endpoints) => reach::reach(ctx, target, endpoints, now, changes).await?,
            Step::Event(spec) => report(ctx, target, spec, now).await,
        }
    }
    if plan.status != *target.seen {
        patch_status(ctx, target, &plan.status, changes).await?;
    }
    Ok(())
}

/// One write: fenced by the lease, counted, not awaited for ever.
pub(crate) async fn write<T>(
    ctx: &Context,
    verb: &'static str,
    resource: &'static str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ApplyError> {
    if ctx.leadership.since().is_none() {
        return Err(ApplyError::NotLeading);
    }
    let answer = tokio::time::timeout(PATIENCE, call).await;
    let code = match &answer {
        Ok(Ok(_)) => 200,
        Ok(Err(kube::Error::Api(status))) => status.code,
        _ => 0,
    };
    ctx.metrics
        .writes
        .get_or_create(&Write {
            verb,
            resource,
            code,
        })
        .inc();
    match answer {
        Err(_) => Err(ApplyError::Silent { verb, resource }),
        Ok(answer) => answer.map_err(|source| ApplyError::Api {
            verb,
            resource,
            source,
        }),
    }
}

fn jobs(ctx: &Context, target: &Target<'_>) -> Api<Job> {
    Api::namespaced(ctx.client.0.clone(), &target.object.namespace)
}

fn objects(ctx: &Context, target: &Target<'_>) -> Api<DynamicObject> {
    Api::namespaced_with(
        ctx.client.0.clone(),
        &target.object.namespace,
        target.resource,
    )
}

pub(crate) fn patch_params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

pub(crate) fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Creates the Job of a run. A name that is taken is adopted if the Job is this very run's, else
/// noted (CronJob rule 37).
async fn create(
    ctx: &Context,
    target: &Target<'_>,
    seed: &Seed,
    job: &Job,
    now: DateTime<Utc>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let api = jobs(ctx, target);
    let params = post_params();
    match write(ctx, "create", "jobs", api.create(&params, job)).await {
        Ok(job) => {
            changes.jobs.extend(own_job(target, &job));
            if let Some(slot) = seed.slot {
                let skew = (ctx.clock.now() - slot).as_seconds_f64();
                ctx.metrics.start_skew.observe(skew.max(0.0));
            }
            Ok(())
        }
        Err(ApplyError::Api {
            source: kube::Error::Api(status),
            ..
        }) if status.reason == "AlreadyExists" => adopt(ctx, target, seed, now, changes).await,
        Err(error) => refused(target, seed, error, now, changes),
    }
}

/// A user's or the cluster's doing is noted and shown; the rest is tried again.
fn refused(
    target: &Target<'_>,
    seed: &Seed,
    error: ApplyError,
    now: DateTime<Utc>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let ApplyError::Api {
        source: kube::Error::Api(status),
        ..
    } = &error
    else {
        return Err(error);
    };
    let causes = status
        .details
        .as_ref()
        .map(|d| d.causes.as_slice())
        .unwrap_or_default();
    let terminating = causes.iter().any(|c| c.reason == "NamespaceTerminating");
    if terminating || !matches!(status.code, 400 | 403 | 404 | 413 | 422) {
        return Err(error);
    }
    let reason = if status.reason.is_empty() {
        reason::REFUSED
    } else {
        &status.reason
    };
    changes
        .failures
        .push(failure(target, seed, reason, &status.message, now));
    Ok(())
}

fn failure(
    target: &Target<'_>,
    seed: &Seed,
    reason: &str,
    message: &str,
    now: DateTime<Utc>,
) -> StartFailure {
    // By object, not by name: each slot has another one.
    let generation = target.object.generation;
    let row = target
        .failures
        .iter()
        .filter(|f| f.action == seed.action && f.generation == generation);
    let tries = row.map(|f| f.tries).max().unwrap_or(0).saturating_add(1);
    StartFailure {
        name: seed.name.clone(),
        reason: reason.to_owned(),
        message: clean(message, MAX_MESSAGE),
        action: seed.action,
        generation,
        taken: false,
        tries,
        retry_at: now + backoff(tries),
    }
}

/// 5 s, doubled up to 5 minutes.
pub(crate) fn backoff(tries: u32) -> TimeDelta {
    TimeDelta::seconds((5_i64 << tries.saturating_sub(1).min(6)).min(300))
}

/// The Job as the plan knows it, if it is the object's.
fn own_job(target: &Target<'_>, job: &Job) -> Option<JobDigest> {
    is_controlled_by(&job.metadata, target.resource, target.object)
        .then(|| digest::job(job))
        .flatten()
}

async fn adopt(
    ctx: &Context,
    target: &Target<'_>,
    seed: &Seed,
    now: DateTime<Utc>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let api = jobs(ctx, target);
    let job = write(ctx, "get", "jobs", api.get(&seed.name)).await?;
    let note = |key: &str| job.metadata.annotations.as_ref().and_then(|a| a.get(key));
    let same = match (seed.slot, &seed.request_id) {
        (Some(slot), _) => note(labels::SCHEDULED_AT).and_then(|t| parse_rfc3339(t)) == Some(slot),
        (None, Some(id)) => note(labels::REQUEST_ID) == Some(id),
        (None, None) => true,
    };
    // One that was made ahead of its slot, by a clock that was, is another run's.
    let uid = job.metadata.uid.as_deref();
    let early = |r: &crds::run::Run| r.job_uid.as_deref() == uid && r.slot.is_none();
    let early = seed.slot.is_some() && target.seen.runs.iter().any(early);
    let mine = own_job(target, &job).filter(|_| same && !early);
    if let Some(mine) = mine {
        changes.jobs.push(mine);
    } else {
        let message = format!("a Job named {} exists that is not this run's", seed.name);
        let mut failure = failure(target, seed, reason::NAME_TAKEN, &message, now);
        failure.taken = true;
        changes.failures.push(failure);
    }
    Ok(())
}

async fn delete(
    ctx: &Context,
    target: &Target<'_>,
    name: &str,
    uid: &str,
    foreground: bool,
) -> Result<(), ApplyError> {
    delete_job(ctx, &jobs(ctx, target), name, uid, foreground).await
}

/// Deletes the Job of this name and UID; one that is gone is fine.
pub(crate) async fn delete_job(
    ctx: &Context,
    api: &Api<Job>,
    name: &str,
    uid: &str,
    foreground: bool,
) -> Result<(), ApplyError> {
    let policy = if foreground {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    };
    let params = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match write(ctx, "delete", "jobs", api.delete(name, &params)).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(404) => Ok(()),
        // A conflict too: the live read that follows tells whether another Job has the name by now.
        Err(error) => Err(error),
    }
}

/// Takes over a Job of another program.
async fn label(
    ctx: &Context,
    target: &Target<'_>,
    foreign_job: &ForeignJob,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let trigger = if foreign_job.scheduled_at.is_some() {
        Trigger::Schedule
    } else {
        Trigger::Manual
    };
    let patch = Patch::Merge(json!({"metadata": {
        "uid": foreign_job.uid,
        "labels": {labels::OWNER_UID: target.object.uid},
        "annotations": {
            labels::OWNER_KIND: target.object.kind,
            labels::OWNER_NAME: target.object.name,
            labels::SCHEDULED_AT: foreign_job.scheduled_at,
            labels::TRIGGER: trigger.as_str(),
        },
    }}));
    let api = jobs(ctx, target);
    let params = patch_params();
    match write(
        ctx,
        "patch",
        "jobs",
        api.patch(&foreign_job.name, &params, &patch),
    )
    .await
    {
        Ok(job) => changes.jobs.extend(own_job(target, &job)),
        // Gone, or another Job has the name by now.
        Err(error) if matches!(error.code(), Some(404 | 422)) => {}
        Err(error) => return Err(error),
    }
    changes.taken_over.push(foreign_job.uid.to_string());
    Ok(())
}

/// Removes annotations that still have the values that were answered.
async fn remove_annotations(
    ctx: &Context,
    target: &Target<'_>,
    pairs: &[(String, String)],
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let mut ops = vec![];
    for (key, value) in pairs {
        let path = pointer(key);
        if value == TOO_LONG {
            // Its value was not kept; that the object is the one that was answered says as much.
            let version = target.resource_version;
            ops.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
        } else {
            ops.push(json!({"op": "test", "path": path, "value": value}));
        }
        ops.push(json!({"op": "remove", "path": path}));
    }
    json_patch(ctx, target, ops, changes).await
}

/// Ends a suspension, if it is still the one the annotation speaks of.
async fn resume(
    ctx: &Context,
    target: &Target<'_>,
    at: &str,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let path = pointer(RESUME_AT);
    let mut ops = target.kind.resume(target.spec);
    ops.push(json!({"op": "test", "path": path, "value": at}));
    ops.push(json!({"op": "remove", "path": path}));
    json_patch(ctx, target, ops, changes).await
}

fn pointer(annotation: &str) -> String {
    let key = annotation.replace('~', "~0").replace('/', "~1");
    format!("/metadata/annotations/{key}")
}

async fn json_patch(
    ctx: &Context,
    target: &Target<'_>,
    ops: Vec<Value>,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let patch = Patch::<Value>::Json(serde_json::from_value(Value::Array(ops))?);
    let api = objects(ctx, target);
    let params = patch_params();
    match write(
        ctx,
        "patch",
        "objects",
        api.patch(&target.object.name, &params, &patch),
    )
    .await
    {
        Ok(object) => changes.objects.push(object),
        // Something else changed what was tested; the watch brings it.
        Err(error) if matches!(error.code(), Some(404 | 422)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Reports an event. That it exists is fine; no other failure holds anything up.
async fn report(ctx: &Context, target: &Target<'_>, spec: &EventSpec, now: DateTime<Utc>) {
    tell(ctx, target.object, &target.resource.api_version, spec, now).await;
}

pub(crate) async fn tell(
    ctx: &Context,
    object: &Object,
    version: &str,
    spec: &EventSpec,
    now: DateTime<Utc>,
) {
    let api: Api<Event> = Api::namespaced(ctx.client.0.clone(), &object.namespace);
    let event = event::build(object, version, spec, &ctx.config.instance, now);
    let params = post_params();
    let answer = write(ctx, "create", "events", api.create(&params, &event)).await;
    if let Err(error) = answer
        && error.code() != Some(409)
    {
        tracing::warn!(error = %chain(&error), object = %object.name, namespace = %object.namespace, reason = %spec.reason, "failed to report an event");
    }
}

async fn patch_status(
    ctx: &Context,
    target: &Target<'_>,
    status: &ScheduleStatus,
    changes: &mut Changes,
) -> Result<(), ApplyError> {
    let (mut old, mut new) = (
        serde_json::to_value(target.seen)?,
        serde_json::to_value(status)?,
    );
    if *target.seen != ScheduleStatus::default() {
        target.kind.decorate(&mut old, target.seen);
    }
    target.kind.decorate(&mut new, status);
    let Some(diff) = merge_diff(&old, &new) else {
        return Ok(());
    };
    // With the version the plan saw: whoever wrote in between makes this a conflict.
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": target.resource_version},
        "status": diff,
    }));
    let api = objects(ctx, target);
    let params = patch_params();
    let call = api.patch_status(&target.object.name, &params, &patch);
    changes
        .objects
        .push(write(ctx, "patch", "status", call).await?);
    Ok(())
}

/// The JSON merge patch (RFC 7386) from `old` to `new`, if they differ.
pub(crate) fn merge_diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut diff = serde_json::Map::new();
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => {
                        diff.extend(merge_diff(before, value).map(|d| (key.clone(), d)));
                    }
                    None => {
                        diff.insert(key.clone(), value.clone());
                    }
                }
            }
            for key in old.keys().filter(|k| !new.contains_key(*k)) {
                diff.insert(key.clone(), Value::Null);
            }
            (!diff.is_empty()).then_some(Value::Object(diff))
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

/// Writes the one condition of an object that can't be read.
pub(crate) async fn mark_unreadable(
    ctx: &Context,
    object: &Object,
    resource: &ApiResource,
    conditions: Value,
) -> Result<DynamicObject, ApplyError> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.client.0.clone(), &object.namespace, resource);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let params = patch_params();
    write(
        ctx,
        "patch",
        "status",
        api.patch_status(&object.name, &params, &patch),
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_diff_is_the_least_change() {
        let old = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1]});
        let new = json!({"a": 1, "b": {"x": 1, "y": 3}, "d": "n"});
        let diff = json!({"b": {"y": 3}, "c": null, "d": "n"});
        assert_eq!(merge_diff(&old, &new), Some(diff));
        assert_eq!(merge_diff(&old, &old), None);
    }

    #[test]
    fn backoff_doubles_to_five_minutes() {
        let seconds: Vec<i64> = (1..9).map(|n| backoff(n).num_seconds()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300]);
    }
}
