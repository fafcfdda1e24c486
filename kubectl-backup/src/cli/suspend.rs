//! Arguments of `suspend`.

use clap::Args;

use super::shared::{Change, NameFlag, OutcomeFlag, Targets};

/// `suspend`.
#[derive(Args, Debug)]
pub(crate) struct Suspend {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Why, kept on the object
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Resume by itself after this time, such as 2h
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "until")]
    pub(crate) for_: Option<String>,
    /// Resume by itself at this time: 18:00, tomorrow 06:00, monday 06:00, 2026-09-04 18:00, in the zone the answer is in (the schedule's, or that of --tz, --utc, --local), or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// End running backups too
    #[arg(long)]
    pub(crate) cancel_running: bool,
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
