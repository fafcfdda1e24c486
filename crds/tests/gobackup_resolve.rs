//! Every generation's manifests resolve to the plan their fields say. Expected values come from
//! the documentation of gobackup and its operator, not from this code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use crds::backup::BackupBody;
use crds::database::DatabaseSpec;
use crds::gobackup::{ObjectKey, References, Resolved, resolve, wanted};
use crds::legacy::{PostgreSqlSpec, S3Spec};
use crds::plan::{Codec, Credential, DatabaseType, Encrypt, Place, S3};
use crds::storage::StorageSpec;
use crds::volumes::Ground;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All documents of the test data, with the references among them.
struct World {
    backups: BTreeMap<String, BackupBody>,
    references: References,
}

fn spec<T: DeserializeOwned>(document: &Value) -> T {
    let spec = document
        .get("spec")
        .cloned()
        .unwrap_or(serde_json::json!({}));
    serde_json::from_value(spec).unwrap()
}

fn world() -> World {
    let mut world = World {
        backups: BTreeMap::new(),
        references: References::default(),
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gobackup");
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for document in serde_yaml::Deserializer::from_str(&text) {
            let document: Value = serde::Deserialize::deserialize(document).unwrap();
            add(&mut world, &document);
        }
    }
    world
}

fn add(world: &mut World, document: &Value) {
    let name = document["metadata"]["name"].as_str().unwrap().to_owned();
    let group = match document["apiVersion"].as_str().unwrap() {
        "gobackup.io/v1" => "gobackup.io",
        "database.gobackup.io/v1" => "database.gobackup.io",
        "storage.gobackup.io/v1" => "storage.gobackup.io",
        _ => return,
    };
    let key = |kind| ObjectKey {
        group,
        kind,
        name: name.clone(),
    };
    let found = &mut world.references;
    match document["kind"].as_str().unwrap() {
        "Backup" | "CronBackup" => {
            let body = serde_json::from_value(document.clone()).unwrap();
            world.backups.insert(name, body);
        }
        "Database" => {
            found.databases.insert(key("Database"), spec(document));
        }
        "PostgreSQL" => {
            let typed: PostgreSqlSpec = spec(document);
            found
                .databases
                .insert(key("PostgreSQL"), typed.to_database());
        }
        "Storage" => {
            found.storages.insert(key("Storage"), spec(document));
        }
        "S3" => {
            let typed: S3Spec = spec(document);
            found.storages.insert(key("S3"), typed.to_storage());
        }
        "BackupModel" => {
            found.models.insert(key("BackupModel"), spec(document));
        }
        other => panic!("{other}"),
    }
}

fn of(name: &str) -> Resolved {
    let world = world();
    resolve(name, "app", &world.backups[name], &world.references)
        .unwrap_or_else(|e| panic!("{name}: {}", e.message()))
}

fn secret(name: &str, key: &str) -> Option<Credential> {
    Some(Credential::Secret {
        name: name.into(),
        key: key.into(),
        optional: false,
    })
}

fn literal(text: &str) -> Option<Credential> {
    Some(Credential::Literal(text.into()))
}

#[test]
fn each_generation_gives_the_plan_its_fields_say() {
    // name, engine, database, bucket, path, keep, timeout, extension, encrypted, cron
    type Row = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        u32,
        u32,
        &'static str,
        bool,
        Option<&'static str>,
    );
    let rows: &[Row] = &[
        (
            "cron-g0",
            "app",
            "backups",
            "pre/fix",
            5,
            30,
            ".tar.gz",
            true,
            Some("0 0 * * *"),
        ),
        (
            "example-cronbackup",
            "my_database",
            "backups",
            "",
            5,
            30,
            ".tar.gz",
            true,
            Some("* * * * *"),
        ),
        (
            "example-backup",
            "my_database",
            "backups",
            "",
            5,
            30,
            ".tar.gz",
            true,
            None,
        ),
        (
            "cron-g2",
            "app",
            "backups",
            "pre/fix",
            5,
            30,
            ".tar.gz",
            false,
            Some("0 0 * * *"),
        ),
        (
            "once-g2", "app", "backups", "pre/fix", 5, 30, ".tar.gz", false, None,
        ),
        (
            "root-g3a",
            "app",
            "backups",
            "pre/fix",
            7,
            600,
            ".tar.gz",
            true,
            Some("0 1 * * *"),
        ),
        // keep and timeout 0 on the reference mean unset: the Storage's own count.
        (
            "spec-g3", "app", "backups", "pre/fix", 9, 100, ".tar.gz", true, None,
        ),
        (
            "persistence-g3b",
            "app",
            "backups",
            "pre/fix",
            9,
            100,
            ".tar",
            false,
            Some("0 3 * * *"),
        ),
        (
            "nightly",
            "app",
            "b",
            "pre/fix",
            7,
            600,
            ".tar.gz",
            false,
            Some("15 2 * * *"),
        ),
        (
            "backup-postgresql",
            "app",
            "b",
            "pre/fix",
            7,
            300,
            ".tar.gz",
            false,
            Some("*/5 * * * *"),
        ),
        (
            "production-backup",
            "app",
            "b",
            "pre/fix",
            30,
            600,
            ".tar.gz",
            false,
            Some("0 2 * * *"),
        ),
        ("once", "app", "b", "pre/fix", 7, 300, ".tar", false, None),
    ];
    let world = world();
    for (name, database, bucket, path, keep, timeout, extension, encrypted, cron) in rows {
        let plan = of(name).plan;
        assert_eq!(plan.model, *name);
        assert_eq!(plan.databases.len(), 1, "{name}");
        assert_eq!(
            plan.databases[0].database_type,
            DatabaseType::Postgresql,
            "{name}"
        );
        assert_eq!(
            plan.databases[0].database.as_deref(),
            Some(*database),
            "{name}"
        );
        let storage = &plan.storages[0];
        let Place::S3(s3) = &storage.place else {
            panic!("{name}")
        };
        assert_eq!(
            (s3.bucket.as_str(), storage.path.as_str()),
            (*bucket, *path),
            "{name}"
        );
        assert_eq!((storage.keep, storage.timeout), (*keep, *timeout), "{name}");
        assert_eq!(plan.compress.codec.extension(), *extension, "{name}");
        assert_eq!(plan.encrypt.is_some(), *encrypted, "{name}");
        let merged = crds::gobackup::fields::merge(&world.backups[*name]);
        assert_eq!(merged.cron().as_deref(), *cron, "{name}");
    }
}

#[test]
fn the_article_of_2024_resolves_in_full() {
    let plan = of("example-cronbackup").plan;
    let database = &plan.databases[0];
    assert_eq!(database.name, "example-postgresql");
    assert_eq!(database.host.as_deref(), Some("postgres-service.default"));
    assert_eq!(database.port, Some(5432));
    assert_eq!(database.username, literal("postgres"));
    assert_eq!(database.password, literal("mysecretpassword"));
    assert_eq!(
        plan.storages[0].place,
        Place::S3(S3 {
            provider: "s3".into(),
            bucket: "backups".into(),
            region: "us-east-1".into(),
            endpoint: None,
            force_path_style: false,
            storage_class: None,
            max_retries: 3,
            access_key_id: literal("AKIA"),
            secret_access_key: literal("marker-secret"),
            session_token: None,
        })
    );
    assert_eq!(
        plan.encrypt,
        Some(Encrypt::Openssl {
            password: Credential::Literal("mysecretpassword".into()),
            bits: 256,
            iterations: 10_000,
            digest: "sha256".into(),
            base64: false,
        })
    );
    assert_eq!(
        plan.before_script.as_deref(),
        Some("echo 'Starting backup'")
    );
    assert_eq!(
        plan.after_script.as_deref(),
        Some("echo 'Backup completed'")
    );
}

#[test]
fn options_of_openssl_are_read() {
    let Some(Encrypt::Openssl {
        iterations, base64, ..
    }) = of("spec-g3").plan.encrypt
    else {
        panic!()
    };
    assert_eq!((iterations, base64), (20_000, true));
}

#[test]
fn secrets_are_references_and_the_reference_wins() {
    let plan = of("nightly").plan;
    assert_eq!(plan.databases[0].username, secret("creds", "username"));
    assert_eq!(plan.databases[0].password, secret("creds", "password"));
    let mut world = world();
    let key = ObjectKey {
        group: "gobackup.io",
        kind: "Database",
        name: "maindb".into(),
    };
    let database = world.references.databases.get_mut(&key).unwrap();
    database.config.password = Some("marker-secret".into());
    let both = resolve(
        "nightly",
        "app",
        &world.backups["nightly"],
        &world.references,
    )
    .unwrap();
    assert_eq!(both.plan.databases[0].password, secret("creds", "password"));
    assert!(!format!("{both:?}").contains("marker-secret"));
}

fn database(
    yaml: &str,
) -> (
    Option<crds::plan::Database<Credential>>,
    crds::gobackup::databases::Outcome,
) {
    let spec: DatabaseSpec = serde_yaml::from_str(yaml).unwrap();
    crds::gobackup::databases::plan("x", &spec, &|path| path.starts_with("/data"))
}

fn storage(
    yaml: &str,
) -> (
    Option<crds::plan::Storage<Credential>>,
    crds::gobackup::databases::Outcome,
) {
    let spec: StorageSpec = serde_yaml::from_str(yaml).unwrap();
    let reference = crds::backup::StorageRef::default();
    crds::gobackup::storages::plan("x", &spec, &reference, &|path| {
        if path.starts_with("/data") {
            Ground::Volume
        } else {
            Ground::Container
        }
    })
}

#[test]
fn every_shipped_database_sample_resolves() {
    let world = world();
    type Row = (
        &'static str,
        DatabaseType,
        Option<&'static str>,
        Option<u16>,
        Option<&'static str>,
    );
    let rows: &[Row] = &[
        (
            "maindb",
            DatabaseType::Postgresql,
            Some("pg"),
            Some(5432),
            Some("app"),
        ),
        (
            "postgresql-direct",
            DatabaseType::Postgresql,
            Some("pg"),
            Some(5432),
            Some("app"),
        ),
        (
            "mysql",
            DatabaseType::Mysql,
            Some("my"),
            Some(3306),
            Some("app"),
        ),
        (
            "mysql-direct",
            DatabaseType::Mysql,
            Some("my"),
            Some(3306),
            Some("app"),
        ),
        (
            "mariadb",
            DatabaseType::Mariadb,
            Some("ma"),
            Some(3306),
            Some("app"),
        ),
        (
            "mariadb-direct",
            DatabaseType::Mariadb,
            Some("ma"),
            Some(3306),
            Some("app"),
        ),
        (
            "mongodb",
            DatabaseType::Mongodb,
            Some("mo"),
            Some(27017),
            Some("app"),
        ),
        (
            "mongodb-direct",
            DatabaseType::Mongodb,
            Some("mo"),
            Some(27017),
            None,
        ),
        (
            "mssql",
            DatabaseType::Mssql,
            Some("ms"),
            Some(1433),
            Some("app"),
        ),
        (
            "mssql-direct",
            DatabaseType::Mssql,
            Some("ms"),
            Some(1433),
            Some("app"),
        ),
        ("redis", DatabaseType::Redis, Some("re"), Some(6379), None),
        (
            "redis-direct",
            DatabaseType::Redis,
            Some("re"),
            Some(6379),
            None,
        ),
        (
            "influxdb",
            DatabaseType::Influxdb2,
            Some("http://influx:8086"),
            None,
            Some("b"),
        ),
        (
            "influxdb-direct",
            DatabaseType::Influxdb2,
            Some("http://influx:8086"),
            None,
            Some("b"),
        ),
        ("etcd", DatabaseType::Etcd, Some("etcd-0:2379"), None, None),
        (
            "etcd-url",
            DatabaseType::Etcd,
            Some("http://etcd-0:2379"),
            None,
            None,
        ),
    ];
    for (name, database_type, host, port, dumped) in rows {
        let key = ObjectKey {
            group: "gobackup.io",
            kind: "Database",
            name: (*name).into(),
        };
        let (plan, outcome) =
            crds::gobackup::databases::plan(name, &world.references.databases[&key], &|_| false);
        let plan = plan.unwrap_or_else(|| panic!("{name}: {outcome:?}"));
        assert_eq!(plan.database_type, *database_type, "{name}");
        assert_eq!(plan.host.as_deref(), *host, "{name}");
        assert_eq!(plan.port, *port, "{name}");
        assert_eq!(plan.database.as_deref(), *dumped, "{name}");
    }
}

#[test]
fn what_a_database_key_means() {
    let (plan, _) = database("{type: mongodb, config: {host: h, auth_db: admin, oplog: true}}");
    let plan = plan.unwrap();
    assert_eq!((plan.auth_db.as_deref(), plan.oplog), (Some("admin"), true));
    // mongodump refuses the oplog of one database.
    let (plan, outcome) =
        database("{type: mongodb, config: {host: h, database: app, oplog: true}}");
    assert!(!plan.unwrap().oplog);
    assert_eq!(outcome.warnings.len(), 1);
    let (plan, _) = database("{type: redis, config: {mode: copy, rdb_path: /data/dump.rdb}}");
    assert_eq!(plan.unwrap().copy_from.as_deref(), Some("/data/dump.rdb"));
    let (plan, outcome) = database("{type: redis, config: {host: h, mode: copy, rdb_path: /x}}");
    assert_eq!(plan.unwrap().copy_from, None);
    assert_eq!(outcome.warnings.len(), 1);
    let (plan, _) = database(
        "{type: mariadb, config: {host: h, all_databases: true, database: x, exclude_tables: [t]}}",
    );
    let plan = plan.unwrap();
    assert_eq!(
        (plan.database, plan.exclude_tables),
        (None, vec!["t".to_owned()])
    );
    let (plan, _) = database("{type: influxdb2, config: {host: 'https://i:9999', token: t}}");
    assert_eq!(plan.unwrap().host.as_deref(), Some("https://i:9999"));
    let (plan, _) =
        database("{type: mysql, config: {host: h, database: d, args: \"--where='a = 1'\"}}");
    let plan = plan.unwrap();
    assert_eq!(plan.args, ["--where=a = 1"]);
    assert_eq!(plan.username, literal("root"));
}

#[test]
fn a_database_that_cannot_be_dumped_says_so() {
    let rows = [
        ("{type: nonsense, config: {}}", "spec.type"),
        ("{type: postgresql, config: {host: h}}", "config.database"),
        ("{type: postgresql, config: {database: d}}", "config.host"),
        (
            "{type: mysql, config: {host: h, database: d, port: 70000}}",
            "config.port",
        ),
        (
            "{type: mysql, config: {host: h, database: d, args: '--result-file=/x'}}",
            "config.args",
        ),
        (
            "{type: mysql, config: {host: h, database: d, args: '--resul=/x'}}",
            "config.args",
        ),
        (
            "{type: mysql, config: {host: h, database: d, args: '-pmarker-secret'}}",
            "config.args",
        ),
        (
            "{type: postgresql, config: {host: h, database: d, args: '-f/tmp/x'}}",
            "config.args",
        ),
        (
            "{type: redis, config: {host: h, args: '\"open'}}",
            "config.args",
        ),
        ("{type: influxdb, config: {host: h}}", "config.token_ref"),
        ("{type: etcd, config: {}}", "config.endpoints"),
    ];
    for (yaml, path) in rows {
        let (plan, outcome) = database(yaml);
        assert!(plan.is_none(), "{yaml}");
        let found = format!("{:?}", outcome.problems);
        assert!(
            found.contains(path) && !found.contains("marker"),
            "{yaml}: {found}"
        );
    }
    // pg_dump's -a and -T are no password and no file.
    assert!(
        database("{type: postgresql, config: {host: h, database: d, args: '-a -T x'}}")
            .0
            .is_some()
    );
}

/// Region, endpoint, storage class and path style of each type, from gobackup's table.
#[test]
fn each_s3_provider_has_its_defaults() {
    type Row = (
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        bool,
    );
    let rows: &[Row] = &[
        ("s3", "us-east-1", None, Some("STANDARD_IA"), true),
        (
            "b2",
            "us-east-001",
            Some("https://us-east-001.backblazeb2.com"),
            Some("STANDARD"),
            true,
        ),
        (
            "us3",
            "s3-cn-bj",
            Some("https://s3-cn-bj.ufileos.com"),
            Some("ARCHIVE"),
            true,
        ),
        (
            "cos",
            "ap-nanjing",
            Some("https://cos.ap-nanjing.myqcloud.com"),
            Some("STANDARD_IA"),
            true,
        ),
        (
            "kodo",
            "cn-east-1",
            Some("https://s3-cn-east-1.qiniucs.com"),
            Some("LINE"),
            true,
        ),
        (
            "r2",
            "us-east-1",
            Some("https://acc.r2.cloudflarestorage.com"),
            None,
            true,
        ),
        (
            "spaces",
            "nyc1",
            Some("https://nyc1.digitaloceanspaces.com"),
            Some("STANDARD"),
            true,
        ),
        (
            "bos",
            "bj",
            Some("https://s3.bj.bcebos.com"),
            Some("STANDARD_IA"),
            true,
        ),
        (
            "oss",
            "cn-hangzhou",
            Some("https://oss-cn-hangzhou.aliyuncs.com"),
            Some("STANDARD_IA"),
            false,
        ),
        (
            "obs",
            "cn-north-1",
            Some("https://obs.cn-north-1.myhuaweicloud.com"),
            Some("STANDARD_IA"),
            true,
        ),
        (
            "tos",
            "cn-beijing",
            Some("https://tos-s3-cn-beijing.volces.com"),
            Some("STANDARD_IA"),
            false,
        ),
        ("upyun", "", Some("https://s3.api.upyun.com"), None, true),
    ];
    for (type_, region, endpoint, class, path_style) in rows {
        let (plan, outcome) = storage(&format!(
            "{{type: {type_}, config: {{bucket: b, account_id: acc, access_key_id: k, secret_access_key: s}}}}"
        ));
        let Some(Place::S3(s3)) = plan.map(|p| p.place) else {
            panic!("{type_}: {outcome:?}")
        };
        assert_eq!(s3.region, *region, "{type_}");
        assert_eq!(s3.endpoint.as_deref(), *endpoint, "{type_}");
        assert_eq!(s3.storage_class.as_deref(), *class, "{type_}");
        assert_eq!(s3.force_path_style, *path_style, "{type_}");
    }
    let (plan, _) = storage("{type: minio, config: {bucket: b, endpoint: 'minio:9000'}}");
    let Some(Place::S3(s3)) = plan.map(|p| p.place) else {
        panic!()
    };
    assert_eq!(
        (s3.endpoint.as_deref(), s3.storage_class),
        (Some("https://minio:9000"), None)
    );
}

#[test]
fn every_shipped_storage_sample_resolves_but_a_local_one_without_volume() {
    let world = world();
    for (key, spec) in world
        .references
        .storages
        .iter()
        .filter(|(k, _)| k.kind == "Storage")
    {
        let reference = crds::backup::StorageRef::default();
        let (plan, outcome) =
            crds::gobackup::storages::plan(&key.name, spec, &reference, &|_| Ground::Container);
        let expected = !matches!(key.name.as_str(), "local" | "no-spec");
        assert_eq!(plan.is_some(), expected, "{}: {outcome:?}", key.name);
    }
    let (plan, _) = storage("{type: local, config: {path: /data/x/}}");
    assert_eq!(plan.unwrap().path, "/data/x");
    let (plan, _) =
        storage("{type: local, config: {path: /b/}, volume: {nfs: {server: s, path: /}}}");
    assert_eq!(plan.unwrap().path, "b");
    let (plan, _) = storage("{type: sftp, config: {host: h, private_key: \"-----BEGIN X-----\"}}");
    let Some(Place::Sftp {
        private_key,
        private_key_file,
        port,
        ..
    }) = plan.map(|p| p.place)
    else {
        panic!()
    };
    assert_eq!(
        (private_key.is_some(), private_key_file, port),
        (true, None, 22)
    );
    let (plan, _) = storage("{type: scp, config: {host: h, private_key: /keys/id}}");
    let Some(Place::Sftp {
        private_key,
        private_key_file,
        ..
    }) = plan.map(|p| p.place)
    else {
        panic!()
    };
    assert_eq!(
        (private_key, private_key_file.as_deref()),
        (None, Some("/keys/id"))
    );
}

#[test]
fn a_storage_that_cannot_be_used_says_so() {
    let rows = [
        ("{type: nonsense, config: {}}", "spec.type"),
        ("{type: s3, config: {}}", "config.bucket"),
        (
            "{type: s3, config: {bucket: b, access_key_id: a}}",
            "access_key_id and secret_access_key",
        ),
        ("{type: r2, config: {bucket: b}}", "config.account_id"),
        ("{type: minio, config: {bucket: b}}", "config.endpoint"),
        ("{type: webdav, config: {}}", "config.root"),
        ("{type: ftp, config: {host: h, port: -1}}", "config.port"),
        ("{type: local, config: {path: /b}}", "spec.volume"),
        (
            "{type: s3, config: {bucket: b, path: a/../b}}",
            "config.path",
        ),
    ];
    for (yaml, part) in rows {
        let (plan, outcome) = storage(yaml);
        assert!(plan.is_none(), "{yaml}");
        let found = format!("{:?}", outcome.problems);
        assert!(found.contains(part), "{yaml}: {found}");
    }
}

/// The names of section 3.3 and the words people write.
#[test]
fn compression_names() {
    let rows: &[(Codec, &str, &[&str])] = &[
        (
            Codec::Gzip,
            ".tar.gz",
            &["gz", "tgz", "taz", "tar.gz", "gzip", "GZIP"],
        ),
        (Codec::Compress, ".tar.Z", &["Z", "taZ", "tar.Z"]),
        (Codec::Bzip2, ".tar.bz2", &["bz2", "tbz", "tbz2", "tar.bz2"]),
        (Codec::Lzip, ".tar.lz", &["lz", "tar.lz"]),
        (Codec::Lzma, ".tar.lzma", &["lzma", "tlz", "tar.lzma"]),
        (Codec::Lzop, ".tar.lzo", &["lzo", "tar.lzo"]),
        (Codec::Xz, ".tar.xz", &["xz", "txz", "tar.xz"]),
        (Codec::Zstd, ".tar.zst", &["zst", "tzst", "tar.zst"]),
        (Codec::Tar, ".tar", &["tar", ""]),
    ];
    for (codec, extension, names) in rows {
        assert_eq!(codec.extension(), *extension);
        for name in *names {
            assert_eq!(crds::gobackup::archive::codec(name), Some(*codec), "{name}");
        }
    }
    assert_eq!(crds::gobackup::archive::codec("rar"), None);
}

#[test]
fn what_is_missing_is_named_with_the_remedy() {
    let mut world = world();
    world.references.databases.clear();
    let bad = resolve(
        "nightly",
        "app",
        &world.backups["nightly"],
        &world.references,
    )
    .unwrap_err();
    assert_eq!(bad.reason(), "NotFound");
    assert_eq!(
        bad.message(),
        "spec.databaseRefs[0]: there is no Database \"maindb\" in namespace app; create it, or correct the name: kubectl -n app get databases.gobackup.io"
    );
    let rows = [
        ("empty", "spec.databaseRefs: names no Database"),
        ("empty-spec", "spec.storageRefs: names no Storage"),
        ("odd-values", "spec.databaseRefs[0].name"),
        ("odd-values", "unknown compression \"nonsense\""),
        ("odd-values", "unknown encryption \"nonsense\""),
        (
            "root-g3a",
            "databaseRefs[0]: there is no Database \"psql-g3\"",
        ),
    ];
    for (name, text) in rows {
        let bad = resolve(name, "app", &world.backups[name], &world.references).unwrap_err();
        assert!(bad.message().contains(text), "{name}: {}", bad.message());
    }
}

#[test]
fn encryption_without_a_key_is_a_mistake_and_never_plain_text() {
    let mut world = world();
    let body = world.backups.get_mut("once").unwrap();
    let fields = &mut body.spec.as_mut().unwrap().fields;
    fields.encode_with.as_mut().unwrap().type_ = Some("openssl".into());
    let bad = resolve("once", "app", &world.backups["once"], &world.references).unwrap_err();
    assert!(bad.message().contains("names no key"), "{}", bad.message());
}

#[test]
fn every_candidate_is_watched() {
    let world = world();
    let names: Vec<String> = wanted(&world.backups["example-cronbackup"])
        .iter()
        .map(|k| format!("{}.{}/{}", k.kind, k.group, k.name))
        .collect();
    assert_eq!(
        names,
        [
            "PostgreSQL.database.gobackup.io/example-postgresql",
            "BackupModel.gobackup.io/example-backupmodel",
            "Database.gobackup.io/example-postgresql",
            "PostgreSQL.gobackup.io/example-postgresql",
            "S3.gobackup.io/example-s3",
            "Storage.gobackup.io/example-s3",
            "S3.storage.gobackup.io/example-s3",
        ]
    );
    for body in world.backups.values() {
        drop(wanted(body));
    }
}

#[test]
fn a_run_gets_files_for_secrets() {
    let resolved = of("nightly");
    let (plan, files) = crds::plan::with_files(resolved.plan);
    assert_eq!(
        plan.databases[0].password.as_deref(),
        Some("/run/secrets/gobackup/databases/maindb/password")
    );
    let paths: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "databases/maindb/username",
            "databases/maindb/password",
            "storages/bucket/access-key-id",
            "storages/bucket/secret-access-key",
        ]
    );
    let text =
        serde_json::to_string(&crds::plan::with_files(of("example-cronbackup").plan).0).unwrap();
    assert!(
        !text.contains("marker-secret") && !text.contains("mysecretpassword"),
        "{text}"
    );
    let back: crds::plan::Plan<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(
        back,
        crds::plan::with_files(of("example-cronbackup").plan).0
    );
}

#[test]
fn what_reads_archives_needs_storages_and_key_and_no_database() {
    let world = world();
    for (name, body) in &world.backups {
        let mut references = world.references.clone();
        references.databases.clear();
        let whole = resolve(name, "app", body, &world.references);
        let stored = crds::gobackup::stored(name, "app", body, &references, None);
        let Ok(whole) = whole else { continue };
        let stored = stored.unwrap_or_else(|e| panic!("{name}: {}", e.message()));
        assert_eq!(stored.storages, whole.plan.storages, "{name}");
        assert_eq!(stored.encrypt, whole.plan.encrypt, "{name}");
        assert!(stored.databases.is_empty() && stored.before_script.is_none());
        let wanted = crds::gobackup::wanted_to_read(body);
        assert!(wanted.iter().all(|k| k.kind != "Database"), "{wanted:?}");
    }
    let body = &world.backups["nightly"];
    let one = crds::gobackup::stored("nightly", "app", body, &world.references, Some("Bucket"));
    assert_eq!(one.unwrap().storages.len(), 1);
    let none = crds::gobackup::stored("nightly", "app", body, &world.references, Some("tape"));
    let message = none.unwrap_err().message();
    assert!(
        message.contains("nightly names no Storage \"tape\"; it stores on bucket"),
        "{message}"
    );
}
