//! A Backup or CronBackup whose archive is restored: read live, with the Storages it names.

use crds::backup::{BackupBody, JobOptions};
use crds::gobackup::{Files, ObjectKey, References, Unresolved, wanted_to_read};
use crds::restore::RestoreFrom;
use crds::run::Run;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde::Deserialize as _;

use crate::context::Context;
use crate::observe::{ObserveError, within};

/// A backup of gobackup.io.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Archived {
    pub(crate) uid: String,
    pub(crate) body: BackupBody,
    pub(crate) references: References,
    pub(crate) runs: Vec<Run>,
}

impl Archived {
    /// Pod options of its runs: its storages may be on one node, or be reached by one service
    /// account, alone.
    pub(super) fn options(&self) -> JobOptions {
        let job = self.body.spec.as_ref().and_then(|s| s.job.clone());
        job.unwrap_or_default()
    }

    /// What a pod needs to read its archives, from one storage if it is named.
    pub(super) fn files(
        &self,
        namespace: &str,
        name: &str,
        storage: Option<&str>,
    ) -> Result<Files, Unresolved> {
        let plan = crds::gobackup::stored(name, namespace, &self.body, &self.references, storage)?;
        Ok(crds::gobackup::files(plan))
    }
}

/// Reads it; `None` if it is gone.
pub(super) async fn observe(
    ctx: &Context,
    namespace: &str,
    name: &str,
    from: &RestoreFrom,
) -> Result<Option<Archived>, ObserveError> {
    let backup = ObjectKey {
        group: "gobackup.io",
        kind: if crds::restore::kind_of(from) == "CronBackup" {
            "CronBackup"
        } else {
            "Backup"
        },
        name: name.to_owned(),
    };
    let Some(found) = get(ctx, namespace, &backup).await? else {
        return Ok(None);
    };
    // What does not fit names no Storage, and is told so.
    let body = BackupBody::deserialize(&found.data).unwrap_or_default();
    let mut references = References::default();
    for key in wanted_to_read(&body) {
        if let Some(found) = get(ctx, namespace, &key).await? {
            references.insert(key, &found.data["spec"]);
        }
    }
    let runs = body.status.as_ref().map(|s| s.engine.runs.clone());
    Ok(Some(Archived {
        uid: found.metadata.uid.unwrap_or_default(),
        references,
        runs: runs.unwrap_or_default(),
        body,
    }))
}

/// Lists it by name: what a Backup refers to the operator may list and watch, not get.
async fn get(
    ctx: &Context,
    namespace: &str,
    key: &ObjectKey,
) -> Result<Option<DynamicObject>, ObserveError> {
    let kind = GroupVersionKind::gvk(key.group, "v1", key.kind);
    let plural = format!("{}s", key.kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.0.clone(), namespace, &resource);
    let one = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let list = match within(api.list(&one)).await {
        // The older kinds need not be installed.
        Err(ObserveError::Api(kube::Error::Api(status))) if status.code == 404 => return Ok(None),
        list => list?,
    };
    Ok(list.items.into_iter().next())
}
