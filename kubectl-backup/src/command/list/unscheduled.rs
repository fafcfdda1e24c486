//! `list` of Restores, Databases and Storages, which have no schedule.

use super::{Wanted, look_up, print, query};
use crate::cli::{List, Output, SortBy};
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::{KINDS, Kind, RESTORE};
use crate::select;
use crate::view::inventory::{ReferencedBy, Shape, phase, sort, table};

/// Lists.
///
/// # Errors
/// A flag that says nothing of these kinds; what the server refused; a named object that does not
/// exist.
pub(super) async fn list(context: &Context, args: &List, wanted: &Wanted) -> Result<()> {
    let kinds = kinds(wanted)?;
    refuse(args, &kinds)?;
    let cluster = context.cluster().await?;
    let query = query(&cluster, args);
    let (mut found, failed) = look_up(context, &cluster, args, wanted).await?;
    if wanted.names.is_empty() {
        let (objects, hidden) = cluster.readable_objects(&kinds, &query).await?;
        context.left_out(&hidden);
        found = objects;
    }
    found.retain(|object| {
        let phase = phase(&object.restore_status());
        (!args.failed || phase == "Failed") && (!args.running || phase == "Running")
    });
    if let Some(by) = args.sort_by {
        sort(&mut found, by);
    }
    match &args.output {
        Output::Table | Output::Wide => {
            tables(context, &cluster, args, &kinds, &query, &found).await?;
        }
        _ => print(context, args, wanted, &found, || {
            none(context, &kinds, &query)
        })?,
    }
    failed.map_or(Ok(()), |kind| Err(Error::silent(kind)))
}

/// The kinds that are meant, by themselves or by a name.
fn kinds(wanted: &Wanted) -> Result<Vec<&'static Kind>> {
    let mut kinds = if wanted.names.is_empty() {
        wanted.kinds.clone()
    } else {
        wanted.names.iter().filter_map(|n| n.kind).collect()
    };
    kinds.dedup();
    let apart = wanted.names.iter().any(|n| n.kind.is_none());
    if apart || kinds.iter().any(|kind| KINDS.contains(kind)) {
        return Err(Error::usage(
            "Restores, Databases and Storages have columns of their own; list them apart from what has a schedule",
        ));
    }
    Ok(kinds)
}

/// A flag that would have no effect is an error.
fn refuse(args: &List, kinds: &[&'static Kind]) -> Result<()> {
    let restores = kinds.iter().all(|kind| **kind == RESTORE);
    let order = !matches!(args.sort_by, None | Some(SortBy::Name | SortBy::Age));
    for (flag, given) in [
        ("-w", args.watch),
        ("--suspended", args.suspended),
        ("--stale", args.stale),
        ("--failed", args.failed && !restores),
        ("--running", args.running && !restores),
        ("--sort-by with another column than name and age", order),
    ] {
        if given {
            return Err(Error::usage(format!(
                "{flag} says nothing of {}, which have no schedule and no runs",
                plurals(kinds)
            )));
        }
    }
    Ok(())
}

fn plurals(kinds: &[&'static Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.plural).collect();
    names.join(", ")
}

async fn tables(
    context: &Context,
    cluster: &Cluster,
    args: &List,
    kinds: &[&'static Kind],
    query: &Query,
    found: &[Object],
) -> Result<()> {
    if found.is_empty() {
        none(context, kinds, query);
    }
    let used = found.iter().any(|object| *object.kind != RESTORE);
    let users = match used {
        true => select::users(cluster, query.namespace.clone()).await,
        false => ReferencedBy::default(),
    };
    let shape = Shape {
        namespace: args.all_namespaces,
        wide: args.output == Output::Wide,
        labels: &args.label_columns,
        show_labels: args.show_labels,
    };
    let mut first = true;
    for kind in kinds {
        let own: Vec<&Object> = found.iter().filter(|o| o.kind == *kind).collect();
        if own.is_empty() && kinds.len() > 1 {
            continue;
        }
        if !first {
            context.ui.out("\n")?;
        }
        first = false;
        let table = table(kind, &own, &users, shape, context.now());
        context.ui.table(&table, args.headers.no_headers)?;
    }
    Ok(())
}

fn none(context: &Context, kinds: &[&'static Kind], query: &Query) {
    let what = plurals(kinds);
    context.ui.note(&match &query.namespace {
        Some(namespace) => format!("No {what} found in {namespace} namespace."),
        None => format!("No {what} found."),
    });
}
