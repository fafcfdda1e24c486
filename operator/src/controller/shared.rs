//! What watches, workers and /metrics share: what is known of the cluster, and what is to be looked at.

use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject};

use super::queue::{Key, Priority, Queue};
use super::store::SharedStore;
use super::{foreign, limits, looks};
use crate::context::Context;
use crate::digest::{self, Kept};
use crate::kind::Kind;

/// The controller.
pub struct Controller {
    pub(super) ctx: Context,
    pub(super) kinds: Vec<Box<dyn Kind>>,
    pub(super) resources: Vec<ApiResource>,
    pub(super) store: SharedStore,
    pub(super) queue: Arc<Queue>,
    pub(super) limits: limits::Limits,
    pub(super) looks: looks::Looks,
    pub(super) foreign_installations: foreign::ForeignInstallations,
    /// Places for large objects in work.
    pub(super) large: tokio::sync::Semaphore,
    /// Lists still to be read; below zero if one was read before all were begun.
    pub(super) unsynced: tokio::sync::watch::Sender<Option<i64>>,
}

impl Controller {
    /// True once every list was read.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.unsynced.borrow() == Some(0)
    }

    /// One list was read.
    pub(super) fn synced(&self) {
        self.unsynced.send_modify(|n| *n = Some(n.unwrap_or(0) - 1));
    }

    pub(super) fn set_object(&self, kind: usize, kept: &Kept) -> (Key, bool) {
        let key = kept.object.key(&self.resources[kind].kind);
        self.store.set_object(&key, kind, kept)
    }

    pub(super) fn object_gone(&self, key: &str) {
        let key = self.store.remove_object(key);
        self.queue.forget(&key);
    }

    /// A Job changed; one that ended may make room for a run that waits for a place.
    pub(super) fn job_news(&self, key: Key, ended: bool) {
        if ended && let Some(next) = self.limits.next() {
            self.queue.push(next, Priority::Due);
        }
        self.queue.push(key, Priority::Follow);
    }

    pub(super) fn take_object(&self, kind: usize, object: DynamicObject) {
        if let Some(kept) = digest::object(object, self.kinds[kind].as_ref()) {
            self.set_object(kind, &kept);
        }
    }
}
