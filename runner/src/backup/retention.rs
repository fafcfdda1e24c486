//! The archives of a Backup on a storage for retention. Whose they are is read from the records on the
//! storage itself, so that it holds in every pod and for every protocol.

use std::collections::BTreeSet;

use crate::artefact::{self, Artefacts};
use crate::backup::others;
use crate::backup::record::{self, OldEntry};
use crate::backup::target::Delivered;
use crate::backup::target::StoredArchives;
use crate::context::Context;
use crate::failure::Failure;
use crate::retention::{
    Candidate, Candidates, Content, Facts, Now, Owner, Size, Standing, Vouched,
};
use crate::settings::plan::BackupSettings;
use crate::store::Store;

/// Applies retention on each storage where the archive was read back: what one storage lacks is no reason
/// to let another fill up.
pub(crate) fn after_run(context: &Context, backup: &BackupSettings, delivered: Vec<Delivered>) {
    // A storage that lacks the archive fails the run, whatever ends it.
    if delivered.len() == backup.plan.storages.len() {
        context.reporter.complete();
    }
    context.reporter.phase("Pruning");
    for one in delivered {
        let place = StoredArchives {
            context,
            backup,
            target: one.target,
        };
        artefact::after_run(&place, &one.key, one.read_back);
    }
}

/// The archives on one storage, for retention.
pub(crate) struct ArchiveCandidates<'a> {
    place: &'a StoredArchives<'a>,
    vouched: Option<Vouched<'a>>,
    /// Keys that are not there as they were stored.
    damaged: BTreeSet<String>,
    /// gobackup's own list.
    old: Vec<OldEntry>,
}

impl<'a> ArchiveCandidates<'a> {
    pub(crate) fn new(place: &'a StoredArchives<'a>) -> Self {
        Self {
            place,
            vouched: None,
            damaged: BTreeSet::new(),
            old: vec![],
        }
    }

    /// StoredArchives that gobackup's own list names. The list knows a model's name and nothing else: it may
    /// be another cluster's, or that of a gobackup which still runs. Only the user can say that it is not.
    fn listed(&mut self, vouched: &mut Vouched<'_>) -> Result<Vec<Candidate>, Failure> {
        let (backup, target) = (self.place.backup, &self.place.target);
        let at = record::old_state(backup, &target.path, &target.name);
        let own: BTreeSet<String> = vouched
            .facts()
            .flat_map(Facts::objects)
            .map(|(key, _)| key.to_owned())
            .collect();
        let old = others::entries(self.place)?;
        let mut found = vec![];
        for entry in &old {
            let named = others::of_gobackup(entry, &target.path, vouched.listings())?;
            let Some((moment, facts)) = named else {
                continue;
            };
            let missing = vouched.listings().content(&facts)? != Content::Whole;
            if missing || facts.objects().iter().any(|(key, _)| own.contains(*key)) {
                continue;
            }
            found.push(Candidate {
                key: facts.key.clone(),
                moment,
                size: Size {
                    stored: facts.stored_bytes,
                    ..Size::default()
                },
                standing: Standing::Listed,
                verified: false,
                failed: false,
            });
        }
        if backup.adopt_state == Some(true) {
            self.old = old;
            return Ok(found);
        }
        if backup.adopt_state.is_none() && !found.is_empty() {
            self.place.context.reporter.warn(&format!(
                "storage {}: gobackup's own list {at} names {} archives; keep does not count or remove them, because the list says nothing of cluster or object: set spec.job.adoptState: true if no gobackup and no other cluster uses it, or false to leave them alone for good",
                target.name,
                found.len()
            ));
        }
        Ok(vec![])
    }
}

impl Candidates for ArchiveCandidates<'_> {
    fn store(&self) -> &dyn Store {
        self.place.store()
    }

    fn directory(&self) -> String {
        self.place.records().directory
    }

    fn gather(&mut self, now: Now) -> Result<Vec<Candidate>, Failure> {
        let mut vouched = Vouched::open(self.place.store(), self.place.records())?;
        let mut found = vec![];
        for one in vouched.all(&self.place.context.settings.identity)? {
            // The directory is that of a UID, so that others' records are there by mistake alone.
            if one.owner == Owner::This {
                found.extend(vouched.weigh(one, now)?);
            }
        }
        let damaged = found.iter().filter(|c| c.standing == Standing::Damaged);
        self.damaged = damaged.map(|c| c.key.clone()).collect();
        found.extend(self.listed(&mut vouched)?);
        self.vouched = Some(vouched);
        Ok(found)
    }

    fn remove(&mut self, key: &str) -> Result<bool, Failure> {
        // What is not as it was stored may be what somebody else has stored there since.
        if self.damaged.contains(key) && others::is_claimed(self.place, key)? {
            return Ok(false);
        }
        if let Some(vouched) = &mut self.vouched
            && let Some(removed) = vouched.remove(key)?
        {
            return Ok(removed);
        }
        let path = &self.place.target.path;
        let mut listed = self.old.iter().filter_map(|e| others::keys(e, path));
        let Some(keys) = listed.find(|keys| keys.first().is_some_and(|k| k == key)) else {
            return Ok(false);
        };
        for key in keys {
            self.place.store().remove(&key)?;
        }
        Ok(true)
    }

    /// gobackup may come back: its list must not name what is gone.
    fn finish(&mut self, gone: &BTreeSet<String>) -> Result<(), Failure> {
        if let Some(vouched) = self.vouched.take() {
            let now = crds::time::rfc3339(self.place.context.clock.now());
            vouched.finish(gone, now)?;
        }
        let (backup, target) = (self.place.backup, &self.place.target);
        let names_gone = |e: &OldEntry| {
            let keys = others::keys(e, &target.path);
            keys.is_some_and(|keys| keys.first().is_some_and(|k| gone.contains(k)))
        };
        let left: Vec<&OldEntry> = self.old.iter().filter(|e| !names_gone(e)).collect();
        if left.len() == self.old.len() {
            return Ok(());
        }
        let text = serde_json::to_vec(&left).unwrap_or_default();
        let at = record::old_state(backup, &target.path, &target.name);
        self.place.store().put(&at, &text)
    }
}
