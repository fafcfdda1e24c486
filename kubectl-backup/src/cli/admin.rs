//! Flags of the verbs that change, check and compare.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Change, Concurrency, DryRun, StructuredOutput, Targets};

/// `verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A run, or an object for its newest artefact
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Restore it into scratch servers without network and compare what is there then; unset reads it again alone
    #[arg(long)]
    pub(crate) restore: bool,
    /// Longest time to wait
    #[arg(long, default_value = "1h", value_name = "DURATION")]
    pub(crate) timeout: String,
}

/// `download`.
#[derive(Args, Debug)]
pub(crate) struct Download {
    /// A run, or an object for its newest artefact
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// File or directory to write to, - for stdout; the artefact's own name here if unset
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// The stored bytes; unset gives the dump itself, or the tar in an archive, decrypted and decompressed
    #[arg(long)]
    pub(crate) raw: bool,
    /// Secret key with the age identity, as NAME:KEY; that of the object if unset
    #[arg(long, value_name = "SECRET:KEY", conflicts_with = "raw")]
    pub(crate) decrypt_secret: Option<String>,
    /// Storage (gobackup.io) to read the archive from; the first that has it if unset
    #[arg(long, value_name = "NAME")]
    pub(crate) storage: Option<String>,
    /// Key of the artefact, as runs --stored shows it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Image of the pod; that of the run's Job or the operator's default if unset
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Longest time to wait for the pod
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub(crate) timeout: String,
}

/// `set`.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Cron expression of five fields, @daily and the like, or @every 6h
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub(crate) schedule: Option<String>,
    /// IANA name of the schedule's zone; an empty one removes it
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) time_zone: Option<String>,
    /// What to keep, as for create; rules that are not named go away
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub(crate) retention: Vec<String>,
    /// What to do when a slot comes due while a run is active
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) concurrency_policy: Option<Concurrency>,
    /// Databases to dump, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) databases: Vec<String>,
    /// Image of the backup program; an empty one removes it
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Show the change, then ask
    #[arg(long)]
    pub(crate) diff: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
}

/// `diff`.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// File with the objects to compare; - for stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: PathBuf,
}

/// `export`.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// Objects.
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Output format
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    pub(crate) output: StructuredOutput,
}

/// `import`.
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The gobackup.yml; - for stdin
    #[arg(value_name = "FILE", default_value = "gobackup.yml")]
    pub(crate) file: PathBuf,
    /// Create or change the objects in the namespace instead of printing them
    #[arg(long)]
    pub(crate) apply: bool,
    /// Send nothing (client), or let the server check without storing (server); with --apply
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client", default_value = "none", requires = "apply", value_name = "WHERE")]
    pub(crate) dry_run: DryRun,
    /// Take over fields that others have set, instead of refusing to; with --apply
    #[arg(long, requires = "apply")]
    pub(crate) force_conflicts: bool,
    /// Print the Secrets too, with their values
    #[arg(long, conflicts_with = "apply")]
    pub(crate) show_secrets: bool,
    /// Models to import, separated by commas; all if unset
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Volume claim for storages of type local
    #[arg(long, value_name = "CLAIM")]
    pub(crate) pvc: Option<String>,
    /// File with NAME=VALUE lines for the variables of the file; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    pub(crate) output: StructuredOutput,
}

/// `health`.
#[derive(Args, Debug)]
pub(crate) struct Health {
    /// Objects; all of the namespace if none is given
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) names: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
    /// Age of the newest good run from which it is a warning; the schedule's interval and 2h if unset
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_age: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
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

/// `doctor`.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Object to look at; all of the namespace if unset
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) name: Option<String>,
    /// Have the operator log in to database and store of the objects, from a pod
    #[arg(long)]
    pub(crate) probe: bool,
    /// Delete what other operators left: CronJobs, finished Jobs and Secrets of these objects, webhooks nobody answers
    #[arg(long)]
    pub(crate) fix: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<StructuredOutput>,
}

/// `bundle`.
#[derive(Args, Debug)]
pub(crate) struct Bundle {
    /// Objects; all of the namespace if none is given
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) names: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
    /// File to write to; stdout if unset
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
}

/// `completion`.
#[derive(Args, Debug)]
pub(crate) struct Completion {
    /// For which shell; kubectl is for the words after `kubectl backup`
    #[arg(value_enum)]
    pub(crate) shell: Shell,
    /// Put kubectl's script beside the plugin, or into the first directory of PATH that takes it
    #[arg(long)]
    pub(crate) install: bool,
}

/// Shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// For bash.
    Bash,
    /// For zsh.
    Zsh,
    /// For fish.
    Fish,
    /// For PowerShell.
    Powershell,
    /// For kubectl's own completion.
    Kubectl,
}

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Verb, such as `schedule next`
    pub(crate) verb: Vec<String>,
}

/// `top`.
#[derive(Args, Debug)]
pub(crate) struct Top {
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
}
