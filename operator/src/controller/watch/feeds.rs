//! What each watch brings into the store and the queue.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};

use super::super::queue::{Key, Priority};
use super::super::shared::Controller;
use crate::digest;
use crate::ownership;

/// What a watch brings, for one type of object.
pub(in crate::controller) trait Feed<K>: Send + Sync {
    /// Takes one object in; returns what tells it apart.
    fn apply(&self, object: &K) -> Option<Box<str>>;
    /// One object is gone.
    fn delete(&self, object: &K);
    /// Whatever the list did not hold is gone.
    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>);
}

pub(in crate::controller) struct Objects {
    pub(in crate::controller) controller: Arc<Controller>,
    pub(in crate::controller) kind: usize,
}

impl Feed<DynamicObject> for Objects {
    fn apply(&self, object: &DynamicObject) -> Option<Box<str>> {
        let kind = self.controller.kinds[self.kind].as_ref();
        let kept = digest::object(object.clone(), kind)?;
        let (key, news) = self.controller.set_object(self.kind, &kept);
        let seen = Box::from(&*key);
        if news {
            self.controller.queue.push(key, Priority::Due);
        }
        Some(seen)
    }

    fn delete(&self, object: &DynamicObject) {
        let meta = &object.metadata;
        if let (Some(name), Some(uid)) = (&meta.name, &meta.uid) {
            let kind = &self.controller.resources[self.kind].kind;
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let key = ownership::key(kind, namespace, name, uid);
            self.controller.object_gone(&key);
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
pub(super) struct References {
    pub(super) controller: Arc<Controller>,
    pub(super) kind: usize,
    pub(super) resource: ApiResource,
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

pub(in crate::controller) struct Jobs(pub(in crate::controller) Arc<Controller>);

impl Jobs {
    fn remove(&self, key: &str, uid: &str) {
        let (key, known) = self.0.store.remove_job(key, uid);
        if known {
            self.0.job_news(key, true);
        }
    }
}

impl Feed<Job> for Jobs {
    fn apply(&self, job: &Job) -> Option<Box<str>> {
        let owner = ownership::controller(&job.metadata, &self.0.resources);
        // Its owner was taken away or changed.
        if let (Some(claimed), Some(uid)) = (ownership::claimed(&job.metadata), &job.metadata.uid)
            && Some(&claimed) != owner.as_ref()
        {
            self.remove(&claimed, uid);
        }
        let digest = digest::job(job)?;
        let uid = digest.uid.clone();
        let finished = !digest.is_active();
        let (key, news) = self.0.store.set_job(&owner?, digest);
        if news {
            self.0.job_news(key, finished);
        }
        Some(uid)
    }

    fn delete(&self, job: &Job) {
        let owner = ownership::controller(&job.metadata, &self.0.resources);
        let owners = owner.into_iter().chain(ownership::claimed(&job.metadata));
        for owner in owners {
            self.remove(&owner, job.metadata.uid.as_deref().unwrap_or_default());
        }
    }

    fn retain(&self, seen: &HashSet<Box<str>>, scope: Option<&str>) {
        for (owner, uid) in self.0.store.jobs(scope) {
            if !seen.contains(&uid) {
                self.remove(&owner, &uid);
            }
        }
    }
}

pub(in crate::controller) struct Pods(pub(in crate::controller) Arc<Controller>);

impl Pods {
    fn take(&self, pod: &Pod, gone: bool) -> Option<Box<str>> {
        // That its Job belongs to this object is looked at where the pod is asked for.
        let owner = &ownership::claimed(&pod.metadata)?;
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
pub(in crate::controller) struct ForeignJobs(pub(in crate::controller) Arc<Controller>);

impl ForeignJobs {
    fn remove(&self, owner: &str, uid: &str) {
        let (key, known) = self.0.store.remove_foreign_job(owner, uid);
        if known {
            self.0.queue.push(key, Priority::Follow);
        }
    }
}

impl Feed<PartialObjectMeta<Job>> for ForeignJobs {
    fn apply(&self, job: &PartialObjectMeta<Job>) -> Option<Box<str>> {
        let owner = ownership::controller(&job.metadata, &self.0.resources)?;
        let foreign_job = digest::foreign_job(&job.metadata)?;
        let uid = foreign_job.uid.clone();
        let (key, news) = self.0.store.set_foreign_job(&owner, foreign_job);
        if news {
            self.0.queue.push(key, Priority::Follow);
        }
        Some(uid)
    }

    fn delete(&self, job: &PartialObjectMeta<Job>) {
        let owner = ownership::controller(&job.metadata, &self.0.resources);
        if let (Some(owner), Some(uid)) = (owner, &job.metadata.uid) {
            self.remove(&owner, uid);
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
pub(in crate::controller) struct CronJobs(pub(in crate::controller) Arc<Controller>);

impl CronJobs {
    fn set(&self, owner: &str, cron_job: (&str, &str), acts: bool) {
        let (key, news) = self.0.store.set_cron_job(owner, cron_job, acts);
        if news {
            self.0.queue.push(key, Priority::Follow);
        }
    }

    fn take(&self, cron_job: &CronJob, gone: bool) -> Option<Box<str>> {
        let meta = &cron_job.metadata;
        let owner = ownership::controller(meta, &self.0.resources)?;
        let (uid, name) = (meta.uid.as_deref()?, meta.name.as_deref()?);
        let suspended = cron_job.spec.as_ref().and_then(|s| s.suspend) == Some(true);
        self.set(&owner, (uid, name), !gone && !suspended);
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
                self.set(&owner, (&uid, ""), false);
            }
        }
    }
}
