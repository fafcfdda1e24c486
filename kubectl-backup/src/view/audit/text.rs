//! A report for a terminal: a table of all objects, then what there is to say of each.

use chrono_tz::Tz;

use super::{Audit, BinlogsLine, Item, Moment, RestoreLine, RunLine};
use crate::text::{counted, sanitise};
use crate::view::duration::{self, human};
use crate::view::page::{Page, or};
use crate::view::table::{Look, Table};
use crate::view::time::Zone;
use crate::view::verdict::mark;

/// How it is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// Objects are of several namespaces.
    pub(crate) namespace: bool,
    /// The zone to show times in.
    pub(crate) zone: Zone,
    /// Symbols must be ASCII.
    pub(crate) ascii: bool,
    /// The screen.
    pub(crate) look: Look,
}

/// The report.
pub(crate) fn text(audit: &Audit, shape: Shape) -> String {
    let mut head = Page::new(shape.look.color);
    let show = |at: Moment| shape.zone.show(at.0, Tz::UTC);
    let period = format!("{} to {}", show(audit.from), show(audit.until));
    head.field("Period", &period);
    head.field("Made at", &show(audit.made_at));
    head.field("Objects", &summary(audit));
    for left_out in &audit.left_out {
        head.field("Left out", left_out);
    }
    let mut text = head.finish();
    if !audit.items.is_empty() {
        text.push('\n');
        text.push_str(&table(audit, shape).render(shape.look));
    }
    for item in &audit.items {
        text.push('\n');
        text.push_str(&object(item, audit, shape));
    }
    if !audit.restores.is_empty() {
        text.push_str("\nRestores of the period:\n");
        text.push_str(&restores(&audit.restores, shape).render(shape.look));
    }
    text
}

/// `3: 2 good, 1 critical; of 1 status does not reach back …`.
pub(super) fn summary(audit: &Audit) -> String {
    let all = &audit.summary;
    let states = [
        (all.good, "good"),
        (all.warning, "warning"),
        (all.critical, "critical"),
        (all.unknown, "unknown"),
    ];
    let some = states.iter().filter(|(count, _)| *count > 0);
    let states: Vec<String> = some
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let mut text = all.objects.to_string();
    if !states.is_empty() {
        text.push_str(&format!(": {}", states.join(", ")));
    }
    if all.incomplete > 0 {
        text.push_str(&format!(
            "; of {} status does not tell all of the period",
            all.incomplete
        ));
    }
    text
}

fn table(audit: &Audit, shape: Shape) -> Table {
    let mut header = vec![
        "NAME",
        "STATE",
        "DUE",
        "GOOD",
        "FAILED",
        "MISSED",
        "SKIPPED",
        "SUSPENDED",
        "UNKNOWN",
        "LAST-GOOD",
        "VERIFIED",
        "KNOWN-SINCE",
    ];
    if shape.namespace {
        header.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&header);
    for item in &audit.items {
        let slots = item.slots.unwrap_or_default();
        let count = |count: i64| match item.slots {
            Some(_) => count.to_string(),
            None => "-".to_owned(),
        };
        let ago = |at: Option<Moment>| match at {
            Some(at) => duration::age(at.0, audit.made_at.0),
            None => "<never>".to_owned(),
        };
        let mut cells = vec![
            item.short.clone(),
            item.state.to_owned(),
            count(slots.due),
            count(slots.succeeded),
            count(slots.failed),
            count(slots.missed),
            count(slots.skipped),
            count(slots.suspended),
            count(slots.unknown),
            ago(item.newest_good.as_ref().and_then(|good| good.ended)),
            ago(item.newest_verified.as_ref().map(|verified| verified.at)),
            match item.known_since {
                Some(since) => shape.zone.show(since.0, item.zone),
                None => "<unknown>".to_owned(),
            },
        ];
        if shape.namespace {
            cells.insert(0, item.namespace.clone());
        }
        table.push(cells);
    }
    table
}

fn object(item: &Item, audit: &Audit, shape: Shape) -> String {
    let mut page = Page::new(shape.look.color);
    let show = |at: Moment| shape.zone.show(at.0, item.zone);
    let ago = |at: Moment| {
        format!(
            "{} ({} ago)",
            show(at),
            duration::age(at.0, audit.made_at.0)
        )
    };
    let name = match shape.namespace {
        true => format!("{} in namespace {}", item.short, item.namespace),
        false => item.short.clone(),
    };
    page.field("Object", &name);
    let mark = mark(item.verdict, shape.ascii);
    let said = match item.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    page.field(
        "Now",
        &format!("{mark}{} ({}){said}", item.state, item.reason),
    );
    match &item.schedule {
        Some(schedule) => {
            let since = schedule.since.map(|at| format!(", since {}", show(at)));
            page.field(
                "Schedule",
                &format!(
                    "{}  {:?}  ({}){}",
                    schedule.expression,
                    schedule.words,
                    schedule.time_zone,
                    since.unwrap_or_default()
                ),
            );
        }
        None => page.field("Schedule", "<none>"),
    }
    if let Some(slots) = &item.slots {
        let since = item.slots_since.map(|at| format!(" since {}", show(at)));
        let words = match slots.words().as_str() {
            "" => String::new(),
            words => format!(": {words}"),
        };
        page.field(
            "Slots",
            &format!("{} due{}{words}", slots.due, since.unwrap_or_default()),
        );
    }
    if !item.complete {
        let from = match item.known_since {
            Some(at) => format!("known from {} on", show(at)),
            None => "not known from status".to_owned(),
        };
        page.field(
            "History",
            &format!(
                "{from}; what is stored: kubectl backup runs {} --stored",
                item.short
            ),
        );
    }
    for missed in &item.not_started {
        let span = format!("{} to {}", show(missed.from), show(missed.to));
        page.field(
            "Not started",
            &format!("{} from {span}: {}", missed.count, missed.reason),
        );
    }
    for run in item.runs.iter().filter(|run| !run.good) {
        page.field("Run", &outcome(run, show));
    }
    if let Some(text) = suspension(item, show) {
        page.field("Suspended", &text);
    }
    let good = item.newest_good.as_ref();
    let text = good.and_then(|good| {
        let mut text = ago(good.ended?);
        let took = good
            .seconds
            .map(|seconds| format!(", took {}", human(seconds)));
        let bytes = good
            .stored_bytes
            .map(|bytes| format!(", {}", duration::bytes(bytes)));
        let run = good.run.as_ref().map(|run| format!(", run {run}"));
        for part in [run, took, bytes].into_iter().flatten() {
            text.push_str(&part);
        }
        Some(text)
    });
    page.field("Newest good", &text.unwrap_or_else(|| "<never>".to_owned()));
    let verified = item.newest_verified.as_ref().map(|verified| {
        let mode = verified.mode.as_ref().map(|mode| format!(" by {mode}"));
        let run = verified.run.as_ref().map(|run| format!(", run {run}"));
        let (mode, run) = (mode.unwrap_or_default(), run.unwrap_or_default());
        format!("{}{mode}{run}", ago(verified.at))
    });
    page.field(
        "Verified",
        &verified.unwrap_or_else(|| "<never>".to_owned()),
    );
    if let Some(restore) = &item.last_restore {
        let took = restore
            .seconds
            .map(|seconds| format!(", took {}", human(seconds)));
        let at = restore.ended.map(ago);
        page.field(
            "Restored",
            &format!(
                "{}, restore/{}{}",
                at.unwrap_or_default(),
                restore.name,
                took.unwrap_or_default()
            ),
        );
    }
    page.field("Encryption", &item.encryption);
    page.field(
        "Retention",
        &or(item.retention.as_deref().unwrap_or_default(), "<unset>"),
    );
    if let Some(binlogs) = &item.binlogs {
        page.field("Binary logs", &recoverable(binlogs, show));
        for gap in &binlogs.gaps {
            let at = |at: Option<Moment>, unset: &str| at.map_or_else(|| unset.to_owned(), show);
            let span = format!("{} to {}", at(gap.from, "the beginning"), at(gap.to, "now"));
            page.field("Gap", &format!("{span}  {}: {}", gap.reason, gap.message));
        }
    }
    if let Some(totals) = &item.totals {
        page.field(
            "In all",
            &format!(
                "{} due, {} succeeded, {} failed, {} skipped, {} missed; {}",
                totals.due,
                totals.succeeded,
                totals.failed,
                totals.skipped,
                totals.missed,
                counted(totals.manual, "manual run")
            ),
        );
    }
    page.finish()
}

/// `shop-1 Failed at … after 31s: <message> (AccessDenied)`.
fn outcome(run: &RunLine, show: impl Fn(Moment) -> String) -> String {
    let mut text = format!("{} {}", run.name, run.result);
    if let Some(at) = run.started.or(run.slot) {
        text.push_str(&format!(" at {}", show(at)));
    }
    if let Some(seconds) = run.seconds {
        text.push_str(&format!(" after {}", human(seconds)));
    }
    if let Some(by) = &run.by {
        text.push_str(&format!(", asked for by {by}"));
    }
    let why = match (run.message.is_empty(), run.reason.is_empty()) {
        (true, true) => String::new(),
        (true, false) => run.reason.clone(),
        (false, true) => sanitise(&run.message),
        (false, false) => format!("{} ({})", sanitise(&run.message), run.reason),
    };
    if !why.is_empty() {
        text.push_str(&format!(": {why}"));
    }
    if let Some(failed) = run.verification.as_ref().filter(|done| !done.passed) {
        text.push_str(&format!(
            "; failed its verification by {}: {}",
            failed.mode, failed.message
        ));
    }
    text
}

/// What is known of a suspension; none where there is none.
fn suspension(item: &Item, show: impl Fn(Moment) -> String) -> Option<String> {
    let held = &item.suspension;
    if !held.suspended {
        let ended = held.last_ended?;
        return Some(format!("no; the last suspension ended at {}", show(ended)));
    }
    let mut text = "yes".to_owned();
    if let Some(since) = held.since {
        text.push_str(&format!(" since {}", show(since)));
    }
    if let Some(by) = &held.by {
        text.push_str(&format!(" by {by}"));
    }
    if let Some(manager) = &held.manager {
        text.push_str(&format!(", written by {manager}"));
    }
    if let Some(why) = &held.reason {
        text.push_str(&format!(": {why:?}"));
    }
    if let Some(at) = held.resume_at {
        text.push_str(&format!(", resumes at {}", show(at)));
    }
    Some(text)
}

fn recoverable(binlogs: &BinlogsLine, show: impl Fn(Moment) -> String) -> String {
    let interval = binlogs.interval_seconds.map(human);
    let interval = interval.unwrap_or_else(|| "<unset>".to_owned());
    let how = match binlogs.continuous {
        true => format!("pulled continuously, a Job for each {interval}"),
        false => format!("pulled every {interval}"),
    };
    let window = match (binlogs.recoverable_from, binlogs.recoverable_until) {
        (Some(from), Some(until)) => {
            format!("recoverable from {} until {}", show(from), show(until))
        }
        _ => "none stored yet".to_owned(),
    };
    let incomplete = binlogs
        .incomplete_since
        .map(|at| format!(", incomplete since {}", show(at)));
    format!("{how}, {window}{}", incomplete.unwrap_or_default())
}

fn restores(all: &[RestoreLine], shape: Shape) -> Table {
    let mut header = vec![
        "NAME", "OBJECT", "ARTEFACT", "TO", "DRY-RUN", "PHASE", "REASON", "STARTED", "TOOK",
    ];
    if shape.namespace {
        header.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&header);
    for restore in all {
        let dash = || "-".to_owned();
        let mut cells = vec![
            restore.name.clone(),
            restore.object.clone().unwrap_or_else(dash),
            restore.artefact.clone(),
            restore.target.clone(),
            if restore.dry_run { "yes" } else { "no" }.to_owned(),
            restore.phase.to_owned(),
            or(&restore.reason, "-"),
            restore
                .started
                .map_or_else(dash, |at| shape.zone.show(at.0, Tz::UTC)),
            restore.seconds.map_or_else(dash, human),
        ];
        if shape.namespace {
            cells.insert(0, restore.namespace.clone());
        }
        table.push(cells);
    }
    table
}
