//! The writes of a Restore's plan.

use chrono::{DateTime, Utc};
use crds::report::clean;
use crds::request::Action;
use crds::restore::Restore;
use crds::run::MAX_MESSAGE;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, Patch};
use kube::core::{ApiResource, DynamicObject};
use serde_json::json;

use super::observe::Observed;
use super::plan::{Plan, Step};
use crate::apply::jobs::{backoff, delete_job};
use crate::apply::{ApplyError, merge_diff, patch_params, post_params, tell, write};
use crate::context::Context;
use crate::engine::StartFailure;
use crate::engine::reason;

/// Applies every step, then patches status if it changed. A creation that was refused for a reason
/// that a user can mend is returned.
pub(super) async fn apply(
    ctx: &Context,
    seen: &Observed,
    plan: &Plan,
    now: DateTime<Utc>,
) -> Result<Option<StartFailure>, ApplyError> {
    let client = ctx.client.0.clone();
    let resource = ApiResource::erase::<Restore>(&());
    let jobs: Api<Job> = Api::namespaced(client.clone(), &seen.object.namespace);
    let mut failure = None;
    for step in &plan.steps {
        match step {
            Step::Create(job) => failure = create(ctx, &jobs, seen, job, now).await?,
            Step::Delete {
                name,
                uid,
                foreground,
            } => delete_job(ctx, &jobs, name, uid, *foreground).await?,
            Step::Event(spec) => tell(ctx, &seen.object, &resource.api_version, spec, now).await,
        }
    }
    let old = serde_json::to_value(&seen.status)?;
    let new = serde_json::to_value(&plan.status)?;
    if let Some(diff) = merge_diff(&old, &new) {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, &seen.object.namespace, &resource);
        // With the version the plan saw: whoever wrote in between makes this a conflict.
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": seen.resource_version},
            "status": diff,
        }));
        let params = patch_params();
        let call = api.patch_status(&seen.object.name, &params, &patch);
        write(ctx, "patch", "status", call).await?;
    }
    Ok(failure)
}

/// Creates the Job. That the name is taken is seen by the next reconcile, which tells whose it is.
async fn create(
    ctx: &Context,
    jobs: &Api<Job>,
    seen: &Observed,
    job: &Job,
    now: DateTime<Utc>,
) -> Result<Option<StartFailure>, ApplyError> {
    let params = post_params();
    let answer = write(ctx, "create", "jobs", jobs.create(&params, job)).await;
    let error = match answer {
        Ok(_) => return Ok(None),
        Err(error) => error,
    };
    let ApplyError::Api {
        source: kube::Error::Api(status),
        ..
    } = &error
    else {
        return Err(error);
    };
    if status.reason == "AlreadyExists" {
        return Ok(None);
    }
    if !matches!(status.code, 400 | 403 | 404 | 413 | 422) {
        return Err(error);
    }
    let tries = seen.failure.as_ref().map_or(0, |f| f.tries) + 1;
    let reason = if status.reason.is_empty() {
        reason::FAILED_CREATE
    } else {
        &status.reason
    };
    Ok(Some(StartFailure {
        name: job.metadata.name.clone().unwrap_or_default(),
        reason: reason.to_owned(),
        message: clean(&status.message, MAX_MESSAGE),
        action: Action::Restore,
        generation: seen.object.generation,
        taken: false,
        tries,
        retry_at: now + backoff(tries),
    }))
}
