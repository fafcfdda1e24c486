//! etcd.

pub mod bolt;
pub mod dump;
pub mod member;
pub mod restore_check;
