//! Objects of other operators: found by owner's UID, removed only as they were found.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Preconditions, PropagationPolicy};
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::{Api, Resource};

use crate::cluster::{Call, Cluster, is_missing_object};
use crate::error::Result;

/// What a foreign object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A CronJob that starts Jobs.
    LiveCronJob,
    /// A CronJob that is suspended.
    CronJob,
    /// A Job that is not ours and has not finished.
    LiveJob,
    /// A Job that is not ours and has finished.
    Job,
    /// A Secret with a rendered configuration.
    Secret,
}

impl What {
    /// The resource, as kubectl names it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::LiveCronJob | Self::CronJob => "cronjob",
            Self::LiveJob | Self::Job => "job",
            Self::Secret => "secret",
        }
    }
}

/// An object that belongs to one of the users' objects and is not this operator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignObject {
    /// What it is.
    pub(crate) what: What,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// UID of its owner.
    pub(crate) owner: String,
    uid: String,
    version: String,
}

/// A Deployment of an operator that acts on our groups and is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignOperator {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

/// UID of the controlling owner.
fn owner(metadata: &ObjectMeta) -> Option<&str> {
    let owners = metadata.owner_references.as_ref()?;
    let owner = owners.iter().find(|o| o.controller == Some(true))?;
    Some(&owner.uid)
}

fn foreign(what: What, metadata: &ObjectMeta) -> Option<ForeignObject> {
    Some(ForeignObject {
        what,
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
        owner: owner(metadata)?.to_owned(),
        uid: metadata.uid.clone()?,
        version: metadata.resource_version.clone()?,
    })
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    let by = labels.and_then(|l| l.get(crds::labels::MANAGED_BY));
    by.is_some_and(|by| by == crds::labels::MANAGER)
}

fn is_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|c| c.status == "True" && matches!(c.type_.as_str(), "Complete" | "Failed"))
}

fn call<'a>(verb: &'a str, resource: &'a str, namespace: Option<&'a str>) -> Call<'a> {
    Call {
        verb,
        resource,
        kind: None,
        namespace,
    }
}

async fn whole<K>(cluster: &Cluster, namespace: &str, resource: &str) -> Result<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(cluster.client(), namespace);
    let list = api.list(&ListParams::default()).await;
    list.map(|l| l.items)
        .map_err(|e| cluster.explain(&e, call("list", resource, Some(namespace))))
}

/// CronJobs and Jobs of the namespace that one of the owners controls and that are not ours.
///
/// # Errors
/// What the server refused.
pub(crate) async fn foreign_jobs(
    cluster: &Cluster,
    namespace: &str,
    owners: &[String],
) -> Result<Vec<ForeignObject>> {
    let owned = |m: &ObjectMeta| owner(m).is_some_and(|uid| owners.iter().any(|o| o == uid));
    let mut found = vec![];
    for cron in whole::<CronJob>(cluster, namespace, "cronjobs").await? {
        let suspended = cron.spec.as_ref().is_some_and(|s| s.suspend == Some(true));
        let what = if suspended {
            What::CronJob
        } else {
            What::LiveCronJob
        };
        found.extend(foreign(what, &cron.metadata).filter(|_| owned(&cron.metadata)));
    }
    for job in whole::<Job>(cluster, namespace, "jobs").await? {
        if !owned(&job.metadata) || is_ours(&job.metadata) {
            continue;
        }
        let what = if is_finished(&job) {
            What::Job
        } else {
            What::LiveJob
        };
        found.extend(foreign(what, &job.metadata));
    }
    Ok(found)
}

/// Secrets of the namespace that one of the owners controls; their content is not read.
///
/// # Errors
/// What the server refused.
pub(crate) async fn owned_secrets(
    cluster: &Cluster,
    namespace: &str,
    owners: &[String],
) -> Result<Vec<ForeignObject>> {
    let api: Api<Secret> = Api::namespaced(cluster.client(), namespace);
    let list = api
        .list_metadata(&ListParams::default())
        .await
        .map_err(|e| cluster.explain(&e, call("list", "secrets", Some(namespace))))?;
    let owned = |m: &ObjectMeta| owner(m).is_some_and(|uid| owners.iter().any(|o| o == uid));
    Ok(list
        .items
        .iter()
        .filter(|s| owned(&s.metadata) && !is_ours(&s.metadata))
        .filter_map(|s| foreign(What::Secret, &s.metadata))
        .collect())
}

/// Removes a foreign object, if it is still what was seen; Jobs of a CronJob stay and end by themselves.
///
/// # Errors
/// It changed meanwhile; what the server refused.
pub(crate) async fn remove(cluster: &Cluster, object: &ForeignObject) -> Result<()> {
    let resource = match object.what {
        What::LiveCronJob | What::CronJob => ApiResource::erase::<CronJob>(&()),
        What::LiveJob | What::Job => ApiResource::erase::<Job>(&()),
        What::Secret => ApiResource::erase::<Secret>(&()),
    };
    let api: Api<kube::api::DynamicObject> =
        Api::namespaced_with(cluster.client(), &object.namespace, &resource);
    let propagation = match object.what {
        What::LiveCronJob | What::CronJob => PropagationPolicy::Orphan,
        _ => PropagationPolicy::Background,
    };
    let params = DeleteParams {
        propagation_policy: Some(propagation),
        preconditions: Some(Preconditions {
            uid: Some(object.uid.clone()),
            resource_version: Some(object.version.clone()),
        }),
        ..DeleteParams::default()
    };
    match api.delete(&object.name, &params).await {
        Ok(_) => Ok(()),
        Err(e) if is_missing_object(&e) => Ok(()),
        Err(e) => {
            let call = call("delete", &resource.plural, Some(&object.namespace));
            Err(cluster.explain(&e, call))
        }
    }
}

/// Deployments of other operators for our kinds that have replicas; or why they could not be
/// listed.
pub(crate) async fn foreign_operators(cluster: &Cluster) -> Result<Vec<ForeignOperator>, String> {
    let deployments: Api<Deployment> = Api::all(cluster.client());
    let list = deployments.list(&ListParams::default()).await;
    let list = list.map_err(|e| reason(&e))?;
    let scaled = |d: &&Deployment| d.spec.as_ref().and_then(|s| s.replicas) != Some(0);
    let old = list
        .items
        .iter()
        .filter(scaled)
        .filter(|d| is_old_operator(d));
    Ok(old.filter_map(|d| foreign_operator(&d.metadata)).collect())
}
fn foreign_operator(metadata: &ObjectMeta) -> Option<ForeignOperator> {
    Some(ForeignOperator {
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
    })
}

/// By the image: gobackup-operator's, or one that is named for the original MysqlBackup's.
fn is_old_operator(deployment: &Deployment) -> bool {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|s| s.template.spec.as_ref());
    let containers = pod.map(|p| p.containers.as_slice()).unwrap_or_default();
    containers
        .iter()
        .filter_map(|c| c.image.as_deref())
        .any(|image| {
            let path = image.split('@').next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            let name = name.split(':').next().unwrap_or_default();
            matches!(
                name,
                "gobackup-operator" | "mysqlbackup-operator" | "mysqlbackup-controller"
            )
        })
}

/// Why nothing could be looked at.
pub(crate) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => "no permission".to_owned(),
        kube::Error::Api(status) => status.message.trim().to_owned(),
        other => other.to_string(),
    }
}
