//! Admission of MysqlBackups: defaults, checks, and the certificate it is served with.

pub mod admit;
