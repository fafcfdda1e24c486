//! What can go wrong, as an exit status and two lines: what failed and why, then what to do.

use std::fmt;

/// Kinds of failures; each has an exit status of its own, so that a script can tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything without a kind of its own (1).
    Other,
    /// Flags, arguments or values the caller must change (2).
    Usage,
    /// Nothing changed, under `--error-unchanged` (3).
    Unchanged,
    /// The run ended badly (4).
    RunFailed,
    /// No such object, run or pod (5).
    NotFound,
    /// Denied, or not logged in (6).
    Denied,
    /// The kind is not installed, or no operator acts on it (7).
    NotInstalled,
    /// The API server does not answer (8).
    Unreachable,
    /// The time given ran out (124).
    Timeout,
    /// SIGINT (130).
    Interrupted,
    /// SIGTERM (143).
    Terminated,
    /// The reader of our output went away; said to nobody (141).
    BrokenPipe,
    /// A status with a meaning of the verb's own, as of `diff` and `health`.
    Status(u8),
}

impl Kind {
    /// The exit status.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Other => 1,
            Self::Usage => 2,
            Self::Unchanged => 3,
            Self::RunFailed => 4,
            Self::NotFound => 5,
            Self::Denied => 6,
            Self::NotInstalled => 7,
            Self::Unreachable => 8,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::BrokenPipe => 141,
            Self::Terminated => 143,
            Self::Status(code) => code,
        }
    }
}

/// A failure as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// Which exit status it gives.
    pub(crate) kind: Kind,
    /// The first line, complete with its prefix; empty if everything has been said.
    pub(crate) message: String,
    /// What to do next, one imperative line.
    pub(crate) hint: Option<String>,
}

/// Result of everything here.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// `error: <message>`.
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self::verbatim(kind, format!("error: {message}"))
    }

    /// A message with a prefix of its own, such as `Error from server (…)`.
    pub(crate) fn verbatim(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// A mistake of the caller.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// An exit status; everything has been said already.
    pub(crate) fn silent(kind: Kind) -> Self {
        Self::verbatim(kind, String::new())
    }

    /// Adds the line that says what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::silent(Kind::BrokenPipe);
        }
        Self::new(Kind::Other, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_documented_status() {
        let rows = [
            (Kind::Other, 1),
            (Kind::Usage, 2),
            (Kind::Unchanged, 3),
            (Kind::RunFailed, 4),
            (Kind::NotFound, 5),
            (Kind::Denied, 6),
            (Kind::NotInstalled, 7),
            (Kind::Unreachable, 8),
            (Kind::Timeout, 124),
            (Kind::Interrupted, 130),
            (Kind::Terminated, 143),
        ];
        for (kind, code) in rows {
            assert_eq!(kind.code(), code, "{kind:?}");
        }
    }
}
