//! Notices of what no pod of a run can know: that its failure is final, that slots could not be
//! started, that an object is overdue. That one is to be sent is written with what it
//! speaks of, in one patch; its Job is named by object, event and subject, and one patch more takes
//! it off the list when that Job has ended. Objects without receivers cost nothing.

use chrono::Duration;
use crds::names;
use crds::parts::{Notification, NotificationEvent};
use crds::report::clean;
use crds::request::Action;
use crds::run::{MAX_MESSAGE, Run, RunResult, Trigger};
use crds::run_spec::RunNotice;
use crds::schedule::Schedule;
use crds::status::{MAX_NOTICES, PendingNotice};
use crds::time::{from_k8s, parse_rfc3339, plus_seconds, rfc3339, to_k8s};

use super::draft::{Draft, Seed};
use super::observed::{JobDigest, Object, PodDigest};
use super::outcome::{self, Verdict};
use super::overdue;
use super::reason;
use super::slots;
use super::start::{self, CreateBlock};

/// A Job that can't be created is looked at again at least this often.
const RECHECK: Duration = Duration::seconds(30);

/// What an object's receivers want to hear of, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Failed runs.
    pub failure: bool,
    /// Good runs after failed ones. A receiver of good runs hears of these too.
    pub recovery: bool,
    /// Slots that could not be started.
    pub missed: bool,
    /// No good run for longer than the schedule allows.
    pub overdue: bool,
    /// Events of the binary log that may be missing.
    pub gap: bool,
    /// That no more are.
    pub recovered: bool,
}

impl Wanted {
    /// Of `spec.notifications`; `bot` is a receiver that hears of good and failed runs.
    pub fn of(notifications: &[Notification], bot: bool) -> Self {
        use NotificationEvent::{Failure, Gap, Missed, Overdue, Recovered, Recovery, Success};
        let on = |event| notifications.iter().any(|n| n.wanted().contains(&event));
        Self {
            failure: bot || on(Failure),
            recovery: bot || on(Recovery) || on(Success),
            missed: on(Missed),
            overdue: on(Overdue),
            gap: on(Gap),
            recovered: on(Recovered),
        }
    }

    fn wants(self, event: NotificationEvent) -> bool {
        match event {
            NotificationEvent::Failure => self.failure,
            NotificationEvent::Missed => self.missed,
            NotificationEvent::Overdue => self.overdue,
            NotificationEvent::Gap => self.gap,
            NotificationEvent::Recovered => self.recovered,
            NotificationEvent::Success | NotificationEvent::Recovery => false,
        }
    }
}

/// Enters what is to be told of this plan's changes.
pub(super) fn note(draft: &mut Draft<'_>, schedule: Option<&Schedule>) {
    let wanted = draft.seen.settings.notices;
    if wanted.failure {
        failures(draft);
    }
    // What a wiped or new status brings is no news.
    if wanted.missed && draft.seen.status.accounted_until.is_some() {
        missed(draft);
    }
    if let Some(schedule) = schedule.filter(|_| wanted.overdue) {
        late(draft, schedule);
    }
}

/// False if too many wait already.
fn enter(draft: &mut Draft<'_>, event: NotificationEvent, subject: String) -> bool {
    let notice = PendingNotice { event, subject };
    let notices = &mut draft.status.notices;
    if notices.contains(&notice) {
        return true;
    }
    if notices.len() >= MAX_NOTICES {
        return false;
    }
    notices.push(notice);
    true
}

/// Enters what other parts of a plan find, if somebody wants to hear of it.
pub(super) fn enter_wanted(draft: &mut Draft<'_>, event: NotificationEvent, subject: String) {
    if draft.seen.settings.notices.wants(event) {
        enter_or_warn(draft, event, subject);
    }
}

/// As [`enter`]; what can't wait is told as an event.
fn enter_or_warn(draft: &mut Draft<'_>, event: NotificationEvent, subject: String) {
    if !enter(draft, event, subject.clone()) {
        let note = format!(
            "{} of {subject} is not sent: {MAX_NOTICES} notices wait already; see `kubectl get jobs` for what holds them",
            event.as_str()
        );
        draft.event(subject, reason::NOTIFICATION_FAILED, true, "Notify", note);
    }
}

/// Runs that failed in this plan. Their pods do not say so: a retry may still be good, and one that
/// was killed can't.
fn failures(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    for index in (0..draft.status.runs.len()).rev() {
        let run = &draft.status.runs[index];
        let before = seen.status.runs.iter().find(|r| r.name == run.name);
        if before.is_some_and(|r| r.result.is_final()) || run.result == RunResult::Succeeded {
            continue;
        }
        // A run that is entered finished is news only if its slot was not in the books.
        let news = before.is_some() || run.trigger == Trigger::Schedule;
        let began = seen.status.totals.is_some();
        if run.result == RunResult::Failed && news && began && !wished(run) {
            let name = run.name.clone();
            enter_or_warn(draft, NotificationEvent::Failure, name);
        }
    }
}

/// True if somebody asked for this end.
fn wished(run: &Run) -> bool {
    let by = |text: &str| text == reason::CANCELLED || text == reason::REPLACED;
    by(&run.reason) || run.intent.as_deref().is_some_and(by)
}

/// Stretches of missed slots that begin in this plan.
fn missed(draft: &mut Draft<'_>) {
    let known = &draft.seen.status.missed;
    let fresh: Vec<String> = draft
        .status
        .missed
        .iter()
        .rev()
        .filter(|m| {
            !known
                .iter()
                .any(|k| k.from == m.from && k.reason == m.reason)
        })
        .filter(|m| !slots::by_wish(&m.reason))
        .map(|m| rfc3339(from_k8s(&m.from)))
        .collect();
    for subject in fresh {
        enter_or_warn(draft, NotificationEvent::Missed, subject);
    }
}

/// An object that became overdue; told once until the next good run.
fn late(draft: &mut Draft<'_>, schedule: &Schedule) {
    let seen = draft.seen;
    if seen.settings.suspend || draft.status.accounted_until.is_none() {
        return;
    }
    let status = &draft.status;
    let started = |j: &&JobDigest| {
        j.is_run() && (j.ran || seen.pods.iter().any(|p| p.job_uid == j.uid && p.started))
    };
    // By the pods, not by what status says of a run that is about to start: a plan that is made again after a crash has
    // that run before it, and must tell the same.
    let facts = overdue::facts(&seen.object, &seen.settings, status)
        .with_running(seen.jobs.iter().any(|j| started(&j)));
    let since = facts.counts_from();
    let good = status.last_successful_time.as_ref().map(from_k8s);
    let told = status.overdue_notified_time.as_ref().map(from_k8s);
    if told.is_some_and(|t| t >= since && good.is_none_or(|g| t >= g)) {
        return;
    }
    let Some((slot, ends)) = facts.due(schedule, draft.now) else {
        return;
    };
    let late = plus_seconds(ends, 1);
    if draft.now < late {
        return draft.wake_at(late);
    }
    if enter(draft, NotificationEvent::Overdue, rfc3339(slot)) {
        draft.status.overdue_notified_time = Some(to_k8s(draft.now));
    }
}

/// Name of the one Job of a notice.
fn job_name(object: &Object, notice: &PendingNotice) -> String {
    let event = notice.event.as_str();
    names::notify_name(&object.name, &object.uid, &notice.subject, event)
}

/// Sends what stands in status: a Job each.
pub(super) fn carry_on(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    for notice in &seen.status.notices {
        let name = job_name(&seen.object, notice);
        match seen.jobs.iter().find(|j| *j.name == *name) {
            Some(job) => judge(draft, notice, job),
            None if !seen.settings.notices.wants(notice.event) => leave(draft, notice),
            None if seen.foreign.is_some() || seen.object.deleting => {}
            None => begin(draft, notice, name),
        }
        if draft.needs_live {
            return;
        }
    }
}

fn leave(draft: &mut Draft<'_>, notice: &PendingNotice) {
    draft.status.notices.retain(|n| n != notice);
}

/// Takes the notice off the list and tells that nobody got it.
fn give_up(draft: &mut Draft<'_>, notice: &PendingNotice, why: &str) {
    leave(draft, notice);
    let (event, subject) = (notice.event.as_str(), &notice.subject);
    let note = format!("{event} of {subject} did not reach every receiver: {why}");
    draft.event(
        format!("{event} {subject}"),
        reason::NOTIFICATION_FAILED,
        true,
        "Notify",
        note,
    );
}

/// Plans the Job.
fn begin(draft: &mut Draft<'_>, notice: &PendingNotice, name: String) {
    match start::create_block(draft, &name) {
        Some(CreateBlock::NameTaken(why)) => return give_up(draft, notice, &why),
        Some(CreateBlock::Later) => return,
        None => {}
    }
    if !draft.seen.live {
        // It may have been created by a leader before.
        draft.needs_live = true;
        return;
    }
    draft.wake_at(draft.now + RECHECK);
    let words = words(draft, notice);
    draft.create_job(Seed {
        action: Action::Notify,
        notice: Some(words),
        ..Seed::new(name, Trigger::Manual)
    });
}

/// Where the Job stands.
fn judge(draft: &mut Draft<'_>, notice: &PendingNotice, job: &JobDigest) {
    let seen = draft.seen;
    let pods: Vec<&PodDigest> = seen.pods.iter().filter(|p| p.job_uid == job.uid).collect();
    match outcome::judge(draft, job, &pods, true) {
        Verdict::Open => {}
        Verdict::Await(until) => draft.wake_at(until),
        Verdict::Final(closing, _) if closing.result == RunResult::Succeeded => {
            leave(draft, notice);
        }
        Verdict::Final(closing, _) => {
            let why = format!("{}: {}", closing.reason, closing.message);
            give_up(draft, notice, &clean(&why, MAX_MESSAGE));
        }
    }
}

/// What receivers get, from what status says of the subject.
fn words(draft: &Draft<'_>, notice: &PendingNotice) -> RunNotice {
    let status = &draft.seen.status;
    let mut words = RunNotice {
        event: notice.event,
        run: String::new(),
        slot: Some(notice.subject.clone()),
        reason: reason::OVERDUE.to_owned(),
        message: String::new(),
    };
    match notice.event {
        NotificationEvent::Missed => {
            let slot = parse_rfc3339(&notice.subject).map(to_k8s);
            let of = |m: &&crds::status::MissedSlots| Some(&m.from) == slot.as_ref();
            let stretch = status.missed.iter().find(of);
            words.reason = stretch.map_or_else(|| reason::MISSED.to_owned(), |m| m.reason.clone());
            words.message = match stretch {
                Some(m) if m.count > 1 => format!(
                    "{} slots up to {} were not started",
                    m.count,
                    rfc3339(from_k8s(&m.to))
                ),
                _ => "the slot was not started".to_owned(),
            };
        }
        NotificationEvent::Overdue => {
            let last = status.last_successful_time.as_ref().map(from_k8s);
            words.message = match last {
                Some(at) => format!(
                    "no good run since {}; see `kubectl backup describe {} -n {}`",
                    rfc3339(at),
                    draft.seen.object.name,
                    draft.seen.object.namespace
                ),
                None => format!(
                    "no run was ever good; see `kubectl backup describe {} -n {}`",
                    draft.seen.object.name, draft.seen.object.namespace
                ),
            };
        }
        NotificationEvent::Gap => {
            words.slot = None;
            let mut gaps = status.binlogs.iter().flat_map(|books| &books.gaps);
            let gap = gaps.find(|gap| gap.subject() == notice.subject);
            words.reason = gap.map_or_else(|| reason::BINLOG_GAP.to_owned(), |g| g.reason.clone());
            words.message = gap.map_or_else(
                || format!("events of the binary log may be missing from {} on", notice.subject),
                |gap| {
                    format!(
                        "{} events of the binary log may be missing: {}; no moment in between can be restored to",
                        gap.span(),
                        gap.message
                    )
                },
            );
        }
        NotificationEvent::Recovered => {
            words.slot = None;
            reason::COMPLETE.clone_into(&mut words.reason);
            let type_ = crds::condition::BINLOGS_COMPLETE;
            let complete = crds::condition::get(&status.conditions, type_);
            words.message = complete.map(|c| c.message.clone()).unwrap_or_default();
        }
        NotificationEvent::Failure | NotificationEvent::Success | NotificationEvent::Recovery => {
            let run = status.runs.iter().find(|r| r.name == notice.subject);
            words.run.clone_from(&notice.subject);
            words.slot = run
                .and_then(|r| r.slot.as_ref())
                .map(|s| rfc3339(from_k8s(s)));
            words.reason = run.map_or_else(|| reason::FAILED.to_owned(), |r| r.reason.clone());
            words.message = run
                .map(|r| r.message.clone())
                .filter(|m| !m.is_empty())
                .unwrap_or_else(|| {
                    format!(
                        "see `kubectl backup runs {} -n {}`",
                        draft.seen.object.name, draft.seen.object.namespace
                    )
                });
        }
    }
    words
}

/// True if the Job sends a notice that is still on the list.
pub(super) fn is_open(draft: &Draft<'_>, job: &JobDigest) -> bool {
    let seen = draft.seen;
    job.action == Action::Notify
        && seen
            .status
            .notices
            .iter()
            .any(|n| job_name(&seen.object, n) == *job.name)
}
