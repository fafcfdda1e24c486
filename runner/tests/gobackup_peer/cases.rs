//! What gobackup and its stand-in are asked for.

use super::{CASE, Case};

/// A model of one Redis on the disk, with more keys of the model, and of the Redis.
macro_rules! redis {
    ($more:literal) => {
        redis!($more, "")
    };
    ($more:literal, $own:literal) => {
        concat!(
            "  m:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n",
            "    databases: {cache: {type: redis, mode: sync, host: r, password: pw, invoke_save: false", $own, "}}\n",
            $more
        )
    };
}

/// One database on the disk.
macro_rules! database {
    ($keys:literal) => {
        concat!(
            "  m:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    databases: {d: {",
            $keys,
            "}}\n"
        )
    };
}

/// A storage.
macro_rules! storage {
    ($keys:literal) => {
        concat!(
            "  m:\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {",
            $keys,
            "}}\n"
        )
    };
}

pub(super) fn all() -> Vec<Case> {
    let case = |name, models| Case {
        name,
        models,
        ..CASE
    };
    let open = |name, models, open| Case {
        name,
        models,
        open,
        ..CASE
    };
    let failing = |name, models, env| Case {
        name,
        models,
        env,
        ..CASE
    };
    let often = |name, models| Case {
        name,
        models,
        runs: 3,
        ..CASE
    };
    vec![
        // The settings file.
        case("plain", redis!("")),
        case(
            "upper case in names",
            "  My_App:\n    storages: {Disk: {type: local, path: @HOME@/disk}}\n    databases: {My_Cache: {type: redis, mode: sync}}\n",
        ),
        failing(
            "variables",
            redis!(
                "    description: \"$HOME and ${NAME} and $1\"\n",
                ", args: \"--$NAME\""
            ),
            &[("NAME", "value")],
        ),
        case("dollar escaped", redis!("", ", args: \"\\x24NAME\"")),
        case("debug", redis!("", ", args: debug")),
        case(
            "no storages",
            "  m:\n    databases: {cache: {type: redis}}\n",
        ),
        case(
            "no databases",
            "  m:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n",
        ),
        case("a model that is empty", "  m:\n"),
        case("no models", "  {}\n"),
        case(
            "two models, one fails",
            "  a:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    databases: {d: {type: postgresql}}\n  b:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    databases: {d: {type: redis, mode: sync}}\n    compress_with: {type: tgz, filename_format: b-x}\n",
        ),
        case("an unknown database", database!("type: oracle")),
        case("an unknown storage", storage!("type: floppy")),
        case(
            "name of the archive",
            redis!(
                "    compress_with: {type: tgz, filename_format: \"20060102.bcdfghjklnqrstvw\"}\n"
            ),
        ),
        // Scripts.
        case(
            "scripts",
            redis!(
                "    before_script: echo before-model\n    after_script: echo after-model\n",
                ", before_script: \"echo before; echo more\", after_script: echo after"
            ),
        ),
        case(
            "before_script fails",
            redis!(
                "    after_script: echo after-model\n",
                ", before_script: \"echo it is so >&2; exit 3\", after_script: echo after"
            ),
        ),
        case(
            "after_script fails",
            redis!("", ", after_script: \"echo it is so >&2; exit 3\""),
        ),
        case(
            "before_script with a dash",
            redis!("", ", before_script: \"-/bin/false\""),
        ),
        case(
            "after_script with a dash",
            redis!("", ", after_script: \"-/bin/false\""),
        ),
        case(
            "a model's script fails",
            redis!("    before_script: exit 3\n    after_script: exit 4\n"),
        ),
        failing(
            "a dump fails",
            redis!(
                "    after_script: echo after-model\n",
                ", after_script: echo after"
            ),
            &[("FAILS", "redis-cli")],
        ),
        failing(
            "a dump fails, on_exit always",
            redis!("", ", after_script: echo after, on_exit: always"),
            &[("FAILS", "redis-cli")],
        ),
        failing(
            "a dump fails, on_exit failure",
            redis!("", ", after_script: echo after, on_exit: failure"),
            &[("FAILS", "redis-cli")],
        ),
        failing(
            "a dump fails, on_exit success",
            redis!("", ", after_script: echo after, on_exit: success"),
            &[("FAILS", "redis-cli")],
        ),
        failing(
            "a dump fails, on_exit unknown",
            redis!("", ", after_script: echo after, on_exit: never"),
            &[("FAILS", "redis-cli")],
        ),
        case(
            "on_exit failure after a good dump",
            redis!("", ", after_script: echo after, on_exit: failure"),
        ),
        // Databases.
        case(
            "mysql",
            database!(
                "type: mysql, database: app, password: \"p w\", exclude_tables: [x, y], tables: [t], args: --quick --routines"
            ),
        ),
        case(
            "mysql of all",
            database!(
                "type: mysql, all_databases: true, host: db, port: 3307, username: u, args: --quick"
            ),
        ),
        case(
            "mysql of all with tables",
            database!("type: mysql, all_databases: true, exclude_tables: [x]"),
        ),
        case(
            "mysql by socket",
            database!("type: mysql, database: app, socket: /run/my.sock"),
        ),
        failing(
            "mysql fails",
            database!("type: mysql, database: app"),
            &[("FAILS", "mysqldump")],
        ),
        case(
            "postgresql",
            database!(
                "type: postgresql, database: app, username: u, password: \"p w\", tables: [a, b], exclude_tables: [x], args: --no-owner"
            ),
        ),
        case(
            "postgresql of all",
            database!(
                "type: postgresql, all_databases: true, username: u, password: pw, args: --no-role-passwords"
            ),
        ),
        failing(
            "postgresql of all fails",
            database!("type: postgresql, all_databases: true"),
            &[("FAILS", "pg_dumpall")],
        ),
        case("postgresql without a name", database!("type: postgresql")),
        case(
            "postgresql by socket",
            database!("type: postgresql, database: app, socket: /run/pg/.s.PGSQL.5433"),
        ),
        case(
            "postgresql compressed",
            database!("type: postgresql, database: app, compress: \"gzip:6\""),
        ),
        case(
            "redis with save",
            database!("type: redis, mode: sync, args: --user me"),
        ),
        case(
            "redis copied",
            database!("type: redis, rdb_path: @HOME@/gobackup.yml"),
        ),
        case(
            "redis copied of nothing",
            database!("type: redis, rdb_path: @HOME@/nothing"),
        ),
        case(
            "mongodb",
            database!(
                "type: mongodb, database: app, host: m, username: u, password: pw, authdb: admin, oplog: true, exclude_tables: [x], exclude_tables_prefix: [tmp_], args: --gzip"
            ),
        ),
        case(
            "mongodb of all",
            database!("type: mongodb, all_databases: true"),
        ),
        case(
            "mongodb by uri",
            database!("type: mongodb, uri: \"mongodb://m/app\", args: --gzip"),
        ),
        case("mongodb without a name", database!("type: mongodb")),
        failing(
            "mongodb fails",
            database!("type: mongodb, database: app"),
            &[("FAILS", "mongodump")],
        ),
        case(
            "influxdb2",
            database!(
                "type: influxdb2, host: \"http://i:8086\", token: t, bucket: b, org: o, skip_verify: true"
            ),
        ),
        case(
            "influxdb2 of all",
            database!("type: influxdb2, host: \"http://i:8086\", token: t, all_databases: true"),
        ),
        case(
            "influxdb2 without a bucket",
            database!("type: influxdb2, host: \"http://i:8086\", token: t"),
        ),
        case(
            "influxdb2 without a token",
            database!("type: influxdb2, host: \"http://i:8086\", bucket: b"),
        ),
        case(
            "etcd",
            database!("type: etcd, endpoint: \"e:2379\", args: --debug"),
        ),
        case("etcd without an endpoint", database!("type: etcd")),
        failing(
            "etcd fails",
            database!("type: etcd, endpoint: \"e:2379\""),
            &[("FAILS", "etcdctl")],
        ),
        case(
            "a client that is not there",
            "  m:\n    before_script: rm @HOME@/bin/influx\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    databases: {d: {type: influxdb2, host: i, token: t, all_databases: true}}\n",
        ),
        case(
            "files",
            "  m:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    archive: {includes: [@HOME@/gobackup.yml, /nothing], excludes: [@HOME@/x]}\n",
        ),
        case(
            "files of nothing",
            "  m:\n    storages: {disk: {type: local, path: @HOME@/disk}}\n    archive: {excludes: [@HOME@/x]}\n",
        ),
        // What is packed.
        open(
            "gzip",
            redis!("    compress_with: {type: tgz}\n"),
            "gzip -dc $1",
        ),
        open(
            "bzip2",
            redis!("    compress_with: {type: tbz2}\n"),
            "bzip2 -dc $1",
        ),
        open("xz", redis!("    compress_with: {type: xz}\n"), "xz -dc $1"),
        open(
            "lzma",
            redis!("    compress_with: {type: lzma}\n"),
            "xz -dc <$1",
        ),
        open(
            "zstd",
            redis!("    compress_with: {type: zst}\n"),
            "zstd -dc $1",
        ),
        case("zip", redis!("    compress_with: {type: zip}\n")),
        case("codec as text", redis!("    compress_with: tgz\n")),
        case("codec empty", redis!("    compress_with: {type: \"\"}\n")),
        // What is encrypted, opened as its users open it.
        open(
            "openssl",
            redis!("    encrypt_with: {type: openssl, password: \"p w\"}\n"),
            "openssl enc -d -aes-256-cbc -pass 'pass:p w' -in $1 2>/dev/null",
        ),
        open(
            "openssl with pbkdf2",
            redis!(
                "    encrypt_with: {type: openssl, password: pw, args: \"-pbkdf2 -iter 1000\", chiper: aes-128-cbc}\n"
            ),
            "openssl enc -d -aes-128-cbc -pbkdf2 -iter 1000 -k pw -in $1",
        ),
        open(
            "openssl in base64",
            redis!(
                "    encrypt_with: {type: openssl, password: pw, base64: true, args: -pbkdf2}\n"
            ),
            "openssl enc -d -aes-256-cbc -a -pbkdf2 -k pw -in $1",
        ),
        open(
            "openssl with salt: false, which salts all the same",
            redis!("    encrypt_with: {type: openssl, password: pw, salt: false, args: -pbkdf2}\n"),
            "openssl enc -d -aes-256-cbc -pbkdf2 -k pw -in $1",
        ),
        case(
            "openssl without a password",
            redis!("    encrypt_with: {type: openssl}\n"),
        ),
        case(
            "openssl of no cipher",
            redis!("    encrypt_with: {type: openssl, password: pw, chiper: rot13}\n"),
        ),
        case(
            "encrypted by gpg",
            redis!("    encrypt_with: {type: gpg, password: pw}\n"),
        ),
        // Parts.
        case("parts", redis!("    split_with: {chunk_size: 4096}\n")),
        case(
            "parts by letters",
            redis!(
                "    compress_with: {type: tgz}\n    encrypt_with: {type: openssl, password: pw}\n    split_with: {chunk_size: 100, suffix_length: 2, numeric_suffixes: false}\n"
            ),
        ),
        case(
            "parts without a size",
            redis!("    split_with: {suffix_length: 2}\n"),
        ),
        case(
            "parts in a bucket",
            "  m:\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {type: s3, bucket: backups, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key}}\n    split_with: {chunk_size: 4096}\n",
        ),
        // Where it is stored.
        case(
            "disk in no directory",
            storage!("type: local, path: @HOME@/disk/a/b"),
        ),
        case(
            "disk in a file's place",
            storage!("type: local, path: @HOME@/gobackup.yml/a"),
        ),
        case(
            "s3",
            storage!(
                "type: s3, bucket: backups, path: @PLACE@/in, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key, storage_class: STANDARD"
            ),
        ),
        case(
            "minio",
            storage!(
                "type: minio, bucket: backups, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key"
            ),
        ),
        case(
            "s3 of no bucket",
            storage!(
                "type: s3, bucket: nosuch, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key"
            ),
        ),
        case(
            "webdav",
            storage!(
                "type: webdav, root: \"@DAV@\", username: dav, password: \"@DAV_PASSWORD@\", path: @PLACE@/in"
            ),
        ),
        case(
            "webdav refused",
            storage!(
                "type: webdav, root: \"@DAV@\", username: dav, password: wrong, path: @PLACE@"
            ),
        ),
        case(
            "ftp",
            storage!(
                "type: ftp, host: 127.0.0.1, port: @FTP@, username: ftp, password: \"@FTP_PASSWORD@\", path: /@PLACE@"
            ),
        ),
        case(
            "ftp in no directory",
            storage!(
                "type: ftp, host: 127.0.0.1, port: @FTP@, username: ftp, password: \"@FTP_PASSWORD@\", path: /@PLACE@/in"
            ),
        ),
        case(
            "ftp refused",
            storage!(
                "type: ftp, host: 127.0.0.1, port: @FTP@, username: ftp, password: wrong, path: /"
            ),
        ),
        case(
            "ftp without a login",
            storage!("type: ftp, host: 127.0.0.1, port: @FTP@, path: /"),
        ),
        case(
            "one storage of two fails",
            "  m:\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {a: {type: local, path: @HOME@/disk}, b: {type: s3, bucket: nosuch, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key}}\n",
        ),
        // What is kept, by its own list.
        often(
            "kept on a disk",
            "  m:\n    before_script: sleep 1.1\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {type: local, path: @HOME@/disk, keep: 2}}\n",
        ),
        often(
            "kept in a bucket",
            "  m:\n    before_script: sleep 1.1\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {type: s3, bucket: backups, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key, keep: 2}}\n",
        ),
        often(
            "kept in a bucket, parts",
            "  m:\n    before_script: sleep 1.1\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {type: s3, bucket: backups, path: @PLACE@, endpoint: \"@S3@\", access_key_id: id, secret_access_key: key, keep: 2}}\n    split_with: {chunk_size: 8192}\n",
        ),
        often(
            "kept by webdav",
            "  m:\n    before_script: sleep 1.1\n    databases: {cache: {type: redis, mode: sync}}\n    storages: {s: {type: webdav, root: \"@DAV@\", username: dav, password: \"@DAV_PASSWORD@\", path: @PLACE@, keep: 2}}\n",
        ),
        // Who is told.
        case(
            "webhook",
            redis!("    notifiers: {n: {type: webhook, url: \"@RECEIVER@\"}}\n"),
        ),
        case(
            "webhook with method and headers",
            redis!(
                "    notifiers: {n: {type: webhook, url: \"@RECEIVER@\", method: PUT, headers: {Authorization: \"Bearer t\", X-Team: ops, Content-Type: text/x}}}\n"
            ),
        ),
        case(
            "webhook of a failure",
            redis!(
                "    notifiers: {n: {type: webhook, url: \"@RECEIVER@\"}}\n",
                ", before_script: exit 3"
            ),
        ),
        case(
            "webhook for failures alone",
            redis!("    notifiers: {n: {type: webhook, url: \"@RECEIVER@\", on_success: false}}\n"),
        ),
        case(
            "webhook for successes alone",
            redis!(
                "    notifiers: {n: {type: webhook, url: \"@RECEIVER@\", on_failure: false}}\n",
                ", before_script: exit 3"
            ),
        ),
        case(
            "a receiver of no kind",
            redis!("    notifiers: {n: {type: pigeon}}\n"),
        ),
    ]
}
