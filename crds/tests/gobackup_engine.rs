//! What gobackup can't do, or does so that nobody could check it, is refused before a run starts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::backup::{BackupBody, RunEngine};
use crds::gobackup::engine;
use crds::gobackup::resolve::Unresolved;
use crds::gobackup::{ObjectKey, References, Resolved, resolve};
use serde_json::{Value, json};

const S3: &str =
    "{type: s3, config: {bucket: b, access_key_id: i, secret_access_key_ref: {name: s, key: k}}}";
const PG: &str =
    "{type: postgresql, config: {host: h, database: d, password_ref: {name: s, key: p}}}";

fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_yaml::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn key(kind: &'static str) -> ObjectKey {
    ObjectKey {
        group: "gobackup.io",
        kind,
        name: "x".into(),
    }
}

fn resolved(database: &str, storage: &str, more: Value) -> Result<Resolved, Unresolved> {
    let mut spec = json!({"databaseRefs": [{"name": "x"}], "storageRefs": [{"name": "x"}], "job": {"engine": "gobackup"}});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let body: BackupBody = serde_json::from_value(json!({"spec": spec})).unwrap();
    let references = References {
        databases: [(key("Database"), yaml(database))].into(),
        storages: [(key("Storage"), yaml(storage))].into(),
        ..References::default()
    };
    resolve("nightly", "app", &body, &references)
}

#[test]
fn what_gobackup_can_do_resolves_for_it_too() {
    let password = json!({"type": "openssl", "passwordSecretKeyRef": {"name": "s", "key": "e"}});
    for (database, storage, more) in [
        (
            PG,
            S3,
            json!({"compressWith": {"type": "zst", "level": 9}, "encodeWith": password}),
        ),
        (
            "{type: redis, config: {host: h}}",
            "{type: webdav, config: {root: 'http://h'}}",
            json!({}),
        ),
        (
            "{type: influxdb, config: {host: h, token: t}}",
            "{type: gcs, config: {bucket: b}}",
            json!({}),
        ),
        (
            "{type: mongodb, config: {host: h}}",
            "{type: ftp, config: {host: h, username: u, password: p}}",
            json!({}),
        ),
        (
            "{type: etcd, config: {endpoints: ['http://h:2379']}}",
            "{type: azure, config: {account: a, client_secret: c, tenant_id: t, client_id: i}}",
            json!({}),
        ),
    ] {
        let found = resolved(database, storage, more);
        assert!(found.is_ok(), "{database} {storage}: {found:?}");
        // Its image has the clients.
        let warnings = found.unwrap().warnings.join("; ");
        assert!(!warnings.contains("runner's image"), "{warnings}");
    }
}

#[test]
fn what_it_can_not_is_refused_with_the_field_and_the_remedy() {
    let age = json!({"type": "age", "recipients": ["age1x"]});
    let rows = [
        (
            PG,
            S3,
            json!({"compressWith": {"type": "lzop"}}),
            "spec.compressWith.type",
        ),
        (PG, S3, json!({"encodeWith": age}), "spec.encodeWith.type"),
        (
            PG,
            S3,
            json!({"splitWith": {"chunkSize": "1G"}}),
            "spec.splitWith",
        ),
        (
            "{type: mssql, config: {host: h, database: d}}",
            S3,
            json!({}),
            "Database x: spec.type",
        ),
        (
            "{type: mysql, config: {host: h, database: d, args: \"--where='a = 1'\"}}",
            S3,
            json!({}),
            "Database x: spec.config.args",
        ),
        (
            "{type: postgresql, config: {host: h, database: my db}}",
            S3,
            json!({}),
            "Database x: spec.config.database",
        ),
        (
            "{type: etcd, config: {endpoints: ['https://h:2379']}}",
            S3,
            json!({}),
            "Database x: spec.config.endpoints",
        ),
        (
            PG,
            "{type: s3, config: {bucket: b}}",
            json!({}),
            "Storage x: spec.config.access_key_id_ref",
        ),
        (
            PG,
            "{type: gcs, config: {bucket: b, endpoint: 'http://g'}}",
            json!({}),
            "Storage x: spec.config.endpoint",
        ),
        (
            PG,
            "{type: azure, config: {account: a}}",
            json!({}),
            "Storage x: spec.config.client_secret_ref",
        ),
        (
            PG,
            "{type: ftp, config: {host: h}}",
            json!({}),
            "Storage x: spec.config.username",
        ),
        (
            PG,
            "{type: sftp, config: {host: h, host_key: 'SHA256:x'}}",
            json!({}),
            "Storage x: spec.config.host_key",
        ),
    ];
    for (database, storage, more, path) in rows {
        let native = {
            let mut more = more.clone();
            more["job"] = json!({});
            resolved(database, storage, more)
        };
        assert!(native.is_ok(), "{path}: {native:?}");
        let found = resolved(database, storage, more).unwrap_err();
        assert_eq!(found.missing, [], "{path}");
        let paths: Vec<&str> = found.problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(paths, [path]);
        assert!(
            found.message().contains("spec.job.engine: native"),
            "{}",
            found.message()
        );
    }
}

#[test]
fn what_has_another_effect_is_a_warning() {
    for (database, storage, word) in [
        (
            "{type: mariadb, config: {host: h, database: d}}",
            S3,
            "nightly/mysql",
        ),
        (
            PG,
            "{type: scp, config: {host: h, password: p}}",
            "does not check the host key",
        ),
        (
            PG,
            "{type: ftp, config: {host: h, path: /a/b, username: u, password: p}}",
            "a run fails where /a/b is not there",
        ),
    ] {
        let warnings = resolved(database, storage, json!({})).unwrap().warnings;
        assert!(warnings.join("; ").contains(word), "{warnings:?}");
    }
    let top = "{type: ftp, config: {host: h, path: /, username: u, password: p}}";
    let warnings = resolved(PG, top, json!({})).unwrap().warnings.join(" ");
    assert!(!warnings.contains("directory"), "{warnings}");
}

#[test]
fn the_operators_engine_counts_where_a_backup_names_none() {
    let body = |job: Value| -> BackupBody {
        serde_json::from_value(json!({"spec": {"job": job}})).unwrap()
    };
    for (job, default, expected) in [
        (json!({}), RunEngine::Native, RunEngine::Native),
        (json!({}), RunEngine::Gobackup, RunEngine::Gobackup),
        (
            json!({"engine": "native"}),
            RunEngine::Gobackup,
            RunEngine::Native,
        ),
        (
            json!({"engine": "gobackup"}),
            RunEngine::Native,
            RunEngine::Gobackup,
        ),
    ] {
        let mut body = body(job.clone());
        engine::with_default(&mut body, default);
        assert_eq!(engine::asked(&body), expected, "{job}");
    }
    let mut old = BackupBody::default();
    engine::with_default(&mut old, RunEngine::Native);
    assert_eq!(
        old,
        BackupBody::default(),
        "nothing is added to an old object"
    );
}
