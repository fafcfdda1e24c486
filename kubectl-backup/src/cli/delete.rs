//! Arguments of `delete`.

use clap::Args;

use super::shared::{Change, OutcomeFlag, Targets};

/// `delete`.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Keep what was stored (the default)
    #[arg(long, conflicts_with = "delete_data")]
    pub(crate) keep_data: bool,
    /// Remove what was stored first; you are asked before. With --dry-run=server a Job lists what would be removed
    #[arg(long)]
    pub(crate) delete_data: bool,
    /// Wait until the object is gone; --wait=false returns at once
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) wait: bool,
    /// Ignore named objects that do not exist
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// What if all is as it is to be.
    #[command(flatten)]
    pub(crate) unchanged: OutcomeFlag,
}
