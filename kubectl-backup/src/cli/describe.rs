//! Arguments of `describe`.

use clap::Args;

/// `describe`.
#[derive(Args, Debug)]
pub(crate) struct Describe {
    /// Object of any kind, or run; a NAME alone where it is unique among those with a schedule
    #[arg(value_name = "TYPE/NAME|RUN")]
    pub(crate) name: Option<String>,
}
