//! What is to be done for a Restore. PURE: `plan(&Observed, now) -> Plan`.
//!
//! # Guarantees
//! At most one Job is ever created: its name comes from the Restore's UID, and once its UID stands
//! in status, or the phase is final, none is created again. The Job is deleted only after the
//! outcome stands in status.

use chrono::{DateTime, Duration, Utc};
use crds::bounds;
use crds::condition;
use crds::gobackup::destination;
use crds::labels;
use crds::names;
use crds::plan::{Credential, Storage};
use crds::report::clean;
use crds::request::{Action as RequestAction, Request};
use crds::restore::{RestorePhase, RestoreSpec, RestoreStatus, from_archive, kind_of};
use crds::run::{MAX_MESSAGE, Run, RunResult};
use crds::time::{plus_seconds, to_k8s};
use crds::validate::{self, Problem};
use k8s_openapi::api::batch::v1::Job;

use super::job::{self, Stored};
use super::observe::{Named, Observed, storage_of};
use crate::engine::reason;
use crate::engine::{self, EventSpec, JobDigest, Look, Obstacle, PodDigest, Verdict, pending};
use crate::job::STARTUP;

/// How often a Job that does not run yet, or runs, is looked at.
const LOOK: Duration = Duration::seconds(5);
/// How often what is missing is looked for.
const RECHECK: Duration = Duration::seconds(20);
/// How long the Job and its log stay after its end.
const KEPT: Duration = Duration::hours(24);

/// What is to be done, as comparable data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order, before the status patch.
    pub(crate) steps: Vec<Step>,
    /// The status to stand afterwards; it speaks of what was observed.
    pub(crate) status: RestoreStatus,
    /// When to look again; `None` awaits an event.
    pub(crate) wake: Option<DateTime<Utc>>,
    /// Events to be read: they may tell what keeps the Job from starting.
    pub(crate) look: Option<Look>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Create the Job.
    Create(Box<Job>),
    /// Delete the Job of this name and UID.
    Delete {
        name: String,
        uid: String,
        /// Wait for its pod to end.
        foreground: bool,
    },
    /// Report an event once.
    Event(EventSpec),
}

/// Reason and message.
type Words = (String, String);

/// Why a Restore does not start.
enum Hold {
    /// What it needs may yet come.
    Wait {
        reason: &'static str,
        message: String,
    },
    /// Nothing can mend it: its spec can't be changed.
    Never { reason: String, message: String },
}

/// Decides everything. The same input gives the same plan.
pub(crate) fn plan(seen: &Observed, now: DateTime<Utc>) -> Plan {
    let mut plan = Plan {
        steps: vec![],
        status: seen.status.clone(),
        wake: None,
        look: None,
    };
    if seen.object.deleting {
        return plan;
    }
    plan.status.observed_generation = seen.object.generation;
    let is_final = seen.status.phase.is_some_and(RestorePhase::is_final);
    if !is_final && let Some(request) = cancel_request(seen, now) {
        cancel(seen, &mut plan, &request, now);
        return plan;
    }
    match (&seen.job, is_final) {
        (Named::Ours(job), true) => tidy(seen, &mut plan, job, now),
        (_, true) => {}
        (Named::Ours(job), false) => follow(seen, &mut plan, job, now),
        (_, false) if seen.status.job_uid.is_some() => {
            let message = "its Job was deleted before its outcome was seen; what it did to the target is not known: look at the target, then create another Restore (with overwrite if tables are there)";
            end(
                seen,
                &mut plan,
                false,
                reason::JOB_DELETED,
                message.to_owned(),
                now,
            );
        }
        (Named::Taken, false) => {
            let message = format!(
                "a Job named {} that is not this Restore's is in the way; delete it",
                names::restore_name(&seen.object.name, &seen.object.uid)
            );
            wait(seen, &mut plan, reason::NAME_TAKEN, message, now);
        }
        (Named::Free, false) => start(seen, &mut plan, now),
    }
    plan
}

/// The request to end this Restore, where there is something to end: a Job whose outcome is there, or
/// that is gone, has the word.
fn cancel_request(seen: &Observed, now: DateTime<Utc>) -> Option<Request> {
    let open = match &seen.job {
        Named::Ours(job) => job.finished().is_none() && !job.deleting,
        Named::Free | Named::Taken => seen.status.job_uid.is_none(),
    };
    let notes = seen.object.annotations.iter();
    let asked = notes.filter(|(key, _)| key.starts_with(labels::REQUEST_PREFIX));
    let mut asked = asked.filter_map(|(_, value)| Request::parse(value).ok());
    asked.find(|r| open && r.action == RequestAction::Cancel && !r.is_expired(now))
}

/// Ends it as failed; its Job goes once that stands in status.
fn cancel(seen: &Observed, plan: &mut Plan, request: &Request, now: DateTime<Utc>) {
    let what = if let Named::Ours(job) = &seen.job {
        let status = &mut plan.status;
        status.job = Some(job.name.to_string());
        status.job_uid = Some(job.uid.to_string());
        status.start_time.get_or_insert(to_k8s(job.created));
        "what it had loaded by then stays: look at the target before it is used"
    } else {
        "it had not started, and nothing was changed"
    };
    let mut message = "cancelled".to_owned();
    if !request.by.is_empty() {
        message.push_str(&format!(" by {}", request.by));
    }
    if !request.reason.is_empty() {
        message.push_str(&format!(" ({})", request.reason));
    }
    message.push_str(&format!("; {what}"));
    end(seen, plan, false, reason::CANCELLED, message, now);
}

/// After the end: a Job that still runs is ended, one that has finished is removed after a while.
fn tidy(seen: &Observed, plan: &mut Plan, job: &JobDigest, now: DateTime<Utc>) {
    if job.deleting {
        return;
    }
    let goes = match job.finished() {
        None => None,
        Some(at) => Some(at + KEPT).filter(|at| *at > now),
    };
    if let Some(at) = goes {
        plan.wake = Some(at);
        return;
    }
    plan.steps.push(Step::Delete {
        name: job.name.to_string(),
        uid: job.uid.to_string(),
        foreground: seen.status.completion_time.is_some() && job.is_active(),
    });
}

/// The Job is there.
fn follow(seen: &Observed, plan: &mut Plan, job: &JobDigest, now: DateTime<Utc>) {
    let status = &mut plan.status;
    status.job = Some(job.name.to_string());
    status.job_uid = Some(job.uid.to_string());
    status.start_time.get_or_insert(to_k8s(job.created));
    let pods: Vec<&PodDigest> = seen.pods.iter().filter(|p| p.job_uid == job.uid).collect();
    match engine::verdict(job, &pods, true, now) {
        Verdict::Open => open(seen, plan, job, &pods, now),
        Verdict::Await(until) => {
            running(seen, plan, now);
            plan.wake = Some(until);
        }
        Verdict::Final(closing, report) => {
            if let Some(report) = &report {
                let status = &mut plan.status;
                status.exit_code = report.exit_code;
                status.raw_bytes = report.raw_bytes;
                status.read_bytes = report.read_bytes;
                status.tables = report.tables;
                status.rows = report.rows;
                status.artefact = report.artefacts.first().cloned();
                status.warnings.clone_from(&report.warnings);
                status.phases.clone_from(&report.phases);
            } else if let Some(end) = engine::newest_end(&pods) {
                plan.status.exit_code = Some(end.exit_code);
            }
            let good = closing.result == RunResult::Succeeded;
            let mut message = closing.message;
            if report.is_none() && closing.reason == reason::NO_REPORT {
                message = "the container ended with status 0 and left no report, so nothing shows what it restored: look at the target, then create another Restore (with overwrite if tables are there)".to_owned();
            }
            if let Some(words) = engine::held(&pods).filter(|_| job.is_active()) {
                plan.status.warnings.push(words);
            }
            end(seen, plan, good, &closing.reason, message, now);
            plan.status.completion_time = Some(to_k8s(closing.at));
        }
    }
}

/// Not finished; what does not start in time is failed, then ended.
fn open(
    seen: &Observed,
    plan: &mut Plan,
    job: &JobDigest,
    pods: &[&PodDigest],
    now: DateTime<Utc>,
) {
    plan.wake = Some(now + LOOK);
    let seconds = seen.spec.as_ref().ok();
    let seconds = seconds.and_then(|s| s.startup_deadline_seconds);
    let seconds = bounds::startup_seconds(seconds.unwrap_or(STARTUP));
    let ends = plus_seconds(job.created, seconds);
    if job.ran || pods.iter().any(|p| p.started) {
        return running(seen, plan, now);
    }
    let known: &[Obstacle] = seen.obstacle.as_slice();
    if now < ends {
        if let Some((look, at)) = pending::look(known, job, pods) {
            plan.look = (at <= now).then_some(look);
        }
        return match pending::cause(known, job, pods) {
            Some(words) => waiting(seen, plan, words, now),
            None => running(seen, plan, now),
        };
    }
    let (reason, message) = pending::cause_or_none(known, job, pods);
    let message = format!(
        "not running within {seconds} s: {message}; mend it, then create another Restore (nothing was restored)"
    );
    end(seen, plan, false, &reason, message, now);
    plan.wake = Some(now + Duration::seconds(1));
}

/// The Job is there and something keeps its container from running.
fn waiting(seen: &Observed, plan: &mut Plan, (reason, message): Words, now: DateTime<Utc>) {
    let message = clean(&format!("not started: {message}"), MAX_MESSAGE);
    let fresh = plan.status.reason != reason;
    plan.status.phase = Some(RestorePhase::Pending);
    plan.status.reason.clone_from(&reason);
    plan.status.message.clone_from(&message);
    let generation = seen.object.generation;
    let conditions = &mut plan.status.conditions;
    let accepted = reason::VALID;
    condition::set(
        conditions,
        condition::ACCEPTED,
        true,
        accepted,
        "",
        generation,
        now,
    );
    for (type_, status) in [
        (condition::RESTORED, "Unknown"),
        (condition::READY, "False"),
    ] {
        let message = message.clone();
        condition::set_status(conditions, type_, status, &reason, message, generation, now);
    }
    if fresh {
        let note = format!("{reason}: {message}");
        plan.steps
            .push(event(seen, reason::RESTORE_PENDING, true, note));
    }
}

fn running(seen: &Observed, plan: &mut Plan, now: DateTime<Utc>) {
    let fresh = plan.status.phase != Some(RestorePhase::Running);
    plan.status.phase = Some(RestorePhase::Running);
    plan.status.reason.clear();
    plan.status.message.clear();
    let generation = seen.object.generation;
    let conditions = &mut plan.status.conditions;
    condition::set(
        conditions,
        condition::ACCEPTED,
        true,
        reason::VALID,
        "",
        generation,
        now,
    );
    for (type_, status) in [
        (condition::RESTORED, "Unknown"),
        (condition::READY, "False"),
    ] {
        condition::set_status(
            conditions,
            type_,
            status,
            reason::RUNNING,
            "",
            generation,
            now,
        );
    }
    if fresh && let Some(job) = &plan.status.job {
        let note = format!("Job {job} restores");
        plan.steps
            .push(event(seen, reason::RESTORE_STARTED, false, note));
    }
}

/// There is no Job and never was one.
fn start(seen: &Observed, plan: &mut Plan, now: DateTime<Utc>) {
    match ready(seen) {
        Err(Hold::Wait { reason, message }) => wait(seen, plan, reason, message, now),
        Err(Hold::Never { reason, message }) => {
            refuse(seen, plan, &reason, &message, now);
            end(seen, plan, false, &reason, message, now);
        }
        Ok(job) => {
            if let Some(failure) = &seen.failure {
                let message = format!("{}: {}", failure.reason, failure.message);
                wait(seen, plan, reason::FAILED_CREATE, message, now);
                plan.wake = Some(failure.retry_at.max(now + Duration::seconds(1)));
                if failure.retry_at > now {
                    return;
                }
            }
            plan.steps.push(Step::Create(Box::new(job)));
        }
    }
}

/// The Job, if nothing is in its way.
fn ready(seen: &Observed) -> Result<Job, Hold> {
    let spec = seen.spec.as_ref().map_err(|e| Hold::Never {
        reason: reason::UNREADABLE.to_owned(),
        message: e.clone(),
    })?;
    let problems = validate::restore(spec);
    if !problems.is_empty() {
        return Err(Hold::Never {
            reason: reason::INVALID_SPEC.to_owned(),
            message: format!(
                "{}; correct it in another Restore",
                validate::join(&problems)
            ),
        });
    }
    let store = stored(seen, spec)?;
    let storage = storage(seen, spec)?;
    let job =
        job::build(&seen.object, spec, &store, storage, &seen.runner_image).map_err(|message| {
            Hold::Never {
                reason: reason::INVALID_SPEC.to_owned(),
                message,
            }
        })?;
    let denied: Vec<Problem> = job
        .spec
        .as_ref()
        .map(|job| seen.policy.check(&job.template, &seen.runner_image))
        .unwrap_or_default();
    if denied.is_empty() {
        return Ok(job);
    }
    // The administrator may change the policy.
    Err(Hold::Wait {
        reason: reason::POLICY_DENIED,
        message: validate::join(&denied),
    })
}

/// Where the artefact is, if nothing speaks against it.
fn stored<'a>(seen: &'a Observed, spec: &'a RestoreSpec) -> Result<Stored<'a>, Hold> {
    let Some(name) = &spec.from.name else {
        return Ok(Stored::Place);
    };
    let absent = |kind: &str| Hold::Wait {
        reason: reason::BACKUP_NOT_FOUND,
        message: format!(
            "there is no {kind} {name} in namespace {}; create it, or restore from the place of its artefacts with spec.from.location (`kubectl backup list -A` shows what there is)",
            seen.object.namespace
        ),
    };
    if !from_archive(&spec.from) {
        let backup = seen.backup.as_ref().ok_or_else(|| absent("MysqlBackup"))?;
        of_run(spec, &backup.runs)?;
        return Ok(Stored::Backup(backup));
    }
    let kind = kind_of(&spec.from);
    let backup = seen.archived.as_ref().ok_or_else(|| absent(kind))?;
    of_run(spec, &backup.runs)?;
    let storage = spec.from.storage.as_deref();
    let files = backup.files(&seen.object.namespace, name, storage);
    let files = files.map_err(|unresolved| Hold::Wait {
        // What is missing may come, and what is wrong be corrected, in the Backup or its Storages.
        reason: reason::REFERENCES_NOT_RESOLVED,
        message: format!("{kind} {name}: {}", unresolved.message()),
    })?;
    Ok(Stored::Archive(backup, Box::new(files)))
}

/// What is known of the run that is asked for. A run that left the list may still be stored.
fn of_run(spec: &RestoreSpec, runs: &[Run]) -> Result<(), Hold> {
    let wanted = spec.from.run.as_ref();
    let Some(run) = wanted.and_then(|wanted| runs.iter().find(|r| r.name == *wanted)) else {
        return Ok(());
    };
    match run.result {
        RunResult::Succeeded => Ok(()),
        RunResult::Waiting | RunResult::Running => Err(Hold::Wait {
            reason: reason::RUN_NOT_FINISHED,
            message: format!(
                "run {} has not ended; it is restored when it has succeeded",
                run.name
            ),
        }),
        RunResult::Failed | RunResult::Skipped => {
            let good = runs.iter().find(|r| r.result == RunResult::Succeeded);
            let remedy = good.map_or_else(
                || "`kubectl backup runs --stored` shows what there is".to_owned(),
                |good| format!("the newest good one is {}", good.name),
            );
            Err(Hold::Never {
                reason: reason::RUN_NOT_GOOD.to_owned(),
                message: format!(
                    "run {} is {} ({}) and stored nothing; name another one: {remedy}",
                    run.name,
                    run.result.as_str(),
                    run.reason
                ),
            })
        }
    }
}

/// The Storage a MysqlBackup's artefact is on, if it is on one. It may be created, and corrected, later.
fn storage(seen: &Observed, spec: &RestoreSpec) -> Result<Option<Storage<Credential>>, Hold> {
    let Some(name) = storage_of(spec, seen.backup.as_ref()) else {
        return Ok(None);
    };
    let path = match spec.from.location {
        Some(_) => "spec.from.location.destination.storageRef".to_owned(),
        None => format!(
            "MysqlBackup {}: spec.destination.storageRef",
            spec.from.name.as_deref().unwrap_or_default()
        ),
    };
    let found = seen.storage.as_ref();
    destination::storage(&path, &seen.object.namespace, name, found)
        .map(|stored| Some(stored.storage))
        .map_err(|unresolved| Hold::Wait {
            reason: unresolved.reason(),
            message: unresolved.message(),
        })
}

/// Nothing can start yet.
fn wait(
    seen: &Observed,
    plan: &mut Plan,
    reason: &'static str,
    message: String,
    now: DateTime<Utc>,
) {
    plan.status.phase = Some(RestorePhase::Pending);
    plan.status.reason = reason.to_owned();
    plan.status.message = clean(&message, MAX_MESSAGE);
    refuse(seen, plan, reason, &message, now);
    let generation = seen.object.generation;
    condition::set_status(
        &mut plan.status.conditions,
        condition::RESTORED,
        "Unknown",
        reason,
        "",
        generation,
        now,
    );
    plan.wake = Some(now + RECHECK);
}

/// Accepted and Ready are False, with one event.
fn refuse(seen: &Observed, plan: &mut Plan, reason: &str, message: &str, now: DateTime<Utc>) {
    let old = condition::get(&seen.status.conditions, condition::ACCEPTED);
    let known = old.is_some_and(|o| o.status == "False" && o.reason == reason);
    if !known {
        plan.steps
            .push(event(seen, reason, true, message.to_owned()));
    }
    for type_ in [condition::ACCEPTED, condition::READY] {
        condition::set(
            &mut plan.status.conditions,
            type_,
            false,
            reason,
            clean(message, MAX_MESSAGE),
            seen.object.generation,
            now,
        );
    }
}

/// The final state, told once.
fn end(
    seen: &Observed,
    plan: &mut Plan,
    good: bool,
    reason: &str,
    message: String,
    now: DateTime<Utc>,
) {
    let message = clean(&message, MAX_MESSAGE);
    let status = &mut plan.status;
    status.phase = Some(if good {
        RestorePhase::Succeeded
    } else {
        RestorePhase::Failed
    });
    reason.clone_into(&mut status.reason);
    status.message.clone_from(&message);
    status.completion_time = Some(to_k8s(now));
    let generation = seen.object.generation;
    let refused = condition::get(&status.conditions, condition::ACCEPTED)
        .is_some_and(|c| c.status == "False" && c.reason == reason);
    if !refused {
        condition::set(
            &mut status.conditions,
            condition::ACCEPTED,
            true,
            reason::VALID,
            "",
            generation,
            now,
        );
    }
    for type_ in [condition::RESTORED, condition::READY] {
        condition::set(
            &mut status.conditions,
            type_,
            good,
            reason,
            message.clone(),
            generation,
            now,
        );
    }
    plan.wake = Some(now + Duration::seconds(1));
    let name = if good {
        reason::RESTORED
    } else {
        reason::RESTORE_FAILED
    };
    let note = if good {
        message
    } else {
        format!("{reason}: {message}")
    };
    plan.steps.push(event(seen, name, !good, note));
}

fn event(seen: &Observed, reason: &str, warning: bool, note: String) -> Step {
    Step::Event(EventSpec {
        subject: seen.object.uid.clone(),
        reason: reason.to_owned(),
        warning,
        action: "Restore",
        note,
    })
}
