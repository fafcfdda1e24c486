//! The archives of a Backup on a storage: for retention, and to find one. Whose they are is read from
//! the records on the storage itself, so that it holds in every pod and for every protocol.

use std::collections::{BTreeSet, HashMap};

use crds::parts::Retention;

use crate::artefact::KnownArtefact;
use crate::backup::record::{self, OldEntry, Record, SCHEMA};
use crate::backup::target::Delivered;
use crate::context::Context;
use crate::failure::Failure;
use crate::retention::{
    self, Artefacts, Asked, Candidate, Facts, For, Index, Known, Moment, Now, Outcome, Owner, Size,
    Standing, Vouched, moment, owner,
};
use crate::settings::plan::BackupSettings;
use crate::store::{Entry, Store};

/// After an archive was stored: on each storage that has it, removes what is beyond its `keep`. A
/// storage that refuses is a warning: the archive is stored.
fn apply(context: &Context, backup: &BackupSettings, delivered: &[Delivered]) {
    context.reporter.phase("Pruning");
    for one in delivered {
        let failed = match one.keep {
            0 => {
                context.reporter.update(|r| r.pruned = r.pruned.or(Some(0)));
                None
            }
            _ => match prune(context, backup, one, For::Run(&one.key), false) {
                Ok(outcome) => {
                    context.reporter.update(|r| {
                        r.pruned = Some(r.pruned.unwrap_or(0).saturating_add(outcome.gone));
                    });
                    outcome.stopped
                }
                Err(e) => Some(e),
            },
        };
        if let Some(e) = failed {
            context.reporter.warn(&format!(
                "retention was not applied to its end on storage {}: {e}",
                one.name
            ));
        }
    }
}

/// Applies retention on each storage where the archive was read back: nothing older goes because of one
/// that was not, and what one storage lacks is no reason to let another fill up.
pub(crate) fn after_run(context: &Context, backup: &BackupSettings, delivered: Vec<Delivered>) {
    // A storage that lacks the archive fails the run, whatever ends it.
    if delivered.len() == backup.plan.storages.len() {
        context.reporter.complete();
    }
    let (whole, unread): (Vec<_>, Vec<_>) = delivered.into_iter().partition(|d| d.read_back);
    for one in unread.iter().filter(|d| d.keep > 0) {
        context.reporter.warn(&format!(
            "retention was not applied on storage {}: what was stored could not be read back, so nothing older goes because of it",
            one.name
        ));
    }
    apply(context, backup, &whole);
}

/// Applies `keep` on one storage, or removes every archive.
///
/// # Errors
/// What is stored can't be listed or read.
pub(crate) fn prune(
    context: &Context,
    backup: &BackupSettings,
    one: &Delivered,
    what: For<'_>,
    dry_run: bool,
) -> Result<Outcome, Failure> {
    let rules = Retention {
        keep_last: (one.keep > 0).then(|| i32::try_from(one.keep).unwrap_or(i32::MAX)),
        ..Retention::default()
    };
    let asked = Asked {
        what,
        rules: &rules,
        dry_run,
        prefix: &format!("storage {}: ", one.name),
        storage: Some(&one.name),
    };
    let mut archives = Archives::new(context, backup, one);
    let outcome = retention::apply(context, &mut archives, &asked)?;
    if what == For::Everything && !dry_run && outcome.stopped.is_none() {
        retention::remove_index(one.store.as_ref(), &record::directory(context, &one.path))?;
    }
    Ok(outcome)
}

/// Records of this Backup's archives below `path`, oldest first, each with its own key, whether or
/// not the archive is there.
///
/// # Errors
/// The store refuses.
pub(crate) fn list(
    context: &Context,
    store: &dyn Store,
    path: &str,
) -> Result<Vec<KnownArtefact>, Failure> {
    let directory = record::directory(context, path);
    let entries = store.list(&directory)?;
    let mut index = Index::open(store, &directory, SCHEMA);
    let by_key = retention::by_key(&entries);
    let mut found = vec![];
    for (manifest, known) in records(context, &entries, &mut index)? {
        let facts = known.facts;
        let sha256 = &facts.stored_sha256;
        found.push(KnownArtefact {
            failed: retention::has_failed(&mut index, &by_key, &manifest, sha256)?,
            manifest,
            facts,
            // Others' are left out.
            owner: Owner::This,
        });
    }
    let now = context.clock.now();
    found.sort_by_cached_key(|known| {
        let f = &known.facts;
        let time = moment(f.slot.as_deref(), &f.started_at, now);
        (time, f.key.clone())
    });
    Ok(found)
}

/// The whole record at this key.
///
/// # Errors
/// The store refuses.
pub(crate) fn record(store: &dyn Store, at: &str) -> Result<Option<Record>, Failure> {
    let record = record::read::<Record>(store, at)?;
    Ok(record.filter(|r| r.schema == SCHEMA && !r.key.is_empty()))
}

fn records(
    context: &Context,
    entries: &[Entry],
    index: &mut Index<'_>,
) -> Result<Vec<(String, Known)>, Failure> {
    let identity = &context.settings.identity;
    let mut found = vec![];
    for entry in entries.iter().filter(|e| e.key.ends_with(".json")) {
        let Some(known) = index.facts(entry)? else {
            continue;
        };
        // The directory is that of a UID, so that others' records are there by mistake alone.
        let facts = &known.facts;
        if owner(&facts.cluster_id, &facts.object, identity) == Owner::This {
            found.push((entry.key.clone(), known));
        }
    }
    Ok(found)
}

/// What is in the directories of a storage, each listed once.
pub(crate) struct Listings<'a> {
    store: &'a dyn Store,
    sizes: HashMap<String, HashMap<String, u64>>,
}

impl<'a> Listings<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            sizes: HashMap::new(),
        }
    }

    /// Bytes of the object of this key, if it is there.
    ///
    /// # Errors
    /// The store refuses.
    fn size(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let directory = key.rsplit_once('/').map_or("", |(d, _)| d);
        if !self.sizes.contains_key(directory) {
            let listed = self.store.list(directory)?;
            let sizes = listed.into_iter().map(|e| (e.key, e.size)).collect();
            self.sizes.insert(directory.to_owned(), sizes);
        }
        let sizes = self.sizes.get(directory);
        Ok(sizes.and_then(|s| s.get(key)).copied())
    }

    /// True if all objects of an archive are there with their lengths.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) fn have(&mut self, facts: &Facts) -> Result<bool, Failure> {
        for (key, bytes) in facts.objects() {
            if self.size(key)? != Some(bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The archives on one storage, for retention.
struct Archives<'a> {
    context: &'a Context,
    backup: &'a BackupSettings,
    one: &'a Delivered,
    directory: String,
    vouched: Vouched<'a>,
    /// gobackup's own list.
    old: Vec<OldEntry>,
}

impl<'a> Archives<'a> {
    fn new(context: &'a Context, backup: &'a BackupSettings, one: &'a Delivered) -> Self {
        Self {
            context,
            backup,
            one,
            directory: record::directory(context, &one.path),
            vouched: Vouched::new(one.store.as_ref()),
            old: vec![],
        }
    }

    /// Archives that gobackup's own list names. The list knows a model's name and nothing else: it may
    /// be another cluster's, or that of a gobackup which still runs. Only the user can say that it is not.
    fn listed(&mut self, listings: &mut Listings<'_>) -> Result<Vec<Candidate>, Failure> {
        let path = &self.one.path;
        let at = record::old_state(self.backup, path, &self.one.name);
        let old: Vec<OldEntry> = record::read(self.one.store.as_ref(), &at)?.unwrap_or_default();
        let own: BTreeSet<&str> = self
            .vouched
            .facts()
            .flat_map(Facts::objects)
            .map(|(key, _)| key)
            .collect();
        let mut found = vec![];
        for entry in &old {
            let Some((moment, keys)) = old_archive(entry, path) else {
                continue;
            };
            if keys.iter().any(|key| own.contains(key.as_str())) {
                continue;
            }
            let mut stored = Some(0_u64);
            for key in &keys {
                let size = listings.size(key)?;
                stored = stored.zip(size).map(|(sum, size)| sum.saturating_add(size));
            }
            let (Some(key), Some(stored)) = (keys.into_iter().next(), stored) else {
                continue;
            };
            found.push(Candidate {
                key,
                moment,
                size: Size {
                    stored,
                    ..Size::default()
                },
                standing: Standing::Listed,
                verified: false,
                failed: false,
            });
        }
        if self.backup.adopt_state == Some(true) {
            self.old = old;
            return Ok(found);
        }
        if self.backup.adopt_state.is_none() && !found.is_empty() {
            self.context.reporter.warn(&format!(
                "storage {}: gobackup's own list {at} names {} archives; keep does not count or remove them, because the list says nothing of cluster or object: set spec.job.adoptState: true if no gobackup and no other cluster uses it, or false to leave them alone for good",
                self.one.name,
                found.len()
            ));
        }
        Ok(vec![])
    }
}

impl Artefacts for Archives<'_> {
    fn store(&self) -> &dyn Store {
        self.one.store.as_ref()
    }

    fn directory(&self) -> String {
        self.directory.clone()
    }

    fn gather(&mut self, now: Now) -> Result<Vec<Candidate>, Failure> {
        let (entries, mut index) = self.vouched.list(&self.directory, SCHEMA)?;
        let mut listings = Listings::new(self.one.store.as_ref());
        let mut found = vec![];
        for (at, known) in records(self.context, &entries, &mut index)? {
            // A record without its archive vouches for nothing.
            if !listings.have(&known.facts)? {
                tracing::info!(
                    storage = self.one.name,
                    key = known.facts.key,
                    "has a record but is not there with its length"
                );
                continue;
            }
            // A record says it only where it was not.
            found.extend(self.vouched.weigh(&mut index, at, known, now, true)?);
        }
        found.extend(self.listed(&mut listings)?);
        self.vouched.keep(index);
        Ok(found)
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        if let Some(removed) = self.vouched.remove(key)? {
            return Ok(removed);
        }
        let path = &self.one.path;
        let mut listed = self.old.iter().filter_map(|e| old_archive(e, path));
        let Some((_, keys)) = listed.find(|(_, keys)| keys.first().is_some_and(|k| k == key))
        else {
            return Ok(false);
        };
        for key in keys {
            self.one.store.remove(&key)?;
        }
        Ok(true)
    }

    /// gobackup may come back: its list must not name what is gone.
    fn finish(&mut self, gone: &BTreeSet<String>, changed: bool) -> Result<(), Failure> {
        self.vouched
            .finish(changed, |beside| format!("{beside}.json"))?;
        let path = &self.one.path;
        let left: Vec<&OldEntry> = self
            .old
            .iter()
            .filter(|e| {
                old_archive(e, path)
                    .is_none_or(|(_, keys)| !keys.first().is_some_and(|k| gone.contains(k)))
            })
            .collect();
        if !changed || left.len() == self.old.len() {
            return Ok(());
        }
        let text = serde_json::to_vec(&left).unwrap_or_default();
        let at = record::old_state(self.backup, path, &self.one.name);
        self.one.store.put(&at, &text)
    }
}

/// When an archive of gobackup's list was made, and the keys of its objects.
fn old_archive(entry: &OldEntry, path: &str) -> Option<(Moment, Vec<String>)> {
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
    let keys = names.iter().map(|n| record::join(path, n)).collect();
    Some((Moment { at, since: at }, keys))
}
