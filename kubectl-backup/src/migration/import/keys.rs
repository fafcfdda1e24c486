//! The keys that gobackup reads in databases and storages of each type, and the fields they become.
//! From its source, version 3.1. PURE.

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The field of the same name.
    Same,
    /// A field of another name.
    Named(&'static str),
    /// No field; what to do instead.
    Lost(&'static str),
}

type Row = (&'static str, Field);

/// A type of database or storage.
pub(crate) struct Type {
    names: &'static [&'static str],
    /// Keys whose field has the same name.
    same: &'static [&'static [&'static str]],
    /// The others.
    other: &'static [Row],
}

const fn lost(key: &'static str, why: &'static str) -> Row {
    (key, Field::Lost(why))
}

/// Read of every database.
const DATABASE: [&str; 2] = ["before_script", "after_script"];
/// Read of every storage.
const STORAGE: [&str; 2] = ["path", "keep"];
/// Where a server is.
const SERVER: &[&str] = &["host", "port"];
/// And who logs in.
const LOGIN: &[&str] = &["username", "password"];
/// What is dumped of a server with databases.
const DUMPED: &[&str] = &["database", "all_databases"];
/// Which tables.
const TABLES: &[&str] = &["tables", "exclude_tables"];

const NOT_NEEDED: &str =
    "has no effect: a dump over the network is what the server holds at that moment";

/// Of `additional_options` beside storages.
pub(crate) const OLD_OPTIONS: &str = "is read by gobackup 1 alone, and there of mysql: write args, or set spec.config.args of the Database";

const DATABASES: &[Type] = &[
    Type {
        names: &["mysql"],
        same: &[SERVER, LOGIN, DUMPED, TABLES, &["socket", "args"]],
        other: &[],
    },
    Type {
        names: &["mariadb"],
        same: &[SERVER, LOGIN, DUMPED, &["socket"]],
        other: &[lost(
            "args",
            "are arguments of mariadb-backup, and the server is dumped by mariadb-dump: set spec.config.args of the Database where that needs any",
        )],
    },
    Type {
        names: &["postgresql"],
        same: &[SERVER, LOGIN, DUMPED, TABLES, &["socket", "args"]],
        other: &[lost(
            "compress",
            "is not taken over: set spec.config.args of the Database to --compress with this value, and a format (-Fc)",
        )],
    },
    Type {
        names: &["mongodb"],
        same: &[
            SERVER,
            LOGIN,
            DUMPED,
            &[
                "uri",
                "oplog",
                "exclude_tables",
                "exclude_tables_prefix",
                "args",
            ],
        ],
        other: &[("authdb", Field::Named("auth_db"))],
    },
    Type {
        names: &["redis"],
        same: &[SERVER, &["socket", "password", "mode", "rdb_path", "args"]],
        other: &[lost("invoke_save", NOT_NEEDED)],
    },
    Type {
        names: &["mssql"],
        same: &[SERVER, LOGIN, DUMPED, &["trust_server_certificate", "args"]],
        other: &[lost(
            "skip_databases",
            "is not taken over, as mssql can't be dumped",
        )],
    },
    Type {
        names: &["influxdb2"],
        same: &[&[
            "host",
            "token",
            "bucket",
            "org",
            "skip_verify",
            "all_databases",
        ]],
        other: &[
            lost(
                "bucket_id",
                "is not taken over: name the bucket in spec.config.bucket of the Database",
            ),
            lost(
                "org_id",
                "is not taken over: name the organisation in spec.config.org of the Database",
            ),
            lost(
                "http_debug",
                "is not taken over, as it would log the token: read the run's log with kubectl backup logs",
            ),
        ],
    },
    Type {
        names: &["etcd"],
        same: &[&["endpoint", "endpoints", "args"]],
        other: &[],
    },
];

const STORAGES: &[Type] = &[
    Type {
        names: &["local"],
        same: &[],
        other: &[],
    },
    Type {
        names: &["ftp"],
        same: &[
            SERVER,
            LOGIN,
            &["timeout", "tls", "explicit_tls", "no_check_certificate"],
        ],
        other: &[],
    },
    Type {
        names: &["sftp", "scp"],
        same: &[SERVER, LOGIN, &["timeout", "private_key", "passphrase"]],
        other: &[],
    },
    Type {
        names: &["webdav"],
        same: &[LOGIN, &["root"]],
        other: &[],
    },
    Type {
        names: &["gcs"],
        same: &[&["timeout", "bucket", "credentials"]],
        other: &[lost(
            "credentials_file",
            "names a file of the old host: put its content into a Secret and name it in spec.config.credentials_ref of the Storage",
        )],
    },
    Type {
        names: &["azure"],
        same: &[&[
            "timeout",
            "account",
            "container",
            "tenant_id",
            "client_id",
            "client_secret",
        ]],
        other: &[("bucket", Field::Named("account"))],
    },
    Type {
        names: &[
            "s3", "oss", "r2", "spaces", "b2", "cos", "us3", "kodo", "bos", "minio", "obs", "tos",
            "upyun",
        ],
        same: &[&[
            "timeout",
            "bucket",
            "region",
            "endpoint",
            "access_key_id",
            "secret_access_key",
            "token",
            "max_retries",
            "storage_class",
            "force_path_style",
            "account_id",
        ]],
        other: &[("access_key_secret", Field::Named("secret_access_key"))],
    },
];

/// The keys of a database type; `None` if there is none here.
pub(crate) fn database(type_: &str) -> Option<Vec<Row>> {
    rows(DATABASES, type_, &DATABASE)
}

/// The keys of a storage type; `None` if there is none here.
pub(crate) fn storage(type_: &str) -> Option<Vec<Row>> {
    rows(STORAGES, type_, &STORAGE)
}

fn rows(types: &[Type], type_: &str, common: &[&'static str]) -> Option<Vec<Row>> {
    let found = types.iter().find(|t| t.names.contains(&type_))?;
    let same = found.same.iter().copied().flatten().chain(common);
    let same = same.map(|key| (*key, Field::Same));
    Some(same.chain(found.other.iter().copied()).collect())
}

/// What to do where a database type is not served.
pub(crate) fn unserved(type_: &str) -> String {
    match type_ {
        "sqlite" => "is a file of the old host, which a pod can't reach: dump it where it is mounted, by a script of its own pod or a CronJob".to_owned(),
        "firebird" => "is of type firebird, which is not served: keep gobackup for this model, or dump it by a CronJob of your own".to_owned(),
        "" => "has no type, and gobackup dumps nothing of it: set type".to_owned(),
        other => format!("is of type {other:?}, which gobackup 3 does not know either: set one of its types"),
    }
}
