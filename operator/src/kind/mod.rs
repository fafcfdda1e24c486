//! What the controller needs to know of a kind.

mod references;
mod resolution;

use std::collections::HashSet;

use crds::ScheduleStatus;
use crds::report::EndpointKind;
use crds::validate::Problem;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

pub use self::references::References;
pub(crate) use self::references::{resources, storage_spec};
pub(crate) use self::resolution::resolution;
pub use crate::engine::KindCondition;
use crate::engine::{Object, Seed, Settings};

/// Fields whose managers are read from managedFields before these are dropped.
#[derive(Clone, Copy, Debug)]
pub struct ManagedPaths {
    /// Fields of the schedule below `f:spec`.
    pub schedule: &'static [&'static str],
    /// Fields of suspension below `f:spec`.
    pub suspend: &'static [&'static str],
}

/// A database or storage that an object refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Its kind.
    pub resource: ApiResource,
    /// Its name; its namespace is the object's.
    pub name: String,
    /// Its conditions as last seen.
    pub conditions: Vec<Condition>,
}

/// A scheduled kind. Every method is pure, but that what a kind refers to is looked up.
pub trait Kind: Send + Sync + 'static {
    /// Group, version, kind and plural.
    fn resource(&self) -> ApiResource;

    /// Fields whose last edit matters.
    fn managed_paths(&self) -> ManagedPaths;

    /// Takes out of an object what its user wrote of it: what is kept as its spec, and what the other
    /// methods get as such.
    fn take_spec(&self, object: &mut DynamicObject) -> Value {
        let spec = object.data.get_mut("spec");
        spec.map(Value::take).unwrap_or_default()
    }

    /// The engine's settings of an object, and the mistakes of its spec.
    ///
    /// # Errors
    /// A message for the user if the spec does not fit its type.
    fn read(&self, object: &Object, spec: &Value) -> Result<(Settings, Vec<Problem>), String>;

    /// The Job of a run.
    ///
    /// # Errors
    /// A message for the user if the spec can't be expressed as a Job.
    fn job(&self, object: &Object, spec: &Value, seed: &Seed) -> Result<Job, String>;

    /// Kinds that objects of this kind refer to: watched, so that an object heals when what it
    /// misses appears.
    fn references(&self) -> Vec<ApiResource> {
        vec![]
    }

    /// Where what was seen of those kinds is kept.
    fn found(&self) -> Option<&References> {
        None
    }

    /// Takes an object of those kinds in, or notes that it is gone. True if something is new.
    fn set_reference(&self, object: &DynamicObject, gone: bool) -> bool {
        self.found().is_some_and(|found| found.set(object, gone))
    }

    /// Drops what a list did not hold (`namespace/name`); gives the namespaces that changed.
    fn retain_references(
        &self,
        resource: &ApiResource,
        scope: Option<&str>,
        seen: &HashSet<Box<str>>,
    ) -> HashSet<String> {
        self.found()
            .map(|found| found.retain(resource, scope, seen))
            .unwrap_or_default()
    }

    /// What a Database or Storage of this name in a run's report stands for, if it is there.
    fn endpoint(
        &self,
        _object: &Object,
        _spec: &Value,
        _kind: EndpointKind,
        _name: &str,
    ) -> Option<Endpoint> {
        None
    }

    /// Conditions beside the engine's.
    fn conditions(&self, _object: &Object, _spec: &Value) -> Vec<KindCondition> {
        vec![]
    }

    /// Adds the status fields that the kind derives from the engine's.
    fn decorate(&self, _status: &mut Value, _engine: &ScheduleStatus) {}

    /// The JSON patch that ends a suspension, tests included.
    fn resume(&self, _spec: &Value) -> Vec<Value> {
        vec![
            json!({"op": "test", "path": "/spec/suspend", "value": true}),
            json!({"op": "replace", "path": "/spec/suspend", "value": false}),
        ]
    }
}
