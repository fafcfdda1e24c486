//! Arguments of `set`.

use clap::Args;

use super::shared::{Change, Concurrency, Targets};

/// `set`.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Cron expression of five fields, @daily and the like, or @every 6h
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub(crate) schedule: Option<String>,
    /// IANA name of the schedule's zone; an empty one removes it
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) time_zone: Option<String>,
    /// What to keep, as for create; rules that are not named go away
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub(crate) retention: Vec<String>,
    /// What to do when a slot comes due while a run is active
    #[arg(long, value_enum, ignore_case = true, value_name = "POLICY")]
    pub(crate) concurrency_policy: Option<Concurrency>,
    /// Databases to dump, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) databases: Vec<String>,
    /// Image of the backup program; an empty one removes it
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Show the change, then ask
    #[arg(long)]
    pub(crate) diff: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
}
