//! What `backup-operator`, `backup-runner` and `kubectl backup` agree on: the kinds and their
//! schemas, schedules as Kubernetes reads them, names, labels, conditions, requests and reports.
//!
//! Nothing here touches the network, the clock or the environment: `now` is always a parameter.

pub mod backup;
pub mod binlogs;
pub mod bounds;
pub mod condition;
pub mod contents;
pub mod database;
pub mod download;
pub mod dump_arguments;
pub mod generate;
pub mod gobackup;
pub mod group;
pub mod host;
pub mod labels;
pub mod legacy;
pub mod mounts;
pub mod mysql_backup;
pub mod names;
pub mod near;
pub mod parts;
pub mod plan;
pub mod pod;
pub mod report;
pub mod request;
pub mod restore;
pub mod run;
pub mod run_spec;
pub mod schedule;
pub mod secret;
mod sizes;
pub mod startup;
pub mod status;
pub mod storage;
pub mod text;
pub mod time;
pub mod validate;
pub mod verdict;
pub mod volumes;

pub use mysql_backup::{MysqlBackup, MysqlBackupSpec};
pub use restore::{Restore, RestoreSpec};
pub use status::ScheduleStatus;

/// Version of all programs, from one place.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// API group of the kinds of this product.
pub const GROUP: &str = "batch.isekiro.com";
