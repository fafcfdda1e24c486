//! The faults of gobackup-operator that can be seen in a plan, by their number in its list of
//! bugs: what lost data there without a word is done, or said, here. Those that need a running
//! server are in runner/tests/backup.rs, those of the controller in operator/src/backup/tests.rs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::backup::{BackupBody, StorageRef};
use crds::database::DatabaseSpec;
use crds::gobackup::resolve::Unresolved;
use crds::gobackup::{ObjectKey, References, Resolved, databases, resolve, storages};
use crds::plan::{Codec, Credential, DatabaseType, Place, Storage};
use crds::storage::StorageSpec;

fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_yaml::from_str(text).unwrap()
}

/// A Backup with these fields of one database and one bucket.
fn backup(fields: &str) -> Result<Resolved, Unresolved> {
    let body: BackupBody = yaml(&format!(
        "spec: {{databaseRefs: [{{name: d}}], storageRefs: [{{name: s}}], {fields}}}"
    ));
    let key = |kind, name: &str| ObjectKey {
        group: "gobackup.io",
        kind,
        name: name.into(),
    };
    let mut references = References::default();
    references.databases.insert(
        key("Database", "d"),
        yaml("{type: mysql, config: {host: h, database: x}}"),
    );
    references.storages.insert(
        key("Storage", "s"),
        yaml("{type: webdav, config: {root: 'http://dav'}}"),
    );
    resolve("b", "app", &body, &references)
}

fn storage(text: &str) -> (Option<Storage<Credential>>, databases::Outcome) {
    let spec: StorageSpec = yaml(text);
    storages::plan("s", &spec, &StorageRef::default(), &|_| {
        crds::volumes::Ground::Container
    })
}

fn database(text: &str) -> (Option<crds::plan::Database<Credential>>, databases::Outcome) {
    let spec: DatabaseSpec = yaml(text);
    databases::plan("d", &spec, &|_| false)
}

#[test]
fn fault_02_a_reference_without_type_means_the_storages_own_type() {
    let plan = backup("").unwrap().plan;
    assert!(matches!(plan.storages[0].place, Place::Webdav { .. }));
}

#[test]
fn fault_03_influxdb_is_influxdb_2_and_an_unknown_type_is_no_empty_archive() {
    let (plan, _) = database("{type: influxdb, config: {host: h, token: t}}");
    assert_eq!(plan.unwrap().database_type, DatabaseType::Influxdb2);
    assert!(database("{type: oracle, config: {host: h}}").0.is_none());
}

#[test]
fn fault_04_encryption_without_a_key_is_refused_and_never_off() {
    for asked in [
        "{type: openssl}",
        "{openssl: true}",
        "{type: age}",
        "{type: gpg}",
    ] {
        let bad = backup(&format!("encodeWith: {asked}")).unwrap_err();
        assert_eq!(bad.problems.len(), 1, "{asked}: {bad:?}");
    }
    assert!(
        backup("encodeWith: {type: openssl, password: x}")
            .unwrap()
            .plan
            .encrypt
            .is_some()
    );
}

#[test]
fn fault_05_gzip_compresses_and_an_unknown_type_is_refused() {
    assert_eq!(
        backup("compressWith: {type: gzip}")
            .unwrap()
            .plan
            .compress
            .codec,
        Codec::Gzip
    );
    assert!(backup("compressWith: {type: rar}").is_err());
}

#[test]
fn fault_08_nothing_is_written_into_the_pod_or_read_from_a_file_nobody_mounted() {
    let (plan, outcome) = storage("{type: local, config: {path: /backups}}");
    assert!(plan.is_none());
    assert!(outcome.problems[0].message.contains("deleted with it"));
    let (plan, outcome) = database("{type: redis, config: {host: h, mode: copy}}");
    assert_eq!(plan.unwrap().copy_from, None);
    assert_eq!(outcome.warnings.len(), 1);
    let (plan, _) = database("{type: mariadb, config: {host: h, database: x}}");
    assert_eq!(plan.unwrap().host.as_deref(), Some("h"));
}

#[test]
fn fault_11_a_dollar_stays_a_dollar() {
    let resolved = backup("beforeScript: 'echo $HOME $$ ${x}', afterScript: 'p$word'").unwrap();
    assert_eq!(
        resolved.plan.before_script.as_deref(),
        Some("echo $HOME $$ ${x}")
    );
    assert_eq!(resolved.plan.after_script.as_deref(), Some("p$word"));
    let (plan, _) = database("{type: redis, config: {host: h, password: 'p$word'}}");
    assert_eq!(
        plan.unwrap().password,
        Some(Credential::Literal("p$word".into()))
    );
}

#[test]
fn fault_12_the_reference_wins_over_the_plain_value_every_time() {
    for _ in 0..50 {
        let (plan, _) = database(
            "{type: redis, config: {host: h, password: x, password_ref: {name: n, key: k}}}",
        );
        assert!(matches!(
            plan.unwrap().password,
            Some(Credential::Secret { .. })
        ));
    }
}

#[test]
fn fault_19_optional_is_honoured_and_a_mistake_is_shown() {
    let (plan, _) = database(
        "{type: redis, config: {host: h, password_ref: {name: n, key: k, optional: true}}}",
    );
    assert!(matches!(
        plan.unwrap().password,
        Some(Credential::Secret { optional: true, .. })
    ));
    let bad = resolve("b", "app", &BackupBody::default(), &References::default()).unwrap_err();
    assert!(
        bad.message().contains("spec.databaseRefs") && bad.message().contains("spec.storageRefs")
    );
}
