//! Runs of a gobackup.io Backup against real servers. `fault_NN` are the faults of the original
//! that lost data, and show that they do not happen here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::s3::{get, list, moto};
use common::servers::{
    DAV_PASSWORD, POSTGRES_PASSWORD, REDIS_PASSWORD, postgres, redis, redis_cli, restored,
    start_redis, webdav,
};
use common::{Finished, Runner, fixture};
use serde_json::{Value, json};

/// A run of the Backup ns1/nightly with files for its secrets.
struct Family {
    runner: Runner,
    plan: Value,
    uid: &'static str,
}

impl Family {
    fn new() -> Self {
        let runner = Runner::new(fixture())
            .unset("SQLPATH")
            .unset("HOST")
            .unset("PORT")
            .unset("USERNAME")
            .unset("PASSWORD");
        let mut family = Self {
            runner,
            plan: json!({"model": "nightly", "databases": [], "storages": [], "compress": {"codec": "gzip"}}),
            uid: "uid-1",
        };
        std::fs::create_dir(family.dir().join("work")).unwrap();
        let redis = json!({"name": "cache", "engine": "redis", "host": "127.0.0.1", "port": redis(), "password": family.secret("redis", REDIS_PASSWORD)});
        family.add("databases", redis);
        family
    }

    fn dir(&self) -> PathBuf {
        self.runner.out.path().to_owned()
    }

    /// Path of a file with this secret; a closing line end, as editors leave it, is no part of it.
    fn secret(&self, name: &str, value: &str) -> String {
        let path = self.dir().join(name);
        std::fs::write(&path, format!("{value}\n")).unwrap();
        path.display().to_string()
    }

    fn add(&mut self, list: &str, item: Value) {
        self.plan[list].as_array_mut().unwrap().push(item);
    }

    fn with_postgres(mut self) -> Self {
        let database = json!({
            "name": "maindb", "engine": "postgresql", "host": "127.0.0.1", "port": postgres(), "database": "app",
            "username": self.secret("pg-user", "postgres"), "password": self.secret("pg", POSTGRES_PASSWORD),
            "excludeTables": ["skipme"], "args": ["--no-owner"],
        });
        self.add("databases", database);
        self
    }

    fn with_mariadb(mut self) -> Self {
        let database = json!({
            "name": "shop", "engine": "mariadb", "host": "127.0.0.1", "port": fixture().port, "database": "shop",
            "username": self.secret("my-user", "full"), "password": self.secret("my", "S3cr3t-marker"),
        });
        self.add("databases", database);
        self
    }

    fn disk(&self) -> PathBuf {
        self.dir().join("disk")
    }

    fn with_disk(mut self, keep: u32) -> Self {
        std::fs::create_dir_all(self.disk()).unwrap();
        let storage = json!({"name": "disk", "service": "local", "keep": keep, "timeout": 60, "path": self.disk()});
        self.add("storages", storage);
        self
    }

    fn with_bucket(mut self, prefix: &str, keep: u32) -> Self {
        let storage = json!({
            "name": "bucket", "service": "s3", "keep": keep, "timeout": 60, "path": prefix, "family": "s3",
            "bucket": "backups", "region": "us-east-1", "endpoint": moto(), "forcePathStyle": true, "maxRetries": 3,
            "accessKeyId": self.secret("id", "AKIDEXAMPLE"), "secretAccessKey": self.secret("key", "S3cr3t-marker-of-the-store"),
        });
        self.add("storages", storage);
        self
    }

    fn with_dav(mut self, path: &str, keep: u32) -> Self {
        let storage = json!({
            "name": "dav", "service": "webdav", "keep": keep, "timeout": 60, "path": path, "root": webdav().0,
            "username": self.secret("dav-user", "dav"), "password": self.secret("dav", DAV_PASSWORD),
        });
        self.add("storages", storage);
        self
    }

    fn run(&mut self, run: &str) -> Finished {
        let spec = json!({
            "version": 1, "action": "Backup",
            "object": {"kind": "Backup", "namespace": "ns1", "name": "nightly", "uid": self.uid},
            "run": {"name": run, "trigger": "Schedule"},
            "plan": self.plan, "workdir": self.dir().join("work"),
        });
        self.runner
            .env
            .insert("BACKUP_SPEC".into(), spec.to_string());
        let done = self.runner.run();
        let left: Vec<_> = std::fs::read_dir(self.dir().join("work"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "the work directory holds {left:?}");
        done
    }
}

/// Archives in a directory: what is no dot file.
fn archives(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| !p.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    found.sort();
    found
}

/// Runs shell text with `$1` and gives what it prints.
fn sh(text: &str, argument: &Path) -> String {
    let output = Command::new("bash")
        .args(["-eo", "pipefail", "-c", text, "sh"])
        .arg(argument)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{text}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

const ROWS: &str = "select count(*), md5(string_agg(id || v, ',' order by id)) from t";

#[test]
fn three_databases_reach_two_storages_and_are_restored_equal() {
    let mut family = Family::new()
        .with_postgres()
        .with_mariadb()
        .with_bucket("three", 0)
        .with_dav("site/three", 0);
    family.plan["encrypt"] = json!({
        "type": "openssl", "password": family.secret("enc", "open sesame"), "bits": 256, "iterations": 10_000,
        "digest": "sha256", "base64": false,
    });
    let done = family.run("nightly-28950870");
    done.assert_good();
    let [bucket, dav] = &done.report.artefacts[..] else {
        panic!("{:?}", done.report)
    };
    assert!(bucket.read_back && dav.read_back);
    assert_eq!(bucket.sha256, dav.sha256);
    let file = family.dir().join("from-bucket");
    std::fs::write(&file, get(moto(), &bucket.key)).unwrap();
    let stored = webdav().1.join(&dav.key);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        std::fs::read(stored).unwrap()
    );
    assert!(sh("sha256sum < $1", &file).starts_with(&bucket.sha256));

    let open = "cd $(dirname $1) && openssl enc -d -aes-256-cbc -pbkdf2 -pass 'pass:open sesame' -in $1 | tar xzv";
    let listed = sh(open, &file);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        [
            "nightly/",
            "nightly/redis/",
            "nightly/redis/cache/",
            "nightly/redis/cache/dump.rdb",
            "nightly/postgresql/",
            "nightly/postgresql/maindb/",
            "nightly/postgresql/maindb/app.sql",
            "nightly/mariadb/",
            "nightly/mariadb/shop/",
            "nightly/mariadb/shop/shop.sql",
        ]
    );
    let root = family.dir().join("nightly");
    let dump = root.join("postgresql/maindb/app.sql");
    assert_eq!(
        restored(postgres(), &dump, ROWS),
        common::servers::psql(postgres(), "app", ROWS)
    );
    assert_eq!(
        common::servers::psql(postgres(), "restored", "select to_regclass('skipme')"),
        ""
    );
    let copy = start_redis(&root.join("redis/cache"), None);
    assert_eq!(redis_cli(copy, None, &["get", "hello"]), "world");
    let sql = std::fs::read_to_string(root.join("mariadb/shop/shop.sql")).unwrap();
    // As gobackup dumps it: it loads into a database of any name.
    assert!(!sql.contains("CREATE DATABASE") && !sql.contains("\nUSE "));
}

#[test]
fn fault_01_keep_is_kept_on_every_storage() {
    let mut family = Family::new()
        .with_disk(2)
        .with_bucket("kept", 2)
        .with_dav("site/kept", 2);
    for n in 0..4 {
        family.run(&format!("nightly-2895087{n}")).assert_good();
    }
    let good = family.run("nightly-28950879");
    good.assert_good();
    assert_eq!(archives(&family.disk()).len(), 2);
    assert_eq!(archives(&webdav().1.join("site/kept")).len(), 2);
    let in_bucket: Vec<String> = list(moto(), "kept/")
        .into_iter()
        .filter(|k| !k.contains("/."))
        .collect();
    assert_eq!(in_bucket.len(), 2);
    let newest = &good.report.artefacts[0].key;
    assert!(archives(&family.disk()).iter().any(|p| p.ends_with(newest)));
}

#[test]
fn fault_01_what_gobackup_stored_is_pruned_as_its_own_and_strangers_stay() {
    let mut family = Family::new().with_disk(2);
    let disk = family.disk();
    let old = ["2024.01.01.00.00.00.tar.gz", "2024.01.02.00.00.00.tar.gz"];
    for name in old.iter().chain(&["stranger.tar.gz"]) {
        std::fs::write(disk.join(name), "x").unwrap();
    }
    let state = disk.join(".gobackup-state");
    std::fs::create_dir(&state).unwrap();
    let entries = json!([
        {"file_key": old[0], "created_at": "2024-01-01T00:00:00Z"},
        {"file_key": old[1], "created_at": "2024-01-02T00:00:00Z"},
        {"file_key": "../../etc/passwd", "created_at": "2020-01-02T00:00:00Z"},
    ]);
    std::fs::write(state.join("nightly_disk.json"), entries.to_string()).unwrap();
    family.run("nightly-28950870").assert_good();
    let names: Vec<String> = archives(&disk)
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!names.contains(&old[0].to_owned()), "{names:?}");
    assert!(
        names.contains(&old[1].to_owned()) && names.contains(&"stranger.tar.gz".to_owned()),
        "{names:?}"
    );
    let left: Value =
        serde_json::from_slice(&std::fs::read(state.join("nightly_disk.json")).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 2);
}

#[test]
fn fault_04_encryption_is_real() {
    let mut family = Family::new().with_disk(0);
    family.plan["encrypt"] = json!({
        "type": "openssl", "password": family.secret("enc", "open $sesame"), "bits": 128, "iterations": 20_000,
        "digest": "sha512", "base64": true,
    });
    family.run("nightly-28950870").assert_good();
    let file = archives(&family.disk()).remove(0);
    assert!(file.to_string_lossy().ends_with(".tar.gz.enc"));
    let listed = sh(
        "openssl enc -d -aes-128-cbc -pbkdf2 -iter 20000 -md sha512 -a -pass 'pass:open $sesame' -in $1 | tar tz",
        &file,
    );
    assert!(listed.contains("nightly/redis/cache/dump.rdb"), "{listed}");
}

#[test]
fn fault_05_every_codec_is_what_its_name_says() {
    for (codec, extension, open) in [
        ("tar", ".tar", "cat"),
        ("gzip", ".tar.gz", "gzip -dc"),
        ("bzip2", ".tar.bz2", "bzip2 -dc"),
        ("xz", ".tar.xz", "xz -dc --format=xz"),
        ("lzma", ".tar.lzma", "xz -dc --format=lzma"),
        ("zstd", ".tar.zst", "zstd -dc"),
    ] {
        let mut family = Family::new().with_disk(0);
        family.plan["compress"] = json!({"codec": codec});
        family.run("nightly-28950870").assert_good();
        let file = archives(&family.disk()).remove(0);
        assert!(
            file.to_string_lossy().ends_with(extension),
            "{}",
            file.display()
        );
        let listed = sh(&format!("{open} < $1 | tar t"), &file);
        assert!(
            listed.contains("nightly/redis/cache/dump.rdb"),
            "{codec}: {listed}"
        );
    }
}

#[test]
fn fault_06_two_backups_of_one_second_do_not_overwrite_each_other() {
    let mut family = Family::new().with_disk(0);
    let now = chrono::Utc::now();
    let mut others = vec![];
    for second in 0..120 {
        let at = now + chrono::Duration::seconds(second);
        let path = family
            .disk()
            .join(format!("{}.tar.gz", at.format("%Y.%m.%d.%H.%M.%S")));
        std::fs::write(&path, "another Backup's").unwrap();
        others.push(path);
    }
    let done = family.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report.artefacts[0]
            .key
            .ends_with(".ns1.nightly.tar.gz"),
        "{:?}",
        done.report.artefacts
    );
    for other in others {
        assert_eq!(std::fs::read_to_string(other).unwrap(), "another Backup's");
    }
}

#[test]
fn fault_03_a_dump_that_fails_stores_nothing() {
    let mut family = Family::new().with_postgres().with_disk(0);
    family.secret("pg", "wrong");
    let done = family.run("nightly-28950870");
    done.assert_failed(
        3,
        "AccessDenied",
        &["Database maindb", "check the user name and the password"],
    );
    assert!(archives(&family.disk()).is_empty());
    let mut family = Family::new().with_postgres().with_disk(0);
    family.plan["databases"][1]["database"] = json!("nosuch");
    family.run("nightly-28950870").assert_failed(
        3,
        "NotFound",
        &["nosuch", "check config.database"],
    );
    let mut family = Family::new().with_disk(0);
    family.secret("redis", "wrong");
    family
        .run("nightly-28950870")
        .assert_failed(3, "AccessDenied", &["Database cache"]);
    assert!(archives(&family.disk()).is_empty());
}

#[test]
fn a_storage_that_fails_fails_the_run_and_the_others_have_the_archive() {
    let mut family = Family::new().with_dav("site/lost", 0).with_disk(0);
    family.secret("dav", "wrong");
    let done = family.run("nightly-28950870");
    done.assert_failed(
        4,
        "PermissionDenied",
        &["Storage dav", "check username and password"],
    );
    assert_eq!(archives(&family.disk()).len(), 1);
    assert_eq!(
        done.report.artefacts.len(),
        1,
        "what was stored is told: {:?}",
        done.report
    );
}

#[test]
fn scripts_that_fail_show_and_a_databases_own_fails_the_run() {
    let mut family = Family::new().with_disk(0);
    let mark = family.dir().join("after");
    family.plan["beforeScript"] = json!("echo \"$((20 + 22)) $HOME\"; exit 3");
    family.plan["afterScript"] = json!(format!("touch {}", mark.display()));
    let done = family.run("nightly-28950870");
    done.assert_good();
    assert!(
        done.report
            .warnings
            .iter()
            .any(|w| w.contains("beforeScript") && w.contains("exit status 3")),
        "{:?}",
        done.report.warnings
    );
    assert!(done.stdout.contains("42 "));
    assert!(mark.exists());
    std::fs::remove_file(&mark).unwrap();
    family.plan["databases"][0]["beforeScript"] = json!("echo no lock >&2; exit 1");
    family
        .run("nightly-28950871")
        .assert_failed(3, "ScriptFailed", &["Database cache", "no lock"]);
    assert!(mark.exists(), "the closing script runs after a failure too");
}
