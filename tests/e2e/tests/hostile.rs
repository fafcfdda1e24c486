//! Somebody with the built-in role `edit` in one namespace, and nothing else, against an object of another
//! namespace and against the operator; and namespaces that refuse pods or put containers into them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::time::Instant;

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use e2e::objects::quick;
use e2e::{Namespace, Output, cluster, eventually, wait_for};
use serde_json::{Value, json};

/// A quota that wants requests and limits of every pod.
const QUOTA: &str = include_str!("../fixtures/hostile_quota.yaml");
/// An injector: pods of Jobs in namespaces with mesh=on get a container that never ends.
const SIDECAR: &str = include_str!("../fixtures/hostile_sidecar.yaml");
/// An object in such a namespace.
const MESH: &str = include_str!("../fixtures/hostile_mesh.yaml");

const SCRAPE: &str =
    "/api/v1/namespaces/backup-system/services/backup-operator-metrics:8080/proxy/metrics";
/// Writes a second, over a minute, whatever others do.
const MOST: f64 = 2.0;

/// Acts as the editor of a namespace.
struct Editor {
    ns: Namespace,
    user: String,
}

impl Editor {
    fn of(ns: Namespace) -> Self {
        ns.kubectl(&["create", "serviceaccount", "attacker"]).ok();
        let account = format!("{}:attacker", ns.name);
        let binding = [
            "create",
            "rolebinding",
            "attacker",
            "--clusterrole=edit",
            &format!("--serviceaccount={account}"),
        ];
        ns.kubectl(&binding).ok();
        let user = format!("--as=system:serviceaccount:{account}");
        wait_for("the editor's rights", 30, || {
            let can = ns.kubectl(&["auth", "can-i", "create", "jobs", &user]);
            (can.code == 0).then_some(())
        });
        Self { ns, user }
    }

    /// What a schema or admission refuses is no attack.
    fn apply(&self, manifest: &str) -> Output {
        let ns = ["-n", &self.ns.name, &self.user, "apply", "-f", "-"];
        cluster().kubectl_with(&ns, manifest)
    }
}

/// A Job or pod that speaks in the name of an object of ours.
struct Forged<'a> {
    name: String,
    uid: &'a str,
    annotations: String,
    owner: String,
    finalizers: &'a str,
}

impl Forged<'_> {
    fn metadata(&self) -> String {
        format!(
            "metadata:
  name: {}
  finalizers: [{}]
  labels: {{app.kubernetes.io/managed-by: backup-operator, batch.isekiro.com/owner-uid: '{}'}}
  annotations: {{batch.isekiro.com/owner-kind: MysqlBackup, batch.isekiro.com/owner-name: shop{}}}
  ownerReferences: {}
",
            self.name, self.finalizers, self.uid, self.annotations, self.owner
        )
    }

    fn job(&self, suspend: bool) -> String {
        format!(
            "apiVersion: batch/v1
kind: Job
{}spec:
  suspend: {suspend}
  template:
    metadata: {{labels: {{batch.isekiro.com/owner-uid: '{}'}}}}
    spec: {{restartPolicy: Never, containers: [{{name: backup, image: there.invalid/none:1}}]}}
",
            self.metadata(),
            self.uid
        )
    }
}

fn owner(kind: &str, version: &str, uid: &str, controller: bool) -> String {
    format!(
        "[{{apiVersion: {version}, kind: {kind}, name: shop, uid: '{uid}', controller: {controller}, blockOwnerDeletion: false}}]"
    )
}

/// Jobs, pods and CronJobs in the name of the object with this UID and of its newest Job.
fn forgeries(uid: &str, job: &str) -> Vec<String> {
    let ours = |controller| owner("MysqlBackup", "batch.isekiro.com/v1", uid, controller);
    let slot = |text: &str| format!(", batch.isekiro.com/scheduled-at: '{text}'");
    let rows = [
        (slot("2030-01-01T00:00:00Z"), ours(true), "", true),
        (slot("9999-12-31T23:59:59Z"), ours(true), "", true),
        (slot("0000-01-01T00:00:00Z"), ours(true), "", true),
        (slot("no time"), ours(true), "", true),
        (slot("2030-01-01T00:00:00Z"), "[]".into(), "", true),
        (slot("2030-01-01T00:00:00Z"), ours(false), "", true),
        (
            slot("2030-01-01T00:00:00Z"),
            owner("Backup", "gobackup.io/v1", uid, true),
            "",
            true,
        ),
        (
            ", batch.isekiro.com/trigger: Manual, batch.isekiro.com/request-id: r1".into(),
            ours(true),
            "example.org/for-ever",
            true,
        ),
        (
            ", batch.isekiro.com/action: Notify".into(),
            ours(true),
            "",
            true,
        ),
        (
            format!(", batch.isekiro.com/request-id: '{}'", "x".repeat(9000)),
            ours(true),
            "",
            true,
        ),
        (String::new(), ours(true), "example.org/for-ever", false),
    ];
    let mut all: Vec<String> = vec![];
    for (n, (annotations, owner, finalizers, suspend)) in rows.into_iter().enumerate() {
        let forged = Forged {
            name: format!("forged-{n}"),
            uid,
            annotations,
            owner,
            finalizers,
        };
        all.push(forged.job(suspend));
    }
    // Without the label, as another controller's.
    all.push(
        all[0]
            .replace("batch.isekiro.com/owner-uid", "example.org/uid")
            .replace("forged-0", "other"),
    );
    let report = r#"{"schema":"batch.isekiro.com/report/v1","good":true,"reason":"Completed","storedBytes":122683392}"#;
    let pod = Forged {
        name: "forged-pod".into(),
        uid,
        annotations: String::new(),
        owner: owner("Job", "batch/v1", job, true),
        finalizers: "",
    };
    all.push(format!(
        "apiVersion: v1
kind: Pod
{}spec:
  restartPolicy: Never
  containers:
  - {{name: backup, image: '{}', command: [sh, -c, 'echo ''{report}'' >/dev/termination-log']}}
",
        pod.metadata(),
        cluster().mariadb_image
    ));
    let cron = Forged {
        name: "forged-cron".into(),
        uid,
        annotations: String::new(),
        owner: ours(true),
        finalizers: "example.org/for-ever",
    };
    all.push(format!(
        "apiVersion: batch/v1
kind: CronJob
{}spec: {{schedule: '0 0 1 1 *', jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: there.invalid/none:1}}]}}}}}}}}}}
",
        cron.metadata()
    ));
    all
}

/// Objects of the editor's own with whatever may be written.
fn objects() -> Vec<String> {
    let far = "2999-01-01T00:00:00Z";
    let rows = [
        "  startupDeadlineSeconds: 8208468115199\n  notifications: [{type: Slack, urlSecretKeyRef: {name: a, key: b}, 'on': [Overdue]}]",
        "  startingDeadlineSeconds: 9223372036854775807",
        "  jitterSeconds: 9223372036854775807",
        "  activeDeadlineSeconds: -9223372036854775808",
        "  backoffLimit: 2147483647\n  successfulJobsHistoryLimit: 2147483647",
        "  verify: {mode: Restore, every: 2147483647}",
        "  timeZone: ../../../etc/passwd",
        "  retention: {keepLast: 2147483647, maxAge: 9999999h}",
    ];
    let mut all: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(n, extra)| quick(&format!("numbers-{n}"), "0 0 1 1 *", extra))
        .collect();
    for schedule in ["@every 1s", "* * * * *", "0 0 30 2 *", "60 * * * *"] {
        let name = format!("often-{}", all.len());
        all.push(quick(&name, schedule, "  concurrencyPolicy: Allow"));
    }
    for (n, notes) in [
        format!("{{batch.isekiro.com/skip-slots-until: '{far}', batch.isekiro.com/resume-at: '{far}', batch.isekiro.com/schedule-since: '{far}', batch.isekiro.com/suspended-since: '{far}'}}"),
        "{batch.isekiro.com/skip-slots-until: never, batch.isekiro.com/resume-at: ''}".into(),
        format!("{{batch.isekiro.com/request-0000000000: '{}'}}", "{".repeat(20_000)),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("notes-{n}");
        let object = quick(&name, "* * * * *", "");
        let plain = format!("metadata: {{name: {name}}}");
        all.push(object.replace(&plain, &format!("metadata: {{name: {name}, annotations: {notes}}}")));
    }
    all
}

/// Sixty requests at once, each with an id of its own.
fn flood(editor: &Editor) {
    let now = chrono::Utc::now();
    let mut notes = serde_json::Map::new();
    for n in 0..60 {
        let id = format!("flood-{n}");
        let at = |s: i64| {
            (now + chrono::Duration::seconds(s)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
        };
        let request = json!({"action": "Backup", "id": id, "at": at(0), "expiresAt": at(600), "options": {"queue": true}});
        notes.insert(
            format!("batch.isekiro.com/request-{n:010}"),
            json!(request.to_string()),
        );
    }
    let patch = json!({"metadata": {"annotations": notes}}).to_string();
    let patched = editor.ns.kubectl(&[
        &editor.user,
        "patch",
        "mysqlbackup",
        "often-9",
        "--type=merge",
        "-p",
        &patch,
    ]);
    patched.ok();
}

fn scrape() -> String {
    cluster().kubectl(&["get", "--raw", SCRAPE]).ok().stdout
}

/// Writes of the operator since it began.
fn writes() -> f64 {
    let all = scrape();
    let ours = all
        .lines()
        .filter(|l| l.starts_with("backup_operator_api_writes_total{"));
    ours.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

fn restarts() -> i64 {
    let pod = wait_for("the operator", 60, || cluster().operator_pod());
    let pod = cluster()
        .get(&["-n", "backup-system", "pod", &pod])
        .unwrap();
    let containers = pod["status"]["containerStatuses"].as_array().unwrap();
    containers
        .iter()
        .filter_map(|c| c["restartCount"].as_i64())
        .sum()
}

fn status(ns: &Namespace, name: &str) -> Value {
    ns.mysql_backup(name).unwrap()["status"].clone()
}

fn condition(status: &Value, type_: &str) -> (String, String) {
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all
        .iter()
        .find(|c| c["type"] == type_)
        .cloned()
        .unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn o2_an_editor_of_one_namespace_moves_nothing_of_another() {
    let victim = cluster().namespace("e2e-hostile-victim");
    victim.apply(&quick("shop", "* * * * *", ""));
    let begun = wait_for("the first run", 130, || {
        let status = status(&victim, "shop");
        (status["totals"]["succeeded"].as_i64()? > 0).then_some(status)
    });
    let object = victim.mysql_backup("shop").unwrap();
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let job = begun["runs"][0]["jobUid"].as_str().unwrap();
    let (restarts_before, pod) = (restarts(), cluster().operator_pod());

    let editor = Editor::of(cluster().namespace("e2e-hostile-editor"));
    let taken = |manifests: Vec<String>| {
        manifests
            .iter()
            .filter(|m| editor.apply(m).code == 0)
            .count()
    };
    let forged = taken(forgeries(uid, job));
    assert!(
        forged >= 12,
        "only {forged} forgeries were taken by the API server"
    );
    // Numbers beyond the schema's bounds are refused; the rest has to be lived with.
    let made = taken(objects());
    assert!(
        made >= 5,
        "only {made} objects were taken by the API server"
    );
    flood(&editor);

    // The flood is answered; then a whole minute is counted.
    eventually("the requests are taken off", 120, || {
        let object = editor.ns.mysql_backup("often-9").unwrap();
        let notes = object["metadata"]["annotations"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        !notes
            .keys()
            .any(|k| k.starts_with("batch.isekiro.com/request-"))
    });
    let (from, before) = (Instant::now(), writes());
    let known = begun["totals"]["due"].as_i64().unwrap();
    eventually("two more slots, a minute", 240, || {
        let due = status(&victim, "shop")["totals"]["due"]
            .as_i64()
            .unwrap_or(0);
        due >= known + 3 && from.elapsed().as_secs() >= 60
    });
    let rate = (writes() - before) / from.elapsed().as_secs_f64();
    assert!(rate <= MOST, "{rate:.2} writes a second");
    assert_eq!(
        (restarts(), cluster().operator_pod()),
        (restarts_before, pod)
    );

    let after = wait_for("no run is under way", 60, || {
        let status = status(&victim, "shop");
        let totals = &status["totals"];
        (totals["due"] == totals["succeeded"]).then_some(status)
    });
    assert_eq!(
        (
            &after["totals"]["missed"],
            &after["totals"]["failed"],
            &after["totals"]["manual"]
        ),
        (&json!(0), &json!(0), &json!(0)),
        "{after}"
    );
    assert_eq!(condition(&after, "Ready").0, "True", "{after}");
    assert_eq!(condition(&after, "Accepted").1, "Valid", "{after}");
    for run in after["runs"].as_array().unwrap() {
        assert_eq!(run["reason"], "ExitStatusOnly", "{run}");
        assert!(run["storedBytes"].is_null(), "{run}");
        assert!(run["slot"].as_str().unwrap() < "2030", "{run}");
    }
    // Finalizers would keep the namespace.
    for kind in ["jobs", "cronjobs"] {
        let names = editor.ns.kubectl(&["get", kind, "-o", "name"]).ok().stdout;
        for name in names.lines() {
            let patch = r#"{"metadata":{"finalizers":null}}"#;
            let _ = editor
                .ns
                .kubectl(&["patch", name, "--type=merge", "-p", patch]);
        }
    }
}

/// The newest run of the object, once `fits`.
fn run_that(
    what: &str,
    seconds: u64,
    ns: &Namespace,
    name: &str,
    fits: impl Fn(&Value) -> bool,
) -> (Value, Value) {
    wait_for(what, seconds, || {
        let status = status(ns, name);
        let run = status["runs"][0].clone();
        fits(&run).then_some((run, status))
    })
}

#[test]
fn t9_pods_that_a_quota_refuses_are_pending_with_its_words_and_stay_so_in_history() {
    let ns = cluster().namespace("e2e-hostile-quota");
    ns.apply(&QUOTA.replace("namespace: shop", &format!("namespace: {}", ns.name)));
    ns.apply(&quick("shop", "0 0 1 1 *", "  startupDeadlineSeconds: 40"));
    ns.backup(&["run-now", "shop"]).ok();
    let pending = |run: &Value| run["phase"] == "Pending";
    let (run, status) = run_that("the quota's words", 25, &ns, "shop", pending);
    assert_eq!(run["reason"], "FailedCreate", "{run}");
    let message = run["message"].as_str().unwrap();
    assert!(message.contains("failed quota: compute"), "{message}");
    assert!(message.contains("set resources"), "{message}");
    assert_eq!(
        condition(&status, "Ready"),
        ("False".into(), "RunPending".into())
    );
    let listed = ns.backup(&["list"]).ok().stdout;
    assert!(listed.contains("Pending"), "{listed}");

    let failed = |run: &Value| run["result"] == "Failed";
    let (run, _) = run_that("the run is given up", 90, &ns, "shop", failed);
    assert_eq!(run["reason"], "FailedCreate", "{run}");
    assert!(
        run["message"]
            .as_str()
            .unwrap()
            .contains("failed quota: compute"),
        "{run}"
    );
    eventually("its Job is gone", 60, || ns.jobs().is_empty());
}

#[test]
fn t9_a_secret_that_is_not_there_is_named_by_the_kubelets_words() {
    let ns = cluster().namespace("e2e-hostile-secret");
    let missing = "  envFrom: [{secretRef: {name: no-such-secret}}]";
    ns.apply(&quick("env", "0 0 1 1 *", missing));
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: mounted}}
spec:
  schedule: '0 0 1 1 *'
  source: {{host: {HOST}, credentialsSecretRef: {{name: no-such-secret}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: no-such-claim}}}}}}
---
apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: volume}}
spec:
  schedule: '0 0 1 1 *'
  source: {{host: {HOST}, credentialsSecretRef: {{name: no-such-secret}}}}
  destination: {{s3: {{bucket: b}}}}
"
    ));
    let rows = [
        ("env", "no-such-secret"),
        ("mounted", "no-such-claim"),
        ("volume", "no-such-secret"),
    ];
    for (name, words) in rows {
        // The plugin looks first, and sends nothing.
        let refused = ns.backup(&["run-now", name]).code(5);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        let request = serde_json::json!({ "action": "Backup", "id": "by-hand" });
        ns.ask("mysqlbackups.batch.isekiro.com", name, request);
        let pending = |run: &Value| run["phase"] == "Pending";
        let (run, _) = run_that("what is missing", 40, &ns, name, pending);
        assert!(run["message"].as_str().unwrap().contains(words), "{run}");
    }
}

/// The injector, for as long as it lives.
struct Mesh;

impl Mesh {
    fn begin() -> Self {
        let manifest = SIDECAR.replace("testbed-mariadb:10.11", &cluster().mariadb_image);
        cluster()
            .kubectl_with(&["apply", "-f", "-"], &manifest)
            .ok();
        Self
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
            let _ = cluster().kubectl(&["delete", kind, "inject", "--ignore-not-found"]);
        }
    }
}

#[test]
fn t10_a_container_that_does_not_end_holds_up_no_run() {
    database();
    let _mesh = Mesh::begin();
    let ns = cluster().namespace("e2e-hostile-mesh");
    ns.volume("backups");
    ns.secret(
        "shop-db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    cluster()
        .kubectl(&["label", "namespace", &ns.name, "mesh=on"])
        .ok();
    let probe = "apiVersion: batch/v1
kind: Job
metadata: {name: probe}
spec: {suspend: false, template: {spec: {restartPolicy: Never, containers: [{name: c, image: there.invalid/none:1}]}}}
";
    // An admission policy takes effect a moment after it was written.
    eventually("pods get the container", 60, || {
        let _ = ns.kubectl(&["delete", "job", "probe", "--ignore-not-found"]);
        ns.apply(probe);
        let pod = wait_for("the pod", 30, || {
            let pods = ns.get(&["pods", "-l", "batch.kubernetes.io/job-name=probe"])?;
            pods["items"].as_array()?.first().cloned()
        });
        pod["spec"]["containers"].as_array().unwrap().len() == 2
    });
    ns.kubectl(&["delete", "job", "probe"]).ok();

    let mesh = MESH
        .replace("namespace: shop", &format!("namespace: {}", ns.name))
        .replace("host: db", &format!("host: {HOST}"));
    ns.apply(&mesh);
    let good = |run: &Value| run["result"] == "Succeeded";
    let (run, _) = run_that("the runner's report decides", 150, &ns, "mesh", good);
    assert_eq!(run["reason"], "Completed", "{run}");
    assert!(run["artefacts"][0]["readBack"].as_bool().unwrap(), "{run}");
    let warnings = run["warnings"].to_string();
    assert!(warnings.contains("container proxy"), "{warnings}");
    // The next slot is not skipped because the pod before goes on.
    eventually("two more slots are good", 240, || {
        let totals = status(&ns, "mesh")["totals"].clone();
        totals["succeeded"].as_i64().unwrap_or(0) >= 3 && totals["skipped"] == 0
    });

    ns.backup(&["suspend", "mesh"]).ok();
    ns.backup(&["verify", "mesh", "--timeout", "4m"]).ok();
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: back}}
spec:
  from: {{name: mesh, latest: true}}
  to: {{host: {HOST}, credentialsSecretRef: {{name: shop-db}}, database: no_rights_here}}
"
    ));
    let ended = wait_for("the Restore ends", 240, || {
        let object = ns.get(&["restores.batch.isekiro.com", "back"])?;
        let phase = object["status"]["phase"].as_str()?;
        ["Succeeded", "Failed"]
            .contains(&phase)
            .then(|| object["status"].clone())
    });
    assert!(
        ended["warnings"].to_string().contains("container proxy"),
        "{ended}"
    );
    eventually("its Job is ended", 120, || {
        ns.jobs().iter().all(|j| {
            j["metadata"]["annotations"]["batch.isekiro.com/action"] != "Restore"
                || !j["metadata"]["deletionTimestamp"].is_null()
        })
    });
}
