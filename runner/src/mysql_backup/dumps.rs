//! The artefacts of a MysqlBackup, dumps each beside its manifest, for retention.

use std::collections::BTreeSet;

use crate::artefact::Artefacts;
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::mysql_backup::stored::StoredDumps;
use crate::retention::{
    Candidate, Candidates, Moment, Now, Owner, Size, Standing, Vouched, beside_of,
};
use crate::store::{Entry, Store};

/// The dumps of a MysqlBackup, for retention.
pub struct DumpCandidates<'a> {
    place: &'a StoredDumps<'a>,
    vouched: Option<Vouched<'a>>,
}

impl<'a> DumpCandidates<'a> {
    /// Those of the run's object.
    pub fn new(place: &'a StoredDumps<'a>) -> Self {
        Self {
            place,
            vouched: None,
        }
    }

    /// Older files without a manifest, in the destination's root and the object's directory, that
    /// the user lets retention remove too. Their time is that of their last change.
    fn adopted(&self, entries: &[Entry]) -> Result<Vec<Candidate>, Failure> {
        // Names of files without a manifest that are the user's, and may go.
        let rules = self.place.rules().unwrap_or_default();
        let Some(pattern) = rules.adopt_pattern.filter(|p| !p.is_empty()) else {
            return Ok(vec![]);
        };
        let root = self.place.store().list("")?;
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
            if let Some(at) = self.place.store().modified(&entry.key)? {
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

impl Candidates for DumpCandidates<'_> {
    fn store(&self) -> &dyn Store {
        self.place.store()
    }

    fn directory(&self) -> String {
        self.place.records().directory
    }

    fn gather(&mut self, now: Now) -> Result<Vec<Candidate>, Failure> {
        let context = self.place.context();
        let mut vouched = Vouched::open(self.place.store(), self.place.records())?;
        let (own, unknown): (Vec<_>, Vec<_>) = vouched
            .all(&context.settings.identity)?
            .into_iter()
            .partition(|one| one.owner == Owner::This);
        if let Some(first) = unknown.first() {
            context.reporter.warn(&format!(
                "{} artefacts of this name, such as {}, may be another cluster's: they name an object of another UID, and not both they and this operator name their cluster; retention leaves them alone: let the operator read the namespace kube-system, and remove by hand what is not needed",
                unknown.len(),
                first.known.facts.key
            ));
        }
        let mut found = vec![];
        for one in own {
            found.extend(vouched.weigh(one, now)?);
        }
        let mut entries: Vec<Entry> = vouched.entries().cloned().collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        found.extend(self.adopted(&entries)?);
        self.vouched = Some(vouched);
        Ok(found)
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        if let Some(vouched) = &mut self.vouched
            && let Some(removed) = vouched.remove(key)?
        {
            return Ok(removed);
        }
        // Nothing says what it was but its name; it must not have got a manifest meanwhile.
        let store = self.place.store();
        if store.open(&Manifest::key_of(key))?.is_some() {
            return Ok(false);
        }
        store.remove(key).map(|()| true)
    }

    fn finish(&mut self, gone: &BTreeSet<String>) -> Result<(), Failure> {
        let now = crds::time::rfc3339(self.place.context().clock.now());
        let vouched = self.vouched.take();
        vouched.map_or(Ok(()), |vouched| vouched.finish(gone, now))
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
