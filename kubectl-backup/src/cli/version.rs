//! Arguments of `version`.

use clap::Args;

use super::output::StructuredOutput;

/// `version`.
#[derive(Args, Debug)]
pub(crate) struct Version {
    /// Ask neither server nor operator
    #[arg(long)]
    pub(crate) client: bool,
    /// Output format
    #[arg(short, long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}
