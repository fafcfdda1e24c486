//! Situations acted out on the cluster: `list`, `describe`, `health`, `doctor` and the metric that the
//! alerts read say the same of each, within ten seconds. Printed as a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::io::Write as _;
use std::time::Instant;

use chrono::Utc;
use crds::request::{Action, Request};
use crds::time::rfc3339;
use e2e::objects::quick;
use e2e::{Namespace, Output, cluster, eventually, wait_for};
use serde_json::{Value, json};

const NAMESPACE: &str = "e2e-agree";
const SCRAPE: &str =
    "/api/v1/namespaces/backup-system/services/backup-operator-metrics:8080/proxy/metrics";

/// What each of the five has to say of an object.
struct Situation {
    what: &'static str,
    name: &'static str,
    /// A word of its line in `list`.
    list: &'static str,
    /// Part of the line Status of `describe`.
    describe: &'static str,
    /// States that fit, of `health`.
    states: &'static [&'static str],
    /// Reason of `health` and of the metric.
    reason: &'static str,
    /// Part of a line of `doctor`.
    doctor: &'static str,
    /// Nobody is left who could be asked for metrics.
    dead: bool,
}

fn system(args: &[&str]) -> Output {
    cluster().kubectl(&[&["-n", "backup-system"], args].concat())
}

/// What one of them says, cut to what is compared, and whether it fits.
type Said = (String, bool);

fn scrape() -> String {
    cluster().kubectl(&["get", "--raw", SCRAPE]).stdout
}

/// What `list`, `describe`, `health` and the metric say now.
fn said(ns: &Namespace, situation: &Situation) -> [Said; 4] {
    let object = format!("mysqlbackup/{}", situation.name);
    let list = ns.backup(&["list", &object, "--no-headers"]).stdout;
    let list: Vec<&str> = list.split_whitespace().collect();
    let describe = ns.backup(&["describe", &object]).stdout;
    let status = describe.lines().find_map(|l| l.strip_prefix("Status:"));
    let status = status.unwrap_or_default().trim().to_owned();
    let health = ns.backup(&["health", &object, "-o", "json"]).stdout;
    let health: Value = serde_json::from_str(&health).unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (state, reason) = (word(&health["state"]), word(&health["items"][0]["reason"]));
    let of = format!(
        r#"mysqlbackup_verdict{{kind="MysqlBackup",namespace="{NAMESPACE}",name="{}",reason=""#,
        situation.name
    );
    let text = scrape();
    let metric = text.lines().find_map(|l| l.strip_prefix(&of));
    let metric = metric.unwrap_or_default().replace("\"}", "");
    let number = STATES.iter().position(|s| *s == state);
    let wanted = match number {
        Some(number) if !situation.dead => format!("{reason} {number}"),
        _ => String::new(),
    };
    let fits = [
        list.contains(&situation.list),
        status.contains(situation.describe),
        situation.states.contains(&state.as_str()) && situation.reason == reason,
        metric == wanted,
    ];
    let texts = [list.join(" "), status, format!("{state} {reason}"), metric];
    let mut pairs = texts.into_iter().zip(fits);
    std::array::from_fn(|_| pairs.next().unwrap())
}

/// Waits until one of them says it, then at most ten seconds for all; what `doctor` itself waits for
/// is not counted.
fn agree(ns: &Namespace, situation: &Situation) {
    wait_for(situation.what, 120, || {
        let first = |(_, fits): &Said| *fits;
        said(ns, situation)[..3].iter().any(first).then_some(())
    });
    let begun = Instant::now();
    loop {
        let last = said(ns, situation);
        let seconds = begun.elapsed().as_secs_f64();
        let object = format!("mysqlbackup/{}", situation.name);
        let mut doctor = String::new();
        if last.iter().all(|(_, fits)| *fits) {
            let told = ns.backup(&["doctor", &object]).stdout;
            let line = told.lines().find(|l| l.contains(situation.doctor));
            doctor = line.unwrap_or_default().to_owned();
        }
        if doctor.is_empty() {
            assert!(
                seconds < 10.0,
                "{}: after {seconds:.1} s these do not agree: {last:#?}",
                situation.what
            );
            continue;
        }
        let [list, describe, health, metric] = last.map(|(text, _)| text);
        println!(
            "| {} | {list} | {describe} | {health} | {doctor} | {metric} | {seconds:.1} s |",
            situation.what
        );
        return;
    }
}

/// States in the order of the numbers that monitoring systems give them.
const STATES: [&str; 4] = ["OK", "WARNING", "CRITICAL", "UNKNOWN"];

/// Asks for a run as `run-now` does, without its look for what is missing.
fn ask(ns: &Namespace, name: &str) {
    let request = Request::new(Action::Backup, name, "", Utc::now());
    let key = Request::annotation_key(name);
    let annotation = format!("{key}={}", request.annotation_value());
    ns.kubectl(&["annotate", "mysqlbackup", name, &annotation])
        .ok();
}

/// The operator without its rights, or without a pod, for as long as it lives.
struct Powerless {
    binding: Value,
    from: String,
}

impl Powerless {
    fn begin() -> Self {
        let mut binding = cluster()
            .get(&["clusterrolebinding", "backup-operator"])
            .unwrap();
        let labels = binding["metadata"]["labels"].clone();
        binding["metadata"] = json!({"name": "backup-operator", "labels": labels});
        let from = rfc3339(Utc::now());
        cluster()
            .kubectl(&["delete", "clusterrolebinding", "backup-operator"])
            .ok();
        Self { binding, from }
    }
}

impl Drop for Powerless {
    fn drop(&mut self) {
        let text = self.binding.to_string();
        let _ = cluster().kubectl_with(&["apply", "-f", "-"], &text);
        let _ = system(&["scale", "deployment/backup-operator", "--replicas=1"]);
        let _ = system(&[
            "rollout",
            "status",
            "deployment/backup-operator",
            "--timeout=120s",
        ]);
        // What was denied meanwhile is nothing that the operator lacks: tests/manifests/audit reads it.
        let to = rfc3339(Utc::now() + chrono::Duration::seconds(5));
        let file = cluster().state().join("log/powerless");
        if let Ok(mut file) = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
        {
            let _ = writeln!(file, "{} {to}", self.from);
        }
    }
}

const YEARLY: &str = "0 0 1 1 *";

fn objects() -> String {
    let broken = "  backoffLimit: 0\n";
    let failing = |name: &str, extra: &str| {
        quick(name, YEARLY, &format!("{broken}{extra}")).replace("[--help]", "[--no-such-flag]")
    };
    let claim = "  backoffLimit: 0
  volumes: [{name: v, persistentVolumeClaim: {claimName: gone}}]
  volumeMounts: [{name: v, mountPath: /v}]
";
    let secret = "  backoffLimit: 0
  backupEnvs: [{name: A, valueFrom: {secretKeyRef: {name: gone, key: k}}}]
";
    // No node has so much, and none has this label.
    let room = "  backoffLimit: 0
  resources: {requests: {memory: 4Ti}}
";
    let node = "  backoffLimit: 0
  nodeSelector: {disk: none-has-it}
";
    let storage = format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: storage}}
spec:
  schedule: '{YEARLY}'
  source: {{host: db, credentialsSecretRef: {{name: gone}}}}
  destination: {{storageRef: {{name: gone}}}}
"
    );
    let all = [
        quick("good", YEARLY, ""),
        quick("unverified", YEARLY, ""),
        quick("held", "0 0 30 2 *", ""),
        quick("often", "@every 10s", "  backoffLimit: 0\n"),
        failing("failed", ""),
        failing("suspended", ""),
        quick("claim", YEARLY, claim),
        quick("secret", YEARLY, secret),
        quick("room", YEARLY, room),
        quick("node", YEARLY, node),
        storage,
    ];
    all.join("---\n")
}

#[test]
fn list_describe_health_doctor_and_the_metric_agree() {
    let ns = cluster().namespace(NAMESPACE);
    ns.apply(&objects());
    let runs = [
        "good",
        "unverified",
        "failed",
        "suspended",
        "claim",
        "secret",
        "room",
        "node",
    ];
    runs.iter().for_each(|name| ask(&ns, name));
    println!("| situation | list | describe | health | doctor | metric | within |");
    println!("|---|---|---|---|---|---|---|");

    for situation in [
        Situation {
            what: "a good run",
            name: "good",
            list: "Succeeded",
            describe: "✔ Active, last run succeeded",
            states: &["OK"],
            reason: "ok",
            doctor: "✔ mysqlbackup/good: newest good run",
            dead: false,
        },
        Situation {
            what: "U5, U9: a run that failed",
            name: "failed",
            list: "Failed",
            describe: "✖ Active, ",
            states: &["CRITICAL"],
            reason: "failed",
            doctor: "✖ mysqlbackup/failed: ",
            dead: false,
        },
        Situation {
            what: "U7: a claim that is gone",
            name: "claim",
            list: "Pending",
            // What was looked for says more than what waits.
            describe: "✖ Active, volume claim gone is not there",
            states: &["WARNING"],
            reason: "pending",
            doctor: "✖ mysqlbackup/claim: volume claim gone is not there",
            dead: false,
        },
        Situation {
            what: "U9: a Secret that is gone",
            name: "secret",
            list: "Pending",
            describe: "⚠ Active, ",
            states: &["WARNING"],
            reason: "pending",
            doctor: "✖ mysqlbackup/secret: Secret gone is not there",
            dead: false,
        },
        Situation {
            what: "U8: a pod that fits no node",
            name: "room",
            list: "Pending",
            describe: "⚠ Active, ",
            states: &["WARNING"],
            reason: "pending",
            doctor: "⚠ mysqlbackup/room: ",
            dead: false,
        },
        Situation {
            what: "U8: a pod whose node is nowhere",
            name: "node",
            list: "Pending",
            describe: "⚠ Active, ",
            states: &["WARNING"],
            reason: "pending",
            doctor: "⚠ mysqlbackup/node: ",
            dead: false,
        },
        Situation {
            what: "U7: a Storage that is gone",
            name: "storage",
            list: "Invalid",
            describe: "✖ InvalidSpec: ",
            states: &["CRITICAL"],
            reason: "refused",
            doctor: "✖ mysqlbackup/storage: Storage gone is not there",
            dead: false,
        },
        Situation {
            what: "a schedule that never comes due",
            name: "held",
            list: "Invalid",
            describe: "✖ Invalid, NeverFires: ",
            states: &["CRITICAL"],
            reason: "held",
            doctor: "✖ mysqlbackup/held: NeverFires",
            dead: false,
        },
    ] {
        agree(&ns, &situation);
    }

    suspension_and_verification(&ns);
    no_operator(&ns);
    let nobody = ns.backup(&["health", "-l", "app=nobody"]);
    assert_eq!(nobody.code, 3, "U4: {}", nobody.all());
}

fn suspension_and_verification(ns: &Namespace) {
    ns.backup(&["suspend", "mysqlbackup/suspended"]).ok();
    agree(
        ns,
        &Situation {
            what: "U5: it failed, and is suspended",
            name: "suspended",
            list: "Suspended",
            describe: "✖ Suspended, ",
            states: &["CRITICAL"],
            reason: "failed",
            doctor: "✖ mysqlbackup/suspended: ",
            dead: false,
        },
    );
    wait_for("the run that is verified", 60, || {
        let object = ns.mysql_backup("unverified")?;
        (object["status"]["lastResult"] == "Succeeded").then_some(())
    });
    // As a restore check leaves it, and longer than the run that was verified.
    let condition = json!({
        "type": "Verified", "status": "False", "reason": "RestoreDiffers",
        "message": "unverified-1: table shop.t has 1 rows instead of 2",
        "lastTransitionTime": rfc3339(Utc::now()),
    });
    let patch = json!([{"op": "add", "path": "/status/conditions/-", "value": condition}]);
    ns.kubectl(&[
        "patch",
        "mysqlbackup",
        "unverified",
        "--subresource=status",
        "--type=json",
        "-p",
        &patch.to_string(),
    ])
    .ok();
    agree(
        ns,
        &Situation {
            what: "U3: a verification that failed",
            name: "unverified",
            list: "Unverified",
            describe: "✖ Active, unverified-1 failed its verification",
            states: &["CRITICAL"],
            reason: "unverified",
            doctor: "✖ mysqlbackup/unverified: unverified-1 failed its verification",
            dead: false,
        },
    );
}

fn no_operator(ns: &Namespace) {
    // A warning first, after two minutes critical.
    let overdue = |what, doctor, dead| Situation {
        what,
        name: "often",
        list: "Overdue",
        describe: " Overdue, ",
        states: &["WARNING", "CRITICAL"],
        reason: "overdue",
        doctor,
        dead,
    };
    let powerless = Powerless::begin();
    agree(
        ns,
        &overdue(
            "U6: an operator without its rights",
            "✖ operator: system:serviceaccount:backup-system:backup-operator may not ",
            false,
        ),
    );
    system(&["scale", "deployment/backup-operator", "--replicas=0"]).ok();
    eventually("the operator is gone", 60, || {
        cluster().operator_pod().is_none()
    });
    let page = ns.backup(&["describe", "mysqlbackup/often"]).stdout;
    assert!(
        page.contains("none comes while no operator starts it")
            && page.contains("kubectl backup doctor"),
        "{page}"
    );
    agree(
        ns,
        &overdue("U6: no operator", "✖ operator: does not answer", true),
    );
    drop(powerless);
    agree(
        ns,
        &Situation {
            what: "it is back",
            name: "often",
            list: "Succeeded",
            describe: "Active, ",
            states: &["OK"],
            reason: "ok",
            doctor: "✔ operator: answers what mysqlbackup/often asks it",
            dead: false,
        },
    );
}
