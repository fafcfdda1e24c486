//! Flags and arguments; no behaviour.

mod admin;
mod connection;
mod create;
#[cfg(test)]
mod docs;
mod gobackup;
mod output;
mod read;
mod restore;
mod run;
mod schedule;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use admin::{
    Bundle, Completion, Diff, Doctor, Download, Export, Health, HealthOutput, Import, Man, Set,
    Shell, Top, Verify,
};
pub(crate) use connection::Connection;
pub(crate) use create::{
    Concurrency, Create, CreateKind, CreateMysql, S3Flags, SourceFlags, StoreFlags, TlsFlag,
};
pub(crate) use gobackup::{CreateBackup, CreateDatabase, CreateStorage};
pub(crate) use output::{ChangeOutput, Format, FormatParser, Output};
pub(crate) use read::{Describe, List, Logs, Runs, SortBy};
pub(crate) use restore::{DefinersFlag, LocationFlags, Restore, TargetFlags};
pub(crate) use run::{Cancel, Delete, Resume, RunNow, Suspend, Wait};
pub(crate) use schedule::{Calendar, Explain, Next, Preview, Schedule, ScheduleVerb};

/// Create, list, trigger, suspend and inspect database backups
///
/// Flags may stand before or after the verb, but after the word "backup": kubectl itself refuses
/// flags in front of a plugin's name.
#[derive(Parser, Debug)]
#[command(
    name = "kubectl-backup",
    bin_name = "kubectl backup",
    version = crds::VERSION,
    disable_version_flag = true,
    subcommand_required = false,
    arg_required_else_help = false,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    /// For all verbs.
    #[command(flatten)]
    pub(crate) global: Global,
    /// How to reach the cluster.
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Verbs.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Create a backup object
    Create(Create),
    /// List backup objects: schedule, last result, next run
    #[command(visible_aliases = ["ls", "get"])]
    List(List),
    /// List runs, newest first
    #[command(visible_alias = "history")]
    Runs(Runs),
    /// Show one object with its runs, pods, events and one piece of advice
    #[command(visible_alias = "show")]
    Describe(Describe),
    /// Start a backup now
    #[command(visible_aliases = ["run", "trigger"])]
    RunNow(RunNow),
    /// Wait for a run and exit with its result
    Wait(Wait),
    /// End a running backup
    Cancel(Cancel),
    /// Read a stored artefact again and compare it with its manifest
    Verify(Verify),
    /// Restore a stored dump into a server or onto a volume, after a check
    Restore(Box<Restore>),
    /// Bring a stored artefact here, through a short-lived pod
    Download(Download),
    /// Start no more slots of a schedule
    Suspend(Suspend),
    /// Start slots of a schedule again
    Resume(Resume),
    /// Print the log of a run
    Logs(Logs),
    /// Change schedule, retention and the like
    Set(Box<Set>),
    /// Show what applying a file would change; status 0 same, 1 differs
    Diff(Diff),
    /// Translate a gobackup.yml into objects, print or apply them
    Import(Import),
    /// Print objects as one would write them
    Export(Export),
    /// Delete backup objects; what they stored stays unless told otherwise
    Delete(Delete),
    /// Explain schedules, and preview their runs
    Schedule(Schedule),
    /// Answer a monitoring system: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN
    Health(Health),
    /// Check what must be in place for backups to be made
    Doctor(Doctor),
    /// Show the list live, with keys to run, suspend, describe and read logs
    Top(Top),
    /// Gather what a helper needs to see in one text, without secrets
    Bundle(Bundle),
    /// Print a completion script, or install the one kubectl calls
    Completion(Completion),
    /// Print the manual page of the program or of a verb
    Man(Man),
    /// Answer a shell's question
    #[command(name = "__complete", hide = true)]
    Complete(CompleteWords),
    /// Show the versions of plugin, operator and server
    Version(Version),
}

/// Flags of every verb.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags of every verb")]
pub(crate) struct Global {
    /// Colour words of state: auto is for terminals, without NO_COLOR
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_short_help = true
    )]
    pub(crate) color: ColorWhen,
    /// Use ASCII instead of symbols
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) ascii: bool,
    /// Print results, warnings and errors only
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Log what the client does to stderr; repeat for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, hide_short_help = true)]
    pub(crate) verbose: u8,
    /// Answer every question with yes
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Never ask; fail where an answer is needed
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_input: bool,
    /// Show times in UTC
    #[arg(long, global = true, group = "zone", hide_short_help = true)]
    pub(crate) utc: bool,
    /// Show times in the zone of this machine
    #[arg(long, global = true, group = "zone", hide_short_help = true)]
    pub(crate) local: bool,
    /// Show times in this zone; the schedule's own if unset
    #[arg(
        long,
        global = true,
        group = "zone",
        value_name = "ZONE",
        hide_short_help = true
    )]
    pub(crate) tz: Option<String>,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Flags of verbs that act on named objects.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Targets {
    /// Objects, as TYPE/NAME, or NAME where it is unique
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) names: Vec<String>,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with_all = ["names", "all"])]
    pub(crate) selector: Option<String>,
    /// All objects of the namespace
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// In all namespaces; needs --all or --selector, and consent
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
}

/// Flags of verbs that change something.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Change {
    /// Send nothing (client), or let the server check without storing (server)
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client", default_value = "none", value_name = "WHERE")]
    pub(crate) dry_run: DryRun,
    /// Print the changed objects instead of a line each
    #[arg(short, long, value_parser = FormatParser::<ChangeOutput>::new(), value_name = "FORMAT")]
    pub(crate) output: Option<ChangeOutput>,
    /// Name under which the server records the change
    #[arg(long, default_value = crds::labels::PLUGIN_MANAGER, value_name = "NAME", hide_short_help = true)]
    pub(crate) field_manager: String,
    /// Exit with status 3 if nothing had to change
    #[arg(long, hide_short_help = true)]
    pub(crate) error_unchanged: bool,
}

/// How much of a change is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// All of it.
    #[default]
    None,
    /// Nothing is sent.
    Client,
    /// The server checks, and stores nothing.
    Server,
}

/// `__complete`.
#[derive(Args, Debug)]
pub(crate) struct CompleteWords {
    /// The words so far, the last one to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// `version`.
#[derive(Args, Debug)]
pub(crate) struct Version {
    /// Ask neither server nor operator
    #[arg(long)]
    pub(crate) client: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}

/// Formats for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StructuredOutput {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}
