//! The artefacts of a MysqlBackup: dumps, each beside its manifest.

use std::collections::{BTreeSet, HashMap};

use crate::artefact::KnownArtefact;
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::manifest::{self, Manifest};
use crate::retention::{
    self, Artefacts, Candidate, Index, Known, Moment, Now, Owner, Size, Standing, Vouched,
    beside_of, moment, owner,
};
use crate::settings::Identity;
use crate::store::{Entry, Store};

/// An artefact that is there with its length, and what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dump {
    /// What its manifest says.
    known: Known,
    /// Whose it is.
    owner: Owner,
}

/// Dumps in the object's directory whose manifest may name the object, oldest first: what can be
/// read. Manifests are read in part, one at a time.
///
/// # Errors
/// The store refuses.
pub fn list(
    store: &dyn Store,
    identity: &Identity,
    now: Now,
) -> Result<Vec<KnownArtefact>, Failure> {
    let directory = identity.directory();
    let entries = store.list(&directory)?;
    let mut index = Index::open(store, &directory, manifest::SCHEMA);
    let mut found = read(&entries, &mut index, identity)?;
    found.retain(|d| d.owner != Owner::Other);
    found.sort_by_cached_key(|d| (time(&d.known, now), d.known.facts.key.clone()));
    let entries = retention::by_key(&entries);
    let available = found.into_iter().map(|Dump { known, owner }| {
        let manifest = Manifest::key_of(&known.facts.key);
        let facts = known.facts;
        let sha256 = &facts.stored_sha256;
        Ok(KnownArtefact {
            failed: retention::has_failed(&mut index, &entries, &manifest, sha256)?,
            manifest,
            facts,
            owner,
        })
    });
    available.collect()
}

fn time(known: &Known, now: Now) -> Option<Moment> {
    let facts = &known.facts;
    moment(facts.slot.as_deref(), &facts.started_at, now.here)
}

/// Dumps of a listing.
fn read(
    entries: &[Entry],
    index: &mut Index<'_>,
    identity: &Identity,
) -> Result<Vec<Dump>, Failure> {
    let sizes: HashMap<&str, u64> = entries.iter().map(|e| (e.key.as_str(), e.size)).collect();
    let mut found = vec![];
    for entry in entries {
        let Some(artefact) = Manifest::artefact_of(&entry.key) else {
            continue;
        };
        let Some(size) = sizes.get(artefact) else {
            continue;
        };
        let Some(known) = index.facts(entry)? else {
            continue;
        };
        let facts = &known.facts;
        if facts.key == artefact && facts.stored_bytes == *size {
            found.push(Dump {
                owner: owner(&facts.cluster_id, &facts.object, identity),
                known,
            });
        }
    }
    Ok(found)
}

/// The dumps of a MysqlBackup, for retention.
pub struct Dumps<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    directory: String,
    /// Names of files without a manifest that are the user's, and may go.
    pattern: Option<&'a str>,
    vouched: Vouched<'a>,
}

impl<'a> Dumps<'a> {
    /// Those of the context's object in `store`.
    pub fn new(context: &'a Context, store: &'a dyn Store) -> Self {
        let rules = context.settings.retention.as_ref();
        let pattern = rules.and_then(|r| r.adopt_pattern.as_deref());
        Self {
            context,
            store,
            directory: context.settings.identity.directory(),
            pattern: pattern.filter(|p| !p.is_empty()),
            vouched: Vouched::new(store),
        }
    }

    /// Older files without a manifest, in the destination's root and the object's directory, that
    /// the user lets retention remove too. Their time is that of their last change.
    fn adopted(&self, entries: &[Entry]) -> Result<Vec<Candidate>, Failure> {
        let Some(pattern) = self.pattern else {
            return Ok(vec![]);
        };
        let root = self.store.list("")?;
        let keys: BTreeSet<&str> = entries
            .iter()
            .chain(&root)
            .map(|e| e.key.as_str())
            .collect();
        let mut found = vec![];
        let mut seen = BTreeSet::new();
        for entry in entries.iter().chain(&root) {
            let name = entry.key.rsplit('/').next().unwrap_or_default();
            let artefact = beside_of(&entry.key).unwrap_or(&entry.key);
            let own = name.ends_with(".json")
                || artefact != entry.key
                || keys.contains(Manifest::key_of(artefact).as_str());
            if own || !matches(pattern.as_bytes(), name.as_bytes()) || !seen.insert(&entry.key) {
                continue;
            }
            if let Some(at) = self.store.modified(&entry.key)? {
                found.push(Candidate {
                    key: entry.key.clone(),
                    moment: Moment { at, since: at },
                    size: Size {
                        stored: entry.size,
                        ..Size::default()
                    },
                    standing: Standing::Adopted,
                    verified: false,
                    failed: false,
                });
            }
        }
        Ok(found)
    }
}

impl Artefacts for Dumps<'_> {
    fn store(&self) -> &dyn Store {
        self.store
    }

    fn directory(&self) -> String {
        self.directory.clone()
    }

    fn gather(&mut self, now: Now) -> Result<Vec<Candidate>, Failure> {
        let identity = &self.context.settings.identity;
        let (entries, mut index) = self.vouched.list(&self.directory, manifest::SCHEMA)?;
        let mut found = vec![];
        let mut unknown = vec![];
        for dump in read(&entries, &mut index, identity)? {
            let facts = &dump.known.facts;
            match dump.owner {
                Owner::This => {}
                Owner::Unknown => {
                    unknown.push(facts.key.clone());
                    continue;
                }
                Owner::Other => continue,
            }
            let at = Manifest::key_of(&facts.key);
            // Every manifest says whether its artefact was read back.
            found.extend(self.vouched.weigh(&mut index, at, dump.known, now, false)?);
        }
        if let Some(first) = unknown.first() {
            self.context.reporter.warn(&format!(
                "{} artefacts of this name, such as {first}, may be another cluster's: they name an object of another UID, and not both they and this operator name their cluster; retention leaves them alone: let the operator read the namespace kube-system, and remove by hand what is not needed",
                unknown.len()
            ));
        }
        found.extend(self.adopted(&entries)?);
        self.vouched.keep(index);
        Ok(found)
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        if let Some(removed) = self.vouched.remove(key)? {
            return Ok(removed);
        }
        // Nothing says what it was but its name; it must not have got a manifest meanwhile.
        if self.store.open(&Manifest::key_of(key))?.is_some() {
            return Ok(false);
        }
        self.store.remove(key).map(|()| true)
    }

    fn finish(&mut self, _gone: &BTreeSet<String>, changed: bool) -> Result<(), Failure> {
        self.vouched.finish(changed, str::to_owned)
    }
}

/// `*` stands for any characters, `?` for one.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star was met: after it, and the first byte it does not stand for yet.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, n));
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    p = after;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*.sql.gz", "a.sql.gz", true),
            ("*.sql.gz", "a.sql", false),
            ("dump-????.sql", "dump-2024.sql", true),
            ("dump-????.sql", "dump-24.sql", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("*a", "aab", false),
            ("*ab", "aab", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
        // The time does not grow with the stars.
        let (pattern, name) = ("*a".repeat(200), "a".repeat(4000) + "b");
        assert!(!matches(pattern.as_bytes(), name.as_bytes()));
    }
}
