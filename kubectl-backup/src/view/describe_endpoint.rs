//! `describe database/NAME` and `storage/NAME`: its settings without secrets, whether it was reached,
//! who uses it.

use chrono::{DateTime, Utc};
use crds::secret;
use crds::storage::EndpointStatus;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::inventory::ReferencedBy;
use super::page::{Page, Probe};
use crate::cluster::Object;

/// Fields that hold a secret themselves.
const SECRETS: [&str; 9] = [
    "password",
    "passphrase",
    "token",
    "uri",
    "secret_access_key",
    "private_key",
    "credentials",
    "client_secret",
    "access_key_id",
];

/// The description.
pub(crate) fn describe(
    object: &Object,
    users: &ReferencedBy,
    events: &Probe<Vec<Event>>,
    now: DateTime<Utc>,
    color: bool,
) -> String {
    let mut page = Page::new(color);
    let kind = object.kind;
    page.field("Name", &object.name());
    page.field(
        "Kind",
        &format!("{} ({}/{})", kind.kind, kind.group, kind.version),
    );
    page.field("Namespace", &object.namespace());
    let spec = object.spec();
    page.field("Type", spec["type"].as_str().unwrap_or("<unset>"));
    let mut lines = vec![];
    for (name, value) in spec["config"].as_object().into_iter().flatten() {
        lines.push(setting(name, value));
    }
    if let Some(volume) = spec.get("volume") {
        lines.push(format!("volume: {volume}"));
    }
    if lines.is_empty() {
        lines.push("<none>".to_owned());
    }
    page.lines("Settings", &lines);
    page.field("Used by", &users.text(object, usize::MAX));
    let status = object
        .object
        .data
        .get("status")
        .cloned()
        .unwrap_or_default();
    let status: EndpointStatus = serde_json::from_value(status).unwrap_or_default();
    if status.conditions.is_empty() {
        page.field(
            "Reachable",
            "not tried yet: no run and no probe has used it",
        );
    }
    page.conditions(&status.conditions, now);
    page.events(events, now);
    page.finish()
}

/// One setting: a reference is told by its names, what is secret is masked.
fn setting(name: &str, value: &Value) -> String {
    if let (Some(secret), Some(key)) = (value["name"].as_str(), value["key"].as_str()) {
        return format!("{name}: <secret {secret}, key {key}>");
    }
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    match SECRETS.contains(&name) {
        true => format!("{name}: ***"),
        false => format!("{name}: {}", secret::mask(&text)),
    }
}
