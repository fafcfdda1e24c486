//! The actions on artefacts that are there: List, Verify and Prune, of every kind and over all its places.
//! What goes wrong in one place keeps nothing back of the others, and fails the action at its end.

use crds::parts::VerifyMode;
use crds::report::exit;
use crds::request::Action;
use crds::run::{Artefact, Verification};

use super::choose::listed;
use super::{
    Artefacts, KnownArtefact, Meant, Origin, Replayed, Verdicts, choose, known, on_storage,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::retention::{self, Asked, Content, For, Outcome, no_rule};

/// What went wrong in places, as the end of an action that did the rest.
fn end(lost: Vec<Failure>, done: &str) -> Result<(), Failure> {
    if lost.is_empty() {
        return Ok(());
    }
    let failed = Failure::all(lost);
    let done = Some(done).filter(|done| !done.is_empty());
    let rest = done.map(|done| format!("; the rest: {done}"));
    Err(Failure {
        message: format!("{}{}", failed.message, rest.unwrap_or_default()),
        ..failed
    })
}

/// Lists, verifies or prunes, as is asked; `noun` is what the kind calls its artefacts, `lost` are places
/// that could not be used at all.
///
/// # Errors
/// What was found wrong; a place refuses, or was lost.
pub fn on_places<P: Artefacts>(
    context: &Context,
    noun: &str,
    places: &[P],
    lost: Vec<Failure>,
) -> Result<(), Failure> {
    match context.settings.action {
        Action::Verify => verify(context, places, lost),
        Action::Prune => prune(context, noun, places, lost),
        _ => list(context, noun, places, lost),
    }
}

/// One log line for each artefact in each place, oldest first, with `"event":"artefact"`; what they are is
/// in docs/runner.md. Only what is there as it was stored stands in the report.
///
/// # Errors
/// A place refuses.
fn list<P: Artefacts>(
    context: &Context,
    noun: &str,
    places: &[P],
    mut lost: Vec<Failure>,
) -> Result<(), Failure> {
    let (mut all, mut words) = (vec![], vec![]);
    for place in places {
        context.check()?;
        match list_one(place) {
            Ok(found) => {
                let size = bytes(found.iter().map(|(_, a)| a));
                words.push(format!(
                    "{} {noun} with {size} bytes {}",
                    found.len(),
                    words_of(place)
                ));
                all.extend(found);
            }
            Err(e) => {
                tell_unreachable(context, place.storage(), &e);
                lost.push(on_storage(place.storage(), e));
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| b.cmp(a));
    let all: Vec<Artefact> = all.into_iter().map(|(_, a)| a).collect();
    let (stored, message) = (bytes(&all), words.join("; "));
    context.reporter.update(|r| {
        r.message.clone_from(&message);
        r.artefacts = all;
        r.stored_bytes = Some(stored);
    });
    end(lost, &message)
}

/// Says in the log that what is in this place is not known.
pub fn tell_unreachable(context: &Context, storage: Option<&str>, failure: &Failure) {
    tracing::error!(
        event = "unreachable",
        storage,
        reason = failure.reason.as_str(),
        "{}",
        context.scrub.clean(&failure.message)
    );
}

/// Those in one place that are there as they were stored, oldest first, with the starts of their runs.
fn list_one<P: Artefacts>(place: &P) -> Result<Vec<(String, Artefact)>, Failure> {
    let context = place.context();
    let (own, pruned) = known(context, place.store(), place.records(), Origin::Own)?;
    // Where no run removes any there is nothing to remember.
    let prunes = place.rules().is_some_and(|rules| !no_rule(&rules));
    let forgotten = match pruned.lost {
        true if prunes => Some(crds::time::rfc3339(context.clock.now())),
        true => None,
        false => pruned.forgotten_before,
    };
    if let Some(before) = forgotten {
        tracing::info!(event = "forgotten", storage = place.storage(), before);
    }
    for (key, at) in pruned.at {
        tracing::info!(event = "prunedBefore", storage = place.storage(), key, at);
    }
    let mut found = vec![];
    for known in own.into_iter().chain(place.others()?) {
        context.check()?;
        let Some(artefact) = place.read(&known)? else {
            continue;
        };
        let (facts, details) = (&known.facts, place.details(&artefact));
        tracing::info!(
            event = "artefact",
            state = state(&known),
            storage = place.storage(),
            key = facts.key,
            run = facts.run,
            trigger = details.trigger,
            startedAt = facts.started_at,
            rawBytes = facts.raw_bytes,
            storedBytes = facts.stored_bytes,
            storedSha256 = facts.stored_sha256,
            tables = details.tables,
            rows = details.rows,
            files = details.files,
            encryption = details.encryption,
            readBack = facts.read_back.unwrap_or(place.records().read_back),
        );
        if known.content == Content::Whole && known.origin == Origin::Own {
            found.push((facts.started_at.clone(), listed(place, facts)));
        }
    }
    Ok(found)
}

/// What an artefact is, in a word: as docs/runner.md has it.
fn state(known: &KnownArtefact) -> &'static str {
    match (known.content, known.origin) {
        (Content::Gone, _) => "Missing",
        (Content::Other, _) => "Damaged",
        (Content::Whole, Origin::Own) => "Stored",
        (Content::Whole, Origin::Former) => "Former",
        (Content::Whole, Origin::Gobackup) => "Gobackup",
        (Content::Whole, Origin::Unrecorded) => "NoRecord",
    }
}

/// Re-reads an artefact in every place that has it: the stored bytes are compared with what vouches for
/// them. With mode Restore it is then restored into scratch servers; with mode Replay binary logs are replayed from the one before
/// up to it, or, where that can't be, it is restored.
///
/// # Errors
/// One differs, is gone, or a place refuses.
fn verify<P: Artefacts>(
    context: &Context,
    places: &[P],
    mut lost: Vec<Failure>,
) -> Result<(), Failure> {
    let options = context.settings.options()?;
    let mode = options.mode.as_deref().unwrap_or_default();
    let mut mode = VerifyMode::named(mode).unwrap_or_default();
    context.reporter.phase("ReadingBack");
    let (meant, more) = choose(places, &options.choice, Verdicts::Ignore)?;
    lost.extend(more);
    context
        .reporter
        .update(|r| r.artefacts = meant.iter().map(|m| m.listed()).collect());
    let (mut words, mut wrong) = (vec![], vec![]);
    for one in &meant {
        context.check()?;
        let storage = one.place.storage();
        let outcome = one.place.check(&one.artefact);
        one.keep("Checksum", outcome.as_ref().map(|_| ()));
        match outcome {
            Ok(text) => words.push(match storage {
                Some(name) => format!("storage {name}: {text}"),
                None => text,
            }),
            Err(e) => wrong.push(on_storage(storage, e)),
        }
    }
    // Every place has the same bytes: those of one are restored.
    if let (true, true, Some(first)) = (mode.restores(), wrong.is_empty(), meant.first()) {
        let outcome = by_server(first, &mut mode);
        // What a replay refutes may be the log: it says nothing against the artefact.
        let says = outcome.is_ok() || mode == VerifyMode::Restore;
        for one in meant.iter().filter(|_| says) {
            one.keep(mode.as_str(), outcome.as_ref().map(|_| ()));
        }
        match outcome {
            Ok(text) => words.insert(0, text),
            Err(e) => wrong.push(e),
        }
    }
    // Else a failure proves nothing, as that of a store that is away, and is none of a verification.
    let differs = wrong.iter().any(|e| e.exit_code == exit::VERIFICATION);
    let outcome = if wrong.is_empty() {
        Ok(words.join("; "))
    } else {
        Err(Failure::all(wrong))
    };
    let message = match &outcome {
        Ok(message) => message.clone(),
        Err(e) => context.scrub.clean(&e.message),
    };
    if outcome.is_ok() || differs {
        let verification = Verification {
            mode: mode.as_str().to_owned(),
            passed: outcome.is_ok(),
            time: crds::time::to_k8s(context.clock.now()),
            message: message.clone(),
        };
        context
            .reporter
            .update(|r| r.verification = Some(verification));
    }
    outcome?;
    context.reporter.update(|r| r.message.clone_from(&message));
    end(lost, &message)
}

/// Verifies one in scratch servers. Of a replay that can't be made it says why, and restores: `mode` is then that.
fn by_server<P: Artefacts>(one: &Meant<'_, P>, mode: &mut VerifyMode) -> Result<String, Failure> {
    if *mode == VerifyMode::Restore {
        return one.place.restore(&one.artefact);
    }
    let why = match one.place.replay(&one.artefact)? {
        Replayed::Equal(text) => return Ok(format!("replayed and compared: {text}")),
        Replayed::No(why) => why,
    };
    *mode = VerifyMode::Restore;
    match one.place.restore(&one.artefact) {
        Ok(text) => Ok(format!("{text}; not replayed: {why}")),
        Err(e) => Err(Failure {
            message: format!("{}; not replayed: {why}", e.message),
            ..e
        }),
    }
}

/// Applies retention now, or removes all; it says, one log line each with `"event":"retention"`, what goes
/// and why. With `dryRun` nothing else is done.
///
/// # Errors
/// A place refuses.
fn prune<P: Artefacts>(
    context: &Context,
    noun: &str,
    places: &[P],
    mut lost: Vec<Failure>,
) -> Result<(), Failure> {
    let options = context.settings.options()?;
    context.reporter.phase("Pruning");
    let what = if options.all {
        For::Everything
    } else {
        For::Rules
    };
    let mut sum = Outcome::default();
    for place in places {
        context.check()?;
        match retain(place, what, options.dry_run) {
            Ok(outcome) => {
                sum.gone = sum.gone.saturating_add(outcome.gone);
                sum.of = sum.of.saturating_add(outcome.of);
                lost.extend(outcome.stopped.map(|e| on_storage(place.storage(), e)));
            }
            Err(e) => lost.push(on_storage(place.storage(), e)),
        }
    }
    let (verb, pruned) = match options.dry_run {
        true => ("would be removed", 0),
        false => ("removed", sum.gone),
    };
    let place = match places {
        [one] if one.storage().is_none() => words_of(one),
        several => format!("on {} storages", several.len()),
    };
    let message = format!("{} of {} {noun} {verb} {place}", sum.gone, sum.of);
    context.reporter.update(|r| {
        r.message.clone_from(&message);
        r.pruned = Some(pruned);
    });
    end(lost, &message)
}

fn retain<P: Artefacts>(place: &P, what: For<'_>, dry_run: bool) -> Result<Outcome, Failure> {
    let storage = place.storage();
    let prefix = storage.map(|name| format!("storage {name}: "));
    let asked = Asked {
        what,
        rules: &place.rules().unwrap_or_default(),
        dry_run,
        prefix: &prefix.unwrap_or_default(),
        storage,
    };
    let mut outcome = retention::apply(place.context(), place.candidates().as_mut(), &asked)?;
    if what == For::Everything && !dry_run && outcome.stopped.is_none() {
        let directory = place.records().directory;
        let forgotten = retention::remove_index(place.store(), &directory);
        outcome.stopped = forgotten.and_then(|()| place.forget()).err();
    }
    Ok(outcome)
}

/// Applies retention after a run that stored the artefact of this key. The artefact is good whatever happens
/// here: trouble is a warning. Nothing older goes because of one that was not read back.
pub fn after_run<P: Artefacts>(place: &P, key: &str, read_back: bool) {
    let context = place.context();
    let on = place.storage().map(|name| format!(" on storage {name}"));
    let on = on.unwrap_or_default();
    let Some(rules) = place.rules() else {
        return;
    };
    let outcome = match (read_back, no_rule(&rules)) {
        (false, true) => return,
        (false, false) => {
            context.reporter.warn(&format!(
                "retention was not applied{on}: what was stored could not be read back, so nothing older goes because of it"
            ));
            return;
        }
        (true, true) => Ok(Outcome::default()),
        (true, false) => retain(place, For::Run(key), false),
    };
    let failed = match outcome {
        Ok(outcome) => {
            context.reporter.update(|r| {
                r.pruned = Some(r.pruned.unwrap_or(0).saturating_add(outcome.gone));
            });
            outcome.stopped
        }
        Err(e) => Some(e),
    };
    if let Some(e) = failed {
        let text = format!("retention was not applied to its end{on}: {e}");
        context.reporter.warn(&text);
    }
}

fn words_of<P: Artefacts>(place: &P) -> String {
    match place.storage() {
        Some(name) => format!("on storage {name}"),
        None => format!("in {}", place.store().describe()),
    }
}

fn bytes<'a>(artefacts: impl IntoIterator<Item = &'a Artefact>) -> i64 {
    let sizes = artefacts.into_iter().map(|a| a.size);
    sizes.fold(0, i64::saturating_add)
}
