//! What is done with artefacts of every kind: one is chosen, all are listed, one is verified, and the
//! place for them is probed.

use chrono::{DateTime, Utc};
use crds::report::{Reason, exit};
use crds::run::{Artefact, Verification};

use crate::context::Context;
use crate::failure::Failure;
use crate::retention::{Facts, note, refutes};
use crate::settings::options::Choice;
use crate::store::{Store, holds};

/// Which artefacts are meant, by what stands beside them.
pub struct Meant<'a> {
    choice: &'a Choice,
    at: Option<DateTime<Utc>>,
}

impl<'a> Meant<'a> {
    /// Reads the choice.
    ///
    /// # Errors
    /// Its moment is none.
    pub fn new(choice: &'a Choice) -> Result<Self, Failure> {
        let instant = |text: &String| {
            crds::time::parse_rfc3339(text)
                .ok_or_else(|| Failure::settings(format!("at: {text:?} is not an RFC 3339 time")))
        };
        let at = choice.at.as_ref().map(instant).transpose()?;
        Ok(Self { choice, at })
    }

    /// True if it may be this one: of those, the newest is meant.
    pub fn fits(&self, facts: &Facts) -> bool {
        let choice = self.choice;
        let started = || crds::time::parse_rfc3339(&facts.started_at);
        choice.key.as_ref().is_none_or(|key| *key == facts.key)
            && choice.run.as_ref().is_none_or(|run| *run == facts.run)
            && self.at.is_none_or(|at| started().is_some_and(|s| s <= at))
    }
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
