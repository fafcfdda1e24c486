//! `completion`: scripts for shells, the shim kubectl calls, and the live names behind it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use futures::future::join_all;

use crds::restore::RestorePhase;

use super::complete::words::{FILES, NO_FILES, Wanted, answer, wanted};
use super::restore::status;
use crate::cli::{Cli, Completion, Connection, Shell};
use crate::cluster::{Cluster, Object, Query, contexts, duration};
use crate::context::Context;
use crate::env::Env;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{KINDS, RESTORE};

/// Name kubectl looks for on PATH.
const SHIM: &str = "kubectl_complete-backup";
/// What it runs.
const SHIM_TEXT: &str = "#!/bin/sh\n# Called by kubectl's completion for `kubectl backup`.\nexec kubectl-backup __complete \"$@\"\n";
/// A shell does not wait longer for names, unless `KUBECTL_BACKUP_COMPLETION_TIMEOUT` says so.
const BUDGET: Duration = Duration::from_millis(900);

/// Prints a script, or puts the shim in place.
///
/// # Errors
/// No directory to write to.
pub(crate) fn run(context: &Context, args: &Completion) -> Result<()> {
    if args.install && args.shell != Shell::Kubectl {
        return Err(Error::usage("--install is for `completion kubectl`"));
    }
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Powershell => clap_complete::Shell::PowerShell,
        Shell::Kubectl if args.install => return install(context),
        Shell::Kubectl => return context.ui.out(SHIM_TEXT),
    };
    let mut text = vec![];
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-backup", &mut text);
    context.ui.out(&String::from_utf8_lossy(&text))
}

/// Writes the shim beside the plugin, else into the first directory of PATH that takes it.
fn install(context: &Context) -> Result<()> {
    let path = context.env.path.clone().unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let beside = directories
        .iter()
        .filter(|d| d.join("kubectl-backup").exists() || d.join("kubectl-backup.exe").exists());
    for directory in beside.chain(&directories) {
        let target = directory.join(SHIM);
        if directory.is_dir() && write(&target).is_ok() {
            context.ui.note(
                "Names complete once kubectl's own completion is on: kubectl completion --help",
            );
            return context.ui.line(&format!("{}", target.display()));
        }
    }
    Err(
        Error::new(Exit::Other, "no directory of PATH can be written to").hint(format!(
            "kubectl backup completion kubectl > {SHIM}, make it executable and put it on PATH"
        )),
    )
}

fn write(target: &Path) -> std::io::Result<()> {
    std::fs::write(target, SHIM_TEXT)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(target, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Answers a shell: silent about failures, within its patience.
///
/// # Errors
/// A closed pipe.
pub(crate) async fn answer_shell(context: &Context, words: &[String]) -> Result<()> {
    let mut root = Cli::command();
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
    let names = candidates(&connection, &context.env, wanted);
    let found = tokio::time::timeout(budget, names)
        .await
        .unwrap_or_default();
    context.ui.out(&answer(word, &found, directive))
}

/// The connection flags among the words, as far as they are complete.
fn connection(words: &[String]) -> Connection {
    let line = std::iter::once("kubectl-backup").chain(words.iter().map(String::as_str));
    let matches = Cli::command()
        .ignore_errors(true)
        .try_get_matches_from(line);
    matches
        .ok()
        .and_then(|m| Connection::from_arg_matches(&m).ok())
        .unwrap_or_default()
}

async fn candidates(connection: &Connection, env: &Env, wanted: Wanted) -> Vec<(String, String)> {
    let plain = |names: Vec<String>| names.into_iter().map(|n| (n, String::new())).collect();
    match wanted {
        Wanted::Words(words) => words,
        Wanted::Contexts => plain(contexts(connection, env).unwrap_or_default()),
        Wanted::Zones => plain(crds::schedule::zone_names().map(str::to_owned).collect()),
        Wanted::Files | Wanted::Nothing => vec![],
        Wanted::Namespaces
        | Wanted::Objects
        | Wanted::ObjectsAndRestores
        | Wanted::Runs
        | Wanted::RunsAndRestores => {
            let Ok(cluster) = Cluster::connect(connection, env).await else {
                return vec![];
            };
            match wanted {
                Wanted::Namespaces => plain(cluster.namespaces().await),
                Wanted::Runs => objects(&cluster, true).await,
                Wanted::RunsAndRestores | Wanted::ObjectsAndRestores => {
                    let runs = wanted == Wanted::RunsAndRestores;
                    let (mut found, restores) =
                        tokio::join!(objects(&cluster, runs), restores(&cluster));
                    found.extend(restores);
                    found
                }
                _ => objects(&cluster, false).await,
            }
        }
    }
}

/// Restores, as `restore/NAME`.
async fn restores(cluster: &Cluster) -> Vec<(String, String)> {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let found = cluster.all_objects(&[&RESTORE], &query).await;
    let named = |object: &Object| {
        let phase = status(object).phase.map_or("Pending", RestorePhase::as_str);
        (RESTORE.short_name(&object.name()), phase.to_owned())
    };
    found.unwrap_or_default().iter().map(named).collect()
}

/// Objects by name, or by TYPE/NAME where the name alone is not unique; runs if wanted.
async fn objects(cluster: &Cluster, runs: bool) -> Vec<(String, String)> {
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let mut found: Vec<(String, String)> = vec![];
    if runs {
        for object in cluster
            .all_objects(&KINDS, &query)
            .await
            .unwrap_or_default()
        {
            let schedule = object.status().schedule.unwrap_or_default().text;
            found.push((object.name(), schedule));
            for run in object.status().runs {
                found.push((run.name, run.result.as_str().to_owned()));
            }
        }
        return found;
    }
    let tables = join_all(KINDS.iter().map(|kind| cluster.table(kind, &query))).await;
    let mut rows = vec![];
    for (kind, table) in KINDS.iter().zip(tables) {
        if let Ok(Some(table)) = table {
            rows.extend(crate::view::list::rows(kind, &table));
        }
    }
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

/// Prints the manual page of the program or of a verb.
///
/// # Errors
/// No such verb.
pub(crate) fn man(context: &Context, verbs: &[String]) -> Result<()> {
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    for verb in verbs {
        command = command
            .find_subcommand(verb)
            .ok_or_else(|| Error::usage(format!("no verb {verb:?}")))?;
    }
    let mut page = vec![];
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    context.ui.out(&String::from_utf8_lossy(&page))
}
