//! A MariaDB server of a test alone, for what would disturb the others at the shared one.

use crate::database::ROOT_PASSWORD;
use crate::{Namespace, Output, cluster, wait_for};

/// A MariaDB server of a test's own namespace.
pub struct Server<'a> {
    ns: &'a Namespace,
    name: &'static str,
}

impl<'a> Server<'a> {
    /// Starts it; `arguments` are those of the server, separated by commas. Its address in the cluster is its name.
    pub fn start(ns: &'a Namespace, name: &'static str, arguments: &str) -> Self {
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
        Self { ns, name }
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
        let client = "MYSQL_PWD=$MARIADB_ROOT_PASSWORD exec mariadb -uroot --default-character-set=utf8mb4 -N -B";
        let deployment = format!("deployment/{}", self.name);
        let exec = ["exec", "-i", &deployment, "--", "sh", "-c", client];
        self.ns.kubectl_with(&exec, text)
    }

    /// Runs SQL as root; returns what the client printed, without headings.
    pub fn sql(&self, text: &str) -> String {
        self.try_sql(text).ok().stdout
    }

    /// Starts a script beside the server; `mariadb -uroot` needs no password in it.
    pub fn spawn(&self, script: &str) -> std::process::Child {
        let script = format!("export MYSQL_PWD=$MARIADB_ROOT_PASSWORD; {script}");
        let deployment = format!("deployment/{}", self.name);
        let exec = [
            "-n",
            &self.ns.name,
            "exec",
            &deployment,
            "--",
            "sh",
            "-c",
            &script,
        ];
        cluster().kubectl_spawn(&exec)
    }
}
