//! `backup-runner`: dumps a MySQL or MariaDB server as one bounded stream, compresses, encrypts,
//! stores, reads back, prunes, tells and reports.
//!
//! A run is good only if the client ended with status 0, the dump closed with its footer line,
//! the upload was closed, and the stored object was read back with the same length and SHA-256.
//! Everything else is a [`failure::Failure`] with an exit code, a reason, a cause and a remedy.

pub mod artefacts;
pub mod backup;
pub mod cancel;
pub mod clock;
pub mod codec;
pub mod connect;
pub mod context;
pub mod copy;
pub mod download;
pub mod dump_reader;
pub mod failure;
pub mod family;
pub mod fields;
pub mod inspect;
pub mod load;
pub mod manifest;
pub mod memory;
pub mod notify;
pub mod pipeline;
pub mod process;
pub mod report;
pub mod restore;
pub mod retention;
pub mod run;
pub mod scratch;
pub mod scratch_check;
pub mod scrub;
pub mod settings;
pub mod source;
pub mod sql;
pub mod stall;
pub mod store;
pub mod tell;
mod trust;
pub mod verify;
