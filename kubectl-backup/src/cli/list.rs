//! Arguments of `list`.

use clap::{Args, ValueEnum};

use super::output::{FormatParser, Output};
use super::shared::NoHeaders;

/// `list`.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Kinds or objects: TYPE, TYPE/NAME or NAME; all kinds with a schedule if none is given; also restores, databases, storages
    #[arg(value_name = "TYPE[/NAME]")]
    pub(crate) names: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Only objects with these fields
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
    /// Output format
    #[arg(short, long, value_parser = FormatParser::<Output>::new(), default_value = "table", value_name = "FORMAT")]
    pub(crate) output: Output,
    /// Header line.
    #[command(flatten)]
    pub(crate) headers: NoHeaders,
    /// Columns with the values of these labels
    #[arg(short = 'L', long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) label_columns: Vec<String>,
    /// A column with all labels
    #[arg(long)]
    pub(crate) show_labels: bool,
    /// Show the list, then each change, until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With -w: show whether each change was ADDED, MODIFIED or DELETED
    #[arg(long, requires = "watch")]
    pub(crate) output_watch_events: bool,
    /// Objects the server sends at once; 0 for all
    #[arg(long, default_value_t = 500, value_name = "COUNT")]
    pub(crate) chunk_size: u32,
    /// Only objects that are suspended
    #[arg(long)]
    pub(crate) suspended: bool,
    /// Only objects whose last run failed
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only objects whose newest good run is older than their schedule allows
    #[arg(long)]
    pub(crate) stale: bool,
    /// Only objects with a run under way
    #[arg(long)]
    pub(crate) running: bool,
    /// Order of the lines
    #[arg(long, value_enum, ignore_case = true, value_name = "COLUMN")]
    pub(crate) sort_by: Option<SortBy>,
    /// Clusters to list, as contexts of the kubeconfig separated by commas
    #[arg(long, value_name = "CONTEXTS", value_delimiter = ',', conflicts_with_all = ["watch", "names"])]
    pub(crate) contexts: Vec<String>,
    /// The clusters of all contexts
    #[arg(long, conflicts_with_all = ["watch", "names", "contexts"])]
    pub(crate) all_contexts: bool,
    /// Keep managed fields in JSON and YAML
    #[arg(long)]
    pub(crate) show_managed_fields: bool,
    /// Ignore named objects that do not exist
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
}

/// Orders of `list`. Times and sizes put the greatest first, except the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// By name.
    Name,
    /// Newest object first.
    Age,
    /// Newest run first.
    LastRun,
    /// Next run first.
    NextRun,
    /// Largest first.
    Size,
    /// Longest run first.
    Duration,
}
