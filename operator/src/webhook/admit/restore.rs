//! Restore: what its plan would refuse for good is refused at once. Its spec can't be changed, so
//! only a new one is looked at.

use crds::restore::RestoreSpec;
use crds::validate;
use kube::core::DynamicObject;
use kube::core::admission::AdmissionResponse;

use super::rules::{deny, spec};

/// Denies a new `object` for every mistake of its spec.
pub(super) fn check(
    response: AdmissionResponse,
    object: &DynamicObject,
    old: Option<&DynamicObject>,
) -> AdmissionResponse {
    if old.is_some() {
        return response;
    }
    let problems = match spec::<RestoreSpec>(object, "Restore", "spec.from and spec.to") {
        Ok(spec) => validate::restore(&spec),
        Err(problem) => vec![problem],
    };
    deny(response, object, "Restore", &problems)
}
