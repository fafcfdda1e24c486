//! Jobs: created, adopted, taken over, deleted.

use chrono::{DateTime, TimeDelta, Utc};
use crds::labels;
use crds::report::clean;
use crds::run::{MAX_MESSAGE, Trigger};
use crds::time::parse_rfc3339;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, Patch, Preconditions, PropagationPolicy};
use serde_json::json;

use super::{ApplyError, Changes, Target, patch_params, post_params, write};
use crate::context::Context;
use crate::digest;
use crate::engine::{ForeignJob, JobDigest, Seed, StartFailure, reason};
use crate::ownership::is_controlled_by;

fn jobs(ctx: &Context, target: &Target<'_>) -> Api<Job> {
    Api::namespaced(ctx.client.0.clone(), &target.object.namespace)
}

/// Creates the Job of a run. A name that is taken is adopted if the Job is this very run's, else
/// noted (CronJob rule 37).
pub(super) async fn create(
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

pub(super) fn failure(
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

pub(super) async fn delete(
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
pub(super) async fn label(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_five_minutes() {
        let seconds: Vec<i64> = (1..9).map(|n| backoff(n).num_seconds()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300]);
    }
}
