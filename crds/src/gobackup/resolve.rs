//! From a Backup of any generation and the objects it refers to, to the plan of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use crate::backup::{BackupBody, DatabaseRef, RunEngine, StorageRef};
use crate::database::DatabaseSpec;
use crate::legacy::{BackupModelSpec, PostgreSqlSpec, S3Spec};
use crate::report::EndpointKind;
use crate::storage::StorageSpec;
use crate::validate::Problem;
use crate::volumes::{self, Ground};

use super::fields::{Merged, merge};
use super::words::{as_postgresql, as_s3, gobackup_name, problem, text};
use super::{archive, databases, engine, storages, verify};
use crate::group::{DATABASE_GROUP, GROUP, STORAGE_GROUP};
use crate::plan::{Compress, Credential, Encrypt, Plan};

/// An object that a Backup may refer to, in the Backup's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    fn new(group: &'static str, kind: &'static str, name: &str) -> Self {
        Self {
            group,
            kind,
            name: name.to_owned(),
        }
    }
}

/// The objects of the namespace that were found, older kinds converted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct References {
    /// `Database` and `PostgreSQL`.
    pub databases: BTreeMap<ObjectKey, DatabaseSpec>,
    /// `Storage` and `S3`.
    pub storages: BTreeMap<ObjectKey, StorageSpec>,
    /// `BackupModel`.
    pub models: BTreeMap<ObjectKey, BackupModelSpec>,
    /// Of any kind: there, but too large to be read.
    pub too_large: BTreeSet<ObjectKey>,
}

impl References {
    /// Takes in an object by its `spec`; true if it is news. One that does not fit its type counts
    /// as an empty one, whose problems name what it lacks.
    pub fn insert(&mut self, key: ObjectKey, spec: &serde_json::Value) -> bool {
        let readable = self.too_large.remove(&key);
        readable
            | match key.kind {
                "Database" => put(&mut self.databases, key, read(spec)),
                "PostgreSQL" => {
                    let database = read::<PostgreSqlSpec>(spec).to_database();
                    put(&mut self.databases, key, database)
                }
                "Storage" => put(&mut self.storages, key, read(spec)),
                "S3" => {
                    let storage = read::<S3Spec>(spec).to_storage();
                    put(&mut self.storages, key, storage)
                }
                _ => put(&mut self.models, key, read(spec)),
            }
    }

    /// Notes an object that is too large to be read; true if it is news.
    pub fn insert_too_large(&mut self, key: ObjectKey) -> bool {
        let before = self.too_large.contains(&key);
        self.remove(&key);
        self.too_large.insert(key);
        !before
    }

    /// Forgets an object; true if it was known.
    pub fn remove(&mut self, key: &ObjectKey) -> bool {
        self.too_large.remove(key)
            || self.databases.remove(key).is_some()
            || self.storages.remove(key).is_some()
            || self.models.remove(key).is_some()
    }
}

/// True if the map changed.
fn put<T: PartialEq>(map: &mut BTreeMap<ObjectKey, T>, key: ObjectKey, new: T) -> bool {
    if map.get(&key) == Some(&new) {
        return false;
    }
    map.insert(key, new);
    true
}

fn read<T: DeserializeOwned + Default>(spec: &serde_json::Value) -> T {
    T::deserialize(spec).unwrap_or_default()
}

/// A plan and what its author should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What a run does.
    pub plan: Plan<Credential>,
    /// What does not do what it seems to say.
    pub warnings: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unresolved {
    /// References to objects that are not there.
    pub missing: Vec<Problem>,
    /// Mistakes in the Backup or in an object it refers to.
    pub problems: Vec<Problem>,
}

impl Unresolved {
    /// CamelCase reason of the condition ReferencesResolved.
    pub fn reason(&self) -> &'static str {
        if self.missing.is_empty() {
            "InvalidReference"
        } else {
            "NotFound"
        }
    }

    /// Text of the condition: what is missing or wrong, and the remedy.
    pub fn message(&self) -> String {
        let all: Vec<Problem> = self.missing.iter().chain(&self.problems).cloned().collect();
        crate::validate::join(&all)
    }
}

/// Candidates of a database reference, in the order in which they count.
fn database_candidates(reference: &DatabaseRef) -> Vec<ObjectKey> {
    let Some(name) = text(reference.name.as_deref()) else {
        return vec![];
    };
    let today = ObjectKey::new(GROUP, "Database", &name);
    let type_ = text(reference.type_.as_deref()).unwrap_or_default();
    if !type_.is_empty() && !type_.eq_ignore_ascii_case("postgresql") {
        return vec![today];
    }
    let typed = ObjectKey::new(GROUP, "PostgreSQL", &name);
    let old = ObjectKey::new(DATABASE_GROUP, "PostgreSQL", &name);
    if reference.api_group.as_deref() == Some(DATABASE_GROUP) {
        vec![old, typed, today]
    } else {
        vec![today, typed, old]
    }
}

/// Candidates of a storage reference, in the order in which they count.
fn storage_candidates(reference: &StorageRef) -> Vec<ObjectKey> {
    let Some(name) = text(reference.name.as_deref()) else {
        return vec![];
    };
    let today = ObjectKey::new(GROUP, "Storage", &name);
    let type_ = text(reference.type_.as_deref())
        .unwrap_or_default()
        .to_lowercase();
    if !type_.is_empty() && super::s3_providers::find(&type_).is_none() {
        return vec![today];
    }
    let typed = ObjectKey::new(GROUP, "S3", &name);
    let old = ObjectKey::new(STORAGE_GROUP, "S3", &name);
    if reference.api_group.as_deref() == Some(STORAGE_GROUP) {
        vec![old, typed, today]
    } else {
        vec![today, typed, old]
    }
}

/// Every object that could answer a reference of this body.
pub fn wanted(body: &BackupBody) -> Vec<ObjectKey> {
    let merged = merge(body);
    let mut keys: Vec<ObjectKey> = vec![];
    keys.extend(merged.databases.1.iter().flat_map(database_candidates));
    keys.extend(merged.storages.1.iter().flat_map(storage_candidates));
    keys.extend(
        merged
            .model
            .iter()
            .map(|m| ObjectKey::new(GROUP, "BackupModel", m)),
    );
    keys.sort();
    keys.dedup();
    keys
}

/// Every object that [`stored`] needs.
pub fn wanted_to_read(body: &BackupBody) -> Vec<ObjectKey> {
    let mut keys = wanted(body);
    keys.retain(|k| !matches!(k.kind, "Database" | "PostgreSQL"));
    keys
}

/// The object that the Database or Storage of this name in the plan stands for.
pub fn endpoint(
    body: &BackupBody,
    references: &References,
    kind: EndpointKind,
    name: &str,
) -> Option<ObjectKey> {
    let merged = merge(body);
    let keys: Vec<ObjectKey> = match kind {
        EndpointKind::Database => {
            let all = merged.databases.1.iter().flat_map(database_candidates);
            all.filter(|k| references.databases.contains_key(k))
                .collect()
        }
        EndpointKind::Storage => {
            let all = merged.storages.1.iter().flat_map(storage_candidates);
            all.filter(|k| references.storages.contains_key(k))
                .collect()
        }
    };
    keys.into_iter().find(|k| k.name.to_lowercase() == name)
}

/// The plan of a Backup.
///
/// # Errors
/// What is missing, and what is wrong; never a panic, whatever the objects hold.
pub fn resolve(
    name: &str,
    namespace: &str,
    body: &BackupBody,
    references: &References,
) -> Result<Resolved, Unresolved> {
    let (resolved, bad) = examine(name, namespace, body, references);
    if bad == Unresolved::default() {
        Ok(resolved)
    } else {
        Err(bad)
    }
}

/// The plan as far as there is one, and what is missing or wrong.
pub fn examine(
    name: &str,
    namespace: &str,
    body: &BackupBody,
    references: &References,
) -> (Resolved, Unresolved) {
    let mut bad = Unresolved::default();
    let mut warnings = vec![];
    let merged = with_model(merge(body), references, namespace, &mut bad);
    let ground = |path: &str| ground(body, path);
    let mounted = |path: &str| ground(path) != Ground::Container;
    let plan = Plan {
        model: model(name, body, &mut bad),
        databases: find_databases(
            &merged,
            namespace,
            references,
            &mounted,
            &mut bad,
            &mut warnings,
        ),
        storages: find_storages(
            &merged,
            namespace,
            references,
            &ground,
            &mut bad,
            &mut warnings,
        ),
        compress: match &merged.compress {
            Some((path, with)) => archive::compress(path, Some(with), &mut bad.problems),
            None => archive::compress("", None, &mut bad.problems),
        },
        encrypt: encryption(&merged, &mut bad),
        split: merged
            .split
            .as_ref()
            .and_then(|(path, with)| archive::split_with(path, with, &mut bad.problems)),
        before_script: merged.before_script.clone(),
        after_script: merged.after_script.clone(),
    };
    warnings.extend(plain_password(&merged));
    let own_image = body
        .spec
        .iter()
        .filter_map(|s| s.job.as_ref())
        .flat_map(|j| [&j.image, &j.client_image])
        .any(|image| text(image.as_deref()).is_some());
    let mut jobs = body.spec.iter().filter_map(|s| s.job.as_ref());
    if engine::asked(body) == RunEngine::Gobackup && jobs.any(|j| j.client_image.is_some()) {
        warnings.push(
            "spec.job.clientImage has no effect with gobackup as engine: its image has the clients"
                .to_owned(),
        );
    }
    for database in plan.databases.iter().filter(|_| !own_image) {
        if let Some(client) = database.database_type.client_to_bring() {
            warnings.push(format!(
                "Database {}: the runner's image has no {client}, and a run that needs it fails; set spec.job.clientImage to one that has {client}",
                database.name
            ));
        }
    }
    engine::check(body, &plan, &mut bad.problems, &mut warnings);
    warnings.extend(verify::warnings(body, &plan));
    if merged.persistence {
        warnings.push(
            "spec.persistence has no effect: what is kept is read from the storages".to_owned(),
        );
    }
    (Resolved { plan, warnings }, bad)
}

/// The warning of a password that stands in the object.
pub(super) fn plain_password(merged: &Merged) -> Option<String> {
    let (path, with) = merged.encode.as_ref()?;
    let plain = text(with.password.as_deref()).is_some() && with.password_secret_key_ref.is_none();
    plain.then(|| format!(
        "{path}.password is plain text that anyone who can read this object sees; use passwordSecretKeyRef"
    ))
}

/// What reads the archives of a Backup needs of its plan: the storages, and the encryption. Nothing
/// is dumped, so its Databases need not be there any more. With `storage` it is that one alone.
///
/// # Errors
/// What is missing, and what is wrong; never a panic, whatever the objects hold.
pub fn stored(
    name: &str,
    namespace: &str,
    body: &BackupBody,
    references: &References,
    storage: Option<&str>,
) -> Result<Plan<Credential>, Unresolved> {
    let mut bad = Unresolved::default();
    let merged = with_model(merge(body), references, namespace, &mut bad);
    let ground = |path: &str| ground(body, path);
    let mut storages = find_storages(
        &merged,
        namespace,
        references,
        &ground,
        &mut bad,
        &mut vec![],
    );
    if let Some(wanted) = storage {
        let names: Vec<String> = storages.iter().map(|s| s.name.clone()).collect();
        storages.retain(|s| s.name == wanted.to_lowercase());
        if storages.is_empty() {
            bad.problems.push(problem(
                "storage",
                format!(
                    "{name} names no Storage {wanted:?}; it stores on {}",
                    names.join(", ")
                ),
            ));
        }
    }
    let plan = Plan {
        model: model(name, body, &mut bad),
        databases: vec![],
        storages,
        compress: Compress::default(),
        encrypt: encryption(&merged, &mut bad),
        split: None,
        before_script: None,
        after_script: None,
    };
    if bad == Unresolved::default() {
        Ok(plan)
    } else {
        Err(bad)
    }
}

/// Name of the model: the topmost directory in the archive.
fn model(name: &str, body: &BackupBody, bad: &mut Unresolved) -> String {
    let job = body.spec.as_ref().and_then(|s| s.job.as_ref());
    let own = job.and_then(|j| j.gobackup_name.as_deref());
    gobackup_name("spec.job.gobackupName", own, &mut bad.problems)
        .unwrap_or_else(|| name.to_lowercase())
}

/// The fields with those of the BackupModel that is referred to.
fn with_model(
    merged: Merged,
    references: &References,
    namespace: &str,
    bad: &mut Unresolved,
) -> Merged {
    let Some(model) = merged.model.clone() else {
        return merged;
    };
    let key = ObjectKey::new(GROUP, "BackupModel", &model);
    if let Some(spec) = references.models.get(&key) {
        return merged.with_model(&model, spec);
    }
    if let Some(large) = too_large("backupModelRef", &[key], references) {
        bad.problems.push(large);
        return merged;
    }
    bad.missing
        .push(missing("backupModelRef", "BackupModel", &model, namespace));
    merged
}

/// Where a path of the pod lies.
fn ground(body: &BackupBody, path: &str) -> Ground {
    let job = body.spec.as_ref().and_then(|s| s.job.as_ref());
    job.map_or(Ground::Container, |job| {
        volumes::ground(path, &job.volumes, &job.volume_mounts)
    })
}

fn encryption(merged: &Merged, bad: &mut Unresolved) -> Option<Encrypt<Credential>> {
    let (path, with) = merged.encode.as_ref()?;
    archive::encrypt(path, Some(with), &mut bad.problems)
}

/// The first of `candidates` that is there is too large.
fn too_large(
    path: impl Into<String>,
    candidates: &[ObjectKey],
    references: &References,
) -> Option<Problem> {
    let known = |key: &&ObjectKey| {
        references.too_large.contains(*key)
            || references.databases.contains_key(*key)
            || references.storages.contains_key(*key)
    };
    let key = candidates.iter().find(known)?;
    references.too_large.contains(key).then(|| {
        problem(
            path,
            format!(
                "{} {} is too large to be read; shorten it to less than 256 KiB",
                key.kind, key.name
            ),
        )
    })
}

/// There is no object of this kind and name.
pub(super) fn missing(path: impl Into<String>, kind: &str, name: &str, namespace: &str) -> Problem {
    let resource = match kind {
        "Database" => "databases.gobackup.io",
        "Storage" => "storages.gobackup.io",
        _ => "backupmodels.gobackup.io",
    };
    problem(
        path,
        format!(
            "there is no {kind} {name:?} in namespace {namespace}; create it, or correct the name: kubectl -n {namespace} get {resource}"
        ),
    )
}

fn find_databases(
    merged: &Merged,
    namespace: &str,
    references: &References,
    mounted: &dyn Fn(&str) -> bool,
    bad: &mut Unresolved,
    warnings: &mut Vec<String>,
) -> Vec<crate::plan::Database<Credential>> {
    let (path, refs) = &merged.databases;
    if refs.is_empty() {
        bad.problems
            .push(problem(path, "names no Database; add one as {name: …}"));
    }
    let mut plans: Vec<crate::plan::Database<Credential>> = vec![];
    for (i, reference) in refs.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let Some(name) = text(reference.name.as_deref()) else {
            bad.problems.push(problem(
                format!("{path}.name"),
                "is not set; name a Database",
            ));
            continue;
        };
        let candidates = database_candidates(reference);
        if let Some(large) = too_large(&path, &candidates, references) {
            bad.problems.push(large);
            continue;
        }
        let found = candidates
            .into_iter()
            .find_map(|key| Some((key.kind, references.databases.get(&key)?)));
        let Some((kind, spec)) = found else {
            bad.missing
                .push(missing(path, "Database", &name, namespace));
            continue;
        };
        let (plan, mut outcome) = databases::plan(&name, spec, mounted);
        if kind == "PostgreSQL" {
            outcome = outcome.map(|text| as_postgresql(text, &name));
        }
        bad.problems.extend(outcome.problems);
        warnings.extend(outcome.warnings);
        if plans.iter().any(|p| p.name == name.to_lowercase()) {
            warnings.push(format!("{path}: {name} is named twice; it is dumped once"));
            continue;
        }
        let Some(plan) = plan else { continue };
        let twin = plans.iter().find(|p| p.directory() == plan.directory());
        if let Some(twin) = twin {
            bad.problems.push(problem(
                format!("Database {name}: spec.gobackupName"),
                format!(
                    "{} is also the name of Database {} in the archive; set another",
                    plan.directory(),
                    twin.name
                ),
            ));
        }
        plans.push(plan);
    }
    plans
}

fn find_storages(
    merged: &Merged,
    namespace: &str,
    references: &References,
    ground: &dyn Fn(&str) -> Ground,
    bad: &mut Unresolved,
    warnings: &mut Vec<String>,
) -> Vec<crate::plan::Storage<Credential>> {
    let (path, refs) = &merged.storages;
    if refs.is_empty() {
        bad.problems
            .push(problem(path, "names no Storage; add one as {name: …}"));
    }
    let mut plans: Vec<crate::plan::Storage<Credential>> = vec![];
    for (i, reference) in refs.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let Some(name) = text(reference.name.as_deref()) else {
            bad.problems.push(problem(
                format!("{path}.name"),
                "is not set; name a Storage",
            ));
            continue;
        };
        let candidates = storage_candidates(reference);
        if let Some(large) = too_large(&path, &candidates, references) {
            bad.problems.push(large);
            continue;
        }
        let found = candidates
            .into_iter()
            .find_map(|key| Some((key.kind, references.storages.get(&key)?)));
        let Some((kind, spec)) = found else {
            bad.missing.push(missing(path, "Storage", &name, namespace));
            continue;
        };
        let (plan, mut outcome) = storages::plan(&name, spec, reference, ground);
        if kind == "S3" {
            outcome = outcome.map(|text| as_s3(text, &name));
        }
        bad.problems.extend(outcome.problems);
        warnings.extend(outcome.warnings);
        if plans.iter().any(|p| p.name == name.to_lowercase()) {
            warnings.push(format!(
                "{path}: {name} is named twice; it is stored there once"
            ));
        } else {
            plans.extend(plan);
        }
    }
    plans
}
