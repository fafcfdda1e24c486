//! `__complete`: answers a shell's question, with names from the cluster.

mod words;

use std::time::Duration;

use clap::FromArgMatches;

use self::words::{FILES, NO_FILES, Wanted, answer, wanted};
use crate::cli::{CompleteWords, Connection};
use crate::cluster::{Cluster, Object, Query, contexts, duration};
use crate::context::Context;
use crate::error::Result;
use crate::kind::{KINDS, Kind, RESTORE, UNSCHEDULED};
use crate::view::inventory::phase;

/// A shell does not wait longer for names, unless `KUBECTL_BACKUP_COMPLETION_TIMEOUT` says so.
const BUDGET: Duration = Duration::from_millis(900);

/// Answers a shell: silent about failures, within its patience.
///
/// # Errors
/// A closed pipe.
pub(crate) async fn run(context: &Context, args: &CompleteWords) -> Result<()> {
    let words = &args.words;
    let mut root = crate::cli::command();
    root.build();
    let word = words.last().map(String::as_str).unwrap_or_default();
    let wanted = wanted(&root, words);
    let directive = if wanted == Wanted::Files {
        FILES
    } else {
        NO_FILES
    };
    let connection = connection(words);
    let given = context.env.completion_timeout.as_deref();
    let budget = given
        .and_then(|text| duration("timeout", text).ok())
        .unwrap_or(BUDGET);
    let names = candidates(context, &connection, wanted);
    let found = tokio::time::timeout(budget, names)
        .await
        .unwrap_or_default();
    context.ui.out(&answer(word, &found, directive))
}

/// The connection flags among the words, as far as they are complete.
fn connection(words: &[String]) -> Connection {
    let line = std::iter::once("kubectl-backup").chain(words.iter().map(String::as_str));
    let matches = crate::cli::command()
        .ignore_errors(true)
        .try_get_matches_from(line);
    matches
        .ok()
        .and_then(|m| Connection::from_arg_matches(&m).ok())
        .unwrap_or_default()
}

async fn candidates(
    context: &Context,
    connection: &Connection,
    wanted: Wanted,
) -> Vec<(String, String)> {
    let plain = |names: Vec<String>| names.into_iter().map(|n| (n, String::new())).collect();
    let env = &context.env;
    match wanted {
        Wanted::Words(words) => words,
        Wanted::Contexts => plain(contexts(connection, env).unwrap_or_default()),
        Wanted::Zones => plain(crds::schedule::zone_names().map(str::to_owned).collect()),
        Wanted::Files | Wanted::Nothing => vec![],
        Wanted::Namespaces
        | Wanted::Objects
        | Wanted::EveryObject
        | Wanted::Runs
        | Wanted::RunsAndRestores => {
            let Ok(cluster) = Cluster::connect(connection, env, None).await else {
                return vec![];
            };
            match wanted {
                Wanted::Namespaces => plain(cluster.namespaces().await),
                Wanted::Runs => objects(context, &cluster, true).await,
                Wanted::RunsAndRestores | Wanted::EveryObject => {
                    let runs = wanted == Wanted::RunsAndRestores;
                    let kinds: &[_] = if runs { &[&RESTORE] } else { &UNSCHEDULED };
                    let (mut found, others) = tokio::join!(
                        objects(context, &cluster, runs),
                        unscheduled(&cluster, kinds)
                    );
                    found.extend(others);
                    found
                }
                _ => objects(context, &cluster, false).await,
            }
        }
    }
}

/// What has no schedule, as TYPE/NAME.
async fn unscheduled(cluster: &Cluster, kinds: &[&'static Kind]) -> Vec<(String, String)> {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let found = cluster.readable_objects(kinds, &query).await;
    let named = |object: &Object| {
        let about = match *object.kind == RESTORE {
            true => phase(&object.restore_status()).to_owned(),
            false => object.spec()["type"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        (object.kind.short_name(&object.name()), about)
    };
    let (found, _) = found.unwrap_or_default();
    found.iter().map(named).collect()
}

/// Objects by name, or by TYPE/NAME where the name alone is not unique; runs if wanted.
async fn objects(context: &Context, cluster: &Cluster, runs: bool) -> Vec<(String, String)> {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let mut found: Vec<(String, String)> = vec![];
    if runs {
        let found_objects = cluster.readable_objects(&KINDS, &query).await;
        let (all, _) = found_objects.unwrap_or_default();
        for object in all {
            let schedule = object.status().schedule.unwrap_or_default().text;
            found.push((object.name(), schedule));
            for run in object.status().runs {
                found.push((run.name, run.result.as_str().to_owned()));
            }
        }
        return found;
    }
    let tables = cluster.readable_tables(&KINDS, &query).await;
    let tables = tables.map(|(tables, _)| tables).unwrap_or_default();
    let rows: Vec<_> = tables
        .iter()
        .flat_map(|(kind, table)| crate::view::list::rows(kind, table, context.now()))
        .collect();
    let bare = |name: &str| {
        name.split_once('/')
            .map_or(name, |(_, name)| name)
            .to_owned()
    };
    for row in &rows {
        let name = bare(&row.name);
        let unique = rows
            .iter()
            .filter(|other| bare(&other.name) == name)
            .count()
            == 1;
        let about = format!("{} {}", row.schedule, row.status);
        found.push((if unique { name } else { row.name.clone() }, about));
        found.push((row.name.clone(), row.schedule.clone()));
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}
