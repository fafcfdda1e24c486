//! The kinds of gobackup.io: how a Backup of any generation, its Databases and its Storages become
//! one plan that the engine schedules and the runner carries out. PURE.
//!
//! [`fields::merge`] finds the fields wherever a generation had them, [`resolve::wanted`] names
//! the objects to look up, [`resolve::resolve`] makes the plan, [`crate::plan::with_files`] turns its
//! secrets into mounted files, [`pod::files`] mounts them. [`alone`] judges one object by itself.

pub mod alone;
pub mod archive;
pub mod databases;
pub mod definition;
pub mod destination;
pub mod engine;
pub mod fields;
pub mod pod;
pub mod resolve;
pub mod s3_providers;
pub mod storages;
pub mod verify;
mod words;

pub use databases::Outcome;
pub use pod::{Files, files};
pub use resolve::{
    ObjectKey, References, Resolved, Unresolved, endpoint, resolve, stored, wanted, wanted_to_read,
};
