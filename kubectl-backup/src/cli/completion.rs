//! Arguments of `completion`.

use clap::{Args, ValueEnum};

/// `completion`.
#[derive(Args, Debug)]
pub(crate) struct Completion {
    /// For which shell; kubectl is for the words after `kubectl backup`
    #[arg(value_enum, ignore_case = true)]
    pub(crate) shell: Shell,
    /// Put kubectl's script beside the plugin, or into the first directory of PATH that takes it
    #[arg(long)]
    pub(crate) install: bool,
}

/// Shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// For bash.
    Bash,
    /// For zsh.
    Zsh,
    /// For fish.
    Fish,
    /// For PowerShell.
    Powershell,
    /// For kubectl's own completion.
    Kubectl,
}
