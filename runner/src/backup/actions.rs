//! What is asked of a Backup's archives beside making one: List, Verify, Prune and Probe.

use std::collections::BTreeMap;
use std::io::Read;

use crds::report::{EndpointKind, Reason};
use crds::run::Artefact;

use crate::artefact::{self, Verdicts, differs, report_listed, report_verified};
use crate::backup::found::{Found, choose, identity, listed, whole_reader};
use crate::backup::open::{self, Closed};
use crate::backup::record::{self, Record};
use crate::backup::target::Target;
use crate::backup::{restore_check, retention, storages};
use crate::context::Context;
use crate::failure::Failure;
use crate::retention::{Outcome, asked, report_pruned};
use crate::settings::options::Options;
use crate::settings::plan::BackupSettings;
use crate::stream::checksum::{self, Stored};

/// Opens what can be opened; what can't is told, and fails the action at its end.
fn targets(
    context: &Context,
    backup: &BackupSettings,
) -> Result<(Vec<Target>, Option<Failure>), Failure> {
    context.settings.check()?;
    let (targets, lost) = storages::open(context, backup)?;
    Ok((targets, (!lost.is_empty()).then(|| Failure::all(lost))))
}

fn end(lost: Option<Failure>) -> Result<(), Failure> {
    lost.map_or(Ok(()), Err)
}

/// One log line for each archive on each storage, oldest first, with `"event":"artefact"`. One without
/// its bytes is none.
///
/// # Errors
/// A storage can't be used or refuses: the others are listed all the same.
pub(crate) fn list(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    let (targets, lost) = targets(context, backup)?;
    let mut failures: Vec<Failure> = lost.into_iter().collect();
    let (mut all, mut words) = (vec![], vec![]);
    for target in &targets {
        context.check()?;
        match list_one(context, target) {
            Ok(found) => {
                let bytes = artefact::bytes(found.iter().map(|(_, a)| a));
                words.push(format!(
                    "{} archives with {bytes} bytes on storage {}",
                    found.len(),
                    target.name
                ));
                all.extend(found);
            }
            Err(e) => failures.push(named("Storage", &target.name, e)),
        }
    }
    all.sort_by(|(a, _), (b, _)| b.cmp(a));
    let all = all.into_iter().map(|(_, a)| a).collect();
    report_listed(context, all, words.join("; "));
    end((!failures.is_empty()).then(|| Failure::all(failures)))
}

/// Archives on one storage, oldest first, with the starts of their runs. Records are read one at a time.
fn list_one(context: &Context, target: &Target) -> Result<Vec<(String, Artefact)>, Failure> {
    let store = target.store.as_ref();
    let mut listings = retention::Listings::new(store);
    let mut found = vec![];
    for available in retention::list(context, store, &target.path)? {
        if !listings.have(&available.facts)? {
            continue;
        }
        let Some(record) = retention::record(store, &available.manifest)? else {
            continue;
        };
        let f = Found {
            on: target.holds(&record.key),
            record,
            failed: available.failed,
        };
        tracing::info!(
            event = "artefact",
            storage = target.name,
            key = f.record.key,
            run = f.record.run,
            startedAt = f.record.started_at,
            storedBytes = f.record.stored_bytes,
            storedSha256 = f.record.stored_sha256,
            files = f.record.files.len() as u64,
        );
        let artefact = listed(&f);
        found.push((f.record.started_at, artefact));
    }
    Ok(found)
}

/// Re-reads an archive on every storage that has it: the stored bytes are compared with the
/// record, and where the key is at hand every file in it too. With mode Restore its dumps are then
/// restored into scratch servers.
///
/// # Errors
/// One differs, is gone, or its storage refuses.
pub(crate) fn verify(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    let options = context.settings.options()?;
    let restore = options.mode.as_deref() == Some("Restore");
    let (targets, lost) = targets(context, backup)?;
    context.reporter.phase("ReadingBack");
    let meant = choose(context, &targets, &options.choice, Verdicts::Ignore)?;
    context
        .reporter
        .update(|r| r.artefacts = meant.iter().map(listed).collect());
    let mut words = vec![];
    let mut wrong = vec![];
    for found in &meant {
        context.check()?;
        let outcome = whole(context, backup, found);
        keep(context, found, "Checksum", outcome.as_ref().map(|_| ()));
        match outcome {
            Ok(text) => words.push(format!("storage {}: {text}", found.on.name)),
            Err(e) => wrong.push(Failure {
                message: format!("Storage {}: {}", found.on.name, e.message),
                ..e
            }),
        }
    }
    // Every storage has the same bytes: those of one are restored.
    if let (true, true, Some(found)) = (restore, wrong.is_empty(), meant.first()) {
        let outcome = restore_check::verify(context, backup, found);
        for found in &meant {
            keep(context, found, "Restore", outcome.as_ref().map(|_| ()));
        }
        match outcome {
            Ok(text) => words.insert(0, text),
            Err(e) => wrong.push(e),
        }
    }
    let compared = wrong.iter().any(differs);
    let outcome = if wrong.is_empty() {
        Ok(words.join("; "))
    } else {
        Err(Failure::all(wrong))
    };
    report_verified(context, restore, outcome, compared)?;
    end(lost)
}

/// Keeps the outcome of a verification beside the record.
fn keep(context: &Context, found: &Found, mode: &str, outcome: Result<(), &Failure>) {
    let record = &found.record;
    let name = record.key.rsplit('/').next().unwrap_or(&record.key);
    let beside = format!("{}/{name}", record::directory(context, &found.on.path));
    let of = (record.key.as_str(), record.stored_sha256.as_str());
    let store = found.on.store.as_ref();
    artefact::keep(context, store, &beside, of, mode, outcome);
}

fn whole(context: &Context, backup: &BackupSettings, found: &Found) -> Result<String, Failure> {
    let record = &found.record;
    let read = || whole_reader(found);
    let stored = Stored {
        bytes: record.stored_bytes,
        sha256: record.stored_sha256.clone(),
    };
    checksum::compare(&record.key, read()?, &stored)?;
    let bytes = format!(
        "{} bytes of {} have their SHA-256",
        record.stored_bytes, record.key
    );
    let identity = identity(context)?;
    let encrypt = backup.plan.encrypt.as_ref();
    match open::tar(read()?, &record.key, encrypt, identity.as_deref())? {
        Ok(tar) => {
            let count = contents(record, tar)?;
            Ok(format!("{bytes}, and so have the {count} files in it"))
        }
        Err(Closed::NoIdentity) => Ok(format!(
            "{bytes}; its files were not looked at, the age identity is not here"
        )),
        Err(Closed::NoDecoder) => Ok(format!(
            "{bytes}; its files were not looked at, the runner writes this codec but does not read it"
        )),
    }
}

/// Every file of the record is in the tar with its length and SHA-256, and no other; their number.
fn contents(record: &Record, tar: Box<dyn Read + Send>) -> Result<usize, Failure> {
    let key = &record.key;
    let broken = |e: &dyn std::fmt::Display| {
        Failure::new(
            Reason::ArchiveDamaged,
            format!("{key} can't be unpacked: {e}"),
        )
    };
    let mut expected: BTreeMap<&str, (u64, &str)> = record
        .files
        .iter()
        .map(|f| (f.path.as_str(), (f.bytes, f.sha256.as_str())))
        .collect();
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().map_err(|e| broken(&e))? {
        let mut entry = entry.map_err(|e| broken(&e))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().map_err(|e| broken(&e))?.display().to_string();
        let measured = checksum::measure(&mut entry).map_err(|e| broken(&e))?;
        let Some((bytes, sha256)) = expected.remove(path.as_str()) else {
            return Err(broken(&format!(
                "it holds {path}, which its record does not name"
            )));
        };
        if measured.bytes != bytes || measured.sha256 != sha256 {
            return Err(broken(&format!(
                "{path} in it is not the file that was dumped"
            )));
        }
    }
    // Readers of compressed bytes may not have met the end that holds their checksum.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(|e| broken(&e))?;
    match expected.keys().next() {
        Some(path) => Err(broken(&format!("{path} is missing"))),
        None => Ok(record.files.len()),
    }
}

/// Applies `keep` now, or removes all; with `dryRun` it only says what would go.
///
/// # Errors
/// A storage can't be used or refuses.
pub(crate) fn prune(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    let options: Options = context.settings.options()?;
    let (targets, lost) = targets(context, backup)?;
    context.reporter.phase("Pruning");
    let rules = crds::parts::Retention::default();
    let what = asked(&options, &rules).what;
    let mut sum = Outcome::default();
    let mut failures: Vec<Failure> = lost.into_iter().collect();
    for target in &targets {
        context.check()?;
        let one = target.holds("");
        match retention::prune(context, backup, &one, what, options.dry_run) {
            Ok(outcome) => {
                sum.gone = sum.gone.saturating_add(outcome.gone);
                sum.of = sum.of.saturating_add(outcome.of);
                let mut stopped = outcome.stopped;
                if options.all && !options.dry_run && stopped.is_none() {
                    stopped = storages::clean(context, target, true).err();
                }
                failures.extend(stopped.map(|e| named("Storage", &target.name, e)));
            }
            Err(e) => failures.push(named("Storage", &target.name, e)),
        }
    }
    let what = format!("archives {{}} on {} storages", targets.len());
    report_pruned(context, &options, &sum, &what);
    end((!failures.is_empty()).then(|| Failure::all(failures)))
}

/// Logs in to every database, and writes, reads and removes a small object on every storage.
///
/// # Errors
/// What can't be used; all of it, not the first alone.
pub(crate) fn probe(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    context.settings.check()?;
    context.reporter.phase("Connecting");
    let mut wrong = vec![];
    let mut words = vec![];
    for storage in &backup.plan.storages {
        let outcome = storages::one(context, storage)
            .and_then(|t| artefact::probe(context, t.store.as_ref(), &t.path));
        context.reporter.endpoint(
            EndpointKind::Storage,
            &storage.name,
            outcome.as_ref().map(|&()| ()),
        );
        match outcome {
            Ok(()) => words.push(format!("Storage {}", storage.name)),
            Err(e) => wrong.push(named("Storage", &storage.name, e)),
        }
    }
    for database in &backup.plan.databases {
        let outcome = crate::database::probe(context, database);
        context.reporter.endpoint(
            EndpointKind::Database,
            &database.name,
            outcome.as_ref().map(|&()| ()),
        );
        match outcome {
            Ok(()) => words.push(format!("Database {}", database.name)),
            Err(e) => wrong.push(named("Database", &database.name, e)),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::all(wrong));
    }
    let message = format!("reached: {}", words.join(", "));
    context.reporter.update(|r| r.message = message);
    Ok(())
}

fn named(kind: &str, name: &str, e: Failure) -> Failure {
    let prefix = format!("{kind} {name}: ");
    if e.message.starts_with(&prefix) {
        return e;
    }
    Failure {
        message: format!("{prefix}{}", e.message),
        ..e
    }
}
