//! Arguments of `describe`.

use clap::Args;

/// `describe`.
#[derive(Args, Debug)]
pub(crate) struct Describe {
    /// Object, run or Restore; an object's NAME alone where it is unique
    #[arg(value_name = "TYPE/NAME|RUN")]
    pub(crate) name: Option<String>,
}
