//! `MysqlBackup`: what the controller needs to know of the kind. The Storage it may refer to is
//! watched, so that an object heals when what it misses appears.

mod job;
mod observe;
#[cfg(test)]
mod tests;

use crds::gobackup::destination::{self, Stored};
use crds::gobackup::resolve::Unresolved;
use crds::report::EndpointKind;
use crds::request::Action;
use crds::storage::Storage;
use crds::validate::Problem;
use crds::{MysqlBackup, MysqlBackupSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::Resource as _;
use kube::core::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

use crate::engine::{Object, Seed, Settings};
use crate::kind::{Endpoint, Kind, KindCondition, ManagedPaths, References, resolution};

/// Where a Storage is named.
const STORAGE_REF: &str = "spec.destination.storageRef";

/// The kind MysqlBackup.
#[derive(Debug)]
pub struct MysqlBackups {
    /// Image of the runner, used where `spec.image` is absent.
    runner_image: String,
    /// Its image without clients, if there is one.
    slim_image: Option<String>,
    /// Storages that objects may refer to.
    references: References,
}

impl MysqlBackups {
    /// The kind, with the image of the runner.
    pub fn new(runner_image: impl Into<String>) -> Self {
        Self {
            runner_image: runner_image.into(),
            slim_image: None,
            references: References::default(),
        }
    }

    /// The kind, with an image of the runner for what needs no clients.
    #[must_use]
    pub fn with_slim_runner(mut self, image: Option<&str>) -> Self {
        self.slim_image = image.map(str::to_owned);
        self
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

    fn read(&self, object: &Object, spec: &Value) -> Result<(Settings, Vec<Problem>), String> {
        let spec = decode(spec)?;
        let mut problems = observe::problems(&spec, &self.runner_image);
        if let Some(Err(unresolved)) = self.storage(&spec, &object.namespace) {
            problems.extend(unresolved.missing);
            problems.extend(unresolved.problems);
        }
        Ok((observe::settings(&spec, &self.runner_image), problems))
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        let spec = decode(spec)?;
        // A notice needs nothing that the object refers to.
        let stored = self
            .storage(&spec, &object.namespace)
            .filter(|_| seed.action != Action::Notify)
            .transpose()
            .map_err(|e| e.message())?;
        job::build(
            object,
            &MysqlBackup::api_version(&()),
            &spec,
            seed,
            &job::Images {
                runner: &self.runner_image,
                slim: self.slim_image.as_deref(),
            },
            stored.map(|s| s.storage),
        )
    }

    fn references(&self) -> Vec<ApiResource> {
        vec![ApiResource::erase::<Storage>(&())]
    }

    fn found(&self) -> Option<&References> {
        Some(&self.references)
    }

    fn endpoint(
        &self,
        object: &Object,
        spec: &Value,
        kind: EndpointKind,
        name: &str,
    ) -> Option<Endpoint> {
        let spec = decode(spec).ok()?;
        let wanted = destination::storage_ref(spec.destination.as_ref())?;
        let same = kind == EndpointKind::Storage && wanted.to_lowercase() == name;
        let (key, found) = self.references.storage(&object.namespace, wanted);
        found.filter(|_| same)?;
        Some(Endpoint {
            resource: ApiResource::erase::<Storage>(&()),
            conditions: self.references.conditions(&object.namespace, &key),
            name: key.name,
        })
    }

    fn conditions(&self, object: &Object, spec: &Value) -> Vec<KindCondition> {
        let Ok(spec) = decode(spec) else {
            return vec![];
        };
        let resolved = self.storage(&spec, &object.namespace).into_iter();
        resolved
            .map(|r| resolution(r.map(|s| s.warnings)))
            .collect()
    }
}

fn decode(spec: &Value) -> Result<MysqlBackupSpec, String> {
    MysqlBackupSpec::deserialize(spec).map_err(|e| format!("spec does not fit its type: {e}"))
}
