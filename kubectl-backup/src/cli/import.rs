//! Arguments of `import`.

use std::path::PathBuf;

use clap::Args;

use super::output::StructuredOutput;
use super::shared::DryRun;

/// `import`.
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The gobackup.yml; - for stdin
    #[arg(value_name = "FILE", default_value = "gobackup.yml")]
    pub(crate) file: PathBuf,
    /// Create or change the objects in the namespace instead of printing them
    #[arg(long)]
    pub(crate) apply: bool,
    /// Send nothing (client), or let the server check without storing (server); with --apply
    #[arg(long, value_enum, ignore_case = true, num_args = 0..=1, require_equals = true, default_missing_value = "client", default_value = "none", requires = "apply", value_name = "WHERE")]
    pub(crate) dry_run: DryRun,
    /// With --apply: also change fields that somebody else has set since; without this flag they are left, and named
    #[arg(long, requires = "apply")]
    pub(crate) force_conflicts: bool,
    /// Print the Secrets too, with their values
    #[arg(long, conflicts_with = "apply")]
    pub(crate) show_secrets: bool,
    /// Models to import, separated by commas; all if unset
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Volume claim for storages of type local
    #[arg(long, value_name = "CLAIM")]
    pub(crate) pvc: Option<String>,
    /// Say that gobackup itself no longer runs: keep then counts, and removes, the archives that it stored as well
    #[arg(long)]
    pub(crate) adopt_state: bool,
    /// File with NAME=VALUE lines for the variables of the file; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Output format
    #[arg(
        short,
        long,
        value_enum,
        ignore_case = true,
        default_value = "yaml",
        value_name = "FORMAT"
    )]
    pub(crate) output: StructuredOutput,
}
