//! The Job of a Backup's run: the pod of `MysqlBackup`'s, with the plan in place of source and
//! destination. PURE.

use std::collections::BTreeMap;

use crds::backup::{BackupBody, JobOptions};
use crds::gobackup::plan::{Credential, Place};
use crds::gobackup::run::{
    FamilyRunSpec, SECRETS_DIR, SecretFile, VOLUMES_DIR, WORK_DIR, with_files,
};
use crds::gobackup::{Plan, Resolved};
use crds::labels::PREFIX;
use crds::mysql_backup::{MysqlBackupSpec, VolumeDestination};
use crds::run::{RunSpec, SPEC_ENV};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    DownwardAPIProjection, DownwardAPIVolumeFile, EmptyDirVolumeSource, KeyToPath,
    ObjectFieldSelector, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount,
    VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::engine::{Object, Seed};
use crate::mysql_backup::build_job;

/// Name of the volume of secrets.
const SECRETS: &str = "gobackup-secrets";
/// Name of the work directory's volume.
const WORK: &str = "gobackup-work";
/// Owner may read; with fsGroup the kubelet adds the group.
const MODE: i32 = 0o400;

/// Builds the Job of a run.
///
/// # Errors
/// A sentence, where the object can't be said as a Job.
pub(super) fn build(
    object: &Object,
    body: &BackupBody,
    resolved: Resolved,
    seed: &Seed,
    runner_image: &str,
) -> Result<Job, String> {
    let options = body
        .spec
        .as_ref()
        .and_then(|s| s.job.clone())
        .unwrap_or_default();
    let image = options
        .image
        .clone()
        .unwrap_or_else(|| runner_image.to_owned());
    let (plan, files) = with_files(resolved.plan);
    let mut spec = pod_options(body, &options);
    let mut inline = BTreeMap::new();
    spec.volumes.extend(secrets(&files, &mut inline));
    if !files.is_empty() {
        spec.volume_mounts.push(mount(SECRETS, SECRETS_DIR, true));
    }
    for (name, volume) in volumes(&plan) {
        let id = format!("storage-{}", crds::names::short_hash(&[&name], 10));
        spec.volumes.push(storage_volume(&id, &volume));
        let mut at = mount(&id, &format!("{VOLUMES_DIR}/{name}"), false);
        at.sub_path = volume
            .path
            .as_deref()
            .map(|p| p.trim_matches('/').to_owned())
            .filter(|p| !p.is_empty());
        spec.volume_mounts.push(at);
    }
    spec.volumes
        .push(work(options.workdir_size_limit.as_deref()));
    spec.volume_mounts.push(mount(WORK, WORK_DIR, false));
    let mut job = build_job(object, "gobackup.io/v1", &spec, seed, &image)?;
    add_plan(&mut job, plan, &options)?;
    add_inline(&mut job, inline);
    Ok(job)
}

/// Builds the Job of a notice. It needs nothing the object refers to.
///
/// # Errors
/// A sentence, where the object can't be said as a Job.
pub(super) fn notice(
    object: &Object,
    body: &BackupBody,
    seed: &Seed,
    runner_image: &str,
) -> Result<Job, String> {
    let options = body.spec.as_ref().and_then(|s| s.job.clone());
    let spec = pod_options(body, &options.unwrap_or_default());
    build_job(object, "gobackup.io/v1", &spec, seed, runner_image)
}

/// The options of the pod in the words of MysqlBackup.
fn pod_options(body: &BackupBody, options: &JobOptions) -> MysqlBackupSpec {
    let o = options.clone();
    MysqlBackupSpec {
        image_pull_policy: o.image_pull_policy,
        image_pull_secrets: o.image_pull_secrets,
        backup_envs: o.env,
        volumes: o.volumes,
        volume_mounts: o.volume_mounts,
        node_selector: o.node_selector,
        resources: o.resources,
        service_account_name: o.service_account_name,
        tolerations: o.tolerations,
        affinity: o.affinity,
        priority_class_name: o.priority_class_name,
        pod_security_context: o.pod_security_context,
        security_context: o.security_context,
        pod_metadata: o.pod_metadata,
        backoff_limit: o.backoff_limit,
        active_deadline_seconds: o.active_deadline_seconds,
        startup_deadline_seconds: o.startup_deadline_seconds,
        termination_grace_period_seconds: o.termination_grace_period_seconds,
        notifications: body
            .spec
            .as_ref()
            .map(|s| s.notifications.clone())
            .unwrap_or_default(),
        ..MysqlBackupSpec::default()
    }
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// Every secret as a file of one volume. What the user wrote in plain text goes through an
/// annotation of the pod, where it is as visible as it was; neither environment nor arguments
/// hold it, and the operator needs no right to write Secrets.
fn secrets(files: &[SecretFile], inline: &mut BTreeMap<String, String>) -> Option<Volume> {
    let mut sources = vec![];
    for file in files {
        match &file.from {
            Credential::Secret {
                name,
                key,
                optional,
            } => sources.push(VolumeProjection {
                secret: Some(SecretProjection {
                    name: name.clone(),
                    items: Some(vec![KeyToPath {
                        key: key.clone(),
                        path: file.path.clone(),
                        mode: None,
                    }]),
                    optional: optional.then_some(true),
                }),
                ..VolumeProjection::default()
            }),
            Credential::Literal(text) => {
                let annotation = format!("{PREFIX}inline-{}", inline.len());
                sources.push(VolumeProjection {
                    downward_api: Some(DownwardAPIProjection {
                        items: Some(vec![DownwardAPIVolumeFile {
                            path: file.path.clone(),
                            field_ref: Some(ObjectFieldSelector {
                                field_path: format!("metadata.annotations['{annotation}']"),
                                api_version: None,
                            }),
                            ..DownwardAPIVolumeFile::default()
                        }]),
                    }),
                    ..VolumeProjection::default()
                });
                inline.insert(annotation, text.clone());
            }
        }
    }
    (!sources.is_empty()).then(|| Volume {
        name: SECRETS.to_owned(),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(MODE),
            sources: Some(sources),
        }),
        ..Volume::default()
    })
}

/// Volumes of local storages, by the storage's name.
fn volumes(plan: &Plan<String>) -> Vec<(String, VolumeDestination)> {
    let volume = |s: &crds::gobackup::plan::Storage<String>| match &s.place {
        Place::Local {
            volume: Some(volume),
        } => Some((s.name.clone(), (**volume).clone())),
        _ => None,
    };
    plan.storages.iter().filter_map(volume).collect()
}

fn storage_volume(name: &str, volume: &VolumeDestination) -> Volume {
    Volume {
        name: name.to_owned(),
        persistent_volume_claim: volume.persistent_volume_claim.clone(),
        nfs: volume.nfs.clone(),
        host_path: volume.host_path.clone(),
        csi: volume.csi.clone(),
        ephemeral: volume.ephemeral.clone(),
        empty_dir: volume.empty_dir.clone(),
        ..Volume::default()
    }
}

fn work(limit: Option<&str>) -> Volume {
    Volume {
        name: WORK.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: None,
            size_limit: limit.map(|l| Quantity(l.to_owned())),
        }),
        ..Volume::default()
    }
}

/// Puts the plan beside what every run is told; `$` is doubled, as the kubelet expects.
fn add_plan(job: &mut Job, plan: Plan<String>, options: &JobOptions) -> Result<(), String> {
    let zone = options
        .env
        .iter()
        .rev()
        .find(|e| e.name == "TZ")
        .and_then(|e| e.value.clone());
    let pod = job.spec.as_mut().and_then(|s| s.template.spec.as_mut());
    let env = pod
        .into_iter()
        .flat_map(|p| &mut p.containers)
        .filter_map(|c| c.env.as_mut())
        .flatten();
    let variable = env
        .into_iter()
        .find(|e| e.name == SPEC_ENV)
        .ok_or("the pod has no run spec")?;
    let text = variable
        .value
        .clone()
        .unwrap_or_default()
        .replace("$$", "$");
    let mut run: RunSpec = serde_json::from_str(&text).map_err(|e| format!("run spec: {e}"))?;
    run.destination = None;
    let spec = FamilyRunSpec {
        run,
        plan: without_volumes(plan),
        workdir: WORK_DIR.to_owned(),
        time_zone: zone.filter(|z| !z.is_empty()),
    };
    let text = serde_json::to_string(&spec).map_err(|e| format!("run spec: {e}"))?;
    variable.value = Some(text.replace('$', "$$"));
    Ok(())
}

/// The runner needs to know that there is a volume, not which.
fn without_volumes(mut plan: Plan<String>) -> Plan<String> {
    for storage in &mut plan.storages {
        if let Place::Local {
            volume: Some(volume),
        } = &mut storage.place
        {
            **volume = VolumeDestination::default();
        }
    }
    plan
}

fn add_inline(job: &mut Job, inline: BTreeMap<String, String>) {
    let template = job.spec.as_mut().map(|s| &mut s.template);
    if let Some(metadata) = template.and_then(|t| t.metadata.as_mut()) {
        metadata.annotations.get_or_insert_default().extend(inline);
    }
}
