//! Arguments of `verify`.

use clap::Args;

/// `verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A run, or an object for its newest artefact
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Key of the artefact, as runs --stored shows it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Restore it into scratch servers without network and compare the result; without this flag it is only read again
    #[arg(long)]
    pub(crate) restore: bool,
    /// Replay the stored binary logs from the backup before it, in a scratch server, and compare; where that can't be, restore it
    #[arg(long, conflicts_with = "restore")]
    pub(crate) replay: bool,
    /// Longest time to wait
    #[arg(long, default_value = "1h", value_name = "DURATION")]
    pub(crate) timeout: String,
}
