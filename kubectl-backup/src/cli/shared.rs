//! What several verbs take.

use clap::{Args, ValueEnum};

use super::output::{ChangeOutput, FormatParser};

/// Flags of verbs that act on named objects.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Targets {
    /// Objects, as TYPE/NAME, or NAME where it is unique
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) names: Vec<String>,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with_all = ["names", "all"])]
    pub(crate) selector: Option<String>,
    /// All objects of the namespace
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// In all namespaces; needs --all or --selector, and asks before it acts
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
}

/// Flags of verbs that change something.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Change {
    /// Send nothing (client), or let the server check without storing (server)
    #[arg(long, value_enum, ignore_case = true, num_args = 0..=1, require_equals = true, default_missing_value = "client", default_value = "none", value_name = "WHERE")]
    pub(crate) dry_run: DryRun,
    /// Print the changed objects instead of a line each
    #[arg(short, long, value_parser = FormatParser::<ChangeOutput>::new(), value_name = "FORMAT")]
    pub(crate) output: Option<ChangeOutput>,
}

/// Who writes a change.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NameFlag {
    /// Name under which the server records the change
    #[arg(id = "field_manager", long = "field-manager", default_value = crds::labels::PLUGIN_MANAGER, value_name = "NAME", hide_short_help = true)]
    pub(crate) name: String,
}

/// What becomes of a command that finds all as it is to be.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutcomeFlag {
    /// Exit with status 3 if nothing had to change
    #[arg(
        id = "error_unchanged",
        long = "error-unchanged",
        hide_short_help = true
    )]
    pub(crate) is_error: bool,
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

/// Objects that are read: named ones, or all there are.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Objects; all of the namespace if none is given
    #[arg(value_name = "TYPE/NAME")]
    pub(crate) names: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "names")]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "names")]
    pub(crate) selector: Option<String>,
}

/// `--no-headers`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct NoHeaders {
    /// Leave out the header line
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) no_headers: bool,
}

/// Where a MysqlBackup stores: on a volume, in a bucket or on a Storage.
#[derive(Args, Debug, Default)]
pub(crate) struct DestinationFlags {
    /// Volume claim to store on
    #[arg(
        long,
        visible_alias = "volume-claim",
        value_name = "CLAIM",
        group = "store"
    )]
    pub(crate) pvc: Option<String>,
    /// Directory on the volume; its root if unset
    #[arg(long, value_name = "PATH", requires = "pvc")]
    pub(crate) path: Option<String>,
    /// S3 bucket to store in
    #[arg(long, value_name = "BUCKET", group = "store")]
    pub(crate) s3_bucket: Option<String>,
    /// What more there is to say of the bucket.
    #[command(flatten)]
    pub(crate) s3: S3Flags,
    /// Storage of gobackup.io to store on, of any of its types
    #[arg(long, value_name = "NAME", group = "store")]
    pub(crate) storage: Option<String>,
}

/// An S3 bucket beyond its name, `--s3-bucket`, which the command itself defines.
#[derive(Args, Debug, Default)]
pub(crate) struct S3Flags {
    /// Key prefix in the bucket
    #[arg(long, value_name = "PREFIX", requires = "s3_bucket")]
    pub(crate) s3_prefix: Option<String>,
    /// URL of the S3 service; AWS if unset
    #[arg(long, value_name = "URL", requires = "s3_bucket")]
    pub(crate) s3_endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "REGION", requires = "s3_bucket")]
    pub(crate) s3_region: Option<String>,
    /// Secret with accessKeyId and secretAccessKey
    #[arg(long, value_name = "SECRET", requires = "s3_bucket")]
    pub(crate) s3_secret: Option<String>,
    /// Put the bucket into the path instead of the host name
    #[arg(long, requires = "s3_bucket")]
    pub(crate) s3_path_style: bool,
}

/// Concurrency policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Concurrency {
    /// Start beside the others.
    Allow,
    /// Wait for the active run.
    Forbid,
    /// End the active run.
    Replace,
}

/// What makes the dump of a MysqlBackup, and what only one of them can.
#[derive(Args, Debug, Default)]
pub(crate) struct EngineFlags {
    /// What makes the dump; if unset, Native where it is known to dump everything, else Client
    #[arg(long, value_enum, ignore_case = true, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineFlag>,
    /// Dump users, roles and grants too
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) accounts: Option<bool>,
    /// Connections that the engine Native reads with, 1 to 16; the CPUs of the container, at most 4, if unset
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..=16))]
    pub(crate) sessions: Option<i32>,
}

/// What makes the dump of a MysqlBackup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum EngineFlag {
    /// The runner itself.
    Native,
    /// mysqldump or mariadb-dump.
    Client,
}

/// How good runs are verified.
#[derive(Args, Debug, Default)]
pub(crate) struct VerifyFlags {
    /// How good runs are verified: read again, restored into a scratch server, or by replaying the stored binary logs from the backup before
    #[arg(long, value_enum, ignore_case = true, value_name = "MODE")]
    pub(crate) verify: Option<VerifyModeFlag>,
    /// Verify every Nth good run alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) verify_every: Option<i32>,
}

/// Modes of verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum VerifyModeFlag {
    /// Read again.
    Checksum,
    /// Restored.
    Restore,
    /// Replayed.
    Replay,
}

/// Modes of transport security.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum TlsFlag {
    /// None.
    Disabled,
    /// If offered.
    Preferred,
    /// Demanded.
    Required,
    /// Certificate from the CA.
    #[value(name = "VerifyCA")]
    VerifyCa,
    /// And for this host.
    VerifyIdentity,
}
