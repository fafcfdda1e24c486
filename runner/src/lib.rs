//! `backup-runner`: the program of every run. It dumps databases, compresses, encrypts, stores, reads
//! back, prunes, tells and reports; and it lists, verifies, restores and sends what is stored.
//!
//! A folder a kind of object ([`mysql_backup`], [`backup`]), one a type of database ([`database`]), and
//! [`gobackup`] for runs of the real program; what they share stands below them, so that imports run
//! one way: [`artefact`], [`retention`], [`notify`], [`context`], [`store`], [`settings`], [`stream`].
//!
//! A run is good only if the client ended with status 0, the dump closed with its footer line,
//! the upload was closed, and the stored object was read back with the same length and SHA-256.
//! Everything else is a [`failure::Failure`] with an exit code, a reason, a cause and a remedy.

pub mod artefact;
pub mod backup;
pub mod cancel;
pub mod clock;
mod contents;
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
