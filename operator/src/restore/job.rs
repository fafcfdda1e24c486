//! The Job of a Restore. PURE.

use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::names;
use crds::request::Action;
use crds::restore::{Restore, RestoreSpec, kind_of};
use crds::run::{ObjectId, OperatorTells, RunId, RunSpec, SPEC_VERSION, Trigger};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;
use serde_json::{Value, json};

use super::observe::Backup;
use crate::engine::Object;
use crate::pods::{overlay, pull_policy, some};

/// Seconds to SIGKILL where the spec is silent.
const GRACE: i64 = 60;

/// Builds the Job. It is tried once: whether half a restore may be repeated is the user's decision.
///
/// # Errors
/// A sentence, where the spec can't be said as a Job.
pub(super) fn build(
    object: &Object,
    spec: &RestoreSpec,
    backup: Option<&Backup>,
    runner_image: &str,
) -> Result<Job, String> {
    let name = names::restore_name(&object.name, &object.uid);
    let user = spec.pod_metadata.clone().unwrap_or_default();
    let (mut labels, mut notes) = (user.labels, user.annotations);
    labels.insert(labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned());
    labels.insert(labels::RESTORE_UID.to_owned(), object.uid.clone());
    notes.insert(labels::OWNER_KIND.to_owned(), object.kind.clone());
    notes.insert(labels::OWNER_NAME.to_owned(), object.name.clone());
    notes.insert(
        labels::ACTION.to_owned(),
        Action::Restore.as_str().to_owned(),
    );
    let pod = pod(object, spec, backup, &name, runner_image)?;
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(object.namespace.clone()),
            labels: Some(labels.clone()),
            annotations: Some(notes.clone()),
            owner_references: Some(vec![OwnerReference {
                api_version: Restore::api_version(&()).into_owned(),
                kind: object.kind.clone(),
                name: object.name.clone(),
                uid: object.uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            active_deadline_seconds: spec.active_deadline_seconds,
            pod_replacement_policy: Some("Failed".to_owned()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(notes),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    })
}

fn pod(
    object: &Object,
    spec: &RestoreSpec,
    backup: Option<&Backup>,
    job: &str,
    runner_image: &str,
) -> Result<PodSpec, String> {
    let mut mounts = Mounts::default();
    let run = run_spec(object, spec, backup, job, &mut mounts);
    mounts.scratch();
    let ours = mounts.finish();
    let (mut volumes, mut at) = (spec.volumes.clone(), spec.volume_mounts.clone());
    let mut env = vec![];
    if let Some(untyped) = backup.map(|b| &b.spec).filter(|s| s.destination.is_none()) {
        env = store_of(untyped);
        let fresh = |name: &str| !spec.volumes.iter().any(|v| v.name == name);
        volumes.extend(untyped.volumes.iter().filter(|v| fresh(&v.name)).cloned());
        at.extend(
            untyped
                .volume_mounts
                .iter()
                .filter(|m| fresh(&m.name))
                .cloned(),
        );
    }
    volumes.extend(ours.0);
    at.extend(ours.1);
    env.extend(crds::pod::env(&run)?);
    let container = Container {
        name: labels::CONTAINER.to_owned(),
        image: Some(image(spec, runner_image).to_owned()),
        image_pull_policy: spec.image_pull_policy.map(pull_policy).map(str::to_owned),
        env: Some(env),
        volume_mounts: some(at),
        resources: spec.resources.clone(),
        security_context: Some(overlay(
            &crds::pod::container_security(),
            spec.security_context.as_ref(),
        )?),
        termination_message_policy: Some("File".to_owned()),
        ..Container::default()
    };
    let backup = backup.map(|b| &b.spec);
    Ok(PodSpec {
        containers: vec![container],
        restart_policy: Some("Never".to_owned()),
        volumes: some(volumes),
        node_selector: Some(node_selector(spec, backup)).filter(|s| !s.is_empty()),
        tolerations: some(or(
            &spec.tolerations,
            backup.map(|b| b.tolerations.as_slice()),
        )),
        affinity: spec.affinity.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        service_account_name: spec
            .service_account_name
            .clone()
            .or_else(|| backup.and_then(|b| b.service_account_name.clone())),
        image_pull_secrets: some(or(
            &spec.image_pull_secrets,
            backup.map(|b| b.image_pull_secrets.as_slice()),
        )),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(overlay(
            &crds::pod::pod_security(),
            spec.pod_security_context
                .as_ref()
                .or_else(|| backup.and_then(|b| b.pod_security_context.as_ref())),
        )?),
        termination_grace_period_seconds: Some(
            spec.termination_grace_period_seconds.unwrap_or(GRACE),
        ),
        ..PodSpec::default()
    })
}

/// What the Restore names, else what the backup does: its store may be on one node, or be reached
/// by one service account, alone.
fn or<T: Clone>(own: &[T], backup: Option<&[T]>) -> Vec<T> {
    if own.is_empty() {
        backup.unwrap_or_default().to_vec()
    } else {
        own.to_vec()
    }
}

fn node_selector(
    spec: &RestoreSpec,
    backup: Option<&MysqlBackupSpec>,
) -> std::collections::BTreeMap<String, String> {
    if spec.node_selector.is_empty() {
        backup.map(|b| b.node_selector.clone()).unwrap_or_default()
    } else {
        spec.node_selector.clone()
    }
}

/// Image of the pod.
pub(super) fn image<'a>(spec: &'a RestoreSpec, runner_image: &'a str) -> &'a str {
    spec.image.as_deref().unwrap_or(runner_image)
}

/// The variables of a backup that say where it stores; those of its server are not wanted here.
fn store_of(spec: &MysqlBackupSpec) -> Vec<EnvVar> {
    let wanted = ["SQLPATH", "TZ"];
    let last = |name: &str| spec.backup_envs.iter().rev().find(|e| e.name == name);
    wanted.into_iter().filter_map(last).cloned().collect()
}

/// What the runner is told; it holds no secret.
fn run_spec(
    object: &Object,
    spec: &RestoreSpec,
    backup: Option<&Backup>,
    job: &str,
    mounts: &mut Mounts,
) -> RunSpec {
    let source = Some(mounts.target(&spec.to));
    let location = spec.from.location.as_ref();
    let destination = location
        .map(|l| &l.destination)
        .or_else(|| backup.and_then(|b| b.spec.destination.as_ref()))
        .map(|d| mounts.destination(d));
    let decryption = spec
        .decryption
        .as_ref()
        .or_else(|| backup.and_then(|b| b.spec.decryption.as_ref()));
    let grace = spec.termination_grace_period_seconds.unwrap_or(GRACE);
    RunSpec {
        version: SPEC_VERSION,
        action: Action::Restore,
        object: whose(object, spec, backup),
        run: RunId {
            name: job.to_owned(),
            slot: None,
            trigger: Trigger::Manual,
        },
        cluster_id: String::new(),
        source,
        destination,
        compression: None,
        encryption: None,
        recipients_file: None,
        identity_file: decryption.and_then(|d| mounts.identity(d)),
        retention: None,
        notifications: vec![],
        notice: None,
        operator_tells: OperatorTells::default(),
        after_failure: false,
        // The runner ends itself before the Job is ended, so that it can say why.
        timeout_seconds: spec.active_deadline_seconds.map(|s| (s - grace).max(1)),
        options: json!({"restore": options(spec)}),
    }
}

/// Whose artefacts are looked at.
fn whose(object: &Object, spec: &RestoreSpec, backup: Option<&Backup>) -> ObjectId {
    if let (Some(name), Some(backup)) = (&spec.from.name, backup) {
        return ObjectId {
            kind: kind_of(&spec.from).to_owned(),
            namespace: object.namespace.clone(),
            name: name.clone(),
            uid: backup.uid.clone(),
        };
    }
    let stored = spec.from.location.as_ref().and_then(|l| l.object.as_ref());
    stored.map_or_else(ObjectId::default, |stored| ObjectId {
        kind: stored.kind.clone().unwrap_or("MysqlBackup".to_owned()),
        namespace: stored
            .namespace
            .clone()
            .unwrap_or_else(|| object.namespace.clone()),
        name: stored.name.clone(),
        uid: String::new(),
    })
}

/// `options.restore` of the runner.
fn options(spec: &RestoreSpec) -> Value {
    let mut options = serde_json::Map::new();
    let location = spec.from.location.as_ref();
    let texts = [
        ("run", spec.from.run.as_ref()),
        (
            "at",
            spec.from
                .at
                .as_ref()
                .or_else(|| location.and_then(|l| l.at.as_ref())),
        ),
        ("key", location.and_then(|l| l.key.as_ref())),
        ("database", spec.to.database.as_ref()),
    ];
    for (name, text) in texts {
        options.extend(text.map(|text| (name.to_owned(), json!(text))));
    }
    for (name, set) in [("overwrite", spec.overwrite), ("dryRun", spec.dry_run)] {
        if set {
            options.insert(name.to_owned(), json!(true));
        }
    }
    Value::Object(options)
}
