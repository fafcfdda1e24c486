//! The one scheduling engine, for every kind. PURE: `plan(&Observed, now) -> Plan`.
//!
//! # Guarantees
//! Every slot up to `status.accountedUntil` is in `status.totals` exactly once:
//! due = succeeded + failed + skipped + missed + open runs of the schedule. The bookkeeping moves
//! in one patch that carries the resourceVersion the plan saw.
//!
//! # Assumptions
//! Jobs are those the object controls; names are fixed by owner and slot. What a plan decides is
//! derived from Jobs and status alone, never from memory of an earlier plan.

mod ahead;
mod binlogs;
mod claim;
mod conditions;
mod control;
mod draft;
mod failures;
mod fit;
mod history;
mod ledger;
mod notices;
mod observed;
mod outcome;
pub(crate) mod overdue;
pub(crate) mod pending;
mod plan;
pub(crate) mod reason;
mod requests;
mod runs;
mod slots;
mod start;
#[cfg(test)]
mod tests;
mod verify;

pub use draft::{Builder, EventSpec, Plan, Seed, Step, Unbuilt};
pub use notices::Wanted;
pub use observed::{
    Ended, ForeignJob, JobDigest, JobOutcome, KindCondition, Limit, Look, Object, Observed,
    Obstacle, PodDigest, Room, Settings, Standing, StartFailure,
};
pub(crate) use outcome::{Verdict, held, named, newest_end, of as verdict};
pub use plan::plan;
