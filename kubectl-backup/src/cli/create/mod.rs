//! Arguments of `create`.

mod gobackup;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{
    Change, Concurrency, DestinationFlags, EngineFlags, NameFlag, TlsFlag, VerifyFlags,
};

pub(crate) use gobackup::{CreateBackup, CreateDatabase, CreateStorage};

/// `create`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Create {
    /// Which kind.
    #[command(subcommand)]
    pub(crate) kind: Option<CreateKind>,
    /// File with the objects to create; - for stdin
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) filename: Option<PathBuf>,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}

/// Kinds that can be created by flags.
#[derive(Subcommand, Debug)]
pub(crate) enum CreateKind {
    /// Create a MysqlBackup: a scheduled backup of a MySQL or MariaDB server
    #[command(visible_aliases = ["mysqlbackup", "mbk"])]
    Mysql(Box<CreateMysql>),
    /// Create a Backup of gobackup.io: several databases in one archive
    Backup(Box<CreateBackup>),
    /// Create a Database of gobackup.io: a server that Backups dump
    Database(Box<CreateDatabase>),
    /// Create a Storage of gobackup.io: a place where archives are kept
    Storage(Box<CreateStorage>),
}

/// `create mysql`.
#[derive(Args, Debug)]
pub(crate) struct CreateMysql {
    /// Name of the object, at most 52 characters
    #[arg(required_unless_present = "interactive")]
    pub(crate) name: Option<String>,
    /// Ask for everything, then show the object and the equivalent command
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Cron expression of five fields, @daily and the like, or @every 6h
    #[arg(
        long,
        value_name = "EXPRESSION",
        allow_hyphen_values = true,
        required_unless_present = "interactive"
    )]
    pub(crate) schedule: Option<String>,
    /// IANA name of the schedule's zone; UTC if unset
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Create it suspended
    #[arg(long)]
    pub(crate) suspend: bool,
    /// Start a first run at once
    #[arg(long)]
    pub(crate) run_now: bool,
    /// What to do when a slot comes due while a run is active
    #[arg(long, value_enum, ignore_case = true, value_name = "POLICY")]
    pub(crate) concurrency_policy: Option<Concurrency>,
    /// Labels, as KEY=VALUE; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// Database.
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Store.
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Pod.
    #[command(flatten)]
    pub(crate) pod: PodFlags,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}

/// Where to dump from.
#[derive(Args, Debug)]
#[command(next_help_heading = "Database")]
pub(crate) struct SourceFlags {
    /// Host name or address of the server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// TCP port of the server; 3306 if unset
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Secret with user name and password, as NAME or NAME:USERNAME-KEY:PASSWORD-KEY
    #[arg(long, visible_alias = "credentials-secret", value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// Databases to dump, separated by commas; all if unset
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) databases: Vec<String>,
    /// Tables to leave out, as DATABASE.TABLE, separated by commas
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub(crate) exclude_tables: Vec<String>,
    /// Transport security to the server
    #[arg(long, value_enum, ignore_case = true, value_name = "MODE")]
    pub(crate) tls: Option<TlsFlag>,
    /// What makes the dump.
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    /// Store binary logs too, pulled this often, such as 5m, or continuous, at most 10 seconds behind, so that any moment can be restored to
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) binlogs: Option<String>,
    /// Variable of the backup program, as NAME=VALUE; can be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
}

/// Where to store.
#[derive(Args, Debug)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreFlags {
    /// Volume, bucket or Storage.
    #[command(flatten)]
    pub(crate) destination: DestinationFlags,
    /// What to keep: keep-last=7,keep-daily=14,keep-weekly=8,keep-monthly=12,keep-hourly=24,max-age=720h
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub(crate) retention: Vec<String>,
    /// zstd, gzip or none, with a level as in zstd:9
    #[arg(long, value_name = "CODEC[:LEVEL]")]
    pub(crate) compression: Option<String>,
    /// age public key to encrypt to; can be repeated
    #[arg(long, value_name = "AGE1...")]
    pub(crate) encrypt_to: Vec<String>,
    /// Secret key with age public keys, as NAME:KEY
    #[arg(long, value_name = "SECRET:KEY")]
    pub(crate) encrypt_secret: Option<String>,
    /// Verification.
    #[command(flatten)]
    pub(crate) verify: VerifyFlags,
}

/// What the pod looks like.
#[derive(Args, Debug)]
#[command(next_help_heading = "Pod")]
pub(crate) struct PodFlags {
    /// Image of the backup program; the product's runner if unset
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Image with the database's clients, instead of the runner's own; it needs no runner
    #[arg(long, value_name = "IMAGE", conflicts_with = "image")]
    pub(crate) client_image: Option<String>,
    /// Labels a node must have, as KEY=VALUE, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(crate) node_selector: Vec<String>,
    /// Service account of the pod
    #[arg(long, value_name = "NAME")]
    pub(crate) service_account: Option<String>,
}
