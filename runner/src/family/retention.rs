//! `keep`: the newest so many archives of this Backup stay on a storage. What is whose is read
//! from the records on the storage itself, so that it holds in every pod and for every protocol.

use std::collections::BTreeSet;

use crate::failure::Failure;
use crate::run::Context;

use super::settings::Family;
use super::state::{self, OldEntry};
use super::storages::Delivered;

/// An archive of this Backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Archive {
    /// When it was made, RFC 3339 in UTC.
    at: String,
    /// Its key, or what the keys of its parts begin with.
    name: String,
    /// Its objects: one, or the parts of a split one.
    keys: Vec<String>,
    /// Its record.
    record: Option<String>,
}

/// After a good run: on each storage removes what is beyond its `keep`, oldest first. Only
/// archives whose record names this Backup, or that gobackup's state file of this Backup lists,
/// are touched, and never the newest. A storage that refuses is a warning: the archive is stored.
pub(super) fn apply(context: &Context, family: &Family, delivered: &[Delivered]) {
    context.reporter.phase("Pruning");
    for one in delivered {
        let done = match one.keep {
            0 => Ok(0),
            _ => prune(context, family, one, false, false).map(|(removed, _)| removed),
        };
        match done {
            Ok(pruned) => context.reporter.update(|r| {
                r.pruned = Some(r.pruned.unwrap_or(0) + pruned);
            }),
            Err(e) => context.reporter.warn(&format!(
                "retention was not applied on storage {}: {e}",
                one.name
            )),
        }
    }
}

/// Removes what [`apply`] does on one storage, or every archive if `all`; with `dry_run` it only says what would go. Gives how
/// many go, of how many.
///
/// # Errors
/// The store refuses.
pub(super) fn prune(
    context: &Context,
    family: &Family,
    one: &Delivered,
    all: bool,
    dry_run: bool,
) -> Result<(i64, i64), Failure> {
    let old_state = state::old_state(family, &one.path, &one.name);
    let old: Vec<OldEntry> = state::read(one.store.as_ref(), &old_state)?.unwrap_or_default();
    let archives = archives(context, one, &old)?;
    let of = i64::try_from(archives.len()).unwrap_or(i64::MAX);
    let keep = match (all, one.keep) {
        (true, _) => 0,
        (false, 0) => archives.len(),
        (false, keep) => usize::try_from(keep).unwrap_or(usize::MAX),
    };
    let newest = archives.first().map(|a| a.name.clone());
    if !all && newest.is_some_and(|name| name != one.key) {
        context.reporter.warn(&format!(
            "storage {}: an archive newer than this run's is there (a clock that went back?); nothing is pruned",
            one.name
        ));
        return Ok((0, of));
    }
    let mut removed = 0;
    let mut gone = BTreeSet::new();
    for archive in archives.iter().skip(keep) {
        tracing::info!(
            event = "pruned",
            storage = one.name,
            key = archive.keys.join(","),
            dryRun = dry_run
        );
        removed += 1;
        if dry_run {
            continue;
        }
        for key in &archive.keys {
            one.store.remove(key)?;
            gone.insert(key.clone());
        }
        if let Some(record) = &archive.record {
            one.store.remove(record)?;
        }
    }
    // gobackup may come back: its list must not name what is gone.
    let left: Vec<&OldEntry> = old
        .iter()
        .filter(|e| {
            old_archive(e, &one.path).is_none_or(|a| !a.keys.iter().any(|k| gone.contains(k)))
        })
        .collect();
    if left.len() != old.len() {
        let text = serde_json::to_vec(&left).unwrap_or_default();
        one.store.put(&old_state, &text)?;
    }
    Ok((removed, of))
}

/// Archives of this Backup, by its records and by gobackup's state, newest first.
fn archives(context: &Context, one: &Delivered, old: &[OldEntry]) -> Result<Vec<Archive>, Failure> {
    let mut archives: Vec<Archive> = state::records(context, one.store.as_ref(), &one.path)?
        .into_iter()
        .map(|(at, record)| Archive {
            keys: record.keys(),
            at: record.started_at,
            name: record.key,
            record: Some(at),
        })
        .collect();
    let known: BTreeSet<String> = archives.iter().flat_map(|a| a.keys.clone()).collect();
    archives.extend(
        old.iter()
            .filter_map(|e| old_archive(e, &one.path))
            .filter(|a| !a.keys.iter().any(|k| known.contains(k))),
    );
    archives.sort();
    archives.reverse();
    Ok(archives)
}

fn old_archive(entry: &OldEntry, path: &str) -> Option<Archive> {
    let names = if entry.file_keys.is_empty() {
        vec![entry.file_key.clone()]
    } else {
        entry.file_keys.clone()
    };
    let plain =
        |n: &String| !n.is_empty() && !n.split('/').any(|part| part == "..") && !n.starts_with('/');
    if !names.iter().all(plain) {
        return None;
    }
    let at = crds::time::parse_rfc3339(&entry.created_at)?;
    Some(Archive {
        at: crds::time::rfc3339(at),
        name: state::join(path, names.first().map_or("", String::as_str)),
        keys: names.iter().map(|n| state::join(path, n)).collect(),
        record: None,
    })
}
