//! Arguments of `export`.

use clap::Args;

use super::output::StructuredOutput;
use super::shared::Targets;

/// `export`.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Output format
    #[arg(
        short,
        long,
        value_enum,
        ignore_case = true,
        default_value = "yaml",
        value_name = "FORMAT"
    )]
    pub(crate) output: StructuredOutput,
}
