//! `kubectl backup import --apply` on the real cluster: again is nothing new, what others have set
//! is left to them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::PathBuf;

use e2e::backup_kind::SEAL;
use e2e::servers::{BUCKET, REDIS_PASSWORD, filter, host, servers};
use e2e::wait::unix_seconds;
use e2e::{Namespace, cluster};
use serde_json::{Value, json};

/// A gobackup.yml, gone with the test.
struct File(PathBuf);

impl File {
    /// Two models that are due on no day soon.
    fn new(name: &str, password: &str) -> Self {
        let model = |name: &str| {
            format!(
                "  {name}:
    schedule: {{ cron: '0 0 29 2 *' }}
    databases: {{ main: {{ type: mysql, host: db, database: d, password: {password} }} }}
    storages: {{ far: {{ type: s3, bucket: b, region: eu, access_key_id: id, secret_access_key: k3y }} }}
"
            )
        };
        Self::of(name, &format!("models:\n{}{}", model("crm"), model("shop")))
    }

    fn of(name: &str, text: &str) -> Self {
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

/// What a gobackup began goes on: its names in the archive, the command that opens it, its own list under `keep`.
#[test]
fn g6_a_run_after_the_import_goes_on_where_gobackup_left_off() {
    let servers = servers();
    servers.redis("set hello 'wörld'");
    let path = format!("imported/{}", unix_seconds());
    let (cache, s3) = (host("redis"), host("s3"));
    let seal = SEAL.replace('$', "${DOLLAR}");
    let redis = REDIS_PASSWORD.replace('$', "${DOLLAR}");
    let text = format!(
        "models:
  my_app:
    schedule: {{ cron: '0 0 29 2 *' }}
    compress_with: {{ type: tgz }}
    encrypt_with: {{ type: openssl, password: '{seal}', args: -md sha256 }}
    databases:
      my_cache: {{ type: redis, mode: sync, host: {cache}, password: '{redis}' }}
    storages:
      store_1:
        type: s3
        keep: 2
        bucket: {BUCKET}
        path: {path}
        endpoint: http://{s3}:5000
        access_key_id: AKIDEXAMPLE
        secret_access_key: S3cr3t-marker-of-the-store
"
    );
    let old = [
        "2024.01.01.00.00.00.tar.gz.enc",
        "2024.01.02.00.00.00.tar.gz.enc",
    ];
    for name in old {
        servers.put(&format!("{path}/{name}"), "old");
    }
    let list = json!([
        {"file_key": old[0], "created_at": "2024-01-01T00:00:00Z"},
        {"file_key": old[1], "created_at": "2024-01-02T00:00:00Z"},
    ]);
    servers.put(
        &format!("{path}/.gobackup-state/my_app_store_1.json"),
        &list.to_string(),
    );
    let ns = cluster().restricted_namespace("e2e-import-run");
    let file = File::of("e2e-import-run", &text);
    let variables = File::of("e2e-import-run-env", "DOLLAR=$\n");
    let env = variables.0.to_str().unwrap();
    file.import(&ns, &["--adopt-state", "--env-file", env]).ok();
    ns.backup(&["run-now", "backup/my-app", "--wait", "--timeout", "3m"])
        .ok();
    let run = ns.get(&["backups.gobackup.io", "my-app"]).unwrap()["status"]["runs"][0].clone();
    assert_eq!(run["result"], "Succeeded", "{run}");
    let key = run["artefacts"][0]["key"].as_str().unwrap();
    assert_eq!(
        servers.objects(&path),
        [format!("{path}/{}", old[1]), key.to_owned()],
        "keep: 2, with gobackup's own"
    );
    let pass = format!("pass:{SEAL}");
    let tar = filter(
        "openssl",
        &["enc", "-d", "-aes-256-cbc", "-md", "sha256", "-pass", &pass],
        &servers.object(key),
    );
    let dump = filter("tar", &["-xzO", "my_app/redis/my_cache/dump.rdb"], &tar);
    assert_eq!(
        servers.redis_of(&dump, "get hello"),
        servers.redis("get hello")
    );
}
