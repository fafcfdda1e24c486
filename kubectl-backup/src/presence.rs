//! Whether what a pod needs is there, looked for before anything is created: a pod that can't start would
//! tell of it much later.

use crate::build::needs::{Need, Needs};
use crate::cluster::{Cluster, Keys, Object, no_namespace};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{MYSQL, RESTORE, nearest};
use crate::stored;
use crate::ui::Mark;

/// Looks for what a run of the object needs.
///
/// # Errors
/// Something is not there. A right that is missing is told and no error.
pub(crate) async fn of_run(context: &Context, cluster: &Cluster, object: &Object) -> Result<()> {
    let needs = if *object.kind == MYSQL {
        // What can't be read is for the operator to say.
        let Ok(spec) = serde_json::from_value(object.spec().clone()) else {
            return Ok(());
        };
        let storage = optional(stored::storage(cluster, object).await)?.flatten();
        Needs::of_run(&spec, storage)
    } else {
        let job = stored::body(object).ok();
        let job = job.and_then(|b| b.spec?.job).unwrap_or_default();
        match optional(stored::run_files(cluster, object).await)?.flatten() {
            Some(files) => Needs::of_archives(&files, &job),
            None => return Ok(()),
        }
    };
    check(context, cluster, object, &needs).await
}

/// What reads the artefacts of the object needs.
///
/// # Errors
/// As [`of_run`].
pub(crate) async fn needs_to_read(
    cluster: &Cluster,
    object: &Object,
    storage: Option<&str>,
) -> Result<Needs> {
    if *object.kind == MYSQL {
        let Ok(spec) = serde_json::from_value(object.spec().clone()) else {
            return Ok(Needs::default());
        };
        let storage = optional(stored::storage(cluster, object).await)?.flatten();
        return Ok(Needs::of_stored(&spec, storage));
    }
    // What it refers to and is not there is for the operator to say: it may come yet.
    let files = stored::archive_files(cluster, object, storage, false).await;
    Ok(files.map_or_else(
        |_| Needs::default(),
        |files| Needs::of_archives(&files, &crds::backup::JobOptions::default()),
    ))
}
/// What may not be read keeps nobody from anything: the pod has rights of its own.
fn optional<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind == Exit::NotFound => Err(error),
        Err(_) => Ok(None),
    }
}

/// Looks for what `whose` needs, in its namespace.
///
/// # Errors
/// All that is not there.
pub(crate) async fn check(
    context: &Context,
    cluster: &Cluster,
    whose: &Object,
    needs: &Needs,
) -> Result<()> {
    let namespace = namespace_of(cluster, whose);
    let missing = absent(context, cluster, &namespace, needs).await;
    refuse(cluster, whose, &namespace, &missing).await
}

/// Looks for what an object that is about to be made names, and gives all that is not there.
pub(crate) async fn of_new(context: &Context, cluster: &Cluster, object: &Object) -> Vec<String> {
    let spec = object.spec().clone();
    let needs = if *object.kind == MYSQL {
        serde_json::from_value(spec).map(|spec| Needs::of_run(&spec, None))
    } else if *object.kind == RESTORE {
        serde_json::from_value(spec).map(|spec| Needs::of_restore(&spec))
    } else {
        Ok(Needs::of_endpoint(&spec))
    };
    let namespace = namespace_of(cluster, object);
    let needs = needs.unwrap_or_default();
    let mut missing = absent(context, cluster, &namespace, &needs).await;
    for candidates in object.references() {
        let mut there = false;
        for key in &candidates {
            there |= !matches!(cluster.referred(&namespace, key).await, Ok(None));
        }
        if let (false, Some(key)) = (there, candidates.first()) {
            missing.push(format!("{} {} is not there", key.kind, key.name));
        }
    }
    missing
}

/// Refuses an object that is about to be made and names what is not there.
///
/// # Errors
/// All that is not there.
pub(crate) async fn demand(context: &Context, cluster: &Cluster, object: &Object) -> Result<()> {
    let missing = of_new(context, cluster, object).await;
    let namespace = namespace_of(cluster, object);
    refuse(cluster, object, &namespace, &missing).await
}

fn namespace_of(cluster: &Cluster, object: &Object) -> String {
    let namespace = object.namespace();
    if namespace.is_empty() {
        return cluster.namespace.clone();
    }
    namespace
}

/// What is not there. What may not be read is told.
async fn absent(
    context: &Context,
    cluster: &Cluster,
    namespace: &str,
    needs: &Needs,
) -> Vec<String> {
    let (mut missing, mut hidden) = (vec![], vec![]);
    let mut looked: Option<(Need, Keys)> = None;
    for need in &needs.0 {
        let (kind, name, key) = match need {
            Need::Claim(name) => ("volume claim", name, None),
            Need::ConfigMap(name, key) => ("ConfigMap", name, key.as_ref()),
            Need::Secret(name, key) => ("Secret", name, key.as_ref()),
        };
        // Needs of one object stand together.
        let this = match need {
            Need::Claim(_) => need.clone(),
            Need::ConfigMap(name, _) => Need::ConfigMap(name.clone(), None),
            Need::Secret(name, _) => Need::Secret(name.clone(), None),
        };
        let keyed = needs.0.iter().any(|n| match (n, &this) {
            (Need::Secret(n, Some(_)), Need::Secret(t, _)) => n == t,
            _ => false,
        });
        if looked.as_ref().is_none_or(|(of, _)| *of != this) {
            let found = match &this {
                Need::Claim(name) => cluster.claim(namespace, name).await,
                Need::ConfigMap(name, _) => cluster.config_map_keys(namespace, name).await,
                Need::Secret(name, _) => cluster.secret_keys(namespace, name, keyed).await,
            };
            match &found {
                Keys::Absent => missing.push(format!("{kind} {name} is not there")),
                Keys::Denied => hidden.push(format!("{kind} {name}")),
                Keys::Unknown | Keys::Present(_) => {}
            }
            looked = Some((this, found));
        }
        let keys = looked.as_ref().map(|(_, found)| found);
        if let (Some(Keys::Present(Some(keys))), Some(key)) = (keys, key)
            && !keys.contains(key)
        {
            let near = nearest(key, keys).map(|near| format!(" (did you mean {near:?}?)"));
            let has = match keys.as_slice() {
                [] => " and no other".to_owned(),
                keys => format!(", it has {}", keys.join(", ")),
            };
            missing.push(format!(
                "{kind} {name} has no key {key:?}{}",
                near.unwrap_or(has)
            ));
        }
    }
    if !hidden.is_empty() {
        let text = format!(
            "not looked for, as you may not read it: {}",
            hidden.join(", ")
        );
        context.ui.progress(Mark::Wait, &text);
    }
    missing
}

async fn refuse(
    cluster: &Cluster,
    whose: &Object,
    namespace: &str,
    missing: &[String],
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    if cluster.lacks_namespace(namespace).await {
        return Err(no_namespace(namespace));
    }
    let text = format!(
        "{} needs what is not in namespace {namespace}: {}; nothing was created",
        whose.full_name(),
        missing.join("; ")
    );
    Err(Error::new(Exit::NotFound, text).hint(format!(
        "kubectl -n {namespace} get secrets,configmaps,persistentvolumeclaims"
    )))
}
