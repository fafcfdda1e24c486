//! Arguments of `doctor`.

use clap::Args;

use super::output::StructuredOutput;

/// `doctor`.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Object to look at; all of the namespace if unset
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) name: Option<String>,
    /// Try the login to the database and to the store, from a pod
    #[arg(long)]
    pub(crate) probe: bool,
    /// Delete what other operators left behind: CronJobs, finished Jobs and Secrets of these objects, and webhooks that nobody answers
    #[arg(long)]
    pub(crate) fix: bool,
    /// Output format
    #[arg(short, long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}
