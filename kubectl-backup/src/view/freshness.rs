//! Is an object's newest good backup young enough? The rule behind `health` and `list --stale`.

use chrono::{DateTime, Duration, Utc};
use crds::ScheduleStatus;
use crds::condition::{self, reason};
use crds::run::RunResult;
use crds::schedule::Schedule;
use crds::time::from_k8s;

use super::duration::{age, human};
use crate::cluster::Object;

/// How long a run may take beyond its slot before the slot counts as lost: two intervals, but neither
/// less nor more than this.
const SLACK: [Duration; 2] = [Duration::minutes(10), Duration::hours(2)];
/// A suspension longer than this is likely forgotten.
const FORGOTTEN: Duration = Duration::days(7);
/// How long the operator may take to see a new object.
const FIRST_SIGHT: Duration = Duration::minutes(5);

/// States, as monitoring systems number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// 0.
    Ok,
    /// 1.
    Warning,
    /// 2.
    Critical,
}

impl State {
    /// Its name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}

/// What a verdict is about, in the order in which `health` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The object is not accepted.
    Refused,
    /// No operator has seen it.
    Unseen,
    /// The newest run failed.
    Failed,
    /// The newest verification did not pass.
    Unverified,
    /// There is no good run, and there should be one.
    Never,
    /// The newest good run is too old.
    Stale,
    /// No slot is started, and nothing worse is known.
    Suspended,
    /// Slots are not started for another reason.
    Held,
    /// Nothing is wrong.
    Ok,
}

impl Reason {
    /// As it is shown.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unseen => "unseen",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::Never => "never",
            Self::Stale => "stale",
            Self::Suspended => "suspended",
            Self::Held => "held",
            Self::Ok => "ok",
        }
    }
}

/// What is known of an object.
#[derive(Clone, Debug)]
struct Subject<'a> {
    /// Its status.
    status: &'a ScheduleStatus,
    /// Its schedule, if it has one that parses.
    schedule: Option<&'a Schedule>,
    /// No slot is started.
    suspended: bool,
    /// When it was created.
    created: DateTime<Utc>,
}

/// The verdict on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// How bad it is.
    pub(crate) state: State,
    /// What it is about.
    pub(crate) reason: Reason,
    /// In words.
    pub(crate) why: String,
    /// Seconds since the newest good run.
    pub(crate) age: Option<i64>,
    /// Seconds from which it is a warning, and critical.
    pub(crate) limits: Option<(i64, i64)>,
}

impl Freshness {
    /// True if the newest good run is too old.
    pub(crate) fn is_stale(&self) -> bool {
        match (self.age, self.limits) {
            (Some(age), Some((limit, _))) => age > limit,
            _ => self.reason == Reason::Never,
        }
    }
}

/// Limits from the schedule: one interval and some slack; critical from two intervals.
/// `max_age` takes the place of the first.
fn limits(
    subject: &Subject<'_>,
    max_age: Option<Duration>,
    now: DateTime<Utc>,
) -> Option<(i64, i64)> {
    let interval = subject.schedule.and_then(|schedule| {
        let newest = schedule.newest_in(now - Duration::days(400), now, subject.created)?;
        let before = schedule.newest_in(
            now - Duration::days(800),
            newest - Duration::seconds(1),
            subject.created,
        )?;
        Some(newest - before)
    });
    let late = |i: Duration| i + (i + i).clamp(SLACK[0], SLACK[1]);
    let warning = max_age.or(interval.map(late))?;
    let twice = |d: Duration| d.checked_add(&d).unwrap_or(Duration::MAX);
    let critical = twice(interval.unwrap_or(warning)).max(warning);
    Some((warning.num_seconds(), critical.max(warning).num_seconds()))
}

/// How fresh an object's backups are. `max_age` takes the place of the schedule's own limit.
pub(crate) fn of(object: &Object, max_age: Option<Duration>, now: DateTime<Utc>) -> Freshness {
    let status = object.status();
    let schedule = object.schedule().ok();
    let subject = Subject {
        status: &status,
        schedule: schedule.as_ref(),
        suspended: object.suspended(),
        created: object.created().unwrap_or(now),
    };
    judge(&subject, max_age, now)
}

/// A suspension hides nothing: what is worse than it is said, and the suspension with it.
fn judge(subject: &Subject<'_>, max_age: Option<Duration>, now: DateTime<Utc>) -> Freshness {
    let found = unsuspended(subject, max_age, now);
    if !subject.suspended || matches!(found.reason, Reason::Refused | Reason::Unseen) {
        return found;
    }
    let since = subject.status.suspended_since.as_ref().map(from_k8s);
    let long = since.is_some_and(|at| now - at > FORGOTTEN);
    let why = since.map_or_else(
        || "suspended".to_owned(),
        |at| format!("suspended for {}", age(at, now)),
    );
    let state = if long { State::Warning } else { State::Ok };
    if found.state > state {
        let why = format!("{}; {why}", found.why);
        return Freshness { why, ..found };
    }
    Freshness {
        state,
        reason: Reason::Suspended,
        why,
        ..found
    }
}

/// The verdict as if nothing were suspended.
fn unsuspended(subject: &Subject<'_>, max_age: Option<Duration>, now: DateTime<Utc>) -> Freshness {
    let status = subject.status;
    let success = status.last_successful_time.as_ref().map(from_k8s);
    let seconds = success.map(|at| (now - at).num_seconds());
    let limits = limits(subject, max_age, now);
    let verdict = |state, word, why: String| Freshness {
        state,
        reason: word,
        why,
        age: seconds,
        limits,
    };
    let accepted = condition::get(&status.conditions, condition::ACCEPTED);
    if let Some(refused) = accepted.filter(|c| c.status == "False") {
        let why = format!(
            "{}: {}",
            refused.reason,
            crds::secret::mask(&refused.message)
        );
        return verdict(State::Critical, Reason::Refused, why);
    }
    if status.observed_generation.is_none() && now - subject.created > FIRST_SIGHT {
        return verdict(
            State::Critical,
            Reason::Unseen,
            "no operator has seen it".to_owned(),
        );
    }
    let scheduled = condition::get(&status.conditions, condition::SCHEDULED);
    if let Some(held) = scheduled.filter(|c| c.status == "False") {
        let ready = condition::get(&status.conditions, condition::READY);
        let long = ready.is_some_and(|r| r.status == "False" && r.reason == held.reason);
        let state = match held.reason.as_str() {
            reason::ACCOUNTED_AHEAD | reason::NAME_TAKEN | reason::FAILED_CREATE => {
                Some(State::Critical)
            }
            reason::SKIPPED_BY_USER if long => Some(State::Critical),
            reason::SKIPPED_BY_USER => Some(State::Ok),
            _ => None,
        };
        if let Some(state) = state {
            let why = format!("{}: {}", held.reason, crds::secret::mask(&held.message));
            return verdict(state, Reason::Held, why);
        }
    }
    let last = status
        .runs
        .iter()
        .find(|run| run.result.is_final() && run.result != RunResult::Skipped);
    if let Some(run) = last.filter(|run| run.result == RunResult::Failed) {
        let why = format!("{} failed: {}", run.name, super::runs::cause(run));
        return verdict(State::Critical, Reason::Failed, why);
    }
    if let Some((run, verification)) = status.unverified() {
        let why = format!(
            "{} failed its verification: {}",
            run.name,
            crds::secret::mask(&verification.message)
        );
        return verdict(State::Critical, Reason::Unverified, why);
    }
    let Some(seconds) = seconds else {
        let waited = (now - subject.created).num_seconds();
        let overdue = limits.is_some_and(|(limit, _)| waited > limit);
        let state = if overdue { State::Critical } else { State::Ok };
        let word = if overdue { Reason::Never } else { Reason::Ok };
        return verdict(state, word, "no good run yet".to_owned());
    };
    let old = format!("newest good run {} ago", human(seconds));
    match limits {
        Some((_, critical)) if seconds > critical => verdict(State::Critical, Reason::Stale, old),
        Some((warning, _)) if seconds > warning => verdict(State::Warning, Reason::Stale, old),
        _ => verdict(State::Ok, Reason::Ok, old),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::run::{Run, Trigger};
    use crds::time::{parse_rfc3339, to_k8s};

    fn judged(
        hours: Option<i64>,
        change: impl FnOnce(&mut ScheduleStatus, &mut bool),
    ) -> Freshness {
        let now = parse_rfc3339("2026-09-04T09:12:00Z").unwrap();
        let schedule = Schedule::parse("0 2 * * *", None).unwrap();
        let mut status = ScheduleStatus {
            observed_generation: Some(1),
            last_successful_time: hours.map(|h| to_k8s(now - Duration::hours(h))),
            ..ScheduleStatus::default()
        };
        let mut suspended = false;
        change(&mut status, &mut suspended);
        let subject = Subject {
            status: &status,
            schedule: Some(&schedule),
            suspended,
            created: now - Duration::days(30),
        };
        judge(&subject, None, now)
    }

    #[test]
    fn a_daily_backup_may_be_26_hours_old_and_is_lost_after_48() {
        let rows = [
            (7, State::Ok),
            (26, State::Ok),
            (27, State::Warning),
            (48, State::Warning),
            (49, State::Critical),
        ];
        for (hours, state) in rows {
            let verdict = judged(Some(hours), |_, _| {});
            assert_eq!(
                (verdict.state, verdict.limits),
                (state, Some((93_600, 172_800))),
                "{hours}h"
            );
        }
    }

    #[test]
    fn u6_what_runs_often_is_missed_soon() {
        let now = parse_rfc3339("2026-09-04T09:12:00Z").unwrap();
        for (schedule, minutes) in [("* * * * *", 11), ("*/15 * * * *", 45), ("0 * * * *", 180)] {
            let schedule = Schedule::parse(schedule, None).unwrap();
            let subject = Subject {
                status: &ScheduleStatus::default(),
                schedule: Some(&schedule),
                suspended: false,
                created: now - Duration::days(30),
            };
            let found = limits(&subject, None, now).unwrap();
            assert_eq!(found, (minutes * 60, minutes * 60));
        }
    }

    #[test]
    fn what_is_worse_than_old() {
        let failed = judged(Some(1), |status, _| {
            status
                .runs
                .push(Run::new("r", Trigger::Schedule, RunResult::Failed));
        });
        assert_eq!(
            (failed.state, failed.reason.as_str()),
            (State::Critical, "failed")
        );
        assert_eq!(judged(None, |_, _| {}).reason.as_str(), "never");
        assert_eq!(
            judged(None, |status, _| status.observed_generation = None)
                .reason
                .as_str(),
            "unseen"
        );
        for (reason, ready, state) in [
            ("AccountedAhead", "False", State::Critical),
            ("NameTaken", "False", State::Critical),
            ("FailedCreate", "False", State::Critical),
            ("SkippedByUser", "False", State::Critical),
            ("SkippedByUser", "True", State::Ok),
        ] {
            let held = judged(Some(1), |status, _| {
                let now = parse_rfc3339("2026-09-04T09:12:00Z").unwrap();
                for (type_, value) in [("Scheduled", "False"), ("Ready", ready)] {
                    let all = &mut status.conditions;
                    condition::set_status(all, type_, value, reason, "why", None, now);
                }
            });
            assert_eq!(
                (held.state, held.reason.as_str()),
                (state, "held"),
                "{reason}"
            );
            assert!(held.why.contains("why"));
        }
        let now = parse_rfc3339("2026-09-04T09:12:00Z").unwrap();
        let verified = |passed| {
            let mut run = Run::new("r", Trigger::Schedule, RunResult::Succeeded);
            run.verification = Some(crds::run::Verification {
                mode: "Restore".into(),
                passed,
                time: to_k8s(now),
                message: "table shop.t has 1 rows instead of 2".into(),
            });
            run
        };
        let differs = judged(Some(1), |status, _| {
            status.runs = vec![
                Run::new("n", Trigger::Schedule, RunResult::Succeeded),
                verified(false),
                verified(true),
            ];
        });
        assert_eq!(
            (differs.state, differs.reason.as_str()),
            (State::Critical, "unverified")
        );
        assert!(differs.why.contains("1 rows instead of 2"));
        let mended = judged(Some(1), |status, _| {
            status.runs = vec![verified(true), verified(false)];
        });
        assert_eq!((mended.state, mended.reason.as_str()), (State::Ok, "ok"));
        for (hours, word) in [(Some(49), "stale"), (None, "never"), (Some(1), "failed")] {
            let hidden = judged(hours, |status, suspended| {
                if word == "failed" {
                    let run = Run::new("r", Trigger::Schedule, RunResult::Failed);
                    status.runs.push(run);
                }
                *suspended = true;
                status.suspended_since = Some(to_k8s(now - Duration::days(1)));
            });
            assert_eq!(
                (hidden.state, hidden.reason.as_str()),
                (State::Critical, word)
            );
            assert!(
                hidden.why.ends_with("; suspended for 24h"),
                "{}",
                hidden.why
            );
        }
        let forgotten = judged(Some(1), |status, suspended| {
            *suspended = true;
            status.suspended_since = Some(to_k8s(now - Duration::days(8)));
        });
        assert_eq!(
            (forgotten.state, forgotten.reason.as_str()),
            (State::Warning, "suspended")
        );
    }
}
