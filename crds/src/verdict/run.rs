//! How a run is.

use chrono::{DateTime, Utc};

use super::facts::{of_run as cause_of, said};
use super::{Reason, State, Verdict};
use crate::condition::reason;
use crate::run::{PENDING, Run, RunResult};
use crate::secret::mask;
use crate::time::from_k8s;

impl Run {
    /// True if somebody asked for its end, or a newer run took its place: no failure, and no backup.
    pub fn ended_on_purpose(&self) -> bool {
        let wished = matches!(self.reason.as_str(), reason::CANCELLED | reason::REPLACED);
        self.result == RunResult::Failed && wished
    }
}

/// How a run is: a good one whose artefact failed its verification is none.
pub fn of_run(run: &Run) -> Verdict {
    let verdict = |state, reason, what: &str| {
        let cause = cause_of(run, what);
        Verdict {
            state,
            reason,
            cause: cause.cause,
            why: cause.why,
            since: cause.since,
            run: cause.run,
            ..Verdict::default()
        }
    };
    let pending = run.phase.as_deref() == Some(PENDING);
    match run.result {
        RunResult::Failed if run.ended_on_purpose() => good(run, said(&run.reason, &run.message)),
        RunResult::Failed => verdict(State::Critical, Reason::Failed, "failed"),
        RunResult::Running | RunResult::Waiting if pending => {
            verdict(State::Warning, Reason::Pending, "is pending")
        }
        RunResult::Succeeded => match run.verification.as_ref().filter(|v| !v.passed) {
            Some(failed) => Verdict {
                state: State::Critical,
                reason: Reason::Unverified,
                cause: reason::VERIFICATION_FAILED.to_owned(),
                why: format!(
                    "{} failed its verification: {}",
                    run.name,
                    mask(&failed.message)
                ),
                since: Some(from_k8s(&failed.time)),
                run: Some(run.name.clone()),
                ..Verdict::default()
            },
            None => good(run, String::new()),
        },
        RunResult::Running => good(run, String::new()),
        RunResult::Waiting | RunResult::Skipped => good(run, said(&run.reason, &run.message)),
    }
}

fn good(run: &Run, why: String) -> Verdict {
    let at = run.completion_time.as_ref().or(run.start_time.as_ref());
    let since: Option<DateTime<Utc>> = at.map(from_k8s);
    Verdict {
        cause: run.reason.clone(),
        why,
        since,
        run: Some(run.name.clone()),
        ..Verdict::default()
    }
}
