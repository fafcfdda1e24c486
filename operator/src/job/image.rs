//! The runner in the image that has the clients. PURE.

use crds::labels;
use crds::pod::{CERTIFICATES, COPIED_RUNNER, COPY};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, PodSpec, Volume, VolumeMount,
};

/// Where the copied runner is in a pod of a client's image, and name of the volume it is on.
const COPIES: (&str, &str) = ("/run/backup-runner", "backup-runner");
/// Variable with the file of the CA certificates that stores and receivers are checked against.
const CERTIFICATES_ENV: &str = "SSL_CERT_FILE";

/// Has the pod's container run in `image`, for the clients it has. The image it had is that of an init container, which
/// copies the runner into a volume of both: linked statically, it needs nothing of the image it runs in.
pub(super) fn run_in(pod: &mut PodSpec, image: &str) {
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
        security_context: Some(crds::pod::container_security()),
        termination_message_policy: Some("File".to_owned()),
        ..Container::default()
    };
    pod.init_containers.get_or_insert_default().push(copies);
    container.command = Some(vec![format!("{directory}/{COPIED_RUNNER}")]);
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
