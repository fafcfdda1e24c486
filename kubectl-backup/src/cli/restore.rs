//! Arguments of `restore`.

use clap::{Args, ValueEnum};
use crds::restore::{Definers, RestoreVerify};

use super::shared::{Change, NameFlag, S3Flags, TlsFlag};

/// `restore`.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// A run, or an object for its newest artefact; none with --pvc or --s3-bucket
    #[arg(value_name = "RUN|TYPE/NAME", required_unless_present_any = ["pvc", "s3_bucket"], conflicts_with_all = ["pvc", "s3_bucket"])]
    pub(crate) from: Option<String>,
    /// The newest backup at or before this moment, as in 2026-09-04T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Database (gobackup.io) whose dump in the archive is meant; every one that fits the server if unset
    #[arg(long, value_name = "NAME")]
    pub(crate) from_database: Option<String>,
    /// Storage (gobackup.io) to read the archive from; the first that has it if unset
    #[arg(long, value_name = "NAME")]
    pub(crate) storage: Option<String>,
    /// Where to restore to
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    /// A place without its object
    #[command(flatten)]
    pub(crate) location: LocationFlags,
    /// Secret key with the age identity, as NAME:KEY; that of the object if unset
    #[arg(long, value_name = "SECRET:KEY")]
    pub(crate) decrypt_secret: Option<String>,
    /// Restore even where the target holds data already, and into the server the dump came from
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Make the users, roles and grants of the dump too (MySQL, MariaDB; dumps made with --accounts)
    #[arg(long)]
    pub(crate) accounts: bool,
    /// Up to where binary logs are replayed behind the dump
    #[command(flatten)]
    pub(crate) replay: ReplayFlags,
    /// Only these tables, as DATABASE.TABLE, with rows and triggers (MysqlBackup, native dumps: nothing else is read)
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub(crate) tables: Vec<String>,
    /// Only these databases, separated by commas, with all that is in them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) databases: Vec<String>,
    /// All but these tables and views, as DATABASE.TABLE, separated by commas
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub(crate) exclude_tables: Vec<String>,
    /// Leave out foreign keys to tables that are neither restored nor in the target
    #[arg(long)]
    pub(crate) without_foreign_keys: bool,
    /// What becomes of the definers of views, triggers, routines and events (MySQL, MariaDB): kept if unset
    #[arg(long, value_enum, ignore_case = true, value_name = "WHAT")]
    pub(crate) definers: Option<DefinersFlag>,
    /// Account that becomes the definer of all, as USER@HOST
    #[arg(long, value_name = "USER@HOST")]
    pub(crate) definer: Option<String>,
    /// What to compare with the dump after MySQL or MariaDB has loaded it: rows counted if unset
    #[arg(long, value_enum, ignore_case = true, value_name = "WHAT")]
    pub(crate) verify: Option<VerifyFlag>,
    /// Check only: compare the artefact, look at the target, write nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Name of the Restore; made from the object's if unset
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Image of the runner; the operator's default if unset
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Wait for the end and exit with its result: 0 good, 4 failed, 124 timeout
    #[arg(long)]
    pub(crate) wait: bool,
    /// Show the log as it comes; implies --wait
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Longest time to wait, such as 30m; 0 waits for ever
    #[arg(long, default_value = "0", value_name = "DURATION")]
    pub(crate) timeout: String,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}

/// Up to where binary logs are replayed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Point in time (a MysqlBackup with binary logs)")]
pub(crate) struct ReplayFlags {
    /// Replay binary logs behind the dump: all before this second, as in 2026-09-04T18:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with_all = ["gtid", "before_gtid", "latest"])]
    pub(crate) replay_to: Option<String>,
    /// Replay binary logs up to this transaction, with it
    #[arg(long, value_name = "GTID", conflicts_with_all = ["before_gtid", "latest"])]
    pub(crate) gtid: Option<String>,
    /// Replay binary logs up to this transaction, without it, such as a DROP
    #[arg(long, value_name = "GTID", conflicts_with = "latest")]
    pub(crate) before_gtid: Option<String>,
    /// Replay binary logs as far as they are stored
    #[arg(long)]
    pub(crate) latest: bool,
}

/// `--definers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefinersFlag {
    /// They stay what they are
    Keep,
    /// Whoever restores becomes the definer
    Drop,
    /// All become the account of --definer
    To,
}

impl From<DefinersFlag> for Definers {
    fn from(flag: DefinersFlag) -> Self {
        match flag {
            DefinersFlag::Keep => Self::Keep,
            DefinersFlag::Drop => Self::Drop,
            DefinersFlag::To => Self::To,
        }
    }
}

/// `--verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFlag {
    /// Count the rows of each table
    Counts,
    /// Read all rows back too
    Whole,
    /// Nothing more than what the server says while it loads
    None,
}

impl From<VerifyFlag> for RestoreVerify {
    fn from(flag: VerifyFlag) -> Self {
        match flag {
            VerifyFlag::Counts => Self::Counts,
            VerifyFlag::Whole => Self::Whole,
            VerifyFlag::None => Self::None,
        }
    }
}

/// The server to restore into, or the volume to put the dump onto.
#[derive(Args, Debug)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetFlags {
    /// Server to restore into, as HOST or HOST:PORT
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        required_unless_present = "to_volume",
        requires = "secret"
    )]
    pub(crate) to: Option<String>,
    /// Volume claim to put the dump of one Database (gobackup.io) onto, and the directory on it: dump.rdb of Redis, a new member's data of etcd, else its files
    #[arg(long, value_name = "CLAIM[/DIRECTORY]", conflicts_with_all = ["to", "secret", "database", "tls", "sessions"])]
    pub(crate) to_volume: Option<String>,
    /// Secret with user name and password, as NAME or NAME:USERNAME-KEY:PASSWORD-KEY
    #[arg(long, visible_alias = "credentials-secret", value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// Another name for the dump's one database
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Transport security to the server
    #[arg(long, value_enum, ignore_case = true, value_name = "MODE")]
    pub(crate) tls: Option<TlsFlag>,
    /// Connections that load a dump of MySQL or MariaDB; as many as the container has CPUs, at most 4, if unset. Of PostgreSQL, with a dump of the custom format: sessions of pg_restore into a database that the restore makes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=i64::from(crds::bounds::MAX_SESSIONS)))]
    pub(crate) sessions: Option<i32>,
}

/// A place where artefacts are, after object or cluster are lost.
#[derive(Args, Debug)]
#[command(next_help_heading = "Location")]
pub(crate) struct LocationFlags {
    /// Volume claim the artefacts are on
    #[arg(long, value_name = "CLAIM", conflicts_with = "s3_bucket")]
    pub(crate) pvc: Option<String>,
    /// Directory on the volume; its root if unset
    #[arg(long, value_name = "PATH", requires = "pvc")]
    pub(crate) path: Option<String>,
    /// S3 bucket the artefacts are in
    #[arg(long, value_name = "BUCKET")]
    pub(crate) s3_bucket: Option<String>,
    /// What more there is to say of the bucket.
    #[command(flatten)]
    pub(crate) s3: S3Flags,
    /// Key of the artefact, of the object or below the location; the newest one if unset
    #[arg(long, value_name = "KEY", conflicts_with_all = ["at", "of"])]
    pub(crate) key: Option<String>,
    /// With --pvc or --s3-bucket: whose artefacts are meant where several objects stored there, as NAME or NAMESPACE/NAME
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(crate) of: Option<String>,
}
