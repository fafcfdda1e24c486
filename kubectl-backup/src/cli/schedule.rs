//! Arguments of `schedule`.

use clap::{Args, Subcommand};

use super::output::StructuredOutput;

/// `schedule`.
#[derive(Args, Debug)]
pub(crate) struct Schedule {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: ScheduleVerb,
}

/// Verbs of `schedule`.
#[derive(Subcommand, Debug)]
pub(crate) enum ScheduleVerb {
    /// Say a schedule in words, with its next runs and what daylight saving does to it
    Explain(Explain),
    /// Print the next runs of an object or an expression
    Next(Next),
    /// Print the runs of all objects in the days to come
    Calendar(Calendar),
}

/// `schedule calendar`.
#[derive(Args, Debug)]
pub(crate) struct Calendar {
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Number of days
    #[arg(long, default_value_t = 7, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=366))]
    pub(crate) days: u16,
}

/// `schedule explain`.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Cron expression of five fields, @daily and the like, or @every 6h
    #[arg(
        value_name = "EXPRESSION",
        required_unless_present = "schedule",
        allow_hyphen_values = true
    )]
    pub(crate) expression: Option<String>,
    /// The expression, as a flag
    #[arg(
        long,
        value_name = "EXPRESSION",
        conflicts_with = "expression",
        allow_hyphen_values = true
    )]
    pub(crate) schedule: Option<String>,
    /// Where and how many.
    #[command(flatten)]
    pub(crate) preview: Preview,
}

/// `schedule next`.
#[derive(Args, Debug)]
pub(crate) struct Next {
    /// Object, as TYPE/NAME, or NAME where it is unique
    #[arg(value_name = "TYPE/NAME", required_unless_present = "schedule")]
    pub(crate) name: Option<String>,
    /// An expression instead of an object
    #[arg(
        long,
        value_name = "EXPRESSION",
        conflicts_with = "name",
        allow_hyphen_values = true
    )]
    pub(crate) schedule: Option<String>,
    /// Where and how many.
    #[command(flatten)]
    pub(crate) preview: Preview,
}

/// What a preview covers.
#[derive(Args, Clone, Debug)]
pub(crate) struct Preview {
    /// IANA name of the schedule's zone; UTC if unset
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) time_zone: Option<String>,
    /// Instant after which runs are shown, RFC 3339; now if unset
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Number of runs
    #[arg(short, long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) count: u16,
    /// Output format
    #[arg(short, long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}
