//! Arguments of `suspend`.

use clap::Args;

use super::shared::{Change, Targets};

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
    /// Resume by itself at this instant, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// End running backups too
    #[arg(long)]
    pub(crate) cancel_running: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
}
