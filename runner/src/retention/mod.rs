//! Which artefacts stay: one rule for every kind of object. A kind says what it has stored and how
//! it is removed ([`Candidates`]); what counts, in which order, what nobody may remove and when
//! nothing goes at all is decided here, by [`decide`], for a run, a Prune and its dry run alike.

mod apply;
mod clock;
mod facts;
mod index;
mod owner;
mod plan;
mod rules;
mod verdict;
mod vouched;

pub use apply::{Asked, Candidates, Outcome, apply};
pub use facts::{Facts, Part, dumps as dump_sizes};
pub use index::{Index, Known, Pruned, remove as remove_index};
pub use owner::{Owner, owner};
pub use plan::{Candidate, Decision, For, Now, Plan, Size, Standing, decide};
pub use rules::{Moment, no_rule};
pub use verdict::{FAILED, VERIFIED, beside_of, note, refutes, strays};
pub use vouched::{Content, Found, Listings, Records, Vouched};

/// The moments of an artefact by what stands beside it; `None` if it has no time.
pub fn moment(
    slot: Option<&str>,
    started_at: &str,
    now: chrono::DateTime<chrono::Utc>,
) -> Option<Moment> {
    let slot = slot.and_then(crds::time::parse_rfc3339);
    let started = crds::time::parse_rfc3339(started_at);
    // A run starts at its slot or later; a start that says otherwise, or has not come yet, is that
    // of a wrong clock.
    let since = match (slot, started) {
        (Some(slot), Some(started)) if started < slot || plan::is_ahead(started, now) => slot,
        (_, Some(started)) => started,
        (slot, None) => slot?,
    };
    Some(Moment {
        at: slot.or(started)?,
        since,
    })
}

#[cfg(test)]
mod tests;
