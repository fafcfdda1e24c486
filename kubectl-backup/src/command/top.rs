//! `top`: the list, kept current, with keys for what one does next. Without a terminal it is the
//! list, once.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::build::suspension;
use crate::cli::Top;
use crate::cluster::{Cluster, LogOptions, Object, Query, fresh_id};
use crate::context::Context;
use crate::description;
use crate::error::{Error, Result};
use crate::kind::{KINDS, Target};
use crate::presence;
use crate::view::list::{Row, Shape, rows, table};
use crate::view::log::readable;
use crate::view::table::Look;
use crate::view::top::{Action, Key, ObjectName, Pager, State};

/// How often the list is read again.
const EVERY: Duration = Duration::from_secs(2);
/// Lines of a log that are shown.
const TAIL: i64 = 40;

/// Shows, until the user leaves.
///
/// # Errors
/// What the server refused.
pub(crate) async fn run(context: &Context, args: &Top) -> Result<()> {
    let cluster = context.cluster().await?;
    let query = Query {
        namespace: (!args.all_namespaces).then(|| cluster.namespace.clone()),
        labels: args.selector.clone(),
        chunk: 500,
        ..Query::default()
    };
    let (rows, hidden) = read(&cluster, &query, context.now()).await?;
    let mut state = State {
        rows,
        namespaced: args.all_namespaces,
        ..State::default()
    };
    if !context.ui.is_screen() {
        context.left_out(&hidden);
        let shape = Shape {
            namespace: args.all_namespaces,
            ..Shape::default()
        };
        let shown = table(&state.rows, shape, context.now());
        return context.ui.table(&shown, false);
    }
    if let Some(error) = hidden.first() {
        state.message = format!("left out: {}", error.message);
    }
    let (next, mut keys) = keyboard(context);
    let mut ticks = tokio::time::interval(EVERY);
    next.send(()).await.map_err(|_| gone())?;
    loop {
        context
            .ui
            .screen(&state.frame(context.ui.height(), look(context), context.now()))?;
        tokio::select! {
            _ = ticks.tick() => match read(&cluster, &query, context.now()).await {
                Ok((rows, _)) => state.rows = rows,
                Err(error) => state.message = error.message.lines().next().unwrap_or_default().to_owned(),
            },
            key = keys.recv() => {
                let action = state.press(key.ok_or_else(gone)?);
                if action == Some(Action::Quit) {
                    return Ok(());
                }
                if let Some(action) = action {
                    act(context, &cluster, &mut state, action, &next, &mut keys).await?;
                }
                next.send(()).await.map_err(|_| gone())?;
            }
        }
    }
}

fn look(context: &Context) -> Look {
    Look {
        color: context.ui.color(),
        no_headers: false,
        width: context.ui.width(),
    }
}

fn gone() -> Error {
    Error::new(crate::error::Kind::Other, "the terminal is gone")
}

/// Reads one key each time it is told to: between keys the terminal is as it was found.
fn keyboard(context: &Context) -> (mpsc::Sender<()>, mpsc::Receiver<Key>) {
    let (next, mut wanted) = mpsc::channel::<()>(1);
    let (sender, keys) = mpsc::channel(1);
    let read = context.ui.key_reader();
    std::thread::spawn(move || {
        while wanted.blocking_recv().is_some() {
            let Some(key) = read() else { return };
            if sender.blocking_send(key).is_err() {
                return;
            }
        }
    });
    (next, keys)
}

async fn read(
    cluster: &Cluster,
    query: &Query,
    now: DateTime<Utc>,
) -> Result<(Vec<Row>, Vec<Error>)> {
    let (tables, hidden) = cluster.readable_tables(&KINDS, query).await?;
    let rows = tables
        .iter()
        .flat_map(|(kind, table)| rows(kind, table, now));
    Ok((rows.collect(), hidden))
}

async fn act(
    context: &Context,
    cluster: &Cluster,
    state: &mut State,
    action: Action,
    next: &mpsc::Sender<()>,
    keys: &mut mpsc::Receiver<Key>,
) -> Result<()> {
    let outcome = match &action {
        Action::Quit => return Ok(()),
        Action::Run(name) => start(context, cluster, name).await,
        Action::Suspend(name) => toggle(context, cluster, name).await,
        Action::Logs(name) | Action::Describe(name) => {
            let text = match object(cluster, name).await {
                Ok(object) if matches!(action, Action::Logs(_)) => {
                    log(context, cluster, &object).await
                }
                Ok(object) => description::of_object(context, cluster, &object).await,
                Err(error) => error.message,
            };
            let mut pager = Pager::new(&text);
            loop {
                let height = context.ui.height();
                context.ui.screen(&pager.frame(height))?;
                next.send(()).await.map_err(|_| gone())?;
                if pager.press(keys.recv().await.ok_or_else(gone)?, height) {
                    break;
                }
            }
            Ok(String::new())
        }
    };
    state.message = outcome.unwrap_or_else(|error| error.message);
    Ok(())
}

async fn object(cluster: &Cluster, of: &ObjectName) -> Result<Object> {
    let mut there = cluster.clone();
    if !of.namespace.is_empty() {
        there.namespace.clone_from(&of.namespace);
    }
    there.find(&Target::parse(&of.name)?).await
}

async fn start(context: &Context, cluster: &Cluster, name: &ObjectName) -> Result<String> {
    let object = object(cluster, name).await?;
    presence::of_run(context, cluster, &object).await?;
    let id = fresh_id(&object.uid());
    let request = crds::request::Request::new(
        crds::request::Action::Backup,
        &id,
        &cluster.user,
        context.now(),
    );
    cluster
        .send(&object, &request, crds::labels::PLUGIN_MANAGER, false)
        .await?;
    Ok(format!("{name}: run requested (id {id})"))
}

async fn toggle(context: &Context, cluster: &Cluster, name: &ObjectName) -> Result<String> {
    let object = object(cluster, name).await?;
    let suspend = !object.suspended();
    let patch = if suspend {
        suspension::suspend(&object, &cluster.user, context.now())
    } else {
        suspension::resume(&object, context.now())
    };
    cluster
        .merge_patch(&object, &patch, crds::labels::PLUGIN_MANAGER, false)
        .await?;
    Ok(format!(
        "{name} {}",
        if suspend { "suspended" } else { "resumed" }
    ))
}

/// The end of the log of the newest run.
async fn log(context: &Context, cluster: &Cluster, object: &Object) -> String {
    let Some(run) = object.current_run() else {
        return "Nothing ran yet.".to_owned();
    };
    let namespace = object.namespace();
    let pods = cluster
        .pods(&namespace, &run.name)
        .await
        .unwrap_or_default();
    let Some(pod) = pods.last() else {
        return format!("The pods of {} are gone.", run.name);
    };
    let options = LogOptions {
        container: crate::view::pod::container(pod),
        tail: Some(TAIL),
        ..LogOptions::default()
    };
    let name = pod.metadata.name.clone().unwrap_or_default();
    match cluster.log(&namespace, &name, &options).await {
        Ok(lines) => {
            let lines: Vec<String> = lines
                .filter_map(|l| std::future::ready(l.ok()))
                .map(|l| readable(&l, context.zone).into_owned())
                .collect()
                .await;
            lines.join("\n")
        }
        Err(error) => error.message,
    }
}
