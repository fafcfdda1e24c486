//! Why a run is not good: exit code, reason, and a sentence with cause and remedy.

use std::path::Path;

use crds::report::exit;

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
    /// One of [`exit`].
    pub exit_code: i32,
    /// CamelCase, machine-read.
    pub reason: &'static str,
    /// Cause and remedy, free of secrets.
    pub message: String,
}

impl Failure {
    /// A failure with its own exit code.
    pub fn new(exit_code: i32, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit_code,
            reason,
            message: message.into(),
        }
    }

    /// True if it says that what was to be used can't be connected to, or does not let this user in: not
    /// what went wrong afterwards.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self.reason,
            "AccessDenied"
                | "AccountLocked"
                | "SourceStalled"
                | "PermissionDenied"
                | "PasswordExpired"
                | "AuthPluginMissing"
                | "TooManyConnections"
                | "UnknownHost"
                | "HostNotFound"
                | "ConnectTimeout"
                | "ConnectionRefused"
                | "ConnectionFailed"
                | "ConnectionLost"
                | "TlsFailed"
                | "HostKeyChanged"
                | "UnknownDatabase"
                | "NotFound"
                | "DestinationNotFound"
                | "StoreUnreachable"
        )
    }

    /// Wrong settings: a retry can't help.
    pub fn settings(message: impl Into<String>) -> Self {
        Self::new(exit::SETTINGS, "InvalidSettings", message)
    }

    /// The database refused, vanished or sent an incomplete dump.
    pub fn source(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::SOURCE, reason, message)
    }

    /// The store refused or is full.
    pub fn store(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::STORE, reason, message)
    }

    /// What was read back differs from what was sent.
    pub fn verification(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::VERIFICATION, reason, message)
    }

    /// A failure without a code of its own.
    pub fn other(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(exit::FAILED, reason, message)
    }

    /// A target that is not free: a restore into it needs consent.
    pub fn occupied(reason: &'static str, text: &str) -> Self {
        Self::new(
            exit::SETTINGS,
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
