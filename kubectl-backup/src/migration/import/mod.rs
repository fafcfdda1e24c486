//! `import` (PURE): a gobackup.yml as Secrets, Databases, Storages and Backups.

mod expand;
mod schedule;

pub(crate) mod apply;
pub(crate) mod variables;

use std::collections::BTreeSet;

use crds::database::DatabaseConfig;
use crds::storage::StorageConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use expand::{Seen, expand};

/// Settings that are secret: they go into a Secret, and a `…_ref` names it.
const SECRETS: [&str; 9] = [
    "password",
    "token",
    "uri",
    "access_key_id",
    "secret_access_key",
    "private_key",
    "passphrase",
    "credentials",
    "client_secret",
];
/// Settings under another name.
const RENAMED: [(&str, &str); 2] = [
    ("access_key_secret", "secret_access_key"),
    ("authdb", "auth_db"),
];
/// Types the operator serves.
const DATABASES: [&str; 9] = [
    "postgresql",
    "mysql",
    "mariadb",
    "mongodb",
    "redis",
    "mssql",
    "influxdb",
    "influxdb2",
    "etcd",
];
const STORAGES: [&str; 20] = [
    "local", "ftp", "sftp", "scp", "webdav", "s3", "oss", "gcs", "azure", "r2", "spaces", "b2",
    "cos", "us3", "kodo", "bos", "minio", "obs", "tos", "upyun",
];
/// Longest name of a Backup: its Jobs' names are longer.
const LONGEST: usize = 52;

/// What came out of a file.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// Secrets with their values: never printed unless asked for.
    pub(crate) secrets: Vec<Value>,
    /// Databases, Storages and Backups.
    pub(crate) objects: Vec<Value>,
    /// What could not be mapped, each with its place in the file.
    pub(crate) notes: Vec<String>,
}

/// What the caller wants.
pub(crate) struct ImportOptions<'a> {
    /// Models to import; all if empty.
    pub(crate) models: &'a [String],
    /// Volume claim of storages of type local.
    pub(crate) claim: Option<&'a str>,
    /// Values of variables.
    pub(crate) variables: &'a dyn Fn(&str) -> Option<String>,
}

/// Translates a file.
///
/// # Errors
/// It is no gobackup.yml, a variable has no value, or a model was not found.
pub(crate) fn import(text: &str, wishes: &ImportOptions<'_>) -> Result<Imported> {
    let file: Value =
        serde_yaml::from_str(text).map_err(|e| Error::usage(format!("not YAML: {e}")))?;
    let mut seen = Seen::default();
    let file = expanded(&file, wishes.variables, &mut seen);
    if !seen.unset.is_empty() {
        let names: Vec<String> = seen.unset.into_iter().collect();
        return Err(Error::usage(format!(
            "the file uses variables without a value: {}",
            names.join(", ")
        ))
        .hint("export them, or name a file with them: --env-file FILE"));
    }
    let Some(models) = file["models"].as_object() else {
        return Err(Error::usage(
            "the file has no models: it is not a gobackup.yml",
        ));
    };
    let mut run = Run {
        out: Imported::default(),
        taken: BTreeSet::new(),
        claim: wishes.claim,
    };
    if seen.special {
        run.note(
            "file",
            "$$, $1 and the like are empty to gobackup and here; a `$` in a password has no escape there",
        );
    }
    for key in ["workdir", "web"] {
        if !file[key].is_null() {
            run.note(key, "has no counterpart");
        }
    }
    for name in wishes.models {
        if !models.contains_key(name) {
            let all: Vec<&str> = models.keys().map(String::as_str).collect();
            return Err(Error::usage(format!(
                "no model {name:?}; the models are {}",
                all.join(", ")
            )));
        }
    }
    for (name, model) in models {
        if wishes.models.is_empty() || wishes.models.contains(name) {
            run.model(name, model);
        }
    }
    Ok(run.out)
}

fn expanded(value: &Value, variables: &dyn Fn(&str) -> Option<String>, seen: &mut Seen) -> Value {
    match value {
        Value::String(text) => expand(text, variables, seen).into(),
        Value::Array(items) => items
            .iter()
            .map(|item| expanded(item, variables, seen))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, inner)| (key.clone(), expanded(inner, variables, seen)))
            .collect(),
        other => other.clone(),
    }
}

struct Run<'a> {
    out: Imported,
    taken: BTreeSet<String>,
    claim: Option<&'a str>,
}

/// The config that fits a type, what goes into its Secret, and keys that fit nowhere.
struct Config {
    plain: Map<String, Value>,
    secret: Map<String, Value>,
    unknown: Vec<String>,
}

impl Run<'_> {
    fn note(&mut self, place: &str, what: &str) {
        self.out.notes.push(format!("{place}: {what}"));
    }

    /// A name Kubernetes takes, that no other object of this import has.
    fn name(&mut self, kind: &str, text: &str) -> String {
        let plain: String = text
            .to_ascii_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(LONGEST)
            .collect();
        let plain = plain.trim_matches('-');
        let plain = if plain.is_empty() { "model" } else { plain };
        let mut name = plain.to_owned();
        let mut number = 2;
        while !self.taken.insert(format!("{kind}/{name}")) {
            name = format!("{}-{number}", &plain[..plain.len().min(LONGEST - 4)]);
            number += 1;
        }
        name
    }

    fn model(&mut self, key: &str, model: &Value) {
        let place = format!("models.{key}");
        let name = self.name("Backup", key);
        if name != key {
            self.note(&place, &format!("is called {name} here"));
        }
        let mut spec = json!({ "databaseRefs": [], "storageRefs": [] });
        if let Some(databases) = model["databases"].as_object() {
            for (inner, database) in databases {
                let place = format!("{place}.databases.{inner}");
                spec["databaseRefs"] = with(
                    &spec["databaseRefs"],
                    self.database(&place, &format!("{key}-{inner}"), database),
                );
            }
        }
        if let Some(storages) = model["storages"].as_object() {
            for (inner, storage) in storages {
                let place = format!("{place}.storages.{inner}");
                spec["storageRefs"] = with(
                    &spec["storageRefs"],
                    self.storage(&place, &format!("{key}-{inner}"), storage),
                );
            }
        }
        for (from, to) in [
            ("before_script", "beforeScript"),
            ("after_script", "afterScript"),
        ] {
            if let Some(text) = model[from].as_str() {
                spec[to] = text.into();
                self.note(
                    &format!("{place}.{from}"),
                    "runs in the pod, where the programs of the old host are not",
                );
            }
        }
        self.codec(&place, &name, model, &mut spec);
        if !model["schedule"].is_null() {
            match schedule::cron(&model["schedule"]) {
                Ok(cron) => {
                    spec["schedule"] = json!({ "cron": cron });
                    self.note(
                        &format!("{place}.schedule"),
                        "is read in UTC: gobackup used the zone of its host; set spec.schedule.timeZone",
                    );
                }
                Err(why) => self.note(&format!("{place}.schedule"), &why),
            }
        }
        self.notifiers(&place, &name, model, &mut spec);
        self.left_out(&place, model);
        let mut metadata = json!({ "name": name });
        if let Some(text) = model["description"].as_str() {
            metadata["annotations"] = json!({ "kubernetes.io/description": text });
        }
        self.object("Backup", metadata, spec);
    }

    fn object(&mut self, kind: &str, metadata: Value, spec: Value) {
        self.out.objects.push(json!({
            "apiVersion": "gobackup.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
        }));
    }

    /// Adds a Secret and gives its name; none if it would be empty.
    fn secret(&mut self, owner: &str, content: Map<String, Value>) -> Option<String> {
        if content.is_empty() {
            return None;
        }
        let name = self.name("Secret", owner);
        self.out.secrets.push(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "type": "Opaque", "stringData": content,
        }));
        Some(name)
    }

    fn database(&mut self, place: &str, name: &str, database: &Value) -> Option<Value> {
        let type_ = database["type"].as_str().unwrap_or_default();
        if !DATABASES.contains(&type_) {
            self.note(
                place,
                &format!("databases of type {type_:?} are not served"),
            );
            return None;
        }
        if !database["on_exit"].is_null() {
            self.note(&format!("{place}.on_exit"), "has no counterpart");
        }
        let config = config::<DatabaseConfig>(database, &["type", "on_exit"]);
        let name = self.name("Database", name);
        let config = self.config(place, &name, "database", config);
        let spec = json!({ "type": type_, "config": config });
        self.object("Database", json!({ "name": name }), spec);
        Some(json!({ "name": name }))
    }

    fn storage(&mut self, place: &str, name: &str, storage: &Value) -> Option<Value> {
        let type_ = storage["type"].as_str().unwrap_or_default();
        if !STORAGES.contains(&type_) {
            self.note(place, &format!("storages of type {type_:?} are not served"));
            return None;
        }
        let mut storage = storage.clone();
        if type_ == "azure" && storage["account"].is_null() && !storage["bucket"].is_null() {
            let account = storage["bucket"].take();
            storage["account"] = account;
        }
        let is_path = storage["private_key"]
            .as_str()
            .is_some_and(|key| !key.contains("PRIVATE KEY"));
        if is_path {
            storage["private_key"] = Value::Null;
            self.note(
                &format!("{place}.private_key"),
                "names a file of the old host: put its content into a Secret and name it in private_key_ref",
            );
        }
        let config = config::<StorageConfig>(&storage, &["type"]);
        let name = self.name("Storage", name);
        let config = self.config(place, &name, "storage", config);
        let mut spec = json!({ "type": type_, "config": config });
        if type_ == "local" {
            match self.claim {
                Some(claim) => {
                    spec["volume"] = json!({ "persistentVolumeClaim": { "claimName": claim } });
                }
                None => self.note(
                    place,
                    "needs a volume: name its claim with --pvc, or set spec.volume",
                ),
            }
        }
        self.object("Storage", json!({ "name": name }), spec);
        Some(json!({ "name": name }))
    }

    /// Puts the secret part into a Secret, and says what fits nowhere.
    fn config(&mut self, place: &str, name: &str, kind: &str, config: Config) -> Value {
        let mut plain = config.plain;
        let keys: Vec<String> = config.secret.keys().cloned().collect();
        if let Some(secret) = self.secret(&format!("{name}-{kind}"), config.secret) {
            for key in keys {
                plain.insert(format!("{key}_ref"), json!({ "name": secret, "key": key }));
            }
        }
        for key in config.unknown {
            self.note(&format!("{place}.{key}"), "has no counterpart");
        }
        Value::Object(plain)
    }

    /// Compression, encryption, and what becomes of split archives.
    fn codec(&mut self, place: &str, name: &str, model: &Value, spec: &mut Value) {
        if let Some(type_) = model["compress_with"]["type"].as_str() {
            spec["compressWith"] = json!({ "type": type_ });
        }
        for key in ["filename_format", "args"] {
            if !model["compress_with"][key].is_null() {
                self.note(
                    &format!("{place}.compress_with.{key}"),
                    "has no counterpart",
                );
            }
        }
        let encrypt = &model["encrypt_with"];
        if encrypt.is_null() {
            return;
        }
        let type_ = encrypt["type"].as_str().unwrap_or("openssl");
        let mut encode = json!({ "type": type_ });
        for (from, to) in [
            ("salt", "salt"),
            ("base64", "base64"),
            ("args", "args"),
            ("chiper", "cipher"),
            ("cipher", "cipher"),
        ] {
            if !encrypt[from].is_null() {
                encode[to] = encrypt[from].clone();
            }
        }
        if let Some(password) = text(&encrypt["password"]) {
            let content = Map::from_iter([("password".to_owned(), password.into())]);
            if let Some(secret) = self.secret(&format!("{name}-encryption"), content) {
                encode["passwordSecretKeyRef"] = json!({ "name": secret, "key": "password" });
            }
        }
        spec["encodeWith"] = encode;
    }

    fn notifiers(&mut self, place: &str, name: &str, model: &Value, spec: &mut Value) {
        let Some(notifiers) = model["notifiers"].as_object() else {
            return;
        };
        let mut all = vec![];
        for (key, notifier) in notifiers {
            let place = format!("{place}.notifiers.{key}");
            let type_ = notifier["type"].as_str().unwrap_or_default();
            let ours = match type_ {
                "feishu" => "Feishu",
                "slack" => "Slack",
                "dingtalk" => "DingTalk",
                "discord" => "Discord",
                "webhook" => "Webhook",
                "healthchecks" => "Ping",
                _ => "",
            };
            let url = text(&notifier["url"]);
            let (Some(url), false) = (url, ours.is_empty()) else {
                self.note(
                    &place,
                    &format!(
                        "notifiers of type {type_:?} have no counterpart; see spec.notifications"
                    ),
                );
                continue;
            };
            let content = Map::from_iter([("url".to_owned(), url.into())]);
            let Some(secret) = self.secret(&format!("{name}-{key}-notifier"), content) else {
                continue;
            };
            let mut on = vec![];
            if notifier["on_success"] != false {
                on.push("Success");
            }
            if notifier["on_failure"] != false {
                on.extend(["Failure", "Recovery", "Missed"]);
            }
            all.push(json!({ "type": ours, "urlSecretKeyRef": { "name": secret, "key": "url" }, "events": on }));
        }
        if !all.is_empty() {
            spec["notifications"] = all.into();
        }
    }

    fn left_out(&mut self, place: &str, model: &Value) {
        for (key, why) in [
            (
                "archive",
                "files of the old host can't be reached from a pod",
            ),
            (
                "split_with",
                "is not taken over: set spec.splitWith of the Backup",
            ),
        ] {
            if !model[key].is_null() {
                self.note(&format!("{place}.{key}"), why);
            }
        }
        const KNOWN: [&str; 13] = [
            "description",
            "schedule",
            "before_script",
            "after_script",
            "compress_with",
            "encrypt_with",
            "split_with",
            "archive",
            "databases",
            "storages",
            "default_storage",
            "notifiers",
            "store_with",
        ];
        let unknown: Vec<String> = model
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .filter(|key| !KNOWN.contains(&key.as_str()))
            .cloned()
            .collect();
        for key in unknown {
            self.note(&format!("{place}.{key}"), "has no counterpart");
        }
        if !model["store_with"].is_null() {
            self.note(
                &format!("{place}.store_with"),
                "is older than storages; move it there first",
            );
        }
    }
}

fn with(list: &Value, item: Option<Value>) -> Value {
    let mut all = list.as_array().cloned().unwrap_or_default();
    all.extend(item);
    all.into()
}

/// A scalar as text, as gobackup reads one.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Sorts settings by whether the type has them.
fn config<T: Serialize + DeserializeOwned>(settings: &Value, without: &[&str]) -> Config {
    let mut config = Config {
        plain: Map::new(),
        secret: Map::new(),
        unknown: vec![],
    };
    for (key, value) in settings.as_object().into_iter().flatten() {
        if value.is_null() || without.contains(&key.as_str()) {
            continue;
        }
        let renamed = RENAMED.iter().find(|(from, _)| from == key);
        let name = renamed.map_or(key.as_str(), |(_, to)| *to);
        let reference = json!({ "name": "x", "key": "x" });
        let has_ref = fits::<T>(&format!("{name}_ref"), &reference);
        match (SECRETS.contains(&name) && has_ref, text(value)) {
            (true, Some(secret)) => {
                config.secret.insert(name.to_owned(), secret.into());
            }
            _ => match forms(value).into_iter().find(|form| fits::<T>(name, form)) {
                Some(form) => {
                    config.plain.insert(name.to_owned(), form);
                }
                None => config.unknown.push(key.clone()),
            },
        }
    }
    config
}

/// The value as it is, and as gobackup would also have read it.
fn forms(value: &Value) -> Vec<Value> {
    let mut forms = vec![value.clone()];
    match value {
        Value::String(text) => {
            forms.extend(text.parse::<i64>().ok().map(Value::from));
            forms.extend(text.parse::<bool>().ok().map(Value::from));
            forms.push(json!([text]));
        }
        Value::Number(_) | Value::Bool(_) => forms.push(value.to_string().into()),
        _ => {}
    }
    forms
}

/// True if the type has a field of this name that takes the value.
fn fits<T: Serialize + DeserializeOwned>(key: &str, value: &Value) -> bool {
    serde_json::from_value::<T>(json!({ key: value }))
        .and_then(|typed| serde_json::to_value(&typed))
        .is_ok_and(|back| !back[key].is_null())
}

#[cfg(test)]
mod tests;
