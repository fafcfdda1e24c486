//! Why a run is not good: exit code, reason, and a sentence with cause and remedy.

use std::path::Path;

use crds::report::Reason;

/// True if the file system of `path`, or of the nearest directory above it that exists, has bytes but
/// no inodes left.
pub fn no_inodes(path: &Path) -> bool {
    let found = path.ancestors().find_map(|p| rustix::fs::statvfs(p).ok());
    // File systems that make inodes as they need them say 0 of all.
    found.is_some_and(|fs| fs.f_files > 0 && fs.f_favail == 0 && fs.f_bavail > 0)
}

/// The one failure a run ends with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// One of [`crds::report::exit`].
    pub exit_code: i32,
    /// Why, for programs.
    pub reason: Reason,
    /// Cause and remedy, free of secrets.
    pub message: String,
}

impl Failure {
    /// A failure with the usual exit code of its reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self::at(reason.exit_code(), reason, message)
    }

    /// A failure of a reason that has several exit codes: `exit_code` is one of them.
    pub fn at(exit_code: i32, reason: Reason, message: impl Into<String>) -> Self {
        debug_assert!(
            reason.exit_codes().contains(&exit_code),
            "{reason} has no exit code {exit_code}"
        );
        Self {
            exit_code,
            reason,
            message: message.into(),
        }
    }

    /// Wrong settings: a retry can't help.
    pub fn settings(message: impl Into<String>) -> Self {
        Self::new(Reason::InvalidSettings, message)
    }

    /// A target that is not free: a restore into it needs consent.
    pub fn occupied(reason: Reason, text: &str) -> Self {
        Self::new(
            reason,
            format!("{text}; to go on nevertheless, set overwrite"),
        )
    }

    /// All failures as one: the first one's code, everybody's words.
    pub fn all(failures: Vec<Self>) -> Self {
        failures
            .into_iter()
            .reduce(|a, b| Self {
                message: format!("{}; {}", a.message, b.message),
                ..a
            })
            .unwrap_or_else(|| Self::settings("there is no storage"))
    }
}
