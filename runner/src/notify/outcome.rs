//! Whom the outcome is told, and how often: once for each outcome of a run. That a run failed is
//! final when its Job is, so the operator tells it, and all else that no pod can know, by a run of
//! its own that passes it on. Receivers the operator does not know of, and all where there is no
//! operator, hear of a failed attempt from its pod; retries of one Job leave a mark in the store, so
//! that a second one stays silent.

use std::sync::Arc;
use std::time::Duration;

use crds::parts::NotificationEvent;
use crds::report::{Reason, Report};
use crds::request::Action;
use crds::run_spec::RunNotice;
use serde_json::{Value, json};

use crate::clock::duration;
use crate::context::Context;
use crate::failure::Failure;
use crate::notify::{self, Notice, Undelivered};
use crate::settings::Receiver;
use crate::store::{self, Store};

/// Beside an object's artefacts while its newest run failed; holds that run's name.
const FAILING: &str = ".failing";
/// Beside an object's artefacts: the marks that are there, one a line, oldest first.
const TOLD: &str = ".told";
/// So many marks stay: more than an object has open runs, whose retries need them.
const MARKS: usize = 20;
/// Most bytes of these two files that are read.
const MOST: u64 = 8 * 1024;
/// What the operator saw is tried again after so many seconds, where nothing was sent: the network
/// of a pod may be there later than its program.
const PAUSES: [u64; 3] = [1, 2, 4];

/// Tells every receiver that wants to hear of it. Trouble is a warning in the report.
pub async fn tell(context: &Arc<Context>) {
    // A run that pulls binary logs is one of very many: what is to be told of them all, the operator knows.
    if context.settings.action != Action::Backup {
        return;
    }
    let report = context.reporter.snapshot();
    let good = report.good == Some(true);
    let receivers = || context.settings.receivers.iter();
    if !good && receivers().all(|r| r.operator_tells) {
        return;
    }
    let remembered = Arc::clone(context);
    let history = tokio::task::spawn_blocking(move || remember(&remembered, good));
    let history = tokio::time::timeout(notify::LIMIT, history).await;
    let History { told, recovered } = history.ok().and_then(Result::ok).unwrap_or_default();
    let recovered = recovered || context.settings.after_failure;
    let event = match (good, recovered) {
        (false, _) => NotificationEvent::Failure,
        (true, true) => NotificationEvent::Recovery,
        (true, false) => NotificationEvent::Success,
    };
    let wanting: Vec<_> = receivers()
        .filter(|r| r.wants(event) && (good || !r.operator_tells))
        .collect();
    if wanting.is_empty() {
        return;
    }
    context.reporter.phase("Notifying");
    if told {
        tracing::info!("an earlier attempt of this run has told of the same outcome");
        context.reporter.update(|r| r.notified = true);
        return;
    }
    let notice = notice(context, &report, event);
    let sent = wanting
        .iter()
        .map(|receiver| notify::send(receiver, &notice, &context.scrub));
    for result in futures::future::join_all(sent).await {
        match result {
            Ok(()) => context.reporter.update(|r| r.notified = true),
            Err(e) => context.reporter.warn(&e.message),
        }
    }
}

/// What the store knows of earlier outcomes. Where it is not known, people are told.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    told: bool,
    recovered: bool,
}

fn remember(context: &Context, good: bool) -> History {
    let Some(store) = context
        .store
        .get()
        .filter(|_| !context.settings.receivers.is_empty())
    else {
        return History::default();
    };
    let identity = &context.settings.identity;
    let directory = identity.directory();
    let failing = format!("{directory}/{FAILING}");
    let mark = if good { "told-success" } else { "told-failure" };
    let told = !identity.run.is_empty() && !mark_first(store.as_ref(), context, &directory, mark);
    if !good {
        let _ = store::put_checked(store.as_ref(), &failing, identity.run.as_bytes());
        return History {
            told,
            recovered: false,
        };
    }
    let before = read(store.as_ref(), &failing);
    if before.is_some() {
        let _ = store.remove(&failing);
    }
    History {
        told,
        // A failed attempt of this very run is no failed run.
        recovered: before.is_some_and(|run| run != identity.run),
    }
}

/// Leaves a mark; true if it was not there. Marks of older runs beyond [`MARKS`] go. Trouble is no
/// reason to stay silent.
fn mark_first(store: &dyn Store, context: &Context, directory: &str, mark: &str) -> bool {
    match store.mark(directory, mark) {
        Ok(true) => {}
        Ok(false) => return false,
        Err(_) => return true,
    }
    let list = format!("{directory}/{TOLD}");
    let text = read(store, &list).unwrap_or_default();
    let mut marks: Vec<String> = text.lines().filter_map(own_mark).collect();
    marks.push(format!("{}~{mark}", context.settings.identity.run));
    let surplus = marks.len().saturating_sub(MARKS);
    for old in marks.drain(..surplus) {
        if let Some((run, mark)) = old.split_once('~') {
            let _ = store.remove(&store::mark_key(directory, run, mark));
        }
    }
    let _ = store::put_checked(store, &list, marks.join("\n").as_bytes());
    true
}

/// A line of the list that can only name a mark; the file may be anybody's to write.
fn own_mark(line: &str) -> Option<String> {
    let (run, mark) = line.split_once('~')?;
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let plain = !run.is_empty() && run.chars().all(named);
    (plain && matches!(mark, "told-success" | "told-failure")).then(|| line.to_owned())
}

fn read(store: &dyn Store, key: &str) -> Option<String> {
    String::from_utf8(store::read(store, key, MOST).ok().flatten()?).ok()
}

/// Removes what is remembered of an object whose artefacts all go.
///
/// # Errors
/// The store refuses.
pub fn forget(store: &dyn Store, directory: &str) -> Result<(), Failure> {
    let list = format!("{directory}/{TOLD}");
    let marks = read(store, &list).unwrap_or_default();
    for line in marks.lines().filter_map(own_mark) {
        if let Some((run, mark)) = line.split_once('~') {
            store.remove(&store::mark_key(directory, run, mark))?;
        }
    }
    store.remove(&list)?;
    store.remove(&format!("{directory}/{FAILING}"))
}

/// Passes on what the operator saw. Each receiver is told once; one that may have been told is not
/// told again.
///
/// # Errors
/// Somebody was not told.
pub fn pass_on(context: &Context, seen: &RunNotice) -> Result<(), Failure> {
    context.reporter.phase("Notifying");
    let notice = notice_of(context, seen);
    let handle = tokio::runtime::Handle::current();
    let settings = &context.settings;
    let mut untold = settings.lost_receivers.clone();
    untold.extend(settings.problems.iter().cloned());
    let mut left: Vec<&Receiver> = settings.receivers.iter().collect();
    left.retain(|r| r.wants(seen.event));
    let mut told = 0;
    for pause in PAUSES.map(Some).into_iter().chain([None]) {
        let sent = left
            .iter()
            .map(|receiver| notify::send(receiver, &notice, &context.scrub));
        let results = handle.block_on(futures::future::join_all(sent));
        let mut again = vec![];
        for (receiver, result) in left.into_iter().zip(results) {
            match result {
                Ok(()) => told += 1,
                Err(Undelivered { unsent: true, .. }) if pause.is_some() => again.push(receiver),
                Err(e) => untold.push(e.message),
            }
        }
        left = again;
        let Some(pause) = pause.filter(|_| !left.is_empty()) else {
            break;
        };
        context.check()?;
        handle.block_on(tokio::time::sleep(Duration::from_secs(pause)));
    }
    context.reporter.update(|r| r.notified = told > 0);
    if !untold.is_empty() {
        return Err(Failure::new(Reason::NotificationFailed, untold.join("; ")));
    }
    if told == 0 {
        return Err(Failure::settings(format!(
            "no receiver wants to hear of {}: use runner and operator of the same version",
            seen.event.as_str()
        )));
    }
    Ok(())
}

/// What the operator saw, in the words and the JSON of every other notice.
fn notice_of(context: &Context, seen: &RunNotice) -> Notice {
    let settings = &context.settings;
    let mut lines = vec![];
    if !seen.run.is_empty() {
        lines.push(format!("run: {}", seen.run));
    }
    lines.push(format!("reason: {}", seen.reason));
    lines.push(seen.message.clone());
    let slot = seen.slot.as_deref().and_then(crds::time::parse_rfc3339);
    if let Some(slot) = slot {
        let slot = crds::time::rfc3339_in(slot, settings.zone);
        lines.push(format!("slot: {slot}"));
    }
    let mut report = Report::new(&seen.run);
    report.phase.clear();
    report.good = Some(seen.event == NotificationEvent::Recovered);
    report.reason.clone_from(&seen.reason);
    report.message.clone_from(&seen.message);
    Notice {
        event: seen.event,
        title: title(context, seen.event),
        lines,
        body: json!({
            "event": seen.event,
            "object": settings.identity.object,
            "slot": slot.map(crds::time::rfc3339),
            "report": report,
        }),
    }
}

fn title(context: &Context, event: NotificationEvent) -> String {
    let outcome = match event {
        NotificationEvent::Failure => "FAILED",
        NotificationEvent::Recovery => "recovered",
        NotificationEvent::Success => "succeeded",
        NotificationEvent::Overdue => "OVERDUE",
        NotificationEvent::Missed => "MISSED",
        NotificationEvent::Gap => "GAP in binary logs",
        NotificationEvent::Recovered => "binary logs complete again",
    };
    format!("Backup {outcome}: {}", context.settings.identity.title())
}

fn notice(context: &Context, report: &Report, event: NotificationEvent) -> Notice {
    let zone = context.settings.zone;
    let started = crds::time::rfc3339_in(context.clock.started, zone);
    let took = duration(context.clock.elapsed());
    let mut lines = vec![];
    if !report.run.is_empty() {
        lines.push(format!("run: {}", report.run));
    }
    if event == NotificationEvent::Failure {
        lines.push(format!("reason: {}", report.reason));
        lines.push(report.message.clone());
    }
    for artefact in &report.artefacts {
        lines.push(format!(
            "stored: {} ({} bytes)",
            artefact.key, artefact.size
        ));
    }
    if let (Some(tables), Some(rows)) = (report.tables, report.rows) {
        lines.push(format!("tables: {tables}, rows: {rows}"));
    }
    lines.extend(report.warnings.iter().map(|w| format!("warning: {w}")));
    lines.push(format!("started: {started}, took {took}"));
    Notice {
        event,
        title: title(context, event),
        lines,
        body: body(context, report, event),
    }
}

/// The JSON of webhooks: the event, the object, and the report as status knows it.
fn body(context: &Context, report: &Report, event: NotificationEvent) -> Value {
    json!({
        "event": event,
        "object": context.settings.identity.object,
        "slot": context.settings.identity.slot.map(crds::time::rfc3339),
        "report": report,
    })
}
