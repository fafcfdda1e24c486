//! `Backup` and `CronBackup` (gobackup.io): what the controller needs to know of the kinds. They
//! share the engine of `MysqlBackup`; what they refer to is watched, so that an object heals when
//! what it misses appears.

mod job;
mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::ScheduleStatus;
use crds::backup::{Backup, BackupBody, RunEngine};
use crds::gobackup::{Resolved, endpoint, engine, resolve};
use crds::legacy::CronBackup;
use crds::report::EndpointKind;
use crds::request::Action;
use crds::validate::Problem;
use k8s_openapi::api::batch::v1::Job;
use kube::core::{ApiResource, DynamicObject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::observe::settings;
pub(crate) use self::status::resolution;
use crate::engine::{Object, Seed, Settings};
use crate::kind::{Endpoint, Kind, KindCondition, ManagedPaths, References, resources};

/// Which of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Backup: without a schedule it runs once.
    Backup,
    /// CronBackup: it has a schedule.
    CronBackup,
}

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

/// What is kept of an object in the place of a spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Whole {
    name: String,
    namespace: String,
    body: BackupBody,
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

    /// Fields stand at the root, below `model` or below `spec`: all of them are kept as one.
    fn prepare(&self, object: &mut DynamicObject) {
        let mut body = std::mem::take(&mut object.data);
        let status = body.get_mut("status").map(Value::take);
        object.data = json!({
            "spec": {
                "name": object.metadata.name,
                "namespace": object.metadata.namespace,
                "body": body,
            },
            "status": status,
        });
    }

    fn read(
        &self,
        spec: &Value,
        annotations: &BTreeMap<String, String>,
    ) -> Result<(Settings, Vec<Problem>), String> {
        let whole = self.decode(spec)?;
        let (settings, mut problems) = settings(self.which, &whole.body, annotations);
        if let Err(unresolved) = self.resolve(&whole) {
            problems.extend(unresolved.missing);
            problems.extend(unresolved.problems);
        }
        Ok((settings, problems))
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        let whole = self.decode(spec)?;
        if seed.action == Action::Notify {
            return job::notice(object, &whole.body, seed, &self.runner_image);
        }
        let resolved = self.resolve(&whole).map_err(|e| e.message())?;
        let images = job::Images {
            runner: &self.runner_image,
            gobackup: &self.gobackup_image,
        };
        job::build(object, &whole.body, resolved, seed, images)
    }

    fn references(&self) -> Vec<ApiResource> {
        resources()
    }

    fn found(&self) -> Option<&References> {
        Some(&self.references)
    }

    fn endpoint(&self, spec: &Value, kind: EndpointKind, name: &str) -> Option<Endpoint> {
        let whole = self.decode(spec).ok()?;
        let found = self.references.of(&whole.namespace, &whole.body);
        let key = endpoint(&whole.body, &found, kind, name)?;
        let resource = resources()
            .into_iter()
            .find(|r| r.group == key.group && r.kind == key.kind)?;
        Some(Endpoint {
            resource,
            conditions: self.references.conditions(&whole.namespace, &key),
            name: key.name,
        })
    }

    fn conditions(&self, spec: &Value) -> Vec<KindCondition> {
        self.decode(spec).map_or_else(
            |_| vec![],
            |whole| vec![status::resolution(self.resolve(&whole).map(|r| r.warnings))],
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
    fn resolve(&self, whole: &Whole) -> Result<Resolved, crds::gobackup::resolve::Unresolved> {
        let found = self.references.of(&whole.namespace, &whole.body);
        resolve(&whole.name, &whole.namespace, &whole.body, &found)
    }

    /// The object with the operator's engine where it names none.
    fn decode(&self, spec: &Value) -> Result<Whole, String> {
        let mut whole = Whole::deserialize(spec)
            .map_err(|e| format!("the object does not fit its type: {e}"))?;
        engine::with_default(&mut whole.body, self.engine);
        Ok(whole)
    }
}
