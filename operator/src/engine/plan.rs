//! The plan: one call a stage.

use std::borrow::Cow;

use chrono::{DateTime, Duration, TimeDelta, Utc};
use crds::schedule::Schedule;

use super::draft::{Builder, Draft, Plan, Step};
use super::observed::{JobDigest, Observed};
use super::{
    ahead, binlogs, claim, conditions, control, history, notices, requests, runs, slots, start,
    verify,
};

/// Decides everything. The same input gives the same plan. `build` makes the Jobs that are to be
/// created, so that the plan shows each as it will be sent.
///
/// # The stages
/// All stages share one [`Draft`]. Each may count on what is said of those before it:
/// 1. `claim`, `take_over`: they decide alone; after them the object is this installation's, and every
///    Job of it that another program made before has our label.
/// 2. `first_sight`, `mend`: the books have a beginning, and do not reach into the future.
/// 3. `match_jobs`: each Job of a backup has its run in status, or is in the books.
/// 4. `settle`: runs whose Job has ended or is gone are closed. From here on a run that is open has an
///    active Job, or waits for one. What needed a live read has ended the plan.
/// 5. `edits`, `suspension`: slots before an edit or a resumption are accounted for. From here on the
///    books speak of the schedule as it is now, so requests and slots come after them.
/// 6. `answer`, `ends`: what somebody asked for is in status, as run, intent or answer; it comes before
///    slots, so that a run that was asked for keeps a slot of the same moment waiting.
/// 7. `verify::carry_on`, `notices::carry_on`, `binlogs::carry_on`: they read runs as closed above, and
///    start Jobs that are no runs, which no policy of concurrency holds.
/// 8. `waiting`, then `due`: what waits starts before what comes due; both see the Jobs that are
///    planned above.
/// 9. `notices::note`, `prune`: they look at all that this plan closed and entered, and at nothing that
///    was decided after them.
/// 10. `conditions::set`, `exclusive`, `next`, `finish`: status is derived from runs, steps and books
///     as they stand; nothing is decided any more.
pub fn plan(seen: &Observed, now: DateTime<Utc>, build: Builder<'_>) -> Plan {
    let seen = &*believed(seen, now);
    let mut draft = Draft::new(seen, now, build);
    if let Some(plan) = claim::claim(seen, now).or_else(|| take_over(seen)) {
        return plan;
    }
    let schedule = slots::parse(&seen.settings);
    slots::first_sight(&mut draft);
    ahead::mend(&mut draft);
    runs::match_jobs(&mut draft);
    runs::settle(&mut draft);
    if draft.is_blind() {
        return draft.again();
    }
    slots::edits(&mut draft);
    control::suspension(&mut draft);
    requests::answer(&mut draft);
    control::ends(&mut draft);
    verify::carry_on(&mut draft);
    notices::carry_on(&mut draft);
    binlogs::carry_on(&mut draft);
    if draft.accepted() {
        start::waiting(&mut draft, schedule.as_ref());
        if !seen.settings.suspend {
            start::due(&mut draft, schedule.as_ref());
        }
    }
    if draft.is_blind() {
        return draft.again();
    }
    notices::note(&mut draft, schedule.as_ref());
    history::prune(&mut draft);
    conditions::set(&mut draft, schedule.as_ref());
    claim::exclusive(&mut draft);
    next(&mut draft, schedule.as_ref());
    conditions::finish(&mut draft, schedule.as_ref());
    Plan {
        steps: draft.steps,
        status: draft.status,
        wake: draft.wake,
        needs_live: false,
        needs_pods: false,
        looks: draft.looks,
    }
}

/// How far clocks may differ.
const SKEW: Duration = Duration::seconds(5);

/// What was observed without Jobs of slots that are not due yet: nothing of ours makes them, so they
/// say nothing of a slot. One whose run stands in status was made before the clock was set back.
fn believed(seen: &Observed, now: DateTime<Utc>) -> Cow<'_, Observed> {
    let latest = now.checked_add_signed(SKEW).unwrap_or(now);
    let known = |job: &JobDigest| {
        let mut runs = seen.status.runs.iter();
        runs.any(|r| runs::same(r, job))
    };
    let false_one = |job: &JobDigest| job.slot.is_some_and(|slot| slot > latest) && !known(job);
    if !seen.jobs.iter().any(false_one) {
        return Cow::Borrowed(seen);
    }
    let mut fit = seen.clone();
    fit.jobs.retain(|job| !false_one(job));
    Cow::Owned(fit)
}

/// First sight of an object whose Jobs another program made: they are labelled before anything is
/// decided, so that none of their slots starts again.
fn take_over(seen: &Observed) -> Option<Plan> {
    let first = seen.status.accounted_until.is_none() && seen.foreign.is_none();
    if !first || seen.foreign_jobs.is_empty() || seen.object.deleting {
        return None;
    }
    Some(Plan {
        steps: seen
            .foreign_jobs
            .iter()
            .cloned()
            .map(Step::LabelJob)
            .collect(),
        ..Plan::nothing(seen)
    })
}

/// The next slot, in status and as wake-up. While a Job is about to be created the time stays: it
/// moves with the write that enters the run.
fn next(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let starts = draft
        .steps
        .iter()
        .any(|s| matches!(s, Step::CreateJob { seed, .. } if seed.slot.is_some()));
    let before = draft.status.next_schedule_time.take();
    let Some(schedule) = schedule.filter(|_| draft.accepted() && !draft.seen.settings.suspend)
    else {
        return;
    };
    let anchor = slots::anchor(&draft.status, draft.seen);
    let mut after = slots::accounted(&draft.status, draft.now).max(draft.now);
    if let Some(until) = slots::rests_until(draft, schedule) {
        after = after.max(until - TimeDelta::seconds(1));
    }
    if let Some(next) = schedule.next_after(after, anchor) {
        draft.wake_at(slots::start_of(draft.seen, schedule, next));
    }
    // What is skipped is accounted as it comes due, and is not what comes next.
    let skip = slots::skip_until(draft.seen);
    let shown = schedule.next_after(skip.map_or(after, |skip| skip.max(after)), anchor);
    draft.status.next_schedule_time = before.filter(|_| starts).or(shown.map(crds::time::to_k8s));
}
