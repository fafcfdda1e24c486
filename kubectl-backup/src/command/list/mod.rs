//! `list`: what there is, how its last run went, when the next one comes.

mod clusters;
mod unscheduled;
mod watch;

use std::collections::HashSet;

use crds::run::RunResult;
use crds::verdict::State;
use serde_json::Value;

use crate::cli::{Format, List, Output};
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{ALL, KINDS, Kind, Target, UNSCHEDULED};
use crate::select::none_found;
use crate::view::list::{Row, Shape, rows, sort, sort_objects, table};
use crate::view::{output, verdict};

/// What the arguments name.
struct Wanted {
    kinds: Vec<&'static Kind>,
    names: Vec<Target>,
}

impl Wanted {
    /// Something without a schedule is meant.
    fn has_unscheduled(&self) -> bool {
        let named = self.names.iter().filter_map(|target| target.kind);
        let mut all = self.kinds.iter().copied().chain(named);
        all.any(|kind| UNSCHEDULED.contains(&kind))
    }
}

/// Lists.
///
/// # Errors
/// What the server refused; a named object that does not exist.
pub(crate) async fn run(context: &Context, args: &List) -> Result<()> {
    let wanted = wanted(&args.names)?;
    if wanted.has_unscheduled() {
        return unscheduled::list(context, args, &wanted).await;
    }
    if args.all_contexts || !args.contexts.is_empty() {
        return clusters::list(context, args, &wanted.kinds).await;
    }
    let cluster = context.cluster().await?;
    if !wanted.names.is_empty() {
        return named(context, &cluster, args, &wanted).await;
    }
    let query = query(&cluster, args);
    match &args.output {
        Output::Table | Output::Wide => {
            tables(context, &cluster, args, &wanted.kinds, &query).await
        }
        _ if args.watch => watch::objects(context, &cluster, args, &wanted.kinds, &query).await,
        _ => {
            let (mut objects, hidden) = cluster.readable_objects(&wanted.kinds, &query).await?;
            context.left_out(&hidden);
            objects.retain(|object| asked_for(context, args, object));
            if let Some(by) = args.sort_by {
                sort_objects(&mut objects, by, context.now());
            }
            let none = || none_found(context, query.namespace.as_deref());
            print(context, args, &wanted, &objects, none)
        }
    }
}

/// Prints objects as `-o` asks, where it asks for no table: their names, or what they are. One that was named alone is
/// printed as itself. Where columns have nothing to show, `none` says so.
fn print(
    context: &Context,
    args: &List,
    wanted: &Wanted,
    found: &[Object],
    none: impl FnOnce(),
) -> Result<()> {
    let Output::Print(format) = &args.output else {
        let names: String = found.iter().map(|o| o.full_name() + "\n").collect();
        return context.ui.out(&names);
    };
    let managed = args.show_managed_fields;
    let mut items: Vec<Value> = found.iter().map(|o| o.to_value(managed)).collect();
    if items.is_empty() && wanted.names.is_empty() && matches!(format, Format::Columns(_)) {
        none();
    }
    let value = match wanted.names.len() {
        1 => items.pop(),
        _ => Some(output::list(items)),
    };
    let Some(value) = value else {
        return Ok(());
    };
    let text = output::formatted(&value, format, args.headers.no_headers)?;
    context.ui.out(&text)
}

/// The named objects that are there; of the others each is told, and what the first was is returned.
async fn look_up(
    context: &Context,
    cluster: &Cluster,
    args: &List,
    wanted: &Wanted,
) -> Result<(Vec<Object>, Option<Exit>)> {
    if args.all_namespaces && !wanted.names.is_empty() {
        return Err(Error::usage(
            "a name can't be looked for in all namespaces; leave out -A",
        ));
    }
    let (mut found, mut failed) = (vec![], None);
    for target in &wanted.names {
        match cluster.find(target).await {
            Ok(object) => found.push(object),
            Err(error) if args.ignore_not_found && error.kind == Exit::NotFound => {}
            Err(error) => {
                context.ui.error(&error);
                failed.get_or_insert(error.kind);
            }
        }
    }
    Ok((found, failed))
}

/// Which objects of a cluster the flags mean.
fn query(cluster: &Cluster, args: &List) -> Query {
    Query {
        namespace: (!args.all_namespaces).then(|| cluster.namespace.clone()),
        labels: args.selector.clone(),
        fields: args.field_selector.clone(),
        chunk: args.chunk_size,
        with_labels: args.show_labels || !args.label_columns.is_empty(),
    }
}

/// What the table has beside its usual columns.
fn shape(args: &List) -> Shape<'_> {
    Shape {
        events: args.output_watch_events,
        context: false,
        namespace: args.all_namespaces,
        wide: args.output == Output::Wide,
        watched: args.watch,
        labels: &args.label_columns,
        show_labels: args.show_labels,
    }
}

/// True if the filters let a full object through.
fn asked_for(context: &Context, args: &List, object: &Object) -> bool {
    let runs = object.status().runs;
    let last = runs.iter().find(|r| r.result.is_final());
    (!args.suspended || object.suspended())
        && (!args.failed || last.is_some_and(|r| r.result == RunResult::Failed))
        && (!args.running || runs.iter().any(|r| r.result == RunResult::Running))
        && (!args.stale || verdict::of(object, None, &[], context.now()).late != State::Good)
}

/// `TYPE`, `TYPE/NAME` and `NAME`, mixed as one likes.
fn wanted(words: &[String]) -> Result<Wanted> {
    let (mut kinds, mut names) = (vec![], vec![]);
    for word in words {
        if word.contains('/') {
            names.push(Target::parse_in(word, &ALL)?);
        } else if word.split(',').all(|part| Kind::find(part, &ALL).is_some()) {
            for part in word.split(',') {
                kinds.push(Target::kind_in(part, &ALL)?);
            }
        } else {
            names.push(Target::parse_in(word, &ALL)?);
        }
    }
    // `list mysqlbackup shop`, as with kubectl get.
    if let ([kind], false) = (kinds.as_slice(), names.is_empty()) {
        for name in &mut names {
            name.kind.get_or_insert(kind);
        }
    }
    if kinds.is_empty() {
        kinds = KINDS.to_vec();
    }
    Ok(Wanted { kinds, names })
}

/// Named objects: each is looked for, and what was found is shown.
async fn named(context: &Context, cluster: &Cluster, args: &List, wanted: &Wanted) -> Result<()> {
    if args.watch {
        return Err(Error::usage(
            "-w watches lists; select one object with --field-selector metadata.name=NAME",
        ));
    }
    let (mut found, failed) = look_up(context, cluster, args, wanted).await?;
    found.retain(|object| asked_for(context, args, object));
    if let Some(by) = args.sort_by {
        sort_objects(&mut found, by, context.now());
    }
    match &args.output {
        Output::Table | Output::Wide => {
            let mut all = vec![];
            for object in &found {
                let query = Query {
                    namespace: Some(cluster.namespace.clone()),
                    fields: Some(format!("metadata.name={}", object.name())),
                    ..query(cluster, args)
                };
                if let Some(part) = cluster.table(object.kind, &query).await? {
                    all.extend(rows(object.kind, &part, context.now()));
                }
            }
            context.ui.table(
                &table(&all, shape(args), context.now()),
                args.headers.no_headers,
            )?;
        }
        _ => print(context, args, wanted, &found, || {})?,
    }
    failed.map_or(Ok(()), |kind| Err(Error::silent(kind)))
}

/// Rows of the wanted kinds that may be read, and the version of each list.
async fn gather(
    context: &Context,
    cluster: &Cluster,
    kinds: &[&'static Kind],
    query: &Query,
) -> Result<(Vec<Row>, Vec<(&'static Kind, String)>)> {
    let (tables, hidden) = cluster.readable_tables(kinds, query).await?;
    context.left_out(&hidden);
    let (mut all, mut installed) = (vec![], vec![]);
    for (kind, table) in tables {
        all.extend(rows(kind, &table, context.now()));
        installed.push((kind, table.metadata.resource_version));
    }
    Ok((all, installed))
}

/// True if the filters that look at the row let it through.
fn lets_through(args: &List, row: &Row) -> bool {
    (!args.suspended || row.status == "Suspended")
        && (!args.failed || row.result == "Failed")
        && (!args.running || row.status == "Running" || row.result == "Running")
}

/// Leaves the rows the filters ask for, in the order asked for.
async fn narrowed(
    context: &Context,
    cluster: &Cluster,
    args: &List,
    kinds: &[&'static Kind],
    query: &Query,
    rows: &mut Vec<Row>,
) -> Result<()> {
    rows.retain(|row| lets_through(args, row));
    if args.stale {
        // Condition Ready says the worst alone; whether a good run is missed is asked of each.
        let (objects, _) = cluster.readable_objects(kinds, query).await?;
        let stale: HashSet<(String, String)> = objects
            .iter()
            .filter(|o| verdict::of(o, None, &[], context.now()).late != State::Good)
            .map(|o| (o.namespace(), o.kind.short_name(&o.name())))
            .collect();
        rows.retain(|row| {
            let namespace = query
                .namespace
                .clone()
                .unwrap_or_else(|| row.namespace.clone());
            stale.contains(&(namespace, row.name.clone()))
        });
    }
    if let Some(by) = args.sort_by {
        sort(rows, by);
    }
    Ok(())
}

/// The table of all rows; then, with `-w`, a line for each change.
async fn tables(
    context: &Context,
    cluster: &Cluster,
    args: &List,
    kinds: &[&'static Kind],
    query: &Query,
) -> Result<()> {
    let (mut all, installed) = gather(context, cluster, kinds, query).await?;
    narrowed(context, cluster, args, kinds, query, &mut all).await?;
    if all.is_empty() {
        none_found(context, query.namespace.as_deref());
    }
    context.ui.table(
        &table(&all, shape(args), context.now()),
        args.headers.no_headers,
    )?;
    if !args.watch {
        return Ok(());
    }
    let watches = installed
        .into_iter()
        .map(|(kind, version)| watch::rows_of(context, cluster, query, args, kind, version));
    futures::future::try_join_all(watches).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn words_of_list() {
        let words =
            |text: &[&str]| wanted(&text.iter().map(ToString::to_string).collect::<Vec<_>>());
        let none = words(&[]).unwrap();
        assert_eq!((none.kinds.len(), none.names.len()), (KINDS.len(), 0));
        let kind = words(&["mbk"]).unwrap();
        assert_eq!((kind.kinds.len(), kind.names.len()), (1, 0));
        let both = words(&["mbk,backup"]).unwrap();
        assert_eq!(both.kinds.len(), 2);
        let as_get = words(&["mysqlbackup", "shop"]).unwrap();
        assert_eq!(as_get.names[0].kind.map(|k| k.kind), Some("MysqlBackup"));
        assert_eq!(words(&["shop", "backup/x"]).unwrap().names.len(), 2);
        assert!(words(&["pod/x"]).is_err());
        assert!(!both.has_unscheduled());
        for unscheduled in [&["storages"][..], &["restore/r"], &["db", "x"], &["rst,db"]] {
            assert!(
                words(unscheduled).unwrap().has_unscheduled(),
                "{unscheduled:?}"
            );
        }
    }
}
