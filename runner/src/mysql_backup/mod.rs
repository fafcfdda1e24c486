//! A MysqlBackup: one dump of a MySQL or MariaDB server, streamed to one destination.

pub mod actions;
pub mod artefacts;
pub mod backup;
mod base;
pub mod binlogs;
pub mod dumps;
pub mod manifest;
mod replay;
mod replay_check;
pub mod restore;
pub mod restore_check;
pub mod stored;
