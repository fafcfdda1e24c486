//! The storages of a plan as stores of the runner.

use crds::plan::Storage;
use crds::report::EndpointKind;
use crds::request::Action;
use secrecy::SecretString;

use crate::artefact::{on_storage, tell_unreachable};
use crate::backup::record::Archives;
use crate::backup::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::settings::plan::BackupSettings;
use crate::store::leftovers;
use crate::store::open::connect;

/// Opens every storage before anything is dumped. One that can't be used fails the run in the end,
/// but does not keep the archive from the others.
///
/// # Errors
/// None of them can be used.
pub(crate) fn open(
    context: &Context,
    backup: &BackupSettings,
) -> Result<(Vec<Target>, Vec<Failure>), Failure> {
    each(context, backup, one)
}

/// Opens every storage to read from it alone: nothing on it is changed.
///
/// # Errors
/// None of them can be used.
pub(crate) fn reach(
    context: &Context,
    backup: &BackupSettings,
) -> Result<(Vec<Target>, Vec<Failure>), Failure> {
    each(context, backup, target)
}

fn each(
    context: &Context,
    backup: &BackupSettings,
    open: fn(&Context, &Storage<SecretString>) -> Result<Target, Failure>,
) -> Result<(Vec<Target>, Vec<Failure>), Failure> {
    let (mut targets, mut lost) = (vec![], vec![]);
    for storage in &backup.plan.storages {
        let opened = open(context, storage);
        context.reporter.endpoint(
            EndpointKind::Storage,
            &storage.name,
            opened.as_ref().map(|_| ()),
        );
        match opened {
            Ok(target) => targets.push(target),
            Err(e) => {
                tell_unreachable(context, Some(&storage.name), &e);
                lost.push(e);
            }
        }
    }
    if targets.is_empty() {
        return Err(Failure::all(lost));
    }
    Ok((targets, lost))
}

/// Opens one storage.
///
/// # Errors
/// It can't be used.
pub(crate) fn one(context: &Context, storage: &Storage<SecretString>) -> Result<Target, Failure> {
    let target = target(context, storage)?;
    // Who only looks changes nothing.
    if !matches!(context.settings.action, Action::Backup | Action::Prune) {
        return Ok(target);
    }
    clean(context, &target, false).map_err(|e| on_storage(Some(&storage.name), e))?;
    Ok(target)
}

/// Removes what dead attempts left on a storage; with `all` whatever this Backup's attempts left.
/// Gives the number.
///
/// # Errors
/// The store refuses.
pub(crate) fn clean(context: &Context, target: &Target, all: bool) -> Result<u64, Failure> {
    let place = Archives {
        context,
        path: &target.path,
        keep: target.keep,
    };
    let removed = leftovers::clean(
        target.store.as_ref(),
        (&context.attempt(), context.clock.elapsed()),
        &place,
        all,
    )?;
    if !all && !removed.manifests.is_empty() {
        context.reporter.warn(&format!(
            "Storage {}: records without their archives were removed, as a prune that was ended half-way leaves them: {}",
            target.name,
            removed.manifests.join(", ")
        ));
    }
    Ok(removed.count())
}

fn target(context: &Context, storage: &Storage<SecretString>) -> Result<Target, Failure> {
    let (store, path) = connect(storage, context.attempt(), &context.reporter)
        .map_err(|e| on_storage(Some(&storage.name), e))?;
    Ok(Target {
        name: storage.name.clone(),
        keep: storage.keep,
        path,
        store,
    })
}
