//! Which objects, runs and restores a verb acts on: by name, by label, all, or picked by hand.

use crds::run::Run;

use crate::cli::{Change, DryRun, Targets};
use crate::cluster::{Cluster, Object, Query};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{KINDS, Kind, RESTORE, Target, UNSCHEDULED};
use crate::text::counted;
use crate::view::inventory::ReferencedBy;

/// The objects a command line means, each found or not: one that is missing keeps none of the
/// others from being acted on. Who changes objects in all namespaces is asked for consent; a dry run
/// changes nothing, and without a `change` they are read alone.
///
/// # Errors
/// No choice, or a list that was refused.
pub(crate) async fn many(
    context: &Context,
    cluster: &Cluster,
    targets: &Targets,
    verb: &str,
    change: Option<&Change>,
) -> Result<Vec<Result<Object>>> {
    many_in(context, cluster, targets, verb, change, &KINDS).await
}

/// As [`many`], where a name may also be of one of these kinds.
///
/// # Errors
/// As [`many`].
pub(crate) async fn many_in(
    context: &Context,
    cluster: &Cluster,
    targets: &Targets,
    verb: &str,
    change: Option<&Change>,
    kinds: &[&'static Kind],
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
        } else if targets.all_namespaces
            && change.is_some_and(|change| change.dry_run == DryRun::None)
        {
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
        let target = Target::parse_in(name, kinds)?;
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
    let (mut found, hidden) = cluster.readable_objects(&KINDS, &query).await?;
    context.left_out(&hidden);
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
        "This would {verb} {} in {}.",
        counted(found.len(), "object"),
        counted(namespaces.len(), "namespace")
    );
    if context.ui.confirm(&text)? {
        Ok(())
    } else {
        Err(Error::usage("cancelled; nothing was changed"))
    }
}

/// The named objects, or all there are that may be read.
///
/// # Errors
/// The first one that is missing; what the server refused.
pub(crate) async fn objects(
    context: &Context,
    cluster: &Cluster,
    names: &[String],
    all_namespaces: bool,
    selector: Option<&str>,
) -> Result<Vec<Object>> {
    let mut found = vec![];
    for name in names {
        found.push(cluster.find(&Target::parse(name)?).await?);
    }
    if !names.is_empty() {
        return Ok(found);
    }
    let query = Query {
        namespace: (!all_namespaces).then(|| cluster.namespace.clone()),
        labels: selector.map(str::to_owned),
        chunk: 500,
        ..Query::default()
    };
    let (found, hidden) = cluster.readable_objects(&KINDS, &query).await?;
    context.left_out(&hidden);
    Ok(found)
}

/// A run that a command line names.
pub(crate) struct NamedRun {
    /// Its object.
    pub(crate) object: Object,
    /// Its name.
    pub(crate) name: String,
    /// What status knows of it; none of a run that it no longer lists.
    pub(crate) run: Option<Run>,
}

impl NamedRun {
    /// What status knows of the run.
    ///
    /// # Errors
    /// It is no longer listed, with where it can still be found.
    pub(crate) fn listed(self) -> Result<(Object, Run)> {
        match self.run {
            Some(run) => Ok((self.object, run)),
            None => Err(unlisted(&self.object, &self.name)),
        }
    }
}

/// The error for a run that status no longer lists.
pub(crate) fn unlisted(object: &Object, run: &str) -> Error {
    let count = object.status().runs.len();
    let short = object.kind.short_name(&object.name());
    Error::new(
        Exit::NotFound,
        format!(
            "{run} is not among the {} that the status of {} lists; what it stored may still be there",
            counted(count, "run"),
            object.full_name()
        ),
    )
    .hint(format!("kubectl backup runs {short} --stored"))
}

/// A run by its name, or the active or newest one of an object. A run that status no longer lists is
/// known by the name of its object.
///
/// # Errors
/// Neither a run nor an object of that name; an object that never ran.
pub(crate) async fn find_run(cluster: &Cluster, text: &str) -> Result<NamedRun> {
    match object_or_run(cluster, text).await? {
        (_, Some(run)) => Ok(run),
        (object, None) => match object.current_run() {
            Some(run) => Ok(NamedRun {
                name: run.name.clone(),
                object,
                run: Some(run),
            }),
            None => Err(never_ran(&object)),
        },
    }
}

/// The object of this name; else the run of this name, with its object.
///
/// # Errors
/// Neither an object nor a run of that name; what the server refused.
pub(crate) async fn object_or_run(
    cluster: &Cluster,
    text: &str,
) -> Result<(Object, Option<NamedRun>)> {
    let (only_run, name) = match text.strip_prefix("run/") {
        Some(name) => (true, name),
        None => (false, text),
    };
    let mut missing = None;
    if !only_run {
        match cluster.find(&Target::parse(name)?).await {
            Ok(object) => return Ok((object, None)),
            // A kind that may not be read hides none of the runs of the others.
            Err(error)
                if matches!(error.kind, Exit::NotFound | Exit::Denied) && !name.contains('/') =>
            {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let (objects, _) = cluster.readable_objects(&KINDS, &query).await?;
    let listed = objects.iter().find_map(|object| {
        let mut runs = object.status().runs.into_iter();
        Some((object, Some(runs.find(|run| run.name == name)?)))
    });
    let named = || {
        let mut objects = objects.iter();
        let object = objects.find(|o| crds::names::may_be_run_of(&o.name(), name))?;
        Some((object, None))
    };
    if let Some((object, run)) = listed.or_else(named) {
        let run = NamedRun {
            object: object.clone(),
            name: name.to_owned(),
            run,
        };
        return Ok((object.clone(), Some(run)));
    }
    Err(missing.unwrap_or_else(|| {
        Error::new(
            Exit::NotFound,
            format!("no run {name:?} in namespace {:?}", cluster.namespace),
        )
        .hint("kubectl backup list")
    }))
}

/// The error for an object without runs.
pub(crate) fn never_ran(object: &Object) -> Error {
    let short = object.kind.short_name(&object.name());
    Error::new(
        Exit::NotFound,
        format!("{} has no run yet", object.full_name()),
    )
    .hint(format!("kubectl backup run-now {short} --wait"))
}

/// A Restore by its name.
///
/// # Errors
/// Not found, not installed, denied.
pub(crate) async fn restore(cluster: &Cluster, name: &str) -> Result<Object> {
    let target = Target {
        kind: Some(&RESTORE),
        name: name.to_owned(),
    };
    cluster.find(&target).await
}

/// The name in `restore/NAME`.
pub(crate) fn restore_name(text: &str) -> Option<&str> {
    let (kind, name) = text.split_once('/')?;
    Kind::find(kind, &[&RESTORE]).map(|_| name)
}

/// A Restore, Database or Storage that is named with its type.
pub(crate) fn unscheduled(text: &str) -> Option<Target> {
    let target = Target::parse_in(text, &UNSCHEDULED).ok()?;
    target.kind.is_some().then_some(target)
}

/// Who uses Databases and Storages, as far as that can be read.
pub(crate) async fn users(cluster: &Cluster, namespace: Option<String>) -> ReferencedBy {
    let query = Query {
        namespace,
        chunk: 500,
        ..Query::default()
    };
    match cluster.readable_objects(&KINDS, &query).await {
        Ok((objects, hidden)) => ReferencedBy::of(&objects, !hidden.is_empty()),
        Err(_) => ReferencedBy::of(&[], true),
    }
}
