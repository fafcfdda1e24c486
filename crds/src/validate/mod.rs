//! Checks of a spec that a schema can't say. Webhook, reconcile and plugin share them, so that a
//! rule has one wording wherever it is met.

mod destination;
mod mysql_backup;
mod notifications;
mod pod;
mod restore;
mod verify;
mod warnings;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::names::MAX_NAME;

use destination::destination;

pub use mysql_backup::{arguments, mysql_backup, needs, sqlpath};
pub use notifications::notifications;
pub use restore::restore;
pub use verify::{Replays, verify};
pub use warnings::{mysql_backup_warnings, schedule_warning};

/// One mistake: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Field path, such as `spec.schedule`.
    pub path: String,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl Problem {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All problems in one line, for a condition or a denial.
pub fn join(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The name limit, checked on create only (CronJob rule 35).
pub fn name(name: &str) -> Option<Problem> {
    (name.len() > MAX_NAME).then(|| {
        Problem::new(
            "metadata.name",
            format!(
                "must be no more than {MAX_NAME} characters, is {}; the names of its Jobs add up to 11 to it",
                name.len()
            ),
        )
    })
}

/// What is wrong with the host at `path`; one that is not set is another's matter.
pub(crate) fn host(path: impl Into<String>, host: Option<&str>) -> Option<Problem> {
    let host = host.filter(|h| !h.is_empty())?;
    let fault = crate::host::bare(host).err()?;
    // Somebody may have put a whole address with a password there.
    let shown = crate::secret::mask(host);
    Some(Problem::new(path, format!("{shown:?} {fault}")))
}
