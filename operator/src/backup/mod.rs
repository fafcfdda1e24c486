//! `Backup` and `CronBackup` (gobackup.io): what the controller needs to know of the kinds. They
//! share the engine of `MysqlBackup`; what they refer to is watched, so that an object heals when
//! what it misses appears.

mod job;
mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crds::ScheduleStatus;
use crds::backup::{Backup, BackupBody, RunEngine};
use crds::gobackup::resolve::Unresolved;
use crds::gobackup::{Resolved, endpoint, engine, resolve};
use crds::legacy::CronBackup;
use crds::report::EndpointKind;
use crds::request::Action;
use crds::validate::Problem;
use k8s_openapi::api::batch::v1::Job;
use kube::core::{ApiResource, DynamicObject};
use serde::Deserialize as _;
use serde_json::Value;

pub use self::observe::Which;
pub(crate) use self::observe::settings;
use crate::engine::{Object, Seed, Settings};
use crate::kind::{Endpoint, Kind, KindCondition, ManagedPaths, References, resolution, resources};

/// The kind Backup or CronBackup.
#[derive(Clone, Debug)]
pub struct Backups {
    /// Which one.
    pub which: Which,
    /// Image of the runner, used where `spec.job.image` is absent.
    pub runner_image: String,
    /// Image of gobackup, used by its engine where `spec.job.image` is absent.
    pub gobackup_image: String,
    /// The engine where `spec.job.engine` is absent.
    pub engine: RunEngine,
    /// What objects may refer to.
    pub references: Arc<References>,
}

impl Kind for Backups {
    fn resource(&self) -> ApiResource {
        match self.which {
            Which::Backup => ApiResource::erase::<Backup>(&()),
            Which::CronBackup => ApiResource::erase::<CronBackup>(&()),
        }
    }

    fn managed_paths(&self) -> ManagedPaths {
        ManagedPaths {
            schedule: &["f:schedule"],
            suspend: &["f:schedule"],
        }
    }

    /// Fields stand at the root, below `model` or below `spec`: all of them are kept.
    fn take_spec(&self, object: &mut DynamicObject) -> Value {
        if let Some(fields) = object.data.as_object_mut() {
            fields.remove("status");
        }
        object.data.take()
    }

    fn read(&self, object: &Object, spec: &Value) -> Result<(Settings, Vec<Problem>), String> {
        let body = self.decode(spec)?;
        let (settings, mut problems) = settings(self.which, &body, &object.annotations);
        if let Err(unresolved) = self.resolve(object, &body) {
            problems.extend(unresolved.missing);
            problems.extend(unresolved.problems);
        }
        Ok((settings, problems))
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        let body = self.decode(spec)?;
        if seed.action == Action::Notify {
            return job::notice(object, &body, seed, &self.runner_image);
        }
        let resolved = self.resolve(object, &body).map_err(|e| e.message())?;
        let images = job::Images {
            runner: &self.runner_image,
            gobackup: &self.gobackup_image,
        };
        job::build(object, &body, resolved, seed, images)
    }

    fn references(&self) -> Vec<ApiResource> {
        resources()
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
        let body = self.decode(spec).ok()?;
        let found = self.references.of(&object.namespace, &body);
        let key = endpoint(&body, &found, kind, name)?;
        let resource = resources()
            .into_iter()
            .find(|r| r.group == key.group && r.kind == key.kind)?;
        Some(Endpoint {
            resource,
            conditions: self.references.conditions(&object.namespace, &key),
            name: key.name,
        })
    }

    fn conditions(&self, object: &Object, spec: &Value) -> Vec<KindCondition> {
        self.decode(spec).map_or_else(
            |_| vec![],
            |body| vec![resolution(self.resolve(object, &body).map(|r| r.warnings))],
        )
    }

    fn decorate(&self, status: &mut Value, engine: &ScheduleStatus) {
        status::decorate(status, engine);
    }

    fn resume(&self, spec: &Value) -> Vec<Value> {
        observe::resume(spec)
    }
}

impl Backups {
    fn resolve(&self, object: &Object, body: &BackupBody) -> Result<Resolved, Unresolved> {
        let found = self.references.of(&object.namespace, body);
        resolve(&object.name, &object.namespace, body, &found)
    }

    /// The body with the operator's engine where it names none.
    fn decode(&self, spec: &Value) -> Result<BackupBody, String> {
        let mut body = BackupBody::deserialize(spec)
            .map_err(|e| format!("the object does not fit its type: {e}"))?;
        engine::with_default(&mut body, self.engine);
        Ok(body)
    }
}
