//! A storage of the plan, open, and what it holds of a run.

use std::sync::Arc;

use crate::context::Context;
use crate::settings::plan::BackupSettings;
use crate::store::Store;

/// An open storage.
#[derive(Clone)]
pub(crate) struct Target {
    /// Name of the Storage.
    pub(crate) name: String,
    /// StoredArchives to keep; 0 means all.
    pub(crate) keep: u32,
    /// Directory or key prefix.
    pub(crate) path: String,
    /// The store.
    pub(crate) store: Arc<dyn Store>,
}

/// A storage that holds the run's archive.
pub(crate) struct Delivered {
    /// The storage.
    pub(crate) target: Target,
    /// Key of the archive.
    pub(crate) key: String,
    /// It was read back: only then anything older goes because of it.
    pub(crate) read_back: bool,
}

/// The archives of a Backup on one storage.
pub(crate) struct StoredArchives<'a> {
    pub(crate) context: &'a Context,
    pub(crate) backup: &'a BackupSettings,
    pub(crate) target: Target,
}

impl<'a> StoredArchives<'a> {
    /// Those on each of these storages.
    pub(crate) fn on(
        context: &'a Context,
        backup: &'a BackupSettings,
        targets: Vec<Target>,
    ) -> Vec<Self> {
        let on = |target| Self {
            context,
            backup,
            target,
        };
        targets.into_iter().map(on).collect()
    }
}
