//! A MysqlBackup on every type of Storage, against a real server: stored, kept, listed, verified and
//! restored as on its own destinations.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod common;

use common::backup::{Backup, azure_backup, ftp_backup, ssh_backup, storage};
use common::s3::{list, moto};
use common::servers::webdav;
use common::stores::{azure, ftp, gcs, ssh};
use common::{Finished, MariaDb, Runner, fixture};
use crds::report::EndpointKind;
use serde_json::{Value, json};

/// The one storage of a Backup as destination of ns1/MysqlBackup/shop.
struct Place<'a> {
    backup: &'a Backup,
    options: Value,
}

impl Place<'_> {
    /// Acts with the server of `db`.
    fn act(&self, db: &MariaDb, run: &str, slot: Option<&str>, action: &str) -> Finished {
        let spec = json!({
            "action": action, "options": self.options, "retention": {"keepLast": 1},
            "destination": {"storage": self.backup.plan["storages"][0]},
        });
        let mut runner = Runner::new(db)
            .unset("SQLPATH")
            .set("DATABASES", "shop")
            .spec(run, slot, spec);
        for name in ["SSL_CERT_FILE", "AZURE_AUTHORITY_HOST"] {
            let value = self.backup.runner.env.get(name);
            runner
                .env
                .extend(value.map(|v| (name.to_owned(), v.clone())));
        }
        runner.run()
    }

    fn with(&self, options: Value) -> Self {
        Self {
            backup: self.backup,
            options,
        }
    }
}

/// Two slots of which one stays, a retry that dumps nothing twice, and a restore that is compared.
/// `names` lists what is stored below the storage's path.
fn comes_back(backup: &Backup, names: &dyn Fn() -> Vec<String>) {
    let db = fixture();
    let place = Place {
        backup,
        options: Value::Null,
    };
    let first = place.act(db, "shop-28950001", Some("2025-01-15T10:30:00Z"), "Backup");
    first.assert_good();
    let reached: Vec<_> = first
        .report
        .endpoints
        .iter()
        .map(|e| (e.kind, e.name.as_str(), e.reached))
        .collect();
    let name = backup.plan["storages"][0]["name"].as_str().unwrap();
    assert_eq!(reached, [(EndpointKind::Storage, name, true)]);
    let slot = Some("2025-01-16T10:30:00Z");
    let second = place.act(db, "shop-28951441", slot, "Backup");
    second.assert_good();
    assert_eq!(second.report.pruned, Some(1), "{:?}", second.report);
    let artefact = &second.report.artefacts[0];
    assert!(artefact.read_back);
    assert!(
        artefact
            .key
            .starts_with("ns1/MysqlBackup/shop/20250116T103000Z-"),
        "below the storage's path: {}",
        artefact.key
    );
    let twin = place.act(db, "shop-28951441", slot, "Backup");
    twin.assert_good();
    assert_eq!(twin.report.artefacts, second.report.artefacts);
    assert!(!twin.stdout.contains("\"Dumping\""), "{}", twin.stdout);

    let mut stored = names();
    stored.retain(|n| !n.rsplit('/').next().unwrap().starts_with('.'));
    stored.sort();
    let expected = [artefact.key.clone(), format!("{}.json", artefact.key)];
    assert_eq!(stored.len(), 2, "{stored:?}");
    for (name, key) in stored.iter().zip(&expected) {
        assert!(name.ends_with(key.as_str()), "{name} is not {key}");
    }

    let listed = place.act(db, "shop-l", None, "List");
    listed.assert_good();
    assert_eq!(listed.report.artefacts.len(), 1);
    let verified = place.act(db, "shop-v", None, "Verify");
    verified.assert_good();
    assert!(verified.report.verification.unwrap().passed);
    place.act(db, "shop-p", None, "Probe").assert_good();

    let other = MariaDb::start();
    other.sql("create user full@'%' identified by 'S3cr3t-marker'; grant all on *.* to full@'%';");
    let place = place.with(json!({"restore": {}}));
    let restored = place.act(&other, "restore-1", None, "Restore");
    restored.assert_good();
    assert_eq!(restored.report.reason, "Restored");
    let rows = "select id, hex(txt), hex(b), total, ts from shop.t order by id";
    assert_eq!(other.sql(rows), db.sql(rows));
    // One table by its ranges, which every one of these servers gives.
    other.sql("drop database shop");
    let place = place.with(json!({"restore": {"tables": ["shop.t"], "withoutForeignKeys": true}}));
    let part = place.act(&other, "restore-2", None, "Restore");
    part.assert_good();
    let message = &part.report.message;
    assert!(
        message.contains("(shop.t)") && !message.contains("no parts"),
        "{message}"
    );
    // So small a one is read from end to end, its table of frames twice.
    assert!(
        part.report
            .read_bytes
            .is_some_and(|n| n <= 2 * artefact.size)
    );
    assert_eq!(other.sql(rows), db.sql(rows));
}

/// Files below a directory.
fn files(root: &std::path::Path) -> Vec<String> {
    let mut found = vec![];
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn webdav_and_s3() {
    let backup = Backup::new().with_dav("mysql/dumps", 0);
    comes_back(&backup, &|| files(&webdav().1.join("mysql/dumps")));
    let backup = Backup::new().with_bucket("mysql/dumps", 0);
    comes_back(&backup, &|| list(moto(), "mysql/dumps/"));
}

#[test]
fn ftp_and_sftp() {
    let backup = ftp_backup(ftp().port, "/mysql/dumps", json!({}));
    comes_back(&backup, &|| files(&ftp().root.join("mysql/dumps")));
    let root = ssh().root.join("mysql/dumps");
    let backup = ssh_backup(root.to_str().unwrap(), json!({}));
    comes_back(&backup, &|| files(&root));
}

#[test]
fn gcs_and_azure() {
    let mut backup = Backup::new();
    let fields = json!({"bucket": "backups", "endpoint": gcs().url});
    backup.add("storages", storage("cloud", "gcs", "mysql/dumps", fields));
    let root = gcs().root.join("backups/mysql/dumps");
    comes_back(&backup, &|| {
        let mut names = files(&root);
        names.retain(|n| !n.ends_with(".metadata"));
        names
    });
    let backup = azure_backup("mysql/dumps", json!({}));
    comes_back(&backup, &|| azure().list("mysql/dumps"));
}

#[test]
fn a_directory_of_the_pod_is_one_too() {
    let backup = Backup::new().with_disk(0);
    let disk = backup.disk();
    // The file system of a test is no volume of a pod, but it is none of a container either.
    comes_back(&backup, &|| files(&disk));
}

/// Its name, cause and remedy, and the Storage is told as not reached.
#[test]
fn a_storage_that_refuses_is_named() {
    let backup = ftp_backup(ftp().port, "x", json!({}));
    backup.secret("ftp", "wrong");
    let place = Place {
        backup: &backup,
        options: Value::Null,
    };
    let failed = place.act(fixture(), "shop-28950002", None, "Backup");
    failed.assert_failed(
        4,
        "PermissionDenied",
        &["Storage site", "check username and password"],
    );
    let endpoint = &failed.report.endpoints[0];
    assert!(!endpoint.reached && endpoint.reason == "PermissionDenied");
}
