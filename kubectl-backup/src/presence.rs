//! Whether what the runs of an object need is there: looked for before anything is created, as a pod
//! that can't start would tell of it much later; and for whoever asks how an object is. One rule for all:
//! [`needs_of`] says what is needed, [`look`] whether it is there.

use crds::near::nearest;

use crate::build::needs::{Need, Needs};
use crate::cluster::{Cluster, Keys, Object, no_namespace};
use crate::context::Context;
use crate::error::{Error, Kind as Exit, Result};
use crate::kind::{DATABASE, MYSQL, RESTORE, STORAGE};
use crate::stored;
use crate::ui::Mark;

/// Something that is needed, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `Secret shop-db`, `volume claim backups`, `Storage nightly`.
    pub(crate) what: String,
    /// What is wrong with it; none if nothing is known to be.
    pub(crate) fault: Option<String>,
    /// The right to look for it, where the caller lacks it.
    pub(crate) hidden: Option<&'static str>,
    /// What to do about a fault.
    pub(crate) remedy: String,
}

/// What the runs of an object need, and what it refers to.
#[derive(Debug, Default)]
struct Wanted {
    needs: Needs,
    references: Vec<Reference>,
}

/// Looks for what a run of the object needs.
///
/// # Errors
/// Something is not there. A right that is missing is told and no error.
pub(crate) async fn of_run(context: &Context, cluster: &Cluster, object: &Object) -> Result<()> {
    demand(context, cluster, object).await
}

/// What reads the artefacts of the object needs.
///
/// # Errors
/// The Storage it names is not there.
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
    let found = look(cluster, &namespace_of(cluster, whose), needs).await;
    let missing = missing(context, &found);
    refuse(cluster, whose, "created", &missing).await
}

/// Looks for what an object that is about to be made names, and gives all that is not there.
pub(crate) async fn of_new(context: &Context, cluster: &Cluster, object: &Object) -> Vec<String> {
    missing(context, &all(cluster, object).await)
}

/// Refuses an object that is about to be made, or to run, and names what is not there.
///
/// # Errors
/// All that is not there.
pub(crate) async fn demand(context: &Context, cluster: &Cluster, object: &Object) -> Result<()> {
    let missing = of_new(context, cluster, object).await;
    refuse(cluster, object, "created", &missing).await
}

/// Refuses a change that names what is not there. What was named before is not this change's.
///
/// # Errors
/// All that is not there.
pub(crate) async fn demand_new(
    context: &Context,
    cluster: &Cluster,
    before: &Object,
    after: &Object,
) -> Result<()> {
    let old = needs_of(cluster, before).await;
    let mut new = needs_of(cluster, after).await;
    new.needs.0.retain(|need| !old.needs.0.contains(need));
    new.references.retain(|r| !old.references.contains(r));
    let found = found(cluster, after, new).await;
    let missing = missing(context, &found);
    refuse(cluster, after, "changed", &missing).await
}

/// What a run of the object needs, each once, and whether it is there; Secrets only if wanted, as few
/// may look for them, and never what they hold.
pub(crate) async fn references(
    cluster: &Cluster,
    object: &Object,
    secrets: bool,
) -> Vec<Reference> {
    let mut wanted = needs_of(cluster, object).await;
    let needs = std::mem::take(&mut wanted.needs.0).into_iter();
    let kept = needs.filter_map(|need| match need {
        Need::Secret(name, _) => secrets.then_some(Need::Secret(name, None)),
        other => Some(other),
    });
    wanted.needs.0 = kept.collect();
    found(cluster, object, wanted).await
}

async fn all(cluster: &Cluster, object: &Object) -> Vec<Reference> {
    let wanted = needs_of(cluster, object).await;
    found(cluster, object, wanted).await
}

async fn found(cluster: &Cluster, object: &Object, wanted: Wanted) -> Vec<Reference> {
    let mut found = look(cluster, &namespace_of(cluster, object), &wanted.needs).await;
    found.extend(wanted.references);
    found
}

/// What the runs of an object of any kind need, as far as it can be told.
async fn needs_of(cluster: &Cluster, object: &Object) -> Wanted {
    let spec = object.spec().clone();
    let (references, endpoints) = referred(cluster, object).await;
    let needs = if *object.kind == MYSQL {
        let storage = stored::storage(cluster, object).await.ok().flatten();
        serde_json::from_value(spec)
            .map(|spec| Needs::of_run(&spec, storage))
            .unwrap_or_default()
    } else if *object.kind == RESTORE {
        serde_json::from_value(spec)
            .map(|spec| Needs::of_restore(&spec))
            .unwrap_or_default()
    } else if [&DATABASE, &STORAGE].contains(&object.kind) {
        Needs::of_endpoint(&spec)
    } else {
        let job = stored::body(object).ok().and_then(|b| b.spec?.job);
        let job = job.unwrap_or_default();
        match stored::run_files(cluster, object).await {
            Ok(Some(files)) => Needs::of_archives(&files, &job),
            // Something is missing or wrong: what the others name is looked for all the same.
            _ => endpoints
                .iter()
                .map(Needs::of_endpoint)
                .fold(Needs::of_job(&job), Needs::and),
        }
    };
    Wanted { needs, references }
}

/// The objects of gobackup.io that an object names, and the specs of those that are there.
async fn referred(cluster: &Cluster, object: &Object) -> (Vec<Reference>, Vec<serde_json::Value>) {
    let namespace = namespace_of(cluster, object);
    let (mut references, mut specs) = (vec![], vec![]);
    for candidates in object.references() {
        let Some(first) = candidates.first() else {
            continue;
        };
        let (mut there, mut hidden) = (false, None);
        for key in &candidates {
            match cluster.referred(&namespace, key).await {
                Ok(Some(spec)) => {
                    specs.push(spec);
                    there = true;
                    break;
                }
                Ok(None) => {}
                Err(_) => hidden = Some("get databases and storages"),
            }
        }
        let plural = format!("{}s", first.kind.to_lowercase());
        references.push(Reference {
            what: format!("{} {}", first.kind, first.name),
            fault: (!there && hidden.is_none()).then(|| "is not there".to_owned()),
            hidden: hidden.filter(|_| !there),
            remedy: format!("make it, or correct the name: kubectl -n {namespace} get {plural}"),
        });
    }
    (references, specs)
}

fn namespace_of(cluster: &Cluster, object: &Object) -> String {
    let namespace = object.namespace();
    if namespace.is_empty() {
        return cluster.namespace.clone();
    }
    namespace
}

/// Looks for each, once.
async fn look(cluster: &Cluster, namespace: &str, needs: &Needs) -> Vec<Reference> {
    let mut found = vec![];
    let mut looked: Option<(Need, Keys)> = None;
    for need in &needs.0 {
        let (kind, name, key) = match need {
            Need::Claim(name) => ("volume claim", name, None),
            Need::ConfigMap(name, key) => ("ConfigMap", name, key.as_ref()),
            Need::Secret(name, key) => ("Secret", name, key.as_ref()),
        };
        let (right, remedy) = match need {
            Need::Claim(_) => (
                "get persistentvolumeclaims",
                format!(
                    "make it, or name another one: kubectl -n {namespace} get persistentvolumeclaims"
                ),
            ),
            Need::ConfigMap(..) => (
                "get configmaps",
                format!("kubectl -n {namespace} create configmap {name} …"),
            ),
            Need::Secret(..) => (
                "get secrets",
                format!("kubectl -n {namespace} create secret generic {name} …"),
            ),
        };
        let line = |fault: Option<String>, hidden| Reference {
            what: format!("{kind} {name}"),
            fault,
            hidden,
            remedy: remedy.clone(),
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
            let keys = match &this {
                Need::Claim(name) => cluster.claim(namespace, name).await,
                Need::ConfigMap(name, _) => cluster.config_map_keys(namespace, name).await,
                Need::Secret(name, _) => cluster.secret_keys(namespace, name, keyed).await,
            };
            found.push(match &keys {
                Keys::Absent => line(Some("is not there".to_owned()), None),
                Keys::Denied => line(None, Some(right)),
                Keys::Unknown | Keys::Present(_) => line(None, None),
            });
            looked = Some((this, keys));
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
            let fault = format!("has no key {key:?}{}", near.unwrap_or(has));
            found.push(Reference {
                remedy: format!("correct the key, or add it to {kind} {name}"),
                ..line(Some(fault), None)
            });
        }
    }
    found
}

/// What is not there, in words. What may not be read is told.
fn missing(context: &Context, found: &[Reference]) -> Vec<String> {
    let hidden = found.iter().filter(|r| r.hidden.is_some());
    let hidden: Vec<&str> = hidden.map(|r| r.what.as_str()).collect();
    if !hidden.is_empty() {
        let text = format!(
            "not looked for, as you may not read it: {}",
            hidden.join(", ")
        );
        context.ui.progress(Mark::Wait, &text);
    }
    faults(found)
}

/// The faults, in words.
pub(crate) fn faults(found: &[Reference]) -> Vec<String> {
    let faults = found
        .iter()
        .filter_map(|r| Some(format!("{} {}", r.what, r.fault.as_ref()?)));
    faults.collect()
}

async fn refuse(cluster: &Cluster, whose: &Object, done: &str, missing: &[String]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let namespace = namespace_of(cluster, whose);
    if cluster.lacks_namespace(&namespace).await {
        return Err(no_namespace(&namespace));
    }
    let text = format!(
        "{} needs what is not in namespace {namespace}: {}; nothing was {done}",
        whose.full_name(),
        missing.join("; ")
    );
    Err(Error::new(Exit::NotFound, text).hint(format!(
        "kubectl -n {namespace} get secrets,configmaps,persistentvolumeclaims"
    )))
}
