//! A MariaDB server in the cluster. A test that locks or fills one has it for itself: it would disturb the others at the shared
//! one.

use crate::database::ROOT_PASSWORD;
use crate::{Namespace, Output, cluster, wait_for};

/// A server of a namespace.
pub struct Server {
    namespace: String,
    /// Name of its Deployment.
    name: &'static str,
}

impl Server {
    /// One that is there, or will be.
    pub(crate) fn of(namespace: &str, name: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name,
        }
    }

    /// Starts it; `arguments` are those of the server, separated by commas. Its address in the cluster is its name.
    pub fn start(ns: &Namespace, name: &'static str, arguments: &str) -> Self {
        let image = &cluster().mariadb_image;
        ns.apply(&format!(
            "apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 3306}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: mariadb
        image: {image}
        imagePullPolicy: IfNotPresent
        args: [{arguments}]
        env: [{{name: MARIADB_ROOT_PASSWORD, value: {ROOT_PASSWORD}}}]
---
"
        ));
        Self::of(&ns.name, name)
    }

    /// Waits until it answers.
    pub fn awaited(self) -> Self {
        wait_for(&format!("{} answers", self.name), 120, || {
            (self.try_sql("select 1").code == 0).then_some(())
        });
        self
    }

    /// Runs SQL as root.
    pub fn try_sql(&self, text: &str) -> Output {
        let client = "exec mariadb -uroot --default-character-set=utf8mb4 -N -B";
        let exec = self.exec(&["-i"], client);
        let exec: Vec<&str> = exec.iter().map(String::as_str).collect();
        cluster().kubectl_with(&exec, text)
    }

    /// Runs SQL as root; returns what the client printed, without headings.
    pub fn sql(&self, text: &str) -> String {
        self.try_sql(text).ok().stdout
    }

    /// Starts a script beside the server; `mariadb -uroot` needs no password in it.
    pub fn spawn(&self, script: &str) -> std::process::Child {
        let exec = self.exec(&[], script);
        let exec: Vec<&str> = exec.iter().map(String::as_str).collect();
        cluster().kubectl_spawn(&exec)
    }

    fn exec(&self, options: &[&str], script: &str) -> Vec<String> {
        let script = format!("export MYSQL_PWD=$MARIADB_ROOT_PASSWORD; {script}");
        let deployment = format!("deployment/{}", self.name);
        let head = ["-n", &self.namespace, "exec"];
        let tail = [deployment.as_str(), "--", "sh", "-c", &script];
        let all = head.iter().chain(options).chain(&tail);
        all.map(|word| (*word).to_owned()).collect()
    }
}
