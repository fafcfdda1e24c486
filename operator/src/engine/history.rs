//! Finished Jobs beyond the limits (CronJob rule 43), behind the fence.

use chrono::{DateTime, Duration, Utc};
use crds::request::Action;
use crds::status::RequestState;

use super::draft::{Draft, Step};
use super::observed::{JobDigest, JobOutcome};
use super::{binlogs, notices, verify};

/// A finished Job stays for longer than a lease, so that a stalled former leader's late POST meets
/// its name.
pub(super) const FENCE: Duration = Duration::seconds(60);
/// How long Jobs of other actions stay after their end, for their logs.
pub(super) const ACTION_KEPT: Duration = Duration::minutes(10);

/// Deletes finished Jobs beyond the limits, oldest first; also while suspended.
pub(super) fn prune(draft: &mut Draft<'_>) {
    let settings = &draft.seen.settings;
    let (good_limit, failed_limit) = (settings.keep_good, settings.keep_failed);
    beyond(draft, good_limit, |j| {
        matches!(j.outcome, JobOutcome::Complete { .. })
    });
    beyond(draft, failed_limit, |j| {
        matches!(j.outcome, JobOutcome::Failed { .. })
    });
    let seen = draft.seen;
    for job in seen
        .jobs
        .iter()
        .filter(|j| j.action != Action::Backup && !j.deleting)
    {
        if let Some(finished) = job.finished() {
            // Pulls come often: what went well is not kept for its log.
            let good = matches!(job.outcome, JobOutcome::Complete { .. });
            let brief = job.action == Action::Binlogs && good;
            delete_after(
                draft,
                job,
                finished + if brief { FENCE } else { ACTION_KEPT },
            );
        }
    }
}

fn beyond(draft: &mut Draft<'_>, limit: Option<i32>, kind: impl Fn(&JobDigest) -> bool) {
    let Some(limit) = limit.and_then(|l| usize::try_from(l).ok()) else {
        return;
    };
    let seen = draft.seen;
    let mut jobs: Vec<&JobDigest> = seen
        .jobs
        .iter()
        .filter(|j| j.action == Action::Backup && !j.deleting && kind(j))
        .collect();
    // No start time sorts last, as the newest; ties go by name.
    jobs.sort_by_key(|j| (j.started.is_none(), j.started, j.name.clone()));
    let surplus = jobs.len().saturating_sub(limit);
    for job in jobs.into_iter().take(surplus) {
        if let Some(finished) = job.finished() {
            delete_after(draft, job, finished + FENCE);
        }
    }
}

/// Deletes a Job whose outcome stands in status, once `at` has passed.
fn delete_after(draft: &mut Draft<'_>, job: &JobDigest, at: DateTime<Utc>) {
    if !stands(draft, job) {
        return;
    }
    if draft.now < at {
        draft.wake_at(at);
        return;
    }
    draft.steps.push(Step::DeleteJob {
        name: job.name.to_string(),
        uid: job.uid.to_string(),
        foreground: false,
    });
}

/// True if nothing about the Job is still to be written to status.
fn stands(draft: &Draft<'_>, job: &JobDigest) -> bool {
    let status = &draft.seen.status;
    let run_open = status
        .runs
        .iter()
        .any(|r| r.job_uid.as_deref() == Some(&*job.uid) && !r.result.is_final());
    let fresh = draft
        .status
        .runs
        .iter()
        .any(|r| r.job_uid.as_deref() == Some(&*job.uid))
        && !status
            .runs
            .iter()
            .any(|r| r.job_uid.as_deref() == Some(&*job.uid));
    let asked = status.requests.iter().any(|r| {
        Some(&*r.id) == job.request_id.as_deref()
            && matches!(r.state, RequestState::Running | RequestState::Queued)
    });
    !run_open
        && !fresh
        && !asked
        && !verify::is_open(draft, job)
        && !notices::is_open(draft, job)
        && !binlogs::is_open(draft, job)
}
