//! Spans of time that stored binary logs cover, each with the runs a restore within it begins with.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::binlogs::Window;
use crds::run::Run;
use crds::time::from_k8s;
use crds::verdict::good_runs;
use serde_json::{Value, json};

use super::duration;
use super::table::Table;
use super::time::Zone;

/// A span of an object.
#[derive(Clone, Debug)]
pub(crate) struct Recoverable {
    /// Namespace of the object.
    pub(crate) namespace: String,
    /// `singular/name` of the object.
    pub(crate) object: String,
    /// The schedule's zone.
    pub(crate) zone: Tz,
    /// Its first and last moment.
    pub(crate) window: Window,
    /// Good runs within it that status lists, newest first.
    pub(crate) runs: Vec<String>,
}

/// The spans of an object, newest first.
pub(crate) fn recoverable(
    (namespace, object): (&str, &str),
    zone: Tz,
    status: &ScheduleStatus,
) -> Vec<Recoverable> {
    let windows = status.binlogs.iter().flat_map(|books| &books.windows);
    let moment = |run: &Run| {
        let at = run.snapshot_time.as_ref().or(run.start_time.as_ref());
        at.map(from_k8s)
    };
    let of = |window: &Window| {
        let span = from_k8s(&window.from)..=from_k8s(&window.until);
        let within = |run: &&Run| moment(run).is_some_and(|at| span.contains(&at));
        good_runs(status)
            .filter(within)
            .map(|run| run.name.clone())
            .collect()
    };
    windows
        .map(|window| Recoverable {
            namespace: namespace.to_owned(),
            object: object.to_owned(),
            zone,
            runs: of(window),
            window: window.clone(),
        })
        .collect()
}

/// The table. `object` adds a column for the object, `namespace` one for its namespace.
pub(crate) fn table(
    all: &[Recoverable],
    namespace: bool,
    object: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Table {
    let mut header = vec![];
    if namespace {
        header.push("NAMESPACE");
    }
    if object {
        header.push("OBJECT");
    }
    header.extend(["SINCE", "UNTIL", "AGO", "RUNS"]);
    let mut table = Table::new(&header);
    for one in all {
        let mut cells = vec![];
        if namespace {
            cells.push(one.namespace.clone());
        }
        if object {
            cells.push(one.object.clone());
        }
        let (from, until) = (from_k8s(&one.window.from), from_k8s(&one.window.until));
        cells.extend([
            zone.show(from, one.zone),
            zone.show(until, one.zone),
            duration::age(until, now),
            match one.runs.is_empty() {
                true => "-".to_owned(),
                false => one.runs.join(","),
            },
        ]);
        table.push(cells);
    }
    table
}

/// A span, for machines.
pub(crate) fn value(one: &Recoverable) -> Value {
    json!({
        "namespace": one.namespace,
        "object": one.object,
        "from": one.window.from,
        "until": one.window.until,
        "runs": one.runs,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn each_span_has_the_runs_a_restore_can_begin_with() {
        let run = |name: &str, result: &str, at: &str| json!({"name": name, "trigger": "Schedule", "result": result, "startTime": at, "completionTime": at});
        let status: ScheduleStatus = serde_json::from_value(json!({
            "binlogs": {"intervalSeconds": 300, "anchor": "2026-01-01T00:00:00Z", "accountedUntil": "2026-01-05T00:00:00Z", "windows": [
                {"from": "2026-01-03T00:00:00Z", "until": "2026-01-05T00:00:00Z"},
                {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"},
            ]},
            "runs": [
                run("e", "Succeeded", "2026-01-04T02:00:00Z"),
                run("d", "Failed", "2026-01-04T01:00:00Z"),
                run("c", "Succeeded", "2026-01-03T00:00:00Z"),
                run("b", "Succeeded", "2026-01-02T02:00:00Z"),
                run("a", "Succeeded", "2025-12-31T02:00:00Z"),
            ],
        }))
        .unwrap();
        let all = recoverable(("prod", "mysqlbackup/shop"), Tz::UTC, &status);
        let runs: Vec<&[String]> = all.iter().map(|one| one.runs.as_slice()).collect();
        // What was made within a gap, or before all, leads to no moment.
        assert_eq!(runs, [&["e".to_owned(), "c".to_owned()][..], &[]]);
        assert_eq!(
            value(&all[1]),
            json!({"namespace": "prod", "object": "mysqlbackup/shop", "from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "runs": []})
        );
    }
}
