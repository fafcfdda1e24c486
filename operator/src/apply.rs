//! The only place that writes to the API server (the Lease and the webhook's certificate apart).

pub(crate) mod jobs;
mod reach;

use std::time::Duration;

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::labels::{MANAGER, RESUME_AT};
use crds::request::TOO_LONG;
use crds::text::chain;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use thiserror::Error;

use crate::context::Context;
use crate::engine::{EventSpec, JobDigest, Object, Plan, StartFailure, Step};
use crate::event;
use crate::kind::Kind;
use crate::metrics::Write;

/// Longest wait for the answer to one write. A write that took effect is met again by its name.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a plan is applied to.
pub(crate) struct Target<'a> {
    pub(crate) object: &'a Object,
    pub(crate) spec: &'a Value,
    pub(crate) resource: &'a ApiResource,
    pub(crate) kind: &'a dyn Kind,
    pub(crate) seen: &'a ScheduleStatus,
    /// Its status as it is stored, with what another program has left in it.
    pub(crate) stored: &'a Value,
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
            Step::CreateJob { seed, job } => {
                jobs::create(ctx, target, seed, job, now, changes).await?
            }
            Step::CannotBuild { seed, why } => {
                let failure = jobs::failure(target, seed, why.reason, &why.message, now);
                changes.failures.push(failure);
            }
            Step::DeleteJob {
                name,
                uid,
                foreground,
            } => {
                jobs::delete(ctx, target, name, uid, *foreground).await?;
                changes.deleted.push(uid.clone());
            }
            Step::RemoveAnnotations(pairs) => {
                remove_annotations(ctx, target, pairs, changes).await?
            }
            Step::LabelJob(foreign_job) => jobs::label(ctx, target, foreign_job, changes).await?,
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
    let Some(diff) = status_diff(target.kind, target.stored, status)? else {
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

/// What makes the stored status the new one and nothing else: fields that the new one lacks would
/// stay for good with whoever wrote them.
pub(crate) fn status_diff(
    kind: &dyn Kind,
    stored: &Value,
    status: &ScheduleStatus,
) -> Result<Option<Value>, ApplyError> {
    let mut new = serde_json::to_value(status)?;
    kind.decorate(&mut new, status);
    Ok(merge_diff(stored, &new))
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
}
