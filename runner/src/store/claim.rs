//! A claim on a key: two pods may be at one run at any time, each of them frozen for as long as it
//! likes. Who writes its claim first and looks at the others' afterwards never meets another that
//! found itself alone, whatever the store makes of conditions; so at most one attempt takes the usual
//! key, and everybody else one of its own. What a claim names and has no manifest is what a dead
//! attempt left.

use crds::report::Reason;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::report::Reporter;
use crate::store::temporary::{self, Kind, Name};
use crate::store::{Attempt, Condition, DEAD_AFTER, Store, key_in};

/// A claim is renewed so often.
const RENEW: Duration = Duration::from_secs(10 * 60);
/// What a claim may weigh at most.
const LARGEST: u64 = 64 << 10;

/// What stands in a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// Whose run it is.
    pub object: crds::run_spec::ObjectId,
    /// Name of the run.
    pub run: String,
    /// Key the attempt is at; what the keys of a split artefact's parts begin with.
    pub key: String,
    /// Key of what vouches for it once it is whole.
    pub manifest: String,
    /// The artefact is in parts, in a directory of its own.
    pub split: bool,
    /// Where another program gives the names: what those of this attempt's objects contain, in the
    /// directory of `key`; `manifest` is then the directory of what vouches for them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
}

/// Two clocks that go on while a process stands still: one of them also while the machine sleeps,
/// the other also where only the wall clock was told of the pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    boot: Duration,
    wall: Duration,
}

impl Stamp {
    /// Now.
    pub fn now() -> Self {
        let read = |clock| {
            let time = rustix::time::clock_gettime(clock);
            Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        };
        Self {
            boot: read(rustix::time::ClockId::Boottime),
            wall: read(rustix::time::ClockId::Realtime),
        }
    }

    /// Time from `earlier` to this, by the clock that went further.
    pub fn since(&self, earlier: &Self) -> Duration {
        let boot = self.boot.saturating_sub(earlier.boot);
        boot.max(self.wall.saturating_sub(earlier.wall))
    }
}

/// This attempt's claim. Dropped, it is given up.
pub struct Claim {
    store: Arc<dyn Store>,
    /// Key of its file; `None` where the store needs none.
    file: Option<String>,
    note: Mutex<Note>,
    renewed: Mutex<Stamp>,
    contended: bool,
    condition: Condition,
}

impl Claim {
    /// Claims `note.key` by a file in `directory`. `always` also where the store would do without one.
    ///
    /// # Errors
    /// The store refuses.
    pub fn take(
        store: &Arc<dyn Store>,
        attempt: &Attempt,
        directory: &str,
        note: Note,
        always: bool,
    ) -> Result<Self, Failure> {
        let mut claim = Self {
            store: Arc::clone(store),
            file: None,
            note: Mutex::new(note),
            renewed: Mutex::new(Stamp::now()),
            contended: false,
            condition: Condition::Kept,
        };
        if !always && store.publishes_alone() {
            return Ok(claim);
        }
        let note = claim.note();
        let file = key_in(directory, &temporary::claim(attempt, &note.key));
        let text = text(&note);
        store.create(&file, &text)?;
        claim.file = Some(file.clone());
        claim.condition = store.try_condition(&file, &text)?;
        let tag = temporary::tag(&note.key);
        claim.contended = store.own(directory)?.iter().any(|own| {
            own.alive != Some(false)
                && Name::parse(&own.key).is_some_and(|name| {
                    name.kind == Kind::Claim && name.tag == tag && !name.is_of(attempt)
                })
        });
        Ok(claim)
    }

    /// Another attempt may be at the same key.
    pub fn contended(&self) -> bool {
        self.contended
    }

    /// What the store makes of «only if nothing is there».
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// Goes over to another key, which nobody else can have.
    ///
    /// # Errors
    /// The store refuses.
    pub fn turn_to(&self, key: &str, manifest: &str) -> Result<(), Failure> {
        {
            let mut note = self.note.lock().unwrap_or_else(PoisonError::into_inner);
            key.clone_into(&mut note.key);
            manifest.clone_into(&mut note.manifest);
        }
        match &self.file {
            Some(file) => self.store.put(file, &text(&self.note())),
            None => Ok(()),
        }
    }

    /// Shows that the attempt lives. Trouble shows where it is relied on: in [`Claim::check`].
    pub fn renew(&self) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Stamp::now();
        // One that stood still for too long is not renewed: what it claims may have been removed.
        let due = RENEW..DEAD_AFTER / 2;
        let away = now.since(&renewed);
        let shown = match &self.file {
            None => away < due.end,
            Some(file) => due.contains(&away) && self.store.put(file, &text(&self.note())).is_ok(),
        };
        if shown {
            *renewed = now;
        }
    }

    /// What is claimed is still this attempt's: nobody takes it for dead.
    ///
    /// # Errors
    /// It was away for so long that what it stored may have been removed.
    pub fn check(&self) -> Result<(), Failure> {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let away = Stamp::now().since(&renewed);
        if away < DEAD_AFTER / 2 {
            return Ok(());
        }
        Err(Failure::new(
            Reason::StoodStill,
            format!(
                "the run stood still for {} (a paused node?): what it stored may have been removed as a dead attempt's, so it does not vouch for it; run again",
                crate::clock::duration(away)
            ),
        ))
    }

    fn note(&self) -> Note {
        self.note
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = self.store.remove(file);
        }
    }
}

fn text(note: &Note) -> Vec<u8> {
    serde_json::to_vec(note).unwrap_or_default()
}

/// Reads the claim of this key; `None` if it is gone or no claim.
///
/// # Errors
/// The store refuses.
pub fn read(store: &dyn Store, key: &str) -> Result<Option<Note>, Failure> {
    let text = super::read(store, key, LARGEST)?.unwrap_or_default();
    Ok(serde_json::from_slice::<Note>(&text)
        .ok()
        .filter(|note| !note.key.is_empty() && !note.manifest.is_empty()))
}

/// Says, once a run and store, that the store makes nothing of «only if nothing is there».
pub fn warn_of_condition(reporter: &Reporter, store: &dyn Store, condition: Condition) {
    let what = match condition {
        Condition::Kept => return,
        Condition::Ignored => "ignores If-None-Match and writes over what is there",
        Condition::Refused => "refuses requests with If-None-Match",
    };
    let text = format!(
        "{} {what}: the runner looks itself before it completes an artefact, and attempts of one run keep apart by claims; writers that are not the runner's may still meet it there",
        store.describe()
    );
    if !reporter.snapshot().warnings.contains(&text) {
        reporter.warn(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_a_pause_is_seen_by_either_clock() {
        let at = |boot, wall| Stamp {
            boot: Duration::from_secs(boot),
            wall: Duration::from_secs(wall),
        };
        let begun = at(100, 1000);
        for (now, seconds) in [
            (at(160, 1060), 60),
            // The machine's clock was set back.
            (at(160, 10), 60),
            // Only the wall clock knows of the pause.
            (at(101, 90_000), 89_000),
            (at(90_000, 1001), 89_900),
        ] {
            assert_eq!(now.since(&begun), Duration::from_secs(seconds), "{now:?}");
        }
    }
}
