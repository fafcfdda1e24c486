//! `import` (PURE): a gobackup.yml as Secrets, Databases, Storages and Backups.

mod expand;
mod keys;
mod notifiers;
mod schedule;
mod source;

pub(crate) mod apply;
pub(crate) mod variables;

use std::collections::BTreeSet;

use crds::backup::BackupBody;
use crds::database::DatabaseConfig;
use crds::gobackup::databases::is_own_pod;
use crds::gobackup::resolve::examine;
use crds::gobackup::{ObjectKey, References};
use crds::group::GROUP;
use crds::plan::{Credential, Database, DatabaseType};
use crds::storage::StorageConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use keys::Field;
use source::{Entry, Source, parse};

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
/// Longest name of a Backup: its Jobs' names are longer.
const LONGEST: usize = 52;

/// What came out of a file.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// Secrets with their values: never printed unless asked for.
    pub(crate) secrets: Vec<Value>,
    /// Databases, Storages and Backups.
    pub(crate) objects: Vec<Value>,
    /// What could not be mapped, and what is otherwise from here on, each with its place.
    pub(crate) notes: Vec<String>,
    /// Backups that can't run as they are.
    pub(crate) stuck: BTreeSet<String>,
}

/// What the caller wants.
pub(crate) struct ImportOptions<'a> {
    /// Models to import; all if empty.
    pub(crate) models: &'a [String],
    /// Volume claim of storages of type local.
    pub(crate) claim: Option<&'a str>,
    /// No gobackup runs any more: what its own lists name is counted and removed.
    pub(crate) adopt_state: bool,
    /// Values of variables.
    pub(crate) variables: &'a dyn Fn(&str) -> Option<String>,
}

/// Translates a file.
///
/// # Errors
/// It is no gobackup.yml, a variable has no value, or a model was not found.
pub(crate) fn import(text: &str, wishes: &ImportOptions<'_>) -> Result<Imported> {
    let (tree, merged) = parse(text)?;
    let source = Source::new(wishes.variables);
    source.stand_elsewhere(merged);
    let root = source.root(&tree);
    let Some(models) = root.get("models").filter(Entry::is_map) else {
        return Err(Error::usage(
            "the file has no models: it is not a gobackup.yml",
        ));
    };
    if let Some(workdir) = root.get("workdir") {
        workdir.lost("is not needed: a run works in a directory of its pod; spec.job.workdirSizeLimit limits it");
    }
    if let Some(web) = root.get("web") {
        web.lost(
            "has no counterpart: kubectl backup list and describe show what gobackup's page did",
        );
    }
    let models = models.entries();
    for name in wishes.models {
        if !models.iter().any(|(key, _)| key == name) {
            let all: Vec<&str> = models.iter().map(|(key, _)| key.as_str()).collect();
            return Err(Error::usage(format!(
                "no model {name:?}; the models are {}",
                all.join(", ")
            )));
        }
    }
    let mut run = Run {
        out: Imported::default(),
        taken: BTreeSet::new(),
        wishes,
        source: &source,
    };
    let mut left = vec![];
    for (name, model) in &models {
        if wishes.models.is_empty() || wishes.models.contains(name) {
            run.model(name, model);
            left.push((model.place().to_owned(), model.value()));
        }
    }
    run.judge();
    let mut out = run.out;
    for (key, node) in root.entries() {
        if !key.eq_ignore_ascii_case("models") {
            left.push((node.place().to_owned(), node.value()));
        }
    }
    out.notes = source.finish(&left)?;
    Ok(out)
}

struct Run<'a> {
    out: Imported,
    taken: BTreeSet<String>,
    wishes: &'a ImportOptions<'a>,
    source: &'a Source<'a>,
}

impl Run<'_> {
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

    fn model(&mut self, key: &str, model: &Entry<'_>) {
        let name = self.name("Backup", key);
        let mut spec = json!({ "databaseRefs": [], "storageRefs": [] });
        // The path in the archive and gobackup's own list go on under the model's name.
        let key = key.to_lowercase();
        if name != key {
            model.remark(&format!(
                "is Backup {name} here; in archives and in gobackup's list it is still {key}"
            ));
            spec["job"]["gobackupName"] = key.as_str().into();
        }
        let is_old = model.get("storages").is_none() && model.get("store_with").is_some();
        let mut references = vec![];
        for (inner, database) in model.get("databases").iter().flat_map(Entry::entries) {
            references.extend(self.database((&key, &inner), (&database, is_old)));
        }
        spec["databaseRefs"] = references.into();
        let mut references = vec![];
        let mut kept = false;
        for (inner, storage) in storages(model) {
            kept |= storage.get("keep").is_some();
            references.extend(self.storage(&name, (&key, &inner), &storage));
        }
        spec["storageRefs"] = references.into();
        if self.wishes.adopt_state {
            spec["job"]["adoptState"] = true.into();
        } else if kept {
            model.remark("keep counts the archives of this Backup alone: once no gobackup stores there any more, --adopt-state has it count and remove those of gobackup's own list too");
        }
        if let Some(storage) = model.get("default_storage") {
            storage.lost("has no effect: the archive goes to every storage, as with gobackup");
        }
        for (from, to) in [
            ("before_script", "beforeScript"),
            ("after_script", "afterScript"),
        ] {
            if let Some(script) = model.get(from)
                && let Some(text) = script.text()
            {
                spec[to] = text.into();
                script.remark("runs in the pod, where programs and files of the old host are not");
            }
        }
        self.codec(&name, model, &mut spec);
        match model.get("schedule") {
            None => model.remark(&format!(
                "has no schedule: the Backup runs once when it is applied, and again only by kubectl backup run-now {name}; what called gobackup becomes spec.schedule.cron"
            )),
            Some(schedule) => match schedule::cron(&schedule) {
                Ok(cron) => {
                    spec["schedule"] = json!({ "cron": cron });
                    schedule.remark(
                        "is read in UTC: gobackup used the zone of its host; set spec.schedule.timeZone",
                    );
                }
                Err(why) => {
                    schedule.lost(&format!("is not taken over: {why}; set spec.schedule.cron, else the Backup runs once"));
                }
            },
        }
        self.notifiers(&name, model, &mut spec);
        if let Some(archive) = model.get("archive") {
            archive.lost("is not taken over: files of the old host can't be reached from a pod; back them up where they are");
        }
        let mut metadata = json!({ "name": name });
        if let Some(text) = model.text_of("description") {
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

    fn database(
        &mut self,
        (model, key): (&str, &str),
        (database, is_old): (&Entry<'_>, bool),
    ) -> Option<Value> {
        let type_ = database.text_of("type").unwrap_or_default();
        let Some(mut rows) = keys::database(&type_) else {
            database.lost(&format!(
                "{}; the Backup goes on without it",
                keys::unserved(&type_)
            ));
            return None;
        };
        // Read by gobackup 1, which knew no storages by name.
        rows.push(match is_old && type_ == "mysql" {
            true => ("additional_options", Field::Named("args")),
            false => ("additional_options", Field::Lost(keys::OLD_OPTIONS)),
        });
        let name = self.name("Database", &format!("{model}-{key}"));
        let mut config = self.config::<DatabaseConfig>((&name, "database"), database, &rows);
        match type_.as_str() {
            "mariadb" => database.remark("is dumped by mariadb-dump over the network, where gobackup copied the server's data directory: restore it by loading the dump"),
            // gobackup's default.
            "redis" if config.get("mode").is_none() => {
                config.insert("mode".to_owned(), "copy".into());
            }
            "redis" if config["mode"] == "sync" && config.remove("rdb_path").is_some() => {
                if let Some(path) = database.get("rdb_path") {
                    path.lost("has no effect in mode sync");
                }
            }
            _ => {}
        }
        for key in ["before_script", "after_script"] {
            if let Some(script) = database.get(key) {
                script.remark("runs in the pod, where programs and files of the old host are not");
            }
        }
        if let Some(on_exit) = database.get("on_exit") {
            match on_exit.text().as_deref() {
                Some("always") => {}
                _ => on_exit.lost("is not taken over: after_script runs after each dump, good or bad; let it look at what it needs to know"),
            }
        }
        let mut spec = json!({ "type": type_, "config": config });
        if name != key.to_lowercase() {
            spec["gobackupName"] = key.to_lowercase().into();
        }
        self.object("Database", json!({ "name": name }), spec);
        Some(json!({ "name": name }))
    }

    fn storage(
        &mut self,
        backup: &str,
        (model, key): (&str, &str),
        storage: &Entry<'_>,
    ) -> Option<Value> {
        let type_ = storage.text_of("type").unwrap_or_default();
        let Some(rows) = keys::storage(&type_) else {
            storage.lost(&format!(
                "is of type {type_:?}, which gobackup 3 does not know either, and nothing is stored there: set one of its types"
            ));
            return None;
        };
        let name = self.name("Storage", &format!("{model}-{key}"));
        let mut config = self.config::<StorageConfig>((&name, "storage"), storage, &rows);
        if matches!(type_.as_str(), "sftp" | "scp") {
            if let Some(path) = config.get("path").and_then(Value::as_str) {
                // Where the login begins, which is where a path without / begins.
                let path = path.strip_prefix("~/").unwrap_or(path).to_owned();
                config.insert("path".to_owned(), path.into());
            }
            if !["private_key_ref", "password_ref"]
                .iter()
                .any(|k| config.contains_key(*k))
            {
                storage.remark("can't log in: gobackup used a private key of its host (~/.ssh/id_rsa where none is named); put it into a Secret and name it in spec.config.private_key_ref");
                self.out.stuck.insert(backup.to_owned());
            }
        }
        let mut spec = json!({ "type": type_, "config": config });
        if type_ == "local" {
            match self.wishes.claim {
                Some(claim) => {
                    spec["volume"] = json!({ "persistentVolumeClaim": { "claimName": claim } });
                    storage.remark("has its path below the top of the volume: where the claim held a part of that path, take this part out of spec.config.path");
                }
                None => {
                    storage.remark("needs a volume: name its claim with --pvc, or set spec.volume")
                }
            }
        }
        let address = ["host", "endpoint", "root"]
            .iter()
            .filter_map(|k| config.get(*k)?.as_str());
        if address.into_iter().any(is_own_pod) {
            self.out.stuck.insert(backup.to_owned());
        }
        if name != key.to_lowercase() {
            spec["gobackupName"] = key.to_lowercase().into();
        }
        self.object("Storage", json!({ "name": name }), spec);
        Some(json!({ "name": name }))
    }

    /// The settings as fields: what is secret in a Secret, what gobackup does not read left out.
    fn config<T: Serialize + DeserializeOwned>(
        &mut self,
        (name, kind): (&str, &str),
        settings: &Entry<'_>,
        rows: &[(&'static str, Field)],
    ) -> Map<String, Value> {
        let (mut plain, mut secret) = (Map::new(), Map::new());
        for (key, becomes) in rows {
            let Some(node) = settings.get(key) else {
                continue;
            };
            let field = match becomes {
                Field::Same => *key,
                Field::Named(field) => *field,
                Field::Lost(why) => {
                    node.lost(why);
                    continue;
                }
            };
            // The first of two keys for one field counts, as with gobackup.
            if plain.contains_key(field) || secret.contains_key(field) {
                node.lost(&format!("has no effect beside {field}"));
                continue;
            }
            let is_key = SECRETS.contains(&field);
            let value = if is_key {
                node.text().map(Value::from)
            } else {
                Some(node.whole())
            };
            match value {
                Some(Value::String(text)) if text.is_empty() && is_key => {}
                Some(Value::String(text))
                    if field == "private_key" && !text.contains("PRIVATE KEY") =>
                {
                    node.lost("names a file of the old host: put its content into a Secret and name it in spec.config.private_key_ref of the Storage");
                }
                Some(value) if is_key => {
                    secret.insert(field.to_owned(), value);
                }
                Some(value) => match forms(&value)
                    .into_iter()
                    .find(|form| fits::<T>(field, form))
                {
                    Some(form) => {
                        plain.insert(field.to_owned(), form);
                    }
                    None => node.lost(&format!(
                        "is not a value of spec.config.{field}, and is not taken over: correct it"
                    )),
                },
                None => {}
            }
        }
        let keys: Vec<String> = secret.keys().cloned().collect();
        if let Some(secret) = self.secret(&format!("{name}-{kind}"), secret) {
            for key in keys {
                plain.insert(format!("{key}_ref"), json!({ "name": secret, "key": key }));
            }
        }
        plain
    }

    /// Compression, encryption, and parts.
    fn codec(&mut self, name: &str, model: &Entry<'_>, spec: &mut Value) {
        if let Some(compress) = model.get("compress_with") {
            if let Some(type_) = compress.text_of("type") {
                spec["compressWith"] = json!({ "type": type_ });
            } else if !compress.is_map() {
                compress.lost("is not read by gobackup, which wants {type: …}: archives were, and are, not compressed; set spec.compressWith.type");
            }
            if let Some(format) = compress.get("filename_format") {
                format.lost("is not taken over: archives are named by their time as gobackup does it by default");
            }
            if let Some(args) = compress.get("args") {
                args.lost("are arguments of tar, which nothing calls here; spec.compressWith.level sets the level");
            }
        }
        if let Some(split) = model.get("split_with") {
            let mut with = Map::new();
            if let Some(size) = split.text_of("chunk_size") {
                with.insert("chunkSize".to_owned(), size.into());
            }
            if let Some(length) = split
                .text_of("suffix_length")
                .and_then(|t| t.parse::<i64>().ok())
            {
                with.insert("suffixLength".to_owned(), length.into());
            }
            if let Some(numeric) = split.flag_of("numeric_suffixes") {
                with.insert("numericSuffixes".to_owned(), numeric.into());
            }
            spec["splitWith"] = with.into();
        }
        self.encryption(name, model, spec);
    }

    fn encryption(&mut self, name: &str, model: &Entry<'_>, spec: &mut Value) {
        let Some(encrypt) = model.get("encrypt_with") else {
            return;
        };
        let type_ = encrypt.text_of("type");
        if type_.is_none() {
            encrypt.remark(
                "has no type, and gobackup stored plain archives: they are encrypted from here on",
            );
        }
        let mut encode = json!({ "type": type_.unwrap_or_else(|| "openssl".to_owned()) });
        for key in ["salt", "base64"] {
            if let Some(flag) = encrypt.flag_of(key) {
                encode[key] = flag.into();
            }
        }
        // Spelled so by gobackup.
        if let Some(cipher) = encrypt.text_of("chiper") {
            encode["cipher"] = cipher.into();
        }
        if let Some(cipher) = encrypt.get("cipher") {
            cipher.lost("has no effect: gobackup reads chiper");
        }
        if let Some(openssl) = encrypt.get("openssl") {
            openssl.lost("has no effect beside type");
        }
        let args = encrypt.text_of("args").unwrap_or_default();
        if !args.is_empty() {
            encode["args"] = args.as_str().into();
        }
        if encode["type"] == "openssl"
            && !args
                .split_whitespace()
                .any(|a| matches!(a, "-pbkdf2" | "-iter"))
        {
            encode["pbkdf2"] = false.into();
            encrypt.remark("derives the key as openssl does it without -pbkdf2, so that what opened archives opens them on; that is easy to guess: set spec.encodeWith.pbkdf2 to true, and add -pbkdf2 to the command that opens them");
        }
        if let Some(password) = encrypt.text_of("password") {
            let content = Map::from_iter([("password".to_owned(), password.into())]);
            if let Some(secret) = self.secret(&format!("{name}-encryption"), content) {
                encode["passwordSecretKeyRef"] = json!({ "name": secret, "key": "password" });
            }
        }
        spec["encodeWith"] = encode;
    }

    /// What the operator will say of each Backup, in its own words; which can't run.
    fn judge(&mut self) {
        let mut references = References::default();
        for object in &self.out.objects {
            let kind = match object["kind"].as_str() {
                Some("Database") => "Database",
                Some("Storage") => "Storage",
                _ => continue,
            };
            let name = apply::name(object).to_owned();
            references.insert(
                ObjectKey {
                    group: GROUP,
                    kind,
                    name,
                },
                &object["spec"],
            );
        }
        for object in self.out.objects.iter().filter(|o| o["kind"] == "Backup") {
            let name = apply::name(object);
            let body: BackupBody = serde_json::from_value(object.clone()).unwrap_or_default();
            let (resolved, bad) = examine(name, "", &body, &references);
            let problems = bad
                .missing
                .iter()
                .chain(&bad.problems)
                .map(ToString::to_string);
            for said in problems.chain(resolved.warnings) {
                self.source.note(&format!("Backup {name}"), &said);
            }
            let no_client = |type_: DatabaseType| {
                type_ == DatabaseType::Mssql || type_.client_to_bring().is_some()
            };
            let nowhere = |d: &Database<Credential>| {
                d.socket.is_none() && d.host.as_deref().is_some_and(is_own_pod)
            };
            let mut databases = resolved.plan.databases.iter();
            if !bad.problems.is_empty()
                || databases.any(|d| no_client(d.database_type) || nowhere(d))
            {
                self.out.stuck.insert(name.to_owned());
            }
        }
    }
}

/// Storages by name; the one of gobackup 1, which had no name, under its type.
fn storages<'a>(model: &Entry<'a>) -> Vec<(String, Entry<'a>)> {
    let mut all = model
        .get("storages")
        .map(|s| s.entries())
        .unwrap_or_default();
    if let Some(old) = model.get("store_with") {
        if all.is_empty() {
            let name = old.text_of("type").unwrap_or_default();
            old.remark(&format!(
                "is of gobackup 1: it is taken over as a storage of the name {name}"
            ));
            all.push((name, old));
        } else {
            old.lost("has no effect beside storages");
        }
    }
    all
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
