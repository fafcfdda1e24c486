//! `runs --stored` (PURE): what is in the store beside what status says should be.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::run::{Run, RunResult};
use serde::{Deserialize, Serialize};

use super::duration;
use super::table::Table;
use super::time::{Zone, zone_or_utc};

/// An object in the store, as the runner's `artefact` line has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Artefact {
    /// Key below the destination's root.
    pub(crate) key: String,
    /// Name of its run.
    pub(crate) run: String,
    /// Start of its run, RFC 3339.
    pub(crate) started_at: String,
    /// Bytes in the store.
    pub(crate) stored_bytes: i64,
    /// Rows in the dump.
    pub(crate) rows: i64,
    /// `age`, or empty.
    pub(crate) encryption: String,
}

/// The artefacts of a log of the action List.
pub(crate) fn artefacts<'a>(log: impl Iterator<Item = &'a str>) -> Vec<Artefact> {
    log.filter_map(|line| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        (value["event"] == "artefact")
            .then(|| serde_json::from_value(value).ok())
            .flatten()
    })
    .collect()
}

/// How store and status agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum State {
    /// In both.
    Stored,
    /// In the store; status has no such run, because its history is shorter or of another cluster.
    NoRun,
    /// A run of status stored it; it is not in the store any more.
    Missing,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Stored => "Stored",
            Self::NoRun => "NoRun",
            Self::Missing => "Missing",
        }
    }
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    /// Namespace of the object.
    pub(crate) namespace: String,
    /// `singular/name` of the object.
    pub(crate) object: String,
    /// Name of the run.
    pub(crate) run: String,
    /// How store and status agree.
    pub(crate) state: State,
    /// Key below the destination's root.
    pub(crate) key: String,
    /// Start of the run, RFC 3339.
    pub(crate) started_at: String,
    /// Bytes in the store, or that were stored.
    pub(crate) stored_bytes: Option<i64>,
    /// Rows in the dump.
    pub(crate) rows: Option<i64>,
    /// `age`, or empty.
    pub(crate) encryption: String,
    #[serde(skip)]
    zone: String,
}

/// Store and status of one object side by side, newest first.
pub(crate) fn lines(
    (namespace, object, zone): (&str, &str, &str),
    found: &[Artefact],
    runs: &[Run],
) -> Vec<Line> {
    let known: BTreeMap<&str, &Run> = runs.iter().map(|run| (run.name.as_str(), run)).collect();
    let line = |run: &str, key: &str, started_at: &str, state: State| Line {
        namespace: namespace.to_owned(),
        object: object.to_owned(),
        run: run.to_owned(),
        state,
        key: key.to_owned(),
        started_at: started_at.to_owned(),
        stored_bytes: None,
        rows: None,
        encryption: String::new(),
        zone: zone.to_owned(),
    };
    let mut lines: Vec<Line> = found
        .iter()
        .map(|a| Line {
            stored_bytes: Some(a.stored_bytes),
            rows: Some(a.rows),
            encryption: a.encryption.clone(),
            ..line(
                &a.run,
                &a.key,
                &a.started_at,
                if known.contains_key(a.run.as_str()) {
                    State::Stored
                } else {
                    State::NoRun
                },
            )
        })
        .collect();
    for run in runs.iter().filter(|r| r.result == RunResult::Succeeded) {
        for artefact in &run.artefacts {
            if !found.iter().any(|a| a.key == artefact.key) {
                let start = run.start_time.as_ref().map(crds::time::from_k8s);
                let start = start.map(crds::time::rfc3339).unwrap_or_default();
                lines.push(Line {
                    stored_bytes: Some(artefact.size),
                    ..line(&run.name, &artefact.key, &start, State::Missing)
                });
            }
        }
    }
    lines.sort_by(|a, b| (&b.started_at, &a.key).cmp(&(&a.started_at, &b.key)));
    lines
}

/// The table of the lines. `object` adds a column for the object, `namespace` one for its namespace.
pub(crate) fn table(
    lines: &[Line],
    namespace: bool,
    object: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Table {
    let mut header = vec![];
    if namespace {
        header.push("NAMESPACE");
    }
    header.push("RUN");
    if object {
        header.push("OBJECT");
    }
    header.extend([
        "STATE",
        "STARTED",
        "SIZE",
        "ROWS",
        "ENCRYPTED",
        "AGE",
        "KEY",
    ]);
    let mut table = Table::new(&header);
    for line in lines {
        let dash = || "-".to_owned();
        let started = crds::time::parse_rfc3339(&line.started_at);
        let mut cells = vec![];
        if namespace {
            cells.push(line.namespace.clone());
        }
        cells.push(if line.run.is_empty() {
            dash()
        } else {
            line.run.clone()
        });
        if object {
            cells.push(line.object.clone());
        }
        cells.extend([
            line.state.word().to_owned(),
            started.map_or_else(dash, |at| zone.show(at, zone_or_utc(&line.zone))),
            line.stored_bytes.map_or_else(dash, duration::bytes),
            line.rows.map_or_else(dash, |rows| rows.to_string()),
            if line.encryption.is_empty() {
                "no".to_owned()
            } else {
                line.encryption.clone()
            },
            started.map_or_else(|| "<unknown>".to_owned(), |at| duration::age(at, now)),
            line.key.clone(),
        ]);
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use crds::run::Trigger;

    fn run(name: &str, result: RunResult, keys: &[&str]) -> Run {
        let mut run = Run::new(name, Trigger::Schedule, result);
        run.artefacts = keys
            .iter()
            .map(|key| crds::run::Artefact {
                key: (*key).to_owned(),
                size: 7,
                ..Default::default()
            })
            .collect();
        run
    }

    #[test]
    fn store_and_status_side_by_side() {
        let log = [
            r#"{"event":"artefact","key":"a.sql","run":"shop-1","startedAt":"2026-01-01T02:00:00Z","storedBytes":10,"rows":3}"#,
            r#"{"event":"artefact","key":"b.sql","run":"shop-9","startedAt":"2025-01-01T02:00:00Z","storedBytes":20,"encryption":"age"}"#,
            r#"{"message":"the run is good"}"#,
            "not json",
        ];
        let found = artefacts(log.into_iter());
        assert_eq!(found.len(), 2);
        let runs = [
            run("shop-1", RunResult::Succeeded, &["a.sql"]),
            run("shop-2", RunResult::Succeeded, &["c.sql"]),
            run("shop-3", RunResult::Failed, &["d.sql"]),
        ];
        let lines = lines(("prod", "mysqlbackup/shop", "UTC"), &found, &runs);
        let states: Vec<_> = lines
            .iter()
            .map(|l| (l.run.as_str(), l.state, l.stored_bytes))
            .collect();
        assert_eq!(
            states,
            [
                ("shop-1", State::Stored, Some(10)),
                ("shop-9", State::NoRun, Some(20)),
                ("shop-2", State::Missing, Some(7)),
            ]
        );
    }
}
