//! Verification by restore or replay: a Job of its own for a good run, outside totals. That a run is to be
//! verified is written with its result, in one patch; its Job's name is fixed by object and run.
//! The Job is deleted only after the outcome stands in status.

use chrono::Duration;
use crds::condition;
use crds::names;
use crds::parts::VerifyMode;
use crds::report::{Report, clean};
use crds::request::{Action, Options};
use crds::run::{MAX_MESSAGE, RunResult, Trigger, Verification};
use crds::time::{from_k8s, to_k8s};

use super::draft::{Draft, Seed, Step};
use super::observed::{JobDigest, PodDigest};
use super::outcome::{self, Verdict};
use super::pending;
use super::reason;
use super::start::{self, CreateBlock};

/// Seconds beside two intervals of the pull, after which nothing is waited for any more.
const PULL: i64 = 120;
/// A Job that can't be created is looked at again at least this often.
const RECHECK: Duration = Duration::seconds(30);

/// Notes that a run that was just closed is to be verified, if its turn has come.
pub(super) fn note(draft: &mut Draft<'_>, index: usize) {
    let Some(every) = draft.seen.settings.verify_every else {
        return;
    };
    let run = &mut draft.status.runs[index];
    if run.result != RunResult::Succeeded || run.verify_job.is_some() {
        return;
    }
    let count = draft.status.unverified_runs.unwrap_or(0).saturating_add(1);
    if count < every {
        draft.status.unverified_runs = Some(count);
        return;
    }
    draft.status.unverified_runs = None;
    let object = &draft.seen.object;
    let name = names::verify_name(&object.name, &object.uid, &run.name);
    run.verify_job = Some(name);
}

/// Carries verifications on: one Job at a time, oldest run first.
pub(super) fn carry_on(draft: &mut Draft<'_>) {
    let mut active = draft.seen.jobs.iter().any(|j| {
        let mut runs = draft.status.runs.iter();
        j.is_active() && runs.any(|r| r.verify_job.as_deref() == Some(&*j.name))
    });
    for index in (0..draft.status.runs.len()).rev() {
        let run = &draft.status.runs[index];
        let Some(name) = run.verify_job.clone() else {
            continue;
        };
        let job = draft.seen.jobs.iter().find(|j| *j.name == *name);
        let done = run.verification.as_ref().is_some_and(is_by_scratch_server);
        match (job, done) {
            (Some(job), true) => {
                // It was given up: what stands in status is final.
                let stands = draft.seen.status.runs.iter().any(|r| {
                    r.verify_job.as_deref() == Some(&*name)
                        && r.verification == draft.status.runs[index].verification
                });
                if stands && job.is_active() && !job.deleting {
                    delete(draft, job);
                }
            }
            (None, true) => {}
            (Some(job), false) => judge(draft, index, job),
            (None, false) if draft.seen.settings.verify_every.is_none() => {
                draft.status.runs[index].verify_job = None;
            }
            (None, false) if active || !draft.accepted() => {}
            (None, false) if awaits_log(draft, index) => {}
            (None, false) if !draft.seen.live => {
                // It may have been created, or be done, by a leader before.
                draft.needs_live = true;
                return;
            }
            (None, false) => {
                active = true;
                begin(draft, index, name);
            }
        }
    }
}

/// How good runs are verified, as requests and status say it.
fn mode(draft: &Draft<'_>) -> VerifyMode {
    match draft.seen.settings.verify_by_replay {
        true => VerifyMode::Replay,
        false => VerifyMode::Restore,
    }
}

/// True for one that a scratch server took part in: one by checksum alone does not stand for it.
fn is_by_scratch_server(verification: &Verification) -> bool {
    VerifyMode::named(&verification.mode).is_some_and(VerifyMode::restores)
}

/// True while the binary log up to the run's end may still be stored by a pull that comes: what is to be replayed is then waited
/// for here, where it holds no pod. Two intervals later the runner says what is missing, and restores.
fn awaits_log(draft: &mut Draft<'_>, index: usize) -> bool {
    let settings = &draft.seen.settings;
    let Some(interval) = settings
        .binlog_interval
        .filter(|_| settings.verify_by_replay)
    else {
        return false;
    };
    let Some(ended) = &draft.status.runs[index].completion_time else {
        return false;
    };
    let ended = from_k8s(ended);
    let stored = draft.status.binlogs.as_ref().and_then(|books| {
        let until = from_k8s(&books.windows.first()?.until);
        // The moment is of the server's clock, which may be another.
        Some(until >= ended && books.last_time.as_ref().map(from_k8s)? >= ended)
    });
    let deadline = interval.saturating_mul(2).saturating_add(PULL);
    let deadline = ended + Duration::seconds(deadline);
    if stored == Some(true) || draft.now >= deadline {
        return false;
    }
    draft.wake_at(deadline.min(draft.now + RECHECK));
    true
}

fn delete(draft: &mut Draft<'_>, job: &JobDigest) {
    draft.steps.push(Step::DeleteJob {
        name: job.name.to_string(),
        uid: job.uid.to_string(),
        foreground: true,
    });
}

/// Plans the Job.
fn begin(draft: &mut Draft<'_>, index: usize, name: String) {
    match start::create_block(draft, &name) {
        Some(CreateBlock::NameTaken(why)) => {
            return finish(draft, index, None, reason::NAME_TAKEN, why);
        }
        Some(CreateBlock::Later) => return,
        None => {}
    }
    draft.wake_at(draft.now + RECHECK);
    let run = draft.status.runs[index].name.clone();
    draft.create_job(Seed {
        action: Action::Verify,
        options: Options {
            run: Some(run),
            mode: Some(mode(draft).as_str().to_owned()),
            ..Options::default()
        },
        ..Seed::new(name, Trigger::Manual)
    });
}

/// Where the Job stands.
fn judge(draft: &mut Draft<'_>, index: usize, job: &JobDigest) {
    let seen = draft.seen;
    let pods: Vec<&PodDigest> = seen.pods.iter().filter(|p| p.job_uid == job.uid).collect();
    match outcome::judge(draft, job, &pods, true) {
        Verdict::Open => startup(draft, index, job, &pods),
        Verdict::Await(until) => draft.wake_at(until),
        Verdict::Final(closing, report) => {
            finish(
                draft,
                index,
                report.as_deref(),
                &closing.reason,
                closing.message,
            );
        }
    }
}

/// A Job whose container does not run within startupDeadlineSeconds is given up.
fn startup(draft: &mut Draft<'_>, index: usize, job: &JobDigest, pods: &[&PodDigest]) {
    let Some((reason, message)) = pending::given_up(draft, job, pods) else {
        return;
    };
    finish(draft, index, None, &reason, message);
}

/// Writes the outcome: on the run, as condition, as event. The run's own result stays.
fn finish(
    draft: &mut Draft<'_>,
    index: usize,
    report: Option<&Report>,
    reason: &str,
    message: String,
) {
    let compared = report.and_then(|r| r.verification.clone());
    let differs = compared.is_some();
    let verification = compared.unwrap_or_else(|| Verification {
        mode: mode(draft).as_str().to_owned(),
        passed: false,
        time: to_k8s(draft.now),
        message: clean(
            &format!(
                "not verified ({reason}): {message}; run it again with `kubectl backup verify`"
            ),
            MAX_MESSAGE,
        ),
    });
    let run = &mut draft.status.runs[index];
    let name = run.name.clone();
    run.verification = Some(verification.clone());
    let (type_, why, warning) = match (verification.passed, differs) {
        (true, _) => (reason::BACKUP_VERIFIED, reason::PASSED.to_owned(), false),
        (false, true) => (
            reason::VERIFICATION_FAILED,
            outcome::named(reason, reason::FAILED),
            true,
        ),
        (false, false) => (
            reason::VERIFICATION_FAILED,
            reason::NOT_VERIFIED.to_owned(),
            true,
        ),
    };
    let note = format!("run {name}: {}", verification.message);
    draft.event(name.clone(), type_, warning, "Verify", note);
    set(draft, &name, &verification, &why);
}

/// The condition and the time of the newest passed verification. The newest run has the word.
pub(super) fn set(draft: &mut Draft<'_>, run: &str, verification: &Verification, why: &str) {
    let status = &mut draft.status;
    if verification.passed && is_by_scratch_server(verification) {
        let newest = status.last_verified_time.as_ref().map(|t| t.0);
        if newest.is_none_or(|t| t < verification.time.0) {
            status.last_verified_time = Some(verification.time.clone());
        }
    }
    let newer = |r: &&crds::run::Run| r.verification.is_some();
    let newest = status.runs.iter().find(newer).map(|r| r.name.clone());
    if newest.is_some_and(|newest| newest != run) {
        return;
    }
    condition::set(
        &mut status.conditions,
        condition::VERIFIED,
        verification.passed,
        if why.is_empty() { reason::FAILED } else { why },
        format!("{run}: {}", verification.message),
        draft.seen.object.generation,
        draft.now,
    );
}

/// True if the Job verifies a run whose outcome is not in status yet.
pub(super) fn is_open(draft: &Draft<'_>, job: &JobDigest) -> bool {
    let mut runs = draft.seen.status.runs.iter();
    runs.any(|r| r.verify_job.as_deref() == Some(&*job.name) && r.verification.is_none())
}
