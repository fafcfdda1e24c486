//! The actions that make no backup: List, Prune, Probe, and Verify by checksum.

use crds::run::Artefact;

use crate::artefact::{self, Verdicts};
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::manifest::{self, Manifest};
use crate::mysql_backup::{artefacts, backup, dumps};
use crate::notify::outcome;
use crate::retention;

/// One log line for each artefact of the object, oldest first, with `"event":"artefact"`. Manifests
/// are read one at a time: none is kept.
///
/// # Errors
/// The store refuses.
pub fn list(context: &Context) -> Result<(), Failure> {
    let store = context.open_store()?;
    let identity = &context.settings.identity;
    let found = dumps::list(store.as_ref(), identity, context.clock.now().into())?;
    let mut artefacts = vec![];
    for available in &found {
        context.check()?;
        let Some(m) = manifest::read(store.as_ref(), &available.manifest)? else {
            continue;
        };
        tracing::info!(
            event = "artefact",
            key = m.key,
            run = m.run,
            trigger = m.trigger,
            startedAt = m.started_at,
            rawBytes = m.raw_bytes,
            storedBytes = m.stored_bytes,
            storedSha256 = m.stored_sha256,
            tables = m.tables.len() as u64,
            rows = m.tables.iter().map(|t| t.rows).sum::<u64>(),
            encryption = m.encryption,
            readBack = m.read_back,
        );
        artefacts.push(listed(&m));
    }
    artefacts.reverse();
    let message = format!(
        "{} artefacts with {} bytes in {}",
        artefacts.len(),
        artefact::bytes(&artefacts),
        store.describe()
    );
    artefact::report_listed(context, artefacts, message);
    Ok(())
}

fn listed(m: &Manifest) -> Artefact {
    Artefact {
        key: m.key.clone(),
        size: i64::try_from(m.stored_bytes).unwrap_or(i64::MAX),
        sha256: m.stored_sha256.clone(),
        read_back: m.read_back,
        storage: None,
    }
}

/// Applies retention now, or removes all; it says, one log line each with `"event":"retention"`, what
/// goes and why. With `dryRun` nothing else is done.
///
/// # Errors
/// The store refuses.
pub fn prune(context: &Context) -> Result<(), Failure> {
    let options = context.settings.options()?;
    let store = context.open_store()?;
    context.reporter.phase("Pruning");
    let rules = context.settings.retention.clone().unwrap_or_default();
    let mut stored = dumps::Dumps::new(context, store.as_ref());
    let outcome = retention::apply(context, &mut stored, &retention::asked(&options, &rules))?;
    if options.all && !options.dry_run && outcome.stopped.is_none() {
        let directory = context.settings.identity.directory();
        outcome::forget(store.as_ref(), &directory)?;
        retention::remove_index(store.as_ref(), &directory)?;
        backup::clean(context, store.as_ref(), true)?;
    }
    let what = format!("artefacts {{}} in {}", store.describe());
    retention::report_pruned(context, &options, &outcome, &what);
    outcome.stopped.map_or(Ok(()), Err)
}

/// Logs in to the source and writes, reads and removes a small object at the destination.
///
/// # Errors
/// One of them can't be used.
pub fn probe(context: &Context) -> Result<(), Failure> {
    let source = context.settings.source()?;
    let store = context.open_store()?;
    let databases = backup::probe(context, source)?;
    context.reporter.phase("Storing");
    artefact::probe(
        context,
        store.as_ref(),
        &context.settings.identity.directory(),
    )?;
    let message = format!(
        "user {:?} sees {databases} databases; {} can be written, read and removed from",
        source.username,
        store.describe()
    );
    context.reporter.update(|r| r.message = message);
    Ok(())
}

/// Re-reads a stored artefact and compares it with its manifest.
///
/// # Errors
/// It differs, is gone, or the store refuses.
pub fn verify(context: &Context) -> Result<(), Failure> {
    let options = context.settings.options()?;
    let store = context.open_store()?;
    context.reporter.phase("ReadingBack");
    let manifest = artefacts::choose(context, store.as_ref(), &options.choice, Verdicts::Ignore)?;
    context
        .reporter
        .update(|r| r.artefacts = vec![listed(&manifest)]);
    let restore = options.mode.as_deref() == Some("Restore");
    let compared = artefacts::check(store.as_ref(), &manifest).and_then(|()| {
        if restore {
            crate::mysql_backup::restore_check::verify(context, store.as_ref(), &manifest)
        } else {
            Ok(format!(
                "{} bytes of {} have their SHA-256",
                manifest.stored_bytes, manifest.key
            ))
        }
    });
    // What somebody named by key may be another object's: its keeper's business.
    if manifest.belongs_to(&context.settings.identity) {
        artefact::keep(
            context,
            store.as_ref(),
            &manifest.key,
            (&manifest.key, &manifest.stored_sha256),
            artefact::mode(restore),
            compared.as_ref().map(|_| ()),
        );
    }
    let differs = compared.as_ref().is_err_and(artefact::differs);
    artefact::report_verified(context, restore, compared, differs)
}
