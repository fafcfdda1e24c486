//! Arguments of `wait`.

use clap::Args;

/// `wait`.
#[derive(Args, Debug)]
pub(crate) struct Wait {
    /// A run, or an object for its newest run
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Show the run's log as it comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Longest time to wait, such as 30m; 0 waits for ever
    #[arg(long, default_value = "0", value_name = "DURATION")]
    pub(crate) timeout: String,
}
