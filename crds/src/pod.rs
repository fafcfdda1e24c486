//! What every pod of our runner has: the environment that tells it what to do, and security
//! contexts that the standard "restricted" admits.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, ObjectFieldSelector,
    PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::labels;
use crate::run_spec::SPEC_ENV;

/// User and group of our image.
pub const UID: i64 = 65_532;

/// Word of the runner's command line before the directory to which it copies itself and [`CERTIFICATES`].
pub const COPY: &str = "copy";
/// Name of the copied runner.
pub const COPIED_RUNNER: &str = "backup-runner";
/// Name of the copied CA certificates: an image with a client need not have any.
pub const CERTIFICATES: &str = "ca-certificates.crt";
/// Where the copied runner is in a pod of a client's image ([`run_in`]).
pub const COPIED_PROGRAM: &str = "/run/backup-runner/backup-runner";

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

/// Where the copied runner is in a pod of a client's image, and name of the volume it is on.
const COPIES: (&str, &str) = ("/run/backup-runner", "backup-runner");
/// Variable with the file of the CA certificates that stores and receivers are checked against.
const CERTIFICATES_ENV: &str = "SSL_CERT_FILE";

/// Has the pod's container run in `image`, for the clients it has. The image it had is that of an init container, which
/// copies the runner into a volume of both: linked statically, it needs nothing of the image it runs in.
pub fn run_in(pod: &mut PodSpec, image: &str) {
    let Some(container) = pod.containers.first_mut() else {
        return;
    };
    let (directory, volume) = COPIES;
    let mount = |read_only: Option<bool>| VolumeMount {
        name: volume.to_owned(),
        mount_path: directory.to_owned(),
        read_only,
        ..VolumeMount::default()
    };
    let copies = Container {
        name: labels::COPY_CONTAINER.to_owned(),
        image: container.image.replace(image.to_owned()),
        args: Some(vec![COPY.to_owned(), directory.to_owned()]),
        volume_mounts: Some(vec![mount(None)]),
        // The larger of both counts, so it costs nothing, and namespaces with a quota want it.
        resources: container.resources.clone(),
        security_context: Some(container_security()),
        termination_message_policy: Some("File".to_owned()),
        ..Container::default()
    };
    pod.init_containers.get_or_insert_default().push(copies);
    container.command = Some(vec![COPIED_PROGRAM.to_owned()]);
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.push(mount(Some(true)));
    let env = container.env.get_or_insert_default();
    if !env.iter().any(|e| e.name == CERTIFICATES_ENV) {
        env.push(EnvVar {
            name: CERTIFICATES_ENV.to_owned(),
            value: Some(format!("{directory}/{CERTIFICATES}")),
            value_from: None,
        });
    }
    pod.volumes.get_or_insert_default().push(Volume {
        name: volume.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
}
