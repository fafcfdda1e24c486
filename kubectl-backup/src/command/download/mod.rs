//! `download`: brings a stored artefact here, through a short-lived pod with the caller's rights.

mod bar;
mod program;
mod transfer;

use std::time::Duration;

use crds::backup::BackupBody;
use crds::download::{PROGRAM, SEND};
use crds::gobackup::{References, destination, wanted_to_read};
use crds::parts::Decryption;
use crds::plan::{Credential, Storage};
use crds::storage::StorageSpec;
use kube::core::DynamicObject;

use self::program::Source;
use self::transfer::fetch;
use crate::build::download_pod;
use crate::cli::Download;
use crate::cluster::{Cluster, Object, duration, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{MYSQL, STORAGE};
use crate::select;
use crate::ui::Mark;
use crate::view::pod::{Stage, stage};

/// Downloads.
///
/// # Errors
/// No such artefact, a pod that may not be made or does not start, bytes that are not those that
/// were stored. Under the final name there is the whole file or nothing.
pub(crate) async fn run(context: &Context, args: &Download) -> Result<()> {
    let limit = duration("--timeout", &args.timeout)?;
    let cluster = context.cluster().await?;
    let (object, run) = artefact(&cluster, args).await?;
    let image = image(&cluster, args, &object, run.as_deref()).await?;
    let id = fresh_id(&object.uid());
    let short: String = object.name().chars().take(40).collect();
    let name = format!(
        "{}-download-{}",
        short.trim_end_matches(['-', '.']),
        id.chars().take(8).collect::<String>()
    );
    let archive = *object.kind != MYSQL;
    let pod = if archive {
        let parts = stored(&cluster, &object, args).await?;
        download_pod::archive(&object, &name, &image, parts)?
    } else {
        let identity = identity(args)?;
        let storage = storage(&cluster, &object).await?;
        download_pod::dump(
            &object,
            &name,
            &image,
            !args.raw,
            identity.as_ref(),
            storage,
        )?
    };
    let source = Source {
        cluster: &cluster,
        namespace: object.namespace(),
        pod: name.clone(),
        words: words(args, run.as_deref()),
        measured: archive && !args.raw,
    };
    let mut interrupt = Box::pin(crate::context::interrupted());
    // Created or not, from here on the pod is removed whatever happens.
    let ended = tokio::select! {
        ended = async {
            cluster.create_pod(&source.namespace, &pod).await?;
            context.ui.progress(Mark::Action, &format!("pod {name} (image {image})"));
            started(context, &source, limit).await?;
            fetch(context, args, &object, &source).await
        } => ended,
        kind = &mut interrupt => Err(Error::silent(kind)),
    };
    if let Err(error) = cluster.delete_pod(&source.namespace, &name).await {
        context.ui.error(&error);
        context.ui.warn(&format!(
            "pod {name} is still there: kubectl -n {} delete pod {name}",
            source.namespace
        ));
    }
    ended
}

/// The object, and the run if one was named.
async fn artefact(cluster: &Cluster, args: &Download) -> Result<(Object, Option<String>)> {
    let found = select::object_or_run(cluster, &args.name).await?;
    if *found.0.kind == MYSQL && args.storage.is_some() {
        return Err(Error::usage(
            "--storage goes with a Backup or CronBackup of gobackup.io",
        ));
    }
    Ok(found)
}

/// What a pod needs to read the archives of a Backup, by what it refers to now.
async fn stored(
    cluster: &Cluster,
    object: &Object,
    args: &Download,
) -> Result<download_pod::Archive> {
    let unreadable = |e| {
        let name = object.full_name();
        Error::new(Exit::Other, format!("{name} can't be read: {e}"))
    };
    let body: BackupBody =
        serde_json::from_value(object.object.data.clone()).map_err(unreadable)?;
    let namespace = object.namespace();
    let mut references = References::default();
    for key in wanted_to_read(&body) {
        if let Some(spec) = cluster.referred(&namespace, &key).await? {
            references.insert(key, &spec);
        }
    }
    let name = object.name();
    let storage = args.storage.as_deref();
    let mut plan = crds::gobackup::stored(&name, &namespace, &body, &references, storage).map_err(
        |unresolved| {
            Error::new(
                Exit::NotFound,
                format!("{}: {}", object.full_name(), unresolved.message()),
            )
        },
    )?;
    if args.raw {
        // Stored bytes need no key.
        plan.encrypt = None;
    }
    Ok(download_pod::Archive {
        files: crds::gobackup::files(plan),
        job: body.spec.and_then(|s| s.job).unwrap_or_default(),
        identity: identity(args)?,
    })
}

fn identity(args: &Download) -> Result<Option<Decryption>> {
    let secret = args.decrypt_secret.as_deref();
    secret.map(crate::build::restore::decryption).transpose()
}

/// The Storage that the object stores on, if it names one: read with the caller's rights, its
/// Secrets are mounted.
async fn storage(cluster: &Cluster, object: &Object) -> Result<Option<Storage<Credential>>> {
    let Some(name) = object.spec()["destination"]["storageRef"]["name"].as_str() else {
        return Ok(None);
    };
    let namespace = object.namespace();
    let wanted = Object {
        kind: &STORAGE,
        object: DynamicObject::new(name, &STORAGE.api_resource()).within(&namespace),
    };
    let found = cluster.live(&wanted).await?;
    let spec: Option<StorageSpec> =
        found.map(|f| serde_json::from_value(f.spec().clone()).unwrap_or_default());
    destination::storage(
        "spec.destination.storageRef",
        &namespace,
        name,
        spec.as_ref(),
    )
    .map(|stored| Some(stored.storage))
    .map_err(|unresolved| {
        let kind = if unresolved.missing.is_empty() {
            Exit::Other
        } else {
            Exit::NotFound
        };
        Error::new(
            kind,
            format!("{}: {}", object.full_name(), unresolved.message()),
        )
    })
}

/// The image of the run's own Job if it is still there, else what the operator gives its runs.
async fn image(
    cluster: &Cluster,
    args: &Download,
    object: &Object,
    run: Option<&str>,
) -> Result<String> {
    if let Some(image) = &args.image {
        return Ok(image.clone());
    }
    let newest = object.current_run().map(|run| run.name);
    if let Some(run) = run.map(str::to_owned).or(newest)
        && let Ok(Some(job)) = cluster.job(&object.namespace(), &run).await
    {
        let pod = job.spec.and_then(|s| s.template.spec);
        // In a pod of a client's image it is the init container's.
        let containers = pod.map(|p| [p.containers, p.init_containers.unwrap_or_default()]);
        let containers = containers.into_iter().flatten().flatten();
        let mut images = containers.filter_map(|c| c.image);
        // A user's own image need not hold our program.
        if let Some(image) = images.find(|i| i.contains("backup-runner")) {
            return Ok(image);
        }
    }
    cluster.runner_image().await.ok_or_else(|| {
        Error::new(
            Exit::NotInstalled,
            "the runner's image is not known: the run's job is gone, and the operator's deployment can't be read",
        )
        .hint("name it: --image IMAGE")
    })
}

fn words(args: &Download, run: Option<&str>) -> Vec<String> {
    let mut words = vec![PROGRAM.to_owned()];
    words.extend(SEND.map(str::to_owned));
    let mut pair = |flag: &str, value: &str| words.extend([flag.to_owned(), value.to_owned()]);
    match (&args.key, run) {
        (Some(key), _) => pair("--key", key),
        (None, Some(run)) => pair("--run", run),
        (None, None) => {}
    }
    if args.raw {
        words.push("--raw".to_owned());
    }
    words
}

/// Waits until the pod runs.
async fn started(context: &Context, source: &Source<'_>, limit: Duration) -> Result<()> {
    let deadline = tokio::time::Instant::now() + limit;
    let mut said = String::new();
    loop {
        let Some(pod) = source.cluster.pod(&source.namespace, &source.pod).await? else {
            return Err(Error::new(
                Exit::NotFound,
                format!("pod {} was deleted", source.pod),
            ));
        };
        match stage(&pod, crds::labels::CONTAINER) {
            Stage::Running(_) => return Ok(()),
            Stage::Ended(code) => {
                return Err(Error::new(
                    Exit::Other,
                    format!("pod {} ended at once with status {code}: its image is not a backup-runner that can send downloads", source.pod),
                )
                .hint("use the operator's: --image IMAGE"));
            }
            Stage::Waiting(why) => {
                if tokio::time::Instant::now() >= deadline {
                    return Err(Error::new(
                        Exit::Timeout,
                        format!("pod {} has not started: {why}", source.pod),
                    ));
                }
                if why != said {
                    context
                        .ui
                        .progress(Mark::Wait, &format!("pod {}: {why}", source.pod));
                    said = why;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
