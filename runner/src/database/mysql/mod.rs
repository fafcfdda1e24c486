//! MySQL and MariaDB.

pub mod connect;
pub(crate) mod decoder;
pub mod dump;
pub mod dump_reader;
pub mod load;
pub(crate) mod native;
pub mod restore;
pub mod restore_check;
pub mod scratch;
pub(crate) mod scratch_sessions;
pub mod source;
pub mod sql;
pub mod target;
