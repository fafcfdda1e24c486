//! What an administrator forbids pods of backups. PURE. Enforced at each reconcile, so that it
//! holds where the webhooks are off, and for objects that are older than it.

mod privileges;

use crds::validate::Problem;
use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Path of the problems found here.
pub const PATH: &str = "policy of the operator";

/// What is forbidden; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Images pods may run, `*` for any text; empty allows all. The runner's own is allowed always.
    pub images: Vec<String>,
    /// No volume of the node.
    pub forbid_host_path: bool,
    /// No service account but the namespace's default.
    pub forbid_service_account: bool,
    /// Nothing that the Pod Security Standard "restricted" does not let a pod ask for.
    pub forbid_privileged: bool,
    /// What a pod may ask for all the same, by the names of `--allowed-privileges`.
    pub privileges: Vec<String>,
}

impl Policy {
    /// True if nothing is forbidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            images,
            forbid_host_path,
            forbid_service_account,
            forbid_privileged,
            // It allows, and forbids nothing.
            privileges: _,
        } = self;
        images.is_empty() && !forbid_host_path && !forbid_service_account && !forbid_privileged
    }

    /// What of a pod is forbidden: in its spec, and in the annotations that stand for fields of it.
    #[must_use]
    pub fn check(&self, template: &PodTemplateSpec, runner_image: &str) -> Vec<Problem> {
        let Some(pod) = &template.spec else {
            return vec![];
        };
        let mut found: Vec<Problem> = Vec::new();
        let mut deny = |message: String| {
            let problem = Problem {
                path: PATH.to_owned(),
                message,
            };
            if !found.contains(&problem) {
                found.push(problem);
            }
        };
        let init = pod.init_containers.as_deref().unwrap_or_default();
        for container in init.iter().chain(&pod.containers) {
            let image = container.image.as_deref().unwrap_or_default();
            if !self.allows(image, runner_image) {
                deny(format!(
                    "image {image:?} is not allowed (allowed: {}); use one of them, or ask for it to be added to --allowed-images",
                    self.images.join(", ")
                ));
            }
        }
        let volumes = pod.volumes.as_deref().unwrap_or_default();
        for volume in volumes.iter().filter(|_| self.forbid_host_path) {
            if let Some(path) = &volume.host_path {
                deny(format!(
                    "volume {:?} is the node's directory {:?}; use a PersistentVolumeClaim (--forbid-host-path)",
                    volume.name, path.path
                ));
            }
        }
        let account = pod.service_account_name.as_deref();
        let account = account.filter(|a| self.forbid_service_account && *a != "default");
        if let Some(account) = account {
            deny(format!(
                "service account {account:?} is not the default one; remove it (--forbid-service-accounts)"
            ));
        }
        if self.forbid_privileged {
            for asked in privileges::of(template) {
                if self.privileges.contains(&asked.name)
                    || self.forbid_host_path && asked.name == privileges::HOST_PATH
                {
                    continue;
                }
                deny(format!(
                    "{} (--forbid-privileged); remove it, or ask for {} to be added to --allowed-privileges",
                    asked.what, asked.name
                ));
            }
        }
        found
    }

    fn allows(&self, image: &str, runner_image: &str) -> bool {
        let fits = |pattern: &String| matches(pattern, image);
        self.images.is_empty() || image == runner_image || self.images.iter().any(fits)
    }
}

/// True if `text` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use serde_json::{Value, json};

    use super::*;

    const RUNNER: &str = "reg.example/backup-runner:v1";

    fn denied(policy: &Policy, pod: Value) -> Vec<String> {
        let template = serde_json::from_value(json!({"spec": pod})).unwrap();
        let problems = policy.check(&template, RUNNER);
        assert!(problems.iter().all(|p| p.path == PATH));
        problems.into_iter().map(|p| p.message).collect()
    }

    fn pod(image: &str) -> Value {
        json!({"containers": [{"name": "backup", "image": image}]})
    }

    #[test]
    fn nothing_is_forbidden_by_default() {
        let mut all = pod("anything");
        all["serviceAccountName"] = json!("admin");
        all["volumes"] = json!([{"name": "v", "hostPath": {"path": "/"}}]);
        assert!(denied(&Policy::default(), all).is_empty());
        assert!(Policy::default().is_empty());
    }

    #[test]
    fn images_are_held_to_the_list_and_the_runner_is_always_allowed() {
        let policy = Policy {
            images: vec!["reg.example/db/*".into(), "other:1".into()],
            ..Policy::default()
        };
        for good in ["reg.example/db/mysql:8", "other:1", RUNNER] {
            assert!(denied(&policy, pod(good)).is_empty(), "{good}");
        }
        for bad in ["reg.example/dbx", "evil/reg.example/db/x", "other:12", ""] {
            assert_eq!(denied(&policy, pod(bad)).len(), 1, "{bad}");
        }
        let mut init = pod(RUNNER);
        init["initContainers"] = json!([{"name": "i", "image": "evil"}]);
        assert!(denied(&policy, init)[0].contains("\"evil\""));
    }

    #[test]
    fn volumes_of_the_node_and_service_accounts_can_be_forbidden() {
        let policy = Policy {
            forbid_host_path: true,
            forbid_service_account: true,
            ..Policy::default()
        };
        let mut bad = pod("x");
        bad["volumes"] = json!([
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "node", "hostPath": {"path": "/etc"}},
        ]);
        bad["serviceAccountName"] = json!("admin");
        let messages = denied(&policy, bad);
        assert_eq!(messages.len(), 2);
        assert!(messages[0].contains("/etc") && messages[1].contains("admin"));
        let mut good = pod("x");
        good["serviceAccountName"] = json!("default");
        assert!(denied(&policy, good).is_empty());
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abcd", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
            ("ab*ba", "aba", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
