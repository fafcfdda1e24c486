//! Arguments of `set`.

use clap::Args;

use super::shared::{
    Change, Concurrency, DestinationFlags, EngineFlags, NameFlag, OutcomeFlag, Targets, TlsFlag,
    VerifyFlags,
};

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
    #[arg(long, value_enum, ignore_case = true, value_name = "POLICY")]
    pub(crate) concurrency_policy: Option<Concurrency>,
    /// Databases to dump, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) databases: Vec<String>,
    /// Where to dump from and to store in, of a MysqlBackup.
    #[command(flatten)]
    pub(crate) places: PlaceFlags,
    /// Image of the backup program; an empty one removes it
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Show the change, then ask
    #[arg(long)]
    pub(crate) diff: bool,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
    /// What if all is as it is to be.
    #[command(flatten)]
    pub(crate) unchanged: OutcomeFlag,
}

/// Server and store of a MysqlBackup. A store replaces the one before.
#[derive(Args, Debug)]
#[command(next_help_heading = "Places of a MysqlBackup")]
pub(crate) struct PlaceFlags {
    /// Host name or address of the server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// TCP port of the server
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Secret with user name and password, as NAME or NAME:USERNAME-KEY:PASSWORD-KEY
    #[arg(long, visible_alias = "credentials-secret", value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// Transport security to the server
    #[arg(long, value_enum, ignore_case = true, value_name = "MODE")]
    pub(crate) tls: Option<TlsFlag>,
    /// What makes the dump.
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    /// Store binary logs too, pulled this often, such as 5m, or continuous, at most 10 seconds behind; an empty one ends it
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) binlogs: Option<String>,
    /// Volume, bucket or Storage.
    #[command(flatten)]
    pub(crate) destination: DestinationFlags,
    /// Verification.
    #[command(flatten)]
    pub(crate) verify: VerifyFlags,
}

impl PlaceFlags {
    /// The first flag that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let rows = [
            ("--host", self.host.is_some()),
            ("--port", self.port.is_some()),
            ("--secret", self.secret.is_some()),
            ("--tls", self.tls.is_some()),
            ("--engine", self.engine.engine.is_some()),
            ("--accounts", self.engine.accounts.is_some()),
            ("--sessions", self.engine.sessions.is_some()),
            ("--binlogs", self.binlogs.is_some()),
            ("--verify", self.verify.verify.is_some()),
            ("--verify-every", self.verify.verify_every.is_some()),
            ("--pvc", self.destination.pvc.is_some()),
            ("--s3-bucket", self.destination.s3_bucket.is_some()),
            ("--storage", self.destination.storage.is_some()),
        ];
        rows.into_iter().find(|(_, set)| *set).map(|(flag, _)| flag)
    }
}
