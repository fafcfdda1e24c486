//! One stream to several storages. A storage that fails is left behind; the others go on, and the
//! run fails in the end.

use std::io::{self, Write};
use std::sync::{Arc, Weak};

use crds::plan::Split;
use crds::report::{EndpointKind, Reason};
use sha2::{Digest, Sha256};

use crate::backup::record::{self, Archive, PartRecord};
use crate::backup::target::{Delivered, Target};
use crate::context::Context;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::report::Reporter;
use crate::settings::plan::BackupSettings;
use crate::store::{Claim, Note, Upload, read_back, warn_of_condition};
use crate::stream::checksum::{Stored, hex};

/// So many names are tried where others stand already, or may be made; the last is this attempt's alone.
const NAMES: usize = 4;

/// All storages of a run and how far each is.
pub(crate) struct Tee {
    lanes: Vec<Lane>,
    failures: Vec<Failure>,
    reporter: Arc<Reporter>,
    split: Option<Split>,
    /// Parts that are full.
    full: Vec<Stored>,
    /// The part that is written.
    hash: Sha256,
    bytes: u64,
}

struct Lane {
    target: Target,
    /// Key of the archive; what the keys of a split one's parts begin with.
    key: String,
    /// Key and upload of each part; all but the last are closed.
    parts: Vec<(String, Box<dyn Upload>)>,
    /// That the key is this attempt's. Given up after what was not published is gone.
    claim: Arc<Claim>,
}

impl Lane {
    fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self.parts.last_mut() {
            Some((_, upload)) => upload.write(data),
            None => Err(Failure::new(Reason::StoreFailed, "the upload is closed")),
        }
    }

    fn close(&mut self) -> Result<(), Failure> {
        match self.parts.last_mut() {
            Some((_, upload)) => upload.close(),
            None => Ok(()),
        }
    }

    /// Closes the part and begins the one with this suffix.
    fn next(&mut self, suffix: &str) -> Result<(), Failure> {
        self.close()?;
        let key = format!("{}-{suffix}", self.key);
        let upload = self.target.store.begin(&key)?;
        self.parts.push((key, upload));
        Ok(())
    }

    /// Reads every part back; false if an archive class keeps one from it.
    fn read_back(&mut self, reporter: &Reporter, stored: &[Stored]) -> Result<bool, Failure> {
        let mut whole = true;
        for ((key, upload), stored) in self.parts.iter_mut().zip(stored) {
            whole &= read_back(reporter, upload.as_mut(), key, stored)?;
        }
        Ok(whole)
    }

    /// Publishes every part; after a failure none is left.
    fn publish(&mut self) -> Result<(), Failure> {
        let mut published = vec![];
        for (key, upload) in &mut self.parts {
            let done = upload.publish().and_then(|done| {
                done.then_some(()).ok_or_else(|| {
                    Failure::new(
                        Reason::AlreadyExists,
                        format!(
                            "{key} was made by another run meanwhile: it is left alone; run again"
                        ),
                    )
                })
            });
            if let Err(e) = done {
                for key in published {
                    let _ = self.target.store.remove(key);
                }
                return Err(e);
            }
            published.push(key.as_str());
        }
        Ok(())
    }
}

impl Tee {
    /// Begins an upload on each storage.
    ///
    /// # Errors
    /// None of them takes one.
    pub(crate) fn begin(
        context: &Context,
        backup: &BackupSettings,
        targets: Vec<Target>,
        lost: Vec<Failure>,
    ) -> Result<Self, Failure> {
        let mut tee = Self {
            lanes: vec![],
            failures: lost,
            reporter: Arc::clone(&context.reporter),
            split: backup.plan.split,
            full: vec![],
            hash: Sha256::new(),
            bytes: 0,
        };
        let first = tee.split.and_then(|s| s.suffix(0));
        for target in targets {
            let begin = || -> Result<(String, Claim, String, Box<dyn Upload>), Failure> {
                let (key, claim) = claim_key(context, backup, &target)?;
                warn_of_condition(&context.reporter, target.store.as_ref(), claim.condition());
                let part = match &first {
                    None => key.clone(),
                    Some(suffix) => format!("{key}-{suffix}"),
                };
                let upload = target.store.begin(&part)?;
                Ok((key, claim, part, upload))
            };
            match begin() {
                Ok((key, claim, part, upload)) => tee.lanes.push(Lane {
                    target,
                    key,
                    parts: vec![(part, upload)],
                    claim: Arc::new(claim),
                }),
                Err(e) => tee.lost(&target.name, e),
            }
        }
        if tee.lanes.is_empty() {
            return Err(tee.all_lost());
        }
        Ok(tee)
    }

    /// The claims of all storages, to be renewed while they are held.
    pub(crate) fn claims(&self) -> Vec<Weak<Claim>> {
        self.lanes
            .iter()
            .map(|l| Arc::downgrade(&l.claim))
            .collect()
    }

    /// All failures as one.
    fn all_lost(&mut self) -> Failure {
        Failure::all(std::mem::take(&mut self.failures))
    }

    fn lost(&mut self, name: &str, failure: Failure) {
        tracing::error!(
            storage = name,
            reason = failure.reason.as_str(),
            "the storage failed"
        );
        let failure = Failure {
            message: format!("Storage {name}: {}", failure.message),
            ..failure
        };
        if failure.reason.is_unreachable() {
            self.reporter
                .endpoint(EndpointKind::Storage, name, Err(&failure));
        }
        self.failures.push(failure);
    }

    fn part_is_full(&mut self) {
        let hash = std::mem::take(&mut self.hash);
        self.full.push(Stored {
            bytes: std::mem::take(&mut self.bytes),
            sha256: hex(&hash.finalize()),
        });
    }

    /// Every storage begins its next part.
    fn next_part(&mut self, split: Split) -> io::Result<()> {
        self.part_is_full();
        let Some(suffix) = split.suffix(self.full.len() as u64) else {
            return Err(io::Error::other(Failure::settings(format!(
                "the archive has more than {} parts: raise spec.splitWith.chunkSize or suffixLength",
                self.full.len()
            ))));
        };
        self.each(|lane| lane.next(&suffix))
    }

    /// Does something on every storage; one that fails is left behind.
    fn each(&mut self, act: impl Fn(&mut Lane) -> Result<(), Failure>) -> io::Result<()> {
        let mut lost = vec![];
        self.lanes.retain_mut(|lane| match act(lane) {
            Ok(()) => true,
            Err(e) => {
                lost.push((lane.target.name.clone(), e));
                false
            }
        });
        for (name, failure) in lost {
            self.lost(&name, failure);
        }
        if self.lanes.is_empty() {
            return Err(io::Error::other(self.all_lost()));
        }
        Ok(())
    }

    /// Closes, reads back and publishes on each storage; gives what is there, with its bytes.
    pub(crate) fn finish(
        mut self,
        context: &Context,
        members: &[Member],
        stored: &Stored,
    ) -> (Vec<(Delivered, Stored)>, Vec<Failure>) {
        let mut delivered = vec![];
        let parts = if self.split.is_some() {
            self.part_is_full();
            std::mem::take(&mut self.full)
        } else {
            vec![stored.clone()]
        };
        let split = self.split.is_some();
        for lane in std::mem::take(&mut self.lanes) {
            let name = lane.target.name.clone();
            match deliver(context, lane, &parts, split, members, stored) {
                Ok(one) => delivered.push(one),
                Err(e) => self.lost(&name, e),
            }
        }
        (delivered, self.failures)
    }
}

/// Closes, reads back, publishes and records an archive on one storage; or gives the one that another
/// attempt of this run has recorded there meanwhile.
fn deliver(
    context: &Context,
    mut lane: Lane,
    parts: &[Stored],
    split: bool,
    members: &[Member],
    stored: &Stored,
) -> Result<(Delivered, Stored), Failure> {
    let done = |lane: &Lane, key: &str, read_back: bool| Delivered {
        target: lane.target.clone(),
        key: key.to_owned(),
        read_back,
    };
    lane.close()?;
    context.check()?;
    let read_back = lane.read_back(&context.reporter, parts)?;
    let store = Arc::clone(&lane.target.store);
    if let Some(other) = record::of_run(context, store.as_ref(), &lane.target.path)? {
        let theirs = Stored {
            bytes: other.stored_bytes,
            sha256: other.stored_sha256.clone(),
        };
        return Ok((done(&lane, &other.key, !other.not_read_back), theirs));
    }
    lane.claim.check()?;
    lane.publish()?;
    let records: Vec<PartRecord> = lane
        .parts
        .iter()
        .zip(parts)
        .filter(|_| split)
        .map(|((key, _), part)| PartRecord {
            key: key.clone(),
            bytes: part.bytes,
            sha256: part.sha256.clone(),
        })
        .collect();
    let archive = Archive {
        key: &lane.key,
        parts: &records,
        members,
        stored,
        read_back,
    };
    record::record(context, &lane.target, &archive)?;
    let at = record::record_key(context, &lane.target.path, &lane.key);
    lane.claim.check().inspect_err(|_| {
        let _ = store.remove(&at);
        for (key, _) in &lane.parts {
            let _ = store.remove(key);
        }
    })?;
    if !stands(&lane, parts) {
        let _ = store.remove(&at);
        return Err(Failure::new(
            Reason::ReadBackDiffers,
            format!(
                "{} is not there any more as it was read back: something else writes to {}; run again",
                lane.key,
                store.describe()
            ),
        ));
    }
    Ok((done(&lane, &lane.key, read_back), stored.clone()))
}

/// What was published is still there with its length, as far as the store can be asked.
fn stands(lane: &Lane, parts: &[Stored]) -> bool {
    let directory = lane.key.rsplit_once('/').map_or("", |(d, _)| d);
    let Ok(entries) = lane.target.store.list(directory) else {
        return true;
    };
    lane.parts.iter().zip(parts).all(|((key, _), part)| {
        entries
            .iter()
            .any(|e| e.key == *key && e.size == part.bytes)
    })
}

/// The old layout's name, unless another object has it or may be at it: then one that tells them apart.
fn claim_key(
    context: &Context,
    backup: &BackupSettings,
    target: &Target,
) -> Result<(String, Claim), Failure> {
    let keys = (0..NAMES).map(|number| record::key(context, backup, &target.path, number));
    claim_first(context, target, keys, backup.plan.split.is_some())
}

/// The first name of an archive like this one, and where that is taken one that tells them apart.
pub(crate) fn claim_like(
    context: &Context,
    backup: &BackupSettings,
    target: &Target,
    wanted: String,
    split: bool,
) -> Result<(String, Claim), Failure> {
    let others = (1..NAMES).map(|number| record::key(context, backup, &target.path, number));
    claim_first(
        context,
        target,
        std::iter::once(wanted).chain(others),
        split,
    )
}

/// The first key that no object has and no other attempt may be at.
fn claim_first(
    context: &Context,
    target: &Target,
    keys: impl Iterator<Item = String>,
    split: bool,
) -> Result<(String, Claim), Failure> {
    let attempt = context.attempt();
    let mut last = String::new();
    for key in keys {
        let note = Note {
            object: context.settings.identity.object.clone(),
            run: context.settings.identity.run.clone(),
            key: key.clone(),
            manifest: record::record_key(context, &target.path, &key),
            split,
            token: String::new(),
        };
        let claim = Claim::take(&target.store, &attempt, &target.path, note, true)?;
        let free = match (split, key.rsplit_once('/')) {
            (true, Some((directory, _))) => target.store.list(directory)?.is_empty(),
            _ => !target
                .store
                .list(&target.path)?
                .iter()
                .any(|e| e.key == key),
        };
        if free && !claim.contended() {
            return Ok((key, claim));
        }
        last = key;
    }
    Err(Failure::new(
        Reason::AlreadyExists,
        format!("{last} exists: run again"),
    ))
}

impl Write for Tee {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut data = data;
        if let Some(split) = self.split {
            if self.bytes == split.bytes {
                self.next_part(split)?;
            }
            let room = usize::try_from(split.bytes - self.bytes).unwrap_or(usize::MAX);
            data = &data[..data.len().min(room)];
            self.hash.update(data);
            self.bytes += data.len() as u64;
        }
        self.each(|lane| lane.write(data))?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
