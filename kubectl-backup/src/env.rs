//! What the process was given besides its arguments; read once, in `main`.

use std::path::PathBuf;

/// The environment variables this program knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    /// `KUBECONFIG`, a list of paths.
    pub(crate) kubeconfig: Option<String>,
    /// The caller's home directory.
    pub(crate) home: Option<PathBuf>,
    /// A service account's pod: `KUBERNETES_SERVICE_HOST` is set.
    pub(crate) in_cluster: bool,
    /// `NO_COLOR` is set, to anything.
    pub(crate) no_color: bool,
    /// `CLICOLOR_FORCE` is set and not `0`.
    pub(crate) force_color: bool,
    /// `TERM` is `dumb`.
    pub(crate) dumb: bool,
    /// The locale's character set is UTF-8.
    pub(crate) utf8: bool,
    /// `KUBECTL_BACKUP_COMPLETION_TIMEOUT`: how long a shell waits for names.
    pub(crate) completion_timeout: Option<String>,
    /// `PATH`, for the completion shim.
    pub(crate) path: Option<String>,
}

/// A variable of the caller's, for a file of the caller's that names it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Env {
    /// Reads the process's environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the environment is read"
    )]
    pub(crate) fn read() -> Self {
        let get = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let locale = get("LC_ALL")
            .or_else(|| get("LC_CTYPE"))
            .or_else(|| get("LANG"))
            .unwrap_or_default()
            .to_ascii_lowercase();
        Self {
            kubeconfig: get("KUBECONFIG"),
            home: get("HOME")
                .or_else(|| get("USERPROFILE"))
                .map(PathBuf::from),
            in_cluster: get("KUBERNETES_SERVICE_HOST").is_some(),
            no_color: std::env::var_os("NO_COLOR").is_some(),
            force_color: get("CLICOLOR_FORCE").is_some_and(|v| v != "0"),
            dumb: get("TERM").is_some_and(|term| term == "dumb"),
            completion_timeout: get("KUBECTL_BACKUP_COMPLETION_TIMEOUT"),
            path: get("PATH"),
            utf8: locale.contains("utf-8") || locale.contains("utf8") || cfg!(windows),
        }
    }
}
