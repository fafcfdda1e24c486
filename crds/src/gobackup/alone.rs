//! What one object says by itself, wrong or without effect, in the sentences of the
//! condition ReferencesResolved. Admission tells it to whoever writes the object; whether what it
//! refers to is there is not looked at, because it may be written a moment later.

use crate::backup::{BackupBody, StorageRef};
use crate::database::DatabaseSpec;
use crate::legacy::{BackupModelSpec, PostgreSqlSpec, S3Spec};
use crate::storage::StorageSpec;
use crate::volumes::Ground;

use super::archive;
use super::databases::{self, Outcome};
use super::fields::{Merged, merge};
use super::resolve::{References, examine, plain_password};
use super::storages;
use super::words::{as_postgresql, as_s3};

/// What a Backup or CronBackup says.
pub fn backup(name: &str, namespace: &str, body: &BackupBody) -> Outcome {
    let (mut resolved, bad) = examine(name, namespace, body, &References::default());
    let merged = merge(body);
    let (path, schedule) = &merged.schedule;
    if let Some(cron) = merged.cron() {
        let path = format!("{path}.cron");
        let zone = schedule.time_zone.as_deref();
        resolved
            .warnings
            .extend(crate::validate::schedule_warning(&path, &cron, zone));
    }
    Outcome {
        problems: bad.problems,
        warnings: resolved.warnings,
    }
}

/// What a Database says. Whether `rdb_path` is mounted is known to the Backup alone.
pub fn database(name: &str, spec: &DatabaseSpec) -> Outcome {
    databases::plan(name, spec, &|_| true).1
}

/// What a PostgreSQL says.
pub fn postgresql(name: &str, spec: &PostgreSqlSpec) -> Outcome {
    let outcome = databases::plan(name, &spec.to_database(), &|_| true).1;
    outcome.map(|text| as_postgresql(text, name))
}

/// What a Storage says. One of type local without a volume is named, though a Backup may mount one.
pub fn storage(name: &str, spec: &StorageSpec) -> Outcome {
    storages::plan(name, spec, &StorageRef::default(), &|_| Ground::Container).1
}

/// What an S3 says.
pub fn s3(name: &str, spec: &S3Spec) -> Outcome {
    let nowhere = |_: &str| Ground::Container;
    let outcome = storages::plan(name, &spec.to_storage(), &StorageRef::default(), &nowhere).1;
    outcome.map(|text| as_s3(text, name))
}

/// What a BackupModel says.
pub fn model(name: &str, spec: &BackupModelSpec) -> Outcome {
    let merged = Merged::default().with_model(name, spec);
    let mut out = Outcome::default();
    if let Some((path, with)) = &merged.compress {
        archive::compress(path, Some(with), &mut out.problems);
    }
    if let Some((path, with)) = &merged.encode {
        archive::encrypt(path, Some(with), &mut out.problems);
    }
    out.warnings.extend(plain_password(&merged));
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn o7_a_schedule_of_seconds_is_warned_of() {
        let body = read(json!({ "spec": {
            "databaseRefs": [{ "name": "a" }], "storageRefs": [{ "name": "s" }],
            "schedule": { "cron": "@every 30s" },
        }}));
        let said = backup("nightly", "app", &body).said().concat();
        assert!(
            said.contains("spec.schedule.cron: \"@every 30s\" starts a run every 30s"),
            "{said}"
        );
    }

    #[test]
    fn each_kind_is_told_what_it_lacks_in_the_words_of_its_own_fields() {
        let empty_database = database("shop", &read(json!({"type": "mysql", "config": {}}))).said();
        assert_eq!(
            empty_database,
            [
                "Database shop: spec.config.host: is not set; name the server's host (localhost is the backup's own pod)",
                "Database shop: spec.config.database: is not set; name a database, or set all_databases: true",
            ]
        );
        let old = postgresql(
            "shop",
            &read(json!({"password": "x", "additionalOptions": "'"})),
        )
        .said();
        assert_eq!(
            old,
            [
                "PostgreSQL shop: spec.additionalOptions: has a ' that is never closed",
                "PostgreSQL shop: spec.host: is not set; name the server's host (localhost is the backup's own pod)",
                "PostgreSQL shop: spec.database: is not set; name a database, or write a Database of type postgresql with all_databases: true",
                "PostgreSQL shop: spec.password is plain text that anyone who can read this object sees; write a Database of type postgresql with password_ref",
            ]
        );
        let old = s3(
            "cloud",
            &read(json!({"secretAccessKey": "x", "bucket": "b"})),
        )
        .said();
        assert_eq!(
            old,
            [
                "S3 cloud: spec: has one of accessKeyID and secretAccessKey; set both, or neither to use the pod's own identity",
                "S3 cloud: spec.secretAccessKey is plain text that anyone who can read this object sees; write a Storage of type s3 with secret_access_key_ref",
            ]
        );
        let r2 = s3("cloud", &read(json!({"type": "r2", "bucket": "b"}))).said();
        assert_eq!(
            r2,
            ["S3 cloud: spec.endpoint: is not set, and this type needs it"]
        );
        let local = storage(
            "disk",
            &read(json!({"type": "local", "config": {"path": "/b"}})),
        )
        .said();
        assert_eq!(
            local,
            [
                "Storage disk: spec.volume: is not set: the archive would be written into the pod and deleted with it; set a volume on the Storage, or mount one over its path in the Backup's spec.job"
            ]
        );
        let model = model(
            "m",
            &read(json!({
                "compress_with": {"type": "rar"},
                "encodeWith": {"type": "openssl", "password": "x", "args": "-aes-512"},
            })),
        )
        .said();
        assert_eq!(model.len(), 3, "{model:?}");
        assert!(
            model[0]
                .starts_with("BackupModel m: spec.compressWith.type: unknown compression \"rar\"")
        );
        assert!(model[1].starts_with("BackupModel m: spec.encodeWith.args: \"-aes-512\""));
        assert!(model[2].starts_with("BackupModel m: spec.encodeWith.password is plain text"));
    }

    #[test]
    fn u10_a_host_is_a_name_or_an_address_alone_in_every_kind() {
        let database = |type_: &str, host: &str| {
            let spec = json!({"type": type_, "config": {"host": host, "database": "d"}});
            super::database("x", &read(spec)).problems
        };
        for type_ in ["mysql", "mariadb", "postgresql", "redis"] {
            for bad in ["http://db", "db:3306"] {
                let found = database(type_, bad);
                assert_eq!(found.len(), 1, "{type_} {found:?}");
                assert_eq!(found[0].path, "Database x: spec.config.host");
            }
            for good in ["db", "fd00::1", "10.0.0.1"] {
                assert_eq!(database(type_, good), [], "{type_} {good}");
            }
        }
        // What clients of these take, and people write.
        for (type_, host) in [
            ("postgresql", "/run/postgresql"),
            ("postgresql", "a,b"),
            ("mongodb", "rs0/a:27017,b:27017"),
            ("mssql", "tcp:db,1433"),
        ] {
            assert_eq!(database(type_, host), [], "{type_} {host}");
        }
        for type_ in ["ftp", "sftp"] {
            let spec = json!({"type": type_, "config": {"host": "sftp://nas", "path": "/b"}});
            let found = storage("x", &read(spec)).problems;
            assert_eq!(found[0].path, "Storage x: spec.config.host");
        }
    }

    #[test]
    fn a_backup_is_judged_by_itself_not_by_what_comes_after_it() {
        let body = read(json!({"spec": {
            "databaseRefs": [{"name": "later"}], "storageRefs": [{"name": "later"}],
            "backupModelRef": {"name": "later"},
        }}));
        assert!(backup("b", "app", &body).said().is_empty());
        let body = read(json!({"storageRefs": [{"keep": 3}], "persistence": {"enabled": true}}));
        assert_eq!(
            backup("b", "app", &body).said(),
            [
                "spec.databaseRefs: names no Database; add one as {name: …}",
                "storageRefs[0].name: is not set; name a Storage",
                "spec.persistence has no effect: what is kept is read from the storages",
            ]
        );
    }
}
