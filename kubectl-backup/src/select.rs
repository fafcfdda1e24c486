//! Which objects a verb acts on: by name, by label, all, or picked by hand.

use crate::cli::Targets;
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kind::{KINDS, Target};

/// The objects a command line means, each found or not: one that is missing keeps none of the
/// others from being acted on.
///
/// # Errors
/// No choice, or a list that was refused.
pub(crate) async fn many(
    context: &Context,
    cluster: &Cluster,
    targets: &Targets,
    verb: &str,
) -> Result<Vec<Result<Object>>> {
    let by_list = targets.all || targets.selector.is_some();
    if by_list {
        let query = Query {
            namespace: (!targets.all_namespaces).then(|| cluster.namespace.clone()),
            labels: targets.selector.clone(),
            chunk: 500,
            ..Query::default()
        };
        let found = cluster.all_objects(&KINDS, &query).await?;
        if found.is_empty() {
            none_found(context, query.namespace.as_deref());
        } else if targets.all_namespaces {
            consent(context, &found, verb)?;
        }
        return Ok(found.into_iter().map(Ok).collect());
    }
    if targets.all_namespaces {
        return Err(Error::usage("-A needs --all or --selector"));
    }
    if targets.names.is_empty() {
        return Ok(vec![Ok(pick(context, cluster, verb).await?)]);
    }
    let mut found = vec![];
    for name in &targets.names {
        let target = Target::parse(name)?;
        found.push(cluster.find(&target).await);
    }
    Ok(found)
}

/// The one object a command line means.
///
/// # Errors
/// Not found, ambiguous, or nobody to ask.
pub(crate) async fn one(
    context: &Context,
    cluster: &Cluster,
    name: Option<&str>,
    verb: &str,
) -> Result<Object> {
    match name {
        Some(name) => cluster.find(&Target::parse(name)?).await,
        None => pick(context, cluster, verb).await,
    }
}

/// Offers the objects of the namespace on a terminal.
async fn pick(context: &Context, cluster: &Cluster, verb: &str) -> Result<Object> {
    let missing = || {
        Error::usage(format!(
            "{verb} needs an object: TYPE/NAME, or NAME where it is unique"
        ))
        .hint("kubectl backup list")
    };
    if !context.ui.can_ask() {
        return Err(missing());
    }
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let mut found = cluster.all_objects(&KINDS, &query).await?;
    if found.is_empty() {
        none_found(context, query.namespace.as_deref());
        return Err(missing());
    }
    let names: Vec<String> = found.iter().map(|o| o.kind.short_name(&o.name())).collect();
    match context.ui.pick(&format!("Which one to {verb}?"), &names)? {
        Some(index) => Ok(found.swap_remove(index)),
        None => Err(missing()),
    }
}

/// Says that there is nothing, as kubectl does: not an error.
pub(crate) fn none_found(context: &Context, namespace: Option<&str>) {
    context.ui.note(&match namespace {
        Some(namespace) => format!("No backups found in {namespace} namespace."),
        None => "No backups found.".to_owned(),
    });
}

/// Asks before something is done in all namespaces.
fn consent(context: &Context, found: &[Object], verb: &str) -> Result<()> {
    let mut namespaces: Vec<String> = found.iter().map(Object::namespace).collect();
    namespaces.sort();
    namespaces.dedup();
    let text = format!(
        "This would {verb} {} objects in {} namespaces.",
        found.len(),
        namespaces.len()
    );
    if context.ui.confirm(&text)? {
        Ok(())
    } else {
        Err(Error::usage("cancelled; nothing was changed"))
    }
}
