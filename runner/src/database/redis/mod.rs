//! Redis and Valkey.

pub mod crc64;
pub mod dump;
pub mod rdb;
pub mod restore;
pub mod restore_check;
pub mod server;
