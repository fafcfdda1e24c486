//! API groups of the kinds that gobackup-operator had; that of our own is [`crate::GROUP`].

/// API group of Backup, Database, Storage and the kinds of 2024.
pub const GROUP: &str = "gobackup.io";
/// Group of `PostgreSQL` in 2024.
pub const DATABASE_GROUP: &str = "database.gobackup.io";
/// Group of `S3` in 2024.
pub const STORAGE_GROUP: &str = "storage.gobackup.io";
/// The one served version.
pub const VERSION: &str = "v1";
/// Group and version.
pub const API_VERSION: &str = "gobackup.io/v1";
