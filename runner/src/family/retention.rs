//! `keep`: the newest so many archives of this Backup stay on a storage. What is whose is read
//! from the records on the storage itself, so that it holds in every pod and for every protocol.

use std::collections::BTreeSet;

use crate::failure::Failure;
use crate::run::Context;

use super::settings::Family;
use super::state::{self, OldEntry, Record};
use super::storages::Delivered;

/// An archive of this Backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Archive {
    /// When it was made, RFC 3339 in UTC.
    at: String,
    /// Its objects: one, or the parts of a split one.
    keys: Vec<String>,
    /// Its record.
    record: Option<String>,
}

/// Removes what is beyond `keep`, oldest first; gives the number of archives removed. Only
/// archives whose record names this Backup, or that gobackup's state file of this Backup lists,
/// are touched, and never the newest.
///
/// # Errors
/// The store refuses.
pub(super) fn apply(context: &Context, family: &Family, one: &Delivered) -> Result<i64, Failure> {
    if one.keep == 0 {
        return Ok(0);
    }
    let keep = usize::try_from(one.keep).unwrap_or(usize::MAX);
    let mut archives = ours(context, one)?;
    let known: BTreeSet<String> = archives.iter().flat_map(|a| a.keys.clone()).collect();
    let old_state = state::old_state(family, &one.path, &one.name);
    let old: Vec<OldEntry> = state::read(one.store.as_ref(), &old_state)?.unwrap_or_default();
    archives.extend(
        old.iter()
            .filter_map(|e| old_archive(e, &one.path))
            .filter(|a| !a.keys.iter().any(|k| known.contains(k))),
    );
    archives.sort();
    archives.reverse();
    let newest = archives.first().map(|a| a.keys.clone());
    if newest.is_none_or(|keys| !keys.contains(&one.key)) {
        context.reporter.warn(&format!(
            "storage {}: an archive newer than this run's is there (a clock that went back?); nothing is pruned",
            one.name
        ));
        return Ok(0);
    }
    let mut removed = 0;
    let mut gone = BTreeSet::new();
    for archive in archives.iter().skip(keep) {
        for key in &archive.keys {
            one.store.remove(key)?;
            gone.insert(key.clone());
        }
        if let Some(record) = &archive.record {
            one.store.remove(record)?;
        }
        tracing::info!(
            event = "pruned",
            storage = one.name,
            key = archive.keys.join(",")
        );
        removed += 1;
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
    Ok(removed)
}

/// Archives whose record names this Backup.
fn ours(context: &Context, one: &Delivered) -> Result<Vec<Archive>, Failure> {
    let mut found = vec![];
    for entry in one.store.list(&state::directory(context, &one.path))? {
        let Some(record) = state::read::<Record>(one.store.as_ref(), &entry.key)? else {
            continue;
        };
        if record.object == context.settings.identity.object && !record.key.is_empty() {
            found.push(Archive {
                at: record.started_at,
                keys: vec![record.key],
                record: Some(entry.key),
            });
        }
    }
    Ok(found)
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
        keys: names.iter().map(|n| state::join(path, n)).collect(),
        record: None,
    })
}
