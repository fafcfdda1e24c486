//! Arguments of `show`.

use clap::Args;

use super::output::StructuredOutput;

/// `show`.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// A run, or an object for its newest artefact
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Storage (gobackup.io) to read the record from; the first that has it if unset
    #[arg(long, value_name = "NAME")]
    pub(crate) storage: Option<String>,
    /// Key of the artefact, as runs --stored shows it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Image of the pod; that of the run's Job or the operator's default if unset
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Longest time to wait for the pod
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub(crate) timeout: String,
    /// Output format; a table if unset
    #[arg(short, long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}
