//! What to do next: one command to type.

use super::{Reason as About, State, Verdict};
use crate::condition::reason;
use crate::report::Reason;

impl Verdict {
    /// What to do about it, if anything needs doing. `object` is `singular/name`.
    pub fn next_step(&self, object: &str) -> Option<String> {
        let again = format!("kubectl backup run-now {object} --wait");
        let run = self.run.as_deref().unwrap_or(object);
        Some(match self.reason {
            About::Refused if self.cause == reason::FOREIGN_CONTROLLER => {
                "stop the other controller, or remove its Jobs and CronJobs; nothing is scheduled until then".to_owned()
            }
            About::Refused => {
                format!("correct the field named above: kubectl edit {object}")
            }
            About::Unseen if self.state == State::Unknown => {
                "no operator has seen it yet; wait a moment".to_owned()
            }
            About::Unseen => {
                "no operator acts on it; find out why: kubectl backup doctor".to_owned()
            }
            About::Overdue if self.cause == reason::SLOT_NOT_STARTED => {
                "no operator acts on it; find out why: kubectl backup doctor".to_owned()
            }
            About::Overdue | About::Never | About::Stale => {
                format!("run it now, and see what keeps it: {again}")
            }
            About::Held if self.cause == reason::NEVER_FIRES => {
                format!("correct the schedule: kubectl edit {object}")
            }
            About::Held => "do what condition Scheduled says below".to_owned(),
            About::Missing => format!("make what is missing, then: {again}"),
            About::Failed => failed(&self.cause, run, &again),
            About::Unverified => format!(
                "make another and verify it: {again}, then kubectl backup verify {object} --restore"
            ),
            About::Incomplete => format!(
                "do what condition BinlogsComplete says below; a good backup ends a gap: {again}"
            ),
            About::Pending => format!("follow the run: kubectl backup wait {run} --follow"),
            About::Suspended => format!("start slots again: kubectl backup resume {object}"),
            About::Ok => return None,
        })
    }
}

fn failed(cause: &str, run: &str, again: &str) -> String {
    match Reason::parse(cause) {
        Some(Reason::AccessDenied) => {
            format!("correct user or password in the Secret, then: {again}")
        }
        Some(
            Reason::UnknownHost
            | Reason::HostNotFound
            | Reason::ConnectionRefused
            | Reason::ConnectionFailed
            | Reason::ConnectTimeout,
        ) => format!("check the database's host and port, then: {again}"),
        Some(Reason::NoSpace) => format!("make room in the store, then: {again}"),
        _ => format!("kubectl backup logs {run}"),
    }
}
