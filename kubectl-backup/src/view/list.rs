//! `list`: one line an object, from the cells of the server's printer columns.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::schedule::Schedule;
use crds::verdict::{Glance, Reason, State, glance};
use serde_json::Value;

use super::duration;
use super::table::Table;
use crate::cli::SortBy;
use crate::cluster::{Change, Object, ServerTable};
use crate::kind::Kind;

/// What a list shows of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// The context it was read from, if there are several.
    pub(crate) context: String,
    /// Its namespace, if rows carry it.
    pub(crate) namespace: String,
    /// `singular/name`.
    pub(crate) name: String,
    /// The schedule's text.
    pub(crate) schedule: String,
    /// The effective zone.
    pub(crate) zone: String,
    /// Active, Overdue, Suspended, Running, Pending, Invalid, Blocked, Done.
    pub(crate) status: &'static str,
    /// How it is, and why.
    pub(crate) verdict: (State, Reason),
    /// Start of the newest run.
    pub(crate) last_run: Option<DateTime<Utc>>,
    /// Age of the newest slot's run, as the server worked it out.
    pub(crate) last_schedule: String,
    /// Result of the newest run.
    pub(crate) result: String,
    /// The next slot.
    pub(crate) next: Option<DateTime<Utc>>,
    /// Age of the object, as the server worked it out.
    pub(crate) age: String,
    /// Stored size of the newest good run.
    pub(crate) size: String,
    /// End of the newest run.
    pub(crate) last_end: Option<DateTime<Utc>>,
    /// What is kept, in words.
    pub(crate) keep: String,
    /// Where artefacts go.
    pub(crate) storage: String,
    /// Age of the newest good run.
    pub(crate) last_success: String,
    /// Failed runs since the newest good one.
    pub(crate) failures: String,
    /// When it was suspended.
    pub(crate) suspended_since: Option<DateTime<Utc>>,
    /// The moment up to which binary logs are stored.
    pub(crate) recoverable: Option<DateTime<Utc>>,
    /// Reason of the Ready condition.
    pub(crate) reason: String,
    /// Labels, if rows carry them.
    pub(crate) labels: BTreeMap<String, String>,
    /// What became of the object, while it is watched.
    pub(crate) event: &'static str,
}

/// Where the columns of a table are, by title in small letters.
struct Columns<'a> {
    table: &'a ServerTable,
    places: BTreeMap<String, usize>,
}

impl Columns<'_> {
    fn cell(&self, row: usize, title: &str) -> String {
        let place = self.places.get(title);
        match place.and_then(|i| self.table.rows[row].cells.get(*i)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) if text == "<none>" => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    fn time(&self, row: usize, title: &str) -> Option<DateTime<Utc>> {
        crds::time::parse_rfc3339(&self.cell(row, title))
    }
}

/// The rows of a kind's table.
pub(crate) fn rows(kind: &Kind, table: &ServerTable, now: DateTime<Utc>) -> Vec<Row> {
    let titles = table.column_definitions.iter().enumerate();
    let columns = Columns {
        table,
        places: titles
            .map(|(place, column)| (column.name.to_ascii_lowercase(), place))
            .collect(),
    };
    (0..table.rows.len())
        .map(|index| row(kind, &columns, index, now))
        .collect()
}

fn row(kind: &Kind, columns: &Columns<'_>, index: usize, now: DateTime<Utc>) -> Row {
    let cell = |title: &str| columns.cell(index, title);
    let object = columns.table.rows[index].object.as_ref();
    let running = cell("active").parse::<i64>().is_ok_and(|n| n > 0);
    let storage = [
        ("bucket", "s3://"),
        ("claim", "pvc/"),
        ("storage", "storage/"),
    ]
    .into_iter()
    .map(|(column, prefix)| (cell(column), prefix))
    .find(|(value, _)| !value.is_empty())
    .map(|(value, prefix)| format!("{prefix}{value}"));
    let mut row = Row {
        context: String::new(),
        namespace: object
            .map(|o| o.metadata.namespace.clone())
            .unwrap_or_default(),
        name: kind.short_name(&cell("name")),
        schedule: cell("schedule"),
        zone: cell("zone"),
        status: "",
        verdict: (State::Good, Reason::Ok),
        last_run: columns.time(index, "last-run"),
        last_schedule: cell("last-schedule"),
        result: if running {
            "Running".to_owned()
        } else {
            cell("last-result")
        },
        next: columns.time(index, "next-schedule"),
        age: cell("age"),
        size: cell("size"),
        last_end: columns.time(index, "last-end"),
        keep: kept(&cell("keep")),
        storage: storage.unwrap_or_default(),
        last_success: cell("last-success"),
        failures: cell("failures"),
        suspended_since: columns.time(index, "suspended-since"),
        recoverable: columns.time(index, "recoverable"),
        reason: cell("reason"),
        labels: object
            .map(|o| o.metadata.labels.clone())
            .unwrap_or_default(),
        event: Change::Added.word(),
    };
    row.verdict = judged(&row, cell("jitter").parse().unwrap_or(0), now);
    match row.verdict.1 {
        Reason::Pending if running => row.result = "Pending".to_owned(),
        // What a good run stored is not known to restore.
        Reason::Unverified if !running => row.result = "Unverified".to_owned(),
        _ => {}
    }
    row.status = status(&row, cell("suspend") == "true", running);
    row
}

/// The rules of retention in words; a definition of before has the newest ones' number alone.
fn kept(cell: &str) -> String {
    match serde_json::from_str(cell) {
        Ok(rules @ Value::Object(_)) => super::retention::words(&rules),
        Ok(Value::Number(last)) => format!("last {last}"),
        _ => String::new(),
    }
}

/// The operator's verdict, and that it does not act.
fn judged(row: &Row, jitter: i64, now: DateTime<Utc>) -> (State, Reason) {
    let past = row.next.is_some_and(|next| next < now);
    let zone = Some(row.zone.as_str()).filter(|zone| !zone.is_empty());
    let schedule = Schedule::parse(&row.schedule, zone).ok();
    let age = duration::parse(&row.age).unwrap_or(0);
    glance(
        &Glance {
            ready: &row.reason,
            created: crds::time::plus_seconds(now, age.saturating_neg()),
            next: row.next,
            schedule: schedule.as_ref().filter(|_| past),
            jitter,
        },
        now,
    )
}

/// The one word for an object's state: what keeps it from running comes first.
fn status(row: &Row, suspended: bool, running: bool) -> &'static str {
    let about = row.verdict.1;
    match super::verdict::word(about, &row.reason, suspended) {
        "Active" | "Overdue" if about == Reason::Pending && running => "Pending",
        // Without a word of the operator, and something ran: it is of an older one.
        "Pending" if !row.result.is_empty() => "Active",
        "Active" if running => "Running",
        "Active" if row.schedule.is_empty() && !row.result.is_empty() => "Done",
        word => word,
    }
}

/// The name without its kind.
fn bare(row: &Row) -> Option<&str> {
    row.name.split_once('/').map(|(_, name)| name)
}

/// Puts rows in order; those without a value come last.
pub(crate) fn sort(rows: &mut [Row], by: SortBy) {
    order(rows, by, |row| Key {
        name: (
            bare(row).unwrap_or_default().to_owned(),
            row.name.clone(),
            row.namespace.clone(),
        ),
        age: duration::parse(&row.age),
        last_run: row.last_run,
        last_end: row.last_end,
        next: row.next,
        size: duration::parse_bytes(&row.size),
    });
}

/// Puts objects in the same order.
pub(crate) fn sort_objects(objects: &mut [Object], by: SortBy, now: DateTime<Utc>) {
    let at = |time: &Option<_>| time.as_ref().map(crds::time::from_k8s);
    order(objects, by, |object| {
        let status = object.status();
        let newest = status.runs.first();
        Key {
            name: (
                object.name(),
                object.kind.short_name(&object.name()),
                object.namespace(),
            ),
            age: object.created().map(|at| (now - at).num_seconds()),
            last_run: newest.and_then(|run| at(&run.start_time)),
            last_end: newest.and_then(|run| at(&run.completion_time)),
            next: at(&status.next_schedule_time),
            size: status.last_size.as_deref().and_then(duration::parse_bytes),
        }
    });
}

/// What something is put in order by.
struct Key {
    name: (String, String, String),
    age: Option<i64>,
    last_run: Option<DateTime<Utc>>,
    last_end: Option<DateTime<Utc>>,
    next: Option<DateTime<Utc>>,
    size: Option<i128>,
}

fn order<T>(items: &mut [T], by: SortBy, key: impl Fn(&T) -> Key) {
    match by {
        SortBy::Name => items.sort_by_cached_key(|item| key(item).name),
        SortBy::Age => items.sort_by_cached_key(|item| key(item).age.unwrap_or(i64::MAX)),
        SortBy::LastRun => items.sort_by_cached_key(|item| Reverse(key(item).last_run)),
        SortBy::NextRun => {
            items.sort_by_cached_key(|item| key(item).next.unwrap_or(DateTime::<Utc>::MAX_UTC));
        }
        SortBy::Size => items.sort_by_cached_key(|item| Reverse(key(item).size)),
        SortBy::Duration => items.sort_by_cached_key(|item| {
            let key = key(item);
            Reverse(key.last_run.zip(key.last_end).map(|(from, to)| to - from))
        }),
    }
}

/// What the table has beside its usual columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    /// EVENT first.
    pub(crate) events: bool,
    /// CONTEXT first.
    pub(crate) context: bool,
    /// NAMESPACE first.
    pub(crate) namespace: bool,
    /// Everything.
    pub(crate) wide: bool,
    /// Lines follow the table.
    pub(crate) watched: bool,
    /// Labels that have a column each.
    pub(crate) labels: &'a [String],
    /// LABELS last.
    pub(crate) show_labels: bool,
}

/// The table of the rows.
pub(crate) fn table(rows: &[Row], shape: Shape<'_>, now: DateTime<Utc>) -> Table {
    let mut header = vec![];
    if shape.events {
        header.push("EVENT");
    }
    if shape.context {
        header.push("CONTEXT");
    }
    if shape.namespace {
        header.push("NAMESPACE");
    }
    header.extend([
        "NAME", "SCHEDULE", "ZONE", "STATUS", "LAST-RUN", "RESULT", "NEXT-RUN",
    ]);
    if shape.wide {
        header.extend([
            "SIZE",
            "DURATION",
            "KEEP",
            "STORAGE",
            "LAST-SUCCESS",
            "FAILURES",
            "SUSPENDED-SINCE",
            "RECOVERABLE",
            "REASON",
        ]);
    }
    header.push("AGE");
    let titles: Vec<String> = shape.labels.iter().map(|key| title(key)).collect();
    header.extend(titles.iter().map(String::as_str));
    if shape.show_labels {
        header.push("LABELS");
    }
    // Lines of a watch stand below each other: all have the same columns.
    let mut table = Table::new(&header).whole(shape.wide || shape.watched);
    for row in rows {
        table.push(cells(row, shape, now));
    }
    table
}

fn cells(row: &Row, shape: Shape<'_>, now: DateTime<Utc>) -> Vec<String> {
    let or = |text: &str, missing: &str| {
        if text.is_empty() {
            missing.to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut cells = vec![];
    if shape.events {
        cells.push(row.event.to_owned());
    }
    if shape.context {
        cells.push(row.context.clone());
    }
    if shape.namespace {
        cells.push(row.namespace.clone());
    }
    let last_run = match row.last_run {
        Some(at) => duration::age(at, now),
        None => or(&row.last_schedule, "<never>"),
    };
    let next = match row.next {
        Some(at) if row.verdict.1 == Reason::Overdue && at < now => "overdue".to_owned(),
        Some(at) if row.status != "Suspended" => duration::until(at, now),
        _ => "-".to_owned(),
    };
    cells.extend([
        row.name.clone(),
        or(&row.schedule, "<none>"),
        if row.schedule.is_empty() {
            "-".to_owned()
        } else {
            or(&row.zone, "<unset>")
        },
        row.status.to_owned(),
        last_run,
        or(&row.result, "<none>"),
        next,
    ]);
    if shape.wide {
        let took = row.last_run.zip(row.last_end);
        let took = took.map(|(from, to)| duration::human_millis((to - from).num_milliseconds()));
        let since = row.suspended_since.filter(|_| row.status == "Suspended");
        cells.extend([
            or(&row.size, "-"),
            took.unwrap_or_else(|| "-".to_owned()),
            or(&row.keep, "<unset>"),
            or(&row.storage, "<unset>"),
            or(&row.last_success, "<never>"),
            or(&row.failures, "0"),
            since.map_or_else(|| "-".to_owned(), |at| duration::age(at, now)),
            row.recoverable.map_or_else(
                || "-".to_owned(),
                |at| format!("{} ago", duration::age(at, now)),
            ),
            or(&row.reason, "<none>"),
        ]);
    }
    cells.push(or(&row.age, "<unknown>"));
    for key in shape.labels {
        let value = row.labels.get(key).map(String::as_str);
        cells.push(or(value.unwrap_or_default(), "<none>"));
    }
    if shape.show_labels {
        let pairs: Vec<String> = row.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        cells.push(or(&pairs.join(","), "<none>"));
    }
    cells
}

/// The title of a label's column, as kubectl makes it: what stands behind the prefix.
pub(super) fn title(key: &str) -> String {
    let (_, name) = key.rsplit_once('/').unwrap_or(("", key));
    name.to_uppercase()
}
