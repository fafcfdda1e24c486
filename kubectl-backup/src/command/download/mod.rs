//! `download`: brings a stored artefact here, through a short-lived pod with the caller's rights.

mod bar;
mod program;
mod transfer;

use std::time::Duration;

use crds::download::{PROGRAM, SEND};
use crds::parts::Decryption;

use self::program::Source;
use self::transfer::fetch;
use crate::build::download_pod;
use crate::build::needs::Needs;
use crate::cli::Download;
use crate::cluster::{Cluster, Object, duration, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::MYSQL;
use crate::ui::Mark;
use crate::view::pod::Stage;
use crate::{presence, select, startup, stored};

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
        let storage = args.storage.as_deref();
        let parts = download_pod::Archive {
            files: stored::archive_files(&cluster, &object, storage, args.raw).await?,
            job: stored::body(&object)?
                .spec
                .and_then(|s| s.job)
                .unwrap_or_default(),
            identity: identity(args)?,
        };
        download_pod::archive(&object, &name, &image, parts)?
    } else {
        let identity = identity(args)?;
        let storage = stored::storage(&cluster, &object).await?;
        download_pod::dump(
            &object,
            &name,
            &image,
            !args.raw,
            identity.as_ref(),
            storage,
        )?
    };
    let needs = pod.spec.as_ref().map(Needs::of_pod).unwrap_or_default();
    presence::check(context, &cluster, &object, &needs).await?;
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
    let (object, run) = select::object_or_run(cluster, &args.name).await?;
    if *object.kind == MYSQL && args.storage.is_some() {
        return Err(Error::usage(
            "--storage goes with a Backup or CronBackup of gobackup.io",
        ));
    }
    Ok((object, run.map(|run| run.name)))
}

fn identity(args: &Download) -> Result<Option<Decryption>> {
    let secret = args.decrypt_secret.as_deref();
    secret.map(crate::build::restore::decryption).transpose()
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
        let container = crds::labels::CONTAINER;
        match startup::of_pod(source.cluster, &source.namespace, &pod, container).await {
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
