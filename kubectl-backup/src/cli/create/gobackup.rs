//! Arguments of `create backup`, `create database` and `create storage`.

use clap::Args;

use crate::cli::shared::{Change, NameFlag};

/// `create backup`.
#[derive(Args, Debug)]
pub(crate) struct CreateBackup {
    /// Name of the object, at most 52 characters
    pub(crate) name: String,
    /// Databases to dump, names of Database objects separated by commas
    #[arg(
        long,
        visible_alias = "databases",
        value_name = "NAMES",
        value_delimiter = ',',
        required = true
    )]
    pub(crate) database: Vec<String>,
    /// Storages to keep the archive on, names of Storage objects separated by commas
    #[arg(
        long,
        visible_alias = "storages",
        value_name = "NAMES",
        value_delimiter = ',',
        required = true
    )]
    pub(crate) storage: Vec<String>,
    /// Cron expression of five fields, or @daily and the like; runs once, now, if unset
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub(crate) schedule: Option<String>,
    /// IANA name of the schedule's zone; UTC if unset
    #[arg(
        long,
        value_name = "ZONE",
        allow_hyphen_values = true,
        requires = "schedule"
    )]
    pub(crate) time_zone: Option<String>,
    /// Create it suspended
    #[arg(long, requires = "schedule")]
    pub(crate) suspend: bool,
    /// How the archive is compressed: tgz, zst, xz and more; not at all if unset
    #[arg(long, value_name = "TYPE")]
    pub(crate) compression: Option<String>,
    /// Archives to keep on each storage
    #[arg(long, value_name = "COUNT")]
    pub(crate) keep: Option<u32>,
    /// Image with the databases' clients, instead of the runner's own; it needs no runner
    #[arg(long, value_name = "IMAGE")]
    pub(crate) client_image: Option<String>,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}

/// `create database`.
#[derive(Args, Debug)]
pub(crate) struct CreateDatabase {
    /// Name of the object
    pub(crate) name: String,
    /// Kind of server
    #[arg(long = "type", value_name = "TYPE", value_parser = ["postgresql", "mysql", "mariadb", "mongodb", "redis", "mssql", "influxdb", "influxdb2", "etcd"])]
    pub(crate) type_: String,
    /// Host name or address of the server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// TCP port of the server
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Name of the database
    #[arg(long, value_name = "NAME", conflicts_with = "all_databases")]
    pub(crate) database: Option<String>,
    /// Dump every database of the server
    #[arg(long)]
    pub(crate) all_databases: bool,
    /// Secret with user name and password, as NAME or NAME:USERNAME-KEY:PASSWORD-KEY
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// Any other setting, as KEY=VALUE of spec.config; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}

/// `create storage`.
#[derive(Args, Debug)]
pub(crate) struct CreateStorage {
    /// Name of the object
    pub(crate) name: String,
    /// Kind of service
    #[arg(long = "type", value_name = "TYPE", value_parser = ["local", "ftp", "sftp", "scp", "webdav", "s3", "oss", "gcs", "azure", "r2", "spaces", "b2", "cos", "us3", "kodo", "bos", "minio", "obs", "tos", "upyun"])]
    pub(crate) type_: String,
    /// Bucket
    #[arg(long, value_name = "BUCKET")]
    pub(crate) bucket: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// URL of the service
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Directory or key prefix
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Archives to keep; all if unset
    #[arg(long, value_name = "COUNT")]
    pub(crate) keep: Option<u32>,
    /// Volume claim of type local
    #[arg(long, value_name = "CLAIM")]
    pub(crate) pvc: Option<String>,
    /// Secret with the keys, as NAME or NAME:FIRST-KEY:SECOND-KEY (id and key of a bucket, user and password of a server)
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret: Option<String>,
    /// Any other setting, as KEY=VALUE of spec.config; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Dry run and output.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Who writes it.
    #[command(flatten)]
    pub(crate) writer: NameFlag,
}
