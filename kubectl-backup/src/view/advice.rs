//! The one piece of advice `describe` ends with: the next command to type.

use crds::ScheduleStatus;
use crds::verdict::{Reason, Verdict};

/// What to do next, if anything needs doing. `object` is `singular/name`.
pub(crate) fn advice(
    object: &str,
    generation: Option<i64>,
    status: &ScheduleStatus,
    verdict: &Verdict,
) -> Option<String> {
    use Reason::{Failed, Never, Ok, Overdue, Pending, Stale, Suspended, Unverified};
    // What runs now may mend what the runs before it left.
    let by_a_run = matches!(
        verdict.reason,
        Failed | Never | Ok | Pending | Stale | Suspended | Unverified
    );
    let by_a_run =
        by_a_run || verdict.reason == Overdue && verdict.cause == crds::condition::reason::OVERDUE;
    if let Some(run) = status.runs.iter().find(|r| !r.result.is_final())
        && by_a_run
    {
        return Some(format!(
            "follow the run: kubectl backup wait {} --follow",
            run.name
        ));
    }
    if let Some(step) = verdict.next_step(object) {
        return Some(step);
    }
    if status.observed_generation < generation {
        return Some("the operator has not seen the newest change yet; wait a moment".to_owned());
    }
    if !status.runs.iter().any(|r| r.result.is_final()) && status.last_successful_time.is_none() {
        return Some(format!(
            "nothing ran yet; try it: kubectl backup run-now {object} --wait"
        ));
    }
    None
}
