//! The Job of a Backup's run: the pod of `MysqlBackup`'s, with the plan in place of source and
//! destination. PURE.

use std::collections::BTreeMap;

use crds::backup::{BackupBody, JobOptions, RunEngine};
use crds::gobackup::{Resolved, engine, files};
use crds::mysql_backup::{MysqlBackupSpec, MysqlSource};
use crds::plan::Plan;
use crds::request::Action;
use crds::run_spec::{BackupRunSpec, RunSpec, SPEC_ENV, WORK_DIR};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::engine::{Object, Seed};
use crate::job::pod::in_client_image;
use crate::mysql_backup::{build_job, scratch_server};

/// Name of the work directory's volume.
const WORK: &str = "gobackup-work";

/// Images where the object names none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Images<'a> {
    /// The runner's.
    pub(super) runner: &'a str,
    /// gobackup's.
    pub(super) gobackup: &'a str,
}

/// Builds the Job of a run.
///
/// # Errors
/// A sentence, where the object can't be said as a Job.
pub(super) fn build(
    object: &Object,
    body: &BackupBody,
    resolved: Resolved,
    seed: &Seed,
    images: Images<'_>,
) -> Result<Job, String> {
    let mut options = body
        .spec
        .as_ref()
        .and_then(|s| s.job.clone())
        .unwrap_or_default();
    // The runner is copied into gobackup's image for the run itself; all else is the runner's.
    let mut gobackup = None;
    if engine::asked(body) == RunEngine::Gobackup {
        // It has the clients, too.
        options.client_image = None;
        let image = options.image.take();
        let image = image.unwrap_or_else(|| images.gobackup.to_owned());
        gobackup = (seed.action == Action::Backup).then_some(image);
    }
    let image = options
        .image
        .clone()
        .unwrap_or_else(|| images.runner.to_owned());
    let mut plan = resolved.plan;
    if scratch_server(seed) {
        // What a dump holds is run by a server in this pod: no database's key is near it.
        for database in &mut plan.databases {
            (database.username, database.password, database.uri) = (None, None, None);
        }
    }
    let files = files(plan);
    let mut spec = pod_options(body, &options);
    spec.volumes.extend(files.volumes);
    spec.volume_mounts.extend(files.mounts);
    spec.volumes
        .push(work(options.workdir_size_limit.as_deref()));
    spec.volume_mounts.push(VolumeMount {
        name: WORK.to_owned(),
        mount_path: WORK_DIR.to_owned(),
        ..VolumeMount::default()
    });
    let mut job = build_job(object, "gobackup.io/v1", &spec, seed, &image)?;
    // The image that has the clients has their servers, or none has.
    let servers = options
        .client_image
        .clone()
        .filter(|i| scratch_server(seed) && !i.is_empty());
    add_plan(
        &mut job,
        files.plan,
        &options,
        gobackup.is_some(),
        servers.clone(),
    )?;
    add_inline(&mut job, files.annotations);
    let pod = job.spec.as_mut().and_then(|s| s.template.spec.as_mut());
    if let (Some(image), Some(pod)) = (gobackup.or(servers), pod) {
        in_client_image(pod, &image);
    }
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
        source: o.client_image.map(|image| MysqlSource {
            client_image: Some(image),
            ..MysqlSource::default()
        }),
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
        decryption: o.decryption,
        verify: o.verify,
        termination_grace_period_seconds: o.termination_grace_period_seconds,
        notifications: body
            .spec
            .as_ref()
            .map(|s| s.notifications.clone())
            .unwrap_or_default(),
        ..MysqlBackupSpec::default()
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
fn add_plan(
    job: &mut Job,
    plan: Plan<String>,
    options: &JobOptions,
    gobackup: bool,
    servers: Option<String>,
) -> Result<(), String> {
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
    (run.source, run.destination) = (None, None);
    run.client_image = run.client_image.or(servers);
    let spec = BackupRunSpec {
        run,
        plan,
        gobackup,
        adopt_state: options.adopt_state,
        workdir: WORK_DIR.to_owned(),
        time_zone: zone.filter(|z| !z.is_empty()),
    };
    let text = serde_json::to_string(&spec).map_err(|e| format!("run spec: {e}"))?;
    variable.value = Some(text.replace('$', "$$"));
    Ok(())
}

fn add_inline(job: &mut Job, inline: BTreeMap<String, String>) {
    let template = job.spec.as_mut().map(|s| &mut s.template);
    if let Some(metadata) = template.and_then(|t| t.metadata.as_mut()) {
        metadata.annotations.get_or_insert_default().extend(inline);
    }
}
