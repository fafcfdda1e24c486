//! Runs and their Jobs: which belongs to which, and how each ended.

use chrono::Duration;
use crds::report::{Report, clean};
use crds::request::Action;
use crds::run::{MAX_MESSAGE, PENDING, Run, RunResult, Trigger};
use crds::time::{from_k8s, to_k8s};

use super::ahead;
use super::draft::Draft;
use super::ledger::{self, Closing};
use super::observed::{JobDigest, PodDigest};
use super::outcome::{self, Verdict};
use super::pending;
use super::reason;
use super::slots;
use super::verify;

/// Gives every backup Job its run: known ones by UID, slot or request, new ones are entered.
pub(super) fn match_jobs(draft: &mut Draft<'_>) {
    let mut jobs: Vec<&JobDigest> = draft.seen.jobs.iter().collect();
    jobs.retain(|j| j.action == Action::Backup);
    jobs.sort_by(|a, b| (a.slot, a.created, &a.name).cmp(&(b.slot, b.created, &b.name)));
    for job in jobs {
        let runs = &draft.status.runs;
        let known = runs
            .iter()
            .position(|r| r.job_uid.as_deref() == Some(&*job.uid))
            .or_else(|| runs.iter().position(|r| same(r, job)));
        match known.and_then(|index| draft.status.runs.get_mut(index)) {
            Some(run) => {
                if run.result == RunResult::Waiting {
                    run.result = RunResult::Running;
                    run.reason.clear();
                    run.message.clear();
                    started(draft, job);
                }
            }
            None => enter(draft, job),
        }
    }
    let runs = &mut draft.status.runs;
    let held: Vec<String> = runs.iter().filter_map(|r| r.job_uid.clone()).collect();
    for run in runs {
        let is_free = |j: &JobDigest| run.job_uid.is_some() || !held.iter().any(|h| **h == *j.uid);
        let mut jobs = draft.seen.jobs.iter();
        if let Some(job) = jobs.find(|j| same(run, j) && is_free(j)) {
            run.name = job.name.to_string();
            run.job_uid = Some(job.uid.to_string());
            run.start_time.get_or_insert(to_k8s(job.created));
        }
    }
}

/// True if the Job is this run's.
pub(super) fn same(run: &Run, job: &JobDigest) -> bool {
    if let Some(uid) = &run.job_uid {
        return **uid == *job.uid;
    }
    match run.trigger {
        Trigger::Schedule => {
            job.trigger == Trigger::Schedule && run.slot.as_ref().map(from_k8s) == job.slot
        }
        Trigger::Manual => run.request_id.as_deref() == job.request_id.as_deref(),
        Trigger::Immediate => job.trigger == Trigger::Immediate,
    }
}

fn started(draft: &mut Draft<'_>, job: &JobDigest) {
    if let Some(slot) = job.slot {
        let last = draft.status.last_schedule_time.as_ref().map(from_k8s);
        draft.status.last_schedule_time = Some(to_k8s(last.map_or(slot, |l| l.max(slot))));
    }
}

/// Enters a Job that has no run yet.
fn enter(draft: &mut Draft<'_>, job: &JobDigest) {
    let begins = draft.seen.status.accounted_until.is_none();
    let until = slots::accounted(&draft.status, draft.seen.object.created);
    let mut run = Run::new(&*job.name, job.trigger, RunResult::Running);
    run.job_uid = Some(job.uid.to_string());
    run.slot = job.slot.map(to_k8s);
    run.request_id = job.request_id.as_deref().map(str::to_owned);
    run.start_time = Some(to_k8s(job.created));
    match job.slot {
        // It counts when its slot has come.
        Some(slot) if ahead::is_ahead(slot, draft.now) => {}
        Some(slot) if slot > until => {
            if let Some(schedule) = slots::stored(&draft.status, &draft.seen.settings) {
                let before = slot - Duration::seconds(1);
                let suspended = draft.status.suspended_since.as_ref().map(from_k8s);
                slots::pass_over(
                    draft,
                    &schedule,
                    before,
                    suspended.map(|s| (s, before)),
                    None,
                );
            }
            draft.status.accounted_until = Some(to_k8s(slot));
            slots::drop_waiting(draft, None);
            ledger::open(&mut draft.status, run);
            started(draft, job);
        }
        Some(_) if begins => {
            ledger::open(&mut draft.status, run);
            started(draft, job);
        }
        Some(_) if job.is_active() => ledger::reopen(&mut draft.status, run),
        Some(_) => {}
        // Another program's, taken over: it counts in the history alone.
        None if job.trigger == Trigger::Manual && job.request_id.is_none() => {}
        None if is_counted(draft, job) => {}
        None => ledger::open(&mut draft.status, run),
    }
}

/// True if the books know a finished Job without a slot, whose run is not listed any more.
fn is_counted(draft: &Draft<'_>, job: &JobDigest) -> bool {
    if job.is_active() {
        return false;
    }
    if let Some(until) = &draft.status.manual_accounted_until {
        return job.created <= from_k8s(until);
    }
    // A status of before that instant was kept. What is older than all that is listed was listed.
    let before = &draft.seen.status;
    let oldest = before
        .runs
        .iter()
        .filter_map(|r| r.start_time.as_ref())
        .map(from_k8s)
        .min();
    before.totals.is_some() && oldest.is_some_and(|oldest| job.created <= oldest)
}

/// Keeps in the books up to when finished Jobs without a slot are counted whose runs are not
/// listed any more. Called when every Job of the plan has its run or had one.
pub(super) fn remember_counted(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    if seen.object.deleting && draft.status.totals.is_none() {
        return;
    }
    let listed = |job: &JobDigest| {
        let mut runs = draft.status.runs.iter();
        runs.any(|r| r.job_uid.as_deref() == Some(&*job.uid))
    };
    let left = seen.jobs.iter().filter(|job| {
        job.action == Action::Backup && job.slot.is_none() && !job.is_active() && !listed(job)
    });
    // Another program's Jobs, taken over, never count.
    let ours = left.filter(|job| job.trigger != Trigger::Manual || job.request_id.is_some());
    let newest = ours.map(|job| job.created).max();
    let known = draft.status.manual_accounted_until.as_ref().map(from_k8s);
    if let Some(newest) = newest.filter(|newest| known.is_none_or(|known| *newest > known)) {
        draft.status.manual_accounted_until = Some(to_k8s(newest));
    }
}

/// Ends runs whose Job has finished or is gone.
pub(super) fn settle(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    for index in 0..draft.status.runs.len() {
        let run = &draft.status.runs[index];
        let Some(uid) = run.job_uid.clone() else {
            continue;
        };
        let job = seen.jobs.iter().find(|j| *j.uid == *uid);
        let pods: Vec<&PodDigest> = seen.pods.iter().filter(|p| *p.job_uid == *uid).collect();
        match job {
            None if run.job_gone => {}
            None if !seen.live && !run.result.is_final() => draft.needs_live = true,
            None => vanished(draft, index, &pods),
            Some(_) if run.result.is_final() => {}
            Some(job) => judge(draft, index, job, &pods),
        }
    }
}

/// A run whose Job exists.
fn judge(draft: &mut Draft<'_>, index: usize, job: &JobDigest, pods: &[&PodDigest]) {
    let own = draft.seen.settings.own_image;
    match outcome::judge(draft, job, pods, own) {
        Verdict::Open => {
            pending::note(draft, index, job, pods);
            progress(&mut draft.status.runs[index], job, pods);
        }
        Verdict::Await(until) => draft.wake_at(until),
        Verdict::Final(mut closing, report) => {
            if let Some(report) = &report {
                draft.reach(report);
            }
            let run = &mut draft.status.runs[index];
            match (&report, outcome::newest_end(pods)) {
                (Some(report), _) => outcome::note_report(run, report),
                (None, Some(end)) => run.exit_code = Some(end.exit_code),
                (None, None) => {}
            }
            // What kept it from starting, or made an attempt fail, was noted while the Job was active;
            // its pod may be gone by now, and why the Job ended is the effect.
            let never =
                run.phase.as_deref() == Some(PENDING) && outcome::newest_end(pods).is_none();
            let silent = report.is_none() && (pods.is_empty() || never);
            let noted = silent && !run.reason.is_empty();
            if let Some((reason, message)) =
                intended(run).filter(|_| closing.result == RunResult::Failed)
            {
                (closing.reason, closing.message) = (reason, message);
            } else if noted && closing.result == RunResult::Failed {
                closing.reason.clone_from(&run.reason);
                closing.message.clone_from(&run.message);
            }
            if let Some(words) = outcome::held(pods).filter(|_| job.is_active()) {
                let run = &mut draft.status.runs[index];
                let note = format!("run {}: {words}", run.name);
                let subject = run.name.clone();
                run.warnings.push(words);
                draft.event(subject, reason::CONTAINER_DID_NOT_END, true, "Backup", note);
            }
            note_attempts(&mut draft.status.runs[index], &mut closing, job, pods);
            finish(draft, index, closing);
        }
    }
}

/// Attempts of a Job that failed: as its controller counts them, or as its pods show before it does.
fn failed_attempts(job: &JobDigest, pods: &[&PodDigest]) -> i32 {
    let seen = pods.iter().fold(0_i32, |n, p| n.saturating_add(p.failures));
    job.failed.max(seen)
}

/// That a run needed more than one attempt is a warning of a good one, and the head of what a bad one
/// says.
fn note_attempts(run: &mut Run, closing: &mut Closing, job: &JobDigest, pods: &[&PodDigest]) {
    let failed = failed_attempts(job, pods);
    let pending = run.phase.as_deref() == Some(PENDING);
    match closing.result {
        _ if run.intent.is_some() => {}
        // What the attempt before said stands in the run since it failed.
        RunResult::Succeeded if failed > 0 && !pending && !run.message.is_empty() => {
            run.warnings.push(run.message.clone());
        }
        // Attempts may come and go faster than they are seen to run.
        RunResult::Failed if failed > 1 => {
            let all = if failed >= job.attempts { "all " } else { "" };
            let text = format!(
                "{all}{failed} attempts failed; the last: {}",
                closing.message
            );
            closing.message = clean(&text, MAX_MESSAGE);
        }
        _ => {}
    }
}

/// Reason and message of the end that was written into the run before its Job was deleted. They
/// stand: what the pod says while it is being ended is the effect, not the cause.
fn intended(run: &Run) -> Option<(String, String)> {
    let intent = run.intent.as_ref()?;
    let never_started = intent == reason::NEVER_STARTED && !run.reason.is_empty();
    let reason = if never_started { &run.reason } else { intent };
    Some((reason.clone(), run.message.clone()))
}

/// What an attempt said, while the Job goes on. What keeps the next one from starting goes first.
fn progress(run: &mut Run, job: &JobDigest, pods: &[&PodDigest]) {
    if run.intent.is_some() || run.phase.as_deref() == Some(PENDING) {
        return;
    }
    let Some(end) = outcome::newest_end(pods).filter(|e| e.exit_code != 0) else {
        return;
    };
    let (reason, message) = match Report::parse(&end.message) {
        Some(report) if !report.reason.is_empty() => (report.reason, report.message),
        _ => outcome::from_exit(end),
    };
    run.reason = outcome::named(&reason, reason::FAILED);
    let failed = failed_attempts(job, pods).max(1);
    let which = if failed == 1 { "first" } else { "last" };
    // An attempt that a drained node ended is counted by nobody else.
    let most = job.attempts.max(failed);
    let text = if failed < most {
        let next = failed.saturating_add(1);
        format!("attempt {next} of {most}; the {which} failed: {message}")
    } else {
        format!("all {most} attempts failed; the last: {message}")
    };
    run.message = clean(&text, MAX_MESSAGE);
    run.exit_code = Some(end.exit_code);
}

/// A run whose Job does not exist any more.
fn vanished(draft: &mut Draft<'_>, index: usize, pods: &[&PodDigest]) {
    let run = &mut draft.status.runs[index];
    run.job_gone = true;
    if run.result.is_final() {
        return;
    }
    let report = outcome::newest_end(pods).and_then(|end| Report::parse(&end.message));
    if let Some(report) = &report {
        outcome::note_report(run, report);
    }
    let good = report.as_ref().is_some_and(|r| r.good == Some(true));
    let (reason, message) = match (intended(run), report) {
        (_, Some(report)) if good => (outcome::named(&report.reason, reason::COMPLETED), report.message),
        (Some(intended), _) => intended,
        (None, _) if run.phase.as_deref() == Some(PENDING) => (
            run.reason.clone(),
            format!("{}; its Job was deleted while it waited", run.message),
        ),
        (None, _) => (
            reason::JOB_DELETED.to_owned(),
            "the Job was deleted before its outcome was seen; run it again with `kubectl backup run-now`".to_owned(),
        ),
    };
    let closing = Closing {
        result: if good {
            RunResult::Succeeded
        } else {
            RunResult::Failed
        },
        reason,
        message,
        at: draft.now,
    };
    finish(draft, index, closing);
}

/// Closes a run and tells of it once.
fn finish(draft: &mut Draft<'_>, index: usize, closing: Closing) {
    let run = &draft.status.runs[index];
    let good = closing.result == RunResult::Succeeded;
    let stored = run
        .stored_bytes
        .map(|b| format!(", {} stored", ledger::size(b)));
    let text = if closing.message.is_empty() {
        String::new()
    } else {
        format!(": {}", closing.message)
    };
    let note = if good {
        format!(
            "run {} succeeded ({}){}",
            run.name,
            closing.reason,
            stored.unwrap_or_default()
        )
    } else {
        format!("run {} failed ({}){text}", run.name, closing.reason)
    };
    let event = if good {
        reason::BACKUP_SUCCEEDED
    } else {
        reason::BACKUP_FAILED
    };
    draft.event(run.name.clone(), event, !good, "Backup", note);
    ledger::close(&mut draft.status, index, closing);
    verify::note(draft, index);
}
