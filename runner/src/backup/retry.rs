//! A run that is tried again: what an earlier attempt of it stored is neither dumped nor stored
//! twice. A storage that lacks it gets it from one that has it, byte by byte.

use crds::report::Reason;
use std::io::Read;
use std::sync::Arc;

use crds::run::Artefact;

use crate::artefact::{Origin, known};
use crate::backup::found::Found;
use crate::backup::record::{self, PartRecord, Record};
use crate::backup::target::{Delivered, Target};
use crate::backup::{retention, tee};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Ticker;
use crate::settings::plan::BackupSettings;
use crate::store::{Upload, read_back};
use crate::stream::checksum::{self, Stored};

/// What an earlier attempt of this run stored, as far as it reads back equal, and the storages that
/// lack it.
pub(crate) struct Before {
    found: Vec<Found>,
    lacking: Vec<Target>,
}

/// Looks for it.
///
/// # Errors
/// The targets, where nothing is there.
pub(crate) fn find(context: &Context, targets: Vec<Target>) -> Result<Before, Vec<Target>> {
    let identity = &context.settings.identity;
    if identity.run.is_empty() || identity.object.uid.is_empty() {
        return Err(targets);
    }
    let (mut found, mut lacking) = (vec![], vec![]);
    for target in targets {
        // A storage that can't be looked into is met again when something is to be stored there.
        match on(context, &target).ok().flatten() {
            Some(record) => found.push(Found { on: target, record }),
            None => lacking.push(target),
        }
    }
    if found.is_empty() {
        return Err(lacking);
    }
    Ok(Before { found, lacking })
}

/// The record of this run's archive on a storage, if the archive reads back equal.
fn on(context: &Context, target: &Target) -> Result<Option<Record>, Failure> {
    let store = target.store.as_ref();
    let run = &context.settings.identity.run;
    let records = record::records(record::directory(context, &target.path));
    for available in known(context, store, records, Origin::Own)?.0 {
        if available.facts.run != *run {
            continue;
        }
        let Some(record) = record::whole(store, &available.manifest)? else {
            continue;
        };
        if record::is_whole(store, &record)? {
            return Ok(Some(record));
        }
        tracing::warn!(
            storage = target.name,
            key = record.key,
            "what an earlier attempt of this run stored is not what its record says: it does not count"
        );
    }
    Ok(None)
}

fn stored(record: &Record) -> Stored {
    Stored {
        bytes: record.stored_bytes,
        sha256: record.stored_sha256.clone(),
    }
}

/// Gives the archive to the storages that lack it, and reports it; then retention.
///
/// # Errors
/// A storage did not get it; `lost` are those that could not be used at all.
pub(crate) fn complete(
    context: &Context,
    backup: &BackupSettings,
    before: Before,
    lost: Vec<Failure>,
) -> Result<(), Failure> {
    tracing::info!(
        "an earlier attempt of this run has stored its archive: nothing is dumped again"
    );
    context.reporter.phase("Storing");
    let Before { found, lacking } = before;
    let mut failures = lost;
    let mut delivered: Vec<Delivered> = vec![];
    if let Some(source) = found.first() {
        for target in lacking {
            let name = target.name.clone();
            let copied = context
                .check()
                .and_then(|()| copy(context, backup, source, &target));
            match copied {
                Ok((key, read_back)) => delivered.push(Delivered {
                    target,
                    key,
                    read_back,
                }),
                Err(e) => failures.push(Failure {
                    message: format!("Storage {name}: {}", e.message),
                    ..e
                }),
            }
        }
        delivered.extend(found.iter().map(|f| Delivered {
            target: f.on.clone(),
            key: f.record.key.clone(),
            read_back: !f.record.not_read_back,
        }));
        report(context, &source.record, &delivered);
    }
    retention::after_run(context, backup, delivered);
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::all(failures))
}

fn report(context: &Context, record: &Record, delivered: &[Delivered]) {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let artefacts: Vec<Artefact> = delivered
        .iter()
        .map(|d| Artefact {
            key: d.key.clone(),
            size: number(record.stored_bytes),
            sha256: record.stored_sha256.clone(),
            read_back: d.read_back,
            storage: Some(d.target.name.clone()),
        })
        .collect();
    let raw = record
        .files
        .iter()
        .fold(0_u64, |sum, f| sum.saturating_add(f.bytes));
    context.reporter.update(|r| {
        r.raw_bytes = Some(number(raw));
        let copies = i64::try_from(artefacts.len()).unwrap_or(i64::MAX);
        r.stored_bytes = Some(number(record.stored_bytes).saturating_mul(copies));
        r.artefacts = artefacts;
    });
}

/// Copies the archive and its record; gives its key there, and whether it could be read back.
fn copy(
    context: &Context,
    backup: &BackupSettings,
    source: &Found,
    target: &Target,
) -> Result<(String, bool), Failure> {
    let record = &source.record;
    let split = !record.parts.is_empty();
    let same = record::join(&target.path, below(&source.on.path, &record.key));
    let (key, claim) = tee::claim_like(context, backup, target, same, split)?;
    let claim = Arc::new(claim);
    let _ticker = {
        let (store, claim) = (Arc::clone(&target.store), Arc::clone(&claim));
        Ticker::start(Arc::clone(&context.reporter), move || {
            store.keep_alive();
            claim.renew();
        })
    };
    let mut whole = true;
    let mut parts = vec![];
    let mut uploads = vec![];
    for (old, sent) in objects(record) {
        let part = match old.strip_prefix(record.key.as_str()) {
            Some(end) => format!("{key}{end}"),
            None => key.clone(),
        };
        let mut upload = target.store.begin(&part)?;
        let mut reader = source.on.store.open(&old)?.ok_or_else(|| {
            Failure::new(
                Reason::ArtefactNotFound,
                format!("{old} is gone from storage {}", source.on.name),
            )
        })?;
        let mut buffer = vec![0; checksum::BUFFER];
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    let said = format!("reading {old} from storage {} failed: {e}", source.on.name);
                    return Err(e
                        .downcast::<Failure>()
                        .unwrap_or_else(|_| Failure::new(Reason::StoreFailed, said)));
                }
            };
            upload.write(&buffer[..n])?;
            context.check()?;
        }
        upload.close()?;
        whole &= read_back(&context.reporter, upload.as_mut(), &part, &sent)?;
        parts.push(PartRecord {
            key: part,
            bytes: sent.bytes,
            sha256: sent.sha256,
        });
        uploads.push(upload);
    }
    claim.check()?;
    publish(target, &parts, &mut uploads)?;
    let copied = Record {
        key: key.clone(),
        parts: if split { parts } else { vec![] },
        not_read_back: !whole,
        ..record.clone()
    };
    record::put(context, target, &copied)?;
    Ok((key, whole))
}

/// Gives every part its key; after a failure those that were published here are gone.
fn publish(
    target: &Target,
    parts: &[PartRecord],
    uploads: &mut [Box<dyn Upload>],
) -> Result<(), Failure> {
    for (n, (part, upload)) in parts.iter().zip(uploads).enumerate() {
        let done = upload.publish().and_then(|done| {
            done.then_some(()).ok_or_else(|| {
                Failure::new(
                    Reason::AlreadyExists,
                    format!(
                        "{} was made by another run meanwhile: it is left alone; run again",
                        part.key
                    ),
                )
            })
        });
        if let Err(e) = done {
            for part in &parts[..n] {
                let _ = target.store.remove(&part.key);
            }
            return Err(e);
        }
    }
    Ok(())
}

/// Keys of the objects that make an archive, and what each holds.
fn objects(record: &Record) -> Vec<(String, Stored)> {
    if record.parts.is_empty() {
        return vec![(record.key.clone(), stored(record))];
    }
    record
        .parts
        .iter()
        .map(|p| {
            let stored = Stored {
                bytes: p.bytes,
                sha256: p.sha256.clone(),
            };
            (p.key.clone(), stored)
        })
        .collect()
}

/// `key` without the directory `path` before it.
fn below<'a>(path: &str, key: &'a str) -> &'a str {
    let rest = key.strip_prefix(path).unwrap_or(key);
    rest.trim_start_matches('/')
}
