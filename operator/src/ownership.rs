//! Whose a Job or pod is. PURE.
//!
//! Labels are written by whoever may create Jobs anywhere: they find a Job, they prove nothing. A Job
//! belongs to an object only if it stands in the object's own namespace and names the object as its
//! controller, by kind, group, name and UID; a pod only if such a Job controls it. So every
//! question about a Job is asked by a [`Key`] that holds all of these: what somebody writes in
//! another namespace makes another key.

use std::sync::Arc;

use crds::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::ApiResource;

use crate::engine::Object;

/// `<kind>/<namespace>/<name>/<uid>` of an object: tells it from every other, and is fit for a log.
pub(crate) type Key = Arc<str>;

/// The key of an object.
pub(crate) fn key(kind: &str, namespace: &str, name: &str, uid: &str) -> Key {
    format!("{kind}/{namespace}/{name}/{uid}").into()
}

/// The namespace in a key.
pub(crate) fn namespace(key: &str) -> &str {
    key.split('/').nth(1).unwrap_or_default()
}

/// Key of the object that controls this Job or CronJob, if it is of one of these kinds: the proof.
pub(crate) fn controller(meta: &ObjectMeta, kinds: &[ApiResource]) -> Option<Key> {
    let owner = controlling(meta)?;
    let ours = |r: &&ApiResource| r.kind == owner.kind && r.group == group(owner);
    kinds.iter().find(ours)?;
    let namespace = meta.namespace.as_deref()?;
    Some(key(&owner.kind, namespace, &owner.name, &owner.uid))
}

/// Key of the object that a Job or pod names by label and annotations: where to look, no proof.
pub(crate) fn claimed(meta: &ObjectMeta) -> Option<Key> {
    let note = |name: &str| meta.annotations.as_ref()?.get(name);
    let uid = meta.labels.as_ref()?.get(labels::OWNER_UID)?;
    let (kind, name) = (note(labels::OWNER_KIND)?, note(labels::OWNER_NAME)?);
    Some(key(kind, meta.namespace.as_deref()?, name, uid))
}

/// True if the object controls the Job. Both are of the object's namespace.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, resource: &ApiResource, object: &Object) -> bool {
    meta.namespace.as_deref() == Some(&*object.namespace)
        && controlling(meta).is_some_and(|owner| {
            owner.kind == resource.kind
                && group(owner) == resource.group
                && owner.name == object.name
                && owner.uid == object.uid
        })
}

/// UID of the Job that controls a pod.
pub(crate) fn job_of(meta: &ObjectMeta) -> Option<&str> {
    let owner = controlling(meta)?;
    (owner.kind == "Job" && group(owner) == "batch").then_some(&*owner.uid)
}

/// The one owner that controls it: the API server lets no second one be.
fn controlling(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.as_deref()?;
    owners.iter().find(|o| o.controller == Some(true))
}

fn group(owner: &OwnerReference) -> &str {
    owner
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    fn kinds() -> Vec<ApiResource> {
        vec![
            ApiResource::erase::<crds::MysqlBackup>(&()),
            ApiResource::erase::<crds::backup::Backup>(&()),
        ]
    }

    fn shop() -> Object {
        Object {
            kind: "MysqlBackup".into(),
            namespace: "shops".into(),
            name: "shop".into(),
            uid: "u-1".into(),
            ..Object::default()
        }
    }

    /// What a Job says that the object `shop` controls, each time with one thing wrong.
    #[test]
    fn o2_a_job_is_the_objects_only_if_all_of_the_reference_fits() {
        let owner = json!({"apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup", "name": "shop", "uid": "u-1", "controller": true});
        let with = |namespace: &str, field: &str, value: Value| {
            let mut owner = owner.clone();
            owner[field] = value;
            meta(json!({
                "name": "shop-1", "namespace": namespace, "uid": "j-1", "ownerReferences": [owner],
                "labels": {labels::OWNER_UID: "u-1"},
                "annotations": {labels::OWNER_KIND: "MysqlBackup", labels::OWNER_NAME: "shop"},
            }))
        };
        let shop = shop();
        let right = key("MysqlBackup", "shops", "shop", "u-1");
        let rows = [
            (with("shops", "uid", json!("u-1")), true),
            (
                with("shops", "apiVersion", json!("batch.isekiro.com/v2")),
                true,
            ),
            (with("evil", "uid", json!("u-1")), false),
            (with("shops", "uid", json!("u-2")), false),
            (with("shops", "name", json!("shop2")), false),
            (with("shops", "kind", json!("Backup")), false),
            (with("shops", "apiVersion", json!("gobackup.io/v1")), false),
            (with("shops", "apiVersion", json!("v1")), false),
            (with("shops", "controller", json!(false)), false),
            (with("shops", "controller", Value::Null), false),
            (with("shops", "name", json!("shop/u-1")), false),
            (with("evil", "name", json!("shops/shop")), false),
        ];
        for (meta, expected) in rows {
            let found = controller(&meta, &kinds());
            assert_eq!(found.as_ref() == Some(&right), expected, "{meta:?}");
            let kind = &kinds()[0];
            assert_eq!(is_controlled_by(&meta, kind, &shop), expected, "{meta:?}");
        }
    }

    /// Labels and annotations of another namespace name no object of this one.
    #[test]
    fn o2_a_label_points_into_its_own_namespace_alone() {
        let labelled = |namespace: &str| {
            meta(json!({
                "name": "p", "namespace": namespace, "labels": {labels::OWNER_UID: "u-1"},
                "annotations": {labels::OWNER_KIND: "MysqlBackup", labels::OWNER_NAME: "shop"},
            }))
        };
        let right = key("MysqlBackup", "shops", "shop", "u-1");
        assert_eq!(claimed(&labelled("shops")), Some(right.clone()));
        assert_ne!(claimed(&labelled("evil")), Some(right.clone()));
        assert_eq!(namespace(&right), "shops");
        assert_eq!(controller(&labelled("shops"), &kinds()), None);
    }

    #[test]
    fn o2_a_pod_is_a_jobs_only_if_the_job_controls_it() {
        let pod = |owner: Value| meta(json!({"name": "p", "ownerReferences": [owner]}));
        let right = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-1", "controller": true});
        assert_eq!(job_of(&pod(right.clone())), Some("j-1"));
        for (field, value) in [
            ("controller", json!(false)),
            ("controller", Value::Null),
            ("kind", json!("CronJob")),
            ("apiVersion", json!("batch.volcano.sh/v1alpha1")),
        ] {
            let mut wrong = right.clone();
            wrong[field] = value;
            assert_eq!(job_of(&pod(wrong.clone())), None, "{wrong}");
        }
    }
}
