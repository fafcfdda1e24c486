//! Where an object's artefacts are, by what it refers to now: read with the caller's rights.

use crds::backup::BackupBody;
use crds::gobackup::{Files, ObjectKey, References, destination, wanted, wanted_to_read};
use crds::plan::{Credential, Storage};
use crds::storage::StorageSpec;
use kube::core::DynamicObject;

use crate::cluster::{Cluster, Object};
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::STORAGE;

/// The Storage that a MysqlBackup stores on, if it names one.
///
/// # Errors
/// It is not there, or can't be used; what the server refused.
pub(crate) async fn storage(
    cluster: &Cluster,
    object: &Object,
) -> Result<Option<Storage<Credential>>> {
    let Some(name) = object.spec()["destination"]["storageRef"]["name"].as_str() else {
        return Ok(None);
    };
    let namespace = object.namespace();
    let wanted = Object {
        kind: &STORAGE,
        object: DynamicObject::new(name, &STORAGE.api_resource()).within(&namespace),
    };
    let found = cluster.live(&wanted).await?;
    let spec: Option<StorageSpec> =
        found.map(|f| serde_json::from_value(f.spec().clone()).unwrap_or_default());
    destination::storage(
        "spec.destination.storageRef",
        &namespace,
        name,
        spec.as_ref(),
    )
    .map(|stored| Some(stored.storage))
    .map_err(|unresolved| {
        let kind = if unresolved.missing.is_empty() {
            Exit::Other
        } else {
            Exit::NotFound
        };
        Error::new(
            kind,
            format!("{}: {}", object.full_name(), unresolved.message()),
        )
    })
}

/// What a Backup says of itself.
///
/// # Errors
/// It does not have the form of its kind.
pub(crate) fn body(object: &Object) -> Result<BackupBody> {
    serde_json::from_value(object.object.data.clone()).map_err(|e| {
        let name = object.full_name();
        Error::new(Exit::Other, format!("{name} can't be read: {e}"))
    })
}

async fn references(
    cluster: &Cluster,
    object: &Object,
    keys: Vec<ObjectKey>,
) -> Result<References> {
    let namespace = object.namespace();
    let mut references = References::default();
    for key in keys {
        if let Some(spec) = cluster.referred(&namespace, &key).await? {
            references.insert(key, &spec);
        }
    }
    Ok(references)
}

/// What a run of a Backup mounts; none while something that it refers to is missing or wrong, which its
/// condition says.
///
/// # Errors
/// What the server refused.
pub(crate) async fn run_files(cluster: &Cluster, object: &Object) -> Result<Option<Files>> {
    let body = body(object)?;
    let references = references(cluster, object, wanted(&body)).await?;
    let resolved = crds::gobackup::resolve(&object.name(), &object.namespace(), &body, &references);
    Ok(resolved
        .ok()
        .map(|resolved| crds::gobackup::files(resolved.plan)))
}

/// What a pod mounts that reads the archives of a Backup: from one Storage, or from all. `raw` bytes
/// need no key.
///
/// # Errors
/// What it refers to is missing or wrong; what the server refused.
pub(crate) async fn archive_files(
    cluster: &Cluster,
    object: &Object,
    storage: Option<&str>,
    raw: bool,
) -> Result<Files> {
    let body = body(object)?;
    let references = references(cluster, object, wanted_to_read(&body)).await?;
    let (name, namespace) = (object.name(), object.namespace());
    let mut plan = crds::gobackup::stored(&name, &namespace, &body, &references, storage).map_err(
        |unresolved| {
            Error::new(
                Exit::NotFound,
                format!("{}: {}", object.full_name(), unresolved.message()),
            )
        },
    )?;
    if raw {
        plan.encrypt = None;
    }
    Ok(crds::gobackup::files(plan))
}
