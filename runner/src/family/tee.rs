//! One stream to several storages. A storage that fails is left behind; the others go on, and the
//! run fails in the end.

use std::io::{self, Write};

use crate::failure::Failure;
use crate::pipeline::Stored;
use crate::run::Context;
use crate::store::Upload;
use crate::verify;

use super::settings::Family;
use super::spool::Member;
use super::state;
use super::storages::{Delivered, Target};

/// So many names are tried where others stand already.
const NAMES: usize = 3;

/// All storages of a run and how far each is.
pub(super) struct Tee {
    lanes: Vec<Lane>,
    failures: Vec<Failure>,
}

struct Lane {
    target: Target,
    key: String,
    upload: Box<dyn Upload>,
}

impl Tee {
    /// Begins an upload on each storage.
    ///
    /// # Errors
    /// None of them takes one.
    pub(super) fn begin(
        context: &Context,
        family: &Family,
        targets: Vec<Target>,
        lost: Vec<Failure>,
    ) -> Result<Self, Failure> {
        let mut tee = Self {
            lanes: vec![],
            failures: lost,
        };
        for target in targets {
            let begin = || -> Result<(String, Box<dyn Upload>), Failure> {
                let key = free_key(context, family, &target)?;
                let upload = target.store.begin(&key)?;
                Ok((key, upload))
            };
            match begin() {
                Ok((key, upload)) => tee.lanes.push(Lane {
                    target,
                    key,
                    upload,
                }),
                Err(e) => tee.lost(&target.name, e),
            }
        }
        if tee.lanes.is_empty() {
            return Err(tee.all_lost());
        }
        Ok(tee)
    }

    /// All failures as one.
    fn all_lost(&mut self) -> Failure {
        super::all(std::mem::take(&mut self.failures))
    }

    fn lost(&mut self, name: &str, failure: Failure) {
        tracing::error!(
            storage = name,
            reason = failure.reason,
            "the storage failed"
        );
        self.failures.push(Failure {
            message: format!("Storage {name}: {}", failure.message),
            ..failure
        });
    }

    /// Closes, reads back and publishes on each storage.
    pub(super) fn finish(
        mut self,
        context: &Context,
        family: &Family,
        members: &[Member],
        stored: &Stored,
    ) -> (Vec<Delivered>, Vec<Failure>) {
        let mut delivered = vec![];
        for mut lane in std::mem::take(&mut self.lanes) {
            let name = lane.target.name.clone();
            let done = (|| {
                lane.upload.close()?;
                context.check()?;
                verify::compare(&lane.key, lane.upload.read_back()?, stored)?;
                publish(&mut lane)?;
                state::record(context, family, &lane.target, &lane.key, members, stored)?;
                Ok(Delivered {
                    name: lane.target.name.clone(),
                    key: lane.key.clone(),
                    keep: lane.target.keep,
                    path: lane.target.path.clone(),
                    store: lane.target.store.clone(),
                })
            })();
            match done {
                Ok(one) => delivered.push(one),
                Err(e) => self.lost(&name, e),
            }
        }
        (delivered, self.failures)
    }
}

/// The old layout's name, unless another object has it: then one that tells them apart.
fn free_key(context: &Context, family: &Family, target: &Target) -> Result<String, Failure> {
    let taken = target.store.list(&target.path)?;
    for attempt in 0..NAMES {
        let key = state::key(context, family, &target.path, attempt);
        if !taken.iter().any(|e| e.key.trim_start_matches('/') == key) {
            return Ok(key);
        }
    }
    Err(Failure::store(
        "AlreadyExists",
        format!(
            "{} exists: run again",
            state::key(context, family, &target.path, NAMES - 1)
        ),
    ))
}

fn publish(lane: &mut Lane) -> Result<(), Failure> {
    if lane.upload.publish()? {
        return Ok(());
    }
    Err(Failure::store(
        "AlreadyExists",
        format!(
            "{} was made by another run meanwhile: it is left alone; run again",
            lane.key
        ),
    ))
}

impl Write for Tee {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut lost = vec![];
        self.lanes.retain_mut(|lane| match lane.upload.write(data) {
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
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
