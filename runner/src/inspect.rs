//! The actions that make no backup: List, Prune, Probe, and Verify by checksum.

use crds::mysql_backup::Retention;
use crds::run::{Artefact, Verification};
use serde::Deserialize;

use crate::artefacts::{self, Choice};
use crate::backup;
use crate::failure::Failure;
use crate::manifest::{self, Manifest};
use crate::retention;
use crate::run::Context;
use crate::store::Store;
use crate::tell;

/// Options of these actions, as `crds::request::Options` words them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Options {
    /// Verify: which artefact.
    #[serde(flatten)]
    pub choice: Choice,
    /// Prune: every artefact of the object.
    pub all: bool,
    /// Prune: remove nothing.
    pub dry_run: bool,
    /// Verify: Checksum or Restore.
    pub mode: Option<String>,
}

/// The options of this run.
///
/// # Errors
/// They are not of this form.
pub fn options(context: &Context) -> Result<Options, Failure> {
    let value = &context.settings.options;
    if value.is_null() {
        return Ok(Options::default());
    }
    Options::deserialize(value).map_err(|e| Failure::settings(format!("options: {e}")))
}

/// One log line for each artefact of the object, oldest first, with `"event":"artefact"`.
///
/// # Errors
/// The store refuses.
pub fn list(context: &Context) -> Result<(), Failure> {
    let store = context.open_store()?;
    let all = own(context, store.as_ref())?;
    for m in &all {
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
    }
    let stored: u64 = all.iter().map(|m| m.stored_bytes).sum();
    let message = format!(
        "{} artefacts with {stored} bytes in {}",
        all.len(),
        store.describe()
    );
    context.reporter.update(|r| {
        r.message = message;
        r.artefacts = all.iter().rev().map(artefact).collect();
        r.stored_bytes = i64::try_from(stored).ok();
    });
    Ok(())
}

fn own(context: &Context, store: &dyn Store) -> Result<Vec<Manifest>, Failure> {
    let identity = &context.settings.identity;
    let mut all = manifest::list(store, &identity.directory())?;
    all.retain(|m| m.belongs_to(identity));
    Ok(all)
}

fn artefact(m: &Manifest) -> Artefact {
    Artefact {
        key: m.key.clone(),
        size: i64::try_from(m.stored_bytes).unwrap_or(i64::MAX),
        sha256: m.stored_sha256.clone(),
        read_back: m.read_back,
        storage: None,
    }
}

/// Applies retention now, or removes all; with `dryRun` it only says, one log line each with
/// `"event":"retention"`, what would go and why.
///
/// # Errors
/// The store refuses.
pub fn prune(context: &Context) -> Result<(), Failure> {
    let options = options(context)?;
    let store = context.open_store()?;
    context.reporter.phase("Pruning");
    let all = own(context, store.as_ref())?;
    let rules = context.settings.retention.clone().unwrap_or_default();
    let decisions = decide(context, &all, &rules, options.all);
    let mut pruned = 0;
    for (key, kept_by) in &decisions {
        let goes = kept_by.is_empty();
        tracing::info!(
            event = "retention",
            key,
            goes,
            keptBy = kept_by.join(","),
            dryRun = options.dry_run
        );
        if goes && !options.dry_run {
            store.remove(key)?;
            store.remove(&Manifest::key_of(key))?;
        }
        pruned += i64::from(goes);
    }
    if options.all && !options.dry_run {
        let directory = context.settings.identity.directory();
        tell::forget(store.as_ref(), &directory)?;
        backup::clean(context, store.as_ref(), true)?;
    }
    let verb = if options.dry_run {
        "would be removed"
    } else {
        "removed"
    };
    let message = format!(
        "{pruned} of {} artefacts {verb} in {}",
        decisions.len(),
        store.describe()
    );
    context.reporter.update(|r| {
        r.message = message;
        r.pruned = Some(if options.dry_run { 0 } else { pruned });
    });
    Ok(())
}

fn decide(
    context: &Context,
    all: &[Manifest],
    rules: &Retention,
    everything: bool,
) -> Vec<(String, Vec<&'static str>)> {
    if everything {
        return all.iter().map(|m| (m.key.clone(), vec![])).collect();
    }
    let shrank = match all {
        [.., before, newest] => retention::shrank(before.raw_bytes, newest.raw_bytes),
        _ => false,
    };
    let candidates = retention::candidates(all);
    let mut decisions: Vec<_> = retention::plan(rules, &candidates, context.clock.now())
        .into_iter()
        .map(|d| (d.key, d.kept_by))
        .collect();
    if shrank {
        context.reporter.warn(
            "nothing is removed: the newest dump is less than half of the one before; check that it is whole",
        );
        for (_, kept_by) in decisions.iter_mut().filter(|(_, k)| k.is_empty()) {
            kept_by.push("the newest shrank");
        }
    }
    decisions.reverse();
    decisions
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
    let key = format!(
        "{}/.probe-{}",
        context.settings.identity.directory(),
        context.nonce
    );
    store.put(&key, b"probe")?;
    let read = crate::store::holds(store.as_ref(), &key, b"probe");
    store.remove(&key)?;
    if !read? {
        return Err(Failure::store(
            "NotReadBack",
            format!(
                "a small object written to {} was not there afterwards",
                store.describe()
            ),
        ));
    }
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
    let options = options(context)?;
    let store = context.open_store()?;
    context.reporter.phase("ReadingBack");
    let manifest = artefacts::choose(context, store.as_ref(), &options.choice)?;
    context
        .reporter
        .update(|r| r.artefacts = vec![artefact(&manifest)]);
    let restore = options.mode.as_deref() == Some("Restore");
    let compared = artefacts::check(store.as_ref(), &manifest).and_then(|()| {
        if restore {
            crate::scratch::verify(context, store.as_ref(), &manifest)
        } else {
            Ok(format!(
                "{} bytes of {} have their SHA-256",
                manifest.stored_bytes, manifest.key
            ))
        }
    });
    let time = crds::time::to_k8s(context.clock.now());
    let mode = if restore { "Restore" } else { "Checksum" };
    let verification = |passed: bool, message: &str| Verification {
        mode: mode.to_owned(),
        passed,
        time: time.clone(),
        message: message.to_owned(),
    };
    match compared {
        Ok(message) => {
            context.reporter.update(|r| {
                r.verification = Some(verification(true, &message));
                r.message = message;
            });
            Ok(())
        }
        // Only what was compared and differs is a failed verification; a store that is away proves nothing.
        Err(e) if e.exit_code == crds::report::exit::VERIFICATION => {
            let message = context.scrub.clean(&e.message);
            context
                .reporter
                .update(|r| r.verification = Some(verification(false, &message)));
            Err(e)
        }
        Err(e) => Err(e),
    }
}
