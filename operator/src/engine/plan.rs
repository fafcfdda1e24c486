//! The plan: one call a stage.

use std::borrow::Cow;

use chrono::{DateTime, Duration, TimeDelta, Utc};
use crds::ScheduleStatus;
use crds::report::{Endpoint, Report};
use crds::request::{Action, Options};
use crds::run::{RunResult, Trigger};
use crds::run_spec::RunNotice;
use crds::schedule::Schedule;

use super::{
    JobDigest, Look, Observed, Stranger, ahead, claim, conditions, control, history, notices,
    requests, runs, slots, start, verify,
};

/// What is to be done, as comparable data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Writes, in order, before the status patch.
    pub steps: Vec<Step>,
    /// The status to stand afterwards; it speaks of what was observed.
    pub status: ScheduleStatus,
    /// The next instant at which something may be due; `None` awaits an event.
    pub wake: Option<DateTime<Utc>>,
    /// Nothing else holds until object and Jobs are read live: observe again, then plan.
    pub needs_live: bool,
    /// Likewise, until the pods are read live.
    pub needs_pods: bool,
    /// Events to be read after all writes: they may tell what keeps a Job from starting.
    pub looks: Vec<Look>,
}

impl Plan {
    /// A plan that changes nothing.
    pub(super) fn nothing(seen: &Observed) -> Self {
        Self {
            steps: vec![],
            status: seen.status.clone(),
            wake: None,
            needs_live: false,
            needs_pods: false,
            looks: vec![],
        }
    }

    /// How many backups it starts.
    #[must_use]
    pub fn starts(&self) -> usize {
        let start = |s: &&Step| matches!(s, Step::CreateJob(seed) if seed.action == Action::Backup);
        self.steps.iter().filter(start).count()
    }

    /// True if a run waits for a place under `--max-active-runs`.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let runs = &self.status.runs;
        runs.iter()
            .any(|r| r.result == RunResult::Waiting && r.reason == start::LIMIT)
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create a Job.
    CreateJob(Seed),
    /// Delete a Job of this name and UID.
    DeleteJob {
        /// Name.
        name: String,
        /// UID, as precondition.
        uid: String,
        /// Wait for its pods to end (a run is stopped), or not (history).
        foreground: bool,
    },
    /// Take over a Job another program made for this object before it was first seen here.
    LabelJob(Stranger),
    /// Remove annotations that still have these values.
    RemoveAnnotations(Vec<(String, String)>),
    /// End a suspension whose `resume-at` has this value.
    Resume {
        /// Value of the annotation, tested by the patch.
        at: String,
    },
    /// Set the condition Reachable of what a run or request used.
    Reach(Vec<Endpoint>),
    /// Report an event once.
    Event(EventSpec),
}

/// What a new Job is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Seed {
    /// Name of the Job.
    pub name: String,
    /// Why.
    pub trigger: Trigger,
    /// The slot, for runs of the schedule.
    pub slot: Option<DateTime<Utc>>,
    /// The slot, RFC 3339 in the schedule's zone.
    pub scheduled_at: Option<String>,
    /// Id of the request.
    pub request_id: Option<String>,
    /// What it does.
    pub action: Action,
    /// Options of the request.
    pub options: Options,
    /// What to tell, for Notify.
    pub notice: Option<RunNotice>,
    /// The newest finished run failed, which receivers want to hear the end of.
    pub after_failure: bool,
}

impl Seed {
    /// A backup without slot, request and options: the others name what differs.
    pub fn new(name: impl Into<String>, trigger: Trigger) -> Self {
        Self {
            name: name.into(),
            trigger,
            slot: None,
            scheduled_at: None,
            request_id: None,
            action: Action::Backup,
            options: Options::default(),
            notice: None,
            after_failure: false,
        }
    }

    /// Seeds of no run: to see what the pods of an object would be, that of a run, that of a
    /// verification by restore, which has a volume of its own, and that of a notice.
    pub fn probes() -> [Self; 3] {
        let run = Self::new("probe", Trigger::Manual);
        let mut verification = run.clone();
        verification.action = Action::Verify;
        verification.options.mode = Some("Restore".to_owned());
        let mut notice = run.clone();
        notice.action = Action::Notify;
        [run, verification, notice]
    }
}

/// One event of (object, subject, reason).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Run, slot or generation it speaks of; part of its name.
    pub subject: String,
    /// CamelCase.
    pub reason: String,
    /// Warning instead of Normal.
    pub warning: bool,
    /// CamelCase verb: Start, Backup, Schedule, …
    pub action: &'static str,
    /// What happened.
    pub note: String,
}

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub(super) seen: &'a Observed,
    pub(super) now: DateTime<Utc>,
    pub(super) status: ScheduleStatus,
    pub(super) steps: Vec<Step>,
    pub(super) wake: Option<DateTime<Utc>>,
    pub(super) needs_live: bool,
    pub(super) needs_pods: bool,
    pub(super) looks: Vec<Look>,
}

impl Draft<'_> {
    /// Wakes the object at `at`, if nothing is due earlier.
    pub(super) fn wake_at(&mut self, at: DateTime<Utc>) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }

    pub(super) fn event(
        &mut self,
        subject: impl Into<String>,
        reason: &str,
        warning: bool,
        action: &'static str,
        note: impl Into<String>,
    ) {
        self.steps.push(Step::Event(EventSpec {
            subject: subject.into(),
            reason: reason.to_owned(),
            warning,
            action,
            note: note.into(),
        }));
    }

    /// What a report says of databases and storages, once its Job is at its end.
    pub(super) fn reach(&mut self, report: &Report) {
        if !report.endpoints.is_empty() {
            self.steps.push(Step::Reach(report.endpoints.clone()));
        }
    }

    /// True if something has to be read live before anything is decided.
    fn is_blind(&self) -> bool {
        self.needs_live || self.needs_pods
    }

    /// Observe live first; nothing is decided.
    fn again(&self) -> Plan {
        Plan {
            needs_live: self.needs_live,
            needs_pods: self.needs_pods,
            ..Plan::nothing(self.seen)
        }
    }

    /// True if nothing keeps runs from starting but suspension.
    pub(super) fn accepted(&self) -> bool {
        self.seen.problems.is_empty() && self.seen.foreign.is_none() && !self.seen.object.deleting
    }
}

/// Decides everything. The same input gives the same plan.
pub fn plan(seen: &Observed, now: DateTime<Utc>) -> Plan {
    let seen = &*believed(seen, now);
    let mut draft = Draft {
        seen,
        now,
        status: seen.status.clone(),
        steps: vec![],
        wake: None,
        needs_live: false,
        needs_pods: false,
        looks: vec![],
    };
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
    if !first || seen.strangers.is_empty() || seen.object.deleting {
        return None;
    }
    Some(Plan {
        steps: seen.strangers.iter().cloned().map(Step::LabelJob).collect(),
        ..Plan::nothing(seen)
    })
}

/// The next slot, in status and as wake-up. While a Job is about to be created the time stays: it
/// moves with the write that enters the run.
fn next(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let starts = draft
        .steps
        .iter()
        .any(|s| matches!(s, Step::CreateJob(seed) if seed.slot.is_some()));
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
