//! Objects of gobackup.io from flags (PURE), each judged by itself as operator and webhook judge it.

use crds::backup::BackupBody;
use crds::gobackup::{Outcome, alone};
use crds::schedule::Schedule;
use crds::validate::Problem;
use serde_json::{Map, Value, json};

use super::bad_name;
use crate::cli::{CreateBackup, CreateDatabase, CreateStorage};
use crate::error::{Error, Result};
use crate::kind::Kind;

/// An object with a checked name and without a mistake, and what is risky about it.
fn object(kind: &Kind, name: &str, spec: Value, outcome: Outcome) -> Result<(Value, Vec<String>)> {
    if let Some(why) = bad_name(name) {
        return Err(Error::usage(why));
    }
    if !outcome.problems.is_empty() {
        let texts: Vec<String> = outcome.problems.iter().map(flag_words).collect();
        return Err(Error::usage(texts.join("; ")));
    }
    let value = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    });
    Ok((value, outcome.warnings))
}

/// A problem in terms of the flag that sets the field.
fn flag_words(problem: &Problem) -> String {
    let (_, field) = problem.path.split_once("spec.").unwrap_or_default();
    let flag = match field {
        "config.host" => "--host".to_owned(),
        "config.port" => "--port".to_owned(),
        "config.database" => "--database".to_owned(),
        "config.bucket" => "--bucket".to_owned(),
        "config.region" => "--region".to_owned(),
        "config.endpoint" => "--endpoint".to_owned(),
        "config.endpoints" => "--host".to_owned(),
        "config.path" => "--path".to_owned(),
        "config.token_ref" | "config" => "--secret".to_owned(),
        "volume" => "--pvc".to_owned(),
        "compressWith.type" | "compressWith.level" => "--compression".to_owned(),
        field => match field.strip_prefix("config.") {
            Some(key) => format!("--set {key}=…"),
            None => problem.path.clone(),
        },
    };
    format!("invalid {flag}: {}", problem.message)
}

/// A Backup.
///
/// # Errors
/// The first flag that is not valid.
pub(crate) fn backup(kind: &Kind, args: &CreateBackup) -> Result<(Value, Vec<String>)> {
    if let Some(problem) = crds::validate::name(&args.name) {
        return Err(Error::usage(format!("invalid name: {}", problem.message)));
    }
    let refs = |names: &[String]| -> Vec<Value> {
        names.iter().map(|name| json!({ "name": name })).collect()
    };
    let mut storages = refs(&args.storage);
    if let Some(keep) = args.keep {
        storages.iter_mut().for_each(|s| s["keep"] = keep.into());
    }
    let mut spec = json!({ "databaseRefs": refs(&args.database), "storageRefs": storages });
    if let Some(type_) = &args.compression {
        spec["compressWith"] = json!({ "type": type_ });
    }
    if let Some(image) = &args.client_image {
        spec["job"] = json!({ "clientImage": image });
    }
    if let Some(text) = &args.schedule {
        Schedule::parse(text, args.time_zone.as_deref()).map_err(|e| {
            let flag = if e.is_time_zone() {
                "--time-zone"
            } else {
                "--schedule"
            };
            Error::usage(format!("invalid {flag}: {e}"))
        })?;
        let mut schedule = json!({ "cron": text });
        if let Some(zone) = &args.time_zone {
            schedule["timeZone"] = zone.clone().into();
        }
        if args.suspend {
            schedule["suspend"] = true.into();
        }
        spec["schedule"] = schedule;
    }
    let body: BackupBody = typed(&json!({ "spec": spec }))?;
    let outcome = alone::backup(&args.name, "", &body);
    object(kind, &args.name, spec, outcome)
}

/// A Database.
///
/// # Errors
/// The first flag that is not valid.
pub(crate) fn database(kind: &Kind, args: &CreateDatabase) -> Result<(Value, Vec<String>)> {
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        config.extend(value.map(|value| (key.to_owned(), value)));
    };
    // A list of members has a field of its own.
    let host = if args.type_ == "etcd" {
        "endpoint"
    } else {
        "host"
    };
    put(host, args.host.clone().map(Value::from));
    put("port", args.port.map(Value::from));
    put("database", args.database.clone().map(Value::from));
    put(
        "all_databases",
        args.all_databases.then_some(Value::Bool(true)),
    );
    if let Some(secret) = &args.secret {
        let (name, first, second) = keys(secret, "username", "password")?;
        let reference = |key: String| Some(json!({ "name": name, "key": key }));
        // redis and influxdb know no user.
        match args.type_.as_str() {
            "redis" => put("password_ref", reference(second)),
            "influxdb" | "influxdb2" => put("token_ref", reference(second)),
            _ => {
                put("username_ref", reference(first));
                put("password_ref", reference(second));
            }
        }
    }
    more(&mut config, &args.set)?;
    let spec = json!({ "type": args.type_, "config": config });
    let outcome = alone::database(&args.name, &typed(&spec)?);
    object(kind, &args.name, spec, outcome)
}

/// A Storage.
///
/// # Errors
/// The first flag that is not valid.
pub(crate) fn storage(kind: &Kind, args: &CreateStorage) -> Result<(Value, Vec<String>)> {
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        config.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("bucket", args.bucket.clone().map(Value::from));
    put("region", args.region.clone().map(Value::from));
    put("endpoint", args.endpoint.clone().map(Value::from));
    put("path", args.path.clone().map(Value::from));
    put("keep", args.keep.map(Value::from));
    if let Some(secret) = &args.secret {
        let server = ["ftp", "sftp", "scp", "webdav"].contains(&args.type_.as_str());
        let (fields, defaults) = match args.type_.as_str() {
            _ if server => (("username_ref", "password_ref"), ("username", "password")),
            "gcs" | "azure" | "upyun" | "local" => {
                return Err(Error::usage(format!(
                    "--secret does not say enough for type {}; use --set or a file",
                    args.type_
                )));
            }
            _ => (
                ("access_key_id_ref", "secret_access_key_ref"),
                ("accessKeyId", "secretAccessKey"),
            ),
        };
        let (name, first, second) = keys(secret, defaults.0, defaults.1)?;
        put(fields.0, Some(json!({ "name": name, "key": first })));
        put(fields.1, Some(json!({ "name": name, "key": second })));
    }
    more(&mut config, &args.set)?;
    let mut spec = json!({ "type": args.type_, "config": config });
    match (&args.pvc, args.type_.as_str()) {
        (Some(claim), "local") => {
            spec["volume"] = json!({ "persistentVolumeClaim": { "claimName": claim } });
        }
        (Some(_), _) => return Err(Error::usage("--pvc is for --type local")),
        (None, "local") => {
            return Err(Error::usage(
                "--type local needs --pvc: without a volume the archive dies with the pod",
            ));
        }
        (None, _) => {}
    }
    let outcome = alone::storage(&args.name, &typed(&spec)?);
    object(kind, &args.name, spec, outcome)
}

/// `NAME` or `NAME:FIRST:SECOND`.
fn keys(text: &str, first: &str, second: &str) -> Result<(String, String, String)> {
    let parts: Vec<&str> = text.split(':').collect();
    let part = |index: usize, missing: &str| {
        let given = parts.get(index).filter(|p| !p.is_empty());
        given.map_or_else(|| missing.to_owned(), ToString::to_string)
    };
    if parts[0].is_empty() || parts.len() > 3 {
        return Err(Error::usage(format!(
            "invalid --secret {text:?}: write NAME, or NAME:FIRST-KEY:SECOND-KEY"
        )));
    }
    Ok((parts[0].to_owned(), part(1, first), part(2, second)))
}

/// `--set KEY=VALUE`: booleans and numbers as such, everything else as text.
fn more(config: &mut Map<String, Value>, texts: &[String]) -> Result<()> {
    for text in texts {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Error::usage(
                "invalid --set: one has no `=`; write KEY=VALUE",
            ));
        };
        let value = match value {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => text
                .parse::<i64>()
                .map_or_else(|_| text.into(), Value::from),
        };
        config.insert(key.to_owned(), value);
    }
    Ok(())
}

/// The spec as its type.
fn typed<T: serde::de::DeserializeOwned>(spec: &Value) -> Result<T> {
    serde_json::from_value(spec.clone()).map_err(|e| Error::usage(format!("invalid --set: {e}")))
}
