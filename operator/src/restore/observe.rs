//! What a plan is made from. Everything is read live: a restore is rare, and a stale cache could
//! start it twice.

use chrono::{DateTime, Utc};
use crds::ScheduleStatus;
use crds::gobackup::destination;
use crds::labels;
use crds::mysql_backup::{MysqlBackup, MysqlBackupSpec};
use crds::names;
use crds::restore::{Restore, RestoreSpec, RestoreStatus, from_archive};
use crds::run::Run;
use crds::storage::{Storage, StorageSpec};
use crds::time::from_k8s;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use serde::Deserialize as _;

use super::archive::{self, Archived};
use crate::context::Context;
use crate::digest;
use crate::engine::{JobDigest, Object, Obstacle, PodDigest, StartFailure};
use crate::kind::storage_spec;
use crate::observe::{ObserveError, within};
use crate::ownership::is_controlled_by;
use crate::policy::Policy;

/// Everything a plan is made from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observed {
    /// The Restore.
    pub(crate) object: Object,
    /// Its version, for the status patch.
    pub(crate) resource_version: String,
    /// Its spec, or why it can't be read.
    pub(crate) spec: Result<RestoreSpec, String>,
    /// Its status as read.
    pub(crate) status: RestoreStatus,
    /// What stands under the name of its Job.
    pub(crate) job: Named,
    /// Pods of that Job.
    pub(crate) pods: Vec<PodDigest>,
    /// The backup it names; looked for only while there is no Job.
    pub(crate) backup: Option<Backup>,
    /// The same, where it is one of gobackup.io.
    pub(crate) archived: Option<Archived>,
    /// The Storage its artefact is on, if it is on one and it is there; looked for likewise.
    pub(crate) storage: Option<StorageSpec>,
    /// A start that was refused.
    pub(crate) failure: Option<StartFailure>,
    /// What events said of its Job while that did not start.
    pub(crate) obstacle: Option<Obstacle>,
    /// Image of the runner.
    pub(crate) runner_image: String,
    /// What pods may not have.
    pub(crate) policy: Policy,
}

/// What stands under a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Named {
    /// Nothing.
    Free,
    /// This Restore's Job.
    Ours(Box<JobDigest>),
    /// Somebody else's.
    Taken,
}

/// The backup a Restore names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backup {
    pub(crate) uid: String,
    pub(crate) spec: MysqlBackupSpec,
    pub(crate) runs: Vec<Run>,
}

/// Reads all; `None` if the Restore is gone.
pub(crate) async fn observe(
    ctx: &Context,
    namespace: &str,
    name: &str,
    known: impl Fn(&str) -> (Option<StartFailure>, Option<Obstacle>),
) -> Result<Option<Observed>, ObserveError> {
    let client = ctx.client.0.clone();
    let resource = ApiResource::erase::<Restore>(&());
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let Some(found) = within(objects.get_opt(name)).await? else {
        return Ok(None);
    };
    let (object, spec, status) = cut(&found);
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let job_name = names::restore_name(&object.name, &object.uid);
    let job = within(jobs.get_opt(&job_name)).await?;
    let job = named(job.as_ref(), &object);
    let mut pods = vec![];
    if matches!(job, Named::Ours(_)) && !status.phase.is_some_and(|p| p.is_final()) {
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let params =
            ListParams::default().labels(&format!("{}={}", labels::RESTORE_UID, object.uid));
        let list = within(api.list(&params)).await?;
        pods = list.items.iter().filter_map(digest::pod).collect();
    }
    let (mut backup, mut archived) = (None, None);
    let wanted = spec.as_ref().ok().map(|s| &s.from);
    let wanted = wanted.and_then(|from| Some((from, from.name.as_deref()?)));
    if let (Named::Free, Some((from, name)), None) = (&job, wanted, &status.job_uid) {
        if from_archive(from) {
            archived = archive::observe(ctx, namespace, name, from).await?;
        } else {
            backup = mysql_backup(ctx, namespace, name).await?;
        }
    }
    let mut storage = None;
    let wanted = spec.as_ref().ok();
    let wanted = wanted.and_then(|s| storage_of(s, backup.as_ref()));
    if let (Named::Free, Some(name), None) = (&job, wanted, &status.job_uid) {
        let resource = ApiResource::erase::<Storage>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(ctx.client.0.clone(), namespace, &resource);
        // The operator may list Storages, as it watches them.
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let list = match within(api.list(&params)).await {
            Err(ObserveError::Api(kube::Error::Api(status))) if status.code == 404 => vec![],
            list => list?.items,
        };
        storage = list.first().map(storage_spec);
    }
    let (failure, obstacle) = known(&object.uid);
    Ok(Some(Observed {
        storage,
        failure,
        obstacle,
        resource_version: found.metadata.resource_version.unwrap_or_default(),
        object,
        spec,
        status,
        job,
        pods,
        backup,
        archived,
        runner_image: ctx.config.runner_image.clone(),
        policy: ctx.config.policy.clone(),
    }))
}

async fn mysql_backup(
    ctx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<Backup>, ObserveError> {
    let resource = ApiResource::erase::<MysqlBackup>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.0.clone(), namespace, &resource);
    let Some(found) = within(api.get_opt(name)).await? else {
        return Ok(None);
    };
    let status = ScheduleStatus::deserialize(&found.data["status"]).unwrap_or_default();
    // One that can't be read stores nowhere: it says so itself, and is waited for.
    let spec = MysqlBackupSpec::deserialize(&found.data["spec"]).ok();
    Ok(spec.map(|spec| Backup {
        uid: found.metadata.uid.unwrap_or_default(),
        runs: status.runs,
        spec,
    }))
}

/// The Storage that holds what is to be restored, if it is on one.
pub(super) fn storage_of<'a>(spec: &'a RestoreSpec, backup: Option<&'a Backup>) -> Option<&'a str> {
    let location = spec.from.location.as_ref().map(|l| &l.destination);
    destination::storage_ref(location.or(backup.and_then(|b| b.spec.destination.as_ref())))
}

/// An object as the API server gives it, cut to what is needed.
fn cut(found: &DynamicObject) -> (Object, Result<RestoreSpec, String>, RestoreStatus) {
    let meta = &found.metadata;
    let object = Object {
        kind: Restore::kind(&()).into_owned(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        generation: meta.generation,
        created: created(found),
        deleting: meta.deletion_timestamp.is_some(),
        ..Object::default()
    };
    let marked = meta
        .annotations
        .as_ref()
        .and_then(|a| a.get(labels::TOO_LARGE));
    let spec = match marked {
        Some(bytes) => Err(digest::too_large(bytes)),
        None => RestoreSpec::deserialize(&found.data["spec"])
            .map_err(|e| format!("spec does not fit its type: {e}")),
    };
    let status = RestoreStatus::deserialize(&found.data["status"]).unwrap_or_default();
    (object, spec, status)
}

fn created(found: &DynamicObject) -> DateTime<Utc> {
    let at = found.metadata.creation_timestamp.as_ref();
    at.map(from_k8s).unwrap_or_default()
}

/// A Job is the Restore's only if the Restore controls it.
pub(crate) fn named(job: Option<&Job>, object: &Object) -> Named {
    let Some(job) = job else { return Named::Free };
    let resource = ApiResource::erase::<Restore>(&());
    let ours = is_controlled_by(&job.metadata, &resource, object);
    match digest::job(job) {
        Some(digest) if ours => Named::Ours(Box::new(digest)),
        _ => Named::Taken,
    }
}
