//! `logs`: what a run printed, from its newest pod.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::mpsc;

use crate::cli::{LogFormat, Logs};
use crate::cluster::{Cluster, LogOptions, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::select::{self, find_run, never_ran, unlisted};
use crate::startup;
use crate::ui::Mark;
use crate::view::log::readable;
use crate::view::pod::{Stage, container};
use crate::view::runs::outcome;
use crate::waiting::log_stream::stream;

/// Prints a log.
///
/// # Errors
/// No such run; a run whose pods are gone.
pub(crate) async fn run(context: &Context, args: &Logs) -> Result<()> {
    let cluster = context.cluster().await?;
    if let Some(name) = args.name.as_deref().and_then(select::restore_name) {
        let object = select::restore(&cluster, name).await?;
        let namespace = object.namespace();
        let pod = match object.restore_status().job {
            Some(job) => cluster.pods(&namespace, &job).await?.pop(),
            None => None,
        };
        let pod = pod.ok_or_else(|| {
            Error::new(
                Exit::NotFound,
                format!(
                    "{} has no pod: it has not begun, or its pod is gone",
                    object.full_name()
                ),
            )
        })?;
        return print(context, &cluster, args, &namespace, &pod).await;
    }
    let (object, name) = match &args.name {
        Some(name) => {
            let found = find_run(&cluster, name).await?;
            (found.object, found.name)
        }
        None => {
            let object = select::one(context, &cluster, None, "logs").await?;
            let run = object.current_run().ok_or_else(|| never_ran(&object))?;
            (object, run.name)
        }
    };
    let pod = pod(context, &cluster, args, &object, &name).await?;
    print(context, &cluster, args, &object.namespace(), &pod).await
}

/// The newest pod of the run; with `-f` one that has started.
async fn pod(
    context: &Context,
    cluster: &Cluster,
    args: &Logs,
    object: &Object,
    run: &str,
) -> Result<Pod> {
    let namespace = object.namespace();
    let mut said = String::new();
    loop {
        let mut pods = cluster.pods(&namespace, run).await?;
        let others: Vec<String> = pods
            .iter()
            .rev()
            .skip(1)
            .filter_map(|p| p.metadata.name.clone())
            .collect();
        let Some(pod) = pods.pop() else {
            let found = find_run(cluster, &format!("run/{run}")).await?;
            let Some(known) = found.run else {
                return Err(unlisted(object, run));
            };
            if known.result.is_final() {
                return Err(gone(context, &known));
            }
            let why = startup::of_job(cluster, &namespace, run).await;
            let why = why.map_or_else(
                || outcome(&known, context.now()),
                |why| format!("has no pod yet: {why}"),
            );
            if !args.follow {
                return Err(not_begun(&format!("{run} {why}"), run));
            }
            if said != why {
                context.ui.progress(Mark::Wait, &format!("{run} {why}"));
                said = why;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        let name = match &args.container {
            Some(name) => named_container(&pod, name)?,
            None => container(&pod).unwrap_or_default(),
        };
        let stage = startup::of_pod(cluster, &namespace, &pod, &name).await;
        let Stage::Waiting(why) = stage else {
            if !others.is_empty() && said.is_empty() {
                context.ui.note(&format!(
                    "Showing the newest of {} pods; the others: {}",
                    others.len() + 1,
                    others.join(", ")
                ));
            }
            return Ok(pod);
        };
        let pod_name = pod.metadata.name.unwrap_or_default();
        if !args.follow {
            return Err(not_begun(
                &format!("pod {pod_name} has not started: {why}"),
                run,
            ));
        }
        if said != why {
            context
                .ui
                .progress(Mark::Wait, &format!("pod {pod_name}: {why}"));
            said = why;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The container of this name, which may be an init container.
fn named_container(pod: &Pod, name: &str) -> Result<String> {
    let spec = pod.spec.clone().unwrap_or_default();
    let init = spec.init_containers.unwrap_or_default();
    let names: Vec<String> = init
        .into_iter()
        .chain(spec.containers)
        .map(|c| c.name)
        .collect();
    if names.iter().any(|n| n == name) {
        return Ok(name.to_owned());
    }
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    Err(Error::usage(format!(
        "pod {pod} has no container {name:?}; its containers are {}",
        names.join(", ")
    )))
}

fn not_begun(why: &str, run: &str) -> Error {
    Error::new(Exit::Other, why).hint(format!("wait for it: kubectl backup logs {run} -f"))
}

fn gone(context: &Context, run: &crds::run::Run) -> Error {
    let outcome = outcome(run, context.now());
    Error::new(
        Exit::NotFound,
        format!(
            "the pods of {} are gone, and their log with them; the run {outcome}",
            run.name
        ),
    )
    .hint(format!(
        "what is known of it: kubectl backup describe {}",
        run.name
    ))
}

async fn print(
    context: &Context,
    cluster: &Cluster,
    args: &Logs,
    namespace: &str,
    pod: &Pod,
) -> Result<()> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let container = args.container.clone().or_else(|| container(pod));
    let words = args
        .output
        .map_or(context.ui.is_read(), |format| format == LogFormat::Text);
    let tell = |line: &str| {
        // What --timestamps put in front stays there.
        let (time, rest) = match line.split_once(' ').filter(|_| args.timestamps) {
            Some((time, rest)) => (format!("{time} "), rest),
            None => (String::new(), line),
        };
        match words {
            true => context
                .ui
                .line(&format!("{time}{}", readable(rest, context.zone))),
            false => context.ui.line(line),
        }
    };
    // Following everything survives broken streams and restarts.
    if args.follow && args.tail < 0 && !args.previous && !args.timestamps {
        let (sender, mut lines) = mpsc::channel(256);
        let (cluster, namespace) = (cluster.clone(), namespace.to_owned());
        let follow = tokio::spawn(stream(
            cluster,
            namespace,
            name,
            container.unwrap_or_default(),
            sender,
        ));
        while let Some(line) = lines.recv().await {
            tell(&line)?;
        }
        let _ = follow.await;
        return Ok(());
    }
    let options = LogOptions {
        container,
        follow: args.follow,
        tail: (args.tail >= 0).then_some(args.tail),
        previous: args.previous,
        timestamps: args.timestamps,
    };
    let mut lines = cluster.log(namespace, &name, &options).await?;
    while let Some(line) = lines.next().await {
        tell(&line?)?;
    }
    Ok(())
}
