//! The pod of a download (PURE): our runner with the store and the key of the object, idle
//! until something is executed in it.

use std::collections::BTreeMap;

use crds::backup::JobOptions;
use crds::download::HOLD;
use crds::gobackup::Files;
use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::parts::Decryption;
use crds::plan::{Credential, Storage};
use crds::request::Action;
use crds::run::Trigger;
use crds::run_spec::{BackupRunSpec, ObjectId, RunId, RunSpec, WORK_DIR};
use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvFromSource, EnvVar, LocalObjectReference, Pod, PodSecurityContext,
    PodSpec, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::cluster::Object;
use crate::error::{Error, Kind as Exit, Result};

/// Seconds after which the pod ends even if nobody removes it.
const LONGEST: i64 = 24 * 3600;
/// Value of the label `app.kubernetes.io/component`.
pub(crate) const COMPONENT: &str = "download";

/// What a pod needs to read the archives of a Backup.
pub(crate) struct Archive {
    /// The plan of its storages, and what the pod mounts for it.
    pub(crate) files: Files,
    /// Pod options of its runs.
    pub(crate) job: JobOptions,
    /// The age identity.
    pub(crate) identity: Option<Decryption>,
}

/// Images of a pod.
pub(crate) struct Images<'a> {
    /// That has the runner.
    pub(crate) runner: &'a str,
    /// That has the database's programs, into which the runner is copied; none where they are not needed or the runner's has them.
    pub(crate) clients: Option<&'a str>,
}

/// What differs between the pods.
#[derive(Default)]
struct Parts {
    annotations: BTreeMap<String, String>,
    env: Vec<EnvVar>,
    env_from: Vec<EnvFromSource>,
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
    resources: Option<ResourceRequirements>,
    service_account_name: Option<String>,
    image_pull_secrets: Vec<LocalObjectReference>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    affinity: Option<Affinity>,
    pod_security_context: Option<PodSecurityContext>,
}

fn unreadable(object: &Object, e: impl std::fmt::Display) -> Error {
    Error::new(
        Exit::Other,
        format!("the spec of {} can't be read: {e}", object.full_name()),
    )
}

/// Builds the pod that reads a MysqlBackup's dumps. The key, that of the object or another
/// `identity`, is mounted only if the artefact is to be opened.
///
/// # Errors
/// A spec that can't be read.
pub(crate) fn dump(
    object: &Object,
    name: &str,
    images: &Images<'_>,
    open: bool,
    identity: Option<&Decryption>,
    storage: Option<Storage<Credential>>,
) -> Result<Pod> {
    let spec: MysqlBackupSpec =
        serde_json::from_value(object.spec().clone()).map_err(|e| unreadable(object, e))?;
    let mut ours = Mounts::default();
    let destination = match storage {
        Some(storage) => Some(ours.storage(storage)),
        None => spec.destination.as_ref().map(|d| ours.destination(d)),
    };
    let identity = identity.or(spec.decryption.as_ref()).filter(|_| open);
    let run = RunSpec {
        destination,
        compression: spec.compression,
        client_image: images.clients.map(str::to_owned),
        identity_file: identity.and_then(|d| ours.identity(d)),
        ..run_spec(object, name)
    };
    let annotations = ours.annotations();
    let (more, mounts) = ours.finish();
    let mut env = spec.backup_envs;
    // What says where the dumps are; who may dump is of no concern here.
    env.retain(|e| e.name == "SQLPATH");
    env.extend(crds::pod::env(&run).map_err(|e| unreadable(object, e))?);
    let parts = Parts {
        annotations,
        env,
        env_from: spec.env_from,
        volumes: [spec.volumes, more].concat(),
        mounts: [spec.volume_mounts, mounts].concat(),
        resources: spec.resources,
        service_account_name: spec.service_account_name,
        image_pull_secrets: spec.image_pull_secrets,
        node_selector: spec.node_selector,
        tolerations: spec.tolerations,
        affinity: spec.affinity,
        pod_security_context: spec.pod_security_context,
    };
    let mut pod = pod(object, name, images.runner, parts)?;
    if let (Some(spec), Some(image)) = (&mut pod.spec, images.clients) {
        crds::pod::run_in(spec, image);
    }
    Ok(pod)
}

/// Builds the pod that reads a Backup's archives.
///
/// # Errors
/// A plan that can't be said.
pub(crate) fn archive(object: &Object, name: &str, image: &str, from: Archive) -> Result<Pod> {
    let mut ours = Mounts::default();
    ours.extend(from.files.volumes, from.files.mounts);
    let run = RunSpec {
        identity_file: from.identity.as_ref().and_then(|d| ours.identity(d)),
        ..run_spec(object, name)
    };
    let run = BackupRunSpec {
        run,
        plan: from.files.plan,
        gobackup: false,
        adopt_state: None,
        workdir: WORK_DIR.to_owned(),
        time_zone: None,
    };
    let (more, mounts) = ours.finish();
    let job = from.job;
    let parts = Parts {
        annotations: from.files.annotations,
        env: crds::pod::env(&run).map_err(|e| unreadable(object, e))?,
        env_from: vec![],
        volumes: [job.volumes, more].concat(),
        mounts: [job.volume_mounts, mounts].concat(),
        resources: job.resources,
        service_account_name: job.service_account_name,
        image_pull_secrets: job.image_pull_secrets,
        node_selector: job.node_selector,
        tolerations: job.tolerations,
        affinity: job.affinity,
        pod_security_context: job.pod_security_context,
    };
    pod(object, name, image, parts)
}

fn pod(object: &Object, name: &str, image: &str, parts: Parts) -> Result<Pod> {
    let security = crds::pod::overlay(
        &crds::pod::pod_security(),
        parts.pod_security_context.as_ref(),
    )
    .map_err(|e| unreadable(object, e))?;
    let mut mounts = parts.mounts;
    for mount in &mut mounts {
        mount.read_only = Some(true);
    }
    let container = Container {
        name: labels::CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        args: Some(HOLD.map(str::to_owned).to_vec()),
        env: Some(parts.env),
        env_from: Some(parts.env_from).filter(|e| !e.is_empty()),
        volume_mounts: Some(mounts),
        resources: parts.resources,
        security_context: Some(crds::pod::container_security()),
        ..Container::default()
    };
    Ok(Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(object.namespace()),
            labels: Some(
                [
                    (labels::MANAGED_BY, labels::PLUGIN_MANAGER),
                    ("app.kubernetes.io/component", COMPONENT),
                ]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ),
            annotations: Some(parts.annotations).filter(|a| !a.is_empty()),
            // Whatever becomes of the plugin: with the object the pod goes too.
            owner_references: Some(vec![OwnerReference {
                api_version: format!("{}/{}", object.kind.group, object.kind.version),
                kind: object.kind.kind.to_owned(),
                name: object.name(),
                uid: object.uid(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container],
            volumes: Some(parts.volumes),
            restart_policy: Some("Never".to_owned()),
            active_deadline_seconds: Some(LONGEST),
            termination_grace_period_seconds: Some(0),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            service_account_name: parts.service_account_name,
            image_pull_secrets: Some(parts.image_pull_secrets).filter(|s| !s.is_empty()),
            node_selector: Some(parts.node_selector).filter(|s| !s.is_empty()),
            tolerations: Some(parts.tolerations).filter(|t| !t.is_empty()),
            affinity: parts.affinity,
            security_context: Some(security),
            ..PodSpec::default()
        }),
        ..Pod::default()
    })
}

/// What every download is told.
fn run_spec(object: &Object, name: &str) -> RunSpec {
    let whose = ObjectId {
        kind: object.kind.kind.to_owned(),
        namespace: object.namespace(),
        name: object.name(),
        uid: object.uid(),
    };
    let run = RunId {
        name: name.to_owned(),
        slot: None,
        trigger: Trigger::Manual,
    };
    RunSpec::new(Action::List, whose, run)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    const OURS: Images<'_> = Images {
        runner: "runner:v1",
        clients: None,
    };

    #[test]
    fn restricted_and_read_only_with_the_key_where_it_opens() {
        let object = serde_json::from_value(serde_json::json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": { "name": "shop", "namespace": "prod", "uid": "u1" },
            "spec": {
                "schedule": "@daily",
                "backupEnvs": [{ "name": "PASSWORD", "valueFrom": { "secretKeyRef": { "name": "db", "key": "p" } } }],
                "destination": { "volume": { "persistentVolumeClaim": { "claimName": "dumps" }, "path": "shop" } },
                "decryption": { "age": { "identitySecretKeyRef": { "name": "age", "key": "key.txt" } } },
                "nodeSelector": { "disk": "ssd" },
            },
        }))
        .unwrap();
        let object = Object {
            kind: &crate::kind::MYSQL,
            object,
        };
        let pod = dump(&object, "shop-download-1", &OURS, true, None, None).unwrap();
        insta::assert_snapshot!("download_pod", serde_yaml::to_string(&pod).unwrap());
        let raw = dump(&object, "shop-download-1", &OURS, false, None, None).unwrap();
        let text = serde_json::to_string(&raw).unwrap();
        assert!(
            !text.contains("key.txt"),
            "stored bytes need no key: {text}"
        );
        // What needs a program of the database's runs where that is.
        let images = Images {
            clients: Some("mysql:9"),
            ..OURS
        };
        let spec = dump(&object, "shop-download-1", &images, true, None, None).unwrap();
        let spec = spec.spec.unwrap();
        let copies = &spec.init_containers.unwrap()[0];
        assert_eq!(copies.image.as_deref(), Some("runner:v1"));
        assert_eq!(spec.containers[0].image.as_deref(), Some("mysql:9"));
        assert_eq!(
            spec.containers[0].command,
            Some(vec![crds::pod::COPIED_PROGRAM.to_owned()])
        );
        let env = serde_json::to_string(&spec.containers[0].env).unwrap();
        assert!(env.contains("clientImage"), "{env}");
    }
    #[test]
    fn an_archives_pod_mounts_its_storages_and_keys_read_only() {
        let object = serde_json::from_value(serde_json::json!({
            "apiVersion": "gobackup.io/v1", "kind": "Backup",
            "metadata": { "name": "nightly", "namespace": "prod", "uid": "u1" },
            "spec": {},
        }))
        .unwrap();
        let object = Object {
            kind: &crate::kind::GOBACKUP,
            object,
        };
        let body = serde_json::from_value(serde_json::json!({ "spec": {
            "storageRefs": [{ "name": "disk" }],
            "encodeWith": { "type": "openssl", "password": "geheim" },
            "job": { "nodeSelector": { "disk": "ssd" } },
        }}))
        .unwrap();
        let mut references = crds::gobackup::References::default();
        let wanted = crds::gobackup::wanted_to_read(&body);
        references.insert(
            wanted.into_iter().find(|k| k.kind == "Storage").unwrap(),
            &serde_json::json!({ "type": "local", "config": { "path": "a" },
                "volume": { "persistentVolumeClaim": { "claimName": "store" } } }),
        );
        let plan = crds::gobackup::stored("nightly", "prod", &body, &references, None).unwrap();
        let parts = Archive {
            files: crds::gobackup::files(plan),
            job: body.spec.unwrap().job.unwrap(),
            identity: Some(crate::build::restore::decryption("age:key.txt").unwrap()),
        };
        let pod = archive(&object, "nightly-download-1", "runner:v1", parts).unwrap();
        insta::assert_snapshot!("archive_pod", serde_yaml::to_string(&pod).unwrap());
        let spec = serde_json::to_string(&pod.spec).unwrap();
        assert!(!spec.contains("geheim"), "{spec}");
    }

    #[test]
    fn a_storage_is_reached_as_the_run_reached_it() {
        let object = serde_json::from_value(serde_json::json!({
            "apiVersion": "batch.isekiro.com/v1", "kind": "MysqlBackup",
            "metadata": { "name": "shop", "namespace": "prod", "uid": "u1" },
            "spec": { "schedule": "@daily", "destination": { "storageRef": { "name": "dav" } } },
        }))
        .unwrap();
        let object = Object {
            kind: &crate::kind::MYSQL,
            object,
        };
        let spec = serde_json::from_value(serde_json::json!({
            "type": "webdav",
            "config": { "root": "http://dav", "path": "a", "username": "u", "password_ref": { "name": "dav", "key": "pw" } },
        }))
        .unwrap();
        let stored = crds::gobackup::destination::storage("path", "prod", "dav", Some(&spec));
        let storage = Some(stored.unwrap().storage);
        let pod = dump(&object, "shop-download-1", &OURS, true, None, storage).unwrap();
        insta::assert_snapshot!("storage_pod", serde_yaml::to_string(&pod).unwrap());
    }
}
