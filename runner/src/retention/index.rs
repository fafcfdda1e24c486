//! What is known of the artefacts of a directory from one run to the next, so that a run reads but
//! what it has not seen before: `.facts`, beside them. It is a copy and never the truth: an entry counts only
//! for a manifest of that key and size, a broken one is made anew, and what is to be removed is
//! looked at again first.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::retention::facts::{self, Facts};
use crate::retention::verdict;
use crate::store::{self, Entry, Store};
use crate::stream::checksum::hex;

/// Its name.
const NAME: &str = ".facts";
/// Schema of its content.
const SCHEMA: &str = "batch.isekiro.com/facts/v1";
/// Most bytes of it that are read or written; some 20,000 artefacts fit.
const LARGEST: u64 = 8 << 20;
/// So many of the artefacts that were pruned last are remembered: more than status has runs.
const PRUNED: usize = 512;

/// What retention removed, as far as it is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// When each went, RFC 3339, by their keys.
    pub at: BTreeMap<String, String>,
    /// What went before this moment, RFC 3339, may have been forgotten.
    pub forgotten_before: Option<String>,
    /// Nothing is remembered at all: there is no index that is whole.
    pub lost: bool,
}

/// The facts of one artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The facts.
    pub facts: Facts,
    /// They were not read in this run.
    pub remembered: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    schema: String,
    /// By the keys of manifests or records.
    artefacts: BTreeMap<String, Seen<Facts>>,
    /// SHA-256 of the artefacts that were verified, by the keys of what says so.
    verifications: BTreeMap<String, Seen<String>>,
    /// What retention removed: it is not missing. When, by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pruned: BTreeMap<String, String>,
    /// When this index was begun: whether there was another before, nobody knows. Later if it has grown too long since.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten_before: Option<String>,
}

/// What stood in an object of this size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen<T> {
    size: u64,
    said: T,
}

/// The index of a directory.
pub struct Index<'a> {
    store: &'a dyn Store,
    key: String,
    /// Schema of the manifests or records.
    schema: &'static str,
    before: Content,
    now: Content,
    /// There was none that is whole.
    lost: bool,
}

impl<'a> Index<'a> {
    /// Opens that of `directory`. One that can't be read is empty.
    pub fn open(store: &'a dyn Store, directory: &str, schema: &'static str) -> Self {
        let key = key_in(directory);
        let before = load(store, &key);
        let lost = before.is_none();
        let before = before.unwrap_or_default();
        Self {
            store,
            key,
            schema,
            now: Content {
                schema: SCHEMA.to_owned(),
                pruned: before.pruned.clone(),
                forgotten_before: before.forgotten_before.clone(),
                ..Content::default()
            },
            before,
            lost,
        }
    }

    /// The facts in this manifest or record of a listing; `None` if it is none.
    ///
    /// # Errors
    /// The store refuses.
    pub fn facts(&mut self, entry: &Entry) -> Result<Option<Known>, Failure> {
        let before = self.before.artefacts.get(&entry.key);
        let remembered = before.filter(|seen| seen.size == entry.size).cloned();
        let known = match &remembered {
            Some(seen) => Some(seen.said.clone()),
            None => facts::read(self.store, &entry.key, self.schema)?,
        };
        Ok(known.map(|facts| {
            let seen = Seen {
                size: entry.size,
                said: facts.clone(),
            };
            self.now.artefacts.insert(entry.key.clone(), seen);
            Known {
                facts,
                remembered: remembered.is_some(),
            }
        }))
    }

    /// SHA-256 of the artefact of which this object of a listing says how a verification ended.
    ///
    /// # Errors
    /// The store refuses.
    pub fn verified(&mut self, entry: &Entry) -> Result<Option<String>, Failure> {
        let before = self.before.verifications.get(&entry.key);
        let sha256 = match before.filter(|seen| seen.size == entry.size) {
            Some(seen) => Some(seen.said.clone()),
            None => verdict::read(self.store, &entry.key)?.map(|v| v.sha256),
        };
        Ok(sha256.inspect(|said| {
            let seen = Seen {
                size: entry.size,
                said: said.clone(),
            };
            self.now.verifications.insert(entry.key.clone(), seen);
        }))
    }

    /// True if the manifest or record of this key still says what was remembered of it.
    ///
    /// # Errors
    /// The store refuses.
    pub fn still_says(&self, key: &str, known: &Known) -> Result<bool, Failure> {
        if !known.remembered {
            return Ok(true);
        }
        let now = facts::read(self.store, key, self.schema)?;
        Ok(now.as_ref() == Some(&known.facts))
    }

    /// What was pruned, as far as it is remembered.
    pub fn pruned(&self) -> Pruned {
        Pruned {
            at: self.now.pruned.clone(),
            forgotten_before: self.now.forgotten_before.clone(),
            lost: self.lost,
        }
    }

    /// Remembers that these were pruned at `time`, RFC 3339 in UTC, and what is forgotten since.
    pub fn note_pruned(&mut self, gone: &BTreeSet<String>, time: &str) {
        if self.lost {
            self.now.forgotten_before = Some(time.to_owned());
        }
        let pruned = &mut self.now.pruned;
        pruned.extend(gone.iter().map(|key| (key.clone(), time.to_owned())));
        let mut times: Vec<(String, String)> = pruned
            .iter()
            .map(|(key, at)| (at.clone(), key.clone()))
            .collect();
        times.sort();
        for (_, key) in times.iter().rev().skip(PRUNED) {
            pruned.remove(key);
        }
        if let Some((at, _)) = times.iter().rev().nth(PRUNED) {
            // Of those of one moment some may stay: it counts from the next second on.
            let after = crds::time::parse_rfc3339(at).map(|at| at + chrono::TimeDelta::seconds(1));
            let after = after.map(crds::time::rfc3339);
            self.now.forgotten_before = after.max(self.now.forgotten_before.take());
        }
    }

    /// Forgets what stood under this key.
    pub fn forget(&mut self, key: &str) {
        self.now.artefacts.remove(key);
        self.now.verifications.remove(key);
    }

    /// Keeps what was seen, if it is another than before. That is a help for the next run and no more:
    /// a store that refuses is no matter.
    pub fn close(self) {
        let now = &self.now;
        let none = |content: &Content| content.artefacts.is_empty() && content.pruned.is_empty();
        if *now == self.before || none(now) && none(&self.before) {
            return;
        }
        let Ok(json) = serde_json::to_vec(now) else {
            return;
        };
        let mut text = format!("{}\n", hex(&Sha256::digest(&json))).into_bytes();
        text.extend(json);
        if text.len() as u64 > LARGEST {
            return;
        }
        if let Err(e) = self.store.put(&self.key, &text) {
            tracing::info!(
                "{} was not written, the next run reads all manifests again: {e}",
                self.key
            );
        }
    }
}

/// Removes the index of a directory.
///
/// # Errors
/// The store refuses.
pub fn remove(store: &dyn Store, directory: &str) -> Result<(), Failure> {
    store.remove(&key_in(directory))
}

fn key_in(directory: &str) -> String {
    match directory {
        "" => NAME.to_owned(),
        directory => format!("{directory}/{NAME}"),
    }
}

/// Its content; `None` if it is not there or not whole.
fn load(store: &dyn Store, key: &str) -> Option<Content> {
    let text = store::read(store, key, LARGEST).ok().flatten()?;
    let end = text.iter().position(|b| *b == b'\n')?;
    let (sum, json) = (text.get(..end)?, text.get(end + 1..)?);
    if sum != hex(&Sha256::digest(json)).as_bytes() {
        return None;
    }
    let content: Content = serde_json::from_slice(json).ok()?;
    (content.schema == SCHEMA).then_some(content)
}
