//! `doctor` and the webhooks that other installations left.

use serde_json::{Value, json};

use super::Config;
use super::fake::{Fake, backup, status};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mysqlbackups.batch.isekiro.com";

/// As kubebuilder's configuration makes it for a project named ops-operator.
fn generated(kind: &str, name: &str) -> Value {
    json!({
        "metadata": { "name": format!("ops-operator-{kind}-webhook-configuration"), "uid": format!("u-{kind}"), "resourceVersion": "7" },
        "webhooks": [{
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "service": {
                "namespace": "ops-operator-system", "name": "ops-operator-webhook-service",
                "path": format!("/{}-batch-isekiro-com-v1-mysqlbackup", if kind == "mutating" { "mutate" } else { "validate" }),
            } },
            "rules": [{ "apiGroups": ["batch.isekiro.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["mysqlbackups"] }],
        }],
    })
}

fn hook(name: &str, group: &str, resource: &str, policy: &str) -> Value {
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
        "clientConfig": { "service": { "namespace": "policy", "name": "policy" } },
        "rules": [{ "apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource] }],
    })
}

/// Ours, the old operator's, and a policy engine's, which is about other kinds too.
fn cluster() -> (Fake, Config) {
    let fake = Fake::start();
    fake.put(backup(
        "prod",
        "shop",
        json!({ "schedule": "@daily" }),
        Value::Null,
    ));
    let mut ours = generated("validating", "validate.mysqlbackup.batch.isekiro.com");
    ours["metadata"]["name"] = "backup-operator".into();
    ours["metadata"]["labels"] = json!({ "app.kubernetes.io/part-of": "kubectl-backup" });
    let policy = json!({
        "metadata": { "name": "policy", "uid": "u-policy", "resourceVersion": "7" },
        "webhooks": [
            hook("pods.policy", "", "pods", "Fail"),
            hook("backups.policy", "gobackup.io", "backups", "Fail"),
        ],
    });
    let others = json!({ "metadata": { "name": "others" }, "webhooks": [hook("pods.others", "", "pods", "Fail")] });
    fake.items(
        &format!("{ADMISSION}/validatingwebhookconfigurations"),
        json!([
            ours,
            generated("validating", "vmysqlbackup.kb.io"),
            policy,
            others
        ]),
    );
    fake.items(
        &format!("{ADMISSION}/mutatingwebhookconfigurations"),
        json!([generated("mutating", "mmysqlbackup-v1.kb.io")]),
    );
    fake.path(
        DEFINITION,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "mysqlbackups.batch.isekiro.com", "uid": "u-crd", "resourceVersion": "9" },
            "spec": {
                "group": "batch.isekiro.com", "scope": "Namespaced", "names": { "kind": "MysqlBackup", "plural": "mysqlbackups" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
                "conversion": { "strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": { "service": { "namespace": "ops-operator-system", "name": "ops-operator-webhook-service", "path": "/convert" } },
                } },
            },
        }),
    );
    answers(&fake, "policy", "policy");
    for path in ["cronjobs", "jobs"] {
        fake.items(&format!("/apis/batch/v1/namespaces/prod/{path}"), json!([]));
    }
    fake.items("/api/v1/namespaces/prod/secrets", json!([]));
    fake.items("/apis/apps/v1/deployments", json!([]));
    let config = Config::new(&fake);
    (fake, config)
}

/// A Service with a pod that is ready.
fn answers(fake: &Fake, namespace: &str, name: &str) {
    fake.path(
        &format!("/api/v1/namespaces/{namespace}/services/{name}"),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace } }),
    );
    fake.items(
        &format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
        json!([{
            "metadata": { "name": name, "namespace": namespace }, "addressType": "IPv4",
            "endpoints": [
                { "addresses": ["10.0.0.1"], "conditions": { "ready": false } },
                { "addresses": ["10.0.0.2"], "conditions": { "ready": true } },
            ],
        }]),
    );
}

/// What `doctor` says after the objects.
fn told(config: &Config, args: &[&str]) -> String {
    let ran = config.run(&[&["doctor"], args].concat());
    let marks = ["other operators", "webhook:", "fix:"];
    let lines = ran.out.lines().skip_while(|l| !l.contains("webhook"));
    let lines: Vec<&str> = lines
        .filter(|l| marks.iter().any(|m| l.contains(m)))
        .collect();
    lines.join("\n") + "\n"
}

fn writes(fake: &Fake) -> Vec<(String, String, Value)> {
    let seen = fake.seen().into_iter();
    // That the operator is asked for an answer is not what is looked for.
    let seen = seen.filter(|s| !s.body.to_string().contains("Echo"));
    seen.filter(|s| ["DELETE", "PATCH", "PUT"].contains(&s.method.as_str()))
        .map(|s| (s.method, s.path, s.body))
        .collect()
}

#[test]
fn a_webhook_that_nobody_answers_is_told_and_only_the_old_operators_are_removed() {
    let (fake, config) = cluster();
    snapbox::assert_data_eq!(
        told(&config, &[]),
        snapbox::str![[r#"
✖ webhook: validatingwebhookconfiguration/ops-operator-validating-webhook-configuration, not ours, refuses every write of mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service does not exist
    fix: kubectl backup doctor --fix, or: kubectl delete validatingwebhookconfiguration ops-operator-validating-webhook-configuration
⚠ webhook: validatingwebhookconfiguration/policy, not ours, judges backups.gobackup.io: Service policy/policy answers
    fix: leave it if it is meant to be there, or: kubectl patch validatingwebhookconfiguration policy --type=json -p '[{"op":"test","path":"/webhooks/1/name","value":"backups.policy"},{"op":"remove","path":"/webhooks/1"}]'
✖ webhook: mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration, not ours, refuses every write of mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service does not exist
    fix: kubectl backup doctor --fix, or: kubectl delete mutatingwebhookconfiguration ops-operator-mutating-webhook-configuration
⚠ webhook: the conversion of customresourcedefinition/mysqlbackups.batch.isekiro.com, not ours, is asked once a second version is served: Service ops-operator-system/ops-operator-webhook-service does not exist
    fix: kubectl backup doctor --fix, or: kubectl patch customresourcedefinition mysqlbackups.batch.isekiro.com --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'

"#]]
    );
    let asked = config.run(&["doctor", "--fix"]);
    assert_eq!(asked.code, Some(2), "it wants consent: {asked:?}");
    snapbox::assert_data_eq!(
        asked.err,
        snapbox::str![[r#"
error: cannot ask for confirmation: stdin is not a terminal. Add --yes, or --dry-run=server to preview. This would delete validatingwebhookconfiguration/ops-operator-validating-webhook-configuration, mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration and end the conversion of customresourcedefinition/mysqlbackups.batch.isekiro.com.

"#]]
    );
    assert_eq!(writes(&fake), []);
    let name = |kind: &str| {
        format!("{ADMISSION}/{kind}webhookconfigurations/ops-operator-{kind}-webhook-configuration")
    };
    for path in [name("validating"), name("mutating")] {
        fake.path(
            &path,
            json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }),
        );
    }
    let fixed = told(&config, &["--fix", "--yes"]);
    let fixes: Vec<&str> = fixed.lines().filter(|l| !l.starts_with(' ')).collect();
    snapbox::assert_data_eq!(
        fixes.join("\n"),
        snapbox::str![[r#"
✖ webhook: validatingwebhookconfiguration/ops-operator-validating-webhook-configuration, not ours, refuses every write of mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service does not exist
⚠ webhook: validatingwebhookconfiguration/policy, not ours, judges backups.gobackup.io: Service policy/policy answers
✖ webhook: mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration, not ours, refuses every write of mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service does not exist
⚠ webhook: the conversion of customresourcedefinition/mysqlbackups.batch.isekiro.com, not ours, is asked once a second version is served: Service ops-operator-system/ops-operator-webhook-service does not exist
- fix: validatingwebhookconfiguration/policy left: it is asked about other kinds too
✔ fix: validatingwebhookconfiguration/ops-operator-validating-webhook-configuration removed
✔ fix: mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration removed
✔ fix: customresourcedefinition/mysqlbackups.batch.isekiro.com converts no more
"#]]
    );
    let writes = writes(&fake);
    let deleted = |kind: &str| json!({ "uid": format!("u-{kind}"), "resourceVersion": "7" });
    let done: Vec<(&str, &str, &Value)> = writes
        .iter()
        .map(|(method, path, body)| {
            let body = if method == "DELETE" {
                &body["preconditions"]
            } else {
                body
            };
            (method.as_str(), path.as_str(), body)
        })
        .collect();
    let ended = json!({
        "metadata": { "resourceVersion": "9" },
        "spec": { "conversion": { "strategy": "None", "webhook": null } },
    });
    assert_eq!(
        done,
        [
            (
                "DELETE",
                name("validating").as_str(),
                &deleted("validating")
            ),
            ("DELETE", name("mutating").as_str(), &deleted("mutating")),
            ("PATCH", DEFINITION, &ended),
        ]
    );
}

#[test]
fn a_webhook_that_is_answered_stays() {
    let (fake, config) = cluster();
    answers(&fake, "ops-operator-system", "ops-operator-webhook-service");
    snapbox::assert_data_eq!(
        told(&config, &["--fix", "--yes"]),
        snapbox::str![[r#"
⚠ webhook: validatingwebhookconfiguration/ops-operator-validating-webhook-configuration, not ours, judges mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service answers
    fix: kubectl delete validatingwebhookconfiguration ops-operator-validating-webhook-configuration
⚠ webhook: validatingwebhookconfiguration/policy, not ours, judges backups.gobackup.io: Service policy/policy answers
    fix: leave it if it is meant to be there, or: kubectl patch validatingwebhookconfiguration policy --type=json -p '[{"op":"test","path":"/webhooks/1/name","value":"backups.policy"},{"op":"remove","path":"/webhooks/1"}]'
⚠ webhook: mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration, not ours, changes mysqlbackups.batch.isekiro.com: Service ops-operator-system/ops-operator-webhook-service answers
    fix: kubectl delete mutatingwebhookconfiguration ops-operator-mutating-webhook-configuration
⚠ webhook: the conversion of customresourcedefinition/mysqlbackups.batch.isekiro.com, not ours, converts between versions: Service ops-operator-system/ops-operator-webhook-service answers
    fix: kubectl patch customresourcedefinition mysqlbackups.batch.isekiro.com --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
- fix: validatingwebhookconfiguration/ops-operator-validating-webhook-configuration left: Service ops-operator-system/ops-operator-webhook-service still answers; stop its operator first
- fix: validatingwebhookconfiguration/policy left: it is asked about other kinds too
- fix: mutatingwebhookconfiguration/ops-operator-mutating-webhook-configuration left: Service ops-operator-system/ops-operator-webhook-service still answers; stop its operator first
- fix: customresourcedefinition/mysqlbackups.batch.isekiro.com left: Service ops-operator-system/ops-operator-webhook-service still answers; stop its operator first
✔ fix: nothing to remove

"#]]
    );
    assert_eq!(writes(&fake), []);
}

#[test]
fn what_may_not_be_looked_at_is_said_and_no_error() {
    let (fake, config) = cluster();
    let denied = |resource: &str| {
        let text = format!("{resource} is forbidden: User \"alice\" cannot list resource");
        status(403, "Forbidden", &text, "")
    };
    fake.deny_path(
        "webhookconfigurations",
        403,
        denied("validatingwebhookconfigurations"),
    );
    let ran = config.run(&["doctor", "--fix", "--yes"]);
    let line = "- other operators: not looked at: validatingwebhookconfigurations, mutatingwebhookconfigurations (no permission)\n    fix: have someone run it who may list them in all namespaces\n";
    assert!(ran.out.contains(line), "{}", ran.out);
    assert!(!ran.out.contains("configuration/"), "{}", ran.out);
}
