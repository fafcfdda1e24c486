//! The faults of gobackup-operator that can be seen in a plan, by their number in its list of
//! bugs: what lost data there without a word is done, or said, here. Those that need a running
//! server are in runner/tests/backup.rs, those of the controller in operator/src/backup/tests.rs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crds::backup::{BackupBody, StorageRef};
use crds::database::DatabaseSpec;
use crds::gobackup::resolve::Unresolved;
use crds::gobackup::{ObjectKey, References, Resolved, databases, resolve, storages};
use crds::plan::{Codec, Credential, DatabaseType, Encrypt, Place, Storage};
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

/// A Backup with the fields of its job and of two MySQL Databases, `d` and `e`.
fn named(job: &str, d: &str, e: &str) -> Result<Resolved, Unresolved> {
    let body: BackupBody = yaml(&format!(
        "spec: {{databaseRefs: [{{name: d}}, {{name: e}}], storageRefs: [{{name: s}}], job: {{{job}}}}}"
    ));
    let key = |kind, name: &str| ObjectKey {
        group: "gobackup.io",
        kind,
        name: name.into(),
    };
    let mut references = References::default();
    for (name, fields) in [("d", d), ("e", e)] {
        let text = format!("{{type: mysql, config: {{host: h, database: x}}{fields}}}");
        references
            .databases
            .insert(key("Database", name), yaml(&text));
    }
    references.storages.insert(
        key("Storage", "s"),
        yaml("{type: webdav, config: {root: 'http://dav'}, gobackupName: store_1}"),
    );
    resolve("My-App", "app", &body, &references)
}

#[test]
fn g6_gobackups_own_names_stand_in_archive_and_list() {
    let plan = named("gobackupName: My_App", ", gobackupName: my_db", "")
        .unwrap()
        .plan;
    assert_eq!(plan.model, "my_app");
    let directories: Vec<&str> = plan.databases.iter().map(|d| d.directory()).collect();
    assert_eq!(directories, ["my_db", "e"]);
    // What the objects are called stays what endpoints and messages say.
    assert_eq!(plan.databases[0].name, "d");
    assert_eq!(plan.storages[0].gobackup_name.as_deref(), Some("store_1"));
    assert_eq!(named("", "", "").unwrap().plan.model, "my-app");

    for (job, d, said) in [
        (
            "gobackupName: a/b",
            "",
            "spec.job.gobackupName: must be one name",
        ),
        (
            "gobackupName: ..",
            "",
            "spec.job.gobackupName: must be one name",
        ),
        (
            "",
            ", gobackupName: '../e'",
            "Database d: spec.gobackupName: must be one name",
        ),
        // Two directories of one name would be one.
        (
            "",
            ", gobackupName: E",
            "Database e: spec.gobackupName: e is also the name of Database d in the archive",
        ),
    ] {
        let bad = named(job, d, "").unwrap_err().message();
        assert!(bad.starts_with(said), "{bad}");
    }
}

#[test]
fn g6_openssl_without_pbkdf2_is_asked_for_and_never_mixed() {
    let iterations = |with: &str| {
        let asked = format!("encodeWith: {{type: openssl, password: x, {with}}}");
        backup(&asked).map(|r| match r.plan.encrypt {
            Some(Encrypt::Openssl { iterations, .. }) => iterations,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(iterations("pbkdf2: false"), Ok(0));
    assert_eq!(iterations("pbkdf2: true"), Ok(10_000));
    assert_eq!(iterations("args: -aes-256-cbc"), Ok(10_000));
    assert_eq!(iterations("pbkdf2: true, args: -iter 7"), Ok(7));
    for args in ["-pbkdf2", "-iter 7"] {
        let bad = iterations(&format!("pbkdf2: false, args: {args}")).unwrap_err();
        assert!(bad.message().contains("spec.encodeWith.pbkdf2"), "{bad:?}");
    }
}

#[test]
fn g6_an_address_of_the_pod_itself_is_no_server() {
    use crds::gobackup::databases::is_own_pod;
    for own in [
        "localhost",
        "LOCALHOST:3306",
        "127.0.0.1",
        "127.1.2.3:1",
        "http://localhost:8086",
        "::1",
        "[::1]:2379",
        "https://0.0.0.0/x",
    ] {
        assert!(is_own_pod(own), "{own}");
    }
    for other in [
        "db",
        "localhost.example",
        "10.0.0.1:3306",
        "http://s3:5000",
        "fe80::1",
        "",
    ] {
        assert!(!is_own_pod(other), "{other}");
    }
    let said = |text: &str| database(text).1.warnings.join(" ");
    assert!(
        said("{type: redis, config: {host: localhost}}")
            .contains("spec.config.host: localhost is the backup's own pod")
    );
    assert!(
        said("{type: etcd, config: {endpoints: ['127.0.0.1:2379']}}")
            .contains("spec.config.endpoints")
    );
    assert_eq!(
        said("{type: mysql, config: {host: localhost, socket: /s, database: x}}"),
        ""
    );
    let warnings = storage("{type: minio, config: {bucket: b, endpoint: 'http://127.0.0.1:9000'}}")
        .1
        .warnings;
    assert!(warnings[0].contains("spec.config.endpoint"), "{warnings:?}");
}
