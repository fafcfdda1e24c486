//! Arguments of `bundle`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Scope;

/// `bundle`.
#[derive(Args, Debug)]
pub(crate) struct Bundle {
    /// Objects.
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// File to write to; stdout if unset
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
}
