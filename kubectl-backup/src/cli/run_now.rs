//! Arguments of `run-now`.

use clap::{ArgGroup, Args};

use super::shared::{Change, NameFlag, OutcomeFlag, Targets};

/// `run-now`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("waits").args(["wait", "follow"]).multiple(true))]
pub(crate) struct RunNow {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Wait for the end and exit with the run's result: 0 good, 4 failed, 124 timeout
    #[arg(long)]
    pub(crate) wait: bool,
    /// Show the run's log as it comes; implies --wait
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Longest time to wait, such as 30m; 0 waits for ever
    #[arg(long, default_value = "0", requires = "waits", value_name = "DURATION")]
    pub(crate) timeout: String,
    /// Idempotency key: the same id gives the same run
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Why, kept with the request
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Wait behind an active run where the concurrency policy would refuse
    #[arg(long)]
    pub(crate) queue: bool,
    /// Most runs to wait for at a time
    #[arg(long, default_value_t = 3, requires = "waits", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: u16,
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
