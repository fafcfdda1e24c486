//! Whom the outcome is told, and how often: once for each outcome of a run. Retries of one Job
//! leave a mark in the store, so that a second failed attempt stays silent.

use std::sync::Arc;

use crds::mysql_backup::NotificationEvent;
use crds::report::Report;
use crds::request::Action;
use serde_json::{Value, json};

use crate::notify::{self, Notice};
use crate::run::{Context, duration};
use crate::store::Store;

/// Beside an object's artefacts while its newest run failed; holds that run's name.
const FAILING: &str = ".failing";

/// Tells every receiver that wants to hear of it. Trouble is a warning in the report.
pub async fn tell(context: &Arc<Context>) {
    if context.settings.action != Action::Backup {
        return;
    }
    let report = context.reporter.snapshot();
    let good = report.good == Some(true);
    let remembered = Arc::clone(context);
    let history = tokio::task::spawn_blocking(move || remember(&remembered, good));
    let history = tokio::time::timeout(notify::LIMIT, history).await;
    let History { told, recovered } = history.ok().and_then(Result::ok).unwrap_or_default();
    let event = match (good, recovered) {
        (false, _) => NotificationEvent::Failure,
        (true, true) => NotificationEvent::Recovery,
        (true, false) => NotificationEvent::Success,
    };
    let receivers = &context.settings.receivers;
    let wanting: Vec<_> = receivers.iter().filter(|r| r.wants(event)).collect();
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
            Err(e) => context.reporter.warn(&e),
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
    let told = !identity.run.is_empty() && store.mark(&directory, mark).is_ok_and(|first| !first);
    if !good {
        let _ = store.put(&failing, identity.run.as_bytes());
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

fn read(store: &dyn Store, key: &str) -> Option<String> {
    let mut text = String::new();
    let reader = store.open(key).ok().flatten()?;
    std::io::Read::read_to_string(&mut std::io::Read::take(reader, 1024), &mut text).ok()?;
    Some(text)
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
    let outcome = match event {
        NotificationEvent::Failure => "FAILED",
        NotificationEvent::Recovery => "recovered",
        _ => "succeeded",
    };
    Notice {
        event,
        title: format!("Backup {outcome}: {}", context.settings.identity.title()),
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
