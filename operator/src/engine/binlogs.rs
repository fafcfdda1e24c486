//! Binary logs: slots of their own, each a Job that pulls what the log has since the one before.
//! They count in books of their own ([`BinlogStatus`]), and no policy of concurrency between them and
//! backups holds them.
//!
//! That a slot is pulled stands in status before its Job is created, with the Job's name, which is
//! fixed by object and slot. So a crash neither loses nor doubles one, and a Job that vanished is
//! created again: pulling twice stores nothing twice.
//!
//! Where binary logs are pulled continuously, the pull of a slot stays until the next slot, whose pull
//! takes over when it has ended: books and names are the same.

use chrono::{DateTime, Duration, Utc};
use crds::ScheduleStatus;
use crds::binlogs::{BinlogStatus, OpenPull};
use crds::condition;
use crds::names;
use crds::parts::NotificationEvent;
use crds::report::{Report, clean};
use crds::request::Action;
use crds::run::{MAX_MESSAGE, Run, RunResult, Trigger};
use crds::schedule::Schedule;
use crds::time::{from_k8s, plus_seconds, rfc3339, to_k8s};
use crds::verdict::good_runs;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::draft::{Draft, Seed, Step};
use super::ledger::Closing;
use super::notices;
use super::observed::{JobDigest, PodDigest};
use super::outcome::{self, Verdict};
use super::pending;
use super::reason;
use super::start::{self, CreateBlock};

/// A Job that can't be created is looked at again at least this often.
const RECHECK: Duration = Duration::seconds(30);

/// Closes the pull whose Job has ended, opens the newest slot that is due, and creates the Job of the
/// one that stands open.
pub(super) fn carry_on(draft: &mut Draft<'_>) {
    begin_books(draft);
    if draft.status.binlogs.is_none() {
        if !draft.is_blind() {
            abandoned(draft);
        }
        return;
    }
    settle(draft);
    if draft.is_blind() {
        return;
    }
    due(draft);
    abandoned(draft);
}

/// The schedule of an interval of seconds.
fn schedule(seconds: i64) -> Option<Schedule> {
    Schedule::parse(&format!("@every {seconds}s"), None).ok()
}

/// Books begin when binary logs are first asked for, and end when they are no longer, once no pull is
/// open. An interval that was edited counts from the edit's first sight on. A pull that would stay as it
/// is not wanted any more is taken back: its Job is ended, and what it has stored is gone on from.
fn begin_books(draft: &mut Draft<'_>) {
    let now = draft.now;
    let asked = draft.seen.settings.binlog_interval;
    let stays = draft.seen.settings.binlogs_stay;
    let mut begins = now;
    if let Some(books) = draft.status.binlogs.as_mut().filter(|b| b.continuous)
        && (asked != Some(books.interval_seconds) || !stays)
    {
        // A slot of the same second would have the name of the Job that is ended.
        if let Some(open) = &books.open {
            begins = now.max(plus_seconds(from_k8s(&open.slot), 1));
        }
        books.withdraw();
    }
    match (&mut draft.status.binlogs, asked) {
        (None, None) => {}
        (None, Some(seconds)) => {
            draft.status.binlogs = Some(beginning(seconds, stays, now));
        }
        (Some(books), None) => {
            if books.open.is_none() {
                draft.status.binlogs = None;
            }
        }
        (Some(books), Some(seconds))
            if (books.interval_seconds, books.continuous) != (seconds, stays) =>
        {
            if books.open.is_none() {
                pass(books, now, false);
                let new = beginning(seconds, stays, begins);
                books.interval_seconds = seconds;
                books.continuous = stays;
                books.anchor = new.anchor;
                books.accounted_until = new.accounted_until;
            }
        }
        (Some(_), Some(_)) => {}
    }
}

/// Books that begin at `now`. A pull that stays begins at once, another when there is an interval to pull.
fn beginning(seconds: i64, stays: bool, now: DateTime<Utc>) -> BinlogStatus {
    let from = if stays {
        plus_seconds(now, -seconds)
    } else {
        now
    };
    BinlogStatus {
        continuous: stays,
        ..BinlogStatus::beginning(seconds, from)
    }
}

/// Enters slots up to `until` that were not pulled: skipped while another pull was open, else missed.
fn pass(books: &mut BinlogStatus, until: DateTime<Utc>, skipped: bool) {
    let Some(schedule) = schedule(books.interval_seconds) else {
        return;
    };
    let from = from_k8s(&books.accounted_until);
    let slots = schedule.count_in(from, until, from_k8s(&books.anchor));
    let Some(last) = slots.last else {
        return;
    };
    books.pass(slots.count, skipped);
    books.accounted_until = to_k8s(last);
}

/// Where the Job of the open pull stands; without a Job, it is created.
fn settle(draft: &mut Draft<'_>) {
    let Some(open) = draft.status.binlogs.as_ref().and_then(|b| b.open.clone()) else {
        return;
    };
    let seen = draft.seen;
    match seen.jobs.iter().find(|j| *j.name == *open.job) {
        Some(job) => judge(draft, &open, job),
        None if seen.foreign.is_some() || seen.object.deleting => {}
        None if seen.settings.binlog_interval.is_none() => {
            draft.status.binlogs.as_mut().map(BinlogStatus::withdraw);
        }
        // What was opened by this very plan is created by the next.
        None if !stands(draft, &open) => {}
        None if !seen.live => draft.needs_live = true,
        None => begin(draft, &open),
    }
}

/// True if the open pull is in status as it was read.
fn stands(draft: &Draft<'_>, open: &OpenPull) -> bool {
    let seen = draft.seen.status.binlogs.as_ref();
    seen.and_then(|b| b.open.as_ref()) == Some(open)
}

/// Plans the Job.
fn begin(draft: &mut Draft<'_>, open: &OpenPull) {
    match start::create_block(draft, &open.job) {
        Some(CreateBlock::NameTaken(message)) => {
            let closing = Closing {
                result: RunResult::Failed,
                reason: reason::NAME_TAKEN.to_owned(),
                message,
                at: draft.now,
            };
            return close(draft, open, None, &closing);
        }
        Some(CreateBlock::Later) => return,
        None => {}
    }
    draft.wake_at(draft.now + RECHECK);
    // Its slot is in its name alone: Jobs with a slot are those of the schedule.
    let books = draft.status.binlogs.as_ref().filter(|b| b.continuous);
    let until = books.map(|b| plus_seconds(from_k8s(&open.slot), b.interval_seconds));
    draft.create_job(Seed {
        action: Action::Binlogs,
        until,
        ..Seed::new(open.job.clone(), Trigger::Manual)
    });
}

fn judge(draft: &mut Draft<'_>, open: &OpenPull, job: &JobDigest) {
    let seen = draft.seen;
    let pods: Vec<&PodDigest> = seen.pods.iter().filter(|p| p.job_uid == job.uid).collect();
    match outcome::judge(draft, job, &pods, true) {
        Verdict::Open => startup(draft, open, job, &pods),
        Verdict::Await(until) => draft.wake_at(until),
        Verdict::Final(closing, report) => close(draft, open, report.as_deref(), &closing),
    }
}

/// A Job whose container does not run within startupDeadlineSeconds is given up.
fn startup(draft: &mut Draft<'_>, open: &OpenPull, job: &JobDigest, pods: &[&PodDigest]) {
    let Some((reason, message)) = pending::given_up(draft, job, pods) else {
        return;
    };
    let closing = Closing {
        result: RunResult::Failed,
        reason,
        message: clean(&message, MAX_MESSAGE),
        at: draft.now,
    };
    close(draft, open, None, &closing);
}

/// Enters how the open pull ended, and the slots that came due meanwhile but the newest of them, which
/// is pulled next.
fn close(draft: &mut Draft<'_>, open: &OpenPull, report: Option<&Report>, closing: &Closing) {
    let now = draft.now;
    let Some(books) = &mut draft.status.binlogs else {
        return;
    };
    let failed_before = books.failing();
    let outcome = match closing.result {
        RunResult::Succeeded => Ok(()),
        _ => Err((closing.reason.as_str(), closing.message.as_str())),
    };
    books.close(outcome, closing.at);
    if let Some(newest) = newest(books, closing.at.min(now)) {
        pass(books, newest - Duration::seconds(1), true);
    }
    let fresh = report
        .and_then(|r| r.binlogs.as_ref())
        .map(|pulled| books.take(pulled, closing.at))
        .unwrap_or_default();
    let failing = books.failing();
    for gap in fresh {
        let span = gap.span();
        let note = format!(
            "{span} events of the binary log may be missing: {}; no moment in between can be restored to",
            gap.message
        );
        draft.event(
            format!("binlogs {span}"),
            reason::BINLOG_GAP,
            true,
            "Pull",
            note,
        );
        notices::enter_wanted(draft, NotificationEvent::Gap, gap.subject());
    }
    if failing && !failed_before {
        let note = format!(
            "binary logs were not pulled ({}): {}",
            closing.reason, closing.message
        );
        draft.event(open.job.clone(), reason::BINLOGS_FAILED, true, "Pull", note);
    } else if failed_before && !failing {
        let note = "binary logs are pulled again".to_owned();
        draft.event(
            open.job.clone(),
            reason::BINLOGS_PULLED,
            false,
            "Pull",
            note,
        );
    }
}

/// The newest slot up to `until` that is not in the books.
fn newest(books: &BinlogStatus, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (from, anchor) = (from_k8s(&books.accounted_until), from_k8s(&books.anchor));
    schedule(books.interval_seconds)?.newest_in(from, until, anchor)
}

/// Opens the newest slot that is due; older ones count as missed.
fn due(draft: &mut Draft<'_>) {
    let (now, seen) = (draft.now, draft.seen);
    if seen.settings.binlog_interval.is_none() || seen.settings.suspend || !draft.accepted() {
        return;
    }
    let Some(books) = draft.status.binlogs.as_mut().filter(|b| b.open.is_none()) else {
        return;
    };
    if let Some(slot) = newest(books, now) {
        pass(books, slot - Duration::seconds(1), false);
        let job = names::binlogs_name(&seen.object.name, &seen.object.uid, slot);
        books.start(OpenPull {
            slot: to_k8s(slot),
            job,
        });
        return;
    }
    let anchor = from_k8s(&books.anchor);
    let next = schedule(books.interval_seconds).and_then(|s| s.next_after(now, anchor));
    if let Some(next) = next {
        draft.wake_at(next);
    }
}

/// Ends Jobs of pulls that were given up, once that stands in status.
fn abandoned(draft: &mut Draft<'_>) {
    let open = |books: &Option<BinlogStatus>, job: &JobDigest| {
        let open = books.as_ref().and_then(|b| b.open.as_ref());
        open.is_some_and(|o| *o.job == *job.name)
    };
    let seen = draft.seen;
    let jobs = seen.jobs.iter().filter(|j| {
        j.action == Action::Binlogs
            && j.is_active()
            && !j.deleting
            && !open(&seen.status.binlogs, j)
            && !open(&draft.status.binlogs, j)
    });
    let steps: Vec<Step> = jobs
        .map(|job| Step::DeleteJob {
            name: job.name.to_string(),
            uid: job.uid.to_string(),
            foreground: true,
        })
        .collect();
    draft.steps.extend(steps);
}

/// The condition: can every moment since the newest backup be restored to?
pub(super) fn condition(draft: &mut Draft<'_>) {
    let type_ = condition::BINLOGS_COMPLETE;
    let Some(books) = &draft.status.binlogs else {
        draft.status.conditions.retain(|c| c.type_ != type_);
        return;
    };
    let (status, reason, message) = judged(books, newest_base(&draft.status));
    if let Some(books) = draft.status.binlogs.as_mut().filter(|_| status == "True")
        && let Some(since) = books.incomplete_since.take()
    {
        let subject = rfc3339(from_k8s(&since));
        notices::enter_wanted(draft, NotificationEvent::Recovered, subject);
    }
    let message = clean(&message, MAX_MESSAGE);
    let generation = draft.seen.object.generation;
    let conditions = &mut draft.status.conditions;
    condition::set_status(
        conditions, type_, status, &reason, message, generation, draft.now,
    );
}

/// The moment of the newest good backup.
fn newest_base(status: &ScheduleStatus) -> Option<DateTime<Utc>> {
    let moment = |run: &Run| run.snapshot_time.clone().or(run.start_time.clone());
    let runs = good_runs(status).filter_map(moment);
    runs.map(|at| from_k8s(&at)).max()
}

fn judged(books: &BinlogStatus, base: Option<DateTime<Utc>>) -> (&'static str, String, String) {
    let shown = |at: &Time| rfc3339(from_k8s(at));
    let no =
        |reason: &str, message: String| ("False", outcome::named(reason, reason::FAILED), message);
    let Some(newest) = books.windows.first() else {
        if books.failing() {
            return no(&books.reason, books.message.clone());
        }
        let message = "nothing was pulled yet".to_owned();
        return ("Unknown", reason::NOT_PULLED_YET.to_owned(), message);
    };
    let until = shown(&newest.until);
    if books.failing() {
        let message = format!(
            "what was committed after {until} is not stored: {}",
            books.message
        );
        return no(&books.reason, message);
    }
    if let Some(base) = base.filter(|base| books.window_since(*base).is_some()) {
        let message = format!(
            "every moment from {} until {until} can be restored to",
            rfc3339(base)
        );
        return ("True", reason::COMPLETE.to_owned(), message);
    }
    match (books.gaps.first(), base) {
        (Some(gap), Some(_)) => {
            let span = gap.span();
            let message = format!(
                "{span} events may be missing: {}; the next good backup begins anew",
                gap.message
            );
            no(&gap.reason, message)
        }
        _ => (
            "Unknown",
            reason::NO_BACKUP_YET.to_owned(),
            format!(
                "there is no good backup since {}, when what is stored begins",
                shown(&newest.from)
            ),
        ),
    }
}

/// True if the Job's outcome is not in status yet.
pub(super) fn is_open(draft: &Draft<'_>, job: &JobDigest) -> bool {
    let open = draft.seen.status.binlogs.as_ref();
    open.and_then(|b| b.open.as_ref())
        .is_some_and(|o| *o.job == *job.name)
}
