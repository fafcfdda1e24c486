//! Arguments of `cancel`.

use clap::Args;

/// `cancel`.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// A run, an object for its running one, or a restore/NAME
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Why, kept with the request
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Wait until the run has ended
    #[arg(long)]
    pub(crate) wait: bool,
    /// Longest time to wait; 0 waits for ever
    #[arg(long, default_value = "2m", requires = "wait", value_name = "DURATION")]
    pub(crate) timeout: String,
}
