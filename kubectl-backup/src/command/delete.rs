//! `delete`: removes objects. What they stored stays, and that is said.

use std::time::Duration;

use crds::request::{Action, Options};
use futures::StreamExt;

use crate::change::Tally;
use crate::cli::{Delete, DryRun};
use crate::cluster::{Cluster, Object};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{ALL, DATABASE, STORAGE, UNSCHEDULED};
use crate::select;
use crate::ui::Mark;
use crate::waiting::request::{ask, wait_for_answer};

/// How long the removal of stored data is waited for.
const PRUNE_LIMIT: Duration = Duration::from_secs(600);
/// How long a deletion is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// Deletes.
///
/// # Errors
/// The first failure; the others are deleted all the same.
pub(crate) async fn run(context: &Context, args: &Delete) -> Result<()> {
    let cluster = context.cluster().await?;
    let mut found = vec![];
    let mut tally = Tally::default();
    let (targets, change) = (&args.targets, Some(&args.change));
    for object in select::many_in(context, &cluster, targets, "delete", change, &ALL).await? {
        match object {
            Ok(object) => found.push(object),
            // Gone already is what was asked for.
            Err(error) if args.ignore_not_found && error.kind == Exit::NotFound => {
                tally.add(context, Ok(false))?;
            }
            Err(error) => tally.add(context, Err(error))?,
        }
    }
    if args.delete_data
        && let Some(object) = found.iter().find(|o| UNSCHEDULED.contains(&o.kind))
    {
        return Err(Error::usage(format!(
            "--delete-data goes with a backup: {} has stored nothing itself",
            object.full_name()
        )));
    }
    if args.change.dry_run == DryRun::None {
        used(context, &cluster, &found).await?;
    }
    let by_list = args.targets.all || args.targets.selector.is_some();
    if by_list
        && !args.targets.all_namespaces
        && !found.is_empty()
        && args.change.dry_run == DryRun::None
    {
        let names: Vec<String> = found.iter().map(Object::full_name).collect();
        let text = format!("This would delete {}.", names.join(", "));
        if !context.ui.confirm(&text)? {
            return Err(Error::usage("cancelled; nothing was changed"));
        }
    }
    if args.delete_data && args.change.dry_run == DryRun::None && !found.is_empty() {
        let names: Vec<String> = found.iter().map(Object::full_name).collect();
        let text = format!(
            "This would delete {} and everything they have stored; it can't be brought back.",
            names.join(", ")
        );
        if !context.ui.confirm(&text)? {
            return Err(Error::usage("cancelled; nothing was changed"));
        }
    }
    for object in &found {
        tally.add(context, one(context, &cluster, args, object).await)?;
    }
    tally.end(args.unchanged)
}

/// Asks before a Database or Storage goes that backups use: their runs fail without it.
async fn used(context: &Context, cluster: &Cluster, found: &[Object]) -> Result<()> {
    for object in found {
        if ![&DATABASE, &STORAGE].contains(&object.kind) {
            continue;
        }
        let users = select::users(cluster, Some(object.namespace())).await;
        if users.partial {
            context
                .ui
                .warn("not every kind of backup may be read, so not all users are known");
        }
        let names = users.find(object);
        if names.is_empty() {
            continue;
        }
        let text = format!(
            "This would delete {}, and {} can't run without it.",
            object.full_name(),
            names.join(", ")
        );
        if !context.ui.confirm(&text)? {
            return Err(Error::usage("cancelled; nothing was changed"));
        }
    }
    Ok(())
}

async fn one(context: &Context, cluster: &Cluster, args: &Delete, object: &Object) -> Result<bool> {
    let dry_run = args.change.dry_run;
    if args.delete_data && dry_run != DryRun::Client {
        // The object goes only after its data: else nobody would know where the data is.
        let options = Options {
            all: true,
            dry_run: dry_run == DryRun::Server,
            ..Options::default()
        };
        let id = ask(context, cluster, object, Action::Prune, options).await?;
        let answer = wait_for_answer(context, cluster, object, &id, PRUNE_LIMIT).await?;
        context.ui.progress(
            Mark::Good,
            &format!("{}: {}", object.full_name(), answer.message),
        );
    }
    if dry_run != DryRun::Client {
        cluster.delete(object, dry_run == DryRun::Server).await?;
    }
    context.changed(object, "deleted", &args.change)?;
    let stores = *object.kind == STORAGE || !UNSCHEDULED.contains(&object.kind);
    if args.change.output.is_none() && !args.delete_data && stores {
        context.ui.note(&format!(
            "What {} has stored stays where it is.",
            object.kind.short_name(&object.name())
        ));
    }
    if args.wait && dry_run == DryRun::None {
        gone(cluster, object).await?;
    }
    Ok(true)
}

/// Waits until the object is gone; one of the same name made since is another.
async fn gone(cluster: &Cluster, object: &Object) -> Result<()> {
    let mut watch = Box::pin(cluster.follow(object));
    let wait = async {
        while let Some(seen) = watch.next().await {
            match seen {
                Ok(Some(now)) if now.uid() == object.uid() => {}
                // Deleting needs no right to watch.
                Ok(_) | Err(_) => return,
            }
        }
    };
    tokio::time::timeout(LIMIT, wait).await.map_err(|_| {
        Error::new(
            Exit::Timeout,
            format!(
                "{} is marked for deletion but not gone after {}s",
                object.full_name(),
                LIMIT.as_secs()
            ),
        )
        .hint("look at its finalizers: kubectl backup list -o yaml")
    })
}
