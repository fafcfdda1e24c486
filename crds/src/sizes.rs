//! Bounds of lists, maps and texts in the schemas of all kinds, by one rule: generous enough for any
//! manifest that people have, small enough that no field alone fills an object. What the operator keeps
//! is bounded besides, whatever was stored before.
//!
//! Status is not bounded here: the operator writes it, and bounds it itself.

use serde_json::{Value, json};

/// Characters of a text whose field says nothing else.
const TEXT: u64 = 4096;
/// Characters of a text that may be a script, a key or a document.
const DOCUMENT: u64 = 64 * 1024;
/// Characters of a quantity or a port.
const QUANTITY: u64 = 128;
/// Items of a list whose field says nothing else, and members of a map.
const ITEMS: u64 = 256;
/// Items of a list of names of databases or tables.
const NAMES: u64 = 10_000;

/// Fields that may hold a script, a key or a document.
const DOCUMENTS: [&str; 22] = [
    "after_script",
    "afterScript",
    "args",
    "before_script",
    "beforeScript",
    "command",
    "caBundle",
    "credentials",
    "extraArgs",
    "host_key",
    "hostKey",
    "message",
    "password",
    "passphrase",
    "private_key",
    "privateKey",
    "recipients",
    "script",
    "token",
    "uri",
    "value",
    "additionalOptions",
];

/// Lists of names of databases or tables.
const NAME_LISTS: [&str; 8] = [
    "databases",
    "tables",
    "exclude_tables",
    "excludeTables",
    "skip_tables",
    "skipTables",
    "collections",
    "exclude_collections",
];

/// Adds what bounds a schema of an object lacks.
pub(crate) fn add(schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        if !matches!(name.as_str(), "status" | "metadata" | "apiVersion" | "kind") {
            bound(name, property);
        }
    }
}

fn bound(name: &str, schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let is = |object: &serde_json::Map<String, Value>, type_: &str| {
        object.get("type").is_some_and(|t| t == type_)
    };
    let least = |object: &mut serde_json::Map<String, Value>, key: &str, most: u64| {
        object.entry(key).or_insert_with(|| json!(most));
    };
    if is(object, "string") && !object.contains_key("enum") {
        let most = if DOCUMENTS.contains(&name) {
            DOCUMENT
        } else {
            TEXT
        };
        least(object, "maxLength", most);
    }
    if object.contains_key("x-kubernetes-int-or-string") {
        least(object, "maxLength", QUANTITY);
    }
    if is(object, "array") {
        let most = if NAME_LISTS.contains(&name) {
            NAMES
        } else {
            ITEMS
        };
        least(object, "maxItems", most);
    }
    if object.contains_key("additionalProperties") {
        least(object, "maxProperties", ITEMS);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            // Values of a map are what annotations and labels are.
            let name = if inner_is_document(name) {
                "value"
            } else {
                name
            };
            bound(name, inner);
        }
    }
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            bound(name, property);
        }
    }
}

/// Maps whose values may be documents.
fn inner_is_document(name: &str) -> bool {
    matches!(name, "annotations" | "volumeAttributes" | "options")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every list, map and text of every kind that a user writes, found by walking the definitions.
    #[test]
    fn o4_nothing_a_user_writes_is_without_bounds() {
        fn walk(at: &str, schema: &Value, open: &mut Vec<String>) {
            let has = |key: &str| schema.get(key).is_some();
            let type_ = schema["type"].as_str().unwrap_or_default();
            let bounded = match type_ {
                "string" => has("enum") || has("maxLength"),
                "array" => has("maxItems"),
                // What no schema names is taken off, unless it is to be kept.
                "object" => {
                    let any =
                        has("additionalProperties") || has("x-kubernetes-preserve-unknown-fields");
                    !any || has("maxProperties")
                }
                "integer" | "boolean" | "number" => true,
                _ => has("x-kubernetes-int-or-string") && has("maxLength"),
            };
            if !bounded {
                open.push(at.to_owned());
            }
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                walk(&format!("{at}.{name}"), inner, open);
            }
            for inner in ["items", "additionalProperties"] {
                if schema[inner].is_object() {
                    walk(&format!("{at}[]"), &schema[inner], open);
                }
            }
        }
        let mut open = vec![];
        for (file, crd) in crate::generate::all() {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            for (name, inner) in schema["properties"].as_object().unwrap() {
                if !matches!(name.as_str(), "status" | "metadata" | "apiVersion" | "kind") {
                    walk(&format!("{file} {name}"), inner, &mut open);
                }
            }
        }
        assert!(open.is_empty(), "{open:#?}");
    }
}
