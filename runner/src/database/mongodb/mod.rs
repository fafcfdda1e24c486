//! MongoDB.

pub mod bson;
pub mod dump;
