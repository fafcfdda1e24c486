//! The dumps of a MysqlBackup at its destination, and the one that is meant.

use std::sync::Arc;

use crate::artefact::{self, Verdicts};
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::settings::options::Choice;
use crate::store::Store;

/// The dumps of the run's object at its destination.
pub struct StoredDumps<'a> {
    pub(crate) context: &'a Context,
    pub(crate) store: Arc<dyn Store>,
}

impl<'a> StoredDumps<'a> {
    /// Opens it.
    ///
    /// # Errors
    /// It can't be used.
    pub fn open(context: &'a Context) -> Result<Self, Failure> {
        let store = context.open_store()?;
        Ok(Self { context, store })
    }

    /// The manifest of the artefact that is meant. One that is named by its key may be another object's.
    ///
    /// # Errors
    /// There is none, or the store refuses.
    pub fn choose(&self, choice: &Choice) -> Result<Manifest, Failure> {
        let (meant, lost) = artefact::choose(std::slice::from_ref(self), choice, Verdicts::Heed)?;
        let manifest = meant.into_iter().next().map(|m| m.artefact);
        manifest.ok_or_else(|| Failure::all(lost))
    }
}
