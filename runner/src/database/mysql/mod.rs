//! MySQL and MariaDB.

pub mod connect;
pub mod dump;
pub mod dump_reader;
pub mod load;
pub mod restore;
pub mod restore_check;
pub mod scratch;
pub mod source;
pub mod sql;
pub mod target;
