//! The Job of a Restore. PURE.

use std::collections::BTreeMap;

use crds::gobackup::Files;
use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::names;
use crds::plan::{Credential, Storage};
use crds::pod::overlay;
use crds::request::Action;
use crds::restore::{Restore, RestoreSpec, kind_of};
use crds::run::Trigger;
use crds::run_spec::{
    BackupRunSpec, ObjectId, OperatorTells, RunId, RunSpec, SPEC_VERSION, WORK_DIR,
};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, LocalObjectReference, PodSecurityContext, PodSpec, PodTemplateSpec,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource as _;
use serde_json::{Value, json};

use super::archive::Archived;
use super::observe::Backup;
use crate::engine::Object;
use crate::job::pod::{in_client_image, pull_policy, some};

/// Seconds to SIGKILL where the spec is silent.
const GRACE: i64 = 60;

/// Where the artefact is.
pub(super) enum Stored<'a> {
    /// In `spec.from.location`.
    Place,
    /// Where a MysqlBackup stores.
    Backup(&'a Backup),
    /// On the storages of a Backup or CronBackup.
    Archive(&'a Archived, Box<Files>),
}

/// Builds the Job. It is tried once: whether half a restore may be repeated is the user's decision.
///
/// # Errors
/// A sentence, where the spec can't be said as a Job.
pub(super) fn build(
    object: &Object,
    spec: &RestoreSpec,
    store: &Stored<'_>,
    storage: Option<Storage<Credential>>,
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
    let mut mounts = Mounts::default();
    let run = run_spec(object, spec, store, storage, &name, &mut mounts);
    let mut annotations = notes.clone();
    annotations.extend(mounts.annotations());
    let mut pod = pod(spec, store, run, mounts, runner_image)?;
    if let Stored::Archive(_, files) = store {
        annotations.extend(files.annotations.clone());
    }
    if let Some(image) = client_image(spec, store) {
        in_client_image(&mut pod, &image);
    }
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
                    annotations: Some(annotations),
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
    spec: &RestoreSpec,
    store: &Stored<'_>,
    run: RunSpec,
    mut mounts: Mounts,
    runner_image: &str,
) -> Result<PodSpec, String> {
    mounts.scratch();
    let lent = Lent::of(store);
    let (mut volumes, mut at) = (spec.volumes.clone(), spec.volume_mounts.clone());
    let fresh = |name: &str| !spec.volumes.iter().any(|v| v.name == name);
    volumes.extend(lent.volumes.iter().filter(|v| fresh(&v.name)).cloned());
    at.extend(lent.mounts.iter().filter(|m| fresh(&m.name)).cloned());
    let mut env = lent.env;
    match store {
        Stored::Archive(_, files) => {
            mounts.extend(files.volumes.clone(), files.mounts.clone());
            let run = BackupRunSpec {
                run,
                plan: files.plan.clone(),
                gobackup: false,
                adopt_state: None,
                workdir: WORK_DIR.to_owned(),
                time_zone: None,
            };
            env.extend(crds::pod::env(&run)?);
        }
        Stored::Place | Stored::Backup(_) => env.extend(crds::pod::env(&run)?),
    }
    let ours = mounts.finish();
    volumes.extend(ours.0);
    at.extend(ours.1);
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
    let node_selector = if spec.node_selector.is_empty() {
        lent.node_selector
    } else {
        spec.node_selector.clone()
    };
    let account = spec.service_account_name.clone();
    let context = spec.pod_security_context.as_ref();
    Ok(PodSpec {
        containers: vec![container],
        restart_policy: Some("Never".to_owned()),
        volumes: some(volumes),
        node_selector: Some(node_selector).filter(|s| !s.is_empty()),
        tolerations: some(or(&spec.tolerations, lent.tolerations)),
        affinity: spec.affinity.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        service_account_name: account.or(lent.service_account_name),
        image_pull_secrets: some(or(&spec.image_pull_secrets, lent.image_pull_secrets)),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(overlay(
            &crds::pod::pod_security(),
            context.or(lent.pod_security_context.as_ref()),
        )?),
        termination_grace_period_seconds: Some(
            spec.termination_grace_period_seconds.unwrap_or(GRACE),
        ),
        ..PodSpec::default()
    })
}

/// What the pod takes over from the backup where the Restore is silent: its store may be on one
/// node, or be reached by one service account, alone.
#[derive(Default)]
struct Lent {
    env: Vec<EnvVar>,
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    service_account_name: Option<String>,
    image_pull_secrets: Vec<LocalObjectReference>,
    pod_security_context: Option<PodSecurityContext>,
}

impl Lent {
    fn of(store: &Stored<'_>) -> Self {
        match store {
            Stored::Place => Self::default(),
            Stored::Backup(backup) => {
                let spec = backup.spec.clone();
                let untyped = spec.destination.is_none();
                Self {
                    env: if untyped { store_of(&spec) } else { vec![] },
                    volumes: if untyped { spec.volumes } else { vec![] },
                    mounts: if untyped { spec.volume_mounts } else { vec![] },
                    node_selector: spec.node_selector,
                    tolerations: spec.tolerations,
                    service_account_name: spec.service_account_name,
                    image_pull_secrets: spec.image_pull_secrets,
                    pod_security_context: spec.pod_security_context,
                }
            }
            Stored::Archive(archived, _) => {
                let job = archived.options();
                Self {
                    env: vec![],
                    volumes: job.volumes,
                    mounts: job.volume_mounts,
                    node_selector: job.node_selector,
                    tolerations: job.tolerations,
                    service_account_name: job.service_account_name,
                    image_pull_secrets: job.image_pull_secrets,
                    pod_security_context: job.pod_security_context,
                }
            }
        }
    }
}

/// What the Restore names, else what is lent.
fn or<T: Clone>(own: &[T], lent: Vec<T>) -> Vec<T> {
    if own.is_empty() { lent } else { own.to_vec() }
}

/// Image of the pod.
pub(super) fn image<'a>(spec: &'a RestoreSpec, runner_image: &'a str) -> &'a str {
    spec.image.as_deref().unwrap_or(runner_image)
}

/// The image with the clients that dumped it, unless the Restore names one of its own.
fn client_image(spec: &RestoreSpec, store: &Stored<'_>) -> Option<String> {
    let image = match store {
        Stored::Place => None,
        Stored::Backup(backup) => backup.spec.source.as_ref()?.client_image.clone(),
        Stored::Archive(archived, _) => archived.options().client_image,
    };
    image.filter(|image| spec.image.is_none() && !image.is_empty())
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
    store: &Stored<'_>,
    storage: Option<Storage<Credential>>,
    job: &str,
    mounts: &mut Mounts,
) -> RunSpec {
    let backup = match store {
        Stored::Backup(backup) => Some(*backup),
        Stored::Place | Stored::Archive(..) => None,
    };
    let source = mounts.target(&spec.to);
    let directory = spec.to.volume.as_ref().map(|v| mounts.target_volume(v));
    let location = spec.from.location.as_ref();
    let destination = match storage {
        Some(storage) => Some(mounts.storage(storage)),
        None => location
            .map(|l| &l.destination)
            .or_else(|| backup.and_then(|b| b.spec.destination.as_ref()))
            .map(|d| mounts.destination(d)),
    };
    let decryption = spec
        .decryption
        .as_ref()
        .or_else(|| backup.and_then(|b| b.spec.decryption.as_ref()));
    let grace = spec.termination_grace_period_seconds.unwrap_or(GRACE);
    RunSpec {
        version: SPEC_VERSION,
        action: Action::Restore,
        object: whose(object, spec, store),
        run: RunId {
            name: job.to_owned(),
            slot: None,
            trigger: Trigger::Manual,
        },
        cluster_id: String::new(),
        source,
        destination,
        client_image: client_image(spec, store),
        compression: None,
        encryption: None,
        recipients_file: None,
        identity_file: decryption.and_then(|d| mounts.identity(d)),
        retention: None,
        notifications: vec![],
        notice: None,
        operator_tells: OperatorTells::default(),
        literal_variables: None,
        after_failure: false,
        // The runner ends itself before the Job is ended, so that it can say why.
        timeout_seconds: spec
            .active_deadline_seconds
            .map(|s| s.saturating_sub(grace).max(1)),
        options: json!({"restore": options(spec, directory)}),
    }
}

/// Whose artefacts are looked at.
fn whose(object: &Object, spec: &RestoreSpec, store: &Stored<'_>) -> ObjectId {
    let uid = match store {
        Stored::Place => None,
        Stored::Backup(backup) => Some(&backup.uid),
        Stored::Archive(archived, _) => Some(&archived.uid),
    };
    if let (Some(name), Some(uid)) = (&spec.from.name, uid) {
        return ObjectId {
            kind: kind_of(&spec.from).to_owned(),
            namespace: object.namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
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
fn options(spec: &RestoreSpec, directory: Option<String>) -> Value {
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
        (
            "key",
            spec.from
                .key
                .as_ref()
                .or_else(|| location.and_then(|l| l.key.as_ref())),
        ),
        ("database", spec.to.database.as_ref()),
        ("dump", spec.from.database.as_ref()),
        ("directory", directory.as_ref()),
        ("definer", spec.definer.as_ref()),
    ];
    for (name, text) in texts {
        options.extend(text.map(|text| (name.to_owned(), json!(text))));
    }
    if let Some(etcd) = &spec.to.etcd {
        options.insert("etcd".to_owned(), json!(etcd));
    }
    if let Some(definers) = spec.definers {
        options.insert("definers".to_owned(), json!(definers));
    }
    for (name, set) in [("overwrite", spec.overwrite), ("dryRun", spec.dry_run)] {
        if set {
            options.insert(name.to_owned(), json!(true));
        }
    }
    Value::Object(options)
}
