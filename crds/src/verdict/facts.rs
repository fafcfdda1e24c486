//! What of an object's spec and status a verdict is made from, cut to what the operator can keep of
//! each of ten thousand.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Cause, Reason};
use crate::bounds::{LONG_SECONDS, STARTUP_SECONDS};
use crate::condition::{self, reason};
use crate::run::{PENDING, Run, RunResult};
use crate::secret::mask;
use crate::status::ScheduleStatus;
use crate::time::{from_k8s, plus_seconds};

/// Times of a spec, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Spread of starts.
    pub jitter: i64,
    /// How long after its slot a run may still start.
    pub starting_deadline: Option<i64>,
    /// How long a Job may take until its container runs.
    pub startup_deadline: i64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            jitter: 0,
            starting_deadline: None,
            startup_deadline: STARTUP_SECONDS,
        }
    }
}

/// An object as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its status.
    pub status: &'a ScheduleStatus,
    /// When it was created.
    pub created: DateTime<Utc>,
    /// No slot is started.
    pub suspended: bool,
    /// Slots up to it are skipped by annotation.
    pub skip_until: Option<DateTime<Utc>>,
    /// Its times.
    pub timing: Timing,
    /// What a run needs and is not there, in words, as far as the caller has looked.
    pub missing: &'a [String],
}

/// What a verdict is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why slots are not started, by condition Scheduled.
    pub(super) held: Option<Box<Cause>>,
    /// What else status itself says is wrong, the worst of it.
    pub(super) stands: Option<Box<(Reason, Cause)>>,
    /// An operator has seen it.
    pub(super) seen: bool,
    pub(super) created: DateTime<Utc>,
    /// What `@every` counts from.
    pub(super) anchor: DateTime<Utc>,
    /// Slots up to it are no reason to call the object overdue: creation, an edit of the schedule, a
    /// resumption, or the end of what the user said to skip.
    pub(super) counts_from: DateTime<Utc>,
    /// End of the newest good run.
    pub(super) success: Option<DateTime<Utc>>,
    /// Slot, or start, of the newest good run.
    pub(super) good: Option<DateTime<Utc>>,
    /// The next slot.
    pub(super) next: Option<DateTime<Utc>>,
    /// Seconds the newest good run took.
    pub(super) duration: Option<i64>,
    /// A run's container runs, as far as is known.
    pub(super) running: bool,
    pub(super) jitter: i64,
    pub(super) starting_deadline: Option<i64>,
    pub(super) startup_deadline: i64,
    pub(super) skip_until: Option<DateTime<Utc>>,
    pub(super) suspended: bool,
    pub(super) suspended_since: Option<DateTime<Utc>>,
}

impl Facts {
    /// The same, by who knows better whether a run's container runs.
    #[must_use]
    pub fn with_running(self, running: bool) -> Self {
        Self { running, ..self }
    }

    /// Of an object.
    pub fn of(subject: &Subject<'_>) -> Self {
        let status = subject.status;
        let time = |at: &Option<_>| at.as_ref().map(from_k8s);
        let schedule = status.schedule.as_ref();
        let newest = good_runs(status).next();
        let good = newest.and_then(|run| run.slot.as_ref().or(run.start_time.as_ref()));
        let counts_from = [
            schedule.and_then(|s| time(&s.since)),
            time(&status.resumed_at),
            subject.skip_until,
        ];
        Self {
            held: held(status).map(Box::new),
            stands: stands(subject).map(Box::new),
            seen: status.observed_generation.is_some(),
            created: subject.created,
            anchor: schedule
                .and_then(|s| time(&s.anchor))
                .unwrap_or(subject.created),
            counts_from: counts_from
                .into_iter()
                .flatten()
                .fold(subject.created, DateTime::max),
            success: time(&status.last_successful_time),
            good: good.or(status.last_successful_time.as_ref()).map(from_k8s),
            next: time(&status.next_schedule_time),
            duration: newest.and_then(duration),
            running: status.runs.iter().any(is_running),
            jitter: subject.timing.jitter,
            starting_deadline: subject.timing.starting_deadline,
            startup_deadline: subject.timing.startup_deadline,
            skip_until: subject.skip_until,
            suspended: subject.suspended,
            suspended_since: time(&status.suspended_since),
        }
    }

    /// What `@every` counts from.
    pub fn anchor(&self) -> DateTime<Utc> {
        self.anchor
    }

    /// Slots up to it are no reason to call the object overdue.
    pub fn counts_from(&self) -> DateTime<Utc> {
        self.counts_from
    }

    /// Seconds the newest good run took.
    pub fn duration(&self) -> Option<i64> {
        self.duration
    }

    /// Without words: what is counted needs none.
    #[must_use]
    pub fn without_words(mut self) -> Self {
        let held = self.held.as_deref_mut();
        let stands = self.stands.as_deref_mut().map(|(_, cause)| cause);
        for cause in [held, stands].into_iter().flatten() {
            cause.why = String::new();
            cause.run = None;
        }
        self
    }

    /// Why slots are not started. That they are skipped on purpose is nothing to tell, unless it is for
    /// so long that it is likely forgotten, or a mistake.
    pub(super) fn held(&self, now: DateTime<Utc>) -> Option<&Cause> {
        let far = plus_seconds(now, LONG_SECONDS);
        let skips_for_long = self.skip_until.is_some_and(|until| until > far);
        self.held
            .as_deref()
            .filter(|held| held.cause != reason::SKIPPED_BY_USER || skips_for_long)
    }
}

/// Good runs, newest first.
pub fn good_runs(status: &ScheduleStatus) -> impl Iterator<Item = &Run> {
    let runs = status.runs.iter();
    runs.filter(|r| r.result == RunResult::Succeeded)
}

/// Seconds a finished run took.
pub fn duration(run: &Run) -> Option<i64> {
    let (start, end) = (run.start_time.as_ref()?, run.completion_time.as_ref()?);
    Some((from_k8s(end) - from_k8s(start)).num_seconds().max(0))
}

fn is_running(run: &Run) -> bool {
    run.result == RunResult::Running && run.phase.as_deref() != Some(PENDING)
}

/// True if the run says nothing of the backup: it never was, or somebody asked for its end.
fn says_nothing(run: &Run) -> bool {
    run.result == RunResult::Skipped || run.ended_on_purpose()
}

fn is_false<'a>(status: &'a ScheduleStatus, type_: &str) -> Option<&'a Condition> {
    condition::get(&status.conditions, type_).filter(|c| c.status == "False")
}

/// Why slots are not started.
fn held(status: &ScheduleStatus) -> Option<Cause> {
    let held = is_false(status, condition::SCHEDULED)?;
    let reasons = [
        reason::NEVER_FIRES,
        reason::ACCOUNTED_AHEAD,
        reason::NAME_TAKEN,
        reason::FAILED_CREATE,
        reason::SKIPPED_BY_USER,
    ];
    reasons
        .contains(&held.reason.as_str())
        .then(|| of_condition(held))
}

/// What else status itself says is wrong, the worst of it.
fn stands(subject: &Subject<'_>) -> Option<(Reason, Cause)> {
    let status = subject.status;
    if let Some(refused) = is_false(status, condition::ACCEPTED) {
        return Some((Reason::Refused, of_condition(refused)));
    }
    let unresolved = is_false(status, condition::REFERENCES_RESOLVED).map(of_condition);
    let looked = subject.missing.first().map(|first| Cause {
        why: first.clone(),
        ..Cause::default()
    });
    if let Some(missing) = unresolved.or(looked) {
        let cause = reason::REFERENCE_MISSING.to_owned();
        return Some((Reason::Missing, Cause { cause, ..missing }));
    }
    let ended = |r: &&Run| r.result.is_final() && !says_nothing(r);
    if let Some(run) = status.runs.iter().find(ended)
        && run.result == RunResult::Failed
    {
        return Some((Reason::Failed, of_run(run, "failed")));
    }
    // The condition outlives the run that was verified.
    if let Some(verified) = is_false(status, condition::VERIFIED) {
        let (run, why) = match verified.message.split_once(": ") {
            Some((run, why)) => (Some(run), why),
            None => (None, verified.message.as_str()),
        };
        let name = run.unwrap_or("the newest verified run");
        let cause = Cause {
            cause: reason::VERIFICATION_FAILED.to_owned(),
            why: format!("{name} failed its verification: {}", mask(why)),
            since: Some(from_k8s(&verified.last_transition_time)),
            run: run.map(str::to_owned),
        };
        return Some((Reason::Unverified, cause));
    }
    if let Some(incomplete) = is_false(status, condition::BINLOGS_COMPLETE) {
        let found = of_condition(incomplete);
        let cause = Cause {
            cause: reason::BINLOGS_INCOMPLETE.to_owned(),
            why: format!("binary logs: {}", found.why),
            ..found
        };
        return Some((Reason::Incomplete, cause));
    }
    let waits = |r: &&Run| !r.result.is_final() && r.phase.as_deref() == Some(PENDING);
    let pending = status.runs.iter().find(waits)?;
    let cause = Cause {
        cause: reason::RUN_PENDING.to_owned(),
        ..of_run(pending, "is pending")
    };
    Some((Reason::Pending, cause))
}

fn of_condition(condition: &Condition) -> Cause {
    let why = match condition.message.as_str() {
        "" => condition.reason.clone(),
        message => format!("{}: {}", condition.reason, mask(message)),
    };
    Cause {
        cause: condition.reason.clone(),
        why,
        since: Some(from_k8s(&condition.last_transition_time)),
        run: None,
    }
}

pub(super) fn of_run(run: &Run, what: &str) -> Cause {
    let cause = match run.reason.as_str() {
        "" => reason::FAILED,
        reason => reason,
    };
    let at = run.completion_time.as_ref().or(run.start_time.as_ref());
    Cause {
        cause: cause.to_owned(),
        why: format!("{} {what}: {}", run.name, said(&run.reason, &run.message)),
        since: at.map(from_k8s),
        run: Some(run.name.clone()),
    }
}

/// Message and reason in one line.
pub(super) fn said(reason: &str, message: &str) -> String {
    match (mask(message), reason) {
        (message, "") if message.is_empty() => "no reason was given".to_owned(),
        (message, reason) if message.is_empty() => reason.to_owned(),
        (message, "") => message,
        (message, reason) => format!("{message} ({reason})"),
    }
}
