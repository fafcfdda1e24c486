//! Arguments of `binlog`.

use clap::Args;

/// `binlog`.
#[derive(Args, Debug)]
pub(crate) struct Binlog {
    /// A MysqlBackup, or a run of it
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: String,
    /// Transactions from this second of the server's clock on, as in 2026-09-04T17:00:00Z; from a run's start on if unset
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Transactions before this second; all that is stored if unset
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Only transactions that change this database, or have a statement given in it or naming it
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Only transactions that change this table, or have a statement naming it
    #[arg(long, value_name = "DATABASE.TABLE", conflicts_with = "database")]
    pub(crate) table: Option<String>,
    /// Secret key with the age identity, as NAME:KEY; that of the object if unset
    #[arg(long, value_name = "SECRET:KEY")]
    pub(crate) decrypt_secret: Option<String>,
    /// Image of the runner in the pod; the operator's default if unset
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Longest time to wait for the pod
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub(crate) timeout: String,
}
