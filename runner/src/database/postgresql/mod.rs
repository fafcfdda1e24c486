//! PostgreSQL.

pub mod dump;
pub mod own_formats;
pub mod plain_dump;
pub mod restore;
pub mod restore_check;
