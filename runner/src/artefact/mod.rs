//! What is done with artefacts of every kind: one is chosen, all are listed, one is verified, and the
//! place for them is probed.

mod actions;
mod choose;

use chrono::{DateTime, Utc};
use crds::parts::Retention;
use crds::report::Reason;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Reporter;
use crate::retention::{Candidates, Content, Facts, Owner, Pruned, Records, Vouched, moment};
use crate::settings::options::Choice;
use crate::store::{Store, holds};

pub use actions::{after_run, on_places, tell_unreachable};
pub use choose::{Meant, choose};

/// What an object keeps in one place, its destination or one of several storages, and what each kind does
/// in its own way.
pub trait Artefacts {
    /// One of them, with all that its manifest or record says.
    type Artefact;

    /// The run.
    fn context(&self) -> &Context;

    /// The place, open.
    fn store(&self) -> &dyn Store;

    /// Name of the storage, where there may be several.
    fn storage(&self) -> Option<&str>;

    /// What vouches for them.
    fn records(&self) -> Records;

    /// Those there that no run of this object made, and that are taken by their key alone.
    ///
    /// # Errors
    /// The store refuses.
    fn others(&self) -> Result<Vec<KnownArtefact>, Failure> {
        Ok(vec![])
    }

    /// One that is named by its key and is not of this object.
    ///
    /// # Errors
    /// The store refuses.
    fn by_key(&self, key: &str) -> Result<Option<KnownArtefact>, Failure> {
        let others = self.others()?.into_iter();
        Ok(others.into_iter().find(|other| other.facts.key == key))
    }

    /// Reads what vouches for one; `None` if that is gone.
    ///
    /// # Errors
    /// The store refuses.
    fn read(&self, known: &KnownArtefact) -> Result<Option<Self::Artefact>, Failure>;

    /// What a list says of it.
    fn details(&self, artefact: &Self::Artefact) -> Listed;

    /// Compares the stored bytes, and what is in them as far as it can be opened; says what was compared.
    ///
    /// # Errors
    /// They differ, are gone, or can't be read.
    fn check(&self, artefact: &Self::Artefact) -> Result<String, Failure>;

    /// Restores it into scratch servers and compares; says what was compared.
    ///
    /// # Errors
    /// It does not load or differs, or can't be restored here.
    fn restore(&self, artefact: &Self::Artefact) -> Result<String, Failure>;

    /// Replays the binary logs from the one before it up to it, in a scratch server, and compares.
    ///
    /// # Errors
    /// What the replay gives differs, or what is stored is not what was.
    fn replay(&self, _artefact: &Self::Artefact) -> Result<Replayed, Failure> {
        Ok(Replayed::No(
            "of its kind no binary logs are stored".to_owned(),
        ))
    }

    /// Which of them stay; `None` if no run removes any.
    fn rules(&self) -> Option<Retention>;

    /// Those that retention may decide over.
    fn candidates(&self) -> Box<dyn Candidates + '_>;

    /// Removes what else the object left there, once all artefacts are gone.
    ///
    /// # Errors
    /// The store refuses.
    fn forget(&self) -> Result<(), Failure>;
}

/// How a verification by replay went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// All is equal: what was compared.
    Equal(String),
    /// It could not be made, and why. It proves nothing.
    No(String),
}

/// What a list says of an artefact beside the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// `age`, `openssl`, or empty.
    pub encryption: String,
    /// Why its run was started.
    pub trigger: Option<String>,
    /// Tables in the dump.
    pub tables: Option<u64>,
    /// Rows in the dump.
    pub rows: Option<u64>,
    /// Files in the archive.
    pub files: Option<u64>,
}

/// Who made an artefact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A run of this object.
    #[default]
    Own,
    /// A run of an object of this name that was deleted since.
    Former,
    /// gobackup, whose own list names it.
    Gobackup,
    /// Somebody: it has the form of gobackup's archives, and no record.
    Unrecorded,
}

/// An artefact that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownArtefact {
    /// Key of its manifest or record, where it has one.
    pub manifest: String,
    /// What that says.
    pub facts: Facts,
    /// Whose it is.
    pub owner: Owner,
    /// A verification of these bytes failed.
    pub failed: bool,
    /// What is at its keys.
    pub content: Content,
    /// Who made it.
    pub origin: Origin,
}

/// Artefacts that `records` of a place vouch for and that may be those of the run's object, oldest first,
/// and which were pruned.
///
/// # Errors
/// The store refuses.
pub fn known(
    context: &Context,
    store: &dyn Store,
    records: Records,
    origin: Origin,
) -> Result<(Vec<KnownArtefact>, Pruned), Failure> {
    let mut vouched = Vouched::open(store, records)?;
    let mut found = vec![];
    for one in vouched.all(&context.settings.identity)? {
        let facts = one.known.facts;
        found.push(KnownArtefact {
            failed: vouched.has_failed(&one.at, &facts.stored_sha256)?,
            manifest: one.at,
            facts,
            owner: one.owner,
            content: one.content,
            origin,
        });
    }
    let now = context.clock.now();
    found.sort_by_cached_key(|known| {
        let f = &known.facts;
        let time = moment(f.slot.as_deref(), &f.started_at, now);
        (time, f.key.clone())
    });
    Ok((found, vouched.pruned()))
}

impl KnownArtefact {
    /// True if nothing is known against it.
    pub(crate) fn is_sound(&self) -> bool {
        !self.failed && self.content == Content::Whole
    }
}

/// What a failed verification counts for where nothing names the artefact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdicts {
    /// Nothing: it may be what is to be verified again.
    Ignore,
    /// Who wants the newest back wants one that is whole.
    Heed,
}

/// A choice, understood.
pub struct Wanted<'a> {
    choice: &'a Choice,
    at: Option<DateTime<Utc>>,
}

/// The artefact that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// It.
    pub stored: &'a KnownArtefact,
    /// Newer ones that failed a verification, or are not there as they were stored, newest first.
    pub passed_over: Vec<&'a KnownArtefact>,
}

impl<'a> Wanted<'a> {
    /// Understands a choice.
    ///
    /// # Errors
    /// Its moment is none.
    pub fn new(choice: &'a Choice) -> Result<Self, Failure> {
        let at = choice.at.as_deref().map(instant).transpose()?;
        Ok(Self { choice, at })
    }

    fn fits(&self, facts: &Facts) -> bool {
        let choice = self.choice;
        let started = || crds::time::parse_rfc3339(&facts.started_at);
        choice.key.as_ref().is_none_or(|key| *key == facts.key)
            && choice.run.as_ref().is_none_or(|run| *run == facts.run)
            && self.at.is_none_or(|at| started().is_some_and(|s| s <= at))
    }

    /// The one of `all`, oldest first, that is meant. What may be another cluster's is taken only where
    /// nothing that fits is the object's own. Where all that fit have failed, it is the newest of them.
    pub fn among<'s>(&self, all: &'s [KnownArtefact], verdicts: Verdicts) -> Option<Chosen<'s>> {
        let mut fitting: Vec<&KnownArtefact> =
            all.iter().rev().filter(|s| self.fits(&s.facts)).collect();
        if fitting.iter().any(|s| s.owner == Owner::This) {
            fitting.retain(|s| s.owner == Owner::This);
        }
        // Who names one means it.
        let named = self.choice.key.is_some() || self.choice.run.is_some();
        let first = if named || verdicts == Verdicts::Ignore {
            0
        } else {
            fitting.iter().position(|s| s.is_sound()).unwrap_or(0)
        };
        let stored = fitting.get(first).copied()?;
        fitting.truncate(first);
        Some(Chosen {
            stored,
            passed_over: fitting,
        })
    }
}

impl Chosen<'_> {
    /// Says which newer ones were passed over, each with `place` before it.
    pub fn tell(&self, reporter: &Reporter, place: &str) {
        for stored in &self.passed_over {
            let why = match stored.content {
                Content::Whole => "a verification of it failed",
                Content::Other => "it is not there with the length on record",
                Content::Gone => "it is not there any more",
            };
            reporter.warn(&format!(
                "{place}{} is newer and was passed over, because {why}: name it by its key or run to take it all the same",
                stored.facts.key
            ));
        }
    }
}

/// Says that what is taken has failed a verification.
pub fn tell_failed(reporter: &Reporter, key: &str) {
    reporter.warn(&format!(
        "a verification of {key} failed: what is in it may not be what was dumped"
    ));
}

fn instant(text: &str) -> Result<DateTime<Utc>, Failure> {
    crds::time::parse_rfc3339(text)
        .ok_or_else(|| Failure::settings(format!("at: {text:?} is not an RFC 3339 time")))
}

/// A failure with the storage it is of, where there may be several.
pub fn on_storage(storage: Option<&str>, failure: Failure) -> Failure {
    let prefix = storage.map(|name| format!("Storage {name}: "));
    match prefix.filter(|prefix| !failure.message.starts_with(prefix)) {
        Some(prefix) => Failure {
            message: format!("{prefix}{}", failure.message),
            ..failure
        },
        None => failure,
    }
}

/// Writes, reads and removes a small object in `directory`.
///
/// # Errors
/// The store refuses, or it is not there afterwards.
pub fn probe(context: &Context, store: &dyn Store, directory: &str) -> Result<(), Failure> {
    let name = format!(".probe-{}", context.nonce);
    let key = match directory {
        "" => name,
        directory => format!("{directory}/{name}"),
    };
    store.put(&key, b"probe")?;
    let read = holds(store, &key, b"probe");
    store.remove(&key)?;
    if read? {
        return Ok(());
    }
    Err(Failure::new(
        Reason::NotReadBack,
        format!(
            "a small object written to {} was not there afterwards",
            store.describe()
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    /// An artefact of the hour, whose run is of its name.
    fn stored(name: &str, hour: u32, owner: Owner, failed: bool) -> KnownArtefact {
        KnownArtefact {
            manifest: format!("{name}.json"),
            facts: Facts {
                key: name.to_owned(),
                run: format!("run-{name}"),
                started_at: format!("2026-11-29T{hour:02}:00:00Z"),
                ..Facts::default()
            },
            owner,
            failed,
            content: Content::Whole,
            origin: Origin::Own,
        }
    }

    fn choice(key: Option<&str>, run: Option<&str>, at: Option<&str>) -> Choice {
        Choice {
            key: key.map(str::to_owned),
            run: run.map(str::to_owned),
            at: at.map(str::to_owned),
        }
    }

    #[test]
    fn the_one_that_is_meant() {
        use Owner::{This, Unknown};
        let all = [
            stored("a", 1, This, false),
            stored("b", 2, This, true),
            stored("c", 3, This, false),
            stored("d", 4, This, true),
            stored("e", 5, Unknown, false),
        ];
        let newest = choice(None, None, None);
        let at = |text| choice(None, None, Some(text));
        for (choice, verdicts, expected, passed_over) in [
            (newest.clone(), Verdicts::Heed, Some("c"), &["d"][..]),
            (newest.clone(), Verdicts::Ignore, Some("d"), &[]),
            (
                at("2026-11-29T02:30:00Z"),
                Verdicts::Heed,
                Some("a"),
                &["b"],
            ),
            (at("2026-11-29T02:30:00Z"), Verdicts::Ignore, Some("b"), &[]),
            (at("2026-11-29T03:00:00Z"), Verdicts::Heed, Some("c"), &[]),
            (at("2026-11-29T00:59:59Z"), Verdicts::Heed, None, &[]),
            // Who names one means it.
            (
                choice(None, Some("run-d"), None),
                Verdicts::Heed,
                Some("d"),
                &[],
            ),
            (
                choice(Some("b"), None, None),
                Verdicts::Heed,
                Some("b"),
                &[],
            ),
            // What may be another's, where nothing else fits.
            (
                choice(Some("e"), None, None),
                Verdicts::Heed,
                Some("e"),
                &[],
            ),
            (choice(None, Some("run-x"), None), Verdicts::Heed, None, &[]),
        ] {
            let chosen = Wanted::new(&choice).unwrap().among(&all, verdicts);
            let found = chosen.as_ref().map(|c| c.stored.facts.key.as_str());
            let over: Vec<&str> = chosen
                .iter()
                .flat_map(|c| &c.passed_over)
                .map(|s| s.facts.key.as_str())
                .collect();
            assert_eq!((found, &over[..]), (expected, passed_over), "{choice:?}");
        }
        let mut lost = [stored("a", 1, This, false), stored("b", 2, This, false)];
        for content in [Content::Gone, Content::Other] {
            lost[1].content = content;
            let wanted = Wanted::new(&newest).unwrap();
            let key = |verdicts| {
                wanted
                    .among(&lost, verdicts)
                    .unwrap()
                    .stored
                    .facts
                    .key
                    .clone()
            };
            assert_eq!(key(Verdicts::Heed), "a");
            assert_eq!(
                key(Verdicts::Ignore),
                "b",
                "the newest is what a verification is of"
            );
        }
        // Where all have failed, the newest says so by itself.
        let bad = [stored("a", 1, This, true), stored("b", 2, This, true)];
        let chosen = Wanted::new(&newest).unwrap().among(&bad, Verdicts::Heed);
        let chosen = chosen.unwrap();
        assert_eq!(chosen.stored.facts.key, "b");
        assert_eq!(chosen.passed_over.len(), 0);
        assert!(Wanted::new(&at("yesterday")).is_err());
    }
}
