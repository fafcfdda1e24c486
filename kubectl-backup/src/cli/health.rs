//! Arguments of `health`.

use clap::{Args, ValueEnum};

use super::shared::Scope;

/// `health`.
#[derive(Args, Debug)]
pub(crate) struct Health {
    /// Objects.
    #[command(flatten)]
    pub(crate) scope: Scope,
    /// Age of the newest good run from which it is critical; what the schedule allows if unset
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_age: Option<String>,
    /// Output format
    #[arg(
        short,
        long,
        value_enum,
        ignore_case = true,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) output: HealthOutput,
}

/// Output formats of `health`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HealthOutput {
    /// A summary with performance data, then a line an object.
    #[default]
    Nagios,
    /// Gauges for a textfile collector.
    Prom,
    /// As JSON.
    Json,
}
