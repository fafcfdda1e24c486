//! InfluxDB 2.

pub mod dump;
pub mod manifest;
