//! Arguments of `runs`.

use clap::Args;

use super::output::{FormatParser, Output};
use super::shared::NoHeaders;

/// `runs`.
#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Runs, or objects whose runs are shown; all of the namespace if none is given
    #[arg(value_name = "TYPE/NAME|RUN")]
    pub(crate) names: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
    /// Runs that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// What is really in the store, listed by a Job of the operator; STATE says Stored, NoRun for what
    /// status has no run of, Former for what an object of this name stored that was deleted since,
    /// Gobackup for what gobackup's own list names, NoRecord for what nothing vouches for, Damaged and
    /// Missing for what is not there as it was stored, Pruned for what retention removed, and
    /// Unreachable for a storage that could not be listed
    #[arg(long, conflicts_with = "failed")]
    pub(crate) stored: bool,
    /// Longest time to wait for the list of a store
    #[arg(
        long,
        default_value = "10m",
        requires = "stored",
        value_name = "DURATION"
    )]
    pub(crate) timeout: String,
    /// Output format
    #[arg(short, long, value_parser = FormatParser::<Output>::new(), default_value = "table", value_name = "FORMAT")]
    pub(crate) output: Output,
    /// Header line.
    #[command(flatten)]
    pub(crate) headers: NoHeaders,
}
