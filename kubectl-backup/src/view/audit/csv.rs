//! A report as CSV (RFC 4180): a line an object.

use crds::time::rfc3339;

use super::{Audit, Item, Moment};

/// The report. What a spreadsheet would take for a formula begins with an apostrophe.
pub(crate) fn csv(audit: &Audit) -> String {
    let header = columns(None).into_iter().map(|(name, _)| name.to_owned());
    let mut text = line(header);
    for item in &audit.items {
        text.push_str(&line(columns(Some(item)).into_iter().map(|(_, cell)| cell)));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|text| cell(&text)).collect();
    cells.join(",") + "\r\n"
}

/// A cell in one line, quoted where it has to be.
fn cell(text: &str) -> String {
    let mut plain: String = text.chars().map(crds::text::seen).collect();
    // Spreadsheets pass over blanks before the sign, and take its wide form for the same.
    let formula = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if plain.trim_start().starts_with(formula) {
        plain.insert(0, '\'');
    }
    if plain.contains([',', '"']) {
        return format!("\"{}\"", plain.replace('"', "\"\""));
    }
    plain
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

fn time(at: Option<Moment>) -> String {
    at.map(|at| rfc3339(at.0)).unwrap_or_default()
}

fn number(count: Option<i64>) -> String {
    count.map(|count| count.to_string()).unwrap_or_default()
}

/// Slots without a run, then runs that failed: count, span and reason, or name, reason and message.
fn not_started(item: &Item) -> String {
    let all = item.not_started.iter().map(|missed| {
        let (from, to) = (rfc3339(missed.from.0), rfc3339(missed.to.0));
        format!("{} {from} to {to} {}", missed.count, missed.reason)
    });
    all.collect::<Vec<_>>().join("; ")
}

fn failures(item: &Item) -> String {
    let failed = item.runs.iter().filter(|run| run.failed);
    let all = failed.map(|run| format!("{} {}: {}", run.name, run.reason, run.message));
    all.collect::<Vec<_>>().join("; ")
}

/// The columns with the cells of an object; of none they are empty.
fn columns(item: Option<&Item>) -> Vec<(&'static str, String)> {
    let of = |read: &dyn Fn(&Item) -> String| item.map(read).unwrap_or_default();
    let schedule = |read: &dyn Fn(&super::ScheduleLine) -> String| {
        let schedule = item.and_then(|item| item.schedule.as_ref());
        schedule.map(read).unwrap_or_default()
    };
    let mut all = vec![
        ("kind", of(&|i| i.kind.to_owned())),
        ("namespace", of(&|i| i.namespace.clone())),
        ("name", of(&|i| i.name.clone())),
        ("state", of(&|i| i.state.to_owned())),
        ("reason", of(&|i| i.reason.to_owned())),
        ("message", of(&|i| i.message.clone())),
        ("since", of(&|i| time(i.since))),
        ("created", of(&|i| time(i.created))),
        ("schedule", schedule(&|s| s.expression.clone())),
        ("timeZone", schedule(&|s| s.time_zone.clone())),
        ("scheduleSince", schedule(&|s| time(s.since))),
        ("slotsSince", of(&|i| time(i.slots_since))),
        ("due", of(&|i| number(i.slots.map(|slots| slots.due)))),
    ];
    let slots = item.and_then(|item| item.slots);
    for (name, count) in slots.unwrap_or_default().outcomes() {
        all.push((name, number(slots.map(|_| count))));
    }
    all.extend([
        ("complete", of(&|i| i.complete.to_string())),
        ("knownSince", of(&|i| time(i.known_since))),
        ("notStarted", of(&not_started)),
        ("failures", of(&failures)),
        ("isSuspended", of(&|i| i.suspension.suspended.to_string())),
        ("suspendedSince", of(&|i| time(i.suspension.since))),
        ("suspendedBy", of(&|i| text(i.suspension.by.as_ref()))),
        (
            "suspendedManager",
            of(&|i| text(i.suspension.manager.as_ref())),
        ),
        ("suspendReason", of(&|i| text(i.suspension.reason.as_ref()))),
        ("resumeAt", of(&|i| time(i.suspension.resume_at))),
        ("suspensionEnded", of(&|i| time(i.suspension.last_ended))),
    ]);
    let good = item.and_then(|item| item.newest_good.as_ref());
    let verified = item.and_then(|item| item.newest_verified.as_ref());
    let restore = item.and_then(|item| item.last_restore.as_ref());
    let binlogs = item.and_then(|item| item.binlogs.as_ref());
    let totals = item.and_then(|item| item.totals);
    all.extend([
        ("newestGoodRun", text(good.and_then(|g| g.run.as_ref()))),
        ("newestGoodEnded", time(good.and_then(|g| g.ended))),
        ("newestGoodSeconds", number(good.and_then(|g| g.seconds))),
        ("newestGoodBytes", number(good.and_then(|g| g.stored_bytes))),
        (
            "newestGoodVerified",
            good.and_then(|g| g.verified).unwrap_or_default().to_owned(),
        ),
        (
            "newestVerifiedRun",
            text(verified.and_then(|v| v.run.as_ref())),
        ),
        (
            "newestVerifiedMode",
            text(verified.and_then(|v| v.mode.as_ref())),
        ),
        ("newestVerifiedAt", time(verified.map(|v| v.at))),
        ("lastRestore", text(restore.map(|r| &r.name))),
        ("lastRestoreEnded", time(restore.and_then(|r| r.ended))),
        (
            "lastRestoreSeconds",
            number(restore.and_then(|r| r.seconds)),
        ),
        ("encryption", of(&|i| i.encryption.clone())),
        ("retention", of(&|i| text(i.retention.as_ref()))),
        (
            "binlogSeconds",
            number(binlogs.and_then(|b| b.interval_seconds)),
        ),
        (
            "recoverableFrom",
            time(binlogs.and_then(|b| b.recoverable_from)),
        ),
        (
            "recoverableUntil",
            time(binlogs.and_then(|b| b.recoverable_until)),
        ),
        ("totalDue", number(totals.map(|t| t.due))),
        ("totalSucceeded", number(totals.map(|t| t.succeeded))),
        ("totalFailed", number(totals.map(|t| t.failed))),
        ("totalSkipped", number(totals.map(|t| t.skipped))),
        ("totalMissed", number(totals.map(|t| t.missed))),
        ("totalManual", number(totals.map(|t| t.manual))),
    ]);
    all
}
