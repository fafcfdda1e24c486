//! Flags and arguments, a file a verb; no behaviour.

mod binlog;
mod bundle;
mod cancel;
mod complete;
mod completion;
mod connection;
mod create;
mod delete;
mod describe;
mod diff;
#[cfg(test)]
mod docs;
mod doctor;
mod download;
mod examples;
mod export;
mod groups;
mod health;
mod import;
mod list;
mod logs;
mod man;
mod output;
mod report;
mod restore;
mod resume;
mod run_now;
mod runs;
mod schedule;
mod set;
mod shared;
mod show;
mod suspend;
mod top;
mod verify;
mod version;
mod wait;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use binlog::Binlog;
pub(crate) use bundle::Bundle;
pub(crate) use cancel::Cancel;
pub(crate) use complete::CompleteWords;
pub(crate) use completion::{Completion, Shell};
pub(crate) use connection::Connection;
pub(crate) use create::{
    Create, CreateBackup, CreateDatabase, CreateKind, CreateMysql, CreateStorage, SourceFlags,
    StoreFlags,
};
pub(crate) use delete::Delete;
pub(crate) use describe::Describe;
pub(crate) use diff::Diff;
pub(crate) use doctor::Doctor;
pub(crate) use download::Download;
pub(crate) use examples::{command, parse};
pub(crate) use export::Export;
pub(crate) use groups::grouped;
pub(crate) use health::{Health, HealthOutput};
pub(crate) use import::Import;
pub(crate) use list::{List, SortBy};
pub(crate) use logs::{LogFormat, Logs};
pub(crate) use man::Man;
pub(crate) use output::{ChangeOutput, Format, Output, StructuredOutput};
pub(crate) use report::{Report, ReportOutput};
pub(crate) use restore::{DefinersFlag, LocationFlags, ReplayFlags, Restore, TargetFlags};
pub(crate) use resume::Resume;
pub(crate) use run_now::RunNow;
pub(crate) use runs::Runs;
pub(crate) use schedule::{Calendar, Explain, Next, Preview, Schedule, ScheduleVerb};
pub(crate) use set::{PlaceFlags, Set};
pub(crate) use shared::{
    Change, Concurrency, DestinationFlags, DryRun, EngineFlag, NameFlag, OutcomeFlag, S3Flags,
    Targets, TlsFlag, VerifyFlags, VerifyModeFlag,
};
pub(crate) use show::Show;
pub(crate) use suspend::Suspend;
pub(crate) use top::Top;
pub(crate) use verify::Verify;
pub(crate) use version::Version;
pub(crate) use wait::Wait;

/// Create, list, trigger, suspend and inspect database backups
///
/// Flags may stand before or after the verb, but after the word "backup": kubectl itself refuses
/// flags in front of a plugin's name.
#[derive(Parser, Debug)]
#[command(
    name = "kubectl-backup",
    bin_name = "kubectl backup",
    version = crds::VERSION,
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
    /// Show one object with its runs, pods and events, and what to do next
    Describe(Describe),
    /// Start a backup now
    #[command(visible_aliases = ["run", "trigger"])]
    RunNow(RunNow),
    /// Wait for a run and exit with its result
    Wait(Wait),
    /// End a running backup, or a Restore
    Cancel(Cancel),
    /// Read a stored backup again and compare it with its checksum
    Verify(Verify),
    /// Restore a stored backup into a server or onto a volume, after a check
    Restore(Box<Restore>),
    /// Show what is in a stored backup: databases, tables, rows, bytes
    Show(Show),
    /// Show transactions of stored binary logs, such as a DROP with its GTID
    Binlog(Binlog),
    /// Download a stored backup, through a short-lived pod
    Download(Download),
    /// Pause a schedule: no new runs start
    Suspend(Suspend),
    /// Let a suspended schedule run again
    Resume(Resume),
    /// Print the log of a run
    Logs(Logs),
    /// Change schedule, retention and the like
    Set(Box<Set>),
    /// Show what applying a file would change; exits with 0 if nothing, with 1 if something
    Diff(Diff),
    /// Translate a gobackup.yml into objects, print or apply them
    Import(Import),
    /// Print objects as manifests, without what the cluster added
    Export(Export),
    /// Delete backup objects; what they stored stays unless told otherwise
    Delete(Delete),
    /// Explain schedules, and preview their runs
    Schedule(Schedule),
    /// Answer a monitoring system: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN
    Health(Health),
    /// Tell what was due and made in a period, as text, JSON, CSV or one HTML page
    Report(Report),
    /// Check what must be in place for backups to be made
    Doctor(Doctor),
    /// Show the list live, with keys to run, suspend, describe and read logs
    Top(Top),
    /// Collect what is needed to find a problem in one text, without secrets
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
        ignore_case = true,
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
