//! Kinds of gobackup-operator before `Database` and `Storage` (2024 to 2025). What they took
//! applies unchanged; they resolve into the same plan.

pub mod backup_model;
pub mod cron_backup;
pub mod postgresql;
pub mod s3;

pub use backup_model::{BackupModel, BackupModelSpec};
pub use cron_backup::CronBackup;
pub use postgresql::{PostgreSql, PostgreSqlSpec};
pub use s3::{S3, S3Spec};
