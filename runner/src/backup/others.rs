//! What is on a storage beside the archives of the Backup itself: those of a Backup of this name that was
//! deleted since, those that gobackup's own list names, and those of gobackup's form that no record
//! vouches for. They are listed as what they are, and taken by their key alone.

use std::collections::BTreeSet;

use chrono::{NaiveDateTime, TimeZone, Utc};

use crate::artefact::{Artefacts, KnownArtefact, Origin, known};
use crate::backup::open;
use crate::backup::record::{self, OldEntry, PartRecord, Record};
use crate::backup::target::StoredArchives;
use crate::failure::Failure;
use crate::retention::{Content, Facts, Listings, Moment, Owner, Part};
use crate::store::Store;

/// All of them, by their kinds.
///
/// # Errors
/// The storage refuses.
pub(crate) fn list(place: &StoredArchives<'_>) -> Result<Vec<KnownArtefact>, Failure> {
    let (store, path) = (place.store(), &place.target.path);
    let own = place.records().directory;
    let mut found = vec![];
    let mut claimed = BTreeSet::new();
    for directory in store.directories(&record::join(path, record::STATE))? {
        claimed.extend(store.list(&directory)?.iter().filter_map(archive_of));
        let name = directory.rsplit('/').next().unwrap_or_default();
        if directory != own && record::is_of_name(place.context, name) {
            let records = record::records(directory);
            found.extend(known(place.context, store, records, Origin::Former)?.0);
        }
    }
    let mut listings = Listings::new(store);
    for entry in entries(place)? {
        let Some((_, facts)) = of_gobackup(&entry, path, &mut listings)? else {
            continue;
        };
        if !claimed.insert(name_of(&facts.key).to_owned()) {
            continue;
        }
        // What its own list still names after it is gone is no loss of ours.
        let content = listings.content(&facts)?;
        if content == Content::Whole {
            found.push(unrecorded(facts, Origin::Gobackup));
        }
    }
    for entry in store.list(path)? {
        let name = name_of(&entry.key);
        if !record::is_dated(name) || open::codec_of(name).is_none() || claimed.contains(name) {
            continue;
        }
        // Its name says when, by the clock of who made it.
        let at = name.get(..record::DATED).unwrap_or_default();
        let at = NaiveDateTime::parse_from_str(at, record::FORMAT).ok();
        let at = at.and_then(|at| place.backup.zone.from_local_datetime(&at).earliest());
        let facts = Facts {
            started_at: at.map_or(String::new(), |at| {
                crds::time::rfc3339(at.with_timezone(&Utc))
            }),
            stored_bytes: entry.size,
            key: entry.key,
            ..Facts::default()
        };
        found.push(unrecorded(facts, Origin::Unrecorded));
    }
    Ok(found)
}

fn unrecorded(facts: Facts, origin: Origin) -> KnownArtefact {
    KnownArtefact {
        manifest: String::new(),
        facts: Facts {
            read_back: Some(false),
            ..facts
        },
        owner: Owner::Unknown,
        failed: false,
        content: Content::Whole,
        origin,
    }
}

/// The whole record of one; of what has none, where its bytes are, and [`Record::is_measured`].
///
/// # Errors
/// The storage refuses.
pub(crate) fn record(store: &dyn Store, known: &KnownArtefact) -> Result<Option<Record>, Failure> {
    if matches!(known.origin, Origin::Own | Origin::Former) {
        return record::whole(store, &known.manifest);
    }
    let facts = &known.facts;
    let part = |part: &Part| PartRecord {
        key: part.key.clone(),
        bytes: part.bytes,
        sha256: String::new(),
    };
    Ok(Some(Record {
        started_at: facts.started_at.clone(),
        key: facts.key.clone(),
        parts: facts.parts.iter().map(part).collect(),
        stored_bytes: facts.stored_bytes,
        not_read_back: true,
        ..Record::default()
    }))
}

/// True if the record of another Backup, or any list of gobackup's, names the archive of this key.
///
/// # Errors
/// The storage refuses.
pub(crate) fn is_claimed(place: &StoredArchives<'_>, key: &str) -> Result<bool, Failure> {
    let (store, path) = (place.store(), &place.target.path);
    let (own, state) = (place.records().directory, record::join(path, record::STATE));
    let name = name_of(key);
    for directory in store.directories(&state)? {
        let named = |e: &crate::store::Entry| archive_of(e).as_deref() == Some(name);
        if directory != own && store.list(&directory)?.iter().any(named) {
            return Ok(true);
        }
    }
    // What gobackup stored for a run stands in its list too.
    if record::is_of_one_run(name) {
        return Ok(false);
    }
    for entry in store.list(&state)? {
        let old: Vec<OldEntry> = record::read(store, &entry.key)?.unwrap_or_default();
        let keys = old.iter().filter_map(|e| keys(e, path)).flatten();
        if keys.into_iter().any(|named| named == key) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn archive_of(record: &crate::store::Entry) -> Option<String> {
    name_of(&record.key)
        .strip_suffix(".json")
        .map(str::to_owned)
}

fn name_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// The entries of gobackup's own list. One that is damaged names none, and a warning says so.
///
/// # Errors
/// The storage refuses.
pub(crate) fn entries(place: &StoredArchives<'_>) -> Result<Vec<OldEntry>, Failure> {
    let target = &place.target;
    let at = record::old_state(place.backup, &target.path, &target.name);
    let Some(text) = crate::store::read(place.store(), &at, record::LARGEST)? else {
        return Ok(vec![]);
    };
    Ok(serde_json::from_slice(&text).unwrap_or_else(|e| {
        place.context.reporter.warn(&format!(
            "storage {}: gobackup's own list {at} can't be read ({e}): what it named is neither counted nor removed",
            target.name
        ));
        vec![]
    }))
}

/// Keys of the objects of an archive of gobackup's list, if they can be some below `path`.
pub(crate) fn keys(entry: &OldEntry, path: &str) -> Option<Vec<String>> {
    let names = if entry.file_keys.is_empty() {
        vec![entry.file_key.clone()]
    } else {
        entry.file_keys.clone()
    };
    let plain =
        |n: &String| !n.is_empty() && !n.split('/').any(|part| part == "..") && !n.starts_with('/');
    let all = names.iter().all(plain);
    all.then(|| names.iter().map(|n| record::join(path, n)).collect())
}

/// When an archive of gobackup's list was made, and what is known of it; its key is that of its first
/// object.
///
/// # Errors
/// The storage refuses.
pub(crate) fn of_gobackup(
    entry: &OldEntry,
    path: &str,
    listings: &mut Listings<'_>,
) -> Result<Option<(Moment, Facts)>, Failure> {
    let at = crds::time::parse_rfc3339(&entry.created_at);
    let (Some(keys), Some(at)) = (keys(entry, path), at) else {
        return Ok(None);
    };
    let mut parts = vec![];
    for key in keys {
        // One that is not there is not of its length.
        let bytes = listings.size(&key)?.unwrap_or(u64::MAX);
        parts.push(Part { key, bytes });
    }
    let facts = Facts {
        started_at: crds::time::rfc3339(at),
        key: parts.first().map(|p| p.key.clone()).unwrap_or_default(),
        stored_bytes: parts.iter().fold(0, |sum, p| sum.saturating_add(p.bytes)),
        parts: if parts.len() > 1 { parts } else { vec![] },
        ..Facts::default()
    };
    Ok(Some((Moment { at, since: at }, facts)))
}
