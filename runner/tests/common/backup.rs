//! The runner with the plan of a gobackup.io Backup.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::peers::peer;
use super::s3::{moto, python};
use super::servers::{DAV_PASSWORD, POSTGRES_PASSWORD, REDIS_PASSWORD, postgres, redis, webdav};
use super::stores::{FTP_PASSWORD, azure, ssh};
use super::{Finished, Runner, fixture};

/// The stand-in for gobackup.
pub const STAND_IN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/testbed/images/gobackup/gobackup"
);

/// A run of the Backup ns1/nightly with files for its secrets.
pub struct Backup {
    pub runner: Runner,
    pub plan: Value,
    pub uid: &'static str,
    /// File with the age identity.
    pub identity: Option<String>,
    /// gobackup dumps, packs and stores.
    pub gobackup: bool,
    /// What is said of gobackup's own list.
    pub adopt_state: Option<bool>,
}

impl Backup {
    pub fn new() -> Self {
        let runner = Runner::new(fixture())
            .unset("SQLPATH")
            .unset("HOST")
            .unset("PORT")
            .unset("USERNAME")
            .unset("PASSWORD");
        let mut backup = Self {
            runner,
            plan: json!({"model": "nightly", "databases": [], "storages": [], "compress": {"codec": "gzip"}}),
            uid: "uid-1",
            identity: None,
            gobackup: false,
            adopt_state: None,
        };
        std::fs::create_dir(backup.dir().join("work")).unwrap();
        let redis = json!({"name": "cache", "engine": "redis", "host": "127.0.0.1", "port": redis(), "password": backup.secret("redis", REDIS_PASSWORD)});
        backup.add("databases", redis);
        backup
    }

    pub fn dir(&self) -> PathBuf {
        self.runner.out.path().to_owned()
    }

    /// Runs by gobackup with the host's clients: by the program that the variable `GOBACKUP` names, else by the stand-in.
    pub fn by_gobackup(self) -> Self {
        match std::env::var("GOBACKUP") {
            Ok(real) => self.by(&real),
            Err(_) => self.by_stand_in(),
        }
    }

    /// Runs by the stand-in for gobackup, which can be told to fail. It has a YAML reader and an S3 client of its own: those of
    /// the S3 server's installation.
    pub fn by_stand_in(self) -> Self {
        moto();
        self.by(&format!("{} {STAND_IN}", python().display()))
    }

    /// Runs by gobackup itself.
    pub fn by_real(self) -> Self {
        let program = peer("gobackup").join("gobackup");
        self.by(&program.display().to_string())
    }

    fn by(mut self, program: &str) -> Self {
        let bin = self.dir().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let script = format!("#!/bin/sh\nexec {program} \"$@\"\n");
        std::fs::write(bin.join("gobackup"), script).unwrap();
        sh("chmod +x $1", &bin.join("gobackup"));
        let usual = "/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        let path = self.runner.env.remove("PATH").unwrap_or(usual);
        let path = format!("{}:{path}", bin.display());
        self.runner.env.insert("PATH".into(), path);
        self.gobackup = true;
        self
    }

    /// Path of a file with this secret; a closing line end, as editors leave it, is no part of it.
    pub fn secret(&self, name: &str, value: &str) -> String {
        let path = self.dir().join(name);
        std::fs::write(&path, format!("{value}\n")).unwrap();
        path.display().to_string()
    }

    pub fn add(&mut self, list: &str, item: Value) {
        self.plan[list].as_array_mut().unwrap().push(item);
    }

    pub fn with_postgres(mut self) -> Self {
        let database = json!({
            "name": "maindb", "engine": "postgresql", "host": "127.0.0.1", "port": postgres(), "database": "app",
            "username": self.secret("pg-user", "postgres"), "password": self.secret("pg", POSTGRES_PASSWORD),
            "excludeTables": ["skipme"], "args": ["--no-owner"],
        });
        self.add("databases", database);
        self
    }

    pub fn with_mariadb(mut self) -> Self {
        let database = json!({
            "name": "shop", "engine": "mariadb", "host": "127.0.0.1", "port": fixture().port, "database": "shop",
            "username": self.secret("my-user", "full"), "password": self.secret("my", "S3cr3t-marker"),
        });
        self.add("databases", database);
        self
    }

    pub fn disk(&self) -> PathBuf {
        self.dir().join("disk")
    }

    pub fn with_disk(mut self, keep: u32) -> Self {
        std::fs::create_dir_all(self.disk()).unwrap();
        let storage = json!({"name": "disk", "service": "local", "keep": keep, "timeout": 60, "path": self.disk()});
        self.add("storages", storage);
        self
    }

    pub fn with_bucket(mut self, prefix: &str, keep: u32) -> Self {
        let storage = json!({
            "name": "bucket", "service": "s3", "keep": keep, "timeout": 60, "path": prefix, "provider": "s3",
            "bucket": "backups", "region": "us-east-1", "endpoint": moto(), "forcePathStyle": true, "maxRetries": 3,
            "accessKeyId": self.secret("id", "AKIDEXAMPLE"), "secretAccessKey": self.secret("key", "S3cr3t-marker-of-the-store"),
        });
        self.add("storages", storage);
        self
    }

    pub fn with_dav(mut self, path: &str, keep: u32) -> Self {
        let storage = json!({
            "name": "dav", "service": "webdav", "keep": keep, "timeout": 60, "path": path, "root": webdav().0,
            "username": self.secret("dav-user", "dav"), "password": self.secret("dav", DAV_PASSWORD),
        });
        self.add("storages", storage);
        self
    }

    pub fn run(&mut self, run: &str) -> Finished {
        self.act(run, "Backup", json!({}))
    }

    pub fn act(&mut self, run: &str, action: &str, options: Value) -> Finished {
        self.act_with(run, action, options, json!({}))
    }

    /// Restores into this server.
    pub fn restore(&mut self, source: Value, options: Value) -> Finished {
        let options = json!({"restore": options});
        self.act_with("r-1", "Restore", options, json!({"source": source}))
    }

    /// What `download send` writes with these words: its exit code, header line and the rest, and
    /// what it says.
    pub fn download(&mut self, words: &[&str]) -> (i32, Value, Vec<u8>, String) {
        let spec = self.spec("d-1", "List", json!({}), json!({}));
        self.runner.env.insert("BACKUP_SPEC".into(), spec);
        let output = self
            .runner
            .command()
            .args(["download", "send"])
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let end = output.stdout.iter().position(|b| *b == b'\n');
        let (line, rest) = output.stdout.split_at(end.map_or(0, |e| e + 1));
        let header = serde_json::from_slice(line).unwrap_or_default();
        (output.status.code().unwrap(), header, rest.to_vec(), said)
    }

    fn act_with(&mut self, run: &str, action: &str, options: Value, more: Value) -> Finished {
        let spec = self.spec(run, action, options, more);
        self.runner.env.insert("BACKUP_SPEC".into(), spec);
        let done = self.runner.run();
        let left: Vec<_> = std::fs::read_dir(self.dir().join("work"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "the work directory holds {left:?}");
        done
    }

    /// The spec of a backup by this run.
    pub fn spec_of(&self, run: &str) -> String {
        self.spec_for(run, "Backup")
    }

    /// The spec of a run without options.
    pub fn spec_for(&self, run: &str, action: &str) -> String {
        self.spec(run, action, json!({}), json!({}))
    }

    fn spec(&self, run: &str, action: &str, options: Value, more: Value) -> String {
        let mut spec = json!({
            "version": 1, "action": action, "options": options,
            "object": {"kind": "Backup", "namespace": "ns1", "name": "nightly", "uid": self.uid},
            "run": {"name": run, "trigger": "Schedule"},
            "plan": self.plan, "gobackup": self.gobackup, "workdir": self.dir().join("work"),
        });
        if let Some(path) = &self.identity {
            spec["identityFile"] = json!(path);
        }
        if let Some(adopt) = self.adopt_state {
            spec["adoptState"] = json!(adopt);
        }
        let (spec_fields, more) = (spec.as_object_mut().unwrap(), more.as_object().unwrap());
        spec_fields.extend(more.clone());
        spec.to_string()
    }
}

/// A storage of a plan; `more` is merged into it.
pub fn storage(name: &str, service: &str, path: &str, more: Value) -> Value {
    let mut storage =
        json!({"name": name, "service": service, "keep": 2, "timeout": 30, "path": path});
    for (key, value) in more.as_object().unwrap() {
        storage[key] = value.clone();
    }
    storage
}

/// A Backup that stores on the FTP server of this port.
pub fn ftp_backup(port: u16, path: &str, more: Value) -> Backup {
    let mut backup = Backup::new();
    let user = backup.secret("ftp-user", "ftp");
    let password = backup.secret("ftp", FTP_PASSWORD);
    let mut fields =
        json!({"host": "127.0.0.1", "port": port, "username": user, "password": password});
    for (key, value) in more.as_object().unwrap() {
        fields[key] = value.clone();
    }
    backup.add("storages", storage("site", "ftp", path, fields));
    backup
}

/// A Backup that stores on the SSH server.
pub fn ssh_backup(path: &str, more: Value) -> Backup {
    let mut backup = Backup::new();
    let user = backup.secret("ssh-user", &ssh().user);
    let key = backup.secret("ssh-key", &ssh().key);
    let passphrase = backup.secret("ssh-pass", ssh().passphrase);
    let mut fields = json!({
        "host": "127.0.0.1", "port": ssh().port, "username": user, "privateKey": key, "passphrase": passphrase,
        "hostKey": ssh().host_key,
    });
    for (key, value) in more.as_object().unwrap() {
        fields[key] = value.clone();
    }
    backup.add("storages", storage("vault", "sftp", path, fields));
    backup
}

/// A Backup that stores in Azure's emulator.
pub fn azure_backup(path: &str, more: Value) -> Backup {
    let mut backup = Backup::new();
    let secret = backup.secret("azure", "S3cr3t-marker-of-the-application");
    let mut fields = json!({
        "account": "devstoreaccount1", "container": "backups", "endpoint": azure().endpoint,
        "tenantId": "t-1", "clientId": "c-1", "clientSecret": secret,
    });
    for (key, value) in more.as_object().unwrap() {
        fields[key] = value.clone();
    }
    backup.add("storages", storage("blobs", "azure", path, fields));
    backup
        .runner
        .env
        .insert("AZURE_AUTHORITY_HOST".into(), azure().authority.clone());
    backup.runner.env.insert(
        "SSL_CERT_FILE".into(),
        azure().certificate.display().to_string(),
    );
    backup
}

/// Archives in a directory: what is no dot file.
pub fn archives(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| !p.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    found.sort();
    found
}

/// Runs shell text with `$1` and gives what it prints.
pub fn sh(text: &str, argument: &Path) -> String {
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
