//! What stages make and a plan holds: [`Plan`], [`Step`], [`Seed`], and the [`Draft`] that goes from
//! stage to stage.

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::report::{Endpoint, Report};
use crds::request::{Action, Options};
use crds::run::{RunResult, Trigger};
use crds::run_spec::RunNotice;
use k8s_openapi::api::batch::v1::Job;

use super::observed::{ForeignJob, Look, Observed};
use super::reason;

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
        let start =
            |s: &&Step| matches!(s, Step::CreateJob { seed, .. } if seed.action == Action::Backup);
        self.steps.iter().filter(start).count()
    }

    /// True if a run waits for a place under `--max-active-runs`.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let runs = &self.status.runs;
        runs.iter()
            .any(|r| r.result == RunResult::Waiting && r.reason == reason::MAX_ACTIVE_RUNS)
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create a Job.
    CreateJob {
        /// What it is for.
        seed: Seed,
        /// The Job, as it is to be sent.
        job: Box<Job>,
    },
    /// Note that a Job can't be built, as a start that failed.
    CannotBuild {
        /// What it was for.
        seed: Seed,
        /// Why.
        why: Unbuilt,
    },
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
    LabelJob(ForeignJob),
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
    /// Until when it stays, for binary logs.
    pub until: Option<DateTime<Utc>>,
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
            until: None,
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

/// Why a Job can't be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbuilt {
    /// CamelCase.
    pub reason: &'static str,
    /// Cause and remedy.
    pub message: String,
}

/// Builds the Job of a seed: the kind's part in a plan. It decides nothing and writes nothing.
pub type Builder<'a> = &'a dyn Fn(&Seed) -> Result<Job, Unbuilt>;

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
    build: Builder<'a>,
    pub(super) now: DateTime<Utc>,
    pub(super) status: ScheduleStatus,
    pub(super) steps: Vec<Step>,
    pub(super) wake: Option<DateTime<Utc>>,
    pub(super) needs_live: bool,
    pub(super) needs_pods: bool,
    pub(super) looks: Vec<Look>,
}

impl<'a> Draft<'a> {
    /// Nothing is decided yet.
    pub(super) fn new(seen: &'a Observed, now: DateTime<Utc>, build: Builder<'a>) -> Self {
        Self {
            seen,
            build,
            now,
            status: seen.status.clone(),
            steps: vec![],
            wake: None,
            needs_live: false,
            needs_pods: false,
            looks: vec![],
        }
    }

    /// Plans the Job of a seed.
    pub(super) fn create_job(&mut self, seed: Seed) {
        self.steps.push(match (self.build)(&seed) {
            Ok(job) => Step::CreateJob {
                seed,
                job: Box::new(job),
            },
            Err(why) => Step::CannotBuild { seed, why },
        });
    }

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
    pub(super) fn is_blind(&self) -> bool {
        self.needs_live || self.needs_pods
    }

    /// Observe live first; nothing is decided.
    pub(super) fn again(&self) -> Plan {
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
