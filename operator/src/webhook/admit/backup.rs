//! The kinds of gobackup.io: what the old operator's schema took is never refused. What an object
//! lacks is a warning here and a condition later, in the same sentences.

use std::collections::BTreeMap;

use crds::backup::BackupBody;
use crds::database::DatabaseSpec;
use crds::gobackup::alone;
use crds::legacy::{BackupModelSpec, PostgreSqlSpec, S3Spec};
use crds::storage::StorageSpec;
use kube::core::DynamicObject;
use kube::core::admission::AdmissionResponse;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::requests;
use super::warnings::fitted;
use crate::backup::{Which, settings};

/// Allows `object`, with what is wrong with it.
pub(super) fn check(
    mut response: AdmissionResponse,
    kind: &str,
    object: &DynamicObject,
    old: Option<&DynamicObject>,
) -> AdmissionResponse {
    if object.metadata.deletion_timestamp.is_none() {
        let mut all = said(kind, object);
        all.extend(
            requests::too_long(object, old)
                .iter()
                .map(ToString::to_string),
        );
        response.warnings = fitted(&all);
    }
    response
}

fn said(kind: &str, object: &DynamicObject) -> Vec<String> {
    let name = name(object);
    let found = match kind {
        "Backup" => return backup(Which::Backup, object, name),
        "CronBackup" => return backup(Which::CronBackup, object, name),
        "Database" => with_spec(object, |spec: &DatabaseSpec| {
            alone::database(name, spec).said()
        }),
        "PostgreSQL" => with_spec(object, |spec: &PostgreSqlSpec| {
            alone::postgresql(name, spec).said()
        }),
        "Storage" => with_spec(object, |spec: &StorageSpec| {
            alone::storage(name, spec).said()
        }),
        "S3" => with_spec(object, |spec: &S3Spec| alone::s3(name, spec).said()),
        "BackupModel" => with_spec(object, |spec: &BackupModelSpec| {
            alone::model(name, spec).said()
        }),
        _ => Ok(vec![]),
    };
    found.unwrap_or_else(|fault| {
        vec![format!(
            "{kind} {name}: {fault}, so the whole spec counts as empty; `kubectl explain {}.spec` shows what it takes",
            kind.to_lowercase()
        )]
    })
}

/// Where the API server makes the name, its beginning.
fn name(object: &DynamicObject) -> &str {
    let meta = &object.metadata;
    let made = meta.generate_name.as_deref();
    meta.name.as_deref().or(made).unwrap_or_default()
}

/// Judges the spec; none is an empty one, as for the operator.
fn with_spec<T: DeserializeOwned>(
    object: &DynamicObject,
    judge: impl Fn(&T) -> Vec<String>,
) -> Result<Vec<String>, String> {
    let spec = object.data.get("spec").filter(|s| !s.is_null());
    let empty = json!({});
    serde_path_to_error::deserialize(spec.unwrap_or(&empty))
        .map(|spec| judge(&spec))
        .map_err(|fault| match fault.path().to_string().as_str() {
            "." => format!("spec: {}", fault.inner()),
            path => format!("spec.{path}: {}", fault.inner()),
        })
}

/// The fields stand at the document's root, below `model` or below `spec`.
fn backup(which: Which, object: &DynamicObject, name: &str) -> Vec<String> {
    let mut body = object.data.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    let body: BackupBody = match serde_json::from_value(body) {
        Ok(body) => body,
        Err(fault) => return vec![format!("the object does not fit its type: {fault}")],
    };
    let none = BTreeMap::new();
    let notes = object.metadata.annotations.as_ref().unwrap_or(&none);
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let problems = settings(which, &body, notes).1;
    let mut found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    found.extend(alone::backup(name, namespace, &body).said());
    found
}
