//! Defaults, and the stamps that only the moment of the write can give.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use crds::labels::{
    REQUEST_PREFIX, RESUME_AT, SCHEDULE_SINCE, SUSPEND_REASON, SUSPENDED_BY, SUSPENDED_SINCE,
};
use crds::request::MAX_VALUE;
use crds::time::rfc3339;
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// Longest name of a caller that is kept.
const MAX_BY: usize = 256;

type Annotations = BTreeMap<String, String>;

/// JSON patch operations that fill in `object`, written by `by` over `old` at `now`.
pub(super) fn patch(
    object: &DynamicObject,
    old: Option<&DynamicObject>,
    by: &str,
    now: DateTime<Utc>,
) -> Vec<Value> {
    let mut operations = spec(object);
    let before = object.metadata.annotations.clone().unwrap_or_default();
    let mut after = before.clone();
    let by: String = by.chars().take(MAX_BY).collect();
    suspension(object, old, &by, now, &mut after);
    schedule(object, old, now, &mut after);
    requests(old, &by, &mut after);
    annotations(object, &before, &after, &mut operations);
    operations
}

/// JSON patch operations that sign the requests of `object`, written by `by` over `old`; all else
/// stays as it was written.
pub(super) fn signed(object: &DynamicObject, old: Option<&DynamicObject>, by: &str) -> Vec<Value> {
    let before = object.metadata.annotations.clone().unwrap_or_default();
    let mut after = before.clone();
    let by: String = by.chars().take(MAX_BY).collect();
    requests(old, &by, &mut after);
    let mut operations = vec![];
    annotations(object, &before, &after, &mut operations);
    operations
}

/// Fields that are absent, or null.
fn spec(object: &DynamicObject) -> Vec<Value> {
    let Some(spec) = object.data.get("spec").and_then(Value::as_object) else {
        return vec![];
    };
    let defaults = [
        ("concurrencyPolicy", json!("Allow")),
        ("suspend", json!(false)),
        ("successfulJobsHistoryLimit", json!(3)),
        ("failedJobsHistoryLimit", json!(1)),
        ("restartPolicy", json!("Never")),
    ];
    defaults
        .into_iter()
        .filter(|(field, _)| spec.get(*field).is_none_or(Value::is_null))
        .map(
            |(field, value)| json!({"op": "add", "path": format!("/spec/{field}"), "value": value}),
        )
        .collect()
}

fn suspended(object: &DynamicObject) -> bool {
    object.data.pointer("/spec/suspend") == Some(&Value::Bool(true))
}

/// When and by whom the object was suspended; what is said of a suspension goes with it.
fn suspension(
    object: &DynamicObject,
    old: Option<&DynamicObject>,
    by: &str,
    now: DateTime<Utc>,
    annotations: &mut Annotations,
) {
    let was = old.is_some_and(suspended);
    if !suspended(object) {
        annotations.remove(SUSPENDED_SINCE);
        if was {
            for key in [SUSPENDED_BY, SUSPEND_REASON, RESUME_AT] {
                annotations.remove(key);
            }
        }
        return;
    }
    if !was {
        annotations.insert(SUSPENDED_SINCE.to_owned(), rfc3339(now));
        set(annotations, SUSPENDED_BY, by);
    } else if annotations.get(SUSPENDED_BY) != annotation(old, SUSPENDED_BY) {
        // Nobody signs with another's name.
        set(annotations, SUSPENDED_BY, by);
    }
}

/// When the schedule or its zone became what it is. A new object's age says that already.
fn schedule(
    object: &DynamicObject,
    old: Option<&DynamicObject>,
    now: DateTime<Utc>,
    annotations: &mut Annotations,
) {
    let Some(old) = old else {
        annotations.remove(SCHEDULE_SINCE);
        return;
    };
    if effective(object) != effective(old) {
        annotations.insert(SCHEDULE_SINCE.to_owned(), rfc3339(now));
    }
}

/// Schedule and zone; no zone is UTC.
fn effective(object: &DynamicObject) -> (&str, &str) {
    let text = |path| object.data.pointer(path).and_then(Value::as_str);
    (
        text("/spec/schedule").unwrap_or_default(),
        text("/spec/timeZone").unwrap_or("UTC"),
    )
}

/// Signs new and changed requests with the caller's name, so that nobody asks in another's.
fn requests(old: Option<&DynamicObject>, by: &str, annotations: &mut Annotations) {
    for (key, value) in annotations.iter_mut() {
        let known = annotation(old, key) == Some(&*value);
        if !key.starts_with(REQUEST_PREFIX) || known || value.len() > MAX_VALUE {
            continue;
        }
        // What is no request is refused by the operator, with the reason.
        if let Ok(Value::Object(mut request)) = serde_json::from_str(value) {
            request.insert("by".to_owned(), json!(by));
            *value = Value::Object(request).to_string();
        }
    }
}

fn annotation<'a>(object: Option<&'a DynamicObject>, key: &str) -> Option<&'a String> {
    object?.metadata.annotations.as_ref()?.get(key)
}

fn set(annotations: &mut Annotations, key: &str, value: &str) {
    if value.is_empty() {
        annotations.remove(key);
    } else {
        annotations.insert(key.to_owned(), value.to_owned());
    }
}

fn annotations(
    object: &DynamicObject,
    before: &Annotations,
    after: &Annotations,
    operations: &mut Vec<Value>,
) {
    if before == after {
        return;
    }
    if object.metadata.annotations.is_none() {
        let path = "/metadata/annotations";
        operations.push(json!({"op": "add", "path": path, "value": after}));
        return;
    }
    let path = |key: &str| {
        let key = key.replace('~', "~0").replace('/', "~1");
        format!("/metadata/annotations/{key}")
    };
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        operations.push(json!({"op": "remove", "path": path(key)}));
    }
    for (key, value) in after.iter().filter(|(k, v)| before.get(*k) != Some(*v)) {
        operations.push(json!({"op": "add", "path": path(key), "value": value}));
    }
}
