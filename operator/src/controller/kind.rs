//! What the controller needs to know of a kind.

use std::collections::BTreeMap;

use crds::validate::Problem;
use k8s_openapi::api::batch::v1::Job;
use kube::core::ApiResource;
use serde_json::Value;

use crate::engine::{Object, Seed, Settings};

/// Fields whose managers are read from managedFields before these are dropped.
#[derive(Clone, Copy, Debug)]
pub struct ManagedPaths {
    /// Fields of the schedule below `f:spec`.
    pub schedule: &'static [&'static str],
    /// Fields of suspension below `f:spec`.
    pub suspend: &'static [&'static str],
}

/// A scheduled kind. Every method is pure.
pub trait Kind: Send + Sync + 'static {
    /// Group, version, kind and plural.
    fn resource(&self) -> ApiResource;

    /// Fields whose last edit matters.
    fn managed_paths(&self) -> ManagedPaths;

    /// The engine's settings of a spec, and its mistakes.
    ///
    /// # Errors
    /// A sentence, if the spec does not fit its type.
    fn read(
        &self,
        spec: &Value,
        annotations: &BTreeMap<String, String>,
    ) -> Result<(Settings, Vec<Problem>), String>;

    /// The Job of a run.
    ///
    /// # Errors
    /// A sentence, if the spec can't be said as a Job.
    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String>;
}
