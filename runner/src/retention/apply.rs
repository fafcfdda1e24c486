//! Applies a plan to what a kind has stored.

use std::collections::BTreeSet;

use crds::parts::Retention;

use crate::context::Context;
use crate::failure::Failure;
use crate::retention::plan::{Candidate, For, Now, decide};
use crate::retention::{clock, rules};
use crate::store::Store;

/// What an object has stored in one place, and how it is removed.
pub trait Candidates {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Directory of the object, in which it may write.
    fn directory(&self) -> String;

    /// All artefacts of the object, by one look at the store.
    ///
    /// # Errors
    /// The store refuses.
    fn gather(&mut self, now: Now) -> Result<Vec<Candidate>, Failure>;

    /// Removes one with all that belongs to it. False if it is no longer what was gathered: then
    /// nothing is removed.
    ///
    /// # Errors
    /// The store refuses.
    fn remove(&mut self, key: &str) -> Result<bool, Failure>;

    /// Ends: `gone` was removed. What is remembered may be written.
    ///
    /// # Errors
    /// The store refuses.
    fn finish(&mut self, gone: &BTreeSet<String>) -> Result<(), Failure>;
}

/// What is asked of retention.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// For whom.
    pub what: For<'a>,
    /// The rules.
    pub rules: &'a Retention,
    /// Only say what would go.
    pub dry_run: bool,
    /// Begins each warning.
    pub prefix: &'a str,
    /// Storage it is applied on, where there are several.
    pub storage: Option<&'a str>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Artefacts that went, or would go.
    pub gone: i64,
    /// Of so many.
    pub of: i64,
    /// Why not all of them went.
    pub stopped: Option<Failure>,
}

/// Decides, and unless it is a dry run removes what the rules let go, oldest first.
///
/// # Errors
/// What is stored can't be listed or read: nothing was removed.
pub fn apply(
    context: &Context,
    artefacts: &mut dyn Candidates,
    asked: &Asked<'_>,
) -> Result<Outcome, Failure> {
    let warn = |text: &str| context.reporter.warn(&format!("{}{text}", asked.prefix));
    let ages = asked.what != For::Everything && asked.rules.max_age.is_some();
    let (now, warning) = if ages {
        clock::now(context, artefacts.store(), &artefacts.directory())
    } else {
        (context.clock.now().into(), None)
    };
    if let Some(text) = warning {
        warn(&text);
    }
    let candidates = artefacts.gather(now)?;
    let plan = decide(asked.rules, &candidates, now, asked.what);
    if !rules::no_rule(asked.rules) {
        plan.warnings.iter().for_each(|text| warn(text));
    }
    let mut gone = BTreeSet::new();
    let mut outcome = Outcome {
        gone: 0,
        of: i64::try_from(plan.decisions.len()).unwrap_or(i64::MAX),
        stopped: None,
    };
    for decision in plan.decisions.iter().rev() {
        if !matches!(asked.what, For::Run(_)) {
            tracing::info!(
                event = "retention",
                storage = asked.storage,
                key = decision.key,
                goes = decision.goes(),
                keptBy = decision.kept_by.join(","),
                dryRun = asked.dry_run
            );
        }
        if !decision.goes() {
            continue;
        }
        if !asked.dry_run {
            let removed = context.check().and_then(|()| {
                if artefacts.remove(&decision.key)? {
                    tracing::info!(event = "pruned", storage = asked.storage, key = decision.key);
                    gone.insert(decision.key.clone());
                } else {
                    warn(&format!(
                        "{} was changed by somebody since it was looked at: it is left alone this time",
                        decision.key
                    ));
                }
                Ok(())
            });
            if removed.is_err() {
                outcome.stopped = removed.err();
                break;
            }
        }
        outcome.gone += 1;
    }
    if !asked.dry_run {
        outcome.gone = i64::try_from(gone.len()).unwrap_or(i64::MAX);
    }
    if !asked.dry_run {
        let finished = artefacts.finish(&gone);
        outcome.stopped = outcome.stopped.or(finished.err());
    }
    Ok(outcome)
}
