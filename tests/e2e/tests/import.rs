//! `kubectl backup import --apply` on the real cluster: again is nothing new, what others have set
//! is left to them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::PathBuf;

use e2e::{Namespace, cluster};
use serde_json::Value;

/// A gobackup.yml, gone with the test.
struct File(PathBuf);

impl File {
    /// Two models that are due on no day soon.
    fn new(name: &str, password: &str) -> Self {
        let model = |name: &str| {
            format!(
                "  {name}:
    schedule: {{ cron: '0 0 29 2 *' }}
    databases: {{ main: {{ type: mysql, host: db, password: {password} }} }}
    storages: {{ far: {{ type: s3, bucket: b, region: eu, secret_access_key: k3y }} }}
"
            )
        };
        let text = format!("models:\n{}{}", model("crm"), model("shop"));
        let path = std::env::temp_dir().join(format!("{name}-{}.yml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn import(&self, ns: &Namespace, more: &[&str]) -> e2e::Output {
        let path = self.0.to_str().unwrap();
        ns.backup(&[&["import", path, "--apply"], more].concat())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Each object with all that an apply could change: spec, data and who set what.
fn objects(ns: &Namespace) -> Vec<Value> {
    let kinds = "databases.gobackup.io,storages.gobackup.io,backups.gobackup.io,secrets";
    let list = ns.get(&[kinds, "--show-managed-fields"]).unwrap();
    let part = |object: &Value| {
        let metadata = &object["metadata"];
        let applied = metadata["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|m| m["operation"] == "Apply")
            .cloned()
            .collect::<Vec<_>>();
        serde_json::json!([
            object["kind"],
            metadata["name"],
            metadata["generation"],
            object["spec"],
            object["data"],
            applied
        ])
    };
    list["items"].as_array().unwrap().iter().map(part).collect()
}

#[test]
fn an_import_again_changes_nothing_and_a_new_password_is_taken() {
    let ns = cluster().namespace("e2e-import");
    let file = File::new("e2e-import", "hunter2");
    let first = file.import(&ns, &[]).ok();
    let before = objects(&ns);
    assert_eq!(before.len(), 10, "{before:#?}");
    let again = file.import(&ns, &[]).ok();
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(objects(&ns), before);
    assert!(!(first.all() + &again.all()).contains("hunter2"));

    let file = File::new("e2e-import-new", "other");
    file.import(&ns, &["--model", "shop"]).ok();
    let data = |name: &str| ns.get(&["secret", name]).unwrap()["data"].clone();
    // By base64 of coreutils.
    assert_eq!(data("shop-main-database")["password"], "b3RoZXI=");
    assert_eq!(data("crm-main-database")["password"], "aHVudGVyMg==");
}

#[test]
fn what_others_have_set_is_left_to_them_and_named() {
    let ns = cluster().namespace("e2e-import-others");
    let file = File::new("e2e-import-others", "hunter2");
    // A Secret of this name that somebody else made, with another password.
    ns.secret("crm-main-database", &[("password", "theirs")]);
    let refused = file.import(&ns, &[]).code(1);
    let said: Vec<&str> = refused.stderr.lines().collect();
    assert!(
        said[2].starts_with("secret/crm-main-database: Error from server (Conflict): "),
        "{}",
        refused.stderr
    );
    assert_eq!(
        said[said.len() - 2],
        "error: 3 of 10 objects are not applied: backup.gobackup.io/crm, database.gobackup.io/crm-main, secret/crm-main-database"
    );
    // The others are there, and no Backup without its Database.
    assert_eq!(objects(&ns).len(), 8);
    assert!(ns.get(&["backups.gobackup.io", "crm"]).is_none());
    let secret = || ns.get(&["secret", "crm-main-database"]).unwrap()["data"]["password"].clone();
    assert_eq!(secret(), "dGhlaXJz", "theirs");
    file.import(&ns, &["--force-conflicts"]).ok();
    assert_eq!((objects(&ns).len(), secret()), (10, "aHVudGVyMg==".into()));
}
