//! What a pod asks for beyond the Pod Security Standard "restricted"
//! (https://kubernetes.io/docs/concepts/security/pod-security-standards/). PURE. Judged is what is
//! written: what an image brings by itself, such as its user, nobody sees here.

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Capabilities, Container, PodSecurityContext, PodSpec, PodTemplateSpec,
    SELinuxOptions, SeccompProfile, SecurityContext, WindowsSecurityContextOptions,
};

/// Name of a volume of the node.
pub(super) const HOST_PATH: &str = "HostPath";
/// The one capability that "restricted" lets a container add.
const CAPABILITY: &str = "NET_BIND_SERVICE";
/// Kernel settings that belong to the pod alone.
const SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];
/// SELinux types that are confined.
const SELINUX: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
/// Annotations that stand for fields of containers, by their prefix and the field they stand for.
const ANNOTATIONS: [&str; 3] = [
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/pod",
];

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its name in `--allowed-privileges`.
    pub(super) name: String,
    /// Where it is asked for.
    pub(super) what: String,
}

#[derive(Default)]
struct Found(Vec<Asked>);

impl Found {
    fn add(&mut self, is: bool, name: &str, what: impl FnOnce() -> String) {
        if is {
            self.0.push(Asked {
                name: name.to_owned(),
                what: what(),
            });
        }
    }
}

/// All that is asked for.
pub(super) fn of(template: &PodTemplateSpec) -> Vec<Asked> {
    let mut found = Found::default();
    if let Some(pod) = &template.spec {
        self::pod(pod, &mut found);
    }
    let notes = template
        .metadata
        .as_ref()
        .and_then(|m| m.annotations.as_ref());
    for (key, value) in notes.into_iter().flatten() {
        let stands = ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix));
        found.add(stands && value == "unconfined", "Unconfined", || {
            format!("annotation {key:?} lifts the confinement of a container")
        });
    }
    found.0
}

fn pod(pod: &PodSpec, found: &mut Found) {
    for (is, name, field) in [
        (pod.host_network, "HostNetwork", "hostNetwork"),
        (pod.host_pid, "HostPID", "hostPID"),
        (pod.host_ipc, "HostIPC", "hostIPC"),
    ] {
        found.add(is == Some(true), name, || {
            format!("the pod sets {field}: true")
        });
    }
    for volume in pod.volumes.iter().flatten() {
        if let Some(path) = &volume.host_path {
            found.add(true, HOST_PATH, || {
                format!(
                    "volume {:?} is the node's directory {:?}",
                    volume.name, path.path
                )
            });
        }
    }
    if let Some(context) = &pod.security_context {
        pod_context(context, found);
    }
    for container in pod.init_containers.iter().flatten().chain(&pod.containers) {
        self::container(container, found);
    }
    for container in pod.ephemeral_containers.iter().flatten() {
        if let Some(context) = &container.security_context {
            container_context(&container.name, context, found);
        }
    }
}

fn pod_context(context: &PodSecurityContext, found: &mut Found) {
    // A new field is judged here or this does not compile.
    let PodSecurityContext {
        app_armor_profile,
        fs_group: _,
        fs_group_change_policy: _,
        run_as_group: _,
        run_as_non_root,
        run_as_user,
        se_linux_change_policy: _,
        se_linux_options,
        seccomp_profile,
        supplemental_groups: _,
        supplemental_groups_policy: _,
        sysctls,
        windows_options,
    } = context;
    let at = "podSecurityContext";
    user(at, *run_as_user, *run_as_non_root, found);
    profiles(
        at,
        app_armor_profile.as_ref(),
        seccomp_profile.as_ref(),
        found,
    );
    selinux(at, se_linux_options.as_ref(), found);
    windows(at, windows_options.as_ref(), found);
    for sysctl in sysctls.iter().flatten() {
        // The kernel takes both separators.
        let name = sysctl.name.replace('/', ".");
        found.add(
            !SYSCTLS.contains(&&*name),
            &format!("Sysctl:{name}"),
            || format!("{at}.sysctls sets {name}"),
        );
    }
}

fn container(container: &Container, found: &mut Found) {
    let name = &container.name;
    for port in container.ports.iter().flatten() {
        found.add(port.host_port.is_some_and(|p| p != 0), "HostPorts", || {
            format!("container {name} opens a port of the node")
        });
    }
    if let Some(context) = &container.security_context {
        container_context(name, context, found);
    }
}

fn container_context(container: &str, context: &SecurityContext, found: &mut Found) {
    // A new field is judged here or this does not compile.
    let SecurityContext {
        allow_privilege_escalation,
        app_armor_profile,
        capabilities,
        privileged,
        proc_mount,
        read_only_root_filesystem: _,
        run_as_group: _,
        run_as_non_root,
        run_as_user,
        se_linux_options,
        seccomp_profile,
        windows_options,
    } = context;
    let at = format!("securityContext of container {container}");
    found.add(*privileged == Some(true), "Privileged", || {
        format!("{at} sets privileged: true")
    });
    found.add(
        *allow_privilege_escalation == Some(true),
        "PrivilegeEscalation",
        || format!("{at} sets allowPrivilegeEscalation: true"),
    );
    let masked = proc_mount
        .as_deref()
        .is_none_or(|p| p == "Default" || p.is_empty());
    found.add(!masked, "ProcMount", || format!("{at} sets procMount"));
    user(&at, *run_as_user, *run_as_non_root, found);
    profiles(
        &at,
        app_armor_profile.as_ref(),
        seccomp_profile.as_ref(),
        found,
    );
    selinux(&at, se_linux_options.as_ref(), found);
    windows(&at, windows_options.as_ref(), found);
    if let Some(Capabilities { add, drop: _ }) = capabilities {
        for capability in add.iter().flatten() {
            let name = capability.to_uppercase();
            let name = name.strip_prefix("CAP_").unwrap_or(&name);
            found.add(name != CAPABILITY, &format!("Capability:{name}"), || {
                format!("{at} adds the capability {name}")
            });
        }
    }
}

fn user(at: &str, user: Option<i64>, non_root: Option<bool>, found: &mut Found) {
    found.add(user == Some(0), "RunAsRoot", || {
        format!("{at} sets runAsUser: 0")
    });
    found.add(non_root == Some(false), "RunAsRoot", || {
        format!("{at} sets runAsNonRoot: false")
    });
}

fn profiles(
    at: &str,
    app_armor: Option<&AppArmorProfile>,
    seccomp: Option<&SeccompProfile>,
    found: &mut Found,
) {
    for (field, type_) in [
        ("appArmorProfile", app_armor.map(|p| &p.type_)),
        ("seccompProfile", seccomp.map(|p| &p.type_)),
    ] {
        found.add(
            type_.is_some_and(|t| t == "Unconfined"),
            "Unconfined",
            || format!("{at} sets {field} Unconfined"),
        );
    }
}

fn selinux(at: &str, options: Option<&SELinuxOptions>, found: &mut Found) {
    let Some(options) = options else { return };
    let set = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.is_empty());
    let type_ = options.type_.as_deref().unwrap_or_default();
    let beyond = set(&options.user) || set(&options.role) || !SELINUX.contains(&type_);
    found.add(beyond, "SELinux", || format!("{at} sets seLinuxOptions"));
}

fn windows(at: &str, options: Option<&WindowsSecurityContextOptions>, found: &mut Found) {
    found.add(
        options.is_some_and(|o| o.host_process == Some(true)),
        "HostProcess",
        || format!("{at} sets windowsOptions.hostProcess"),
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::Policy;

    fn names(pod: &Value) -> Vec<String> {
        let template = serde_json::from_value(pod.clone()).unwrap();
        of(&template).into_iter().map(|a| a.name).collect()
    }

    /// Rows of the standard's tables "Baseline" and "Restricted", in the place where a pod may say them.
    #[test]
    fn o11_what_the_standard_forbids_is_found_wherever_it_stands() {
        let whole = |spec: Value| json!({"spec": spec});
        let pod = |context: Value| whole(json!({"securityContext": context, "containers": []}));
        let main = |context: Value| {
            whole(json!({"containers": [{"name": "backup", "securityContext": context}]}))
        };
        let init = |context: Value| {
            whole(
                json!({"containers": [], "initContainers": [{"name": "i", "securityContext": context}]}),
            )
        };
        let mut rows = vec![
            (
                whole(json!({"hostNetwork": true, "containers": []})),
                "HostNetwork",
            ),
            (whole(json!({"hostPID": true, "containers": []})), "HostPID"),
            (whole(json!({"hostIPC": true, "containers": []})), "HostIPC"),
            (
                whole(
                    json!({"containers": [], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                ),
                "HostPath",
            ),
            (
                whole(
                    json!({"containers": [{"name": "b", "ports": [{"containerPort": 1, "hostPort": 80}]}]}),
                ),
                "HostPorts",
            ),
            (
                pod(json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
                "Sysctl:kernel.msgmax",
            ),
            (
                pod(json!({"sysctls": [{"name": "kernel/msgmax", "value": "1"}]})),
                "Sysctl:kernel.msgmax",
            ),
            (
                json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/backup": "unconfined"}},
                       "spec": {"containers": []}}),
                "Unconfined",
            ),
        ];
        for in_container in [&main as &dyn Fn(Value) -> Value, &init] {
            for (context, name) in [
                (json!({"privileged": true}), "Privileged"),
                (
                    json!({"allowPrivilegeEscalation": true}),
                    "PrivilegeEscalation",
                ),
                (json!({"procMount": "Unmasked"}), "ProcMount"),
                (
                    json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
                    "Capability:SYS_ADMIN",
                ),
                (
                    json!({"capabilities": {"add": ["cap_net_raw"]}}),
                    "Capability:NET_RAW",
                ),
                (
                    json!({"capabilities": {"add": ["ALL"], "drop": ["ALL"]}}),
                    "Capability:ALL",
                ),
            ] {
                rows.push((in_container(context), name));
            }
        }
        for either in [&pod as &dyn Fn(Value) -> Value, &main, &init] {
            for (context, name) in [
                (json!({"runAsUser": 0}), "RunAsRoot"),
                (json!({"runAsNonRoot": false}), "RunAsRoot"),
                (
                    json!({"seccompProfile": {"type": "Unconfined"}}),
                    "Unconfined",
                ),
                (
                    json!({"appArmorProfile": {"type": "Unconfined"}}),
                    "Unconfined",
                ),
                (json!({"seLinuxOptions": {"type": "spc_t"}}), "SELinux"),
                (json!({"seLinuxOptions": {"user": "system_u"}}), "SELinux"),
                (
                    json!({"windowsOptions": {"hostProcess": true}}),
                    "HostProcess",
                ),
            ] {
                rows.push((either(context), name));
            }
        }
        for (template, name) in rows {
            assert_eq!(names(&template), [name], "{template}");
            let template = serde_json::from_value(template).unwrap();
            let mut policy = Policy::default();
            assert!(policy.check(&template, "r").is_empty());
            policy.forbid_privileged = true;
            let found = policy.check(&template, "r");
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].message.contains(name), "{found:?}");
            policy.privileges = vec![name.to_owned()];
            assert!(policy.check(&template, "r").is_empty(), "{name}");
        }
    }

    #[test]
    fn what_the_standard_allows_is_no_privilege() {
        let restricted = json!({"spec": {
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 0, "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}], "seLinuxOptions": {"type": "container_t", "level": "s0"}},
            "containers": [{"name": "backup", "ports": [{"containerPort": 1}], "securityContext": {
                "allowPrivilegeEscalation": false, "privileged": false, "procMount": "Default",
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}],
            "volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}],
        }});
        assert_eq!(names(&restricted), [""; 0]);
    }
}
