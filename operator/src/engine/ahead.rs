//! Books that are ahead of the clock: a clock that once ran ahead accounted for slots that had not
//! come, and none of them would be started any more.
//!
//! They are mended where it is sure which clock was wrong. The API server stamps each write with its
//! own clock: books that reach beyond the newest write of status were written by a clock ahead of
//! the server's. If this process's clock does not lag behind that stamp, it is right by now.

use chrono::{DateTime, Utc};
use crds::bounds::LEAP_SECONDS;
use crds::time::{from_k8s, plus_seconds, rfc3339, to_k8s};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::draft::Draft;
use super::ledger;
use super::reason;
use super::slots;

/// True if an instant is further ahead of the clock than clocks differ.
pub(super) fn is_ahead(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    at > plus_seconds(now, LEAP_SECONDS)
}

/// The end of the accounted time, if it is ahead of the clock.
fn books_until(draft: &Draft<'_>) -> Option<DateTime<Utc>> {
    let until = draft.status.accounted_until.as_ref().map(from_k8s)?;
    is_ahead(until, draft.now).then_some(until)
}

/// What the condition says of books that are ahead; `None` if they are not.
pub(super) fn says(draft: &Draft<'_>) -> Option<String> {
    let until = rfc3339(books_until(draft)?);
    let object = &draft.seen.object;
    Some(format!(
        "slots up to {until} are accounted for and none of them is started: a clock ran ahead, or status was written by hand. The operator mends it by itself if its own clock agrees with the API server's; else set the operator's clock, or the books: kubectl patch {}/{} -n {} --subresource=status --type=merge -p '{{\"status\":{{\"accountedUntil\":\"(the time now, like {until})\"}}}}'",
        object.kind.to_lowercase(),
        object.name,
        object.namespace
    ))
}

/// True if the API server's stamp shows that whoever wrote the books had a clock that was ahead,
/// and that the clock is right now.
fn is_proven(draft: &Draft<'_>, until: DateTime<Utc>) -> bool {
    let written = draft.seen.object.status_written;
    written.is_some_and(|at| is_ahead(until, at) && !is_ahead(at, draft.now))
}

/// Brings books back that are ahead of the clock. Slots from now on come due again; runs that were
/// made ahead of their slots stay in the list, without them.
pub(super) fn mend(draft: &mut Draft<'_>) {
    let now = draft.now;
    match books_until(draft) {
        Some(until) if is_proven(draft, until) => {
            let schedule = slots::stored(&draft.status, &draft.seen.settings);
            let anchor = slots::anchor(&draft.status, draft.seen);
            ledger::give_back(&mut draft.status, now, |to| {
                let schedule = schedule.as_ref();
                schedule.map_or(0, |s| s.count_in(now, to, anchor).count)
            });
            draft.status.accounted_until = Some(to_k8s(now));
            let note = format!(
                "slots up to {} were accounted for by a clock that was ahead; the books are set back, and slots come due again from now on",
                rfc3339(until)
            );
            draft.event(
                rfc3339(until),
                reason::ACCOUNTING_MENDED,
                true,
                "Schedule",
                note,
            );
        }
        Some(_) => return,
        None => {}
    }
    // What else such a clock wrote.
    let status = &mut draft.status;
    let back = |at: &mut Option<Time>| {
        if at.as_ref().is_some_and(|at| is_ahead(from_k8s(at), now)) {
            *at = Some(to_k8s(now));
        }
    };
    if let Some(schedule) = &mut status.schedule {
        back(&mut schedule.since);
        back(&mut schedule.anchor);
    }
    back(&mut status.suspended_since);
    back(&mut status.resumed_at);
    back(&mut status.overdue_notified_time);
    if status
        .last_schedule_time
        .as_ref()
        .is_some_and(|at| is_ahead(from_k8s(at), now))
    {
        status.last_schedule_time = None;
    }
    for run in &mut status.runs {
        if run
            .slot
            .as_ref()
            .is_some_and(|at| is_ahead(from_k8s(at), now))
        {
            run.slot = None;
        }
    }
}
