//! Arguments of `report`.

use clap::{Args, ValueEnum};

use super::shared::Scope;

/// `report`.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// Objects.
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Begin of the period: a duration before now such as 30d, a day such as 2026-01-31, or an RFC 3339 time; the period has at most 400 days
    #[arg(long, default_value = "30d", value_name = "TIME")]
    pub(crate) since: String,
    /// End of the period, which is no longer in it, written as --since; now if unset
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Output format
    #[arg(
        short,
        long,
        value_enum,
        ignore_case = true,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) output: ReportOutput,
}

/// Output formats of `report`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportOutput {
    /// A table, then what there is to say of each object.
    #[default]
    Text,
    /// As JSON.
    Json,
    /// A line an object, for a spreadsheet.
    Csv,
    /// One page that needs nothing else.
    Html,
}
