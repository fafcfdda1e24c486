//! The one piece of advice `describe` ends with: the next command to type.

use crds::ScheduleStatus;
use crds::verdict::{Reason, Verdict};

/// What to do next, if anything needs doing. `object` is `singular/name`; `once` says that it has no
/// schedule and runs once by itself.
pub(crate) fn advice(
    object: &str,
    once: bool,
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
    if let Some(mut step) = verdict.next_step(object) {
        if once && verdict.reason == Failed && !step.contains("run-now") {
            step.push_str(&format!(
                "; without a schedule it runs again only by: kubectl backup run-now {object} --wait"
            ));
        }
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
    if once {
        return Some(format!(
            "it has no schedule and ran once; after an edit, or for another archive: kubectl backup run-now {object} --wait"
        ));
    }
    None
}
