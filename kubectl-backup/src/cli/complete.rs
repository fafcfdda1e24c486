//! Arguments of `__complete`.

use clap::Args;

/// `__complete`.
#[derive(Args, Debug)]
pub(crate) struct CompleteWords {
    /// The words so far, the last one to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}
