//! What `describe` says of binary logs: how often they are pulled, what is recoverable, and what is not.

use chrono::DateTime;
use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::binlogs::{BinlogStatus, Gap};
use crds::secret;
use crds::time::from_k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::duration;
use super::page::{Inputs, Page};

/// Gaps that are shown, newest first.
const SHOWN: usize = 3;

/// The lines of binary logs, where they are stored.
pub(crate) fn binlogs(page: &mut Page, inputs: &Inputs<'_>, status: &ScheduleStatus, zone: Tz) {
    let Some(books) = &status.binlogs else {
        return;
    };
    let shown = |at: &Time| inputs.zone.show(from_k8s(at), zone);
    let interval = duration::human(books.interval_seconds);
    let how = if books.continuous {
        format!("pulled continuously, a Job for each {interval}")
    } else {
        format!("pulled every {interval}")
    };
    page.field("Binary logs", &format!("{how}, {}", newest(books, inputs)));
    if let Some(window) = books.windows.first() {
        let ago = duration::age(from_k8s(&window.until), inputs.now);
        page.field(
            "Recoverable",
            &format!(
                "up to {} ({ago} ago), from any backup kept since {}",
                shown(&window.until),
                shown(&window.from)
            ),
        );
    }
    let moment =
        |at: &Option<Time>, unset: &str| at.as_ref().map_or_else(|| unset.to_owned(), shown);
    for Gap {
        from,
        to,
        reason,
        message,
        segment: _,
    } in books.gaps.iter().take(SHOWN)
    {
        page.field(
            "Gap",
            &format!(
                "{} to {}  {reason}: {}",
                moment(from, "the beginning"),
                moment(to, "now"),
                secret::mask(message)
            ),
        );
    }
    let totals = books.totals;
    page.field(
        "Pulls",
        &format!(
            "{} due, {} succeeded, {} failed, {} skipped, {} missed",
            totals.due, totals.succeeded, totals.failed, totals.skipped, totals.missed
        ),
    );
}

/// How the newest pull ended.
fn newest(books: &BinlogStatus, inputs: &Inputs<'_>) -> String {
    if let (true, Some(open)) = (books.last_time.is_none(), &books.open) {
        return format!("the first by Job {}", open.job);
    }
    let Some(at) = books.last_time.as_ref().map(from_k8s) else {
        return "none yet".to_owned();
    };
    let ago = |at: DateTime<chrono::Utc>| duration::age(at, inputs.now);
    if !books.failing() {
        return format!("the last one succeeded {} ago", ago(at));
    }
    let times = match books.consecutive_failures {
        ..=1 => String::new(),
        n => format!(" ({n} in a row)"),
    };
    format!(
        "the last one failed {} ago{times}: {} ({})",
        ago(at),
        secret::mask(&books.message),
        books.reason
    )
}
