//! Objects from a file, or from stdin.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::cluster::Object;
use crate::error::{Error, Result};
use crate::kind::{CREATABLE, Kind};

/// The text of a file; `-` is stdin.
///
/// # Errors
/// It can't be read, or is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String> {
    let named = |e: std::io::Error| Error::usage(format!("{}: {e}", path.display()));
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map_err(named)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(named)
}

/// The objects of a YAML or JSON file, Lists unfolded.
///
/// # Errors
/// The file can't be read, or holds something else.
pub(crate) fn objects(path: &Path) -> Result<Vec<Object>> {
    let failed = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", path.display()));
    let text = text(path)?;
    let mut found = vec![];
    for document in serde_yaml::Deserializer::from_str(&text) {
        let value = Value::deserialize(document).map_err(|e| failed(&e))?;
        let items = match (value["kind"].as_str(), value.get("items")) {
            (Some("List"), Some(items)) => items.as_array().cloned().unwrap_or_default(),
            _ if value.is_null() => vec![],
            _ => vec![value],
        };
        for item in items {
            let kind = kind_of(&item).map_err(|e| failed(&e))?;
            let object = serde_json::from_value(item).map_err(|e| failed(&e))?;
            found.push(Object { kind, object });
        }
    }
    if found.is_empty() {
        return Err(failed(&"there is no object in it"));
    }
    Ok(found)
}

fn kind_of(value: &Value) -> Result<&'static Kind, String> {
    let (api, name) = (
        value["apiVersion"].as_str().unwrap_or_default(),
        value["kind"].as_str().unwrap_or_default(),
    );
    let found = CREATABLE
        .into_iter()
        .find(|kind| kind.kind == name && api == format!("{}/{}", kind.group, kind.version));
    found.ok_or_else(|| {
        let known: Vec<String> = CREATABLE
            .iter()
            .map(|k| format!("{} ({}/{})", k.kind, k.group, k.version))
            .collect();
        format!(
            "{name:?} of {api:?} is not a backup object; these are: {}",
            known.join(", ")
        )
    })
}
