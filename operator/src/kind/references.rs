//! Databases, Storages and their older kinds, as the watches bring them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{PoisonError, RwLock};

use crds::backup::BackupBody;
use crds::database::Database;
use crds::gobackup::{ObjectKey, wanted};
use crds::group::{DATABASE_GROUP, GROUP, STORAGE_GROUP};
use crds::labels::TOO_LARGE;
use crds::legacy::{BackupModel, PostgreSql, S3};
use crds::storage::{Storage, StorageSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{ApiResource, DynamicObject};
use serde::Deserialize as _;
use serde_json::Value;

type Found = crds::gobackup::References;

/// Every object a Backup may refer to, by namespace.
#[derive(Debug, Default)]
pub struct References {
    namespaces: RwLock<BTreeMap<String, Found>>,
    /// What their status says, by namespace; objects without conditions are not in it.
    conditions: RwLock<BTreeMap<String, BTreeMap<ObjectKey, Vec<Condition>>>>,
    /// Bytes of their specs, by namespace.
    bytes: RwLock<BTreeMap<String, BTreeMap<ObjectKey, usize>>>,
}

/// Most bytes of specs that are kept of a namespace: what comes beyond counts as too large.
const MOST: usize = 4 << 20;

/// The kinds that are watched.
pub(crate) fn resources() -> Vec<ApiResource> {
    let in_group = |mut resource: ApiResource, group: &str| {
        group.clone_into(&mut resource.group);
        resource.api_version = format!("{group}/{}", resource.version);
        resource
    };
    vec![
        ApiResource::erase::<Database>(&()),
        ApiResource::erase::<Storage>(&()),
        ApiResource::erase::<BackupModel>(&()),
        ApiResource::erase::<PostgreSql>(&()),
        in_group(ApiResource::erase::<PostgreSql>(&()), DATABASE_GROUP),
        ApiResource::erase::<S3>(&()),
        in_group(ApiResource::erase::<S3>(&()), STORAGE_GROUP),
    ]
}

fn key(group: &str, kind: &str, name: &str) -> Option<ObjectKey> {
    let group = [GROUP, DATABASE_GROUP, STORAGE_GROUP]
        .into_iter()
        .find(|g| *g == group)?;
    let kind = ["Database", "Storage", "BackupModel", "PostgreSQL", "S3"]
        .into_iter()
        .find(|k| *k == kind)?;
    Some(ObjectKey {
        group,
        kind,
        name: name.to_owned(),
    })
}

/// The spec of a Storage as the API server gives it; one that does not fit is an empty one, whose
/// problems name what it lacks.
pub(crate) fn storage_spec(object: &DynamicObject) -> StorageSpec {
    StorageSpec::deserialize(&object.data["spec"]).unwrap_or_default()
}

impl References {
    /// Takes an object in, or notes that it is gone. True if something is new.
    pub(crate) fn set(&self, object: &DynamicObject, gone: bool) -> bool {
        let types = object.types.clone().unwrap_or_default();
        let group = types.api_version.split_once('/').map_or("", |(g, _)| g);
        let Some(key) = object
            .metadata
            .name
            .as_deref()
            .and_then(|n| key(group, &types.kind, n))
        else {
            return false;
        };
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        self.set_conditions(&namespace, &key, object, gone);
        let mut all = self
            .namespaces
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let spec = &object.data["spec"];
        let marked = object.metadata.annotations.as_ref();
        let marked = marked.is_some_and(|a| a.contains_key(TOO_LARGE));
        let fits = self.takes(&namespace, &key, spec, gone || marked);
        let found = all.entry(namespace).or_default();
        if gone {
            return found.remove(&key);
        }
        if marked || !fits {
            return found.insert_too_large(key);
        }
        found.insert(key, spec)
    }

    /// Notes the bytes of an object's spec, none if it is not kept. False if there is no room for it.
    fn takes(&self, namespace: &str, key: &ObjectKey, spec: &Value, none: bool) -> bool {
        let mut all = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let here = all.entry(namespace.to_owned()).or_default();
        here.remove(key);
        let used: usize = here.values().sum();
        let new = if none { 0 } else { spec.to_string().len() };
        let fits = used + new <= MOST;
        if new > 0 && fits {
            here.insert(key.clone(), new);
        }
        if here.is_empty() {
            all.remove(namespace);
        }
        fits
    }

    /// True for an object that is there but was not read.
    pub(crate) fn is_too_large(&self, namespace: &str, key: &ObjectKey) -> bool {
        let all = self
            .namespaces
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        all.get(namespace)
            .is_some_and(|h| h.too_large.contains(key))
    }

    /// News of the conditions is no reason to look at a Backup again.
    fn set_conditions(&self, namespace: &str, key: &ObjectKey, object: &DynamicObject, gone: bool) {
        let conditions: Vec<Condition> = object
            .data
            .pointer("/status/conditions")
            .filter(|_| !gone)
            .and_then(|c| serde_json::from_value(c.clone()).ok())
            .unwrap_or_default();
        let mut all = self
            .conditions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if !conditions.is_empty() {
            let here = all.entry(namespace.to_owned()).or_default();
            here.insert(key.clone(), conditions);
        } else if let Some(here) = all.get_mut(namespace) {
            here.remove(key);
            if here.is_empty() {
                all.remove(namespace);
            }
        }
    }

    /// The conditions of an object as last seen.
    pub(crate) fn conditions(&self, namespace: &str, key: &ObjectKey) -> Vec<Condition> {
        let all = self
            .conditions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let here = all.get(namespace);
        here.and_then(|h| h.get(key)).cloned().unwrap_or_default()
    }

    /// Drops what a list did not hold; gives the namespaces in which something went.
    pub(crate) fn retain(
        &self,
        resource: &ApiResource,
        scope: Option<&str>,
        seen: &HashSet<Box<str>>,
    ) -> HashSet<String> {
        let mut changed = HashSet::new();
        let mut conditions = self
            .conditions
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all = self
            .namespaces
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        for (namespace, found) in all
            .iter_mut()
            .filter(|(ns, _)| scope.is_none_or(|s| s == ns.as_str()))
        {
            let stays = |key: &ObjectKey| {
                key.group != resource.group
                    || key.kind != resource.kind
                    || seen.contains(format!("{namespace}/{}", key.name).as_str())
            };
            let count = |f: &Found| {
                f.databases.len() + f.storages.len() + f.models.len() + f.too_large.len()
            };
            let before = count(found);
            found.databases.retain(|k, _| stays(k));
            found.storages.retain(|k, _| stays(k));
            found.models.retain(|k, _| stays(k));
            found.too_large.retain(stays);
            if let Some(here) = bytes.get_mut(namespace) {
                here.retain(|k, _| stays(k));
            }
            if let Some(here) = conditions.get_mut(namespace) {
                here.retain(|k, _| stays(k));
            }
            if count(found) != before {
                changed.insert(namespace.clone());
            }
        }
        conditions.retain(|_, here| !here.is_empty());
        bytes.retain(|_, here| !here.is_empty());
        changed
    }

    /// The key of a Storage, and what is known of it.
    pub(crate) fn storage(&self, namespace: &str, name: &str) -> (ObjectKey, Option<StorageSpec>) {
        let key = ObjectKey {
            group: GROUP,
            kind: "Storage",
            name: name.to_owned(),
        };
        let all = self
            .namespaces
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let here = all.get(namespace);
        let found = here.and_then(|h| h.storages.get(&key)).cloned();
        (key, found)
    }

    /// What a body refers to and was found in its namespace.
    pub(crate) fn of(&self, namespace: &str, body: &BackupBody) -> Found {
        let all = self
            .namespaces
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(here) = all.get(namespace) else {
            return Found::default();
        };
        let mut found = Found::default();
        for key in wanted(body) {
            if here.too_large.contains(&key) {
                found.too_large.insert(key);
            } else if let Some(spec) = here.databases.get(&key) {
                found.databases.insert(key, spec.clone());
            } else if let Some(spec) = here.storages.get(&key) {
                found.storages.insert(key, spec.clone());
            } else if let Some(spec) = here.models.get(&key) {
                found.models.insert(key, spec.clone());
            }
        }
        found
    }
}
