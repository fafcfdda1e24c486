//! Who is told of what, on the cluster: each outcome arrives at a receiver exactly once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use chrono::{Duration, SecondsFormat, Timelike, Utc};
use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use e2e::objects::{owned_by, quick};
use e2e::{Namespace, cluster, eventually, wait_for};
use serde_json::{Value, json};

/// A part of the receiver's URL that nothing else may show.
const TOKEN: &str = "S3cr3t-token-of-the-hook";

/// Prints each body it gets as a line; and listens where it never says a word.
const HOOK: &str = r#"
import http.server, socket, threading
silent, held = socket.create_server(("", 3306)), []
def hold():
    while True:
        held.append(silent.accept())
threading.Thread(target=hold, daemon=True).start()
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("", 8080), Hook).serve_forever()
"#;

/// A receiver of everything, for `spec.notifications`. A bare `on` is true to YAML 1.1.
const TELL: &str = "notifications: [{type: Webhook, urlSecretKeyRef: {name: hook, key: url}, \"on\": [Success, Failure, Recovery, Missed, Overdue]}]";

fn prepare(name: &str) -> Namespace {
    database();
    let ns = cluster().namespace(name);
    let image = std::env::var("E2E_SERVERS_IMAGE").expect("tests/run sets it");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "hook", "labels": {"app": "hook"}},
        "spec": {"enableServiceLinks": false, "terminationGracePeriodSeconds": 0, "containers": [{
            "name": "hook", "image": image, "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", HOOK],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        }]},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"name": "http", "port": 8080}, {"name": "silent", "port": 3306}]},
    });
    ns.apply(&format!("{pod}\n---\n{service}\n"));
    let ready = ["wait", "--for=condition=Ready", "pod/hook", "--timeout=90s"];
    ns.kubectl(&ready).ok();
    let url = format!("http://hook.{name}.svc.cluster.local:8080/{TOKEN}");
    ns.secret("hook", &[("url", &url)]);
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.volume("data");
    ns.secret("wrong", &[("username", BACKUP_USER), ("password", "no")]);
    ns
}

/// A MysqlBackup that dumps from `host` to the one claim, and is started by hand alone.
fn mysql(name: &str, host: &str, secret: &str, more: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}}}
spec:
  schedule: '0 0 31 2 *'
  source: {{host: {host}, credentialsSecretRef: {{name: {secret}}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
  {TELL}
{more}
"
    )
}

/// Event and object of each message, sorted.
fn heard(ns: &Namespace) -> Vec<(String, String)> {
    let log = ns.kubectl(&["logs", "hook"]).ok().stdout;
    let mut all: Vec<(String, String)> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|body| {
            let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
            (text(&body["object"]["name"]), text(&body["event"]))
        })
        .collect();
    all.sort();
    all
}

/// The body of the one message of this event.
fn body(ns: &Namespace, name: &str, event: &str) -> Value {
    let log = ns.kubectl(&["logs", "hook"]).ok().stdout;
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|b| b["object"]["name"] == name && b["event"] == event)
        .unwrap_or_else(|| panic!("{event} of {name} is not in {log}"))
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    let mut all: Vec<_> = list.iter().map(own).collect();
    all.sort();
    all
}

/// Nothing runs and nothing waits to be told: what was not heard by then never is.
fn settled(ns: &Namespace) -> bool {
    let active = |j: &Value| j["status"]["active"].as_i64().unwrap_or(0) > 0;
    let open = |j: &Value| !j["status"]["conditions"].is_array() || active(j);
    let waits = |o: &Value| {
        o["status"]["notices"]
            .as_array()
            .is_some_and(|n| !n.is_empty())
    };
    let objects = ["mysqlbackups.batch.isekiro.com", "backups.gobackup.io"].map(|resource| {
        let list = ns.get(&[resource]).unwrap();
        list["items"].as_array().cloned().unwrap()
    });
    !ns.jobs().iter().any(open) && !objects.concat().iter().any(waits)
}

fn run_is(ns: &Namespace, resource: &str, name: &str, result: &str, reason: &str) {
    wait_for(&format!("{name} {result} {reason}"), 150, || {
        let object = ns.get(&[resource, name])?;
        let run = &object["status"]["runs"][0];
        (run["result"] == result && run["reason"].as_str()?.contains(reason)).then_some(())
    });
}

const MYSQL: &str = "mysqlbackups.batch.isekiro.com";

/// The pod of the object's run is at work.
fn pod_of(ns: &Namespace, name: &str) -> String {
    wait_for(&format!("the pod of {name}"), 60, || {
        let list = ns.get(&["pods", "--field-selector=status.phase=Running"])?;
        let pods = list["items"].as_array()?.clone();
        let owner = |p: &&Value| p["metadata"]["annotations"][crds::labels::OWNER_NAME] == name;
        Some(
            pods.iter().find(owner)?["metadata"]["name"]
                .as_str()?
                .to_owned(),
        )
    })
}

#[test]
fn every_outcome_is_told_once_and_an_end_one_asked_for_is_not() {
    let ns = prepare("e2e-notices");
    // Never started: no image, no node.
    let absent =
        "  image: there.invalid/is-none:v1\n  imagePullPolicy: Never\n  startupDeadlineSeconds: 15";
    ns.apply(&mysql("absent", HOST, "db", absent));
    let nowhere = "  nodeSelector: {no: such}\n  startupDeadlineSeconds: 15";
    ns.apply(&mysql("nowhere", HOST, "db", nowhere));
    // Fails by itself, twice in one run.
    ns.apply(&mysql("denied", HOST, "wrong", "  backoffLimit: 1"));
    // The same of a Backup.
    ns.apply(&format!(
        "apiVersion: gobackup.io/v1
kind: Database
metadata: {{name: main}}
spec: {{type: mysql, config: {{host: {HOST}, database: shop, username: {BACKUP_USER}, password_ref: {{name: wrong, key: password}}}}}}
---
apiVersion: gobackup.io/v1
kind: Storage
metadata: {{name: disk}}
spec: {{type: local, config: {{path: /b}}, volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
---
apiVersion: gobackup.io/v1
kind: Backup
metadata: {{name: archived}}
spec:
  schedule: {{cron: '0 0 31 2 *'}}
  databaseRefs: [{{name: main}}]
  storageRefs: [{{name: disk}}]
  job: {{backoffLimit: 1}}
  {TELL}
"
    ));
    wait_for("what the Backup refers to is seen", 30, || {
        let object = ns.get(&["backups.gobackup.io", "archived"])?;
        let conditions = object["status"]["conditions"].as_array()?.clone();
        let resolved = |c: &Value| c["type"] == "ReferencesResolved" && c["status"] == "True";
        conditions.iter().any(resolved).then_some(())
    });
    for name in ["absent", "nowhere", "denied", "backup/archived"] {
        ns.backup(&["run-now", name]).ok();
    }
    // Killed at work, and cancelled at work: their server says nothing for 15 s.
    ns.apply(&mysql("killed", "hook", "db", "  backoffLimit: 0"));
    ns.backup(&["run-now", "killed"]).ok();
    let pod = pod_of(&ns, "killed");
    ns.kubectl(&["delete", "pod", &pod, "--force", "--grace-period=0"])
        .ok();
    ns.apply(&mysql("stopped", "hook", "db", "  backoffLimit: 0"));
    ns.backup(&["run-now", "stopped"]).ok();
    pod_of(&ns, "stopped");
    ns.backup(&["cancel", "stopped"]).ok();

    // Missed: an operator that was away for three slots and a bit.
    let minute = Utc::now().minute();
    let schedule = format!("{} * * * *", (minute + 30) % 60);
    ns.apply(&quick("late", &schedule, &format!("  {TELL}")));
    wait_for("the object is seen", 30, || {
        ns.mysql_backup("late")?["status"]["accountedUntil"]
            .as_str()
            .map(str::to_owned)
    });
    let then = (Utc::now() - Duration::hours(4)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let status = json!({"status": {
        "accountedUntil": then,
        "schedule": {"text": schedule, "timeZone": "UTC", "since": then, "anchor": then},
    }});
    let patch = status.to_string();
    let resource = "mysqlbackup.batch.isekiro.com/late";
    ns.kubectl(&[
        "patch",
        resource,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ])
    .ok();

    run_is(&ns, MYSQL, "absent", "Failed", "Image");
    run_is(&ns, MYSQL, "nowhere", "Failed", "Unschedulable");
    run_is(&ns, MYSQL, "denied", "Failed", "AccessDenied");
    run_is(
        &ns,
        "backups.gobackup.io",
        "archived",
        "Failed",
        "AccessDenied",
    );
    run_is(&ns, MYSQL, "killed", "Failed", "");
    run_is(&ns, MYSQL, "stopped", "Failed", "Cancelled");
    run_is(&ns, MYSQL, "late", "Succeeded", "");
    let first = pairs(&[
        ("absent", "Failure"),
        ("nowhere", "Failure"),
        ("denied", "Failure"),
        ("archived", "Failure"),
        ("killed", "Failure"),
        ("late", "Missed"),
    ]);
    wait_for("all of it is told", 90, || {
        (settled(&ns) && heard(&ns).len() >= first.len()).then_some(())
    });
    assert_eq!(heard(&ns), first);
    let pods = ns.get(&["pods"]).unwrap();
    let attempts = |name: &str| {
        let own = |p: &&Value| {
            let notes = &p["metadata"]["annotations"];
            notes[crds::labels::OWNER_NAME] == name && notes[crds::labels::ACTION].is_null()
        };
        pods["items"].as_array().unwrap().iter().filter(own).count()
    };
    assert_eq!((attempts("denied"), attempts("archived")), (2, 2));
    let told = body(&ns, "nowhere", "Failure");
    assert_eq!(told["report"]["reason"], "Unschedulable");
    let run = ns.mysql_backup("nowhere").unwrap()["status"]["runs"][0].clone();
    assert_eq!(told["report"]["run"], run["name"]);
    assert_eq!(told["report"]["message"], run["message"]);

    // Put right, the next run is a recovery, and the one after that a success.
    ns.kubectl(&["delete", "secret", "wrong"]).ok();
    ns.secret(
        "wrong",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    for name in ["denied", "backup/archived"] {
        for _ in 0..2 {
            ns.backup(&["run-now", name, "--wait", "--timeout", "3m"])
                .ok();
        }
    }
    eventually("all is done", 60, || settled(&ns));
    let good = [
        ("denied", "Recovery"),
        ("denied", "Success"),
        ("archived", "Recovery"),
        ("archived", "Success"),
    ];
    let mut all = [first, pairs(&good)].concat();
    all.sort();
    assert_eq!(heard(&ns), all);
    let shown = ns
        .kubectl(&["get", "jobs,pods,events,mysqlbackups,backups", "-o", "yaml"])
        .ok();
    assert!(!shown.stdout.contains(TOKEN));
    assert_eq!(owned_by(&ns.jobs(), "MysqlBackup", "late").len(), 2);
}

/// An object is overdue ten minutes after its slot at the earliest.
#[cfg(feature = "long")]
#[test]
fn an_overdue_object_and_its_recovery_are_told_once_each() {
    let ns = prepare("e2e-overdue");
    let slot = Utc::now() + Duration::seconds(75);
    let schedule = format!("{} {} * * *", slot.minute(), slot.hour());
    let manifest = mysql("shop", HOST, "db", "  nodeSelector: {no: such}");
    let scheduled = |text: &str| text.replace("'0 0 31 2 *'", &format!("'{schedule}'"));
    ns.apply(&scheduled(&manifest));
    wait_for("it is overdue", 900, || {
        heard(&ns).iter().any(|h| h.1 == "Overdue").then_some(())
    });
    ns.apply(&scheduled(&manifest.replace("{no: such}", "{}")));
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();
    eventually("all is done", 60, || settled(&ns));
    let expected = [
        ("shop", "Failure"),
        ("shop", "Overdue"),
        ("shop", "Recovery"),
    ];
    assert_eq!(heard(&ns), pairs(&expected));
}
