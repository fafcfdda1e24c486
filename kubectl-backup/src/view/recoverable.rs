//! Spans of time that stored binary logs cover, each with the runs a restore within it begins with.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use crds::ScheduleStatus;
use crds::binlogs::{Gap, Window};
use crds::restore::Replay;
use crds::run::Run;
use crds::secret;
use crds::time::{from_k8s, parse_rfc3339, rfc3339};
use crds::verdict::good_runs;
use serde_json::{Value, json};

use super::duration;
use super::table::Table;
use super::time::Zone;

/// A span of an object.
#[derive(Clone, Debug)]
pub(crate) struct Span {
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
) -> Vec<Span> {
    let windows = status.binlogs.iter().flat_map(|books| &books.windows);
    let of = |window: &Window| {
        let span = from_k8s(&window.from)..=from_k8s(&window.until);
        let within = |run: &&Run| moment(run).is_some_and(|at| span.contains(&at));
        good_runs(status)
            .filter(within)
            .map(|run| run.name.clone())
            .collect()
    };
    windows
        .map(|window| Span {
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
    all: &[Span],
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

/// What status knows of a replay, in a line: the run it begins with, and whether events may be missing on the way. What only the
/// store knows is left to `--check`.
pub(crate) fn outlook(status: &ScheduleStatus, replay: &Replay) -> String {
    const STORE: &str = "the store has not been asked: --check proves it, with segments and bytes";
    let Some(books) = &status.binlogs else {
        return format!("status knows of no binary logs; {STORE}");
    };
    let at = match (&replay.at, replay.latest) {
        (Some(text), _) => parse_rfc3339(text),
        (None, Some(true)) => books.windows.first().map(|w| from_k8s(&w.until)),
        _ => return format!("where a GTID lies only the store tells; {STORE}"),
    };
    let Some(at) = at else {
        return format!("no binary logs are stored yet by status; {STORE}");
    };
    let holds = |w: &&Window| from_k8s(&w.from) <= at && at <= from_k8s(&w.until);
    let shown = rfc3339(at);
    let Some(window) = books.windows.iter().find(holds) else {
        let of_gap = |gap: &&Gap| {
            gap.from.as_ref().is_none_or(|from| from_k8s(from) <= at)
                && gap.to.as_ref().is_none_or(|to| at <= from_k8s(to))
        };
        return match (books.gaps.iter().find(of_gap), books.windows.first()) {
            (Some(gap), _) => format!(
                "{shown} lies in a gap by status, {}: {}",
                gap.span(),
                secret::mask(&gap.message)
            ),
            (None, Some(newest)) if at > from_k8s(&newest.until) => format!(
                "{shown} lies beyond what is stored by status, which ends at {}; {STORE}",
                rfc3339(from_k8s(&newest.until))
            ),
            (None, _) => format!("status knows of no binary logs at {shown}; {STORE}"),
        };
    };
    let from = from_k8s(&window.from);
    let run = good_runs(status).find(|run| moment(run).is_some_and(|of| from <= of && of <= at));
    match run {
        Some(run) => format!(
            "by status from run {} and binary logs behind it up to {shown}, without a gap; {STORE}",
            run.name
        ),
        None => format!(
            "by status binary logs hold {shown}, and none of the runs it lists lies between {} and then; {STORE}",
            rfc3339(from)
        ),
    }
}

/// The moment that a run's dump shows.
fn moment(run: &Run) -> Option<DateTime<Utc>> {
    let at = run.snapshot_time.as_ref().or(run.start_time.as_ref());
    at.map(from_k8s)
}

/// A span, for machines.
pub(crate) fn value(one: &Span) -> Value {
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
    fn what_status_knows_of_a_replay() {
        let status: ScheduleStatus = serde_json::from_value(json!({
            "binlogs": {"intervalSeconds": 300, "anchor": "2026-01-01T00:00:00Z", "accountedUntil": "2026-01-05T00:00:00Z", "windows": [
                {"from": "2026-01-03T00:00:00Z", "until": "2026-01-05T00:00:00Z"},
                {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"},
            ], "gaps": [{"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z", "reason": "Purged", "message": "purged"}]},
            "runs": [{"name": "e", "trigger": "Schedule", "result": "Succeeded", "startTime": "2026-01-04T02:00:00Z", "completionTime": "2026-01-04T02:01:00Z"}],
        }))
        .unwrap();
        let of = |status: &ScheduleStatus, replay: serde_json::Value| {
            outlook(status, &serde_json::from_value(replay).unwrap())
        };
        for (replay, words) in [
            (
                json!({"at": "2026-01-04T03:00:00Z"}),
                "by status from run e and binary logs behind it up to 2026-01-04T03:00:00Z, without a gap",
            ),
            (
                json!({"latest": true}),
                "by status from run e and binary logs behind it up to 2026-01-05T00:00:00Z, without a gap",
            ),
            (
                json!({"at": "2026-01-04T01:00:00Z"}),
                "none of the runs it lists lies between 2026-01-03T00:00:00Z and then",
            ),
            (
                json!({"at": "2026-01-02T12:00:00Z"}),
                "lies in a gap by status, between 2026-01-02T00:00:00Z and 2026-01-03T00:00:00Z: purged",
            ),
            (
                json!({"at": "2026-01-05T00:00:01Z"}),
                "lies beyond what is stored by status, which ends at 2026-01-05T00:00:00Z",
            ),
            (
                json!({"at": "2025-12-01T00:00:00Z"}),
                "status knows of no binary logs at",
            ),
            (json!({"gtid": "0-1-5"}), "only the store tells"),
        ] {
            let found = of(&status, replay);
            assert!(found.contains(words), "{found}");
        }
        assert!(of(&ScheduleStatus::default(), json!({"latest": true})).contains("no binary logs"));
    }

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
