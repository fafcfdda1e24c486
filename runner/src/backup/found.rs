//! An archive that is meant, on a storage that has it, and its bytes.

use crds::report::Reason;
use std::io::Read;

use crds::run::Artefact;

use crate::backup::record::Record;
use crate::backup::target::Target;
use crate::context::Context;
use crate::failure::Failure;

/// An archive and the storage it is on.
#[derive(Clone)]
pub(crate) struct Found {
    /// The storage.
    pub(crate) on: Target,
    /// What was said of it when it was stored.
    pub(crate) record: Record,
}

/// As a report has it.
pub(crate) fn listed(found: &Found) -> Artefact {
    Artefact {
        key: found.record.key.clone(),
        size: i64::try_from(found.record.stored_bytes).unwrap_or(i64::MAX),
        sha256: found.record.stored_sha256.clone(),
        read_back: !found.record.not_read_back,
        storage: Some(found.on.name.clone()),
    }
}

fn gone(found: &Found) -> Failure {
    Failure::new(
        Reason::ArtefactGone,
        format!(
            "{} has a record but is not there: something else removed it",
            found.record.key
        ),
    )
}

/// The archive's bytes, its parts one after another.
///
/// # Errors
/// It is gone, or the storage refuses.
pub(crate) fn whole_reader(found: &Found) -> Result<Box<dyn Read + Send>, Failure> {
    let mut whole: Box<dyn Read + Send> = Box::new(std::io::empty());
    for key in found.record.keys() {
        let part = found.on.store.open(&key)?.ok_or_else(|| gone(found))?;
        whole = Box::new(whole.chain(part));
    }
    Ok(whole)
}

pub(crate) fn identity(context: &Context) -> Result<Option<String>, Failure> {
    let Some(path) = &context.settings.identity_file else {
        return Ok(None);
    };
    std::fs::read_to_string(path).map(Some).map_err(|e| {
        Failure::settings(format!(
            "the age identity {} can't be read: {e}",
            path.display()
        ))
    })
}
