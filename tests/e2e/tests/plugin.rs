//! The plugin on the real cluster: artefacts that come back, completion in a real shell, and each
//! class of errors with its exit status and first line.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, database};
use e2e::{Namespace, Output, cluster, eventually, files};
use serde_json::Value;

/// One after the other: one of these tests takes the operator away.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A MysqlBackup of the database `shop`, due on no day soon.
fn manifest(name: &str, secret: &str) -> String {
    format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: {name}, labels: {{team: shop}}}}
spec:
  schedule: '0 0 29 2 *'
  source: {{host: {HOST}, databases: [shop], credentialsSecretRef: {{name: {secret}}}}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
  backoffLimit: 0
"
    )
}

/// A namespace that admits restricted pods alone, with a database user and a volume.
fn prepare(name: &str) -> (Namespace, PathBuf) {
    database();
    let ns = cluster().restricted_namespace(name);
    let volume = ns.volume("data");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    (ns, volume)
}

fn run(ns: &Namespace, name: &str) {
    ns.backup(&["run-now", name, "--wait", "--timeout", "3m"])
        .ok();
}

fn artefacts(volume: &Path) -> Vec<String> {
    files(volume)
        .into_iter()
        .filter(|f| f.contains(".sql") && !f.ends_with(".json") && !is_verdict(f))
        .collect()
}

/// What a verification left beside an artefact.
fn is_verdict(file: &str) -> bool {
    file.ends_with(".verified") || file.ends_with(".verify-failed")
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// What a program of this machine prints.
fn says(program: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    output.stdout
}

/// Pods that downloads left behind.
fn pods(ns: &Namespace) -> Vec<Value> {
    let list = ns.get(&["pods", "-l", "app.kubernetes.io/component=download"]);
    list.unwrap()["items"].as_array().unwrap().clone()
}

#[test]
fn a_dump_comes_back_whole_and_goes_for_good() {
    let _alone = alone();
    let (ns, volume) = prepare("e2e-download");
    ns.apply(&manifest("shop", "db"));
    run(&ns, "shop");
    let keys = artefacts(&volume);
    assert_eq!(keys.len(), 1, "{keys:?}");
    let stored = volume.join(&keys[0]);
    let home = std::env::temp_dir().join(format!("e2e-download-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();

    let plain = home.join("shop.sql");
    let ran = ns.backup(&["download", "shop", "-O", &text(&plain)]).ok();
    assert!(ran.stdout.contains("downloaded to"), "{}", ran.stdout);
    assert_eq!(
        std::fs::read(&plain).unwrap(),
        says("zstd", &["-dc", &text(&stored)])
    );
    let raw = home.join("raw");
    ns.backup(&["download", "shop", "--raw", "-O", &text(&raw)])
        .ok();
    assert_eq!(
        std::fs::read(&raw).unwrap(),
        std::fs::read(&stored).unwrap()
    );
    let piped = ns.backup(&["download", "shop", "-O", "-"]).ok();
    assert_eq!(piped.stdout.as_bytes(), std::fs::read(&plain).unwrap());

    // What was there before goes on instead of coming again; what is whole is not replaced.
    let object = ns.mysql_backup("shop").unwrap();
    let sum = object["status"]["runs"][0]["artefacts"][0]["sha256"]
        .as_str()
        .unwrap()
        .to_owned();
    let bytes = std::fs::read(&raw).unwrap();
    let again = home.join("again");
    std::fs::write(
        home.join(format!(".again.{}.part", &sum[..12])),
        &bytes[..bytes.len() / 2],
    )
    .unwrap();
    let ran = ns
        .backup(&["download", "shop", "--raw", "-O", &text(&again)])
        .ok();
    assert!(
        ran.stderr
            .contains(&format!("going on at {}", bytes.len() / 2)),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read(&again).unwrap(), bytes);
    first(
        &ns.backup(&["download", "shop", "-O", &text(&plain)]),
        2,
        &format!("error: {} exists already", text(&plain)),
    );
    assert_eq!(pods(&ns), Vec::<Value>::new());
    assert_eq!(
        std::fs::read_dir(&home).unwrap().count(),
        3,
        "nothing half-written"
    );

    let listed = ns.backup(&["runs", "shop", "--stored"]).ok();
    assert!(
        listed.stdout.contains("Stored") && listed.stdout.contains(&keys[0]),
        "{}",
        listed.stdout
    );
    ns.backup(&["verify", "shop"]).ok();

    // A damaged artefact is no good download, and verification says so too.
    let mut damaged = std::fs::read(&stored).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&stored, &damaged).unwrap();
    let bad = home.join("bad");
    ns.backup(&["download", "shop", "--raw", "-O", &text(&bad)])
        .code(4);
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 3);
    ns.backup(&["verify", "shop"]).code(4);
    std::fs::remove_dir_all(&home).unwrap();

    // The bytes alone vanish, then what vouched for them too.
    for path in [stored, volume.join(format!("{}.json", keys[0]))] {
        std::fs::remove_file(path).unwrap();
        let listed = ns.backup(&["runs", "shop", "--stored"]).ok();
        assert!(listed.stdout.contains("Missing"), "{}", listed.stdout);
    }

    run(&ns, "shop");
    assert_eq!(artefacts(&volume).len(), 1);
    ns.backup(&["delete", "shop", "--delete-data", "--yes"])
        .ok();
    assert_eq!(artefacts(&volume), Vec::<String>::new());
    assert!(ns.mysql_backup("shop").is_none());
}

#[test]
fn a_restore_checks_first_and_replaces_only_with_consent() {
    let _alone = alone();
    let (ns, _volume) = prepare("e2e-plugin-restore");
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    ns.apply(&manifest("shop", "db"));
    run(&ns, "shop");
    let db = database();
    db.sql("drop database if exists plugin_copy");
    let restore = |more: &[&str]| {
        let words = [
            &[
                "restore",
                "shop",
                "--to",
                HOST,
                "--secret",
                "root",
                "--database",
                "plugin_copy",
                "--wait",
                "--timeout",
                "3m",
            ],
            more,
        ]
        .concat();
        ns.backup(&words)
    };
    let ran = restore(&[]).ok();
    assert!(ran.stdout.ends_with(" succeeded\n"), "{}", ran.stdout);
    assert!(!ran.all().contains(ROOT_PASSWORD));
    assert_eq!(
        db.sql("select count(*) from plugin_copy.t"),
        db.sql("select count(*) from shop.t")
    );
    // Now tables are there.
    let refused = restore(&[]).code(4);
    assert!(
        refused.stderr.contains("add --overwrite") && refused.stdout.is_empty(),
        "{}",
        refused.all()
    );
    let refused = restore(&["--overwrite"]).code(2);
    assert!(
        refused.stderr.contains("cannot ask for confirmation"),
        "{}",
        refused.stderr
    );
    restore(&["--overwrite", "--yes"]).ok();
    db.sql("drop database plugin_copy");
}

#[test]
fn templates_print_what_kubectl_prints() {
    let _alone = alone();
    let (ns, _volume) = prepare("e2e-templates");
    ns.apply(&manifest("shop", "db"));
    ns.apply(&manifest("crm", "db"));
    for template in [
        "jsonpath={.items[*].metadata.name}",
        "jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.spec.schedule}{\"\\n\"}{end}",
        "jsonpath={.items[0].spec}",
        "jsonpath={.items[?(@.metadata.name==\"shop\")].spec.source.databases}",
        "jsonpath={..secretName}{.items[-1:].metadata.labels.team}",
        "jsonpath={.items[*]['metadata.name','spec.schedule']}",
        "custom-columns=N:.metadata.name,SOURCE:.spec.source,NO:.spec.nothing",
        "custom-columns=NAME:metadata.name,DATABASES:{.spec.source.databases[*]}",
        "name",
    ] {
        let args = ["mysqlbackups.batch.isekiro.com", "-o", template];
        let theirs = ns.kubectl(&[&["get"], &args[..]].concat()).ok().stdout;
        let ours = ns.backup(&[&["list"], &args[..]].concat()).ok().stdout;
        assert_eq!(ours, theirs, "{template}");
    }
}

/// The first line on stderr begins so, and the status is this.
#[track_caller]
fn first(output: &Output, code: i32, line: &str) {
    let said = output.stderr.lines().next().unwrap_or_default();
    assert!(
        output.code == code && said.starts_with(line),
        "{}: status {} instead of {code}, {said:?} instead of {line:?}\n{}",
        output.command,
        output.code,
        output.all()
    );
}

#[test]
fn each_class_of_errors_has_its_status_and_first_line() {
    let _alone = alone();
    let (ns, _volume) = prepare("e2e-errors");
    ns.secret("wrong", &[("username", "nobody"), ("password", "nothing")]);
    ns.apply(&manifest("shop", "db"));
    ns.apply(&manifest("locked", "wrong"));
    let kubectl = |args: &[&str]| cluster().kubectl(args);

    first(
        &ns.backup(&["list", "--server", "https://127.0.0.1:1"]),
        8,
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?",
    );
    first(
        &ns.backup(&["list", "--as", "nobody"]),
        6,
        "Error from server (Forbidden): mysqlbackups.batch.isekiro.com is forbidden: User \"nobody\" cannot list resource",
    );
    first(
        &ns.backup(&["describe", "shpo"]),
        5,
        "Error from server (NotFound): mysqlbackups.batch.isekiro.com \"shpo\" not found in namespace \"e2e-errors\". Did you mean \"shop\"?",
    );
    ns.apply(
        "apiVersion: gobackup.io/v1
kind: Backup
metadata: {name: shop}
spec: {databaseRefs: [{name: x}], storageRefs: [{name: x}], schedule: {cron: '0 0 29 2 *'}}
",
    );
    first(
        &ns.backup(&["describe", "shop"]),
        2,
        "error: \"shop\" exists as mysqlbackup/shop and backup/shop; say which, such as mysqlbackup/shop",
    );
    ns.backup(&["describe", "mysqlbackup/shop"]).ok();

    let failed = ns.backup(&["run-now", "locked", "--wait", "--timeout", "3m"]);
    assert_eq!(failed.code, 4, "{}", failed.all());
    let line = failed.stderr.lines().find(|l| l.starts_with('✖')).unwrap();
    assert!(
        line.contains(" failed after ") && line.contains("Access denied"),
        "{line}"
    );
    let late = ns.backup(&["run-now", "mysqlbackup/shop", "--wait", "--timeout", "1"]);
    assert_eq!(late.code, 124, "{}", late.all());
    assert!(
        late.stderr
            .contains("error: timed out after 1s waiting for shop-"),
        "{}",
        late.stderr
    );
    ns.backup(&["wait", "mysqlbackup/shop", "--timeout", "3m"])
        .ok();

    // No operator.
    let operator = ["-n", "backup-system", "deployment/backup-operator"];
    let scale = |count: &str| {
        kubectl(&[
            "-n",
            "backup-system",
            "scale",
            operator[2],
            "--replicas",
            count,
        ])
        .ok();
    };
    scale("0");
    eventually("the operator is gone", 60, || {
        cluster().operator_pod().is_none()
    });
    let unheard = ns.backup(&["run-now", "mysqlbackup/shop", "--wait"]);
    scale("1");
    assert_eq!(unheard.code, 7, "{}", unheard.all());
    assert!(
        unheard.stderr.contains(
            "error: nothing has handled mysqlbackup/shop for 30s: no backup-operator is ready"
        ),
        "{}",
        unheard.stderr
    );
    kubectl(&[
        "-n",
        "backup-system",
        "rollout",
        "status",
        operator[2],
        "--timeout=120s",
    ])
    .ok();

    // No such kind: the one that nothing here uses.
    let name = "cronbackups.gobackup.io";
    let mut crd = cluster().get(&["crd", name]).unwrap();
    kubectl(&["delete", "crd", name]).ok();
    let missing = ns.backup(&["list", "cronbackup"]);
    crd["metadata"] = serde_json::json!({ "name": name });
    crd["status"] = Value::Null;
    cluster()
        .kubectl_with(&["create", "-f", "-"], &crd.to_string())
        .ok();
    kubectl(&["wait", "--for=condition=Established", "crd", name]).ok();
    first(
        &missing,
        7,
        "error: CronBackup is not installed in this cluster (no resource \"cronbackups\" in group \"gobackup.io\").",
    );
}

/// A directory with the programs as kubectl finds them, gone with the test.
struct Bin(PathBuf);

impl Bin {
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("e2e-bin-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let link = |name: &str, target: PathBuf| {
            std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
        };
        let setting = |name: &str| {
            #[expect(clippy::disallowed_methods, reason = "test support")]
            let value = std::env::var(name).unwrap();
            PathBuf::from(value)
        };
        link("kubectl", setting("E2E_KUBECTL"));
        link(
            "kubectl-backup",
            setting("E2E_BIN_DIR").join("kubectl-backup"),
        );
        Self(dir)
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0.display())
    }
}

impl Drop for Bin {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What bash offers for the words, by kubectl's own completion script. The helper of the package
/// bash-completion stands in where that package is missing.
fn offered(bin: &Bin, more: &[(&str, &str)], words: &[&str]) -> Vec<String> {
    let script = r#"
        _get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
        compopt() { :; }
        source <(kubectl completion bash) || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
        __start_kubectl
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    #[expect(clippy::disallowed_methods, reason = "test support")]
    let kubeconfig = std::env::var("KUBECONFIG").unwrap();
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script, "bash"])
        .args(words)
        .env_clear()
        .env("PATH", bin.path())
        .env("KUBECONFIG", kubeconfig)
        .envs(more.iter().copied())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|l| l.split_whitespace().next().unwrap_or_default().to_owned())
        .filter(|l| !l.is_empty())
        .collect()
}

#[test]
fn bash_offers_verbs_and_live_names_and_is_silent_without_a_cluster() {
    let _alone = alone();
    let ns = cluster().namespace("e2e-complete");
    ns.apply(&manifest("shop", "db"));
    ns.apply(&manifest("shipping", "db"));
    ns.apply(&manifest("crm", "db"));
    let bin = Bin::new();
    let installed = Command::new(bin.0.join("kubectl-backup"))
        .args(["completion", "kubectl", "--install"])
        .env("PATH", bin.path())
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let verbs = offered(&bin, &[], &["kubectl", "backup", ""]);
    for verb in ["list", "run-now", "suspend", "restore", "download"] {
        assert!(verbs.iter().any(|v| v == verb), "{verb} in {verbs:?}");
    }
    let wait = [("KUBECTL_BACKUP_COMPLETION_TIMEOUT", "20s")];
    let line = ["kubectl", "backup", "suspend", "-n", "e2e-complete", "sh"];
    assert_eq!(offered(&bin, &wait, &line), ["shipping", "shop"]);

    // A port that takes the connection and never answers is worse than one that refuses.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", mute.local_addr().unwrap());
    let shim = |server: &str| {
        let start = std::time::Instant::now();
        let output = Command::new(bin.0.join("kubectl_complete-backup"))
            .args(["suspend", "--server", server, "sh"])
            .env("PATH", bin.path())
            .output()
            .unwrap();
        (output, start.elapsed())
    };
    for server in [server.as_str(), "http://127.0.0.1:1"] {
        let (output, took) = shim(server);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), ":4\n", "{server}");
        // One second is the program's own limit; the rest is a loaded machine's.
        assert!(took.as_secs_f64() < 3.0, "{took:?} with {server}");
    }
}
