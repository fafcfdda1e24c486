//! A storage of the plan, open, and what it holds of a run.

use std::sync::Arc;

use crate::store::Store;

/// An open storage.
pub(crate) struct Target {
    /// Name of the Storage.
    pub(crate) name: String,
    /// Archives to keep; 0 means all.
    pub(crate) keep: u32,
    /// Directory or key prefix.
    pub(crate) path: String,
    /// The store.
    pub(crate) store: Arc<dyn Store>,
}

/// A storage that holds the run's archive.
pub(crate) struct Delivered {
    /// Name of the Storage.
    pub(crate) name: String,
    /// Key of the archive.
    pub(crate) key: String,
    /// Archives to keep; 0 means all.
    pub(crate) keep: u32,
    /// Directory or key prefix.
    pub(crate) path: String,
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// It was read back: only then anything older goes because of it.
    pub(crate) read_back: bool,
}

impl Target {
    /// An archive of this key on it, which is read back.
    pub(crate) fn holds(&self, key: &str) -> Delivered {
        Delivered {
            name: self.name.clone(),
            key: key.to_owned(),
            keep: self.keep,
            path: self.path.clone(),
            store: self.store.clone(),
            read_back: true,
        }
    }
}
