//! Arguments of `diff`.

use std::path::PathBuf;

use clap::Args;

/// `diff`.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// File with the objects to compare; - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: PathBuf,
}
