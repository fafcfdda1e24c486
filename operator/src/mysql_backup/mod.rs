//! `MysqlBackup`: what the controller needs to know of the kind.

mod job;
mod observe;

use std::collections::BTreeMap;

use crds::validate::Problem;
use crds::{MysqlBackup, MysqlBackupSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::Resource as _;
use kube::core::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

pub(crate) use self::job::build as build_job;
pub(crate) use self::observe::has_bot;
use crate::controller::{Kind, ManagedPaths};
use crate::engine::{Object, Seed, Settings};

/// The kind MysqlBackup.
#[derive(Clone, Debug)]
pub struct MysqlBackups {
    /// Image of the runner, used where `spec.image` is absent.
    pub runner_image: String,
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

    fn read(
        &self,
        spec: &Value,
        _annotations: &BTreeMap<String, String>,
    ) -> Result<(Settings, Vec<Problem>), String> {
        let spec = decode(spec)?;
        Ok((
            observe::settings(&spec, &self.runner_image),
            observe::problems(&spec),
        ))
    }

    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String> {
        let spec = decode(spec)?;
        job::build(
            object,
            &MysqlBackup::api_version(&()),
            &spec,
            seed,
            &self.runner_image,
        )
    }
}

fn decode(spec: &Value) -> Result<MysqlBackupSpec, String> {
    MysqlBackupSpec::deserialize(spec).map_err(|e| format!("spec does not fit its type: {e}"))
}
