//! Drives the real binaries against the real cluster of tests/testbed.
//!
//! `make e2e` (a part of `make test`) builds images and binaries, starts the cluster, deploys the
//! operator by `make deploy` and sets the environment this library reads.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support: a failed step ends the test with its message"
)]

pub mod backup_kind;
pub mod database;
pub mod objects;
mod process;
pub mod server;
pub mod servers;
pub mod wait;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

pub use process::Output;
pub use wait::{eventually, wait_for};

/// The cluster, the binaries and the images under test.
pub struct Cluster {
    /// The program kubectl.
    pub kubectl: PathBuf,
    kubeconfig: PathBuf,
    plugin: PathBuf,
    testbed: PathBuf,
    /// File with the names of all objects that were there before the operator.
    pub objects_before: PathBuf,
    /// Image of the runner, loaded into the cluster.
    pub runner_image: String,
    /// Image of the operator, loaded into the cluster.
    pub operator_image: String,
    /// Image of a MariaDB server, loaded into the cluster.
    pub mariadb_image: String,
}

/// The cluster of this test run.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster {
        kubectl: setting("E2E_KUBECTL").into(),
        kubeconfig: setting("KUBECONFIG").into(),
        plugin: Path::new(&setting("E2E_BIN_DIR")).join("kubectl-backup"),
        testbed: setting("E2E_TESTBED").into(),
        objects_before: setting("E2E_OBJECTS_BEFORE").into(),
        runner_image: setting("E2E_RUNNER_IMAGE"),
        operator_image: setting("E2E_OPERATOR_IMAGE"),
        mariadb_image: setting("E2E_MARIADB_IMAGE"),
    })
}

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: these tests need the cluster; run `make e2e` or `make test`")
    })
}

/// An image with a stand-in for gobackup and the clients it calls, loaded into the cluster.
pub fn gobackup_image() -> String {
    setting("E2E_GOBACKUP_IMAGE")
}

/// An image with clients of databases and nothing else, loaded into the cluster.
pub fn client_image() -> String {
    setting("E2E_CLIENT_IMAGE")
}

/// An image with the runner and nothing else, loaded into the cluster.
pub fn slim_runner_image() -> String {
    setting("E2E_SLIM_RUNNER_IMAGE")
}

impl Cluster {
    /// Runs kubectl.
    pub fn kubectl(&self, args: &[&str]) -> Output {
        process::run(&self.kubectl, &self.kubeconfig, args, None)
    }

    /// Runs kubectl with standard input.
    pub fn kubectl_with(&self, args: &[&str], input: &str) -> Output {
        process::run(&self.kubectl, &self.kubeconfig, args, Some(input))
    }

    /// Starts kubectl and leaves it running; its output is discarded.
    pub fn kubectl_spawn(&self, args: &[&str]) -> std::process::Child {
        process::spawn(&self.kubectl, &self.kubeconfig, args)
    }

    /// Runs the plugin.
    pub fn backup(&self, args: &[&str]) -> Output {
        process::run(&self.plugin, &self.kubeconfig, args, None)
    }

    /// The plugin's file, for what needs a terminal.
    pub fn plugin(&self) -> &Path {
        &self.plugin
    }

    /// Runs the plugin as the user of another kubeconfig.
    pub fn backup_as(&self, kubeconfig: &Path, args: &[&str]) -> Output {
        process::run(&self.plugin, kubeconfig, args, None)
    }

    /// Runs the testbed.
    pub fn testbed(&self, args: &[&str]) -> Output {
        process::run(&self.testbed, &self.kubeconfig, args, None)
    }

    /// `kubectl get … -o json`; `None` if it is not there.
    pub fn get(&self, args: &[&str]) -> Option<Value> {
        let output = self.kubectl(&[&["get"], args, &["-o", "json"]].concat());
        if output.code == 0 {
            return Some(serde_json::from_str(&output.stdout).expect("kubectl prints JSON"));
        }
        assert!(
            output.stderr.contains("NotFound"),
            "kubectl get {args:?}: {}",
            output.stderr
        );
        None
    }

    /// As [`Cluster::namespace`], where Pod Security admits restricted pods alone.
    pub fn restricted_namespace(&'static self, name: &str) -> Namespace {
        let ns = self.namespace(name);
        let level = "pod-security.kubernetes.io/enforce=restricted";
        self.kubectl(&["label", "namespace", name, level]).ok();
        ns
    }

    /// A namespace of this test, gone with the returned guard.
    pub fn namespace(&'static self, name: &str) -> Namespace {
        self.kubectl(&["delete", "namespace", name, "--ignore-not-found"])
            .ok();
        self.kubectl(&["create", "namespace", name]).ok();
        wait_for("the default service account", 30, || {
            self.get(&["-n", name, "serviceaccount", "default"])
        });
        Namespace {
            cluster: self,
            name: name.to_owned(),
        }
    }

    /// The directory of the cluster's own files, which has one path inside and outside.
    pub fn state(&self) -> &Path {
        self.kubeconfig
            .parent()
            .expect("the kubeconfig is a file in it")
    }

    /// The pod of the operator that is running now.
    pub fn operator_pod(&self) -> Option<String> {
        let pods = self.get(&[
            "-n",
            "backup-system",
            "pods",
            "-l",
            "app.kubernetes.io/name=backup-operator",
            "--field-selector=status.phase=Running",
        ])?;
        let pod = pods["items"]
            .as_array()?
            .iter()
            .find(|p| p["metadata"]["deletionTimestamp"].is_null())?;
        pod["metadata"]["name"].as_str().map(str::to_owned)
    }
}

/// A namespace that ends with its test.
pub struct Namespace {
    cluster: &'static Cluster,
    /// Its name.
    pub name: String,
}

impl Namespace {
    /// Runs kubectl in this namespace.
    pub fn kubectl(&self, args: &[&str]) -> Output {
        self.cluster.kubectl(&[&["-n", &self.name], args].concat())
    }

    /// Runs kubectl in this namespace with standard input.
    pub fn kubectl_with(&self, args: &[&str], input: &str) -> Output {
        self.cluster
            .kubectl_with(&[&["-n", &self.name], args].concat(), input)
    }

    /// Runs the plugin in this namespace.
    pub fn backup(&self, args: &[&str]) -> Output {
        self.cluster.backup(&[args, &["-n", &self.name]].concat())
    }

    /// Applies a manifest and returns what kubectl said.
    pub fn try_apply(&self, manifest: &str) -> Output {
        self.cluster
            .kubectl_with(&["-n", &self.name, "apply", "-f", "-"], manifest)
    }

    /// Applies a manifest that must be accepted.
    pub fn apply(&self, manifest: &str) {
        self.try_apply(manifest).ok();
    }

    /// `kubectl get … -o json` in this namespace.
    pub fn get(&self, args: &[&str]) -> Option<Value> {
        self.cluster.get(&[&["-n", &self.name], args].concat())
    }

    /// Asks the operator for something, past the plugin and what that looks for first.
    pub fn ask(&self, resource: &str, name: &str, mut request: Value) {
        let at = chrono::DateTime::from_timestamp(wait::unix_seconds(), 0).unwrap_or_default();
        request["at"] = at.to_rfc3339().into();
        request["expiresAt"] = (at + chrono::Duration::minutes(10)).to_rfc3339().into();
        let annotation = format!("batch.isekiro.com/request-0123456789={request}");
        self.kubectl(&["annotate", resource, name, &annotation])
            .ok();
    }

    /// A MysqlBackup of this namespace.
    pub fn mysql_backup(&self, name: &str) -> Option<Value> {
        self.get(&["mysqlbackups.batch.isekiro.com", name])
    }

    /// Names of the Jobs of this namespace.
    pub fn jobs(&self) -> Vec<Value> {
        self.get(&["jobs"])
            .and_then(|l| l["items"].as_array().cloned())
            .unwrap_or_default()
    }

    /// A claim bound to a directory of the node; returns that directory as the host sees it.
    pub fn volume(&self, claim: &str) -> PathBuf {
        let pv = format!("{}-{claim}", self.name);
        let path = self
            .cluster
            .testbed(&["volume", &pv])
            .ok()
            .stdout
            .trim()
            .to_owned();
        // A cluster that was kept up has it from an earlier run.
        for entry in std::fs::read_dir(&path)
            .expect("the volume's directory")
            .flatten()
        {
            let removed = if entry.path().is_dir() {
                std::fs::remove_dir_all(entry.path())
            } else {
                std::fs::remove_file(entry.path())
            };
            removed.expect("an old file can be removed");
        }
        self.cluster
            .kubectl(&["delete", "pv", &pv, "--ignore-not-found"])
            .ok();
        self.apply(&format!(
            "apiVersion: v1
kind: PersistentVolume
metadata: {{name: {pv}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ''
  claimRef: {{namespace: {ns}, name: {claim}}}
  local: {{path: {path}}}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{{key: kubernetes.io/hostname, operator: Exists}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {claim}}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: {pv}
  resources: {{requests: {{storage: 1Gi}}}}
",
            ns = self.name
        ));
        path.into()
    }

    /// A Secret of literals.
    pub fn secret(&self, name: &str, literals: &[(&str, &str)]) {
        let mut args = vec![
            "create".to_owned(),
            "secret".into(),
            "generic".into(),
            name.into(),
        ];
        args.extend(
            literals
                .iter()
                .map(|(k, v)| format!("--from-literal={k}={v}")),
        );
        self.kubectl(&args.iter().map(String::as_str).collect::<Vec<_>>())
            .ok();
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Without waiting: the next test needs another name, and the cluster ends with the run.
        let _ = self
            .cluster
            .kubectl(&["delete", "namespace", &self.name, "--wait=false"]);
        let list = self.cluster.kubectl(&["get", "pv", "-o", "name"]);
        for pv in list.stdout.lines() {
            if pv.starts_with(&format!("persistentvolume/{}-", self.name)) {
                let _ = self.cluster.kubectl(&["delete", pv, "--wait=false"]);
            }
        }
    }
}

/// Files below `dir`, as paths relative to it, sorted.
pub fn files(dir: &Path) -> Vec<String> {
    fn walk(root: &Path, dir: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(root, &path, into);
            } else if let Ok(relative) = path.strip_prefix(root) {
                into.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    let mut found = vec![];
    walk(dir, dir, &mut found);
    found.sort();
    found
}
