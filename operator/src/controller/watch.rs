//! Watches feed the store and the queue. Lists come in pages.

mod feeds;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crds::text::chain;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use self::feeds::References;
pub(super) use self::feeds::{CronJobs, Feed, ForeignJobs, Jobs, Objects, Pods};
use super::shared::Controller;
use crate::guard;
use crate::metrics::Task;

/// Objects a page of a list.
const PAGE: u32 = 500;

/// Longest wait before a watch is begun anew, and before a kind that is not installed is looked for
/// again.
const LONGEST: Duration = Duration::from_secs(30);

/// Lists of a kind that was there, answered with 404 in a row, until its objects count as gone: an
/// API server that starts may not know it yet.
const GONE_AFTER: u32 = 4;

/// Failures of one watch in a row. The watcher itself would try at once; that a list is begun is no
/// success yet.
#[derive(Debug, Default)]
struct Patience {
    failures: u32,
    /// What was logged last: the same is said once.
    told: String,
}

impl Patience {
    /// Counts a failure; returns how long to wait, and whether it is news.
    fn failed(&mut self, error: &watcher::Error) -> (Duration, bool) {
        let said = chain(error);
        let news = self.told != said;
        self.told = said;
        let doubled = Duration::from_millis(800 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        (doubled.min(LONGEST), news)
    }

    fn succeeded(&mut self) {
        if self.failures > 0 {
            *self = Self::default();
        }
    }
}

/// Follows one watch for ever: one that ends, or panics, is begun anew.
async fn keep<K, F>(
    controller: Arc<Controller>,
    what: String,
    api: Api<K>,
    scope: Option<String>,
    feed: F,
    config: watcher::Config,
) where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    F: Feed<K>,
{
    let metrics = controller.ctx.metrics.clone();
    let mut first = true;
    let mut ends: u32 = 0;
    loop {
        let stream = watcher(api.clone(), config.clone()).boxed();
        let work = follow(
            &controller,
            &what,
            stream,
            scope.as_deref(),
            &feed,
            &mut first,
        );
        let ended = guard::caught(&metrics, Task::Watch, work).await;
        let wait = Duration::from_millis(800 << ends.min(6)).min(LONGEST);
        ends = ends.saturating_add(1);
        match ended {
            Ok(()) => {
                tracing::warn!(kind = what, again = ?wait, "a watch ended; it is begun anew");
            }
            Err(said) => {
                tracing::error!(kind = what, panic = %said, again = ?wait, "a watch panicked; it is begun anew");
            }
        }
        tokio::time::sleep(wait).await;
    }
}

/// Follows one watch to its end. `first` is true until its first list was read.
async fn follow<K, F>(
    controller: &Arc<Controller>,
    what: &str,
    mut stream: impl Stream<Item = watcher::Result<Event<K>>> + Unpin,
    scope: Option<&str>,
    feed: &F,
    first: &mut bool,
) where
    K: kube::Resource,
    F: Feed<K>,
{
    let metrics = &controller.ctx.metrics;
    // What can't be taken in costs that object alone.
    let guarded = |object: &K, work: &dyn Fn(&K) -> Option<Box<str>>| {
        let taken = guard::caught_now(metrics, Task::Watch, || work(object));
        taken.unwrap_or_else(|said| {
            let meta = object.meta();
            let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
            tracing::error!(kind = what, namespace, name, panic = %said, "an object can't be taken in; it is left out");
            None
        })
    };
    let apply = |object: &K| guarded(object, &|o| feed.apply(o));
    let mut seen = HashSet::new();
    let mut patience = Patience::default();
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(object)) => seen.extend(apply(&object)),
            Ok(Event::InitDone) => {
                patience.succeeded();
                feed.retain(&seen, scope);
                seen = HashSet::new();
                if std::mem::take(first) {
                    controller.synced();
                }
            }
            Ok(Event::Apply(object)) => {
                patience.succeeded();
                apply(&object);
            }
            Ok(Event::Delete(object)) => {
                patience.succeeded();
                guarded(&object, &|o| {
                    feed.delete(o);
                    None
                });
            }
            Err(error) => {
                let (mut wait, news) = patience.failed(&error);
                let unknown =
                    is_unknown_kind(&error) && (*first || patience.failures >= GONE_AFTER);
                if unknown {
                    // It has no objects: nothing waits for its list.
                    wait = LONGEST;
                    feed.retain(&HashSet::new(), scope);
                    if std::mem::take(first) {
                        controller.synced();
                        patience.failures = GONE_AFTER;
                    }
                }
                let news = news || (unknown && patience.failures == GONE_AFTER);
                if news && unknown {
                    tracing::info!(kind = what, again = ?wait, "the kind is not installed; it is looked for again");
                } else if news {
                    tracing::warn!(kind = what, error = %chain(&error), "a watch failed; it is begun anew");
                }
                tokio::time::sleep(wait).await;
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

/// Starts every watch; returns how many lists must be read before the first plan.
pub(super) fn start(controller: &Arc<Controller>, tasks: &mut JoinSet<()>) -> usize {
    let names = &controller.ctx.config.namespaces;
    let scopes: Vec<Option<String>> = if names.is_empty() {
        vec![None]
    } else {
        names.iter().cloned().map(Some).collect()
    };
    let mut watches = Watches {
        controller,
        tasks,
        count: 0,
    };
    for scope in scopes {
        watches.of_kinds(scope.as_deref());
        watches.of_jobs(scope.as_deref());
    }
    watches.count
}

/// The watches being started.
struct Watches<'a> {
    controller: &'a Arc<Controller>,
    tasks: &'a mut JoinSet<()>,
    count: usize,
}

impl Watches<'_> {
    fn add<K, F>(
        &mut self,
        what: String,
        api: Api<K>,
        scope: Option<&str>,
        feed: F,
        config: watcher::Config,
    ) where
        K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
        F: Feed<K> + 'static,
    {
        let (controller, scope) = (self.controller.clone(), scope.map(str::to_owned));
        self.tasks
            .spawn(keep(controller, what, api, scope, feed, config));
        self.count += 1;
    }

    fn of_kinds(&mut self, scope: Option<&str>) {
        let controller = self.controller;
        let all = || watcher::Config::default().page_size(PAGE);
        for (index, kind) in controller.kinds.iter().enumerate() {
            let resource = kind.resource();
            let api = self.dynamic(scope, &resource);
            let feed = Objects {
                controller: controller.clone(),
                kind: index,
            };
            self.add(name(&resource), api, scope, feed, all());
            for resource in kind.references() {
                let api = self.dynamic(scope, &resource);
                let what = name(&resource);
                let feed = References {
                    controller: controller.clone(),
                    kind: index,
                    resource,
                };
                self.add(what, api, scope, feed, all());
            }
        }
    }

    fn of_jobs(&mut self, scope: Option<&str>) {
        let controller = self.controller;
        let client = &controller.ctx.client.0;
        let all = || watcher::Config::default().page_size(PAGE);
        let labelled = all().labels(crds::labels::OWNER_UID);
        let unlabelled = all().labels(&format!("!{}", crds::labels::OWNER_UID));
        let jobs: Api<Job> = scoped(client, scope);
        let feed = Jobs(controller.clone());
        self.add("jobs".into(), jobs, scope, feed, labelled.clone());
        let others: Api<PartialObjectMeta<Job>> = scoped(client, scope);
        let feed = ForeignJobs(controller.clone());
        self.add("jobs of others".into(), others, scope, feed, unlabelled);
        let cron_jobs: Api<CronJob> = scoped(client, scope);
        let feed = CronJobs(controller.clone());
        self.add("cronjobs".into(), cron_jobs, scope, feed, all());
        let pods: Api<Pod> = scoped(client, scope);
        let feed = Pods(controller.clone());
        self.add("pods".into(), pods, scope, feed, labelled);
    }

    fn dynamic(&self, scope: Option<&str>, resource: &ApiResource) -> Api<DynamicObject> {
        let client = self.controller.ctx.client.0.clone();
        match scope {
            Some(ns) => Api::namespaced_with(client, ns, resource),
            None => Api::all_with(client, resource),
        }
    }
}

fn name(resource: &ApiResource) -> String {
    format!("{}.{}", resource.plural, resource.group)
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
