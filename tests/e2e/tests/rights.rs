//! A user who may read one kind in one namespace, with a token of the API server's: each verb that reads gives what he may see,
//! says what it left out, and what to ask for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use e2e::objects::quick;
use e2e::{Namespace, Output, cluster, wait_for};
use serde_json::{Value, json};

const NAMESPACE: &str = "e2e-rights";
const LEFT_OUT: &str = "left out: Error from server (Forbidden): backups.gobackup.io";

/// The kubeconfig of a service account that may read MysqlBackups here, and nothing else.
fn reader(ns: &Namespace) -> PathBuf {
    let api = "rbac.authorization.k8s.io";
    let named = json!({"name": "reader"});
    let role = json!({"apiGroup": api, "kind": "Role", "name": "reader"});
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": named,
         "rules": [{"apiGroups": ["batch.isekiro.com"], "resources": ["mysqlbackups"], "verbs": ["get", "list", "watch"]}]},
        {"apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": named, "roleRef": role,
         "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": ns.name}]},
    ]});
    ns.apply(&all.to_string());
    let token = ns.kubectl(&["create", "token", "reader"]).ok().stdout;
    let view = ["config", "view", "--raw", "--minify", "-o", "json"];
    let mut config: Value = serde_json::from_str(&cluster().kubectl(&view).ok().stdout).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = cluster().state().join("reader.conf");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// What a verb has to do for him.
struct Row {
    words: &'static [&'static str],
    code: i32,
    /// What it shows of what he may read.
    shows: &'static [&'static str],
    /// What it says of what he may not.
    says: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    let row = |words, shows, says| Row {
        words,
        code: 0,
        shows,
        says,
    };
    let failed = |words, code, says| Row {
        words,
        code,
        shows: &[],
        says,
    };
    vec![
        row(
            &[],
            &["1 backup object in e2e-rights namespace", "1 Active"],
            &[LEFT_OUT],
        ),
        row(
            &["list"],
            &["mysqlbackup/shop", "Succeeded"],
            &[LEFT_OUT, "kubectl auth can-i list backups.gobackup.io"],
        ),
        row(&["list", "mysqlbackup"], &["mysqlbackup/shop"], &[]),
        row(
            &["describe", "shop"],
            &["Active, last run succeeded"],
            &["no permission to list events"],
        ),
        row(&["runs"], &["shop-", "Succeeded"], &[LEFT_OUT]),
        row(&["runs", "mysqlbackup/shop"], &["shop-", "Succeeded"], &[]),
        row(&["health"], &["OK"], &[LEFT_OUT]),
        row(
            &["health", "mysqlbackup/shop"],
            &["OK mysqlbackup/shop"],
            &[],
        ),
        row(
            &["schedule", "calendar", "--days", "366"],
            &["mysqlbackup/shop"],
            &[LEFT_OUT],
        ),
        row(
            &["export", "mysqlbackup/shop"],
            &["kind: MysqlBackup", "schedule: 0 0 1 1 *"],
            &[],
        ),
        row(
            &["bundle"],
            &["mysqlbackup.batch.isekiro.com/shop in e2e-rights"],
            &[LEFT_OUT, "operator: Error from server (Forbidden)"],
        ),
        row(&["version"], &["Plugin:", "Kubernetes:"], &[]),
        row(
            &["doctor"],
            &[
                "✔ kind MysqlBackup (batch.isekiro.com): installed",
                "✔ mysqlbackup/shop: newest good run",
            ],
            &[
                "- operator: not asked: you may not patch mysqlbackups",
                "- objects: Error from server (Forbidden): backups.gobackup.io",
                "⚠ rights: you may not create, patch, delete mysqlbackups.batch.isekiro.com",
            ],
        ),
        // What is not his, in words, and never a guess at an empty list.
        failed(
            &["list", "-A"],
            6,
            &[
                "at the cluster scope",
                "kubectl auth can-i list mysqlbackups.batch.isekiro.com -A",
            ],
        ),
        failed(&["health", "-A"], 3, &["UNKNOWN", "at the cluster scope"]),
        failed(
            &["runs", "mysqlbackup/shop", "--stored"],
            6,
            &[
                "cannot patch resource",
                "kubectl auth can-i patch mysqlbackups",
            ],
        ),
        failed(
            &["logs", "mysqlbackup/shop"],
            6,
            &["pods", "kubectl auth can-i"],
        ),
        failed(
            &["describe", "backup/shop"],
            6,
            &[
                "backups.gobackup.io",
                "kubectl auth can-i get backups.gobackup.io",
            ],
        ),
    ]
}

#[test]
fn who_may_read_one_kind_in_one_namespace_is_told_what_was_left_out() {
    let ns = cluster().namespace(NAMESPACE);
    ns.apply(&quick("shop", "0 0 1 1 *", ""));
    ns.backup(&["run-now", "mysqlbackup/shop", "--wait", "--timeout", "2m"])
        .ok();
    let kubeconfig = reader(&ns);
    let asked = |words: &[&str]| -> Output {
        // A namespace of his own stands beside -A too.
        cluster().backup_as(&kubeconfig, &[words, &["-n", NAMESPACE]].concat())
    };
    wait_for("the right to read", 30, || {
        (asked(&["list", "mysqlbackup"]).code == 0).then_some(())
    });
    let mut wrong = vec![];
    for row in rows() {
        let output = asked(row.words);
        let all = output.all();
        let missing: Vec<_> = row
            .shows
            .iter()
            .chain(row.says)
            .filter(|w| !all.contains(**w))
            .collect();
        if output.code != row.code || !missing.is_empty() {
            wrong.push(format!(
                "{:?}: {} instead of {}, without {missing:?}:\n{all}",
                row.words, output.code, row.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    top(&kubeconfig);
    std::fs::remove_file(kubeconfig).unwrap();
}

/// `top` on a terminal shows what he may see, and ends by a key.
fn top(kubeconfig: &std::path::Path) {
    let screen = cluster().state().join("reader.screen");
    let _ = std::fs::remove_file(&screen);
    let line = format!("{} top -n {NAMESPACE}", cluster().plugin().display());
    let mut child = Command::new("script")
        .args(["-qefc", &line])
        .arg(&screen)
        .env("KUBECONFIG", kubeconfig)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("script is in every Debian (bsdutils)");
    let shown =
        || String::from_utf8_lossy(&std::fs::read(&screen).unwrap_or_default()).into_owned();
    wait_for("top shows the object and what it left out", 60, || {
        let shown = shown();
        (shown.contains("mysqlbackup/shop") && shown.contains("left out")).then_some(())
    });
    child.stdin.take().unwrap().write_all(b"q").unwrap();
    assert!(child.wait().unwrap().success(), "{}", shown());
    std::fs::remove_file(screen).unwrap();
}
