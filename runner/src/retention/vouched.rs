//! Artefacts that a manifest or record vouches for, as retention weighs and removes them: of both kinds
//! alike. What says of one how its verification ended has the key of what vouches for it, with another
//! ending.

use std::collections::{BTreeSet, HashMap};

use super::{Candidate, FAILED, Facts, Index, Known, Now, Standing, VERIFIED, moment, strays};
use crate::failure::Failure;
use crate::store::{Entry, Store};

/// Those of one directory.
pub struct Vouched<'a> {
    store: &'a dyn Store,
    index: Option<Index<'a>>,
    /// By the artefact's key: the key of what vouches for it, and what that says.
    known: HashMap<String, (String, Known)>,
    /// The directory when it was listed.
    entries: HashMap<String, Entry>,
}

impl<'a> Vouched<'a> {
    /// Those in `store`, not looked at yet.
    pub fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            index: None,
            known: HashMap::new(),
            entries: HashMap::new(),
        }
    }

    /// Lists the directory of what vouches for them; gives its entries, and what is known of them from
    /// before.
    ///
    /// # Errors
    /// The store refuses.
    pub fn list(
        &mut self,
        directory: &str,
        schema: &'static str,
    ) -> Result<(Vec<Entry>, Index<'a>), Failure> {
        let entries = self.store.list(directory)?;
        self.entries = by_key(&entries);
        Ok((entries, Index::open(self.store, directory, schema)))
    }

    /// Keeps what is known for [`Vouched::remove`] and the next run.
    pub fn keep(&mut self, index: Index<'a>) {
        self.index = Some(index);
    }

    /// One of them, that the object at `at` vouches for; `None` if it has no time. `read_back` is what
    /// it means if that does not say whether it was read back.
    ///
    /// # Errors
    /// The store refuses.
    pub fn weigh(
        &mut self,
        index: &mut Index<'a>,
        at: String,
        known: Known,
        now: Now,
        read_back: bool,
    ) -> Result<Option<Candidate>, Failure> {
        let facts = &known.facts;
        let Some(moment) = moment(facts.slot.as_deref(), &facts.started_at, now.here) else {
            return Ok(None);
        };
        let entries = &self.entries;
        let mut ended = |end| ended(index, entries, (&at, end), &facts.stored_sha256);
        let candidate = Candidate {
            key: facts.key.clone(),
            moment,
            size: facts.size(),
            standing: if facts.read_back.unwrap_or(read_back) {
                Standing::Good
            } else {
                Standing::NotReadBack
            },
            verified: ended(VERIFIED)?,
            failed: ended(FAILED)?,
        };
        self.known.insert(facts.key.clone(), (at, known));
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
        if let Some(index) = &mut self.index {
            let same = index.still_says(at, known)?;
            index.forget(at);
            if !same {
                return Ok(Some(false));
            }
        }
        for (key, _) in known.facts.objects() {
            self.store.remove(key)?;
        }
        for end in [VERIFIED, FAILED] {
            let beside = beside(at, end);
            if self.entries.contains_key(&beside) {
                self.store.remove(&beside)?;
                if let Some(index) = &mut self.index {
                    index.forget(&beside);
                }
            }
        }
        self.store.remove(at)?;
        Ok(Some(true))
    }

    /// Ends: with `changed`, what is known is kept for the next run, and verifications go that are of
    /// nothing that is there; `of` gives the key of that.
    ///
    /// # Errors
    /// The store refuses.
    pub fn finish(&mut self, changed: bool, of: impl Fn(&str) -> String) -> Result<(), Failure> {
        let Some(index) = self.index.take().filter(|_| changed) else {
            return Ok(());
        };
        index.close();
        let keys: BTreeSet<String> = self.entries.keys().cloned().collect();
        strays(&keys, of)
            .iter()
            .try_for_each(|stray| self.store.remove(stray))
    }
}

/// A listing by its keys.
pub fn by_key(entries: &[Entry]) -> HashMap<String, Entry> {
    let by_key = entries.iter().map(|e| (e.key.clone(), e.clone()));
    by_key.collect()
}

/// True if a verification failed of the artefact with these bytes that the object at `at` of a listing
/// vouches for.
///
/// # Errors
/// The store refuses.
pub fn has_failed(
    index: &mut Index<'_>,
    entries: &HashMap<String, Entry>,
    at: &str,
    sha256: &str,
) -> Result<bool, Failure> {
    ended(index, entries, (at, FAILED), sha256)
}

fn ended(
    index: &mut Index<'_>,
    entries: &HashMap<String, Entry>,
    (at, end): (&str, &str),
    sha256: &str,
) -> Result<bool, Failure> {
    match entries.get(&beside(at, end)) {
        Some(entry) => Ok(index.verified(entry)?.as_deref() == Some(sha256)),
        None => Ok(false),
    }
}

/// The key of what says how the verification of what `at` vouches for ended.
fn beside(at: &str, end: &str) -> String {
    format!("{}{end}", at.strip_suffix(".json").unwrap_or(at))
}
