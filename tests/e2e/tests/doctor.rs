//! `doctor` and what an old installation left on a real cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::objects::quick;
use e2e::{Namespace, cluster, wait_for};
use serde_json::{Value, json};

/// A configuration as kubebuilder makes it, whose Service is gone, for this namespace alone.
fn left(ns: &Namespace, prefix: &str, hook: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("{prefix}-validating-webhook-configuration")},
        "webhooks": [{
            "name": hook, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name}},
            "clientConfig": {"service": {
                "namespace": ns.name, "name": "old-webhook-service",
                "path": "/validate-batch-isekiro-com-v1-mysqlbackup",
            }},
            "rules": [{
                "apiGroups": ["batch.isekiro.com"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["mysqlbackups"],
            }],
        }],
    })
}

/// The configurations of a test, gone with it.
struct Left([String; 2]);

impl Left {
    fn apply(configurations: [Value; 2]) -> Self {
        let names = configurations
            .each_ref()
            .map(|c| c["metadata"]["name"].as_str().unwrap().to_owned());
        let left = Self(names);
        for configuration in &configurations {
            let apply = ["apply", "-f", "-"];
            cluster()
                .kubectl_with(&apply, &configuration.to_string())
                .ok();
        }
        left
    }

    fn is_there(name: &str) -> bool {
        let get = ["validatingwebhookconfiguration", name];
        cluster().get(&get).is_some()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        for name in &self.0 {
            let delete = ["delete", "validatingwebhookconfiguration", name];
            let _ = cluster().kubectl(&[&delete[..], &["--ignore-not-found"]].concat());
        }
    }
}

#[test]
fn a_webhook_that_an_old_operator_left_is_told_and_removed_and_no_other() {
    let ns = cluster().namespace("e2e-doctor");
    let others = left(&ns, "e2e-policy", "mysqlbackups.policy.example.com");
    let left = Left::apply([left(&ns, "e2e-old", "vmysqlbackup.kb.io"), others]);
    let [old, other] = &left.0;
    let refused = wait_for("writes are refused", 30, || {
        let said = ns.try_apply(&quick("shop", "@daily", ""));
        (said.code != 0).then_some(said.stderr)
    });
    assert!(refused.contains("failed calling webhook"), "{refused}");

    let told = ns.backup(&["doctor"]);
    assert_eq!(told.code, 1, "{told:?}");
    let line = |name: &str| {
        format!(
            "✖ webhook: validatingwebhookconfiguration/{name}, not ours, refuses every write of mysqlbackups.batch.isekiro.com: Service e2e-doctor/old-webhook-service does not exist\n"
        )
    };
    for name in [old, other] {
        assert!(told.stdout.contains(&line(name)), "{}", told.stdout);
    }
    assert!(
        !told
            .stdout
            .contains("validatingwebhookconfiguration/backup-operator"),
        "our own is taken for another's: {}",
        told.stdout
    );

    let fixed = ns.backup(&["doctor", "--fix", "--yes"]).stdout;
    let gone = format!("✔ fix: validatingwebhookconfiguration/{old} removed\n");
    assert!(fixed.contains(&gone), "{fixed}");
    let stays = format!("- fix: validatingwebhookconfiguration/{other} left: its names are not");
    assert!(fixed.contains(&stays), "{fixed}");
    assert!(!Left::is_there(old));
    assert!(Left::is_there(other));
    assert!(Left::is_there("backup-operator"));

    // The command that is told for the other one does what it says.
    let told = ns.backup(&["doctor"]).stdout;
    let command = format!("kubectl delete validatingwebhookconfiguration {other}");
    assert!(told.contains(&format!("    fix: {command}\n")), "{told}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    cluster().kubectl(&words).ok();
    wait_for("writes pass", 30, || {
        let said = ns.try_apply(&quick("shop", "@daily", ""));
        (said.code == 0).then_some(())
    });
}
