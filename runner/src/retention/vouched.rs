//! Artefacts that a manifest or record vouches for, as they are found, weighed and removed: of every kind
//! alike. What says of one how its verification ended has the key of what vouches for it, with another
//! ending.

use std::collections::{BTreeSet, HashMap};

use super::{
    Candidate, FAILED, Facts, Index, Known, Now, Owner, Pruned, Standing, VERIFIED, moment, owner,
    strays,
};
use crate::failure::Failure;
use crate::settings::Identity;
use crate::store::{Entry, Store};

/// Where manifests or records stand, and how one is told from other objects.
#[derive(Clone)]
pub struct Records {
    /// Their directory.
    pub directory: String,
    /// Their schema.
    pub schema: &'static str,
    /// True if what stands at this key may vouch for the artefact of these facts.
    pub fits: fn(&str, &Facts) -> bool,
    /// What was read back, where one does not say it.
    pub read_back: bool,
}

/// What is at the keys of an artefact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// All its objects, with their lengths.
    #[default]
    Whole,
    /// Objects of other lengths, or some of them alone.
    Other,
    /// Nothing.
    Gone,
}

/// An artefact that something vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Key of what vouches for it.
    pub at: String,
    /// What that says.
    pub known: Known,
    /// Whose it is: never another's.
    pub owner: Owner,
    /// What is at its keys.
    pub content: Content,
}

/// Those of one directory.
pub struct Vouched<'a> {
    store: &'a dyn Store,
    records: Records,
    index: Index<'a>,
    listings: Listings<'a>,
    /// The directory when it was listed.
    entries: HashMap<String, Entry>,
    /// By the artefact's key: the key of what vouches for it, and what that says.
    known: HashMap<String, (String, Known)>,
    /// Keys of what vouches for nothing that is there.
    lone: BTreeSet<String>,
}

impl<'a> Vouched<'a> {
    /// Lists the directory of what vouches for them.
    ///
    /// # Errors
    /// The store refuses.
    pub fn open(store: &'a dyn Store, records: Records) -> Result<Self, Failure> {
        let mut listings = Listings::new(store);
        let entries = listings.list(&records.directory)?;
        Ok(Self {
            store,
            index: Index::open(store, &records.directory, records.schema),
            listings,
            entries: entries.into_iter().map(|e| (e.key.clone(), e)).collect(),
            records,
            known: HashMap::new(),
            lone: BTreeSet::new(),
        })
    }

    /// All of them that may be those of `identity`, by their keys. What vouches for them is read in part,
    /// one at a time.
    ///
    /// # Errors
    /// The store refuses.
    pub fn all(&mut self, identity: &Identity) -> Result<Vec<Found>, Failure> {
        let records = self.entries.values().filter(|e| e.key.ends_with(".json"));
        let mut records: Vec<&Entry> = records.collect();
        records.sort_by(|a, b| a.key.cmp(&b.key));
        let mut found = vec![];
        for entry in records {
            let Some(known) = self.index.facts(entry)? else {
                continue;
            };
            let facts = &known.facts;
            let owner = owner(&facts.cluster_id, &facts.object, identity);
            if owner == Owner::Other || !(self.records.fits)(&entry.key, facts) {
                continue;
            }
            let content = self.listings.content(facts)?;
            if content == Content::Gone {
                self.lone.insert(entry.key.clone());
            }
            if content != Content::Whole {
                tracing::info!(key = facts.key, "is not there with the length on record");
            }
            found.push(Found {
                at: entry.key.clone(),
                content,
                owner,
                known,
            });
        }
        Ok(found)
    }

    /// Every entry of the directory.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// What is in the directories of the store.
    pub fn listings(&mut self) -> &mut Listings<'a> {
        &mut self.listings
    }

    /// What was pruned, as far as it is remembered.
    pub fn pruned(&self) -> Pruned {
        self.index.pruned()
    }

    /// One of them as a candidate; `None` if it has no time, or nothing is left of it.
    ///
    /// # Errors
    /// The store refuses.
    pub fn weigh(&mut self, found: Found, now: Now) -> Result<Option<Candidate>, Failure> {
        let facts = &found.known.facts;
        let moment = moment(facts.slot.as_deref(), &facts.started_at, now.here);
        let Some(moment) = moment.filter(|_| found.content != Content::Gone) else {
            return Ok(None);
        };
        let sha256 = facts.stored_sha256.clone();
        let candidate = Candidate {
            key: facts.key.clone(),
            moment,
            size: facts.size(),
            standing: match facts.read_back.unwrap_or(self.records.read_back) {
                _ if found.content == Content::Other => Standing::Damaged,
                true => Standing::Good,
                false => Standing::NotReadBack,
            },
            verified: self.ended(&found.at, VERIFIED, &sha256)?,
            failed: self.ended(&found.at, FAILED, &sha256)?,
        };
        self.known
            .insert(candidate.key.clone(), (found.at, found.known));
        Ok(Some(candidate))
    }

    /// What is known of those that were weighed.
    pub fn facts(&self) -> impl Iterator<Item = &Facts> {
        self.known.values().map(|(_, known)| &known.facts)
    }

    /// Removes one with all that belongs to it; false if it is no longer what was weighed, `None` if it
    /// was not.
    ///
    /// # Errors
    /// The store refuses.
    pub fn remove(&mut self, key: &str) -> Result<Option<bool>, Failure> {
        let Some((at, known)) = self.known.get(key) else {
            return Ok(None);
        };
        let same = self.index.still_says(at, known)?;
        self.index.forget(at);
        if !same {
            return Ok(Some(false));
        }
        for (key, _) in known.facts.objects() {
            self.store.remove(key)?;
        }
        for end in [VERIFIED, FAILED] {
            let beside = beside(at, end);
            if self.entries.contains_key(&beside) {
                self.store.remove(&beside)?;
                self.index.forget(&beside);
            }
        }
        self.store.remove(at)?;
        Ok(Some(true))
    }

    /// Ends: what is known is kept for the next run, that `gone` was removed at `time` too, and
    /// verifications go that are of nothing that is there.
    ///
    /// # Errors
    /// The store refuses.
    pub fn finish(mut self, gone: &BTreeSet<String>, time: String) -> Result<(), Failure> {
        self.index.note_pruned(gone, &time);
        self.index.close();
        // Beside an artefact itself, or beside its record.
        let of = |beside: &str| [beside.to_owned(), format!("{beside}.json")];
        let keys = self.entries.keys().filter(|key| !self.lone.contains(*key));
        let keys: BTreeSet<String> = keys.cloned().collect();
        strays(&keys, of)
            .iter()
            .try_for_each(|stray| self.store.remove(stray))
    }

    /// True if a verification failed of the artefact with these bytes that the object at `at` vouches
    /// for.
    ///
    /// # Errors
    /// The store refuses.
    pub fn has_failed(&mut self, at: &str, sha256: &str) -> Result<bool, Failure> {
        self.ended(at, FAILED, sha256)
    }

    fn ended(&mut self, at: &str, end: &str, sha256: &str) -> Result<bool, Failure> {
        match self.entries.get(&beside(at, end)) {
            Some(entry) => Ok(self.index.verified(entry)?.as_deref() == Some(sha256)),
            None => Ok(false),
        }
    }
}

/// The key of what says how the verification of what `at` vouches for ended.
fn beside(at: &str, end: &str) -> String {
    format!("{}{end}", at.strip_suffix(".json").unwrap_or(at))
}

/// What is in the directories of a store, each listed once.
pub struct Listings<'a> {
    store: &'a dyn Store,
    sizes: HashMap<String, HashMap<String, u64>>,
}

impl<'a> Listings<'a> {
    /// Of no directory yet.
    pub fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            sizes: HashMap::new(),
        }
    }

    fn list(&mut self, directory: &str) -> Result<Vec<Entry>, Failure> {
        let listed = self.store.list(directory)?;
        let sizes = listed.iter().map(|e| (e.key.clone(), e.size)).collect();
        self.sizes.insert(directory.to_owned(), sizes);
        Ok(listed)
    }

    /// Bytes of the object of this key, if it is there.
    ///
    /// # Errors
    /// The store refuses.
    pub fn size(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let directory = key.rsplit_once('/').map_or("", |(d, _)| d);
        if !self.sizes.contains_key(directory) {
            self.list(directory)?;
        }
        let sizes = self.sizes.get(directory);
        Ok(sizes.and_then(|s| s.get(key)).copied())
    }

    /// What is at the keys of an artefact.
    ///
    /// # Errors
    /// The store refuses.
    pub fn content(&mut self, facts: &Facts) -> Result<Content, Failure> {
        let (mut whole, mut any) = (true, false);
        for (key, bytes) in facts.objects() {
            let size = self.size(key)?;
            whole &= size == Some(bytes);
            any |= size.is_some();
        }
        Ok(match (whole, any) {
            (true, _) => Content::Whole,
            (false, true) => Content::Other,
            (false, false) => Content::Gone,
        })
    }
}
