//! Tests of the engine, on a world in memory: what a plan creates is there in the next round.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod accounting;
mod binlogs;
mod books;
mod claim;
mod extremes;
mod held;
mod jobs;
mod matrix;
mod notices;
mod pending;
mod reach;
mod rules;
mod scenarios;
mod verify;

use chrono::{DateTime, Duration, Utc};
use crds::ScheduleStatus;
use crds::parts::ConcurrencyPolicy;
use crds::request::{Action, Request};
use crds::run::{Run, RunResult, Trigger};
use crds::time::{from_k8s, parse_rfc3339};
use k8s_openapi::api::batch::v1::Job;

use super::*;

pub(super) fn t(text: &str) -> DateTime<Utc> {
    parse_rfc3339(text).unwrap()
}

/// The Job of a seed, of which the engine looks at nothing.
pub(super) fn built(seed: &Seed) -> Result<Job, Unbuilt> {
    let mut job = Job::default();
    job.metadata.name = Some(seed.name.clone());
    Ok(job)
}

/// The installation under test.
pub(super) const HERE: &str = "backup-system/backup-operator";

pub(super) fn observed(schedule: &str, created: &str) -> Observed {
    Observed {
        object: Object {
            kind: "MysqlBackup".into(),
            namespace: "ns".into(),
            name: "shop".into(),
            uid: "uid-shop".into(),
            generation: Some(1),
            created: t(created),
            ..Object::default()
        },
        settings: Settings {
            schedule: Some(schedule.into()),
            keep_good: Some(3),
            keep_failed: Some(1),
            startup_deadline: 600,
            ..Settings::default()
        },
        problems: vec![],
        status: ScheduleStatus {
            controller: Some(HERE.into()),
            ..ScheduleStatus::default()
        },
        kind_conditions: vec![],
        jobs: vec![],
        pods: vec![],
        failures: vec![],
        obstacles: vec![],
        foreign: None,
        foreign_jobs: vec![],
        installation: HERE.into(),
        foreign_installations: Default::default(),
        room: Room::default(),
        live: false,
        pods_live: false,
        leading_since: t("2000-01-01T00:00:00Z"),
    }
}

/// A cluster of one object, and what was done to it.
pub(super) struct World {
    pub(super) seen: Observed,
    pub(super) now: DateTime<Utc>,
    pub(super) started: Vec<Seed>,
    pub(super) deleted: Vec<(String, bool)>,
    pub(super) events: Vec<EventSpec>,
    pub(super) reached: Vec<Vec<crds::report::Endpoint>>,
    pub(super) wake: Option<DateTime<Utc>>,
    pub(super) live_reads: usize,
    /// Events that the newest plan wants to have read.
    pub(super) looks: Vec<Look>,
    pub(super) writes: usize,
    /// Creations that were tried.
    pub(super) posts: usize,
    /// What the API server says to a creation, if not yes.
    pub(super) refuse: Option<(&'static str, &'static str)>,
    /// Names foreign_jobs have.
    pub(super) taken: Vec<String>,
    /// The clock was a day ahead: what ran then runs again in its time.
    pub(super) leapt: bool,
    next_uid: usize,
}

impl World {
    /// An object created, and first seen, at `created`.
    pub(super) fn new(schedule: &str, created: &str) -> Self {
        let mut world = Self::unseen(schedule, created);
        world.settle();
        world
    }

    /// An object created at `created` that no operator has seen.
    pub(super) fn unseen(schedule: &str, created: &str) -> Self {
        Self {
            seen: observed(schedule, created),
            now: t(created),
            started: vec![],
            deleted: vec![],
            events: vec![],
            reached: vec![],
            wake: None,
            live_reads: 0,
            looks: vec![],
            writes: 0,
            posts: 0,
            refuse: None,
            taken: vec![],
            leapt: false,
            next_uid: 0,
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.seen.settings);
        self
    }

    /// Time passes to `at` with the operator away, then it looks.
    pub(super) fn at(&mut self, at: &str) -> &mut Self {
        self.now = t(at);
        self.settle();
        self
    }

    /// Time passes to `until`, the operator awake at each wake-up.
    pub(super) fn live_to(&mut self, until: DateTime<Utc>) {
        while let Some(wake) = self.wake.filter(|w| *w <= until) {
            self.now = self.now.max(wake);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// Rounds of observe, plan, apply until nothing changes.
    pub(super) fn settle(&mut self) {
        // Sixty requests at a time take three rounds each.
        for _ in 0..300 {
            let plan = plan(&self.seen, self.now, &built);
            assert_eq!(
                plan,
                super::plan(&self.seen, self.now, &built),
                "the same input gives the same plan"
            );
            if plan.needs_live || plan.needs_pods {
                assert!(
                    !(plan.needs_live && self.seen.live || plan.needs_pods && self.seen.pods_live),
                    "a live read is asked for twice"
                );
                self.seen.live |= plan.needs_live;
                self.seen.pods_live |= plan.needs_pods;
                self.live_reads += usize::from(plan.needs_live);
                continue;
            }
            self.wake = plan.wake;
            self.looks.clone_from(&plan.looks);
            (self.seen.live, self.seen.pods_live) = (false, false);
            let quiet = plan.steps.is_empty() && plan.status == self.seen.status;
            self.apply(plan);
            self.check_books();
            if quiet {
                return;
            }
        }
        panic!("the plan does not come to rest");
    }

    fn apply(&mut self, plan: Plan) {
        for step in plan.steps {
            match step {
                Step::CreateJob { seed, .. } => self.create(seed),
                Step::CannotBuild { why, .. } => panic!("{why:?}"),
                Step::DeleteJob {
                    name,
                    uid,
                    foreground,
                } => {
                    self.deleted.push((name, foreground));
                    self.seen.jobs.retain(|j| *j.uid != *uid);
                }
                Step::LabelJob(foreign_job) => {
                    self.seen.foreign_jobs.retain(|s| s.uid != foreign_job.uid);
                    let seed = Seed {
                        slot: foreign_job.scheduled_at.as_deref().map(t),
                        ..Seed::new(
                            foreign_job.name.to_string(),
                            if foreign_job.scheduled_at.is_some() {
                                Trigger::Schedule
                            } else {
                                Trigger::Manual
                            },
                        )
                    };
                    let job = self.job_of(&seed);
                    self.seen.jobs.push(job);
                }
                Step::RemoveAnnotations(pairs) => {
                    for (key, _) in pairs {
                        self.seen.object.annotations.remove(&key);
                    }
                }
                Step::Resume { .. } => {
                    self.seen.settings.suspend = false;
                    self.seen.object.annotations.remove(crds::labels::RESUME_AT);
                }
                Step::Reach(endpoints) => self.reached.push(endpoints),
                Step::Event(event) => {
                    if !self.events.contains(&event) {
                        self.events.push(event);
                    }
                }
            }
        }
        self.writes += usize::from(plan.status != self.seen.status);
        self.seen.status = plan.status;
    }

    fn create(&mut self, seed: Seed) {
        // As the API server answers and apply judges: the name of a Job that lost its slot.
        let held = self.seen.jobs.iter().find(|j| *j.name == *seed.name);
        let early = held.is_some_and(|job| {
            let mut runs = self.seen.status.runs.iter();
            runs.any(|r| r.job_uid.as_deref() == Some(&*job.uid) && r.slot.is_none())
        });
        let taken = self.taken.contains(&seed.name) || seed.slot.is_some() && early;
        if let Some((reason, message)) = self.refuse.or(taken.then_some(("NameTaken", ""))) {
            let row = self.seen.failures.iter().map(|f| f.tries);
            let tries = row.max().unwrap_or(0) + 1;
            self.seen.failures.retain(|f| f.name != seed.name);
            self.posts += 1;
            self.seen.failures.push(StartFailure {
                name: seed.name,
                reason: reason.into(),
                message: message.into(),
                action: seed.action,
                generation: self.seen.object.generation,
                taken,
                tries,
                retry_at: self.now + Duration::seconds((5 << (tries - 1).min(6)).min(300)),
            });
            return;
        }
        assert!(
            !self.seen.jobs.iter().any(|j| *j.name == *seed.name),
            "{} is created twice",
            seed.name
        );
        self.posts += 1;
        self.seen
            .failures
            .retain(|f| f.taken && f.name != seed.name);
        let job = self.job_of(&seed);
        self.seen.jobs.push(job);
        self.started.push(seed);
    }

    pub(super) fn job_of(&mut self, seed: &Seed) -> JobDigest {
        self.next_uid += 1;
        JobDigest {
            name: seed.name.as_str().into(),
            uid: format!("job-{}", self.next_uid).into(),
            slot: seed.slot,
            trigger: seed.trigger,
            request_id: seed.request_id.as_deref().map(Into::into),
            action: seed.action,
            created: self.now,
            started: Some(self.now),
            suspended: false,
            ran: true,
            deleting: false,
            failed: 0,
            attempts: 3,
            outcome: JobOutcome::Active,
        }
    }

    /// The Job of this slot or name ends. Our runner leaves a report of what is good.
    pub(super) fn finish(&mut self, name: &str, good: bool) -> &mut Self {
        let job = self.seen.jobs.iter().find(|j| *j.name == *name);
        let ours = job.is_some_and(|j| j.action != Action::Backup);
        let mut message = String::new();
        if good && (ours || self.seen.settings.own_image) {
            let mut report = crds::report::Report::new(name);
            report.good = Some(true);
            message = report.to_termination_message();
        }
        let end = Ended {
            exit_code: i32::from(!good),
            reason: if good { "Completed" } else { "Error" }.into(),
            message: message.into(),
            at: Some(self.now),
        };
        self.leave(name, good, Some(end))
    }

    /// The Job of this name ends, its pod with `end`, or gone without a word.
    pub(super) fn leave(&mut self, name: &str, good: bool, end: Option<Ended>) -> &mut Self {
        let now = self.now;
        let job = self
            .seen
            .jobs
            .iter_mut()
            .find(|j| *j.name == *name)
            .expect(name);
        let uid = job.uid.clone();
        job.outcome = if good {
            JobOutcome::Complete { at: now }
        } else {
            JobOutcome::Failed {
                at: now,
                reason: "BackoffLimitExceeded".into(),
                message: "too many retries".into(),
            }
        };
        self.seen.pods.push(PodDigest {
            name: format!("{name}-x").into(),
            uid: format!("pod-{uid}").into(),
            job_uid: uid,
            created: now,
            started: true,
            trouble: None,
            held: None,
            gone: end.is_none(),
            failures: end.as_ref().map_or(0, |e| i32::from(e.exit_code != 0)),
            ended: end,
        });
        self.settle();
        self
    }

    /// Every active Job ends well.
    pub(super) fn finish_all(&mut self) -> &mut Self {
        let active: Vec<String> = self
            .seen
            .jobs
            .iter()
            .filter(|j| j.is_active())
            .map(|j| j.name.to_string())
            .collect();
        for name in active {
            self.finish(&name, true);
        }
        self
    }

    pub(super) fn ask(
        &mut self,
        action: Action,
        id: &str,
        change: impl FnOnce(&mut Request),
    ) -> &mut Self {
        let mut request = Request::new(action, id, "alice", self.now);
        change(&mut request);
        self.seen
            .object
            .annotations
            .insert(Request::annotation_key(id), request.annotation_value());
        self.settle();
        self
    }

    pub(super) fn slots(&self) -> Vec<String> {
        self.started
            .iter()
            .filter_map(|s| s.slot)
            .map(crds::time::rfc3339)
            .collect()
    }

    pub(super) fn run(&self, name: &str) -> &Run {
        self.seen
            .status
            .runs
            .iter()
            .find(|r| r.name == name)
            .expect(name)
    }

    pub(super) fn newest(&self) -> &Run {
        self.seen.status.runs.first().unwrap()
    }

    pub(super) fn missed(&self) -> Vec<(String, String, i64, String)> {
        let text = |at: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| {
            crds::time::rfc3339(from_k8s(at))
        };
        self.seen
            .status
            .missed
            .iter()
            .map(|m| (text(&m.from), text(&m.to), m.count, m.reason.clone()))
            .collect()
    }

    pub(super) fn reasons(&self) -> Vec<&str> {
        self.events.iter().map(|e| e.reason.as_str()).collect()
    }

    pub(super) fn condition(&self, type_: &str) -> (String, String) {
        let found = crds::condition::get(&self.seen.status.conditions, type_).unwrap();
        (found.status.clone(), found.reason.clone())
    }

    /// due = succeeded + failed + skipped + missed + open runs of the schedule.
    pub(super) fn check_books(&self) {
        let status = &self.seen.status;
        let Some(totals) = status.totals else { return };
        let open = |r: &&Run| r.trigger == Trigger::Schedule && !r.result.is_final();
        let open = i64::try_from(status.runs.iter().filter(open).count()).unwrap();
        let sum = totals.succeeded + totals.failed + totals.skipped + totals.missed + open;
        assert_eq!(totals.due, sum, "{totals:?} with {open} open");
        let mut slots: Vec<_> = self.started.iter().filter_map(|s| s.slot).collect();
        let all = slots.len();
        slots.sort_unstable();
        slots.dedup();
        assert!(self.leapt || all == slots.len(), "a slot was started twice");
        let bytes = serde_json::to_string(status).unwrap().len();
        let books = self.seen.status.binlogs.as_ref().map_or(0, |_| 1024);
        assert!(bytes <= 6 * 1024 + books, "status has {bytes} bytes");
    }
}

pub(super) fn policies() -> [ConcurrencyPolicy; 3] {
    [
        ConcurrencyPolicy::Allow,
        ConcurrencyPolicy::Forbid,
        ConcurrencyPolicy::Replace,
    ]
}

/// A result as text, for tables.
pub(super) fn shown(run: &Run) -> (RunResult, &str) {
    (run.result, run.reason.as_str())
}
