//! What every pod of our runner has: the environment that tells it what to do, and security
//! contexts that the standard "restricted" admits.

use k8s_openapi::api::core::v1::{
    Capabilities, EnvVar, EnvVarSource, ObjectFieldSelector, PodSecurityContext, SeccompProfile,
    SecurityContext,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::run_spec::SPEC_ENV;

/// User and group of our image.
pub const UID: i64 = 65_532;

/// Word of the runner's command line before the directory to which it copies itself and [`CERTIFICATES`].
pub const COPY: &str = "copy";
/// Name of the copied runner.
pub const COPIED_RUNNER: &str = "backup-runner";
/// Name of the copied CA certificates: an image with a client need not have any.
pub const CERTIFICATES: &str = "ca-certificates.crt";

/// The environment of a runner: its [`crate::run_spec::RunSpec`], or that of a plan
/// ([`crate::run_spec::BackupRunSpec`]), and name and UID of its pod. `$` is doubled, else the
/// kubelet would expand `$(NAME)` within.
///
/// # Errors
/// The spec can't be said as JSON.
pub fn env(run: &impl Serialize) -> Result<Vec<EnvVar>, String> {
    let text = serde_json::to_string(run).map_err(|e| format!("run spec: {e}"))?;
    let mut all = vec![EnvVar {
        name: SPEC_ENV.to_owned(),
        value: Some(text.replace('$', "$$")),
        value_from: None,
    }];
    for (name, path) in [
        ("BACKUP_POD_NAME", "metadata.name"),
        ("BACKUP_POD_UID", "metadata.uid"),
    ] {
        all.push(EnvVar {
            name: name.to_owned(),
            value: None,
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: path.to_owned(),
                    api_version: None,
                }),
                ..EnvVarSource::default()
            }),
        });
    }
    Ok(all)
}

/// Security context of a pod of our image.
pub fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(UID),
        run_as_group: Some(UID),
        fs_group: Some(UID),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// Security context of a container of our image.
pub fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

/// `base` with every field that `over` sets, such as our security context with what the object says
/// otherwise.
///
/// # Errors
/// One of them can't be said as JSON.
pub fn overlay<T: Serialize + DeserializeOwned>(base: &T, over: Option<&T>) -> Result<T, String> {
    let to_value = |v: &T| serde_json::to_value(v).map_err(|e| e.to_string());
    let mut merged = to_value(base)?;
    if let (Some(map), Some(Value::Object(over))) =
        (merged.as_object_mut(), over.map(to_value).transpose()?)
    {
        map.extend(over);
    }
    serde_json::from_value(merged).map_err(|e| e.to_string())
}
