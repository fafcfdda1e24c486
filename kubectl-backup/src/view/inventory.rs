//! `list` of the kinds without a schedule (PURE): Restores, Databases, Storages, and who uses them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::restore::{RestoreSpec, RestoreStatus};
use crds::storage::EndpointStatus;
use crds::time::from_k8s;
use serde_json::Value;

use super::describe_restore;
use super::duration;
use super::page::or;
use super::table::Table;
use crate::cli::SortBy;
use crate::cluster::Object;
use crate::kind::{DATABASE, Kind, RESTORE, STORAGE};

/// Names of users that a cell shows.
const SHOWN: usize = 3;

/// Which objects use a Database or Storage, by its kind, namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReferencedBy {
    all: BTreeMap<(String, String, String), Vec<String>>,
    /// Not every kind that may use them could be read.
    pub(crate) partial: bool,
}

impl ReferencedBy {
    /// Those among these objects.
    pub(crate) fn of(objects: &[Object], partial: bool) -> Self {
        let mut all: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for object in objects {
            let user = object.kind.short_name(&object.name());
            for key in object.references().iter().flatten() {
                let key = (key.kind.to_owned(), object.namespace(), key.name.clone());
                all.entry(key).or_default().push(user.clone());
            }
        }
        Self { all, partial }
    }

    /// The users of an object, as `kind/name`.
    pub(crate) fn find(&self, object: &Object) -> &[String] {
        let key = (
            object.kind.kind.to_owned(),
            object.namespace(),
            object.name(),
        );
        self.all.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The users in a cell or line; `shown` of them by name.
    pub(crate) fn text(&self, object: &Object, shown: usize) -> String {
        let found = self.find(object);
        let mut text = found[..found.len().min(shown)].join(",");
        if found.len() > shown {
            text.push_str(&format!(" and {} more", found.len() - shown));
        }
        match (text.is_empty(), self.partial) {
            (true, true) => "<unknown>".to_owned(),
            (true, false) => "-".to_owned(),
            (false, _) => text,
        }
    }
}

/// What the table has beside its usual columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape<'a> {
    /// NAMESPACE first.
    pub(crate) namespace: bool,
    /// Everything.
    pub(crate) wide: bool,
    /// Labels that have a column each.
    pub(crate) labels: &'a [String],
    /// LABELS last.
    pub(crate) show_labels: bool,
}

/// The table of the objects of one kind.
pub(crate) fn table(
    kind: &Kind,
    objects: &[&Object],
    users: &ReferencedBy,
    shape: Shape<'_>,
    now: DateTime<Utc>,
) -> Table {
    let mut header = vec!["NAME"];
    let wide: &[&str] = match kind {
        k if *k == RESTORE => {
            header.extend(["FROM", "ARTEFACT", "TO", "STATUS", "REASON"]);
            &["ROWS", "DURATION"]
        }
        k if *k == STORAGE => {
            header.extend(["TYPE", "PLACE", "REACHABLE", "USED-BY"]);
            &["KEEP"]
        }
        _ => {
            header.extend(["TYPE", "HOST", "DATABASE", "REACHABLE", "USED-BY"]);
            &[]
        }
    };
    if shape.namespace {
        header.insert(0, "NAMESPACE");
    }
    if shape.wide {
        header.extend(wide);
    }
    header.push("AGE");
    let titles: Vec<String> = shape
        .labels
        .iter()
        .map(|key| super::list::title(key))
        .collect();
    header.extend(titles.iter().map(String::as_str));
    if shape.show_labels {
        header.push("LABELS");
    }
    let mut table = Table::new(&header).whole(shape.wide);
    for object in objects {
        table.push(cells(object, users, shape, now));
    }
    table
}

fn cells(
    object: &Object,
    users: &ReferencedBy,
    shape: Shape<'_>,
    now: DateTime<Utc>,
) -> Vec<String> {
    let mut cells = vec![];
    if shape.namespace {
        cells.push(object.namespace());
    }
    cells.push(object.kind.short_name(&object.name()));
    if *object.kind == RESTORE {
        restore(object, shape.wide, &mut cells);
    } else {
        endpoint(object, users, shape.wide, &mut cells);
    }
    let age = object.created().map(|at| duration::age(at, now));
    cells.push(age.unwrap_or_else(|| "<unknown>".to_owned()));
    let none = BTreeMap::new();
    let labels = object.object.metadata.labels.as_ref().unwrap_or(&none);
    for key in shape.labels {
        cells.push(or(labels.get(key).map_or("", String::as_str), "<none>"));
    }
    if shape.show_labels {
        let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        cells.push(or(&pairs.join(","), "<none>"));
    }
    cells
}

fn restore(object: &Object, wide: bool, cells: &mut Vec<String>) {
    let spec: RestoreSpec = serde_json::from_value(object.spec().clone()).unwrap_or_default();
    let status = object.restore_status();
    let (from, which) = describe_restore::source(&spec);
    let phase = phase(&status);
    cells.extend([
        from,
        which,
        describe_restore::target(&spec),
        phase.to_owned(),
        or(&status.reason, "-"),
    ]);
    if wide {
        let times = status
            .start_time
            .as_ref()
            .zip(status.completion_time.as_ref());
        let took = times.map(|(from, to)| {
            duration::human_millis((from_k8s(to) - from_k8s(from)).num_milliseconds())
        });
        cells.extend([
            status
                .rows
                .map_or_else(|| "-".to_owned(), |n| n.to_string()),
            took.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
}

/// The phase; one that no operator has seen is Pending.
pub(crate) fn phase(status: &RestoreStatus) -> &'static str {
    status
        .phase
        .map_or("Pending", crds::restore::RestorePhase::as_str)
}

fn endpoint(object: &Object, users: &ReferencedBy, wide: bool, cells: &mut Vec<String>) {
    let config = &object.spec()["config"];
    cells.push(or(&text(&object.spec()["type"]), "<unset>"));
    if *object.kind == DATABASE {
        cells.push(or(&host(config), "<unset>"));
        cells.push(match config["all_databases"].as_bool() {
            Some(true) => "<all>".to_owned(),
            _ => or(&text(&config["database"]), "-"),
        });
    } else {
        cells.push(or(&place(object.spec()), "<unset>"));
    }
    cells.push(reachable(object));
    cells.push(users.text(object, SHOWN));
    if wide && *object.kind == STORAGE {
        let keep = config["keep"].as_i64().filter(|n| *n > 0);
        cells.push(keep.map_or_else(|| "all".to_owned(), |n| n.to_string()));
    }
}

/// The word for whether it was reached; `-` where nothing has tried.
fn reachable(object: &Object) -> String {
    let status = object
        .object
        .data
        .get("status")
        .cloned()
        .unwrap_or_default();
    let status: EndpointStatus = serde_json::from_value(status).unwrap_or_default();
    let found = crds::condition::get(&status.conditions, "Reachable");
    found.map_or_else(|| "-".to_owned(), |condition| condition.status.clone())
}

/// Host and port of a Database, a URI without its password.
pub(crate) fn host(config: &Value) -> String {
    let ways = ["host", "socket", "endpoint", "uri"];
    let way = ways.into_iter().map(|key| text(&config[key]));
    let first = text(&config["endpoints"][0]);
    let found = way.chain([first]).find(|t| !t.is_empty());
    let host = crds::secret::mask(&found.unwrap_or_default());
    match config["port"].as_i64().filter(|p| *p != 0) {
        Some(port) if !host.is_empty() && !host.contains("://") => format!("{host}:{port}"),
        _ => host,
    }
}

/// Where a Storage is: its bucket, host or volume, and the path there.
pub(crate) fn place(spec: &Value) -> String {
    let config = &spec["config"];
    let claim = text(&spec["volume"]["persistentVolumeClaim"]["claimName"]);
    let volume = spec["volume"].as_object();
    let volume = volume.and_then(|v| v.keys().find(|k| *k != "path").cloned());
    let keys = ["bucket", "host", "root", "account"];
    let named = keys.into_iter().map(|key| text(&config[key]));
    let base = match (claim.is_empty(), volume) {
        (false, _) => format!("pvc/{claim}"),
        (true, Some(volume)) => volume,
        (true, None) => named
            .into_iter()
            .find(|t| !t.is_empty())
            .unwrap_or_default(),
    };
    let path = text(&config["path"]);
    let path = path.trim_matches('/');
    let whole = match (base.is_empty(), path.is_empty()) {
        (_, true) => base,
        (true, false) => format!("/{path}"),
        (false, false) => format!("{}/{path}", base.trim_end_matches('/')),
    };
    crds::secret::mask(&whole)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// Puts objects in order; those of one kind stay together.
pub(crate) fn sort(objects: &mut [Object], by: SortBy) {
    match by {
        SortBy::Age => objects.sort_by_key(|o| Reverse(o.created())),
        _ => objects.sort_by_key(|o| (o.name(), o.namespace())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn u12_a_storage_is_told_by_where_it_is() {
        for (spec, told) in [
            (json!({ "config": { "bucket": "b", "path": "/x/" } }), "b/x"),
            (
                json!({ "config": { "host": "nas", "path": "/srv/b" } }),
                "nas/srv/b",
            ),
            (
                json!({ "config": { "path": "a" }, "volume": { "persistentVolumeClaim": { "claimName": "c" } } }),
                "pvc/c/a",
            ),
            (
                json!({ "config": {}, "volume": { "nfs": {} , "path": "x" } }),
                "nfs",
            ),
            (
                json!({ "config": { "root": "https://u:S3cr3t@dav" } }),
                "https://u:******@dav",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(place(&spec), told, "{spec}");
        }
    }

    #[test]
    fn u12_a_database_is_told_by_its_host() {
        for (config, told) in [
            (json!({ "host": "db", "port": 3307 }), "db:3307"),
            (json!({ "endpoints": ["etcd:2379"] }), "etcd:2379"),
            (
                json!({ "uri": "mongodb://u:S3cr3t@m/x" }),
                "mongodb://u:******@m/x",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(host(&config), told, "{config}");
        }
    }
}
