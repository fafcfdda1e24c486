//! Status has an end: lists and detail are cut to it, the newest and the open last.

use crds::ScheduleStatus;
use crds::condition;
use crds::report::clean;
use crds::run::Run;
use crds::status::{MAX_DETAILED_RUNS, MAX_RUNS};

/// Most bytes of a status.
const MAX_BYTES: usize = 6 * 1024;
/// How many more it may have where binary logs are stored: their books are not cut away.
const MAX_BINLOG_BYTES: usize = 1024;

/// One way to make status smaller. False if there is nothing left to cut in this way.
type Cut = fn(&mut ScheduleStatus) -> bool;

/// From what is missed least to what is missed most. Totals and open runs stay.
const CUTS: [Cut; 19] = [
    shorten_old_runs,
    |status| shorten_requests(status, 240, 120),
    |status| shorten_detailed_runs(status, 120),
    |status| shorten_conditions(status, 120),
    |status| shorten_binlogs(status, 120, 2),
    |status| drop_last(&mut status.missed, 3) | drop_last(&mut status.requests, 3),
    |status| drop_last(&mut status.active, 3),
    strip_old_runs,
    |status| shorten_requests(status, 120, 60),
    |status| shorten_detailed_runs(status, 60),
    |status| shorten_conditions(status, 40),
    |status| shorten_binlogs(status, 60, 1),
    |status| status.runs.len() > MAX_DETAILED_RUNS && drop_oldest(status),
    strip_runs,
    |status| drop_last(&mut status.missed, 1) | drop_last(&mut status.requests, 1),
    |status| status.runs.len() > 1 && drop_oldest(status),
    |status| drop_last(&mut status.active, 0),
    shorten_newest,
    |status| shorten_conditions(status, 20) | shorten_binlogs(status, 30, 1),
];

/// Cuts lists and detail to what status may hold. True if anything was cut.
pub(crate) fn fit(status: &mut ScheduleStatus) -> bool {
    let mut changed = false;
    for run in status.runs.iter_mut().skip(MAX_DETAILED_RUNS) {
        if run.result.is_final() {
            changed |= run.cut_artefacts(0) | !run.warnings.is_empty();
            run.warnings.clear();
            changed |= shorten(&mut run.message, 80) | shorten(&mut run.engine_reason, 0);
            changed |= shorten(&mut run.snapshot, 0) | run.snapshot_time.take().is_some();
            if let Some(verification) = &mut run.verification {
                changed |= shorten(&mut verification.message, 80);
            }
        }
    }
    while status.runs.len() > MAX_RUNS && drop_oldest(status) {
        changed = true;
    }
    for cut in CUTS {
        loop {
            if bytes(status) <= most(status) {
                return changed;
            }
            if !cut(status) {
                break;
            }
            changed = true;
        }
    }
    changed
}

/// Most bytes of this status.
fn most(status: &ScheduleStatus) -> usize {
    let books = status.binlogs.as_ref().map_or(0, |_| MAX_BINLOG_BYTES);
    MAX_BYTES + books
}

/// What a run grows by when its Job is gone.
const GONE: usize = ",\"jobGone\":true".len();
/// What a status grows by when a run leaves the list before its Job.
const LEFT: usize = ",\"manualAccountedUntil\":\"2025-01-15T10:30:00Z\"".len();

/// Length as JSON, with room for what is noted later without a reason to cut again.
fn bytes(status: &ScheduleStatus) -> usize {
    let mut count = Count(0);
    // Nothing in it can't be said as JSON, and the sink takes all.
    let _ = serde_json::to_writer(&mut count, status);
    let present = status.runs.iter().filter(|r| !r.job_gone).count();
    let left = usize::from(status.manual_accounted_until.is_none());
    count.0 + present * GONE + left * LEFT
}

/// A sink that counts.
struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Drops the last entry of a list of more than `least`.
fn drop_last<T>(list: &mut Vec<T>, least: usize) -> bool {
    list.len() > least && list.pop().is_some()
}

/// Drops the oldest final run, one whose Job is gone if there is one. False if none is final.
fn drop_oldest(status: &mut ScheduleStatus) -> bool {
    let last = |gone: bool| {
        let leaves = |r: &Run| r.result.is_final() && (r.job_gone || !gone);
        status.runs.iter().rposition(leaves)
    };
    let Some(oldest) = last(true).or_else(|| last(false)) else {
        return false;
    };
    status.runs.remove(oldest);
    true
}

fn shorten_old_runs(status: &mut ScheduleStatus) -> bool {
    let old = status.runs.iter_mut().skip(MAX_DETAILED_RUNS);
    let final_ones = old.filter(|r| r.result.is_final());
    final_ones.fold(false, |cut, run| shorten(&mut run.message, 0) | cut)
}

/// Words of the runs with full detail, but for the newest: history is worth more than they are.
fn shorten_detailed_runs(status: &mut ScheduleStatus, most: usize) -> bool {
    let older = status.runs.iter_mut().take(MAX_DETAILED_RUNS).skip(1);
    let final_ones = older.filter(|r| r.result.is_final());
    final_ones.fold(false, |cut, run| {
        let warned = !run.warnings.is_empty();
        run.warnings.clear();
        let said = run.verification.as_mut();
        let said = said.is_some_and(|v| shorten(&mut v.message, 80));
        let engine = shorten(&mut run.engine_reason, most);
        run.cut_artefacts(1) | shorten(&mut run.message, most) | warned | said | engine | cut
    })
}

/// Sizes that only the newest runs need.
fn strip_old_runs(status: &mut ScheduleStatus) -> bool {
    let old = status.runs.iter_mut().skip(MAX_DETAILED_RUNS);
    let final_ones = old.filter(|r| r.result.is_final());
    final_ones.fold(false, |cut, run| {
        let numbers = [&mut run.raw_bytes, &mut run.tables, &mut run.rows];
        let numbers = numbers.map(|n| n.take().is_some());
        numbers.contains(&true) | shorten(&mut run.engine, 0) | cut
    })
}

fn shorten_requests(status: &mut ScheduleStatus, newest: usize, others: usize) -> bool {
    let all = status.requests.iter_mut().enumerate();
    all.fold(false, |cut, (index, request)| {
        let most = if index == 0 { newest } else { others };
        shorten(&mut request.message, most) | shorten(&mut request.reason, 60) | cut
    })
}

/// Leaves of every run what tells how it ended, and of the newest its first artefact.
fn strip_runs(status: &mut ScheduleStatus) -> bool {
    let mut cut = false;
    for (index, run) in status.runs.iter_mut().enumerate() {
        cut |= run.cut_artefacts(usize::from(index == 0)) | !run.warnings.is_empty();
        run.warnings.clear();
        cut |= shorten(&mut run.engine_reason, 0);
        let most = match &run.intent {
            _ if index == 0 => 120,
            Some(_) => 60,
            None => 0,
        };
        cut |= shorten(&mut run.message, most);
        if let Some(verification) = &mut run.verification {
            cut |= shorten(&mut verification.message, 60);
        }
    }
    for request in &mut status.requests {
        cut |= shorten(&mut request.message, 120) | shorten(&mut request.reason, 60);
    }
    cut
}

/// Conditions that repeat what stands elsewhere. The others cause events when they change.
fn shorten_conditions(status: &mut ScheduleStatus, most: usize) -> bool {
    let repeats = [
        condition::LAST_RUN_SUCCEEDED,
        condition::READY,
        condition::VERIFIED,
        condition::BINLOGS_COMPLETE,
    ];
    let conditions = status.conditions.iter_mut();
    let repeating = conditions.filter(|c| repeats.contains(&&*c.type_));
    repeating.fold(false, |cut, c| shorten(&mut c.message, most) | cut)
}

/// Words of binary logs, and what lies far back; the newest window and gap stay.
fn shorten_binlogs(status: &mut ScheduleStatus, most: usize, least: usize) -> bool {
    let Some(books) = &mut status.binlogs else {
        return false;
    };
    let mut cut = shorten(&mut books.message, most);
    for gap in &mut books.gaps {
        cut |= shorten(&mut gap.message, most);
    }
    drop_last(&mut books.gaps, least) | drop_last(&mut books.windows, least) | cut
}

/// What is left of the newest run's and the newest request's words.
fn shorten_newest(status: &mut ScheduleStatus) -> bool {
    let run = status.runs.first_mut();
    let run = run.is_some_and(|run| shorten(&mut run.message, 60));
    let request = status.requests.first_mut();
    request.is_some_and(|r| shorten(&mut r.message, 60) | shorten(&mut r.reason, 20)) | run
}

/// True if the text was longer.
fn shorten(text: &mut String, most: usize) -> bool {
    let shorter = if most == 0 {
        String::new()
    } else {
        clean(text, most)
    };
    let cut = shorter.len() < text.len();
    if cut {
        *text = shorter;
    }
    cut
}

#[cfg(test)]
mod tests;
