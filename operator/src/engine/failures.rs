//! Starts that failed: which runs wait for one, and until when.

use chrono::{DateTime, Utc};
use crds::request::Action;
use crds::run::{Run, RunResult, Trigger};

use super::draft::Draft;
use super::observed::StartFailure;
use super::reason;

/// True if the run waits because its Job can't be made.
pub(super) fn fails(run: &Run) -> bool {
    let reason = run.reason.as_str();
    run.result == RunResult::Waiting && matches!(reason, reason::FAILED_CREATE | reason::NAME_TAKEN)
}

/// The failure that a run's Job has to wait for: that of its own name, or the newest refusal of a
/// run of this spec.
pub(super) fn in_the_way<'a>(draft: &Draft<'a>, name: Option<&str>) -> Option<&'a StartFailure> {
    let seen = draft.seen;
    let current = seen.failures.iter().filter(|f| {
        let own = name.is_some_and(|name| f.name == name);
        f.generation == seen.object.generation && f.action == Action::Backup && (own || !f.taken)
    });
    current.max_by_key(|f| f.retry_at)
}

/// When runs of the schedule are tried again that can't be made; `None` if none waits for it.
pub(super) fn retried_at(draft: &Draft<'_>) -> Option<DateTime<Utc>> {
    let waits = |r: &&Run| r.trigger == Trigger::Schedule && fails(r);
    let run = draft.seen.status.runs.iter().find(waits)?;
    in_the_way(draft, Some(&run.name)).map(|f| f.retry_at)
}

/// Says that another's Job has the name, and what helps.
pub(super) fn in_the_way_of(name: &str) -> String {
    format!("a Job named {name} that is not this object's is in the way; delete it")
}

/// Says why a creation was refused.
pub(super) fn refused(failure: &StartFailure) -> String {
    format!("{}: {}", failure.reason, failure.message)
}

/// The failure of a Job of this name.
pub(super) fn failure<'a>(draft: &Draft<'a>, name: &str) -> Option<&'a StartFailure> {
    draft.seen.failures.iter().find(|f| f.name == name)
}
