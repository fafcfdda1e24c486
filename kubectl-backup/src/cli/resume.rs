//! Arguments of `resume`.

use clap::Args;

use super::shared::{Change, NameFlag, OutcomeFlag, Targets};

/// `resume`.
#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Do not make up the slot missed while suspended (the default)
    #[arg(long, conflicts_with = "run_missed")]
    pub(crate) skip_missed: bool,
    /// Start the newest slot missed while suspended, if its deadline allows
    #[arg(long)]
    pub(crate) run_missed: bool,
    /// With --all or --selector: whose suspensions to end, by user name, or any; your own if unset
    #[arg(long, value_name = "USER|any")]
    pub(crate) suspended_by: Option<String>,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
    /// What if all is as it is to be.
    #[command(flatten)]
    pub(crate) unchanged: OutcomeFlag,
}
