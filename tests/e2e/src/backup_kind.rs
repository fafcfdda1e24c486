//! Databases and Storages of gobackup.io for the shared servers: manifests, each with its leading `---`, and the Secret
//! they name.

use crate::Namespace;
use crate::database::{BACKUP_PASSWORD, BACKUP_USER, HOST, database};
use crate::servers::{BUCKET, DAV_PASSWORD, POSTGRES_PASSWORD, REDIS_PASSWORD, host};

/// What archives are sealed with. gobackup would expand it, and put it on a command line.
pub const SEAL: &str = "open $HOME S3cr3t-marker";

/// Makes the Secret `creds`: what the manifests here name, and [`SEAL`] under `seal`.
pub fn credentials(ns: &Namespace) {
    ns.secret(
        "creds",
        &[
            ("pg-user", "postgres"),
            ("pg", POSTGRES_PASSWORD),
            ("redis", REDIS_PASSWORD),
            ("my-user", BACKUP_USER),
            ("my", BACKUP_PASSWORD),
            ("dav", DAV_PASSWORD),
            ("id", "AKIDEXAMPLE"),
            ("key", "S3cr3t-marker-of-the-store"),
            ("seal", SEAL),
        ],
    );
}

/// Database `maindb`: one database of the PostgreSQL.
pub fn postgresql(database: &str) -> String {
    object(
        "Database",
        "maindb",
        "postgresql",
        &format!(
            "{{host: {}, port: 5432, database: {database}, username_ref: {{name: creds, key: pg-user}}, password_ref: {{name: creds, key: pg}}}}",
            host("postgresql")
        ),
    )
}

/// Database `cache`: the Redis.
pub fn redis() -> String {
    object(
        "Database",
        "cache",
        "redis",
        &format!(
            "{{host: {}, port: 6379, mode: sync, password_ref: {{name: creds, key: redis}}}}",
            host("redis")
        ),
    )
}

/// Database `shop`: the MariaDB, as type `mariadb` or `mysql`. Starts it if no test did.
pub fn shop(type_: &str) -> String {
    database();
    object(
        "Database",
        "shop",
        type_,
        &format!(
            "{{host: {HOST}, port: 3306, database: shop, username_ref: {{name: creds, key: my-user}}, password_ref: {{name: creds, key: my}}}}"
        ),
    )
}

/// Storage `bucket`: a path of the S3 server's bucket.
pub fn bucket(path: &str) -> String {
    object(
        "Storage",
        "bucket",
        "s3",
        &format!(
            "{{bucket: {BUCKET}, region: us-east-1, path: {path}, endpoint: 'http://{}:5000', force_path_style: true, access_key_id_ref: {{name: creds, key: id}}, secret_access_key_ref: {{name: creds, key: key}}}}",
            host("s3")
        ),
    )
}

/// Storage `dav`: a path of the WebDAV server.
pub fn dav(path: &str) -> String {
    object(
        "Storage",
        "dav",
        "webdav",
        &format!(
            "{{root: 'http://{}:8080', path: {path}, username: dav, password_ref: {{name: creds, key: dav}}}}",
            host("webdav")
        ),
    )
}

fn object(kind: &str, name: &str, type_: &str, config: &str) -> String {
    format!(
        "---
apiVersion: gobackup.io/v1
kind: {kind}
metadata: {{name: {name}}}
spec: {{type: {type_}, config: {config}}}
"
    )
}
