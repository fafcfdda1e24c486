//! `list --contexts`: the tables of several clusters as one.

use futures::future::join_all;

use super::{gather, narrowed, query, shape};
use crate::cli::{Connection, List, Output};
use crate::cluster::{Cluster, contexts};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::view::list::{Shape, sort, table};

/// The tables of several clusters as one. A cluster that fails is told, and keeps none back.
///
/// # Errors
/// An output that is no table; the first cluster that failed, after the others are shown.
pub(crate) async fn list(context: &Context, args: &List, kinds: &[&'static Kind]) -> Result<()> {
    if !matches!(args.output, Output::Table | Output::Wide) {
        return Err(Error::usage(
            "several contexts are listed as a table; leave out -o",
        ));
    }
    let names = if args.all_contexts {
        contexts(&context.connection, &context.env)?
    } else {
        args.contexts.clone()
    };
    let lists = join_all(names.iter().map(|name| async move {
        let connection = Connection {
            context: Some(name.clone()),
            ..context.connection.clone()
        };
        let cluster = Cluster::connect(&connection, &context.env, context.log()).await?;
        let query = query(&cluster, args);
        let (mut rows, _) = gather(context, &cluster, kinds, &query).await?;
        narrowed(context, &cluster, args, kinds, &query, &mut rows).await?;
        rows.iter_mut().for_each(|row| row.context.clone_from(name));
        Ok::<_, Error>(rows)
    }))
    .await;
    let (mut all, mut failed) = (vec![], None);
    for (name, list) in names.iter().zip(lists) {
        match list {
            Ok(rows) => all.extend(rows),
            Err(error) => {
                let first = error.message.lines().next().unwrap_or_default();
                context.ui.note(&format!("{name}: {first}"));
                failed.get_or_insert(error.kind);
            }
        }
    }
    if let Some(by) = args.sort_by {
        sort(&mut all, by);
    }
    let shape = Shape {
        context: true,
        ..shape(args)
    };
    context
        .ui
        .table(&table(&all, shape, context.now()), args.headers.no_headers)?;
    failed.map_or(Ok(()), |kind| Err(Error::silent(kind)))
}
