//! Applying what was imported.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use serde_json::Value;

use super::Imported;
use crate::cli::{DryRun, Import};
use crate::cluster::no_namespace;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::text::counted;
use crate::ui::Mark;

/// Applies everything, what is referred to first. An object that is refused keeps back those that
/// refer to it, for a Backup without its Storage would only fail, and none of the others.
///
/// # Errors
/// The first refusal, after the others were applied.
pub(crate) async fn apply(context: &Context, args: &Import, imported: &Imported) -> Result<()> {
    let cluster = context.cluster().await?;
    let suffix = match args.dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    };
    let (mut absent, mut first) = (BTreeSet::new(), None);
    for object in imported.secrets.iter().chain(&imported.objects) {
        let full = full_name(object);
        if let Some(missing) = references(&object["spec"]).intersection(&absent).next() {
            context
                .ui
                .warn(&format!("{full} is held back: it refers to {missing}"));
            absent.insert(full);
            continue;
        }
        if args.dry_run != DryRun::Client {
            let dry_run = args.dry_run == DryRun::Server;
            let applied = cluster
                .apply_value(&encoded(object), dry_run, args.force_conflicts)
                .await;
            match applied {
                Ok(()) => {}
                Err(error) if error.kind == Kind::Unreachable => return Err(error),
                // Every other object would say the same.
                Err(error) if error == no_namespace(&cluster.namespace) => return Err(error),
                Err(mut error) => {
                    error.message = format!("{full}: {}", error.message);
                    context.ui.error(&error);
                    first.get_or_insert(error.kind);
                    absent.insert(full);
                    continue;
                }
            }
        }
        context.ui.line(&format!("{full} applied{suffix}"))?;
    }
    let count = imported.secrets.len() + imported.objects.len();
    let Some(kind) = first else {
        context.ui.progress(
            Mark::Good,
            &format!(
                "{} and {} in namespace {}",
                counted(imported.secrets.len(), "secret"),
                counted(imported.objects.len(), "object"),
                cluster.namespace
            ),
        );
        return Ok(());
    };
    Err(Error::new(
        kind,
        format!(
            "{} of {count} objects are not applied: {}",
            absent.len(),
            Vec::from_iter(absent).join(", ")
        ),
    )
    .hint("fix the problems above and run the same command again; what was applied stays as it is"))
}

/// `kind.group/name`, as kubectl takes it.
fn full_name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", name(object))
}

/// What a spec refers to, by full name.
fn references(spec: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open = vec![("", spec)];
    while let Some((field, value)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (field, item))),
            Value::Object(fields) => {
                let kind = match field {
                    "databaseRefs" => Some("database.gobackup.io"),
                    "storageRefs" => Some("storage.gobackup.io"),
                    _ => fields.contains_key("key").then_some("secret"),
                };
                if let (Some(kind), Some(name)) = (kind, value["name"].as_str()) {
                    all.insert(format!("{kind}/{name}"));
                }
                open.extend(fields.iter().map(|(key, inner)| (key.as_str(), inner)));
            }
            _ => {}
        }
    }
    all
}

/// A Secret with `data` for `stringData`: the server keeps track of who owns the keys of the one
/// alone, so that another's are not overwritten and a key that is gone goes away.
fn encoded(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(texts)) = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"))
    {
        let data = texts.into_iter().filter_map(|(key, text)| {
            let bytes = ByteString(text.as_str()?.as_bytes().to_vec());
            Some((key, serde_json::to_value(bytes).ok()?))
        });
        object["data"] = Value::Object(data.collect());
    }
    object
}

/// The name in its metadata.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
