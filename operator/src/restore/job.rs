//! The Job of a Restore. PURE.

use crds::gobackup::Files;
use crds::labels;
use crds::mounts::Mounts;
use crds::mysql_backup::MysqlBackupSpec;
use crds::names;
use crds::plan::{Credential, Storage};
use crds::report::exit;
use crds::request::Action;
use crds::restore::{Restore, RestoreSpec, kind_of};
use crds::run::Trigger;
use crds::run_spec::{BackupRunSpec, ObjectId, RunId, RunSpec, WORK_DIR};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::EnvVar;
use kube::Resource as _;
use serde_json::{Value, json};

use super::archive::Archived;
use super::observe::Backup;
use crate::engine::Object;
use crate::job::{Pairs, Parts, PodOptions, failure_policy, work_directory};

/// Where the artefact is.
pub(super) enum Stored<'a> {
    /// In `spec.from.location`.
    Place,
    /// Where a MysqlBackup stores.
    Backup(&'a Backup),
    /// On the storages of a Backup or CronBackup.
    Archive(&'a Archived, Box<Files>),
}

/// A pod that died is replaced so often: what goes on where it was cut goes on, what can't says so.
const RETRIES: i32 = 2;
/// Exit codes by which the runner says why it ended: what it says stands.
const TOLD: [i32; 5] = [
    exit::SETTINGS,
    exit::SOURCE,
    exit::STORE,
    exit::VERIFICATION,
    exit::TIMEOUT,
];

/// Builds the Job. Of an archive it is tried once: whether half a restore may be repeated is the user's decision.
///
/// # Errors
/// A message for the user if the spec can't be expressed as a Job.
pub(super) fn build(
    object: &Object,
    spec: &RestoreSpec,
    store: &Stored<'_>,
    storage: Option<Storage<Credential>>,
    runner_image: &str,
) -> Result<Job, String> {
    let name = names::restore_name(&object.name, &object.uid);
    let mut pod = PodOptions::from(spec.clone());
    pod.inherit(of_backup(store));
    let mut mounts = Mounts::default();
    let run = run_spec(object, spec, store, storage, &name, &pod, &mut mounts);
    mounts.scratch();
    let mut inline = Pairs::new();
    let told = match store {
        Stored::Archive(archived, files) => {
            mounts.extend(files.volumes.clone(), files.mounts.clone());
            if spec.to.sessions.is_some_and(|n| n > 1) {
                // Several sessions read a file, not a stream.
                let limit = archived.options().workdir_size_limit;
                let (volume, mount) = work_directory(limit);
                mounts.extend(vec![volume], vec![mount]);
            }
            inline.extend(files.annotations.clone());
            crds::pod::env(&BackupRunSpec {
                run,
                plan: files.plan.clone(),
                gobackup: false,
                adopt_state: None,
                workdir: WORK_DIR.to_owned(),
                time_zone: None,
            })?
        }
        Stored::Place | Stored::Backup(_) => crds::pod::env(&run)?,
    };
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let labels = [
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::RESTORE_UID, &*object.uid),
    ];
    let annotations = [
        (labels::OWNER_KIND, &*object.kind),
        (labels::OWNER_NAME, &*object.name),
        (labels::ACTION, Action::Restore.as_str()),
    ];
    let once = matches!(store, Stored::Archive(..));
    Parts {
        object,
        api_version: &Restore::api_version(&()),
        name,
        labels: labels.map(owned).into(),
        annotations: annotations.map(owned).into(),
        inline,
        backoff_limit: if once { 0 } else { RETRIES },
        active_deadline_seconds: spec.active_deadline_seconds,
        pod_failure_policy: if once {
            None
        } else {
            failure_policy(&pod, &TOLD)
        },
        pod,
        own: true,
        told,
        mounts,
        runner_image,
        client_image: client_image(spec, store),
    }
    .assemble()
}

/// What the pod takes over from the backup where the Restore is silent.
fn of_backup(store: &Stored<'_>) -> PodOptions {
    match store {
        Stored::Place => PodOptions::default(),
        Stored::Backup(backup) => {
            let spec = &backup.spec;
            let pod = PodOptions::from(spec.clone());
            if spec.destination.is_some() {
                // It says itself where its artefacts are.
                return PodOptions {
                    env: vec![],
                    volumes: vec![],
                    volume_mounts: vec![],
                    ..pod
                };
            }
            PodOptions {
                env: store_of(spec),
                ..pod
            }
        }
        Stored::Archive(archived, _) => PodOptions {
            env: vec![],
            ..archived.options().into()
        },
    }
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
    pod: &PodOptions,
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
    let run = RunId {
        name: job.to_owned(),
        slot: None,
        trigger: Trigger::Manual,
    };
    RunSpec {
        source,
        destination,
        client_image: client_image(spec, store),
        identity_file: decryption.and_then(|d| mounts.identity(d)),
        // The runner ends itself before the Job is ended, so that it can say why.
        timeout_seconds: pod.before_deadline(),
        options: json!({"restore": options(spec, directory)}),
        ..RunSpec::new(Action::Restore, whose(object, spec, store), run)
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
    if let Some(replay) = &spec.replay {
        options.insert("replay".to_owned(), json!(replay));
    }
    if let Some(definers) = spec.definers {
        options.insert("definers".to_owned(), json!(definers));
    }
    if let Some(verify) = spec.verify {
        options.insert("verify".to_owned(), json!(verify));
    }
    let lists = [
        ("tables", &spec.tables),
        ("databases", &spec.databases),
        ("excludeTables", &spec.exclude_tables),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            options.insert(name.to_owned(), json!(list));
        }
    }
    let switches = [
        ("overwrite", spec.overwrite),
        ("accounts", spec.accounts),
        ("withoutForeignKeys", spec.without_foreign_keys),
        ("dryRun", spec.dry_run),
    ];
    for (name, set) in switches {
        if set {
            options.insert(name.to_owned(), json!(true));
        }
    }
    Value::Object(options)
}
