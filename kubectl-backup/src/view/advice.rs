//! The one piece of advice `describe` ends with: the next command to type.

use crds::condition;
use crds::report::Reason;
use crds::run::{Run, RunResult};
use crds::{ScheduleStatus, condition::reason};

/// What is known of the object beside its status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// `singular/name`.
    pub(crate) object: &'a str,
    /// No slot is started.
    pub(crate) suspended: bool,
    /// Generation of the spec.
    pub(crate) generation: Option<i64>,
}

/// What to do next, if anything needs doing: the first thing that keeps backups from being made.
pub(crate) fn advice(facts: Facts<'_>, status: &ScheduleStatus) -> Option<String> {
    let object = facts.object;
    let accepted = condition::get(&status.conditions, condition::ACCEPTED);
    if let Some(accepted) = accepted.filter(|c| c.status == "False") {
        return Some(match accepted.reason.as_str() {
            reason::FOREIGN_CONTROLLER => {
                "stop the other controller, or remove its Jobs and CronJobs; nothing is scheduled until then".to_owned()
            }
            _ => format!("correct the field named above: kubectl edit {object}"),
        });
    }
    if status.observed_generation.is_none() {
        return Some(
            "no operator has seen this object yet; see whether one runs: kubectl backup version"
                .to_owned(),
        );
    }
    if let Some(run) = status.runs.iter().find(|r| !r.result.is_final()) {
        return Some(format!(
            "follow the run: kubectl backup wait {} --follow",
            run.name
        ));
    }
    let last = status.runs.iter().find(|r| r.result.is_final());
    if let Some(run) = last.filter(|r| r.result == RunResult::Failed) {
        return Some(failed(run, object));
    }
    if status.unverified().is_some() {
        return Some(format!(
            "make another and verify it: kubectl backup run-now {object} --wait, then kubectl backup verify {object} --restore"
        ));
    }
    if facts.suspended {
        return Some(format!("start slots again: kubectl backup resume {object}"));
    }
    if status.observed_generation < facts.generation {
        return Some("the operator has not seen the newest change yet; wait a moment".to_owned());
    }
    if last.is_none() && status.last_successful_time.is_none() {
        return Some(format!(
            "nothing ran yet; try it: kubectl backup run-now {object} --wait"
        ));
    }
    None
}

fn failed(run: &Run, object: &str) -> String {
    let again = format!("kubectl backup run-now {object} --wait");
    match (Reason::parse(&run.reason), run.reason.as_str()) {
        (Some(Reason::AccessDenied), _) => {
            format!("correct user or password in the Secret, then: {again}")
        }
        (
            Some(
                Reason::UnknownHost
                | Reason::HostNotFound
                | Reason::ConnectionRefused
                | Reason::ConnectionFailed
                | Reason::ConnectTimeout,
            ),
            _,
        ) => format!("check the database's host and port, then: {again}"),
        (Some(Reason::NoSpace), _) => format!("make room in the store, then: {again}"),
        (_, "Cancelled" | "Replaced") => again,
        _ => format!("kubectl backup logs {}", run.name),
    }
}
