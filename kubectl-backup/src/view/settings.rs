//! What a spec says of source, store and pod, without secrets.

use crds::backup::{BackupBody, RunEngine};
use crds::gobackup::engine;
use crds::gobackup::fields::merge;
use crds::secret;
use serde_json::Value;

use super::page::{Page, or};
use crate::cluster::Object;

/// What the spec says of source, store and the rest, without secrets.
pub(crate) fn settings(page: &mut Page, object: &Object) {
    if object.kind.group == crds::group::GROUP {
        return archive(page, object);
    }
    let spec = object.spec();
    page.field("Database", &or(&source(spec), "<unset>"));
    page.field("Storage", &or(&destination(spec), "<unset>"));
    let envs: Vec<String> = spec["backupEnvs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(env)
        .collect();
    if !envs.is_empty() {
        page.lines("Environment", &envs);
    }
    if let Some(image) = spec["image"].as_str() {
        page.field("Image", image);
    }
}

/// What a Backup of any generation names.
fn archive(page: &mut Page, object: &Object) {
    let body = body(object);
    let merged = merge(&body);
    let databases = merged.databases.1.iter().filter_map(|d| d.name.clone());
    let storages = merged.storages.1.iter().filter_map(|s| {
        let name = s.name.clone()?;
        let keep = s.keep.filter(|keep| *keep > 0);
        Some(keep.map_or(name.clone(), |keep| format!("{name} (keep: {keep})")))
    });
    page.field(
        "Databases",
        &or(&Vec::from_iter(databases).join(", "), "<none>"),
    );
    page.field(
        "Storages",
        &or(&Vec::from_iter(storages).join(", "), "<none>"),
    );
    if let Some(model) = &merged.model {
        page.field("BackupModel", model);
    }
    let compression = merged
        .compress
        .as_ref()
        .and_then(|(_, c)| c.type_.as_deref());
    let encryption = merged.encode.as_ref().map(|(_, e)| {
        let openssl = e.openssl.unwrap_or(false).then_some("openssl");
        e.type_
            .as_deref()
            .or(openssl)
            .unwrap_or_default()
            .to_owned()
    });
    let mut text = format!(
        "compression: {}",
        or(compression.unwrap_or_default(), "none")
    );
    text.push_str(&format!(
        "  encryption: {}",
        or(&encryption.unwrap_or_default(), "off")
    ));
    if let Some(size) = merged
        .split
        .as_ref()
        .and_then(|(_, s)| s.chunk_size.as_deref())
    {
        text.push_str(&format!("  parts: {size}"));
    }
    if merged.model.is_none() || merged.compress.is_some() || merged.encode.is_some() {
        page.field("Archive", &text);
    }
    if engine::asked(&body) == RunEngine::Gobackup {
        page.field("Engine", "gobackup");
    }
}

/// How what the object stores is encrypted: `age`, `openssl`, `none`; of a Backup that leaves it to its
/// BackupModel, that.
pub(crate) fn encryption(object: &Object) -> String {
    if object.kind.group != crds::group::GROUP {
        let age = object.spec()["encryption"]["age"].is_object();
        return if age { "age" } else { "none" }.to_owned();
    }
    let merged = merge(&body(object));
    let encode = merged.encode.map(|(_, e)| {
        let openssl = e.openssl.unwrap_or(false).then(|| "openssl".to_owned());
        or(&e.type_.or(openssl).unwrap_or_default(), "none")
    });
    match (encode, merged.model) {
        (Some(encode), _) => encode,
        (None, Some(model)) => format!("as BackupModel {model} says"),
        (None, None) => "none".to_owned(),
    }
}

/// What the object says of how long artefacts are kept; none if it says nothing.
pub(crate) fn retention(object: &Object) -> Option<String> {
    if object.kind.group != crds::group::GROUP {
        let spec = object.spec();
        let rules = super::retention::words(&spec["retention"]);
        let age = variable(spec, "EXPIREAT").unwrap_or_default();
        return [rules.as_str(), age]
            .into_iter()
            .find(|t| !t.is_empty())
            .map(str::to_owned);
    }
    let merged = merge(&body(object));
    let keeps = merged.storages.1.iter().filter_map(|storage| {
        let keep = storage.keep.filter(|keep| *keep > 0)?;
        Some(format!("last {keep} on {}", storage.name.as_deref()?))
    });
    let keeps = keeps.collect::<Vec<_>>().join(", ");
    (!keeps.is_empty()).then_some(keeps)
}

fn body(object: &Object) -> BackupBody {
    serde_json::from_value(object.object.data.clone()).unwrap_or_default()
}

/// One variable: a value that looks secret is masked, a reference is told.
fn env(env: &Value) -> String {
    let name = env["name"].as_str().unwrap_or_default();
    let from = &env["valueFrom"];
    for (field, word) in [("secretKeyRef", "secret"), ("configMapKeyRef", "configmap")] {
        if let Some(source) = from.get(field) {
            let text = |key: &str| source[key].as_str().unwrap_or_default();
            return format!("{name}: <{word} {}, key {}>", text("name"), text("key"));
        }
    }
    if from.is_object() {
        return format!("{name}: <set by the cluster>");
    }
    format!(
        "{name}: {}",
        secret::value(name, env["value"].as_str().unwrap_or_default())
    )
}

fn variable<'a>(spec: &'a Value, name: &str) -> Option<&'a str> {
    let envs = spec["backupEnvs"].as_array()?;
    envs.iter().rev().find(|e| e["name"] == name)?["value"].as_str()
}

fn source(spec: &Value) -> String {
    let source = &spec["source"];
    let host = source["host"].as_str().or_else(|| variable(spec, "HOST"));
    let port = source["port"].as_i64().map(|p| p.to_string());
    let port = port.or_else(|| variable(spec, "PORT").map(str::to_owned));
    let mut text = match (host, source["socket"].as_str()) {
        (Some(host), _) => format!("mysql://{host}:{}", port.as_deref().unwrap_or("3306")),
        (None, Some(socket)) => format!("socket {socket}"),
        (None, None) => return String::new(),
    };
    if let Some(databases) = source["databases"].as_array() {
        let names: Vec<&str> = databases.iter().filter_map(Value::as_str).collect();
        text.push_str(&format!("  databases: {}", names.join(", ")));
    }
    if let Some(secret) = source["credentialsSecretRef"]["name"].as_str() {
        text.push_str(&format!("  secret: {secret}"));
    }
    if let Some(engine) = source["engine"].as_str() {
        text.push_str(&format!("  engine: {engine}"));
    }
    if source["accounts"] == true {
        text.push_str("  with accounts");
    }
    if let Some(sessions) = source["sessions"].as_i64() {
        text.push_str(&format!("  sessions: {sessions}"));
    }
    text
}

fn destination(spec: &Value) -> String {
    let to = &spec["destination"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut shown = if let Some(s3) = to.get("s3") {
        let prefix = text(&s3["prefix"]);
        format!("s3://{}/{prefix}", text(&s3["bucket"]))
    } else if let Some(volume) = to.get("volume") {
        let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
        let kind = volume
            .as_object()
            .and_then(|v| v.keys().find(|k| *k != "path"));
        let what = if claim.is_empty() {
            kind.cloned().unwrap_or_default()
        } else {
            format!("pvc/{claim}")
        };
        format!("{what}  path: {}", or(&text(&volume["path"]), "/"))
    } else if let Some(storage) = to["storageRef"]["name"].as_str() {
        format!("storage/{storage}")
    } else {
        match variable(spec, "SQLPATH") {
            Some(path) => path.to_owned(),
            None => return String::new(),
        }
    };
    let encrypted = if spec["encryption"].is_object() {
        "on"
    } else {
        "off"
    };
    shown.push_str(&format!("  encryption: {encrypted}"));
    if spec["retention"].is_object() {
        let rules = super::retention::words(&spec["retention"]);
        shown.push_str(&format!("  retention: {rules}"));
    } else if let Some(age) = variable(spec, "EXPIREAT") {
        shown.push_str(&format!("  retention: {age}"));
    }
    shown
}
