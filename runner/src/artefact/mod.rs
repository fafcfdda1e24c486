//! What is done with artefacts of every kind: one is chosen, all are listed, one is verified, and the
//! place for them is probed.

use chrono::{DateTime, Utc};
use crds::report::{Reason, exit};
use crds::run::{Artefact, Verification};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Reporter;
use crate::retention::{Facts, Owner, note, refutes};
use crate::settings::options::Choice;
use crate::store::{Store, holds};

/// An artefact that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownArtefact {
    /// Key of its manifest or record.
    pub manifest: String,
    /// What that says.
    pub facts: Facts,
    /// Whose it is.
    pub owner: Owner,
    /// A verification of these bytes failed.
    pub failed: bool,
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
pub struct Meant<'a> {
    choice: &'a Choice,
    at: Option<DateTime<Utc>>,
}

/// The artefact that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// It.
    pub stored: &'a KnownArtefact,
    /// Newer ones that failed a verification, newest first.
    pub passed_over: Vec<&'a KnownArtefact>,
}

impl<'a> Meant<'a> {
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
            fitting.iter().position(|s| !s.failed).unwrap_or(0)
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
            reporter.warn(&format!(
                "{place}{} is newer and was passed over, because a verification of it failed: name it by its key or run to take it all the same",
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

/// Bytes of all of them.
pub fn bytes<'a>(artefacts: impl IntoIterator<Item = &'a Artefact>) -> i64 {
    let sizes = artefacts.into_iter().map(|a| a.size);
    sizes.fold(0, i64::saturating_add)
}

/// The report of a List.
pub fn report_listed(context: &Context, artefacts: Vec<Artefact>, message: String) {
    let stored = bytes(&artefacts);
    context.reporter.update(|r| {
        r.message = message;
        r.artefacts = artefacts;
        r.stored_bytes = Some(stored);
    });
}

/// The mode of a verification in words.
pub fn mode(restore: bool) -> &'static str {
    if restore { "Restore" } else { "Checksum" }
}

/// Keeps the outcome of a verification beside an artefact of this key and SHA-256; `beside` is the key
/// of what vouches for it, without its ending. What could not be compared has no outcome.
pub fn keep(
    context: &Context,
    store: &dyn Store,
    beside: &str,
    of: (&str, &str),
    mode: &str,
    outcome: Result<(), &Failure>,
) {
    let passed = match outcome {
        Ok(()) => true,
        Err(e) if refutes(e) => false,
        Err(_) => return,
    };
    note(context, store, beside, of, mode, passed);
}

/// The report of a Verify: what was compared, or why it failed. With `differs` something was compared
/// and differs; else a failure proves nothing, as that of a store that is away, and is none of a
/// verification.
///
/// # Errors
/// The outcome's.
pub fn report_verified(
    context: &Context,
    restore: bool,
    outcome: Result<String, Failure>,
    differs: bool,
) -> Result<(), Failure> {
    let message = match &outcome {
        Ok(message) => message.clone(),
        Err(e) => context.scrub.clean(&e.message),
    };
    if outcome.is_ok() || differs {
        let verification = Verification {
            mode: mode(restore).to_owned(),
            passed: outcome.is_ok(),
            time: crds::time::to_k8s(context.clock.now()),
            message: message.clone(),
        };
        context
            .reporter
            .update(|r| r.verification = Some(verification));
    }
    outcome?;
    context.reporter.update(|r| r.message = message);
    Ok(())
}

/// True if something was compared and differs.
pub fn differs(failure: &Failure) -> bool {
    failure.exit_code == exit::VERIFICATION
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
            let chosen = Meant::new(&choice).unwrap().among(&all, verdicts);
            let found = chosen.as_ref().map(|c| c.stored.facts.key.as_str());
            let over: Vec<&str> = chosen
                .iter()
                .flat_map(|c| &c.passed_over)
                .map(|s| s.facts.key.as_str())
                .collect();
            assert_eq!((found, &over[..]), (expected, passed_over), "{choice:?}");
        }
        // Where all have failed, the newest says so by itself.
        let bad = [stored("a", 1, This, true), stored("b", 2, This, true)];
        let chosen = Meant::new(&newest).unwrap().among(&bad, Verdicts::Heed);
        let chosen = chosen.unwrap();
        assert_eq!(chosen.stored.facts.key, "b");
        assert_eq!(chosen.passed_over.len(), 0);
        assert!(Meant::new(&at("yesterday")).is_err());
    }
}
