//! Flags of the verbs that start, stop and remove.

use clap::Args;

use super::{Change, Targets};

/// `run-now`.
#[derive(Args, Debug)]
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
    #[arg(long, default_value = "0", value_name = "DURATION")]
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
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: u16,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
}

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

/// `cancel`.
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// A run, or an object for its running one
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Why, kept with the request
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Wait until the run has ended
    #[arg(long)]
    pub(crate) wait: bool,
    /// Longest time to wait; 0 waits for ever
    #[arg(long, default_value = "2m", value_name = "DURATION")]
    pub(crate) timeout: String,
}

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
}

/// `delete`.
#[derive(Args, Debug)]
pub(crate) struct Delete {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Keep what was stored; this is so unless --delete-data is given
    #[arg(long, conflicts_with = "delete_data")]
    pub(crate) keep_data: bool,
    /// Have the operator remove what was stored first; asks for consent. With --dry-run=server a Job says what would go
    #[arg(long)]
    pub(crate) delete_data: bool,
    /// Return at once instead of waiting until the object is gone
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) wait: bool,
    /// A named object that does not exist is no error
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
}
