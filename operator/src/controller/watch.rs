//! Watches feed the store and the queue. Lists come in pages.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;

use super::queue::{Key, Priority};
use super::{Controller, digest};
use crate::apply::chain;

/// Objects a page of a list.
const PAGE: u32 = 500;

/// What a watch brings, for one type of object.
pub(super) trait Feed<K>: Send + Sync {
    /// Takes one object in; returns what tells it apart.
    fn apply(&self, object: &K) -> Option<Box<str>>;
    /// One object is gone.
    fn delete(&self, object: &K);
    /// Whatever the list did not hold is gone.
    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>);
}

/// Follows one watch for ever.
async fn follow<K, F>(
    controller: Arc<Controller>,
    api: Api<K>,
    scope: Option<String>,
    feed: F,
    config: watcher::Config,
) where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    F: Feed<K>,
{
    let mut stream = watcher(api, config).default_backoff().boxed();
    let mut seen = HashSet::new();
    let mut first = true;
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(object)) => seen.extend(feed.apply(&object)),
            Ok(Event::InitDone) => {
                feed.retain(&seen, scope.as_deref());
                seen = HashSet::new();
                if std::mem::take(&mut first) {
                    controller.synced();
                }
            }
            Ok(Event::Apply(object)) => {
                feed.apply(&object);
            }
            Ok(Event::Delete(object)) => feed.delete(&object),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "a watch failed; it is begun anew");
                // A kind that is not installed has no objects: nothing waits for its list.
                if is_unknown_kind(&error) && std::mem::take(&mut first) {
                    controller.synced();
                }
            }
        }
    }
}

/// The API server knows no such resource.
fn is_unknown_kind(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

pub(super) struct Objects {
    pub(super) controller: Arc<Controller>,
    pub(super) kind: usize,
}

impl Feed<DynamicObject> for Objects {
    fn apply(&self, object: &DynamicObject) -> Option<Box<str>> {
        let paths = self.controller.kinds[self.kind].managed_paths();
        let mut object = object.clone();
        self.controller.kinds[self.kind].prepare(&mut object);
        let kept = digest::object(object, paths)?;
        let uid: Box<str> = kept.uid().into();
        let (key, news) = self.controller.store.set_object(self.kind, &kept);
        if news {
            self.controller.queue.push(key, Priority::Due);
        }
        Some(uid)
    }

    fn delete(&self, object: &DynamicObject) {
        if let Some(uid) = &object.metadata.uid {
            self.controller.object_gone(uid);
        }
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for key in self.controller.store.objects(self.kind, scope) {
            if !seen.contains(&*key) {
                self.controller.object_gone(&key);
            }
        }
    }
}

/// Objects that those of a kind refer to.
struct References {
    controller: Arc<Controller>,
    kind: usize,
    resource: kube::core::ApiResource,
}

impl References {
    /// Every object of the kind in a namespace may resolve otherwise now.
    fn news(&self, namespace: &str) {
        for key in self.controller.store.objects(self.kind, Some(namespace)) {
            self.controller.queue.push(key, Priority::Follow);
        }
    }
}

impl Feed<DynamicObject> for References {
    fn apply(&self, object: &DynamicObject) -> Option<Box<str>> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        if self.controller.kinds[self.kind].set_reference(object, false) {
            self.news(namespace);
        }
        let name = object.metadata.name.as_deref()?;
        Some(format!("{namespace}/{name}").into())
    }

    fn delete(&self, object: &DynamicObject) {
        if self.controller.kinds[self.kind].set_reference(object, true) {
            self.news(object.metadata.namespace.as_deref().unwrap_or_default());
        }
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        let kind = &self.controller.kinds[self.kind];
        for namespace in kind.retain_references(&self.resource, scope, seen) {
            self.news(&namespace);
        }
    }
}

pub(super) struct Jobs(pub(super) Arc<Controller>);

impl Feed<Job> for Jobs {
    fn apply(&self, job: &Job) -> Option<Box<str>> {
        let owner = digest::owner_of(&job.metadata)?;
        let digest = digest::job(job)?;
        let uid = digest.uid.clone();
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let finished = !digest.is_active();
        let (key, news) = self.0.store.set_job(owner, namespace, digest);
        if news {
            self.0.job_news(key, finished);
        }
        Some(uid)
    }

    fn delete(&self, job: &Job) {
        if let (Some(owner), Some(uid)) = (digest::owner_of(&job.metadata), &job.metadata.uid) {
            let key = self.0.store.remove_job(owner, uid);
            self.0.job_news(key, true);
        }
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for (owner, uid) in self.0.store.jobs(scope) {
            if !seen.contains(&uid) {
                let key = self.0.store.remove_job(&owner, &uid);
                self.0.job_news(key, true);
            }
        }
    }
}

struct Pods(Arc<Controller>);

impl Pods {
    fn take(&self, pod: &Pod, gone: bool) -> Option<Box<str>> {
        let owner = digest::owner_of(&pod.metadata)?;
        let digest = digest::pod(pod)?;
        let uid = digest.uid.clone();
        let (key, news): (Key, bool) = if gone {
            (self.0.store.pod_gone(owner, digest), true)
        } else {
            self.0.store.set_pod(owner, digest)
        };
        if news {
            self.0.queue.push(key, Priority::Follow);
        }
        Some(uid)
    }
}

impl Feed<Pod> for Pods {
    fn apply(&self, pod: &Pod) -> Option<Box<str>> {
        self.take(pod, false)
    }

    fn delete(&self, pod: &Pod) {
        self.take(pod, true);
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for (owner, pod) in self.0.store.pods(scope) {
            if !seen.contains(&pod.uid) {
                let key = self.0.store.pod_gone(&owner, pod);
                self.0.queue.push(key, Priority::Follow);
            }
        }
    }
}

/// Jobs without our label that an object of ours owns.
struct Strangers(Arc<Controller>);

impl Strangers {
    fn remove(&self, owner: &str, uid: &str) {
        let (key, known) = self.0.store.remove_stranger(owner, uid);
        if known {
            self.0.queue.push(key, Priority::Follow);
        }
    }
}

impl Feed<PartialObjectMeta<Job>> for Strangers {
    fn apply(&self, job: &PartialObjectMeta<Job>) -> Option<Box<str>> {
        let owner = digest::controlled_by(&job.metadata, &self.0.resources)?;
        let stranger = digest::stranger(&job.metadata)?;
        let uid = stranger.uid.clone();
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let (key, news) = self.0.store.set_stranger(owner, namespace, stranger);
        if news {
            self.0.queue.push(key, Priority::Follow);
        }
        Some(uid)
    }

    fn delete(&self, job: &PartialObjectMeta<Job>) {
        let owner = digest::controlled_by(&job.metadata, &self.0.resources);
        if let (Some(owner), Some(uid)) = (owner, &job.metadata.uid) {
            self.remove(owner, uid);
        }
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for (owner, uid) in self.0.store.others(scope, false) {
            if !seen.contains(&uid) {
                self.remove(&owner, &uid);
            }
        }
    }
}

/// CronJobs an object of ours owns.
struct CronJobs(Arc<Controller>);

impl CronJobs {
    fn set(&self, owner: &str, namespace: &str, cron_job: (&str, &str), acts: bool) {
        let (key, news) = self.0.store.set_cron_job(owner, namespace, cron_job, acts);
        if news {
            self.0.queue.push(key, Priority::Follow);
        }
    }

    fn take(&self, cron_job: &CronJob, gone: bool) -> Option<Box<str>> {
        let meta = &cron_job.metadata;
        let owner = digest::controlled_by(meta, &self.0.resources)?;
        let (uid, name) = (meta.uid.as_deref()?, meta.name.as_deref()?);
        let suspended = cron_job.spec.as_ref().and_then(|s| s.suspend) == Some(true);
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        self.set(owner, namespace, (uid, name), !gone && !suspended);
        Some(uid.into())
    }
}

impl Feed<CronJob> for CronJobs {
    fn apply(&self, cron_job: &CronJob) -> Option<Box<str>> {
        self.take(cron_job, false)
    }

    fn delete(&self, cron_job: &CronJob) {
        self.take(cron_job, true);
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for (owner, uid) in self.0.store.others(scope, true) {
            if !seen.contains(&uid) {
                self.set(&owner, "", (&uid, ""), false);
            }
        }
    }
}

/// Starts every watch; returns how many lists must be read before the first plan.
pub(super) fn start(controller: &Arc<Controller>, tasks: &mut tokio::task::JoinSet<()>) -> usize {
    let client = controller.ctx.client.0.clone();
    let names = &controller.ctx.config.namespaces;
    let scopes: Vec<Option<String>> = if names.is_empty() {
        vec![None]
    } else {
        names.iter().cloned().map(Some).collect()
    };
    let all = watcher::Config::default().page_size(PAGE);
    let labelled = all.clone().labels(crds::labels::OWNER_UID);
    let unlabelled = all.clone().labels(&format!("!{}", crds::labels::OWNER_UID));
    let mut count = 0;
    for scope in scopes {
        for (index, kind) in controller.kinds.iter().enumerate() {
            let resource = kind.resource();
            let api: Api<DynamicObject> = match &scope {
                Some(ns) => Api::namespaced_with(client.clone(), ns, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let feed = Objects {
                controller: controller.clone(),
                kind: index,
            };
            tasks.spawn(follow(
                controller.clone(),
                api,
                scope.clone(),
                feed,
                all.clone(),
            ));
            count += 1;
            for resource in kind.references() {
                let api: Api<DynamicObject> = match &scope {
                    Some(ns) => Api::namespaced_with(client.clone(), ns, &resource),
                    None => Api::all_with(client.clone(), &resource),
                };
                let feed = References {
                    controller: controller.clone(),
                    kind: index,
                    resource,
                };
                tasks.spawn(follow(
                    controller.clone(),
                    api,
                    scope.clone(),
                    feed,
                    all.clone(),
                ));
                count += 1;
            }
        }
        let jobs: Api<Job> = scoped(&client, scope.as_deref());
        tasks.spawn(follow(
            controller.clone(),
            jobs,
            scope.clone(),
            Jobs(controller.clone()),
            labelled.clone(),
        ));
        let others: Api<PartialObjectMeta<Job>> = scoped(&client, scope.as_deref());
        let feed = Strangers(controller.clone());
        tasks.spawn(follow(
            controller.clone(),
            others,
            scope.clone(),
            feed,
            unlabelled.clone(),
        ));
        let cron_jobs: Api<CronJob> = scoped(&client, scope.as_deref());
        let feed = CronJobs(controller.clone());
        tasks.spawn(follow(
            controller.clone(),
            cron_jobs,
            scope.clone(),
            feed,
            all.clone(),
        ));
        let pods: Api<Pod> = scoped(&client, scope.as_deref());
        tasks.spawn(follow(
            controller.clone(),
            pods,
            scope,
            Pods(controller.clone()),
            labelled.clone(),
        ));
        count += 4;
    }
    count
}

fn scoped<K>(client: &kube::Client, scope: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    scope.map_or_else(
        || Api::all(client.clone()),
        |ns| Api::namespaced(client.clone(), ns),
    )
}
