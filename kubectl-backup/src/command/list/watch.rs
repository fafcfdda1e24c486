//! `list --watch`: each change as it comes.

use futures::StreamExt;
use serde_json::json;

use super::{asked_for, gather, lets_through, shape};
use crate::cli::{Format, List, Output};
use crate::cluster::{Change, Cluster, Event, Object, Query};
use crate::context::Context;
use crate::error::Result;
use crate::kind::Kind;
use crate::view::list::{rows, table};
use crate::view::output;

/// Prints the rows of each change, for ever.
///
/// # Errors
/// What the server refused.
pub(crate) async fn rows_of(
    context: &Context,
    cluster: &Cluster,
    query: &Query,
    args: &List,
    kind: &'static Kind,
    mut version: String,
) -> Result<()> {
    let mut columns = vec![];
    loop {
        let mut events = cluster.watch_table(kind, query, &version).await?;
        while let Some(event) = events.next().await {
            match event? {
                Event::Seen(change, mut part) => {
                    // The columns come with the first event alone.
                    if part.column_definitions.is_empty() {
                        part.column_definitions.clone_from(&columns);
                    } else {
                        columns.clone_from(&part.column_definitions);
                    }
                    if let Some(object) = part.rows.last().and_then(|r| r.object.as_ref()) {
                        version.clone_from(&object.metadata.resource_version);
                    }
                    // A row looks the same whether its object is there or has just gone.
                    if change == Change::Deleted && !args.output_watch_events {
                        continue;
                    }
                    let mut rows = rows(kind, &part, context.now());
                    rows.retain(|row| lets_through(args, row));
                    rows.iter_mut().for_each(|row| row.event = change.word());
                    let text = table(&rows, shape(args), context.now());
                    context.ui.table(&text, true)?;
                }
                Event::Expired => {
                    let Some(part) = cluster.table(kind, query).await? else {
                        return Err(cluster.none_installed(&[kind]));
                    };
                    version.clone_from(&part.metadata.resource_version);
                    let mut rows = rows(kind, &part, context.now());
                    rows.retain(|row| lets_through(args, row));
                    context
                        .ui
                        .table(&table(&rows, shape(args), context.now()), true)?;
                    break;
                }
            }
        }
    }
}

/// Prints the objects there are, then each change, for ever.
///
/// # Errors
/// What the server refused.
pub(crate) async fn objects(
    context: &Context,
    cluster: &Cluster,
    args: &List,
    kinds: &[&'static Kind],
    query: &Query,
) -> Result<()> {
    // Which kinds are installed: a watch of one that is not would end at once.
    let (_, installed) = gather(context, cluster, kinds, query).await?;
    let header = std::cell::Cell::new(!args.headers.no_headers);
    let streams = installed.into_iter().map(|(kind, _)| {
        let header = &header;
        async move {
            let mut version = "0".to_owned();
            loop {
                let mut events = cluster.watch_objects(kind, query, &version).await?;
                while let Some(event) = events.next().await {
                    let Event::Seen(change, object) = event? else {
                        "0".clone_into(&mut version);
                        break;
                    };
                    version = object.metadata.resource_version.clone().unwrap_or_default();
                    let object = Object { kind, object };
                    let shown = change != Change::Deleted || args.output_watch_events;
                    if shown && asked_for(context, args, &object) {
                        let text = changed(args, change, &object, !header.replace(false))?;
                        context.ui.out(&text)?;
                    }
                }
            }
        }
    });
    futures::future::try_join_all(streams)
        .await
        .map(|_: Vec<()>| ())
}

/// What is printed of a change.
fn changed(args: &List, change: Change, object: &Object, no_headers: bool) -> Result<String> {
    let Output::Print(format) = &args.output else {
        return Ok(object.full_name() + "\n");
    };
    let mut value = object.to_value(args.show_managed_fields);
    if args.output_watch_events && matches!(format, Format::Json | Format::Yaml) {
        value = json!({ "type": change.word(), "object": value });
    }
    let text = output::formatted(&value, format, no_headers)?;
    Ok(if *format == Format::Yaml {
        format!("---\n{text}")
    } else {
        text
    })
}
