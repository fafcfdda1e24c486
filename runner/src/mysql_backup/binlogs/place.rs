//! Where segments are: `binlogs/<whose>/<thousand>/<number>.json` in the object's directory, each beside its bytes. Numbers go up
//! by one, so that the newest is found by two listings, and so that of two runs that store the same number one alone can: the
//! manifest is created, never written over. Nothing of it is an artefact, which lie in the object's directory itself.

use std::collections::HashMap;
use std::sync::Arc;

use crds::names::short_hash;
use crds::report::Reason;
use crds::run_spec::ObjectId;

use super::stored::{Seen, StoredSegment};
use crate::context::Context;
use crate::failure::Failure;
use crate::store::leftovers::{self, Place};
use crate::store::{self, Entry, Note, Store};

/// Segments of one directory.
const GROUP: u64 = 1000;
/// Manifests that are read at a time.
const READERS: usize = 8;
/// So many of the newest may be unreadable before a run gives up.
const UNREADABLE: usize = 20;
/// What a file of [`Seen`] may weigh.
const SEEN: u64 = 4096;

/// The segments of one object at its destination.
pub struct SegmentPlace {
    /// The destination.
    pub store: Arc<dyn Store>,
    directory: String,
}

/// A segment's manifest as it was read.
#[derive(Clone, Debug)]
pub struct KnownSegment {
    /// Its number.
    pub number: u64,
    /// Its bytes in the store.
    pub text: Vec<u8>,
    /// What they say.
    pub stored: StoredSegment,
}

/// A number, and what its manifest says; an error if it can't be read as one.
type Numbered = (u64, Option<Result<StoredSegment, String>>);

/// What is stored at the end.
#[derive(Debug, Default)]
pub struct LastKnown {
    /// The last segment that can be read.
    pub last: Option<KnownSegment>,
    /// The number of the next.
    pub next: u64,
    /// Keys of manifests behind the last that can't be read, and why.
    pub unreadable: Vec<String>,
}

impl SegmentPlace {
    /// Those of the run's object.
    pub fn own(context: &Context, store: Arc<dyn Store>) -> Self {
        let identity = &context.settings.identity;
        let directory = identity.directory();
        Self::new(store, &directory, &identity.cluster_id, &identity.object)
    }

    /// Those of the object whose artefact has this key.
    pub fn of(store: Arc<dyn Store>, artefact: &str, cluster_id: &str, object: &ObjectId) -> Self {
        let directory = artefact
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        Self::new(store, directory, cluster_id, object)
    }

    /// Those of an object of this cluster, in its directory.
    pub fn new(
        store: Arc<dyn Store>,
        directory: &str,
        cluster_id: &str,
        object: &ObjectId,
    ) -> Self {
        let whose = short_hash(&[cluster_id, &object.uid], 10);
        Self {
            store,
            directory: format!("{directory}/binlogs/{whose}"),
        }
    }

    /// Those of the run's object, known by its UID alone: what its cluster was called when they were stored need not be known.
    ///
    /// # Errors
    /// The store refuses.
    pub fn of_object(context: &Context, store: &Arc<dyn Store>) -> Result<Vec<Self>, Failure> {
        let identity = &context.settings.identity;
        let root = format!("{}/binlogs", identity.directory());
        let mut found = vec![];
        for directory in store.directories(&root)? {
            let place = Self {
                store: Arc::clone(store),
                directory: format!("{root}/{}", name_of(&directory)),
            };
            if place.owner()?.is_some_and(|uid| uid == identity.object.uid) {
                found.push(place);
            }
        }
        Ok(found)
    }

    /// UID of the object whose segments they are, by the newest manifest that can be read.
    fn owner(&self) -> Result<Option<String>, Failure> {
        for group in self.groups()? {
            let entries = self.list(group)?;
            let numbers = entries.iter().filter_map(|e| manifest_number(&e.key));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            for number in numbers.into_iter().rev() {
                if let Some(Ok(known)) = self.read(number)? {
                    return Ok(Some(known.stored.object.uid));
                }
            }
        }
        Ok(None)
    }

    fn group(&self, number: u64) -> String {
        format!("{}/{:06}", self.directory, number / GROUP)
    }

    /// Key of the manifest of this number.
    pub fn manifest(&self, number: u64) -> String {
        format!("{}/{number:09}.json", self.group(number))
    }

    /// Key of the bytes of this number, as an attempt with this tag stores them.
    pub fn bytes(&self, number: u64, tag: &str, endings: &str) -> String {
        format!("{}/{number:09}.{tag}.binlog{endings}", self.group(number))
    }

    /// Numbers of the directories that hold segments, the newest first.
    ///
    /// # Errors
    /// The store refuses.
    fn groups(&self) -> Result<Vec<u64>, Failure> {
        let found = self.store.directories(&self.directory)?;
        let mut groups: Vec<u64> = found
            .iter()
            .filter_map(|key| name_of(key).parse().ok())
            .collect();
        groups.sort_unstable_by(|a, b| b.cmp(a));
        Ok(groups)
    }

    fn list(&self, group: u64) -> Result<Vec<Entry>, Failure> {
        self.store.list(&format!("{}/{group:06}", self.directory))
    }

    /// The manifest of this number; `None` if there is none.
    ///
    /// # Errors
    /// The store refuses; or the inner one: it can't be read as one.
    pub fn read(&self, number: u64) -> Result<Option<Result<KnownSegment, String>>, Failure> {
        let key = self.manifest(number);
        let most = binlog::MANIFEST as u64 + 1;
        let Some(text) = store::read(self.store.as_ref(), &key, most)? else {
            return Ok(None);
        };
        let read = StoredSegment::read(&text);
        Ok(Some(read.map(|stored| KnownSegment {
            number,
            text,
            stored,
        })))
    }

    /// What is stored at the end. What attempts that lost left there is removed.
    ///
    /// # Errors
    /// The store refuses, or none of the newest can be read.
    pub fn newest(&self, context: &Context) -> Result<LastKnown, Failure> {
        let mut newest = LastKnown::default();
        for (index, group) in self.groups()?.into_iter().enumerate() {
            let entries = self.list(group)?;
            if index == 0 {
                self.clean(context, group, &entries)?;
            }
            let mut numbers: Vec<u64> = entries
                .iter()
                .filter_map(|e| manifest_number(&e.key))
                .collect();
            numbers.sort_unstable();
            for number in numbers.into_iter().rev() {
                newest.next = newest.next.max(number + 1);
                match self.read(number)? {
                    Some(Ok(last)) => {
                        newest.last = Some(last);
                        return Ok(newest);
                    }
                    Some(Err(why)) => newest
                        .unreadable
                        .push(format!("{} ({why})", self.manifest(number))),
                    None => {}
                }
                if newest.unreadable.len() > UNREADABLE {
                    return Err(Failure::new(
                        Reason::Damaged,
                        format!(
                            "the newest {UNREADABLE} manifests of segments can't be read, {} for one: look at the store",
                            newest.unreadable[0]
                        ),
                    ));
                }
            }
        }
        Ok(newest)
    }

    /// All manifests that can be read, the newest first, a directory at a time, until `enough` says so; and those that can't.
    ///
    /// # Errors
    /// The store refuses.
    pub fn backwards(
        &self,
        context: &Context,
        enough: &mut dyn FnMut(&[StoredSegment]) -> bool,
    ) -> Result<(Vec<StoredSegment>, Vec<String>), Failure> {
        let (mut found, mut unreadable) = (vec![], vec![]);
        for group in self.groups()? {
            let entries = self.list(group)?;
            let sizes: HashMap<&str, u64> =
                entries.iter().map(|e| (e.key.as_str(), e.size)).collect();
            let mut numbers: Vec<u64> = entries
                .iter()
                .filter_map(|e| manifest_number(&e.key))
                .collect();
            numbers.sort_unstable();
            numbers.reverse();
            for (number, read) in self.read_all(context, &numbers)? {
                let key = self.manifest(number);
                match read {
                    Some(Ok(stored))
                        if sizes.get(&*stored.key).copied() == Some(stored.stored_bytes) =>
                    {
                        found.push(stored);
                    }
                    Some(Ok(stored)) => unreadable.push(format!(
                        "{} is not there with the length on record",
                        stored.key
                    )),
                    Some(Err(why)) => unreadable.push(format!("{key} ({why})")),
                    None => {}
                }
            }
            if enough(&found) {
                break;
            }
        }
        Ok((found, unreadable))
    }

    /// The manifests of these numbers, in their order. Several are asked for at a time: a day may have thousands, and a store
    /// takes a while for each.
    fn read_all(&self, context: &Context, numbers: &[u64]) -> Result<Vec<Numbered>, Failure> {
        let read = |numbers: &[u64]| -> Result<Vec<Numbered>, Failure> {
            let one = |number: &u64| {
                context.check()?;
                let read = self.read(*number)?;
                Ok((*number, read.map(|read| read.map(|known| known.stored))))
            };
            numbers.iter().map(one).collect()
        };
        let each = numbers.len().div_ceil(READERS).max(1);
        let parts: Vec<Result<Vec<Numbered>, Failure>> = std::thread::scope(|scope| {
            let readers: Vec<_> = numbers
                .chunks(each)
                .map(|part| scope.spawn(move || read(part)))
                .collect();
            readers
                .into_iter()
                .map(|reader| {
                    reader.join().unwrap_or_else(|_| {
                        Err(Failure::new(
                            Reason::InternalError,
                            "reading manifests of segments failed unexpectedly: report it with this log",
                        ))
                    })
                })
                .collect()
        });
        let mut all = Vec::with_capacity(numbers.len());
        for part in parts {
            all.extend(part?);
        }
        Ok(all)
    }

    /// Removes what nobody can take for a segment: bytes of a number that another attempt stored, and temporaries of dead ones.
    fn clean(&self, context: &Context, group: u64, entries: &[Entry]) -> Result<(), Failure> {
        let mut bytes: Vec<(u64, &str)> = entries
            .iter()
            .filter_map(|e| Some((bytes_number(&e.key)?, e.key.as_str())))
            .collect();
        bytes.sort_unstable();
        for same in bytes.chunk_by(|(a, _), (b, _)| a == b) {
            let (number, _) = same[0];
            if same.len() < 2 {
                continue;
            }
            // Who has not written the manifest by now finds it there, and gives up.
            let Some(Ok(kept)) = self.read(number)? else {
                continue;
            };
            for (_, key) in same.iter().filter(|(_, key)| *key != kept.stored.key) {
                self.store.remove(key)?;
            }
        }
        let path = format!("{}/{group:06}", self.directory);
        let age = context.clock.elapsed();
        leftovers::clean(
            self.store.as_ref(),
            (&context.attempt(), age),
            &Directory { path },
            false,
        )
        .map(drop)
    }

    /// Up to which moment the log was read to its end, and behind which segment.
    ///
    /// # Errors
    /// The store refuses.
    pub fn seen(&self) -> Result<Option<Seen>, Failure> {
        let text = store::read(self.store.as_ref(), &self.seen_key(), SEEN)?;
        let seen: Option<Seen> = text.and_then(|text| serde_json::from_slice(&text).ok());
        Ok(seen.filter(Seen::is_some))
    }

    /// The same, before anything is stored: what the store makes of «only if nothing is there» is learnt by it.
    ///
    /// # Errors
    /// The store refuses.
    pub fn first_seen(&self) -> Result<Option<Seen>, Failure> {
        let (store, key) = (self.store.as_ref(), self.seen_key());
        let text = match store::read(store, &key, SEEN)? {
            Some(text) => text,
            None => {
                let text = serde_json::to_vec(&Seen::default()).unwrap_or_default();
                store.put(&key, &text)?;
                text
            }
        };
        store.try_condition(&key, &text)?;
        Ok(serde_json::from_slice(&text).ok().filter(Seen::is_some))
    }

    /// Says so.
    ///
    /// # Errors
    /// The store refuses, or gives back something else twice.
    pub fn see(&self, seen: &Seen) -> Result<(), Failure> {
        let text = serde_json::to_vec(seen).unwrap_or_default();
        store::put_checked(self.store.as_ref(), &self.seen_key(), &text)
    }

    fn seen_key(&self) -> String {
        format!("{}/seen.json", self.directory)
    }

    /// Removes segments that no backup needs: all but the last of those that end before `since`, in seconds since 1970 by the
    /// server's clock. Gives their number.
    ///
    /// # Errors
    /// The store refuses, or a manifest can't be read.
    pub fn retain(&self, context: &Context, since: u32) -> Result<u64, Failure> {
        let mut groups = self.groups()?;
        groups.reverse();
        let mut count = 0;
        // Keys of the one before; what says that bytes are there is the first.
        let mut before: Option<Vec<String>> = None;
        for group in groups {
            let entries = self.list(group)?;
            let mut numbers: Vec<u64> = entries
                .iter()
                .filter_map(|e| manifest_number(&e.key))
                .collect();
            numbers.sort_unstable();
            let mut bytes: HashMap<u64, Vec<&str>> = HashMap::new();
            for entry in &entries {
                if let Some(number) = bytes_number(&entry.key) {
                    bytes.entry(number).or_default().push(&entry.key);
                }
            }
            for number in numbers {
                context.check()?;
                let Some(read) = self.read(number)? else {
                    continue;
                };
                // One that can't be read stays: nobody knows what is in it.
                if let Ok(read) = read {
                    let segment = &read.stored.segment;
                    if segment.last.max(segment.created) >= since {
                        return Ok(count);
                    }
                }
                let mut keys = vec![self.manifest(number)];
                let bytes = bytes.remove(&number).unwrap_or_default();
                keys.extend(bytes.into_iter().map(str::to_owned));
                for key in before.replace(keys).iter().flatten() {
                    self.store.remove(key)?;
                    count += u64::from(manifest_number(key).is_some());
                }
            }
        }
        Ok(count)
    }

    /// Removes all of it; gives the number of segments.
    ///
    /// # Errors
    /// The store refuses.
    pub fn remove_all(&self, context: &Context) -> Result<u64, Failure> {
        let mut count = 0;
        for group in self.groups()? {
            let entries = self.list(group)?;
            // What says that bytes are there goes first.
            let (manifests, others): (Vec<_>, Vec<_>) = entries
                .iter()
                .partition(|e| manifest_number(&e.key).is_some());
            for entry in manifests.iter().chain(&others) {
                context.check()?;
                self.store.remove(&entry.key)?;
            }
            count += manifests.len() as u64;
        }
        self.store.remove(&self.seen_key())?;
        Ok(count)
    }
}

/// The last part of a key.
fn name_of(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// The number in the key of a manifest.
fn manifest_number(key: &str) -> Option<u64> {
    let number = name_of(key).strip_suffix(".json")?;
    (number.len() >= 9).then(|| number.parse().ok()).flatten()
}

/// The number in the key of bytes.
fn bytes_number(key: &str) -> Option<u64> {
    let (number, rest) = name_of(key).split_once('.')?;
    rest.split('.').nth(1).filter(|word| *word == "binlog")?;
    number.parse().ok()
}

/// One directory of segments, for what dead attempts left.
struct Directory {
    path: String,
}

impl Place for Directory {
    fn directory(&self) -> &str {
        &self.path
    }

    /// Bytes without a manifest may be on their way; once their number is stored they go.
    fn is_artefact(&self, _key: &str) -> bool {
        false
    }

    fn is_upload(&self, key: &str) -> bool {
        bytes_number(key).is_some()
    }

    fn is_of_run(&self, _key: &str) -> bool {
        false
    }

    fn is_own(&self, _note: &Note) -> bool {
        true
    }

    fn prunes(&self) -> bool {
        false
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn manifest_of(&self, key: &str) -> String {
        key.to_owned()
    }

    fn lone_manifests(&self, _store: &dyn Store) -> Result<Vec<String>, Failure> {
        Ok(vec![])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_keys_and_from_no_others() {
        for (key, manifest, bytes) in [
            ("a/binlogs/x/000000/000000012.json", Some(12), None),
            ("a/000000012.0a1b2c3d.binlog.zst.age", None, Some(12)),
            ("a/000000012.0a1b2c3d.binlog", None, Some(12)),
            ("a/binlogs/x/seen.json", None, None),
            ("a/20250115T103000Z-28950870.sql.zst.json", None, None),
            ("a/20250115T103000Z-28950870.sql.zst", None, None),
            ("a/000000012.sql", None, None),
        ] {
            assert_eq!(
                (manifest_number(key), bytes_number(key)),
                (manifest, bytes),
                "{key}"
            );
        }
    }
}
