//! How a run ended: from the runner's report, else from the pod's reason and exit code, else from
//! the Job's condition.

use chrono::{DateTime, Duration, Utc};
use crds::report::{Report, clean, exit};
use crds::run::{MAX_MESSAGE, Run, RunResult};
use crds::time::parse_rfc3339;

use super::draft::Draft;
use super::ledger::Closing;
use super::observed::{Ended, JobDigest, JobOutcome, PodDigest};
use super::reason;

/// A finished Job's pod may be seen later than the Job: how long its report is waited for.
const REPORT_GRACE: Duration = Duration::seconds(10);
/// How long other containers of a pod may take to end after the backup's.
const HELD_GRACE: Duration = Duration::seconds(10);

/// What is known of a run's end.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Not finished.
    Open,
    /// Finished, its pod's end is awaited until then.
    Await(DateTime<Utc>),
    /// Final.
    Final(Closing, Option<Box<Report>>),
}

/// The verdict on a run's Job.
pub(crate) fn of(job: &JobDigest, pods: &[&PodDigest], own: bool, now: DateTime<Utc>) -> Verdict {
    let Some(at) = job.finished() else {
        return of_held(pods, own, now);
    };
    let ended = newest_end(pods);
    let report = ended.and_then(|e| Report::parse(&e.message));
    let waits = if own {
        report.is_none()
    } else {
        ended.is_none()
    };
    let seen_all = ended.is_some() && pods.iter().all(|p| p.ended.is_some() || p.gone);
    if waits && !seen_all && now < at + REPORT_GRACE {
        return Verdict::Await(at + REPORT_GRACE);
    }
    let closing = match (&job.outcome, &report) {
        (_, Some(report)) if report.good.is_some() => reported(report, at),
        (JobOutcome::Complete { .. }, _) => by_exit_status(own, at),
        (
            JobOutcome::Failed {
                reason, message, ..
            },
            _,
        ) => made(reason, message, ended, pods, at),
        (JobOutcome::Active, _) => return Verdict::Open,
    };
    Verdict::Final(closing, report.map(Box::new))
}

/// [`of`] for a plan. That our runner left no report is believed once its pods were read live.
pub(super) fn judge(
    draft: &mut Draft<'_>,
    job: &JobDigest,
    pods: &[&PodDigest],
    own: bool,
) -> Verdict {
    let verdict = of(job, pods, own, draft.now);
    let silent = own && matches!(verdict, Verdict::Final(_, None));
    if silent && !draft.seen.pods_live {
        draft.needs_pods = true;
    }
    verdict
}

/// The verdict on a Job that does not finish because another container of its pod does not end,
/// such as a service mesh's: the end of the backup's own container and its report decide.
fn of_held(pods: &[&PodDigest], own: bool, now: DateTime<Utc>) -> Verdict {
    let alive = || pods.iter().filter(|p| !p.gone);
    let Some(pod) = alive()
        .filter(|p| p.held.is_some())
        .max_by_key(|p| p.created)
    else {
        return Verdict::Open;
    };
    let Some(ended) = pod
        .ended
        .as_ref()
        .filter(|_| alive().all(|p| p.ended.is_some()))
    else {
        return Verdict::Open;
    };
    let at = ended.at.unwrap_or(pod.created).min(now);
    if now < at + HELD_GRACE {
        return Verdict::Await(at + HELD_GRACE);
    }
    let report = Report::parse(&ended.message);
    let closing = match &report {
        Some(report) if report.good.is_some() => reported(report, at),
        _ if ended.exit_code == 0 => by_exit_status(own, at),
        _ => made("", "", Some(ended), pods, at),
    };
    Verdict::Final(closing, report.map(Box::new))
}

/// The containers that keep the Job's pod from its end, if there are any.
pub(crate) fn held(pods: &[&PodDigest]) -> Option<String> {
    let names = pods
        .iter()
        .filter(|p| !p.gone)
        .find_map(|p| p.held.as_deref())?;
    Some(format!(
        "the pod did not end with the backup, because container {names} went on: the operator ends the Job. Make it a sidecar (an init container with restartPolicy Always), or keep it out of these pods (podMetadata, such as the label sidecar.istio.io/inject: \"false\")"
    ))
}

/// The newest end among a Job's pods; one with a report is preferred.
pub(crate) fn newest_end<'a>(pods: &[&'a PodDigest]) -> Option<&'a Ended> {
    let key = |e: &&Ended| (Report::parse(&e.message).is_some(), e.at);
    pods.iter().filter_map(|p| p.ended.as_ref()).max_by_key(key)
}

/// The runner's own word.
fn reported(report: &Report, at: DateTime<Utc>) -> Closing {
    let good = report.good == Some(true);
    let otherwise = if good {
        reason::COMPLETED
    } else {
        reason::FAILED
    };
    Closing {
        result: if good {
            RunResult::Succeeded
        } else {
            RunResult::Failed
        },
        reason: named(&report.reason, otherwise),
        message: report.message.clone(),
        at: parse_rfc3339(&report.ended_at).map_or(at, |ended| ended.min(at)),
    }
}

/// The Job is complete and nobody left a report.
fn by_exit_status(own: bool, at: DateTime<Utc>) -> Closing {
    let (result, reason, message) = if own {
        (
            RunResult::Failed,
            reason::NO_REPORT,
            "the container ended with status 0 and left no report, so nothing shows what it did; `kubectl backup runs --stored` shows what is in the store, `kubectl backup run-now` makes another one",
        )
    } else {
        (
            RunResult::Succeeded,
            reason::EXIT_STATUS_ONLY,
            "the container ended with status 0; its image writes no report, so nothing is known of what it stored",
        )
    };
    Closing {
        result,
        reason: reason.to_owned(),
        message: message.to_owned(),
        at,
    }
}

/// A report made from the pod's reason and exit code and the Job's condition.
fn made(
    reason: &str,
    message: &str,
    ended: Option<&Ended>,
    pods: &[&PodDigest],
    at: DateTime<Utc>,
) -> Closing {
    let trouble = pods.iter().rev().find_map(|p| p.trouble.as_ref());
    let (reason, message) = match (reason, ended, trouble) {
        ("DeadlineExceeded", ..) => (
            reason::TIMEOUT.to_owned(),
            format!(
                "the Job's activeDeadlineSeconds ran out ({message}); raise TIMEOUT or activeDeadlineSeconds, or back up less at a time"
            ),
        ),
        (_, Some(end), _) => from_exit(end),
        (_, None, Some((reason, message))) => (named(reason, reason::FAILED), message.to_string()),
        (reason, None, None) => (
            named(reason, reason::FAILED),
            format!(
                "{message}; its pods were gone before they were read: look at the cluster's log store"
            ),
        ),
    };
    Closing {
        result: RunResult::Failed,
        reason,
        message: clean(&message, MAX_MESSAGE),
        at,
    }
}

/// Reason and message of an end without a report.
pub(super) fn from_exit(end: &Ended) -> (String, String) {
    let code = end.exit_code;
    let own = end.message.trim();
    let said = if own.is_empty() || own.starts_with('{') {
        String::new()
    } else {
        format!(": {own}")
    };
    match (&*end.reason, code) {
        ("OOMKilled", _) => (
            reason::OOM_KILLED.into(),
            "the container used more memory than its limit; raise resources.limits.memory".into(),
        ),
        (_, 137) => (
            reason::KILLED.into(),
            format!(
                "the container was killed (status 137){said}; look at node pressure and evictions"
            ),
        ),
        (_, 143) => (
            reason::TERMINATED.into(),
            format!(
                "the container was asked to stop (status 143){said}; the pod was deleted or its node drained"
            ),
        ),
        (_, exit::SETTINGS) => (
            reason::INVALID_SETTINGS.into(),
            format!("the container ended with status 2{said}"),
        ),
        ("" | "Error" | "Completed", _) => (
            reason::EXIT_CODE.into(),
            format!("the container ended with status {code}{said}; see its log"),
        ),
        (reason, _) => (
            named(reason, reason::FAILED),
            format!("the container ended with status {code} ({reason}){said}"),
        ),
    }
}

/// A CamelCase reason fit for a condition, or `otherwise`.
pub(crate) fn named(reason: &str, otherwise: &str) -> String {
    let plain: String = reason
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        plain
    } else {
        otherwise.to_owned()
    }
}

/// Copies what a report says of a run into it.
pub(super) fn note_report(run: &mut Run, report: &Report) {
    run.exit_code = report.exit_code.or(run.exit_code);
    run.raw_bytes = report.raw_bytes.or(run.raw_bytes);
    run.stored_bytes = report.stored_bytes.or(run.stored_bytes);
    run.tables = report.tables.or(run.tables);
    run.rows = report.rows.or(run.rows);
    run.engine.clone_from(&report.engine);
    run.engine_reason.clone_from(&report.engine_reason);
    run.snapshot.clone_from(&report.snapshot);
    let moment = crds::time::parse_rfc3339(&report.snapshot_at);
    run.snapshot_time = moment.map(crds::time::to_k8s);
    run.artefacts.clone_from(&report.artefacts);
    run.warnings.clone_from(&report.warnings);
}
