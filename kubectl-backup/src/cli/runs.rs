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
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
    /// Only runs that failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// What the store really holds, listed by a Job. STATE: Stored, there as it was stored; NoRun, there, but
    /// status no longer lists its run; Former, of a deleted object of this name; Gobackup, in gobackup's own
    /// list; NoRecord, there without a record; Damaged, there with another length; Missing, gone though nothing
    /// removed it; Pruned, removed by retention; Gone, not there, and whether retention removed it is no longer
    /// known; Unreachable, a storage that could not be listed
    #[arg(long, conflicts_with = "failed")]
    pub(crate) stored: bool,
    /// Spans of time that stored binary logs cover without a gap, newest first, each with the good runs within it
    /// that status lists: a restore to a moment of the span begins with one that is older than the moment
    #[arg(long, conflicts_with_all = ["failed", "stored"])]
    pub(crate) recoverable: bool,
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
