//! Arguments of `describe`.

use clap::Args;

/// `describe`.
#[derive(Args, Debug)]
pub(crate) struct Describe {
    /// Object, as TYPE/NAME, or NAME where it is unique
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) name: Option<String>,
}
