//! One MariaDB server in the cluster, shared by the tests of a run.

use std::sync::OnceLock;

use crate::server::Server;
use crate::{cluster, wait_for};

/// Its namespace.
pub const NAMESPACE: &str = "e2e-database";
/// Its address inside the cluster.
pub const HOST: &str = "mariadb.e2e-database.svc.cluster.local";
/// Password of root. A marker: no test may find it where it does not belong.
pub const ROOT_PASSWORD: &str = "R00t-marker-5f2c";
/// A user that may dump everything, and its password.
pub const BACKUP_USER: &str = "dumper";
/// Password of [`BACKUP_USER`], with characters that shells and option files trip over.
pub const BACKUP_PASSWORD: &str = "S3cr3t-marker'\"\\ $x#;é";

const FIXTURE: &str = include_str!("../../fixtures/db_fixture.sql");

/// Starts the server at first use and waits until it answers.
pub fn database() -> &'static Server {
    static DATABASE: OnceLock<Server> = OnceLock::new();
    DATABASE.get_or_init(|| {
        let cluster = cluster();
        cluster
            .kubectl_with(&["apply", "-f", "-"], &manifest(&cluster.mariadb_image))
            .ok();
        let database = Server::of(NAMESPACE, "mariadb");
        wait_for("the database answers", 120, || {
            (database.try_sql("select count(*) from shop.t").code == 0).then_some(())
        });
        database
    })
}

/// Makes [`BACKUP_USER`].
pub fn backup_user() -> String {
    let password = BACKUP_PASSWORD.replace('\\', "\\\\").replace('\'', "''");
    format!(
        "create user '{BACKUP_USER}'@'%' identified by '{password}';
grant select, show view, trigger, lock tables, event, process, reload, replication client on *.* to '{BACKUP_USER}'@'%';
"
    )
}

fn manifest(image: &str) -> String {
    let sql = format!("{FIXTURE}\n{}", backup_user());
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "initdb", "namespace": NAMESPACE},
        "data": {"fixture.sql": sql},
    });
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
{config}
---
apiVersion: v1
kind: Service
metadata: {{name: mariadb, namespace: {NAMESPACE}}}
spec: {{selector: {{app: mariadb}}, ports: [{{port: 3306}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: mariadb, namespace: {NAMESPACE}}}
spec:
  selector: {{matchLabels: {{app: mariadb}}}}
  strategy: {{type: Recreate}}
  template:
    metadata: {{labels: {{app: mariadb}}}}
    spec:
      containers:
      - name: mariadb
        image: {image}
        imagePullPolicy: IfNotPresent
        env: [{{name: MARIADB_ROOT_PASSWORD, value: {ROOT_PASSWORD}}}]
        volumeMounts: [{{name: initdb, mountPath: /initdb}}]
      volumes: [{{name: initdb, configMap: {{name: initdb}}}}]
"
    )
}
