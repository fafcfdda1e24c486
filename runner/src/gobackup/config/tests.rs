//! The text against what gobackup reads: `$` expanded as Go does it, then YAML by a reader that is
//! not this project's. Keys are those of gobackup's documentation.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use crate::gobackup::config::*;

/// What breaks in shells, in YAML and in gobackup.
const ODD: &str = "p$word ${HOME} $$ \"q\" 'a' \\x24 #: \t%\u{e9}\u{85}\n";

fn parsed(plan: Value) -> Plan<SecretString> {
    let mut plan = plan;
    for (key, value) in [
        ("model", json!("nightly.v1")),
        ("databases", json!([])),
        ("storages", json!([])),
        ("compress", json!({"codec": "gzip"})),
    ] {
        let map = plan.as_object_mut().unwrap();
        map.entry(key).or_insert(value);
    }
    let plan: Plan<String> = serde_json::from_value(plan).unwrap();
    plan.map(&mut |_, text| SecretString::from(text))
}

fn render(plan: &Plan<SecretString>) -> Result<String, Failure> {
    let mut files = BTreeMap::new();
    let _ = plan.clone().map(&mut |name, _| {
        files.insert(name.to_owned(), format!("/run/secrets/gobackup/{name}"));
    });
    let config = Config {
        plan,
        files: &files,
        workdir: "/work/run-1/tmp",
        scripts: "/run/backup/g",
        token: "bcdf",
    };
    config.render()
}

/// As gobackup reads it.
fn read(text: &str) -> Value {
    assert!(!text.contains('$'), "something would be expanded: {text}");
    let mut whole: Value = serde_yaml::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(whole["workdir"], "/work/run-1/tmp");
    whole["models"]["nightly.v1"].take()
}

fn database(yaml: &str) -> Value {
    let one: Value = serde_yaml::from_str(yaml).unwrap();
    let plan = parsed(json!({"databases": [one]}));
    let mut found = read(&render(&plan).unwrap());
    found["databases"]["db"].take()
}

fn storage(yaml: &str) -> Value {
    let mut one: Value = serde_yaml::from_str(yaml).unwrap();
    one["name"] = json!("st");
    one["keep"] = json!(7);
    one["timeout"] = json!(60);
    let plan = parsed(json!({"storages": [one]}));
    let mut found = read(&render(&plan).unwrap());
    found["storages"]["st"].take()
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

/// The whole text, byte by byte: settings are quoted, and no password of a client is in it.
#[test]
fn the_whole_file() {
    let plan = parsed(json!({
        "databases": [
            {"name": "maindb", "engine": "postgresql", "host": "pg", "port": 5432, "database": "app",
             "username": "app", "password": "p$word", "excludeTables": ["a", "b"], "args": ["--no-owner"],
             "beforeScript": "echo \"it's $(date)\"", "afterScript": "true"},
            {"name": "shop", "engine": "mariadb", "host": "my", "port": 3306, "database": "shop",
             "username": "root", "password": "p$word", "tables": ["t"]},
        ],
        "storages": [
            {"name": "bucket", "keep": 7, "timeout": 600, "path": "site/a", "service": "s3", "provider": "minio",
             "bucket": "b", "region": "us-east-1", "endpoint": "http://m:9000", "forcePathStyle": true, "maxRetries": 3,
             "accessKeyId": "id", "secretAccessKey": "s$cret"},
            {"name": "disk", "keep": 0, "timeout": 300, "path": "daily", "service": "local", "volume": {}},
        ],
        "encrypt": {"type": "openssl", "password": "x", "bits": 256, "iterations": 10000, "digest": "sha256", "base64": false},
    }));
    insta::assert_snapshot!(render(&plan).unwrap());
}

#[test]
fn every_type_of_database_in_gobackups_keys() {
    let rows = [
        (
            "{name: db, engine: mysql, host: h, port: 3306, database: d, username: u, password: x, excludeTables: [a, o.b], tables: [c]}",
            "{type: mysql, host: h, port: 3306, database: d, username: u, password: 'secret-file:/run/secrets/gobackup/databases/db/password', tables: [c],
              args: '--single-transaction --quick --routines --events --triggers --hex-blob --no-tablespaces --skip-add-locks --ignore-table=d.a --ignore-table=o.b'}",
        ),
        (
            "{name: db, engine: mariadb, host: h, port: 3306, username: u, args: [--skip-events], tables: [c]}",
            "{type: mysql, host: h, port: 3306, all_databases: true, username: u,
              args: '--single-transaction --quick --routines --events --triggers --hex-blob --no-tablespaces --skip-add-locks --skip-events'}",
        ),
        (
            "{name: db, engine: postgresql, socket: /s/.s.PGSQL.5432, tables: [c], excludeTables: [e]}",
            "{type: postgresql, socket: /s/.s.PGSQL.5432, all_databases: true}",
        ),
        (
            "{name: db, engine: redis, host: h, port: 6379, username: u, password: x, args: [--tls]}",
            "{type: redis, mode: sync, invoke_save: false, host: h, port: 6379, password: 'secret-file:/run/secrets/gobackup/databases/db/password', args: '--user u --tls'}",
        ),
        (
            "{name: db, engine: redis, copyFrom: /data/dump.rdb}",
            "{type: redis, mode: copy, invoke_save: false, rdb_path: /data/dump.rdb}",
        ),
        (
            "{name: db, engine: mongodb, host: h, port: 27017, username: u, password: x, authDb: admin, oplog: true, excludeTables: [c], excludePrefixes: [p]}",
            "{type: mongodb, host: h, port: 27017, username: u, password: 'secret-file:/run/secrets/gobackup/databases/db/password', authdb: admin, oplog: true, all_databases: true, exclude_tables: [c], exclude_tables_prefix: [p]}",
        ),
        (
            "{name: db, engine: mongodb, uri: 'mongodb://u:p@h', database: d}",
            "{type: mongodb, uri: 'secret-file:/run/secrets/gobackup/databases/db/uri', database: d}",
        ),
        (
            "{name: db, engine: influxdb2, host: 'http://h:8086', password: t, database: b, org: o, skipVerify: true}",
            "{type: influxdb2, host: 'http://h:8086', token: 'secret-file:/run/secrets/gobackup/databases/db/password', bucket: b, org: o, skip_verify: true}",
        ),
        (
            "{name: db, engine: etcd, host: 'http://h:2379', args: [--cacert, /x]}",
            "{type: etcd, endpoint: 'h:2379', args: '--cacert /x'}",
        ),
    ];
    for (from, expected) in rows {
        assert_eq!(database(from), yaml(expected), "{from}");
    }
}

#[test]
fn every_type_of_storage_in_gobackups_keys() {
    let rows = [
        (
            "{service: local, path: daily, volume: {}}",
            "{type: local, path: /storage/st/daily}",
        ),
        (
            "{service: local, path: /mnt/x}",
            "{type: local, path: /mnt/x}",
        ),
        (
            "{service: s3, path: p, provider: oss, bucket: b, region: r, endpoint: 'https://o', forcePathStyle: false, storageClass: IA, maxRetries: 5, accessKeyId: i, secretAccessKey: k, sessionToken: t}",
            "{type: oss, path: p, bucket: b, region: r, endpoint: 'https://o', force_path_style: false, storage_class: IA, max_retries: 5, access_key_id: i, secret_access_key: k, token: t}",
        ),
        (
            "{service: s3, path: '', provider: s3, bucket: b, region: r, forcePathStyle: true, maxRetries: 3, accessKeyId: i, secretAccessKey: k}",
            "{type: s3, bucket: b, region: r, force_path_style: true, storage_class: '', max_retries: 3, access_key_id: i, secret_access_key: k}",
        ),
        (
            "{service: gcs, path: p, bucket: b, credentials: '{}', credentialsFile: /f}",
            "{type: gcs, path: p, bucket: b, credentials: '{}', credentials_file: /f}",
        ),
        (
            "{service: azure, path: p, account: a, container: c, tenantId: t, clientId: i, clientSecret: s}",
            "{type: azure, path: p, account: a, container: c, tenant_id: t, client_id: i, client_secret: s}",
        ),
        (
            "{service: webdav, path: p, root: 'http://d', username: u, password: x}",
            "{type: webdav, path: p, root: 'http://d', username: u, password: x}",
        ),
        (
            "{service: ftp, path: /p, host: h, port: 21, username: u, password: x, tls: false, explicitTls: true, noCheckCertificate: true}",
            "{type: ftp, path: /p, host: h, port: 21, username: u, password: x, explicit_tls: true, no_check_certificate: true}",
        ),
        (
            "{service: sftp, path: p, host: h, port: 22, username: u, privateKey: 'PEM', passphrase: x}",
            "{type: sftp, path: p, host: h, port: 22, username: u, private_key: /run/secrets/gobackup/storages/st/private-key, passphrase: x}",
        ),
        (
            "{service: sftp, path: p, host: h, port: 22, password: x, privateKeyFile: /k}",
            "{type: sftp, path: p, host: h, port: 22, username: root, password: x, private_key: /k}",
        ),
    ];
    for (from, expected) in rows {
        let mut expected = yaml(expected);
        expected["timeout"] = json!(60);
        // keep is the runner's: gobackup keeps count in a file that is gone with the pod.
        assert_eq!(storage(from), expected, "{from}");
    }
}

#[test]
fn compression_and_encryption_are_maps_of_the_types_gobackup_knows() {
    for (codec, type_) in [
        ("tar", "tar"),
        ("gzip", "tgz"),
        ("bzip2", "tbz2"),
        ("lzma", "lzma"),
        ("xz", "xz"),
        ("zstd", "zst"),
    ] {
        let plan = parsed(json!({"compress": {"codec": codec}}));
        assert_eq!(
            read(&render(&plan).unwrap())["compress_with"],
            json!({"type": type_, "filename_format": "2006.01.02.15.04.05.bcdf"})
        );
    }
    let plan = parsed(json!({
        "encrypt": {"type": "openssl", "password": ODD, "bits": 128, "iterations": 7, "digest": "sha1", "base64": true},
    }));
    assert_eq!(
        read(&render(&plan).unwrap())["encrypt_with"],
        yaml(
            "{type: openssl, chiper: aes-128-cbc, salt: true, base64: true, args: -pbkdf2, password: 'secret-file:/run/secrets/gobackup/encrypt/password'}"
        )
    );
    for plan in [
        json!({"compress": {"codec": "lzop"}}),
        json!({"encrypt": {"type": "age", "recipients": ["age1x"]}}),
        json!({"databases": [{"name": "db", "engine": "mssql"}]}),
        json!({"databases": [{"name": "db", "engine": "mysql", "username": "a b"}]}),
    ] {
        let failure = render(&parsed(plan)).unwrap_err();
        assert_eq!(failure.exit_code, 2, "{failure}");
        assert!(failure.message.contains("engine: native"), "{failure}");
    }
}

#[test]
fn odd_values_arrive_as_they_are() {
    let dav = json!({
        "name": "st", "keep": 0, "timeout": 1, "path": ODD, "service": "webdav", "root": "http://d", "username": ODD,
        "password": ODD,
    });
    let pg = json!({"name": "db", "engine": "postgresql", "host": "h", "password": ODD, "database": "2024"});
    let found = read(&render(&parsed(json!({"storages": [dav], "databases": [pg]}))).unwrap());
    assert_eq!(found["storages"]["st"]["password"], ODD);
    assert_eq!(found["storages"]["st"]["username"], ODD);
    assert_eq!(found["storages"]["st"]["path"], ODD);
    assert_eq!(found["databases"]["db"]["password"], ODD);
    assert_eq!(found["databases"]["db"]["database"], "2024");
}

/// gobackup up to 2.15 splits a script into words and starts the first one; newer ones write it to a file for `sh`. Both do
/// the same with a word of letters alone.
#[test]
fn g1_scripts_come_through_whole_whatever_the_version() {
    let script = "echo \"it's $HOME\" > '/tmp/a b'\nexit 1";
    let one = json!({"name": "db", "engine": "redis", "host": "h", "beforeScript": script, "afterScript": script});
    let other = json!({"name": "other", "engine": "redis", "host": "h", "afterScript": "true"});
    let plan = parsed(json!({"databases": [other, one]}));
    let db = read(&render(&plan).unwrap())["databases"]["db"].take();
    let files = Config {
        plan: &plan,
        files: &BTreeMap::new(),
        workdir: "",
        scripts: "/run/backup/g",
        token: "",
    }
    .scripts();
    let text = |path: &str| {
        files
            .iter()
            .find(|(p, _)| p == path)
            .map(|(_, t)| t.as_str())
    };
    assert_eq!(db["before_script"], "/bin/sh /run/backup/g/before_script-1");
    assert_eq!(db["after_script"], "/bin/sh /run/backup/g/after_script-1");
    assert_eq!(db["on_exit"], "always");
    assert_eq!(text("/run/backup/g/before_script-1"), Some(script));
    assert_eq!(text("/run/backup/g/after_script-1.text"), Some(script));
    assert_eq!(files.len(), 5, "{files:?}");
}

#[test]
fn g2_influxdb_without_a_bucket_is_all_of_them() {
    let found = database("{name: db, engine: influxdb2, host: 'http://h:8086', password: t}");
    assert_eq!(found["all_databases"], true);
    let one =
        database("{name: db, engine: influxdb2, host: 'http://h:8086', password: t, database: b}");
    assert_eq!(one["all_databases"], Value::Null);
}

#[test]
fn a_level_reaches_the_codecs_program() {
    for (codec, expected) in [
        ("gzip", vec![("GZIP", "-4"), ("PIGZ", "-4")]),
        ("zstd", vec![("ZSTD_CLEVEL", "4")]),
        ("xz", vec![("XZ_OPT", "-4")]),
        ("tar", vec![]),
    ] {
        let plan = parsed(json!({"compress": {"codec": codec, "level": 4}}));
        let found = level(&plan);
        let found: Vec<(&str, &str)> = found.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(level(&parsed(json!({}))), []);
}
