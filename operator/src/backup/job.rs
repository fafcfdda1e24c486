//! The Job of a Backup's run: what it is told is the plan, in place of source and destination. PURE.

use crds::backup::{BackupBody, JobOptions, RunEngine};
use crds::gobackup::{Resolved, engine, files};
use crds::group::API_VERSION;
use crds::mounts::Mounts;
use crds::request::Action;
use crds::run_spec::{BackupRunSpec, RunSpec, WORK_DIR};
use k8s_openapi::api::batch::v1::Job;

use crate::engine::{Object, Seed};
use crate::job::{PodOptions, Run, has_client, has_scratch_server, work_directory};

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
/// A message for the user if the object can't be expressed as a Job.
pub(super) fn build(
    object: &Object,
    body: &BackupBody,
    resolved: Resolved,
    seed: &Seed,
    images: Images<'_>,
) -> Result<Job, String> {
    let mut options = options(body);
    // The runner is copied into gobackup's image for the run itself; all else is the runner's.
    let mut gobackup = None;
    if engine::asked(body) == RunEngine::Gobackup {
        // It has the clients, too.
        options.client_image = None;
        let image = options.image.take();
        let image = image.unwrap_or_else(|| images.gobackup.to_owned());
        gobackup = (seed.action == Action::Backup).then_some(image);
    }
    // The image that has the clients has their servers, or none has.
    let clients = options.client_image.clone();
    let clients =
        clients.filter(|image| (has_client(seed) || has_scratch_server(seed)) && !image.is_empty());
    let mut run = Run {
        client_image: gobackup.clone().or_else(|| clients.clone()),
        ..run(object, body, &options, seed, images.runner)
    };
    let mut plan = resolved.plan;
    if has_scratch_server(seed) {
        // What a dump holds is run by a server in this pod: no database's key is near it.
        for database in &mut plan.databases {
            (database.username, database.password, database.uri) = (None, None, None);
        }
    }
    let files = files(plan);
    run.pod.volumes.extend(files.volumes);
    run.pod.volume_mounts.extend(files.mounts);
    let (work, mount) = work_directory(options.workdir_size_limit.clone());
    run.pod.volumes.push(work);
    run.pod.volume_mounts.push(mount);
    let mut mounts = Mounts::default();
    let told = BackupRunSpec {
        run: RunSpec {
            client_image: clients,
            ..run.spec(&mut mounts)
        },
        plan: files.plan,
        gobackup: gobackup.is_some(),
        adopt_state: options.adopt_state,
        workdir: WORK_DIR.to_owned(),
        time_zone: time_zone(&run.pod),
    };
    run.job(&told, mounts, files.annotations)
}

/// Builds the Job of a notice. It needs nothing the object refers to.
///
/// # Errors
/// A message for the user if the object can't be expressed as a Job.
pub(super) fn notice(
    object: &Object,
    body: &BackupBody,
    seed: &Seed,
    runner_image: &str,
) -> Result<Job, String> {
    run(object, body, &options(body), seed, runner_image).notice()
}

fn options(body: &BackupBody) -> JobOptions {
    let job = body.spec.as_ref().and_then(|s| s.job.clone());
    job.unwrap_or_default()
}

/// What the object says of every run.
fn run<'a>(
    object: &'a Object,
    body: &'a BackupBody,
    options: &'a JobOptions,
    seed: &'a Seed,
    runner_image: &'a str,
) -> Run<'a> {
    let notifications = body.spec.as_ref().map(|s| s.notifications.as_slice());
    Run {
        object,
        api_version: API_VERSION,
        seed,
        runner_image,
        // Whatever the image is called, it holds the runner.
        own: true,
        pod: PodOptions::from(options.clone()),
        client_image: None,
        notifications: notifications.unwrap_or_default(),
        decryption: options.decryption.as_ref(),
        verify: options.verify.as_ref(),
    }
}

/// Zone of the timestamp in the archive's name.
fn time_zone(pod: &PodOptions) -> Option<String> {
    let zone = pod.env.iter().rev().find(|e| e.name == "TZ")?;
    zone.value.clone().filter(|z| !z.is_empty())
}
