//! A report as one HTML page: without scripts, and with nothing that is loaded from elsewhere.

use std::fmt::Write;

use chrono_tz::Tz;
use crds::verdict::State;

use super::days::{CalendarEntry, Outcome};
use super::text::summary;
use super::{Audit, BinlogsLine, Item, Moment, RestoreLine, RunLine, VerificationLine};
use crate::text::counted;
use crate::view::duration;
use crate::view::time::Zone;

const STYLE: &str = include_str!("html.css");
/// Days in a line of a calendar: a month, so that a phone shows it at its own size.
const ACROSS: usize = 31;
/// Units of the drawing from one day to the next.
const STEP: usize = 10;

/// The page.
pub(crate) fn html(audit: &Audit, zone: Zone) -> String {
    let whole = Shown { zone, of: Tz::UTC };
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Backup report</title>\n<style>\n",
    );
    page.push_str(STYLE);
    page.push_str("</style>\n</head>\n<body>\n");
    page.push_str(&symbols());
    page.push_str("<h1>Backup report</h1>\n");
    let mut head = Pairs::default();
    head.html(
        "Period",
        &format!("{} to {}", whole.at(audit.from), whole.at(audit.until)),
    );
    head.html("Made at", &whole.at(audit.made_at));
    match &audit.namespace {
        Some(namespace) => head.text("Namespace", namespace),
        None => head.text("Namespaces", "all"),
    }
    head.text("Objects", &summary(audit));
    let slots = &audit.summary.slots;
    head.text("Slots", &of_due(slots.due, &slots.words()));
    for left_out in &audit.left_out {
        head.text("Left out", left_out);
    }
    page.push_str(&head.list());
    page.push_str("<p class=\"note\">A slot is a time at which a schedule is due. Status keeps the newest runs alone: slots that it no longer lists are unknown here, and each object says from when on all are known.</p>\n");
    fleet(&mut page, audit);
    if !audit.items.is_empty() {
        page.push_str("<h2>Objects</h2>\n");
    }
    for (index, item) in audit.items.iter().enumerate() {
        let shown = Shown {
            zone,
            of: item.zone,
        };
        section(&mut page, index, item, shown);
    }
    restores(&mut page, &audit.restores, whole);
    page.push_str("</body>\n</html>\n");
    page
}

/// Text as it stands in HTML: no markup, no unseen characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(crds::text::seen(c)),
        }
    }
    safe
}

/// `30 due: 29 succeeded, 1 failed`.
fn of_due(due: i64, words: &str) -> String {
    match words {
        "" => format!("{due} due"),
        words => format!("{due} due: {words}"),
    }
}

/// The zone of times: the one asked for, else that of the object.
#[derive(Clone, Copy)]
struct Shown {
    zone: Zone,
    of: Tz,
}

impl Shown {
    fn at(self, at: Moment) -> String {
        format!("<time>{}</time>", self.zone.show(at.0, self.of))
    }

    fn or_none(self, at: Option<Moment>) -> String {
        at.map_or_else(|| "–".to_owned(), |at| self.at(at))
    }
}

/// Seconds with the length they are for people.
fn took(seconds: i64) -> String {
    let human = duration::human(seconds);
    let plain = format!("{seconds}s");
    if human == plain {
        plain
    } else {
        format!("{human} ({seconds} seconds)")
    }
}

fn stored(bytes: i64) -> String {
    let human = duration::bytes(bytes);
    let plain = format!("{bytes}B");
    if human == plain {
        plain
    } else {
        format!("{human} ({bytes} bytes)")
    }
}

/// A list of names with their values.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    fn html(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "<dt>{name}</dt><dd>{value}</dd>");
    }

    fn text(&mut self, name: &str, value: &str) {
        self.html(name, &escaped(value));
    }

    fn list(self) -> String {
        format!("<dl>\n{}</dl>\n", self.0)
    }
}

/// What a day looks like: form and colour both tell.
fn drawing(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotDue => "M4 4h2v2h-2z",
        Outcome::Good => "M.5.5h9v9h-9z",
        Outcome::Open => "M5 1.5a3.5 3.5 0 1 0 .01 0z",
        Outcome::Suspended => "M2 1.5h2v7h-2zM6 1.5h2v7h-2z",
        Outcome::Skipped => "M1 4h8v2h-8z",
        Outcome::Unknown => "M1.5 1.5h7v7h-7z",
        Outcome::Missed => "M1.5 1.5h7v7h-7z",
        Outcome::Failed => "M1 1l8 8M9 1l-8 8",
    }
}

fn explained(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NotDue => "nothing due",
        Outcome::Good => "all good",
        Outcome::Open => "under way or not decided",
        Outcome::Suspended => "suspended",
        Outcome::Skipped => "skipped or ended on purpose",
        Outcome::Unknown => "no longer known",
        Outcome::Missed => "missed",
        Outcome::Failed => "failed",
    }
}

/// The drawings of days, which calendars use.
fn symbols() -> String {
    let mut text = String::from(
        "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>",
    );
    for outcome in Outcome::ALL {
        let (name, path) = (outcome.as_str(), drawing(outcome));
        let _ = write!(text, "<path id=\"{name}\" class=\"{name}\" d=\"{path}\"/>");
    }
    text + "</defs></svg>\n"
}

/// All objects, a line each with its calendar.
fn fleet(page: &mut String, audit: &Audit) {
    if audit.items.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Calendar</h2>\n<p class=\"note\">A cell a day, with the worst that came of it",
    );
    let days = || {
        audit
            .items
            .iter()
            .flat_map(|item| &item.days)
            .map(|day| day.date)
    };
    if let (Some(first), Some(last)) = (days().min(), days().max()) {
        let _ = write!(page, ", {first} to {last}");
    }
    if audit.items.iter().any(|item| item.days.len() > ACROSS) {
        let _ = write!(page, ", {ACROSS} days in a line");
    }
    page.push_str(".</p>\n<p class=\"legend\">");
    for outcome in Outcome::ALL {
        let _ = writeln!(
            page,
            "<span><svg width=\"12\" height=\"12\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><use href=\"#{}\"/></svg> {}</span>",
            outcome.as_str(),
            explained(outcome)
        );
    }
    page.push_str("</p>\n<ul class=\"fleet\">\n");
    for (index, item) in audit.items.iter().enumerate() {
        let counts = match &item.slots {
            Some(slots) => of_due(slots.due, &slots.words()),
            None => counted(item.runs.len(), "run"),
        };
        let _ = writeln!(
            page,
            "<li><a href=\"#o{index}\">{} <small>{}</small></a>{}<span class=\"counts\">{}</span>{}</li>",
            escaped(&item.short),
            escaped(&item.namespace),
            state(item.verdict, item.state),
            escaped(&counts),
            calendar(item),
        );
    }
    page.push_str("</ul>\n");
}

fn state(state: State, word: &str) -> String {
    let class = match state {
        State::Good => "good",
        State::Warning => "warning",
        State::Critical => "critical",
        State::Unknown => "unknown",
    };
    format!("<span class=\"state {class}\">{word}</span>")
}

fn calendar(item: &Item) -> String {
    let lines = item.days.len().div_ceil(ACROSS).max(1);
    let (width, height) = (item.days.len().min(ACROSS) * STEP, lines * STEP);
    let mut text = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Calendar of {}\">",
        escaped(&item.short)
    );
    for (index, day) in item.days.iter().enumerate() {
        let (x, y) = (index % ACROSS * STEP, index / ACROSS * STEP);
        let name = day.outcome.as_str();
        let _ = write!(text, "<use href=\"#{name}\" x=\"{x}\"");
        if y > 0 {
            let _ = write!(text, " y=\"{y}\"");
        }
        let _ = write!(text, "><title>{}</title></use>", escaped(&told(day)));
    }
    text + "</svg>"
}

/// `2026-09-04 Failed: 24 due, 23 succeeded, 1 failed`.
fn told(day: &CalendarEntry) -> String {
    let counts = day.counts();
    let counts = counts.iter().map(|(name, count)| format!("{count} {name}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let head = format!("{} {}", day.date, day.outcome.as_str());
    if counts.is_empty() {
        head
    } else {
        format!("{head}: {counts}")
    }
}

fn section(page: &mut String, index: usize, item: &Item, shown: Shown) {
    let _ = writeln!(
        page,
        "<section id=\"o{index}\">\n<h3>{} <small>{} in namespace {}</small></h3>",
        escaped(&item.name),
        item.kind,
        escaped(&item.namespace),
    );
    page.push_str(&pairs(item, shown).list());
    missed(page, item, shown);
    let (good, bad): (Vec<&RunLine>, Vec<&RunLine>) = item.runs.iter().partition(|run| run.good);
    if !bad.is_empty() {
        page.push_str("<h4>Runs that are not good</h4>\n");
        page.push_str(&runs(&bad, shown));
    }
    if !good.is_empty() {
        let title = format!("{} listed", counted(good.len(), "good run"));
        let _ = writeln!(page, "<details><summary>{title}</summary>");
        page.push_str(&runs(&good, shown));
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
}

fn pairs(item: &Item, shown: Shown) -> Pairs {
    let mut pairs = Pairs::default();
    let mut now = format!("{} ({})", state(item.verdict, item.state), item.reason);
    if let Some(since) = item.since {
        let _ = write!(now, ", since {}", shown.at(since));
    }
    if !item.message.is_empty() {
        let _ = write!(now, ": {}", escaped(&item.message));
    }
    pairs.html("Now", &now);
    pairs.html("Created", &shown.or_none(item.created));
    match &item.schedule {
        Some(schedule) => {
            let mut text = format!(
                "{} – {} ({})",
                escaped(&schedule.expression),
                escaped(&schedule.words),
                escaped(&schedule.time_zone)
            );
            if let Some(since) = schedule.since {
                let _ = write!(text, ", since {}", shown.at(since));
            }
            pairs.html("Schedule", &text);
        }
        None => pairs.text("Schedule", "none"),
    }
    if let Some(slots) = &item.slots {
        let mut text = escaped(&of_due(slots.due, &slots.words()));
        if let Some(since) = item.slots_since {
            let _ = write!(text, ", counted since {}", shown.at(since));
        }
        pairs.html("Slots", &text);
    }
    let known = match (item.complete, item.known_since) {
        (true, Some(since)) => format!("all known since {}", shown.at(since)),
        (false, Some(since)) => format!("not all known; known since {}", shown.at(since)),
        (true, None) => "all known".to_owned(),
        (false, None) => "not known from status".to_owned(),
    };
    pairs.html("History", &known);
    pairs.html("Suspended", &suspension(item, shown));
    pairs.html("Newest good run", &newest_good(item, shown));
    let verified = item.newest_verified.as_ref().map(|verified| {
        let mut text = shown.at(verified.at);
        if let Some(mode) = &verified.mode {
            let _ = write!(text, " by {}", escaped(mode));
        }
        if let Some(run) = &verified.run {
            let _ = write!(text, ", run {}", escaped(run));
        }
        text
    });
    let never = || "never".to_owned();
    pairs.html("Newest verified run", &verified.unwrap_or_else(never));
    if let Some(restore) = &item.last_restore {
        let mut text = format!(
            "{}, {}",
            shown.or_none(restore.ended),
            escaped(&restore.name)
        );
        if let Some(seconds) = restore.seconds {
            let _ = write!(text, ", took {}", took(seconds));
        }
        pairs.html("Newest restore", &text);
    }
    pairs.text("Encryption", &item.encryption);
    pairs.text("Retention", item.retention.as_deref().unwrap_or("not set"));
    if let Some(binlogs) = &item.binlogs {
        pairs.html("Binary logs", &recoverable(binlogs, shown));
        for gap in &binlogs.gaps {
            let at = |at: Option<Moment>, unset: &str| {
                at.map_or_else(|| unset.to_owned(), |at| shown.at(at))
            };
            let text = format!(
                "{} to {}: {} ({})",
                at(gap.from, "the beginning"),
                at(gap.to, "now"),
                escaped(&gap.message),
                escaped(&gap.reason)
            );
            pairs.html("Gap", &text);
        }
    }
    if let Some(totals) = &item.totals {
        pairs.text(
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
    pairs
}

fn newest_good(item: &Item, shown: Shown) -> String {
    let Some(good) = &item.newest_good else {
        return "never".to_owned();
    };
    let mut text = shown.or_none(good.ended);
    if let Some(run) = &good.run {
        let _ = write!(text, ", {}", escaped(run));
    }
    if let Some(seconds) = good.seconds {
        let _ = write!(text, ", took {}", took(seconds));
    }
    if let Some(bytes) = good.stored_bytes {
        let _ = write!(text, ", {}", stored(bytes));
    }
    if let Some(verified) = good.verified {
        let _ = write!(text, ", verified: {verified}");
    }
    text
}

fn suspension(item: &Item, shown: Shown) -> String {
    let held = &item.suspension;
    let mut text = if held.suspended { "yes" } else { "no" }.to_owned();
    if let Some(since) = held.since {
        let _ = write!(text, ", since {}", shown.at(since));
    }
    if let Some(by) = &held.by {
        let _ = write!(text, ", by {}", escaped(by));
    }
    if let Some(manager) = &held.manager {
        let _ = write!(text, ", written by {}", escaped(manager));
    }
    if let Some(why) = &held.reason {
        let _ = write!(text, ": {}", escaped(why));
    }
    if let Some(at) = held.resume_at {
        let _ = write!(text, ", resumes at {}", shown.at(at));
    }
    if let Some(at) = held.last_ended {
        let _ = write!(text, "; the last suspension ended at {}", shown.at(at));
    }
    text
}

fn recoverable(binlogs: &BinlogsLine, shown: Shown) -> String {
    let interval = binlogs.interval_seconds.map(took);
    let interval = interval.unwrap_or_else(|| "an interval that is not valid".to_owned());
    let mut text = match binlogs.continuous {
        true => format!("pulled continuously, a Job for each {interval}"),
        false => format!("pulled every {interval}"),
    };
    match (binlogs.recoverable_from, binlogs.recoverable_until) {
        (Some(from), Some(until)) => {
            let (from, until) = (shown.at(from), shown.at(until));
            let _ = write!(text, ", recoverable from {from} until {until}");
        }
        _ => text.push_str(", none stored yet"),
    }
    if let Some(since) = binlogs.incomplete_since {
        let _ = write!(text, ", incomplete since {}", shown.at(since));
    }
    text
}

fn missed(page: &mut String, item: &Item, shown: Shown) {
    if item.not_started.is_empty() {
        return;
    }
    page.push_str("<h4>Slots that were not started</h4>\n<ul class=\"rows\">\n");
    for entry in &item.not_started {
        let _ = writeln!(
            page,
            "<li><span>{}</span><span>{}</span><span>from {} to {}</span></li>",
            counted(entry.count, "slot"),
            escaped(&entry.reason),
            shown.at(entry.from),
            shown.at(entry.to),
        );
    }
    page.push_str("</ul>\n");
}

/// `from` and the like with their instants, where there are any.
fn instants(all: &[(&str, Option<Moment>)], shown: Shown) -> Vec<String> {
    let some = all.iter().filter_map(|(word, at)| Some((word, (*at)?)));
    some.map(|(word, at)| format!("{word} {}", shown.at(at)))
        .collect()
}

/// Reason and message below what else there is to say.
fn because(reason: &str, message: &str) -> String {
    let text = match (reason, message) {
        ("", "") => return String::new(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    format!("<br>{}", escaped(&text))
}

fn runs(all: &[&RunLine], shown: Shown) -> String {
    let mut text = String::from("<ul class=\"rows\">\n");
    for run in all {
        let mut trigger = run.trigger.to_owned();
        if let Some(by) = &run.by {
            let _ = write!(trigger, " by {by}");
        }
        let class = match (run.good, run.failed || run.result == "Succeeded") {
            (true, _) => "good",
            (false, true) => "critical",
            (false, false) => "unknown",
        };
        let mut told = instants(
            &[
                ("slot", run.slot),
                ("started", run.started),
                ("ended", run.ended),
            ],
            shown,
        );
        told.extend(run.seconds.map(|seconds| format!("took {}", took(seconds))));
        told.extend(
            run.stored_bytes
                .map(|bytes| format!("stored {}", stored(bytes))),
        );
        let done = run.verification.as_ref();
        let done = done.map(|done| format!("<br>{}", verification(done, shown)));
        let _ = writeln!(
            text,
            "<li><span>{} <small>{}</small></span><span class=\"{class}\">{}</span><span>{}{}{}</span></li>",
            escaped(&run.name),
            escaped(&trigger),
            run.result,
            told.join(", "),
            because(&run.reason, &run.message),
            done.unwrap_or_default(),
        );
    }
    text + "</ul>\n"
}

fn verification(done: &VerificationLine, shown: Shown) -> String {
    let what = match done.passed {
        true => "passed",
        false => "failed",
    };
    let mut text = format!(
        "Verification by {} {what} at {}",
        escaped(&done.mode),
        shown.at(done.at)
    );
    if !done.message.is_empty() {
        let _ = write!(text, ": {}", escaped(&done.message));
    }
    text
}

fn restores(page: &mut String, all: &[RestoreLine], shown: Shown) {
    if all.is_empty() {
        return;
    }
    page.push_str("<h2>Restores</h2>\n<ul class=\"rows\">\n");
    for restore in all {
        let of = match &restore.object {
            Some(object) => format!("{object}, {}", restore.artefact),
            None => restore.artefact.clone(),
        };
        let mut told = vec![
            format!("of {}", escaped(&of)),
            format!("into {}", escaped(&restore.target)),
        ];
        if restore.dry_run {
            told.push("dry run".to_owned());
        }
        told.extend(instants(
            &[
                ("created", restore.created),
                ("started", restore.started),
                ("ended", restore.ended),
            ],
            shown,
        ));
        told.extend(
            restore
                .seconds
                .map(|seconds| format!("took {}", took(seconds))),
        );
        told.extend(restore.rows.map(|rows| counted(rows, "row")));
        let _ = writeln!(
            page,
            "<li><span>{} <small>{}</small></span><span>{} <small>{}</small></span><span>{}{}</span></li>",
            escaped(&restore.name),
            escaped(&restore.namespace),
            restore.phase,
            state(restore.verdict, restore.state),
            told.join(", "),
            because(&restore.reason, &restore.message),
        );
    }
    page.push_str("</ul>\n");
}
