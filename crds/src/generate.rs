//! Custom resource definitions as YAML-ready JSON, small enough for `kubectl apply`, and the pages of
//! docs that are made from the types.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::mysql_backup::MysqlBackup;
use crate::report::{Reason, exit};
use crate::restore::Restore;

/// Every kind of this product, as `(file name, definition)`.
pub fn all() -> Vec<(String, Value)> {
    [MysqlBackup::crd(), Restore::crd()]
        .into_iter()
        .chain(crate::gobackup::definition::all())
        .map(|crd| (file_name(&crd), trimmed(&crd)))
        .collect()
}

/// The page docs/fields.md: every field of every kind with its type and the text that `kubectl explain`
/// shows, as [`all`] has them.
pub fn fields() -> String {
    let mut page = String::from(
        "# Fields\n\nEvery field of every kind, with the text that `kubectl explain` shows. Made from the types in crds/src by `make manifests`; do not edit.\n`[]` is an item of a list. Fields of Kubernetes' own types are described by `kubectl explain pod.spec`.\n",
    );
    let mut seen: Vec<(String, String)> = vec![];
    for (_, crd) in all() {
        let (spec, version) = (&crd["spec"], &crd["spec"]["versions"][0]);
        let schema = &version["schema"]["openAPIV3Schema"];
        let title = format!(
            "{} ({}/{})",
            word(&spec["names"]["kind"]),
            word(&spec["group"]),
            word(&version["name"])
        );
        let _ = write!(page, "\n## {title}\n{}\n", word(&schema["description"]));
        let mut rows = String::new();
        table("", schema, &mut rows);
        match seen.iter().find(|(_, same)| *same == rows) {
            Some((other, _)) => {
                let _ = write!(page, "\nThe fields are those of {other}.\n");
            }
            None => {
                let _ = write!(page, "\n| field | type | text |\n|---|---|---|\n{rows}");
                seen.push((title, rows));
            }
        }
    }
    page
}

/// A row for each property with a text, and below it for those within.
fn table(path: &str, schema: &Value, rows: &mut String) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let path = path.trim_start_matches('.');
        if let Some(text) = property["description"].as_str() {
            let text = text.replace('\n', " ").replace('|', "\\|");
            let _ = writeln!(rows, "| `{path}` | {} | {text} |", type_of(property));
        }
        table(path, property, rows);
        table(&format!("{path}[]"), &property["items"], rows);
    }
}

/// A type as `kubectl explain` writes it.
fn type_of(schema: &Value) -> String {
    match word(&schema["type"]) {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => "map".to_owned(),
        "" => "integer or string".to_owned(),
        other => other.to_owned(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The page docs/reasons.md: every reason of a run of the runner.
pub fn reasons() -> String {
    let mut page = String::from(
        "# Reasons\n\nWhy a run of the runner ended as it did: `reason` in its report, in `status.runs` and in `kubectl backup runs`.\nA retry follows (`backoffLimit`) unless the settings are wrong. Made from crds/src/report/reason.rs by `make manifests`; do not edit.\n\n| reason | exit code | retry | meaning and remedy |\n|---|---|---|---|\n",
    );
    for reason in Reason::ALL {
        let codes: Vec<String> = reason.exit_codes().iter().map(i32::to_string).collect();
        let retry = match reason.exit_code() {
            exit::OK => "",
            _ if reason.retry() => "yes",
            _ => "no",
        };
        let _ = writeln!(
            page,
            "| {reason} | {} | {retry} | {} |",
            codes.join(", "),
            reason.meaning()
        );
    }
    page
}

fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// Fields of embedded core types: `kubectl explain pod.spec` describes what is below them.
const CORE_FIELDS: &[&str] = &[
    "active",
    "affinity",
    "backupEnvs",
    "conditions",
    "csi",
    "emptyDir",
    "envFrom",
    "ephemeral",
    "hostPath",
    "imagePullSecrets",
    "nfs",
    "persistentVolumeClaim",
    "podSecurityContext",
    "resources",
    "securityContext",
    "storageRef",
    "tolerations",
    "volumeMounts",
    "volumes",
];

/// The definition without the descriptions inside embedded core types: with them it is larger
/// than the annotation in which `kubectl apply` keeps a second copy may be.
fn trimmed(crd: &CustomResourceDefinition) -> Value {
    let mut value = serde_json::to_value(crd).unwrap_or_default();
    for version in value["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let schema = &mut version["schema"]["openAPIV3Schema"];
        trim(schema);
        crate::sizes::add(schema);
    }
    value
}

fn trim(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if CORE_FIELDS.contains(&name.as_str()) {
                let own = property.get("description").cloned();
                strip(property);
                if let (Some(own), Some(object)) = (own, property.as_object_mut()) {
                    object.insert("description".into(), own);
                }
            } else {
                trim(property);
            }
        }
    }
    if let Some(items) = schema.get_mut("items") {
        trim(items);
    }
}

/// Removes every description below `schema`, but no property that is named so.
fn strip(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if object.get("description").is_some_and(Value::is_string) {
        object.remove("description");
    }
    for (key, inner) in object.iter_mut() {
        match inner {
            Value::Object(properties) if key == "properties" => {
                properties.values_mut().for_each(strip)
            }
            Value::Object(_) if key != "default" => strip(inner),
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
}
