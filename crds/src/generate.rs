//! Custom resource definitions as YAML-ready JSON, small enough for `kubectl apply`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::mysql_backup::MysqlBackup;
use crate::restore::Restore;

/// Every kind of this product, as `(file name, definition)`.
pub fn all() -> Vec<(String, Value)> {
    [MysqlBackup::crd(), Restore::crd()]
        .into_iter()
        .chain(crate::gobackup::definition::all())
        .map(|crd| (file_name(&crd), trimmed(&crd)))
        .collect()
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
