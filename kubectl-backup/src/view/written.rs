//! Objects as people write them, and how two of them differ.

use serde_json::Value;

use super::output::structured;
use crate::cli::StructuredOutput;
use crate::cluster::Object;

/// A unified diff of two objects as people write them; empty if they are equal.
pub(crate) fn difference(name: &str, before: Option<&Object>, after: &Object) -> String {
    let yaml = |object: &Object| structured(&as_written(object), StructuredOutput::Yaml);
    let (old, new) = (before.map(yaml).unwrap_or_default(), yaml(after));
    if old == new {
        return String::new();
    }
    similar::TextDiff::from_lines(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("live/{name}"), &format!("merged/{name}"))
        .to_string()
}

/// The object without what the server and the operator wrote.
pub(crate) fn as_written(object: &Object) -> Value {
    let mut value = object.to_value(false);
    if let Some(root) = value.as_object_mut() {
        root.remove("status");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for key in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "selfLink",
            "managedFields",
        ] {
            metadata.remove(key);
        }
        let notes = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if let Some(notes) = notes {
            notes.retain(|key, _| {
                !key.starts_with(crds::labels::PREFIX)
                    && key != "kubectl.kubernetes.io/last-applied-configuration"
            });
            if notes.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    value
}
