//! A short-lived pod with the caller's rights in which the runner reads the store of an object, and what is executed in it.

mod program;

use std::time::Duration;

use crds::download::PROGRAM;
use crds::parts::Decryption;
use crds::pod::COPIED_PROGRAM;

use crate::build::download_pod;
use crate::build::needs::Needs;
use crate::cluster::{Cluster, Object, fresh_id};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::MYSQL;
use crate::ui::Mark;
use crate::view::pod::Stage;
use crate::{presence, startup, stored};

pub(crate) use program::{Process, Source, start};

/// What is asked of a store.
pub(crate) struct Asked<'a> {
    /// Whose store it is.
    pub(crate) object: &'a Object,
    /// The run that is meant, if one was named.
    pub(crate) run: Option<&'a str>,
    /// The Storage to read an archive from.
    pub(crate) storage: Option<&'a str>,
    /// Image of the pod; that of the run's Job or the operator's default if unset.
    pub(crate) image: Option<&'a str>,
    /// Another key than the object's.
    pub(crate) identity: Option<Decryption>,
    /// The artefact is opened: the key is mounted.
    pub(crate) opens: bool,
    /// A program of the database's is needed: the pod runs in the object's image for it, where it names one.
    pub(crate) clients: bool,
    /// The command line behind the program.
    pub(crate) words: Vec<String>,
    /// Length and sum are found by reading all of it.
    pub(crate) measured: bool,
}

/// Makes the pod, waits until it runs, does `work` with it, and removes it whatever happens.
///
/// # Errors
/// A pod that may not be made or does not start; what `work` says.
pub(crate) async fn within<T>(
    context: &Context,
    cluster: &Cluster,
    asked: Asked<'_>,
    limit: Duration,
    work: impl AsyncFnOnce(&Source<'_>) -> Result<T>,
) -> Result<T> {
    let object = asked.object;
    let image = image(cluster, &asked).await?;
    let id = fresh_id(&object.uid());
    let short: String = object.name().chars().take(40).collect();
    let name = format!(
        "{}-download-{}",
        short.trim_end_matches(['-', '.']),
        id.chars().take(8).collect::<String>()
    );
    let clients = object.spec()["source"]["clientImage"].as_str();
    let clients = clients.filter(|image| asked.clients && !image.is_empty());
    let program = clients.map_or(PROGRAM, |_| COPIED_PROGRAM);
    let pod = if *object.kind == MYSQL {
        let storage = stored::storage(cluster, object).await?;
        let images = download_pod::Images {
            runner: &image,
            clients,
        };
        let identity = asked.identity.as_ref();
        download_pod::dump(object, &name, &images, asked.opens, identity, storage)?
    } else {
        let parts = download_pod::Archive {
            files: stored::archive_files(cluster, object, asked.storage, !asked.opens).await?,
            job: stored::body(object)?
                .spec
                .and_then(|s| s.job)
                .unwrap_or_default(),
            identity: asked.identity,
        };
        download_pod::archive(object, &name, &image, parts)?
    };
    let needs = pod.spec.as_ref().map(Needs::of_pod).unwrap_or_default();
    presence::check(context, cluster, object, &needs).await?;
    let source = Source {
        cluster,
        namespace: object.namespace(),
        pod: name.clone(),
        words: [vec![program.to_owned()], asked.words].concat(),
        measured: asked.measured,
    };
    let mut interrupt = Box::pin(crate::context::interrupted());
    // Created or not, from here on the pod is removed whatever happens.
    let ended = tokio::select! {
        ended = async {
            cluster.create_pod(&source.namespace, &pod).await?;
            context.ui.progress(Mark::Action, &format!("pod {name} (image {image})"));
            started(context, &source, limit).await?;
            work(&source).await
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

/// The image of the run's own Job if it is still there, else what the operator gives its runs; where a program of the database's is
/// needed the other way round.
async fn image(cluster: &Cluster, asked: &Asked<'_>) -> Result<String> {
    if let Some(image) = asked.image {
        return Ok(image.to_owned());
    }
    // The image of a run may be the one without programs of databases; the operator's own has them.
    if asked.clients
        && let Some(image) = cluster.runner_image().await
    {
        return Ok(image);
    }
    let (object, run) = (asked.object, asked.run);
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
