//! Reads past every cache.

use std::time::Duration;

use chrono::{DateTime, Utc};
use crds::labels::OWNER_UID;
use crds::report::clean;
use crds::run::MAX_MESSAGE;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use thiserror::Error;

use crate::context::Context;
use crate::digest;
use crate::engine::{JobDigest, Object, PodDigest};
use crate::ownership::is_controlled_by;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a live read failed.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// No answer in time.
    #[error("no answer to a live read within {PATIENCE:?}")]
    Silent(#[from] tokio::time::error::Elapsed),
    /// The API server refused or could not be reached.
    #[error("failed to read the object and its Jobs live")]
    Api(#[from] kube::Error),
}

/// One read, not awaited for ever.
pub(crate) async fn within<T>(
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ObserveError> {
    Ok(tokio::time::timeout(PATIENCE, call).await??)
}

/// The object, `None` if it is gone or another of the name, and the Jobs it controls.
pub(crate) async fn live(
    ctx: &Context,
    resource: &ApiResource,
    object: &Object,
) -> Result<Option<(DynamicObject, Vec<JobDigest>)>, ObserveError> {
    let client = ctx.client.0.clone();
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &object.namespace, resource);
    let found = tokio::time::timeout(PATIENCE, objects.get_opt(&object.name)).await??;
    let Some(found) = found.filter(|o| o.metadata.uid.as_deref() == Some(&*object.uid)) else {
        return Ok(None);
    };
    let jobs: Api<Job> = Api::namespaced(client, &object.namespace);
    let params = ListParams::default().labels(&format!("{OWNER_UID}={}", object.uid));
    let list = tokio::time::timeout(PATIENCE, jobs.list(&params)).await??;
    Ok(Some((
        found,
        list.items
            .iter()
            .filter(|job| is_controlled_by(&job.metadata, resource, object))
            .filter_map(digest::job)
            .collect(),
    )))
}

/// The pods that name the object, as the API server has them now.
pub(crate) async fn live_pods(
    ctx: &Context,
    object: &Object,
) -> Result<Vec<PodDigest>, ObserveError> {
    let pods: Api<Pod> = Api::namespaced(ctx.client.0.clone(), &object.namespace);
    let params = ListParams::default().labels(&format!("{OWNER_UID}={}", object.uid));
    let list = within(pods.list(&params)).await?;
    Ok(list.items.iter().filter_map(digest::pod).collect())
}

/// Most warnings about one object that are looked through.
const WARNINGS: u32 = 50;

/// Reason and message of the newest warning about the object with this UID.
pub(crate) async fn warning(
    ctx: &Context,
    namespace: &str,
    uid: &str,
) -> Result<Option<(Box<str>, Box<str>)>, ObserveError> {
    let events: Api<Event> = Api::namespaced(ctx.client.0.clone(), namespace);
    let params = ListParams::default()
        .fields(&format!("involvedObject.uid={uid},type=Warning"))
        .limit(WARNINGS);
    let list = within(events.list(&params)).await?;
    let newest = list.items.into_iter().max_by_key(last_seen);
    Ok(newest.map(|event| {
        let reason = event.reason.unwrap_or_default();
        let message = event.message.unwrap_or_default();
        (
            clean(&reason, 64).into(),
            clean(&message, MAX_MESSAGE).into(),
        )
    }))
}

/// When an event was seen last. Its writers fill in different fields.
fn last_seen(event: &Event) -> Option<DateTime<Utc>> {
    let series = event
        .series
        .as_ref()
        .and_then(|s| s.last_observed_time.as_ref());
    let times = [
        series.map(|t| t.0),
        event.last_timestamp.as_ref().map(|t| t.0),
        event.event_time.as_ref().map(|t| t.0),
    ];
    let newest = times.into_iter().flatten().max();
    newest.and_then(|at| DateTime::from_timestamp(at.as_second(), 0))
}

/// UID of the kube-system namespace: tells clusters apart.
pub(crate) async fn cluster(ctx: &Context) -> Result<Option<String>, ObserveError> {
    let namespaces: Api<Namespace> = Api::all(ctx.client.0.clone());
    let found = tokio::time::timeout(PATIENCE, namespaces.get_opt("kube-system")).await??;
    Ok(found.and_then(|n| n.metadata.uid))
}

/// A Lease, as holder and time of the last renewal; `None` if it is not there.
pub(crate) async fn lease(
    ctx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<String>, ObserveError> {
    let leases: Api<Lease> = Api::namespaced(ctx.client.0.clone(), namespace);
    let found = tokio::time::timeout(PATIENCE, leases.get_opt(name)).await??;
    Ok(found.map(|lease| {
        let spec = lease.spec.unwrap_or_default();
        format!("{:?} {:?}", spec.holder_identity, spec.renew_time)
    }))
}
