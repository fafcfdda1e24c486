//! Runs that need no client of a database and no scratch server have an image that has neither: the runner alone. In a
//! namespace that admits restricted pods alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use e2e::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, ROOT_PASSWORD, database};
use e2e::{Namespace, cluster, slim_runner_image, wait_for};
use serde_json::Value;

const ROWS: &str = "select id, txt, hex(b), total, ts from shop.t order by id";

/// The image of the container that a Job's pod had.
fn image(ns: &Namespace, job: &str) -> String {
    let pods = ns.get(&["pods", "-l", &format!("job-name={job}")]).unwrap();
    let pod = &pods["items"][0]["spec"];
    assert_eq!(pod["initContainers"], Value::Null, "{pod}");
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true, "{container}");
    container["image"].as_str().unwrap().to_owned()
}

#[test]
fn a_native_dump_needs_no_client_in_its_image_and_restores_where_there_is_one() {
    let db = database();
    let ns = cluster().restricted_namespace("e2e-slim");
    ns.secret(
        "db",
        &[("username", BACKUP_USER), ("password", BACKUP_PASSWORD)],
    );
    ns.secret("root", &[("username", "root"), ("password", ROOT_PASSWORD)]);
    ns.volume("data");
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: MysqlBackup
metadata: {{name: shop}}
spec:
  schedule: '@yearly'
  backoffLimit: 0
  source: {{host: {HOST}, credentialsSecretRef: {{name: db}}, databases: [shop], engine: Native}}
  destination: {{volume: {{persistentVolumeClaim: {{claimName: data}}}}}}
"
    ));
    ns.backup(&["run-now", "shop", "--wait", "--timeout", "3m"])
        .ok();
    let run = ns.mysql_backup("shop").unwrap()["status"]["runs"][0].clone();
    assert_eq!(
        (&run["result"], &run["engine"]),
        (&"Succeeded".into(), &"Native".into()),
        "{run}"
    );
    assert_eq!(
        image(&ns, run["name"].as_str().unwrap()),
        slim_runner_image()
    );
    // As docs/runner.md says.
    let size = wait_for("the node tells the image's size", 120, || {
        let nodes = cluster().get(&["nodes"])?;
        let images = nodes["items"][0]["status"]["images"].as_array()?.clone();
        let named = |image: &&Value| image["names"].to_string().contains(&slim_runner_image());
        images.iter().find(named)?["sizeBytes"].as_u64()
    });
    assert!(size <= 30 << 20, "{size}");
    // What is stored is listed and read again by the runner alone, too.
    let stored = ns.backup(&["runs", "shop", "--stored"]).ok().stdout;
    assert!(stored.contains(".sql.zst"), "{stored}");
    ns.backup(&["verify", "shop", "--timeout", "3m"]).ok();

    db.sql("drop database if exists slim_copy");
    ns.apply(&format!(
        "apiVersion: batch.isekiro.com/v1
kind: Restore
metadata: {{name: copy}}
spec:
  from: {{name: shop, latest: true}}
  to: {{host: {HOST}, credentialsSecretRef: {{name: root}}, database: slim_copy}}
"
    ));
    let status = wait_for("the Restore ends", 240, || {
        let status = ns.get(&["restores.batch.isekiro.com", "copy"])?["status"].clone();
        let phase = status["phase"].as_str()?;
        ["Succeeded", "Failed"].contains(&phase).then_some(status)
    });
    assert_eq!(status["phase"], "Succeeded", "{status}");
    let job = status["job"].as_str().unwrap();
    assert_eq!(image(&ns, job), cluster().runner_image);
    assert_eq!(db.sql(&ROWS.replace("shop.", "slim_copy.")), db.sql(ROWS));
    db.sql("drop database slim_copy");
}
