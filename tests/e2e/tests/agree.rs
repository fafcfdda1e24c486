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
    /// State and reasons that fit, of `health`.
    health: (&'static str, &'static [&'static str]),
    /// Part of a line of `doctor`, behind its mark.
    doctor: &'static str,
    /// Reason and value of the metric; none where nobody is left to be asked.
    metric: Option<(&'static str, u8)>,
}

fn system(args: &[&str]) -> Output {
    cluster().kubectl(&[&["-n", "backup-system"], args].concat())
}

/// What the five say now, each cut to what is compared.
fn said(ns: &Namespace, situation: &Situation, metrics: &str) -> [(String, bool); 5] {
    let object = format!("mysqlbackup/{}", situation.name);
    let list = ns.backup(&["list", &object, "--no-headers"]).stdout;
    let list = list.trim().to_owned();
    let describe = ns.backup(&["describe", &object]).stdout;
    let status = describe.lines().find_map(|l| l.strip_prefix("Status:"));
    let status = status.unwrap_or_default().trim().to_owned();
    let health = ns.backup(&["health", &object, "-o", "json"]).stdout;
    let health: Value = serde_json::from_str(&health).unwrap_or_default();
    let item = &health["items"][0];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (state, reason) = (word(&health["state"]), word(&item["reason"]));
    let doctor = ns.backup(&["doctor", &object]).stdout;
    let doctor = doctor.lines().find(|l| l.contains(situation.doctor));
    let doctor = doctor.unwrap_or_default().to_owned();
    let of = format!(
        r#"mysqlbackup_verdict{{kind="MysqlBackup",namespace="{NAMESPACE}",name="{}",reason=""#,
        situation.name
    );
    let metric = metrics.lines().find_map(|l| l.strip_prefix(&of));
    let metric = metric.unwrap_or_default().replace("\"}", "");
    let wanted = match situation.metric {
        Some((reason, value)) => format!("{reason} {value}"),
        None => String::new(),
    };
    let words: Vec<&str> = list.split_whitespace().collect();
    let fits = [
        words.contains(&situation.list),
        status.contains(situation.describe),
        state == situation.health.0 && situation.health.1.contains(&reason.as_str()),
        !doctor.is_empty(),
        metric == wanted,
    ];
    let texts = [list, status, format!("{state} {reason}"), doctor, metric];
    let mut pairs = texts.into_iter().zip(fits);
    std::array::from_fn(|_| pairs.next().unwrap())
}

fn scrape() -> String {
    cluster().kubectl(&["get", "--raw", SCRAPE]).stdout
}

/// Waits until one of them says it, then at most ten seconds for all.
fn agree(ns: &Namespace, situation: &Situation) {
    let seen = || said(ns, situation, &scrape());
    wait_for(situation.what, 90, || {
        let seen = seen();
        // A word that is right of what was before, such as an empty metric, is no first.
        let first = seen[..3].iter().any(|(_, fits)| *fits);
        first.then_some(())
    });
    let begun = Instant::now();
    let mut last = seen();
    while !last.iter().all(|(_, fits)| *fits) {
        let missing: Vec<&str> = last
            .iter()
            .filter(|(_, fits)| !fits)
            .map(|(text, _)| text.as_str())
            .collect();
        let seconds = begun.elapsed().as_secs_f64();
        assert!(
            seconds < 10.0,
            "{}: after {seconds:.1} s these do not agree: {missing:#?}\n{last:#?}",
            situation.what
        );
        last = seen();
    }
    let [list, describe, health, doctor, metric] = last.map(|(text, _)| text);
    println!(
        "| {} | {} | {describe} | {health} | {doctor} | {metric} | {:.1} s |",
        situation.what,
        list.split_whitespace().collect::<Vec<_>>().join(" "),
        begun.elapsed().as_secs_f64()
    );
}

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
const CRITICAL: &str = "CRITICAL";
const WARNING: &str = "WARNING";

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
        quick("often", "@every 15s", "  backoffLimit: 0\n"),
        failing("failed", ""),
        failing("suspended", ""),
        quick("claim", YEARLY, claim),
        quick("secret", YEARLY, secret),
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
            health: ("OK", &["ok"]),
            doctor: "✔ mysqlbackup/good: newest good run",
            metric: Some(("ok", 0)),
        },
        Situation {
            what: "U5, U9: a run that failed",
            name: "failed",
            list: "Failed",
            describe: "✖ Active, ",
            health: (CRITICAL, &["failed"]),
            doctor: "✖ mysqlbackup/failed: ",
            metric: Some(("failed", 2)),
        },
        Situation {
            what: "U7: a claim that is gone",
            name: "claim",
            list: "Pending",
            // What was looked for says more than what waits.
            describe: "✖ Active, claim gone does not exist",
            health: (WARNING, &["pending"]),
            doctor: "✖ mysqlbackup/claim: claim gone does not exist",
            metric: Some(("pending", 1)),
        },
        Situation {
            what: "U9: a Secret that is gone",
            name: "secret",
            list: "Pending",
            describe: "⚠ Active, ",
            health: (WARNING, &["pending"]),
            doctor: "✖ mysqlbackup/secret: secret gone does not exist",
            metric: Some(("pending", 1)),
        },
        Situation {
            what: "U7: a Storage that is gone",
            name: "storage",
            list: "Invalid",
            describe: "✖ InvalidSpec: ",
            health: (CRITICAL, &["refused"]),
            doctor: "✖ mysqlbackup/storage: storage gone does not exist",
            metric: Some(("refused", 2)),
        },
        Situation {
            what: "a schedule that never comes due",
            name: "held",
            list: "Invalid",
            describe: "✖ Invalid, NeverFires: ",
            health: (CRITICAL, &["held"]),
            doctor: "✖ mysqlbackup/held: NeverFires",
            metric: Some(("held", 2)),
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
            health: (CRITICAL, &["failed"]),
            doctor: "✖ mysqlbackup/suspended: ",
            metric: Some(("failed", 2)),
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
            health: (CRITICAL, &["unverified"]),
            doctor: "✖ mysqlbackup/unverified: unverified-1 failed its verification",
            metric: Some(("unverified", 2)),
        },
    );
}

fn no_operator(ns: &Namespace) {
    let overdue = |what, doctor, metric| Situation {
        what,
        name: "often",
        list: "Overdue",
        describe: " Overdue, ",
        health: (WARNING, &["overdue"]),
        doctor,
        metric,
    };
    let powerless = Powerless::begin();
    agree(
        ns,
        &overdue(
            "U6: an operator without its rights",
            "✖ operator: system:serviceaccount:backup-system:backup-operator may not ",
            Some(("overdue", 1)),
        ),
    );
    system(&["scale", "deployment/backup-operator", "--replicas=0"]).ok();
    eventually("the operator is gone", 60, || {
        cluster().operator_pod().is_none()
    });
    let told = ns.backup(&["doctor", "mysqlbackup/often"]);
    assert!(
        told.stdout.contains("✖ operator: does not answer"),
        "{}",
        told.stdout
    );
    let page = ns.backup(&["describe", "mysqlbackup/often"]).stdout;
    assert!(
        page.contains("none comes while no operator starts it")
            && page.contains("kubectl backup doctor"),
        "{page}"
    );
    let dead = Situation {
        health: (CRITICAL, &["overdue"]),
        ..overdue(
            "U6: no operator, two minutes later",
            "✖ operator: does not answer",
            None,
        )
    };
    agree(ns, &dead);
    drop(powerless);
    agree(
        ns,
        &Situation {
            what: "it is back",
            name: "often",
            list: "Succeeded",
            describe: "Active, ",
            health: ("OK", &["ok"]),
            doctor: "✔ operator: answers what mysqlbackup/often asks it",
            metric: Some(("ok", 0)),
        },
    );
}
