//! `backup-runner`: dumps a MySQL or MariaDB server as one bounded stream, compresses, encrypts,
//! stores, reads back, prunes, tells and reports.
//!
//! A run is good only if the client ended with status 0, the dump closed with its footer line,
//! the upload was closed, and the stored object was read back with the same length and SHA-256.
//! Everything else is a [`failure::Failure`] with an exit code, a reason, a cause and a remedy.

pub mod backup;
pub mod cancel;
pub mod clock;
pub mod context;
pub mod copy;
pub mod database;
pub mod download;
pub mod failure;
pub mod fields;
pub mod gobackup;
pub mod memory;
pub mod mysql_backup;
pub mod notify;
pub mod process;
pub mod report;
pub mod retention;
pub mod run;
pub mod scrub;
pub mod settings;
pub mod stall;
pub mod store;
pub mod stream;
mod trust;
