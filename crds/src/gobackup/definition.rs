//! Custom resource definitions of the kinds of gobackup.io.
//!
//! The derive of kube knows `spec` and `status` alone; `Backup` and `CronBackup` have fields at
//! the document's root, so their definitions are put together here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use serde_json::{Value, json};

use crate::backup::BackupBody;
use crate::database::Database;
use crate::group::{DATABASE_GROUP, GROUP, STORAGE_GROUP, VERSION};
use crate::legacy::{BackupModel, PostgreSql, S3};
use crate::storage::Storage;

/// Every kind.
pub fn all() -> Vec<CustomResourceDefinition> {
    [
        rooted(
            "Backup",
            "backups",
            "backup",
            "Backup dumps databases into one archive and keeps it on storages.",
        ),
        rooted(
            "CronBackup",
            "cronbackups",
            "cronbackup",
            "CronBackup is a Backup with a schedule, as it was written in 2024.",
        ),
        serde_json::to_value(Database::crd()).unwrap_or_default(),
        serde_json::to_value(Storage::crd()).unwrap_or_default(),
        serde_json::to_value(BackupModel::crd()).unwrap_or_default(),
        serde_json::to_value(PostgreSql::crd()).unwrap_or_default(),
        in_group(&PostgreSql::crd(), DATABASE_GROUP),
        serde_json::to_value(S3::crd()).unwrap_or_default(),
        in_group(&S3::crd(), STORAGE_GROUP),
    ]
    .into_iter()
    .map(|mut crd| {
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        lenient(schema);
        // The original took objects without a spec; what they lack becomes a condition.
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("required");
        }
        crd
    })
    .filter_map(|crd| serde_json::from_value(crd).ok())
    .collect()
}

/// The same kind in another group; without short names, which would only be ambiguous.
fn in_group(crd: &CustomResourceDefinition, group: &str) -> Value {
    let mut value = serde_json::to_value(crd).unwrap_or_default();
    value["spec"]["names"]["shortNames"] = json!([]);
    value["metadata"]["name"] = json!(format!("{}.{group}", crd.spec.names.plural));
    value["spec"]["group"] = json!(group);
    value
}

fn rooted(kind: &str, plural: &str, short: &str, doc: &str) -> Value {
    let mut schema = schema_of::<BackupBody>();
    schema["description"] = json!(doc);
    // A kind that nobody writes anew needs no pod options, which are four fifths of the schema.
    if kind == "CronBackup"
        && let Some(spec) = schema["properties"]["spec"]["properties"].as_object_mut()
    {
        spec.remove("job");
    }
    json!({
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural, "singular": short, "shortNames": [short], "categories": []},
            "scope": "Namespaced",
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
            }],
        },
    })
}

/// The columns of MysqlBackup; the schedule comes from status, because a spec may hold it in one
/// of several places.
fn columns() -> Value {
    json!([
        {"name": "Schedule", "type": "string", "jsonPath": ".status.schedule.text"},
        {"name": "Zone", "type": "string", "jsonPath": ".status.schedule.timeZone"},
        {"name": "Suspend", "type": "boolean", "jsonPath": ".spec.schedule.suspend"},
        {"name": "Active", "type": "integer", "jsonPath": ".status.activeCount"},
        {"name": "Last-Schedule", "type": "date", "jsonPath": ".status.lastScheduleTime"},
        {"name": "Last-Result", "type": "string", "jsonPath": ".status.lastResult"},
        {"name": "Last-Success", "type": "date", "jsonPath": ".status.lastSuccessfulTime"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Next-Schedule", "type": "string", "priority": 1, "jsonPath": ".status.nextScheduleTime"},
        {"name": "Jitter", "type": "integer", "priority": 1, "jsonPath": ".spec.schedule.jitterSeconds"},
        {"name": "Size", "type": "string", "priority": 1, "jsonPath": ".status.lastSize"},
        {"name": "Failures", "type": "integer", "priority": 1, "jsonPath": ".status.consecutiveFailures"},
        {"name": "Resolved", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type=='ReferencesResolved')].status"},
        {"name": "Ready", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "Reason", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type=='Ready')].reason"},
        {"name": "Last-Run", "type": "string", "priority": 1, "jsonPath": ".status.runs[0].startTime"},
        {"name": "Last-End", "type": "string", "priority": 1, "jsonPath": ".status.runs[0].completionTime"},
        {"name": "Suspended-Since", "type": "string", "priority": 1, "jsonPath": ".status.suspendedSince"},
    ])
}

/// The schema as kube's derive makes it.
fn schema_of<T: JsonSchema>() -> Value {
    let schema = SchemaSettings::openapi3()
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator()
        .into_root_schema_for::<T>();
    let mut value = serde_json::to_value(schema).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.remove("title");
    }
    value
}

/// Takes what the original's schema took: integers of any size (one out of range becomes a
/// condition, not a refusal), no defaults, no required field but those it required.
fn lenient(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if object.get("type").is_some_and(|t| t == "integer") {
        object.remove("format");
    }
    object.remove("default");
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(lenient);
        let has = |names: [&str; 2]| names.iter().all(|n| properties.contains_key(*n));
        let secret_key = has(["key", "optional"]);
        if has(["type", "config"]) {
            object.insert("required".into(), json!(["config", "type"]));
        } else if secret_key {
            object["properties"]["name"]["default"] = json!("");
            object.insert("required".into(), json!(["key"]));
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            lenient(inner);
        }
    }
}
