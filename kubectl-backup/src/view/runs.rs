//! Runs of an object: tables and one-line summaries.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use crds::parts::VerifyMode;
use crds::run::{PENDING, Run, RunResult, Trigger};
use crds::time::from_k8s;
use serde_json::Value;

use super::duration;
use super::page::or;
use super::table::Table;
use super::time::Zone;

/// How long a run took, or has taken so far.
pub(crate) fn took(run: &Run, now: DateTime<Utc>) -> Option<String> {
    let start = from_k8s(run.start_time.as_ref()?);
    let end = run.completion_time.as_ref().map_or(now, from_k8s);
    Some(duration::human_millis((end - start).num_milliseconds()))
}

/// Stored size of a run.
pub(crate) fn size(run: &Run) -> Option<String> {
    run.stored_bytes.map(duration::bytes)
}

/// `yes` for a passed verification by restore or replay, `read-back` where the artefacts were read again,
/// `exit-status` where nothing but the exit status speaks for the run.
pub(crate) fn verified(run: &Run) -> &'static str {
    match (&run.verification, run.result) {
        (Some(v), _) if v.passed && v.mode != VerifyMode::Checksum.as_str() => "yes",
        (Some(v), _) if !v.passed => "Failed",
        (_, RunResult::Succeeded) if run.reason == crds::condition::reason::EXIT_STATUS_ONLY => {
            "exit-status"
        }
        (_, RunResult::Succeeded) if run.is_read_back() => "read-back",
        _ => "-",
    }
}

/// The result of a run in a word, as tables show it.
fn word(run: &Run) -> &str {
    match run.phase.as_deref() {
        Some(PENDING) if run.result == RunResult::Running => PENDING,
        _ if run.ended_on_purpose() => &run.reason,
        _ => run.result.as_str(),
    }
}

/// Why a run was started, with who asked.
fn trigger(run: &Run, by: Option<&str>) -> String {
    match (run.trigger, by) {
        (Trigger::Manual, Some(by)) if !by.is_empty() => format!("Manual ({by})"),
        (trigger, _) => trigger.as_str().to_owned(),
    }
}

/// A run with the object it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRun<'a> {
    /// Namespace of the object.
    pub(crate) namespace: String,
    /// `singular/name` of the object.
    pub(crate) object: String,
    /// The schedule's zone.
    pub(crate) zone: Tz,
    /// Who asked for it.
    pub(crate) by: Option<String>,
    /// The run.
    pub(crate) run: &'a Run,
}

/// The table of runs. `object` adds a column for the object, `namespace` one for its namespace,
/// `wide` one for what made the dump, and one for what each said.
pub(crate) fn table(
    runs: &[OwnedRun<'_>],
    namespace: bool,
    object: bool,
    wide: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Table {
    let mut header = vec![];
    if namespace {
        header.push("NAMESPACE");
    }
    header.push("NAME");
    if object {
        header.push("OBJECT");
    }
    header.extend([
        "TRIGGER", "RESULT", "STARTED", "DURATION", "SIZE", "VERIFIED", "REASON", "AGE",
    ]);
    if wide {
        header.extend(["ENGINE", "MESSAGE"]);
    }
    let mut table = Table::new(&header).whole(wide);
    for owned in runs {
        let run = owned.run;
        let dash = || "-".to_owned();
        let mut cells = vec![];
        if namespace {
            cells.push(owned.namespace.clone());
        }
        cells.push(run.name.clone());
        if object {
            cells.push(owned.object.clone());
        }
        let start = run.start_time.as_ref().map(from_k8s);
        cells.extend([
            trigger(run, owned.by.as_deref()),
            word(run).to_owned(),
            start.map_or_else(dash, |at| zone.show(at, owned.zone)),
            took(run, now).unwrap_or_else(dash),
            size(run).unwrap_or_else(dash),
            verified(run).to_owned(),
            if run.reason.is_empty() {
                dash()
            } else {
                run.reason.clone()
            },
            start.map_or_else(|| "<unknown>".to_owned(), |at| duration::age(at, now)),
        ]);
        if wide {
            cells.push(or(&run.engine, "-"));
            let said = run.warnings.first().filter(|_| run.message.is_empty());
            let said = said.unwrap_or(&run.message);
            cells.push(or(&crds::secret::mask(said), "-"));
        }
        table.push(cells);
    }
    table
}

/// A run with the object it belongs to, for machines.
pub(crate) fn value(run: &Run, object: &str, namespace: &str) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    value["object"] = object.into();
    value["namespace"] = namespace.into();
    value
}

/// `Native, tables locked while connections began, 2025-01-15 02:00:01`, or `Client: <why>`; `None` where there is no choice.
pub(crate) fn engine(run: &Run, zone: Zone, of: Tz) -> Option<String> {
    let mut text = crate::text::sanitise(&run.engine);
    if text.is_empty() {
        return None;
    }
    if !run.engine_reason.is_empty() {
        let why = crds::secret::mask(&crate::text::sanitise(&run.engine_reason));
        text.push_str(&format!(": {why}"));
    }
    if !run.snapshot.is_empty() {
        text.push_str(&format!(
            ", snapshot: {}",
            crate::text::sanitise(&run.snapshot)
        ));
    }
    if let Some(at) = &run.snapshot_time {
        text.push_str(&format!(", of {}", zone.show(from_k8s(at), of)));
    }
    Some(text)
}

/// `succeeded in 4m9s, 1.8GiB, <key>`, or `failed after 31s in phase "Dumping": <message>`.
pub(crate) fn outcome(run: &Run, now: DateTime<Utc>) -> String {
    let took = took(run, now);
    match run.result {
        RunResult::Succeeded => {
            let mut text = "succeeded".to_owned();
            if let Some(took) = took {
                text.push_str(&format!(" in {took}"));
            }
            if let Some(size) = size(run) {
                text.push_str(&format!(", {size}"));
            }
            if let Some(artefact) = run.artefacts.first() {
                text.push_str(&format!(", {}", artefact.key));
            }
            if verified(run) == "exit-status" {
                text.push_str(" (by its exit status alone: this image writes no report)");
            }
            text
        }
        RunResult::Failed if run.ended_on_purpose() => {
            let took = took
                .map(|took| format!(" after {took}"))
                .unwrap_or_default();
            let message = crds::secret::mask(&crate::text::sanitise(&run.message));
            let why = if message.is_empty() {
                message
            } else {
                format!(": {message}")
            };
            format!("was {}{took}{why}", run.reason.to_lowercase())
        }
        RunResult::Failed => {
            let mut text = "failed".to_owned();
            if let Some(took) = took {
                text.push_str(&format!(" after {took}"));
            }
            if let Some(phase) = run
                .phase
                .as_deref()
                .filter(|p| !p.is_empty() && *p != "Done")
            {
                text.push_str(&format!(" in phase {phase:?}"));
            }
            text.push_str(&format!(": {}", cause(run)));
            text
        }
        RunResult::Skipped => format!("was skipped: {}", cause(run)),
        RunResult::Waiting => format!("is waiting: {}", cause(run)),
        RunResult::Running => match run.phase.as_deref() {
            Some(PENDING) => format!("is pending: {}", cause(run)),
            phase => {
                let mut text = "is running".to_owned();
                if let Some(phase) = phase {
                    text.push_str(&format!(" (phase {phase})"));
                }
                // What became of the attempts before.
                if !run.message.is_empty() {
                    text.push_str(&format!(": {}", cause(run)));
                }
                text
            }
        },
    }
}

/// Message and reason of a run, in one line.
pub(crate) fn cause(run: &Run) -> String {
    let message = crds::secret::mask(&crate::text::sanitise(&run.message));
    match (message.is_empty(), run.reason.is_empty()) {
        (false, true) => message,
        (false, false) => format!("{message} ({})", run.reason),
        (true, false) => run.reason.clone(),
        (true, true) => "no reason was given".to_owned(),
    }
}
