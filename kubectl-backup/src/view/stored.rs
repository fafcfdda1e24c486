//! `runs --stored` (PURE): what is in the store beside what status says should be.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use crds::run::{Run, RunResult};
use serde::{Deserialize, Serialize};

use super::duration;
use super::table::Table;
use super::time::{Zone, zone_or_utc};

/// What the log of a List says (docs/runner.md).
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
enum Said {
    /// An artefact, or what vouches for one.
    Artefact(Artefact),
    /// One that retention removed.
    PrunedBefore(Artefact),
    /// What retention removed is not known of all times.
    Forgotten(Forgotten),
    /// A storage whose artefacts are not known.
    Unreachable(Artefact),
}

/// What retention removed in this place before a moment is not known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Forgotten {
    storage: Option<String>,
    /// RFC 3339.
    before: String,
}

impl Forgotten {
    /// True if retention may have removed what this run stored in this place, and nobody would know. The newest good
    /// run, by slot or start, is never removed.
    fn may_be(&self, run: &Run, stored: &crds::run::Artefact, runs: &[Run]) -> bool {
        let moment = |run: &Run| run.slot.clone().or(run.start_time.clone());
        let newest = good(runs).filter_map(moment).max();
        let ended = run.completion_time.as_ref().map(crds::time::from_k8s);
        let before = crds::time::parse_rfc3339(&self.before);
        self.storage == stored.storage
            && moment(run) < newest
            && ended
                .zip(before)
                .is_some_and(|(ended, before)| ended < before)
    }
}

/// Runs whose artefacts are expected to be there.
fn good(runs: &[Run]) -> impl Iterator<Item = &Run> {
    let stored = |run: &&Run| run.result == RunResult::Succeeded && !run.artefacts.is_empty();
    runs.iter().filter(stored)
}

/// An object in the store, as the runner's lines have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Artefact {
    state: State,
    storage: Option<String>,
    /// Key below the destination's root.
    key: String,
    /// Name of its run.
    run: String,
    /// Start of its run, RFC 3339.
    started_at: String,
    /// Bytes in the store.
    stored_bytes: i64,
    /// Rows in the dump.
    rows: Option<i64>,
    /// `age`, `openssl`, or empty.
    encryption: String,
    /// Why it is not known.
    message: String,
}

/// What a log of the action List says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Store {
    artefacts: Vec<Artefact>,
    pruned: Vec<Artefact>,
    forgotten: Vec<Forgotten>,
    unreachable: Vec<Artefact>,
}

impl Store {
    /// Reads the log; other lines are passed over.
    pub(crate) fn of<'a>(log: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for said in log.filter_map(|line| serde_json::from_str(line).ok()) {
            match said {
                Said::Artefact(one) => found.artefacts.push(one),
                Said::PrunedBefore(one) => found.pruned.push(one),
                Said::Forgotten(one) => found.forgotten.push(one),
                Said::Unreachable(one) => found.unreachable.push(one),
            }
        }
        found
    }
}

/// What an artefact is, and how store and status agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// In the store, of a run of status.
    #[default]
    Stored,
    /// In the store; status has no such run, because its history is shorter or of another cluster.
    NoRun,
    /// In the store, of an object of this name that was deleted since.
    Former,
    /// In the store by gobackup's own list.
    Gobackup,
    /// In the store in the form of gobackup's archives; no record vouches for it.
    NoRecord,
    /// In the store with another length than what was stored.
    Damaged,
    /// Status or a manifest knows it; it is not in the store any more, and retention did not remove it.
    Missing,
    /// A run of status stored it; retention removed it.
    Pruned,
    /// A run of status stored it, it is not in the store any more, and whether retention removed it is not known:
    /// what the store remembers of that was lost.
    Gone,
    /// Not an artefact: a storage that could not be listed.
    Unreachable,
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
    /// Name of the storage, where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) storage: Option<String>,
    /// Key below the destination's root.
    pub(crate) key: String,
    /// Start of the run, RFC 3339.
    pub(crate) started_at: String,
    /// Bytes in the store, or that were stored.
    pub(crate) stored_bytes: Option<i64>,
    /// Rows in the dump.
    pub(crate) rows: Option<i64>,
    /// `age`, `openssl`, or empty.
    pub(crate) encryption: String,
    /// Why a storage could not be listed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    #[serde(skip)]
    zone: String,
}

/// Store and status of one object side by side, newest first; what could not be listed comes last.
pub(crate) fn lines(
    (namespace, object, zone): (&str, &str, &str),
    store: &Store,
    runs: &[Run],
) -> Vec<Line> {
    let line = |a: &Artefact, state: State| Line {
        namespace: namespace.to_owned(),
        object: object.to_owned(),
        run: a.run.clone(),
        state,
        storage: a.storage.clone(),
        key: a.key.clone(),
        started_at: a.started_at.clone(),
        stored_bytes: Some(a.stored_bytes).filter(|_| state != State::Unreachable),
        rows: a.rows,
        encryption: a.encryption.clone(),
        message: a.message.clone(),
        zone: zone.to_owned(),
    };
    let known: BTreeSet<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let mut lines: Vec<Line> = store
        .artefacts
        .iter()
        .map(|a| match a.state {
            State::Stored if !known.contains(a.run.as_str()) => line(a, State::NoRun),
            state => line(a, state),
        })
        .collect();
    for run in good(runs) {
        for stored in &run.artefacts {
            let is_it = |a: &&Artefact| a.key == stored.key && a.storage == stored.storage;
            let unknown = |a: &Artefact| a.storage.is_none() || a.storage == stored.storage;
            let listed = store.artefacts.iter().find(is_it);
            if listed.is_some() || store.unreachable.iter().any(unknown) {
                continue;
            }
            let state = match store.pruned.iter().find(is_it) {
                Some(_) => State::Pruned,
                None if store.forgotten.iter().any(|f| f.may_be(run, stored, runs)) => State::Gone,
                None => State::Missing,
            };
            let start = run.start_time.as_ref().map(crds::time::from_k8s);
            let gone = Artefact {
                storage: stored.storage.clone(),
                key: stored.key.clone(),
                run: run.name.clone(),
                started_at: start.map(crds::time::rfc3339).unwrap_or_default(),
                stored_bytes: stored.size,
                ..Artefact::default()
            };
            lines.push(line(&gone, state));
        }
    }
    lines.sort_by(|a, b| (&b.started_at, &a.key).cmp(&(&a.started_at, &b.key)));
    let unreachable = store.unreachable.iter();
    lines.extend(unreachable.map(|a| line(a, State::Unreachable)));
    lines
}

/// The table of the lines. `object` adds a column for the object, `namespace` one for its namespace; there is
/// one for the storage where there are several.
pub(crate) fn table(
    lines: &[Line],
    namespace: bool,
    object: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Table {
    let storages: BTreeSet<&Option<String>> = lines.iter().map(|l| &l.storage).collect();
    let storage = storages.len() > 1 || lines.iter().any(|l| l.state == State::Unreachable);
    let mut header = vec![];
    if namespace {
        header.push("NAMESPACE");
    }
    header.push("RUN");
    if object {
        header.push("OBJECT");
    }
    header.push("STATE");
    if storage {
        header.push("STORAGE");
    }
    header.extend(["STARTED", "SIZE", "ROWS", "ENCRYPTED", "AGE", "KEY"]);
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
        cells.push(format!("{:?}", line.state));
        if storage {
            cells.push(line.storage.clone().unwrap_or_else(dash));
        }
        cells.extend([
            started.map_or_else(dash, |at| zone.show(at, zone_or_utc(&line.zone))),
            line.stored_bytes.map_or_else(dash, duration::bytes),
            line.rows.map_or_else(dash, |rows| rows.to_string()),
            match (line.encryption.as_str(), line.state) {
                // Nothing says it of what is only in status.
                ("", State::Pruned | State::Gone | State::Missing | State::Unreachable) => dash(),
                ("", _) => "no".to_owned(),
                (encryption, _) => encryption.to_owned(),
            },
            started.map_or_else(dash, |at| duration::age(at, now)),
            if line.key.is_empty() {
                dash()
            } else {
                line.key.clone()
            },
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

    fn stored(storage: &str, key: &str) -> crds::run::Artefact {
        crds::run::Artefact {
            key: key.to_owned(),
            size: 7,
            storage: Some(storage.to_owned()),
            ..Default::default()
        }
    }

    fn states(lines: &[Line]) -> Vec<(&str, State, Option<i64>)> {
        let each = lines.iter();
        each.map(|l| (l.run.as_str(), l.state, l.stored_bytes))
            .collect()
    }

    #[test]
    fn store_and_status_side_by_side() {
        let log = [
            r#"{"event":"artefact","key":"a.sql","run":"shop-1","startedAt":"2026-01-01T02:00:00Z","storedBytes":10,"rows":3}"#,
            r#"{"event":"artefact","state":"Stored","key":"b.sql","run":"shop-9","startedAt":"2025-01-01T02:00:00Z","storedBytes":20,"encryption":"age"}"#,
            r#"{"event":"artefact","state":"Missing","key":"m.sql","run":"shop-8","startedAt":"2024-01-01T02:00:00Z","storedBytes":20}"#,
            r#"{"event":"prunedBefore","key":"p.sql","at":"2026-01-01T02:00:00Z"}"#,
            r#"{"event":"prunedBefore","key":"of-no-run.sql","at":"2026-01-01T02:00:00Z"}"#,
            r#"{"message":"the run is good"}"#,
            r#"{"event":"phase","phase":"Connecting"}"#,
            "not json",
        ];
        let runs = [
            run("shop-1", RunResult::Succeeded, &["a.sql"]),
            run("shop-2", RunResult::Succeeded, &["c.sql"]),
            run("shop-3", RunResult::Failed, &["d.sql"]),
            run("shop-4", RunResult::Succeeded, &["p.sql"]),
        ];
        let store = Store::of(log.into_iter());
        let lines = lines(("prod", "mysqlbackup/shop", "UTC"), &store, &runs);
        assert_eq!(
            states(&lines),
            [
                ("shop-1", State::Stored, Some(10)),
                ("shop-9", State::NoRun, Some(20)),
                ("shop-8", State::Missing, Some(20)),
                ("shop-2", State::Missing, Some(7)),
                ("shop-4", State::Pruned, Some(7)),
            ]
        );
    }

    #[test]
    fn what_may_have_been_pruned_before_the_store_remembers_is_not_called_missing() {
        let at = |text: &str| crds::time::parse_rfc3339(text).map(crds::time::to_k8s);
        let made = |name: &str, day: u32| {
            let mut run = run(name, RunResult::Succeeded, &[&format!("{name}.sql")]);
            run.start_time = at(&format!("2026-01-0{day}T02:00:00Z"));
            run.completion_time = at(&format!("2026-01-0{day}T02:05:00Z"));
            run
        };
        let runs = [
            made("new", 4),
            made("late", 3),
            made("old", 2),
            made("pruned", 1),
        ];
        let pruned = r#"{"event":"prunedBefore","key":"pruned.sql","at":"2026-01-02T02:00:00Z"}"#;
        let states = |forgotten: &str| {
            let store = Store::of([pruned, forgotten].into_iter());
            let lines = lines(("ns", "mysqlbackup/n", "UTC"), &store, &runs);
            let each = lines.iter().map(|l| (l.run.clone(), l.state));
            each.collect::<Vec<_>>()
        };
        let wanted = |late, old| {
            [
                ("new", State::Missing),
                ("late", late),
                ("old", old),
                ("pruned", State::Pruned),
            ]
            .map(|(run, state)| (run.to_owned(), state))
        };
        assert_eq!(states(""), wanted(State::Missing, State::Missing));
        let since = r#"{"event":"forgotten","before":"2026-01-03T02:00:00Z"}"#;
        assert_eq!(states(since), wanted(State::Missing, State::Gone));
        // Retention never takes the newest.
        let now = r#"{"event":"forgotten","before":"2026-01-05T02:00:00Z"}"#;
        assert_eq!(states(now), wanted(State::Gone, State::Gone));
        let elsewhere = r#"{"event":"forgotten","storage":"dav","before":"2026-01-05T02:00:00Z"}"#;
        assert_eq!(states(elsewhere), wanted(State::Missing, State::Missing));
    }

    #[test]
    fn one_storage_of_two_is_broken_or_has_lost_something() {
        let log = |more: &'static str| {
            let lines = [
                r#"{"event":"artefact","state":"Stored","storage":"disk","key":"a.tar.gz.enc","run":"n-1","startedAt":"2026-01-01T02:00:00Z","storedBytes":10,"encryption":"openssl"}"#,
                r#"{"event":"artefact","state":"Former","storage":"disk","key":"0.tar","run":"n-1","startedAt":"2025-01-01T02:00:00Z","storedBytes":9}"#,
                r#"{"event":"artefact","state":"Gobackup","storage":"disk","key":"1.tar","startedAt":"2024-01-01T02:00:00Z","storedBytes":8}"#,
                more,
            ];
            Store::of(lines.into_iter())
        };
        let mut runs = [run("n-1", RunResult::Succeeded, &[])];
        runs[0].artefacts = vec![
            stored("disk", "a.tar.gz.enc"),
            stored("dav", "a.tar.gz.enc"),
        ];
        let table = |more: &'static str| {
            let lines = lines(("ns", "backup/n", "UTC"), &log(more), &runs);
            let now = crds::time::parse_rfc3339("2026-01-01T03:00:00Z").unwrap();
            let table = super::table(&lines, false, false, Zone::Utc, now);
            let rows = table.rows.iter().map(|row| row.join(" "));
            [vec![table.header.join(" ")], rows.collect()].concat()
        };
        let away = r#"{"event":"unreachable","storage":"dav","reason":"PermissionDenied","message":"Storage dav: no"}"#;
        let head = "RUN STATE STORAGE STARTED SIZE ROWS ENCRYPTED AGE KEY";
        let on_disk = [
            "n-1 Stored disk 2026-01-01T02:00:00Z 10B - openssl 60m a.tar.gz.enc",
            "n-1 Former disk 2025-01-01T02:00:00Z 9B - no 365d 0.tar",
            "- Gobackup disk 2024-01-01T02:00:00Z 8B - no 2y1d 1.tar",
        ];
        let with = |line: &'static str| [&[head], &on_disk[..], &[line]].concat();
        assert_eq!(table(away), with("- Unreachable dav - - - - - -"));
        assert_eq!(table(""), with("n-1 Missing dav - 7B - - - a.tar.gz.enc"));
        let pruned = r#"{"event":"prunedBefore","storage":"dav","key":"a.tar.gz.enc"}"#;
        assert_eq!(
            table(pruned),
            with("n-1 Pruned dav - 7B - - - a.tar.gz.enc")
        );
        // Pruned there is not pruned here.
        let elsewhere = r#"{"event":"prunedBefore","storage":"disk","key":"a.tar.gz.enc"}"#;
        assert_eq!(
            table(elsewhere),
            with("n-1 Missing dav - 7B - - - a.tar.gz.enc")
        );
    }
}
