//! The gobackup.io family: how a Backup of any generation, its Databases and its Storages become
//! one plan that the engine schedules and the runner carries out. PURE.

pub mod definition;
