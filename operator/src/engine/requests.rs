//! Requests: one annotation each, echoed in status, then removed.

use chrono::Duration;
use crds::labels::REQUEST_PREFIX;
use crds::report::{Report, clean};
use crds::request::{Action, Request};
use crds::run::{MAX_MESSAGE, Run, RunResult, Trigger};
use crds::status::{MAX_REQUESTS, RequestState, RequestStatus};
use crds::time::{parse_rfc3339, to_k8s};
use crds::{names, validate};

use super::draft::{Draft, Step};
use super::failures;
use super::ledger::{self, Closing};
use super::observed::{JobDigest, JobOutcome, PodDigest};
use super::outcome;
use super::reason;
use super::{history, pending, start, verify};

/// Answers what is asked and carries on what was.
pub(super) fn answer(draft: &mut Draft<'_>) {
    carry_on(draft);
    end_jobs(draft);
    let seen = draft.seen;
    let (mut answered, mut fresh) = (vec![], vec![]);
    for (key, value) in &seen.object.annotations {
        let Some(suffix) = key.strip_prefix(REQUEST_PREFIX) else {
            continue;
        };
        let request = match Request::parse(value) {
            Ok(request) => request,
            Err(problem) => unreadable(suffix, problem),
        };
        if seen.status.requests.iter().any(|r| r.id == request.id) {
            answered.push((key.clone(), value.clone()));
        } else {
            fresh.push(request);
        }
    }
    // Status holds a few answers, and an answer may leave it only after its annotation is gone, or
    // it would be given again: one at a time, each annotation removed before the next.
    if !answered.is_empty() {
        draft.steps.push(Step::RemoveAnnotations(answered));
        return;
    }
    for request in fresh {
        decide(draft, &request);
        let newest = draft.status.requests.first();
        if draft.needs_live || newest.is_some_and(|r| r.id == request.id) {
            return;
        }
    }
}

/// Stands for an annotation that can't be read, so that its answer has an id.
fn unreadable(suffix: &str, problem: String) -> Request {
    Request {
        action: Action::Backup,
        id: format!("unreadable-{suffix}"),
        by: String::new(),
        at: String::new(),
        expires_at: String::new(),
        reason: problem,
        options: crds::request::Options::default(),
    }
}

fn decide(draft: &mut Draft<'_>, request: &Request) {
    let seen = draft.seen;
    if request.action == Action::Echo {
        // One answer stays: they are asked for by whoever looks whether the operator is there.
        draft.status.requests.retain(|r| r.action != Action::Echo);
        let message = format!("{} v{} acts on it", seen.installation, crds::VERSION);
        return echo(draft, request, RequestState::Succeeded, None, message);
    }
    if let Some(why) = refusal(draft, request) {
        return echo(draft, request, RequestState::Refused, None, why);
    }
    let older = parse_rfc3339(&request.at).is_none_or(|at| at < seen.leading_since);
    if older && !seen.live {
        draft.needs_live = true;
        return;
    }
    match request.action {
        Action::Cancel => cancel(draft, request),
        Action::Backup => backup(draft, request),
        _ => other(draft, request),
    }
}

/// Why a request is not acted on, in a sentence with the remedy.
fn refusal(draft: &Draft<'_>, request: &Request) -> Option<String> {
    let seen = draft.seen;
    if request.id.starts_with("unreadable-") && request.at.is_empty() {
        return Some(request.reason.clone());
    }
    if request.predates(seen.object.created) {
        return Some(
            "it is older than this object; it was meant for an earlier one of the name".into(),
        );
    }
    if job_of(draft, &request.id).is_some() {
        return None;
    }
    if request.is_expired(draft.now) {
        return Some(format!(
            "it expired at {}, before the operator saw it; send the request again",
            request.expires_at
        ));
    }
    if request.action == Action::Cancel {
        return None;
    }
    if seen.object.deleting {
        return Some("the object is being deleted".into());
    }
    if let Some(foreign) = &seen.foreign {
        return Some(foreign.clone());
    }
    if !seen.problems.is_empty() {
        return Some(validate::join(&seen.problems));
    }
    (request.action != Action::Backup && !seen.settings.own_image).then(|| {
        format!(
            "spec.image is not this product's runner, it can't {}; remove spec.image",
            request.action.as_str()
        )
    })
}

fn job_of<'a>(draft: &Draft<'a>, id: &str) -> Option<&'a JobDigest> {
    draft
        .seen
        .jobs
        .iter()
        .find(|j| j.request_id.as_deref() == Some(id))
}

fn run_of<'a>(draft: &'a Draft<'_>, id: &str) -> Option<&'a Run> {
    draft
        .status
        .runs
        .iter()
        .find(|r| r.request_id.as_deref() == Some(id))
}

fn backup(draft: &mut Draft<'_>, request: &Request) {
    if let Some(run) = run_of(draft, &request.id) {
        let (name, state) = (run.name.clone(), state_of(run));
        let message = words(run);
        return echo(draft, request, state, Some(name), message);
    }
    if let Some(job) = job_of(draft, &request.id) {
        // Its run is counted and has left the list.
        let (name, state) = (job.name.to_string(), end_of(job));
        let message = "its run has ended and is not listed any more".to_owned();
        return echo(draft, request, state, Some(name), message);
    }
    if let Some(hold) = start::blocked(draft, Trigger::Manual) {
        let asks = hold.reason == reason::CONCURRENCY_FORBID && !request.options.queue;
        if asks || start::too_many_open_runs(draft) {
            let advice = if asks {
                "; wait for it, or ask with --queue"
            } else {
                ""
            };
            let why = format!("{}{advice}", hold.message);
            return echo(draft, request, RequestState::Refused, None, why);
        }
        let object = &draft.seen.object;
        let name = names::manual_name(&object.name, &object.uid, &request.id);
        let mut run = Run::new(&*name, Trigger::Manual, RunResult::Waiting);
        run.request_id = Some(request.id.clone());
        run.reason = hold.reason.to_owned();
        run.message.clone_from(&hold.message);
        ledger::open(&mut draft.status, run);
        return echo(
            draft,
            request,
            RequestState::Queued,
            Some(name),
            hold.message,
        );
    }
    plan_job(draft, request);
}

fn other(draft: &mut Draft<'_>, request: &Request) {
    match job_of(draft, &request.id) {
        Some(job) => {
            let name = job.name.to_string();
            echo(
                draft,
                request,
                RequestState::Running,
                Some(name),
                String::new(),
            );
            carry_on(draft);
        }
        None => plan_job(draft, request),
    }
}

/// Plans the Job; a creation the API server refuses is the answer.
fn plan_job(draft: &mut Draft<'_>, request: &Request) {
    let seed = start::manual_seed(draft, &request.id, request.action, request.options.clone());
    let failed = failures::failure(draft, &seed.name);
    if let Some(failure) = failed {
        let message = if failure.taken {
            format!(
                "{}, then send the request again",
                failures::in_the_way_of(&seed.name)
            )
        } else {
            failures::refused(failure)
        };
        return echo(draft, request, RequestState::Failed, None, message);
    }
    draft.create_job(seed);
}

/// Ends a run: one that waits at once, one with a Job by intent first.
fn cancel(draft: &mut Draft<'_>, request: &Request) {
    let open: Vec<usize> = (0..draft.status.runs.len())
        .filter(|i| !draft.status.runs[*i].result.is_final())
        .collect();
    let index = match &request.options.run {
        Some(name) => open
            .iter()
            .copied()
            .find(|i| draft.status.runs[*i].name == *name),
        None if open.len() == 1 => open.first().copied(),
        None => None,
    };
    let Some(index) = index else {
        let names: Vec<&str> = open
            .iter()
            .map(|i| draft.status.runs[*i].name.as_str())
            .collect();
        let why = match (&request.options.run, names.as_slice()) {
            (_, []) => "no run is active".to_owned(),
            (Some(name), _) => format!("run {name} is not active; active: {}", names.join(", ")),
            (None, _) => format!("several runs are active, name one: {}", names.join(", ")),
        };
        return echo(draft, request, RequestState::Refused, None, why);
    };
    let by = if request.by.is_empty() {
        "a user"
    } else {
        &request.by
    };
    let message = clean(
        &format!("cancelled by {by}. {}", request.reason),
        MAX_MESSAGE,
    );
    let run = &mut draft.status.runs[index];
    let name = run.name.clone();
    if run.job_uid.is_some() {
        run.intent = Some(reason::CANCELLED.to_owned());
        run.message = message;
        return echo(
            draft,
            request,
            RequestState::Running,
            Some(name),
            String::new(),
        );
    }
    let closing = Closing {
        result: RunResult::Skipped,
        reason: reason::CANCELLED.to_owned(),
        message,
        at: draft.now,
    };
    ledger::close(&mut draft.status, index, closing);
    echo(
        draft,
        request,
        RequestState::Succeeded,
        Some(name),
        "it had not started".to_owned(),
    );
}

/// Enters the answer.
fn echo(
    draft: &mut Draft<'_>,
    request: &Request,
    state: RequestState,
    job: Option<String>,
    message: String,
) {
    if state == RequestState::Refused {
        let note = format!("{} refused: {message}", request.action.as_str());
        draft.event(
            request.id.clone(),
            reason::REQUEST_REFUSED,
            true,
            "Request",
            note,
        );
    }
    let entry = RequestStatus {
        id: request.id.clone(),
        action: request.action,
        by: clean(&request.by, 128),
        at: parse_rfc3339(&request.at).map(to_k8s),
        reason: clean(&request.reason, 256),
        state,
        job,
        message: clean(&message, MAX_MESSAGE),
    };
    draft.status.requests.insert(0, entry);
    draft.status.requests.truncate(MAX_REQUESTS);
}

/// Brings the open requests up to date with their runs and Jobs.
fn carry_on(draft: &mut Draft<'_>) {
    for index in 0..draft.status.requests.len() {
        let request = &draft.status.requests[index];
        if !matches!(request.state, RequestState::Running | RequestState::Queued) {
            continue;
        }
        let moved = match request.action {
            Action::Backup => run_of(draft, &request.id).map(|run| (state_of(run), words(run))),
            Action::Cancel => cancelled(draft, request.job.as_deref()),
            _ => action_job(draft, &request.id.clone()),
        };
        if let Some((state, message)) = moved {
            draft.status.requests[index].state = state;
            draft.status.requests[index].message = clean(&message, MAX_MESSAGE);
        }
    }
}

fn state_of(run: &Run) -> RequestState {
    match run.result {
        RunResult::Waiting => RequestState::Queued,
        RunResult::Running => RequestState::Running,
        RunResult::Succeeded => RequestState::Succeeded,
        RunResult::Failed | RunResult::Skipped => RequestState::Failed,
    }
}

fn end_of(job: &JobDigest) -> RequestState {
    match job.outcome {
        JobOutcome::Active => RequestState::Running,
        JobOutcome::Complete { .. } => RequestState::Succeeded,
        JobOutcome::Failed { .. } => RequestState::Failed,
    }
}

fn words(run: &Run) -> String {
    match (run.result, run.message.is_empty()) {
        (RunResult::Running, _) => String::new(),
        (_, true) => run.reason.clone(),
        (RunResult::Waiting, false) => run.message.clone(),
        (_, false) => format!("{}: {}", run.reason, run.message),
    }
}

fn cancelled(draft: &Draft<'_>, run: Option<&str>) -> Option<(RequestState, String)> {
    let run = draft.status.runs.iter().find(|r| Some(&*r.name) == run)?;
    match run.result {
        RunResult::Waiting | RunResult::Running => None,
        _ if run.reason == reason::CANCELLED => {
            Some((RequestState::Succeeded, "the run was stopped".into()))
        }
        other => Some((
            RequestState::Failed,
            format!(
                "the run ended before it was stopped: {} ({})",
                other.as_str(),
                run.reason
            ),
        )),
    }
}

/// Where the Job of another action stands.
fn action_job(draft: &mut Draft<'_>, id: &str) -> Option<(RequestState, String)> {
    let Some(job) = job_of(draft, id) else {
        if !draft.seen.live {
            draft.needs_live = true;
            return None;
        }
        return Some((
            RequestState::Failed,
            "its Job was deleted before its outcome was seen".into(),
        ));
    };
    let pods: Vec<&PodDigest> = draft
        .seen
        .pods
        .iter()
        .filter(|p| p.job_uid == job.uid)
        .collect();
    match outcome::judge(draft, job, &pods, true) {
        outcome::Verdict::Open => not_started(draft, job, &pods),
        outcome::Verdict::Await(until) => {
            draft.wake_at(until);
            None
        }
        outcome::Verdict::Final(closing, report) => {
            if let Some(report) = report {
                draft.reach(&report);
                verified(draft, &report);
            }
            let good = closing.result == RunResult::Succeeded;
            let state = if good {
                RequestState::Succeeded
            } else {
                RequestState::Failed
            };
            let held = outcome::held(&pods).filter(|_| job.is_active());
            let held = held.map(|words| format!("; {words}")).unwrap_or_default();
            Some((
                state,
                format!("{}: {}{held}", closing.reason, closing.message),
            ))
        }
    }
}

/// What keeps the Job of an action from starting; it is given up like a run.
fn not_started(
    draft: &mut Draft<'_>,
    job: &JobDigest,
    pods: &[&PodDigest],
) -> Option<(RequestState, String)> {
    if !pending::waits(job, pods) {
        return Some((RequestState::Running, String::new()));
    }
    let seconds = draft.seen.settings.startup_deadline;
    let ends = pending::startup_ends(job, seconds);
    if draft.now < ends || job.ran {
        pending::watch(draft, job, pods);
        draft.wake_at(ends.max(draft.now + Duration::seconds(1)));
        let cause = pending::cause(&draft.seen.obstacles, job, pods);
        let words = |(reason, message)| format!("not started: {reason}: {message}");
        return Some((RequestState::Running, cause.map(words).unwrap_or_default()));
    }
    let (reason, message) = pending::cause_or_none(&draft.seen.obstacles, job, pods);
    let message = format!("{reason}: not running within {seconds} s: {message}");
    Some((RequestState::Failed, message))
}

/// Deletes Jobs of actions whose outcome stands in status though they go on: they never started, or
/// another container of their pod does not end.
fn end_jobs(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let closed =
        |r: &RequestStatus| matches!(r.state, RequestState::Succeeded | RequestState::Failed);
    let actions = |j: &&JobDigest| j.action != Action::Backup && j.is_active() && !j.deleting;
    for job in seen.jobs.iter().filter(actions) {
        let mut requests = seen.status.requests.iter().filter(|r| closed(r));
        // What it said is in its log.
        let said = seen.pods.iter().filter(|p| p.job_uid == job.uid);
        let said = said.filter_map(|p| p.ended.as_ref()?.at).max();
        let stays = said.map(|at| at + history::ACTION_KEPT);
        if let Some(at) = stays.filter(|at| draft.now < *at) {
            draft.wake_at(at);
        } else if requests.any(|r| Some(&*r.id) == job.request_id.as_deref()) {
            draft.steps.push(Step::DeleteJob {
                name: job.name.to_string(),
                uid: job.uid.to_string(),
                foreground: true,
            });
        }
    }
}

/// Notes a verification in the run it speaks of: the one that stored what was looked at.
fn verified(draft: &mut Draft<'_>, report: &Report) {
    let Some(verification) = &report.verification else {
        return;
    };
    let key = report.artefacts.first().map(|a| a.key.as_str());
    let of = |r: &&mut Run| r.artefacts.iter().any(|a| Some(&*a.key) == key);
    let run = draft.status.runs.iter_mut().find(of);
    let name = run.map(|run| {
        run.verification = Some(verification.clone());
        run.name.clone()
    });
    let why = if verification.passed {
        reason::PASSED
    } else {
        reason::FAILED
    };
    // What is verified beyond the list is no news of the newest.
    if let Some(name) = name.or(key.map(str::to_owned)) {
        verify::set(draft, &name, verification, why);
    }
}
