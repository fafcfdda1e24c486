//! Arguments of `download`.

use std::path::PathBuf;

use clap::Args;

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
    /// The server's own binary logs that are stored, as plain files under the server's names, instead of a dump
    #[arg(long, conflicts_with_all = ["raw", "storage", "key"])]
    pub(crate) binlogs: bool,
    /// Only binary logs with transactions from this second of the server's clock on, as in 2026-09-04T17:00:00Z
    #[arg(long, value_name = "TIME", requires = "binlogs")]
    pub(crate) from: Option<String>,
    /// Only binary logs with transactions before this second
    #[arg(long, value_name = "TIME", requires = "binlogs")]
    pub(crate) to: Option<String>,
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
