//! `MysqlBackup`: what the controller needs to know of the kind. The Storage it may refer to is
//! watched, so that an object heals when what it misses appears.

mod job;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crds::gobackup::destination::{self, Stored};
use crds::gobackup::resolve::Unresolved;
use crds::report::EndpointKind;
use crds::request::Action;
use crds::storage::Storage;
use crds::validate::Problem;
use crds::{MysqlBackup, MysqlBackupSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::Resource as _;
use kube::core::{ApiResource, DynamicObject};
use serde::Deserialize as _;
use serde_json::{Value, json};

pub(crate) use self::job::{build as build_job, scratch_server};
pub(crate) use self::observe::has_bot;
use crate::backup::resolution;
use crate::engine::{Object, Seed, Settings};
use crate::kind::{Endpoint, Kind, KindCondition, ManagedPaths, References};

/// Where a Storage is named.
const STORAGE_REF: &str = "spec.destination.storageRef";

/// The kind MysqlBackup.
#[derive(Debug)]
pub struct MysqlBackups {
    /// Image of the runner, used where `spec.image` is absent.
    runner_image: String,
    /// Storages that objects may refer to.
    references: References,
}

impl MysqlBackups {
    /// The kind, with the image of the runner.
    pub fn new(runner_image: impl Into<String>) -> Self {
        Self {
            runner_image: runner_image.into(),
            references: References::default(),
        }
    }

    /// The Storage that a spec names, if it names one.
    fn storage(
        &self,
        spec: &MysqlBackupSpec,
        namespace: &str,
    ) -> Option<Result<Stored, Unresolved>> {
        let name = destination::storage_ref(spec.destination.as_ref())?;
        let (key, found) = self.references.storage(namespace, name);
        if self.references.is_too_large(namespace, &key) {
            let large = Problem {
                path: STORAGE_REF.to_owned(),
                message: format!(
                    "Storage {name} is too large to be read; shorten it to less than 256 KiB"
                ),
            };
            return Some(Err(Unresolved {
                missing: vec![],
                problems: vec![large],
            }));
        }
        let found = found.as_ref();
        Some(destination::storage(STORAGE_REF, namespace, name, found))
    }
}

impl Kind for MysqlBackups {
    fn resource(&self) -> ApiResource {
        ApiResource::erase::<MysqlBackup>(&())
    }

    fn managed_paths(&self) -> ManagedPaths {
        ManagedPaths {
            schedule: &["f:schedule", "f:timeZone"],
            suspend: &["f:suspend"],
        }
    }

    /// A reference is kept with the namespace in which it is looked up.
    fn prepare(&self, object: &mut DynamicObject) {
        let namespace = json!(object.metadata.namespace);
        let reference = object.data.pointer_mut("/spec/destination/storageRef");
        if let Some(reference) = reference.and_then(Value::as_object_mut) {
            reference.insert("namespace".to_owned(), namespace);
        }
    }

    fn read(
        &self,
        spec: &Value,
        _annotations: &BTreeMap<String, String>,
    ) -> Result<(Settings, Vec<Problem>), String> {
        let (spec, namespace) = decode(spec)?;
        let mut problems = observe::problems(&spec, &self.runner_image);
        if let Some(Err(unresolved)) = self.storage(&spec, &namespace) {
            problems.extend(unresolved.missing);
            problems.extend(unresolved.problems);
        }
        Ok((observe::settings(&spec, &self.runner_image), problems))
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        let (spec, namespace) = decode(spec)?;
        // A notice needs nothing that the object refers to.
        let stored = self
            .storage(&spec, &namespace)
            .filter(|_| seed.action != Action::Notify)
            .transpose()
            .map_err(|e| e.message())?;
        job::build_stored(
            object,
            &MysqlBackup::api_version(&()),
            &spec,
            seed,
            &self.runner_image,
            stored.map(|s| s.storage),
        )
    }

    fn references(&self) -> Vec<ApiResource> {
        vec![ApiResource::erase::<Storage>(&())]
    }

    fn found(&self) -> Option<&References> {
        Some(&self.references)
    }

    fn endpoint(&self, spec: &Value, kind: EndpointKind, name: &str) -> Option<Endpoint> {
        let (spec, namespace) = decode(spec).ok()?;
        let wanted = destination::storage_ref(spec.destination.as_ref())?;
        let same = kind == EndpointKind::Storage && wanted.to_lowercase() == name;
        let (key, found) = self.references.storage(&namespace, wanted);
        found.filter(|_| same)?;
        Some(Endpoint {
            resource: ApiResource::erase::<Storage>(&()),
            conditions: self.references.conditions(&namespace, &key),
            name: key.name,
        })
    }

    fn conditions(&self, spec: &Value) -> Vec<KindCondition> {
        let Ok((spec, namespace)) = decode(spec) else {
            return vec![];
        };
        let resolved = self.storage(&spec, &namespace).into_iter();
        resolved
            .map(|r| resolution(r.map(|s| s.warnings)))
            .collect()
    }
}

/// The spec, and the namespace its reference is looked up in.
fn decode(spec: &Value) -> Result<(MysqlBackupSpec, String), String> {
    let namespace = spec.pointer("/destination/storageRef/namespace");
    let namespace = namespace.and_then(Value::as_str).unwrap_or_default();
    MysqlBackupSpec::deserialize(spec)
        .map(|read| (read, namespace.to_owned()))
        .map_err(|e| format!("spec does not fit its type: {e}"))
}
