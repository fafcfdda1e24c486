//! The pod of a download (PURE): our runner with the destination and the key of the object, idle
//! until something is executed in it.

use crds::download::HOLD;
use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::request::Action;
use crds::run::{ObjectId, OperatorTells, RunId, RunSpec, SPEC_VERSION, Trigger};
use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::cluster::Object;
use crate::error::{Error, Kind as Exit, Result};

/// Seconds after which the pod ends even if nobody removes it.
const LONGEST: i64 = 24 * 3600;
/// Value of the label `app.kubernetes.io/component`.
pub(crate) const COMPONENT: &str = "download";

/// Builds the pod. The key is mounted only if the artefact is to be opened.
///
/// # Errors
/// A spec that can't be read.
pub(crate) fn build(object: &Object, name: &str, image: &str, open: bool) -> Result<Pod> {
    let unreadable = |e: String| {
        Error::new(
            Exit::Other,
            format!("the spec of {} can't be read: {e}", object.full_name()),
        )
    };
    let spec: MysqlBackupSpec =
        serde_json::from_value(object.spec().clone()).map_err(|e| unreadable(e.to_string()))?;
    let mut ours = Mounts::default();
    let run = run_spec(object, &spec, name, open, &mut ours);
    let (more, mounts) = ours.finish();
    let mut volumes = spec.volumes.clone();
    volumes.extend(more);
    let mut all = spec.volume_mounts.clone();
    all.extend(mounts);
    for mount in &mut all {
        mount.read_only = Some(true);
    }
    let mut env = spec.backup_envs.clone();
    // What says where the dumps are; who may dump is of no concern here.
    env.retain(|e| e.name == "SQLPATH");
    env.extend(crds::pod::env(&run).map_err(unreadable)?);
    let container = Container {
        name: labels::CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        args: Some(HOLD.map(str::to_owned).to_vec()),
        env: Some(env),
        env_from: Some(spec.env_from.clone()).filter(|e| !e.is_empty()),
        volume_mounts: Some(all),
        resources: spec.resources.clone(),
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
            volumes: Some(volumes),
            restart_policy: Some("Never".to_owned()),
            active_deadline_seconds: Some(LONGEST),
            termination_grace_period_seconds: Some(0),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            service_account_name: spec.service_account_name.clone(),
            image_pull_secrets: Some(spec.image_pull_secrets.clone()).filter(|s| !s.is_empty()),
            node_selector: Some(spec.node_selector.clone()).filter(|s| !s.is_empty()),
            tolerations: Some(spec.tolerations.clone()).filter(|t| !t.is_empty()),
            affinity: spec.affinity.clone(),
            security_context: Some(overlay(spec.pod_security_context.as_ref())),
            ..PodSpec::default()
        }),
        ..Pod::default()
    })
}

/// Our security context with what the object says otherwise.
fn overlay(user: Option<&PodSecurityContext>) -> PodSecurityContext {
    let ours = crds::pod::pod_security();
    let (Ok(mut merged), Ok(user)) = (serde_json::to_value(&ours), serde_json::to_value(user))
    else {
        return ours;
    };
    if let (Some(merged), Some(user)) = (merged.as_object_mut(), user.as_object()) {
        merged.extend(user.clone());
    }
    serde_json::from_value(merged).unwrap_or(ours)
}

fn run_spec(
    object: &Object,
    spec: &MysqlBackupSpec,
    name: &str,
    open: bool,
    mounts: &mut Mounts,
) -> RunSpec {
    RunSpec {
        version: SPEC_VERSION,
        action: Action::List,
        object: ObjectId {
            kind: object.kind.kind.to_owned(),
            namespace: object.namespace(),
            name: object.name(),
            uid: object.uid(),
        },
        run: RunId {
            name: name.to_owned(),
            slot: None,
            trigger: Trigger::Manual,
        },
        cluster_id: String::new(),
        source: None,
        destination: spec.destination.as_ref().map(|d| mounts.destination(d)),
        compression: spec.compression,
        encryption: None,
        recipients_file: None,
        identity_file: spec
            .decryption
            .as_ref()
            .filter(|_| open)
            .and_then(|d| mounts.identity(d)),
        retention: None,
        notifications: vec![],
        notice: None,
        operator_tells: OperatorTells::default(),
        after_failure: false,
        timeout_seconds: None,
        options: serde_json::Value::Null,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

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
        let pod = build(&object, "shop-download-1", "runner:v1", true).unwrap();
        insta::assert_snapshot!("download_pod", serde_yaml::to_string(&pod).unwrap());
        let raw = build(&object, "shop-download-1", "runner:v1", false).unwrap();
        let text = serde_json::to_string(&raw).unwrap();
        assert!(
            !text.contains("key.txt"),
            "stored bytes need no key: {text}"
        );
    }
}
