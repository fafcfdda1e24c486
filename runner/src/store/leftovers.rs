//! What dead attempts left: temporaries, claims, artefacts nobody vouched for, manifests whose artefact
//! a prune that was ended half-way took away, and uploads that were never completed. One rule for
//! every store and both kinds: what a process that lives may be at is never touched, and nothing
//! that only looks like the runner's. Ages are by the store's own clock.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::failure::Failure;
use crate::store;
use crate::store::{Attempt, DEAD_AFTER, Kind, Name, Note, OpenUpload, Own, Store};

/// Largest manifest that is read.
const LARGEST: u64 = 64 << 20;
/// Marks are kept for so long.
const MARKS: Duration = Duration::from_secs(7 * 24 * 3600);
/// An attempt of another run whose process is gone by its lock: a runner older than these locks
/// touched its files every ten seconds.
const UNLOCKED: Duration = Duration::from_secs(60);

/// Where to look, and what is whose there.
pub trait Place: Sync {
    /// Directory of artefacts and of the runner's own files.
    fn directory(&self) -> &str;

    /// Another directory of the runner's own files, where there is one: all in it is this object's.
    fn beside(&self) -> Option<String> {
        None
    }

    /// True if only the runner gives such a key, and to artefacts of this object alone: one that nobody
    /// vouches for is then a leftover, also where no claim names it.
    fn is_artefact(&self, key: &str) -> bool;

    /// True if the runner, or gobackup, uploads to such keys.
    fn is_upload(&self, key: &str) -> bool;

    /// True if an attempt of this run uploads to this key.
    fn is_of_run(&self, key: &str) -> bool;

    /// True if the claim is one of this object.
    fn is_own(&self, note: &Note) -> bool;

    /// True if retention removes artefacts there.
    fn prunes(&self) -> bool;

    /// True if all that is in the directory is of this object.
    fn is_alone(&self) -> bool;

    /// Key of what vouches for an artefact.
    fn manifest_of(&self, key: &str) -> String;

    /// Manifests of this object whose artefact is gone.
    ///
    /// # Errors
    /// The store refuses.
    fn lone_manifests(&self, store: &dyn Store) -> Result<Vec<String>, Failure>;
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Temporaries, claims and marks.
    pub own: u64,
    /// Artefacts and parts of them that nobody vouched for.
    pub artefacts: u64,
    /// Manifests without their artefact.
    pub manifests: Vec<String>,
    /// Uploads that were never completed.
    pub uploads: u64,
}

impl Removed {
    /// All of it.
    pub fn count(&self) -> u64 {
        self.own + self.artefacts + self.uploads + self.manifests.len() as u64
    }
}

/// Removes what dead attempts left; with `all` whatever attempts of this object left, dead or not. This
/// attempt is of that age.
///
/// # Errors
/// The store refuses.
pub fn clean(
    store: &dyn Store,
    (attempt, age): (&Attempt, Duration),
    place: &dyn Place,
    all: bool,
) -> Result<Removed, Failure> {
    let mut search = Search {
        store,
        place,
        attempt,
        all,
        now: None,
        live: BTreeSet::new(),
        gone: BTreeSet::new(),
        removed: Removed::default(),
    };
    search.own()?;
    search.artefacts()?;
    // Where nothing is ever removed a manifest without its artefact tells of a loss: it stays.
    if all || place.prunes() {
        for key in place.lone_manifests(store)? {
            store.remove(&key)?;
            tracing::info!(event = "leftover", key, "a manifest without its artefact");
            search.removed.manifests.push(key);
        }
    }
    search.uploads(age)?;
    Ok(search.removed)
}

struct Search<'a> {
    store: &'a dyn Store,
    place: &'a dyn Place,
    attempt: &'a Attempt,
    all: bool,
    /// The store's time, once it was asked for; `Some(None)` if it does not tell.
    now: Option<Option<DateTime<Utc>>>,
    /// Keys that live attempts are at.
    live: BTreeSet<String>,
    /// Keys that dead attempts were at.
    gone: BTreeSet<String>,
    removed: Removed,
}

impl Search<'_> {
    fn own(&mut self) -> Result<(), Failure> {
        let found = self.store.own(self.place.directory())?;
        // Of what lies in a directory of several objects only claims say whose it is.
        let mut nonces: BTreeSet<String> = BTreeSet::new();
        let (claims, others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|own| Name::parse(&own.key).is_some_and(|n| n.kind == Kind::Claim));
        for own in claims {
            let Some(name) = Name::parse(&own.key).filter(|n| !n.is_of(self.attempt)) else {
                continue;
            };
            let Some(note) = store::read_claim(self.store, &own.key)? else {
                if self.is_dead(&own, &name) {
                    self.remove_own(&own.key)?;
                }
                continue;
            };
            let asked = self.all && self.place.is_own(&note);
            if !asked && !self.is_dead(&own, &name) {
                self.live.insert(note.key);
                continue;
            }
            nonces.insert(name.nonce.to_owned());
            self.undo(&note, name.nonce)?;
            self.remove_own(&own.key)?;
            self.gone.insert(note.key);
        }
        for own in others {
            let Some(name) = Name::parse(&own.key).filter(|n| !n.is_of(self.attempt)) else {
                continue;
            };
            let asked = self.all && self.place.is_alone();
            // What only asks for the time is missed by nobody.
            let clock = name.tag == store::CLOCK;
            if asked || clock || nonces.contains(name.nonce) || self.is_dead(&own, &name) {
                self.remove_own(&own.key)?;
            }
        }
        for own in match self.place.beside() {
            Some(directory) => self.store.own(&directory)?,
            None => vec![],
        } {
            let Some(name) = Name::parse(&own.key).filter(|n| !n.is_of(self.attempt)) else {
                continue;
            };
            if self.all || self.is_dead(&own, &name) {
                self.remove_own(&own.key)?;
            }
        }
        Ok(())
    }

    /// Removes what the attempt of a claim stored, unless it vouched for it.
    fn undo(&mut self, note: &Note, nonce: &str) -> Result<(), Failure> {
        if !note.token.is_empty() {
            return self.undo_token(note);
        }
        match whole(self.store, &note.manifest)? {
            Some(true) => return Ok(()),
            // Its writer was ended in the middle of it.
            Some(false) => self.store.remove(&note.manifest)?,
            None => {}
        }
        let directory = note.key.rsplit_once('/').map_or("", |(d, _)| d);
        let part = format!("{}-", note.key);
        for entry in self.store.list(directory)? {
            let is_it = entry.key == note.key || note.split && entry.key.starts_with(&part);
            if is_it {
                self.remove_artefact(&entry.key)?;
            }
        }
        if directory == self.place.directory() {
            return Ok(());
        }
        for own in self.store.own(directory)? {
            if Name::parse(&own.key).is_some_and(|n| n.nonce == nonce) {
                self.remove_own(&own.key)?;
            }
        }
        Ok(())
    }

    /// Removes what has an attempt's token in its name and nobody vouches for.
    fn undo_token(&mut self, note: &Note) -> Result<(), Failure> {
        let directory = note.key.rsplit_once('/').map_or("", |(d, _)| d);
        for entry in self.store.list(directory)? {
            let name = entry.key.rsplit('/').next().unwrap_or(&entry.key);
            let manifest = format!("{}/{name}.json", note.manifest);
            if name.contains(&note.token) && whole(self.store, &manifest)? != Some(true) {
                self.remove_artefact(&entry.key)?;
            }
        }
        Ok(())
    }

    fn artefacts(&mut self) -> Result<(), Failure> {
        let entries = self.store.list(self.place.directory())?;
        let keys: BTreeSet<&str> = entries.iter().map(|e| e.key.as_str()).collect();
        for entry in &entries {
            let key = entry.key.as_str();
            if !self.place.is_artefact(key)
                || self.live.contains(key)
                || keys.contains(self.place.manifest_of(key).as_str())
            {
                continue;
            }
            let old = self.all || {
                let modified = self.store.modified(key)?;
                self.is_older(modified, DEAD_AFTER)
            };
            if old {
                self.remove_artefact(key)?;
            }
        }
        Ok(())
    }

    fn uploads(&mut self, age: Duration) -> Result<(), Failure> {
        let elapsed = chrono::Duration::from_std(age).unwrap_or_default();
        let (place, live, gone, all) = (self.place, &self.live, &self.gone, self.all);
        let named = |key: &str, keys: &BTreeSet<String>| {
            keys.iter().any(|k| {
                key.strip_prefix(k.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            })
        };
        let dead = |upload: &OpenUpload| {
            let key = upload.key.as_str();
            if named(key, gone) {
                return true;
            }
            if !place.is_upload(key) {
                return false;
            }
            if all && place.is_alone() {
                return true;
            }
            // This attempt replaces those of its run that began before it, and no later one.
            let replaced = place.is_of_run(key)
                && upload
                    .now
                    .zip(upload.begun)
                    .is_some_and(|(now, begun)| begun < now - elapsed);
            replaced || !named(key, live) && older(upload.touched, upload.now, DEAD_AFTER)
        };
        self.removed.uploads += self.store.abort_uploads(place.directory(), &dead)?;
        Ok(())
    }

    fn is_dead(&mut self, own: &Own, name: &Name<'_>) -> bool {
        if name.kind == Kind::Mark {
            return self.is_older(own.modified, MARKS);
        }
        match own.alive {
            Some(true) => false,
            Some(false) => name.run == self.attempt.run || self.is_older(own.modified, UNLOCKED),
            None => {
                name.kind == Kind::Temporary && name.is_replaced_by(self.attempt)
                    || self.is_older(own.modified, self.store.dead_after())
            }
        }
    }

    /// What has no time, or lies in a store without one, is not old.
    fn is_older(&mut self, modified: Option<DateTime<Utc>>, than: Duration) -> bool {
        if modified.is_none() {
            return false;
        }
        if self.now.is_none() {
            let time = time_of(self.store, self.attempt, self.place.directory());
            self.now = Some(time);
        }
        older(modified, self.now.flatten(), than)
    }

    fn remove_own(&mut self, key: &str) -> Result<(), Failure> {
        self.store.remove(key)?;
        self.removed.own += 1;
        Ok(())
    }

    fn remove_artefact(&mut self, key: &str) -> Result<(), Failure> {
        self.store.remove(key)?;
        tracing::info!(
            event = "leftover",
            key,
            "of an attempt that did not vouch for it"
        );
        self.removed.artefacts += 1;
        Ok(())
    }
}

/// Whether a manifest or record was written to its end; `None` if there is none.
fn whole(store: &dyn Store, key: &str) -> Result<Option<bool>, Failure> {
    let text = store::read(store, key, LARGEST)?;
    let is_json = |text: Vec<u8>| serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok();
    Ok(text.map(is_json))
}

fn older(modified: Option<DateTime<Utc>>, now: Option<DateTime<Utc>>, than: Duration) -> bool {
    modified
        .zip(now)
        .is_some_and(|(modified, now)| (now - modified).to_std().is_ok_and(|age| age > than))
}

/// The store's own clock: what is written now says what time it has.
fn time_of(store: &dyn Store, attempt: &Attempt, directory: &str) -> Option<DateTime<Utc>> {
    let key = store::clock_key(directory, attempt);
    store.put(&key, b"").ok()?;
    let found = store.own(directory).ok()?;
    let _ = store.remove(&key);
    found.into_iter().find(|own| own.key == key)?.modified
}
