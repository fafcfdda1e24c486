//! The artefact that is meant, in each place that has it.

use crds::report::Reason;
use crds::run::Artefact;

use super::{Artefacts, KnownArtefact, Origin, Verdicts, Wanted, known, on_storage, tell_failed};
use crate::failure::Failure;
use crate::retention::{self, Facts, Owner};
use crate::settings::options::Choice;

/// An artefact that is meant.
pub struct Meant<'p, P: Artefacts> {
    /// Where it is.
    pub place: &'p P,
    /// What its manifest or record says, all of it.
    pub artefact: P::Artefact,
    /// In short.
    pub known: KnownArtefact,
}

impl<P: Artefacts> Meant<'_, P> {
    /// As a report has it.
    pub fn listed(&self) -> Artefact {
        listed(self.place, &self.known.facts)
    }

    /// Keeps beside it how a verification of this mode ended. What could not be compared has no outcome,
    /// and what is not this object's is its keeper's business.
    pub fn keep(&self, mode: &str, outcome: Result<(), &Failure>) {
        let passed = match outcome {
            Ok(()) => true,
            Err(e) if retention::refutes(e) => false,
            Err(_) => return,
        };
        let known = &self.known;
        if known.origin != Origin::Own || known.owner == Owner::Other {
            return;
        }
        let beside = known.manifest.strip_suffix(".json").unwrap_or_default();
        let of = (known.facts.key.as_str(), known.facts.stored_sha256.as_str());
        let context = self.place.context();
        retention::note(context, self.place.store(), beside, of, mode, passed);
    }
}

/// As a report has it.
pub(super) fn listed<P: Artefacts>(place: &P, facts: &Facts) -> Artefact {
    Artefact {
        key: facts.key.clone(),
        size: i64::try_from(facts.stored_bytes).unwrap_or(i64::MAX),
        sha256: facts.stored_sha256.clone(),
        read_back: facts.read_back.unwrap_or(place.records().read_back),
        storage: place.storage().map(str::to_owned),
    }
}

/// The artefact that is meant, in each place that has it, in their order; and what went wrong elsewhere. One
/// that is named by its key may be another's.
///
/// # Errors
/// No place has it.
pub fn choose<'p, P: Artefacts>(
    places: &'p [P],
    choice: &Choice,
    verdicts: Verdicts,
) -> Result<(Vec<Meant<'p, P>>, Vec<Failure>), Failure> {
    let wanted = Wanted::new(choice)?;
    let (mut meant, mut lost) = (vec![], vec![]);
    for place in places {
        match in_place(place, &wanted, verdicts) {
            Ok(found) => meant.extend(found),
            Err(e) => lost.push(on_storage(place.storage(), e)),
        }
    }
    // One that failed in this place may be whole in another.
    let rank = |m: &Meant<'_, P>| {
        let sound = verdicts == Verdicts::Ignore || m.known.is_sound();
        (sound, m.known.facts.started_at.clone())
    };
    let Some(best) = meant.iter().max_by_key(|m| rank(m)) else {
        let absent = places.first().filter(|_| lost.len() < places.len());
        let absent = absent.map(|place| missing(place, places, choice));
        return Err(Failure::all(absent.into_iter().chain(lost).collect()));
    };
    let (run, key) = (best.known.facts.run.clone(), best.known.facts.key.clone());
    let of_run = |m: &Meant<'_, P>| !run.is_empty() && m.known.facts.run == run;
    meant.retain(|m| of_run(m) || m.known.facts.key == key);
    if verdicts == Verdicts::Heed {
        // The first is taken.
        meant.sort_by_key(|m| !rank(m).0);
        if let Some(first) = meant.first().filter(|m| m.known.failed) {
            tell_failed(&first.place.context().reporter, &first.known.facts.key);
        }
    }
    Ok((meant, lost))
}

fn in_place<'p, P: Artefacts>(
    place: &'p P,
    wanted: &Wanted<'_>,
    verdicts: Verdicts,
) -> Result<Option<Meant<'p, P>>, Failure> {
    let context = place.context();
    let (all, _) = known(context, place.store(), place.records(), Origin::Own)?;
    let chosen = wanted.among(&all, verdicts);
    if let Some(chosen) = &chosen {
        let storage = place.storage().map(|name| format!("storage {name}: "));
        chosen.tell(&context.reporter, &storage.unwrap_or_default());
    }
    let known = match (chosen, &wanted.choice.key) {
        (Some(chosen), _) => Some(chosen.stored.clone()),
        (None, Some(key)) => place.by_key(key)?,
        (None, None) => None,
    };
    let Some(known) = known else {
        return Ok(None);
    };
    let artefact = place.read(&known)?;
    Ok(artefact.map(|artefact| Meant {
        place,
        artefact,
        known,
    }))
}

fn missing<P: Artefacts>(first: &P, places: &[P], choice: &Choice) -> Failure {
    let what = match (&choice.key, &choice.run, &choice.at) {
        (Some(key), ..) => format!("no artefact {key}"),
        (None, Some(run), _) => format!("no artefact of run {run}"),
        (None, None, Some(at)) => format!("no artefact of {at} or earlier"),
        (None, None, None) => "no artefact".to_owned(),
    };
    let object = &first.context().settings.identity.object;
    let names: Vec<String> = places
        .iter()
        .map(|place| match place.storage() {
            Some(name) => format!("storage {name}"),
            None => place.store().describe(),
        })
        .collect();
    Failure::new(
        Reason::ArtefactNotFound,
        format!(
            "{what} of {} {} with a manifest is in {}: list what is stored (kubectl backup runs {} --stored), or correct the destination",
            object.kind,
            object.name,
            names.join(", "),
            object.name
        ),
    )
}
