//! The archives of a Backup that are meant, each on a storage that has it, and their bytes.

use crds::report::Reason;
use std::io::Read;

use crds::run::Artefact;

use crate::artefact::{Meant, Verdicts};
use crate::backup::record::Record;
use crate::backup::retention;
use crate::backup::target::{Delivered, Target};
use crate::context::Context;
use crate::failure::Failure;
use crate::settings::options::Choice;

/// An archive of this Backup and the storage it is on.
pub(crate) struct Found {
    /// The storage.
    pub(crate) on: Delivered,
    /// What was said of it when it was stored.
    pub(crate) record: Record,
    /// A verification of it on this storage failed.
    pub(crate) failed: bool,
}

/// As a list has it.
pub(crate) fn listed(found: &Found) -> Artefact {
    Artefact {
        key: found.record.key.clone(),
        size: i64::try_from(found.record.stored_bytes).unwrap_or(i64::MAX),
        sha256: found.record.stored_sha256.clone(),
        read_back: !found.record.not_read_back,
        storage: Some(found.on.name.clone()),
    }
}

/// The archive that is meant, on each storage that has it.
///
/// # Errors
/// No storage has it, or one refuses.
pub(crate) fn choose(
    context: &Context,
    targets: &[Target],
    choice: &Choice,
    verdicts: Verdicts,
) -> Result<Vec<Found>, Failure> {
    let wanted = Meant::new(choice)?;
    let mut meant = vec![];
    for target in targets {
        let store = target.store.as_ref();
        let all = retention::list(context, store, &target.path)?;
        let Some(chosen) = wanted.among(&all, verdicts) else {
            continue;
        };
        chosen.tell(&context.reporter, &format!("storage {}: ", target.name));
        let record = retention::record(store, &chosen.stored.manifest)?;
        meant.extend(record.map(|record| Found {
            on: target.holds(&record.key),
            record,
            failed: chosen.stored.failed,
        }));
    }
    // Of «the newest» only storages count that have it.
    let newest = meant
        .iter()
        .map(|f| f.record.run.clone())
        .max_by_key(|run| {
            meant
                .iter()
                .filter(|f| f.record.run == *run)
                .map(|f| f.record.started_at.clone())
                .max()
        });
    meant.retain(|f| Some(&f.record.run) == newest.as_ref());
    if meant.is_empty() {
        let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
        return Err(Failure::new(
            Reason::ArtefactNotFound,
            format!(
                "no archive of this Backup that fits is on {}: list what is stored: kubectl backup list",
                names.join(", ")
            ),
        ));
    }
    Ok(meant)
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
