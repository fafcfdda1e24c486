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
    keys: &'static [Row],
}

const fn same(key: &'static str) -> Row {
    (key, Field::Same)
}

const fn lost(key: &'static str, why: &'static str) -> Row {
    (key, Field::Lost(why))
}

/// Read of every database.
const DATABASE: [Row; 2] = [same("before_script"), same("after_script")];
/// Read of every storage.
const STORAGE: [Row; 2] = [same("path"), same("keep")];

const NOT_NEEDED: &str =
    "has no effect: a dump over the network is what the server holds at that moment";

/// Of `additional_options` beside storages.
pub(crate) const OLD_OPTIONS: &str = "is read by gobackup 1 alone, and there of mysql: write args, or set spec.config.args of the Database";

const DATABASES: &[Type] = &[
    Type {
        names: &["mysql"],
        keys: &[
            same("host"),
            same("port"),
            same("socket"),
            same("database"),
            same("username"),
            same("password"),
            same("tables"),
            same("exclude_tables"),
            same("all_databases"),
            same("args"),
        ],
    },
    Type {
        names: &["mariadb"],
        keys: &[
            same("host"),
            same("port"),
            same("socket"),
            same("database"),
            same("username"),
            same("password"),
            same("all_databases"),
            lost(
                "args",
                "are arguments of mariadb-backup, and the server is dumped by mariadb-dump: set spec.config.args of the Database where that needs any",
            ),
        ],
    },
    Type {
        names: &["postgresql"],
        keys: &[
            same("host"),
            same("port"),
            same("socket"),
            same("database"),
            same("username"),
            same("password"),
            same("tables"),
            same("exclude_tables"),
            same("all_databases"),
            same("args"),
            lost(
                "compress",
                "is not taken over: set spec.config.args of the Database to --compress with this value, and a format (-Fc)",
            ),
        ],
    },
    Type {
        names: &["mongodb"],
        keys: &[
            same("uri"),
            same("host"),
            same("port"),
            same("database"),
            same("username"),
            same("password"),
            same("oplog"),
            ("authdb", Field::Named("auth_db")),
            same("exclude_tables"),
            same("exclude_tables_prefix"),
            same("all_databases"),
            same("args"),
        ],
    },
    Type {
        names: &["redis"],
        keys: &[
            same("host"),
            same("port"),
            same("socket"),
            same("password"),
            same("mode"),
            same("rdb_path"),
            same("args"),
            lost("invoke_save", NOT_NEEDED),
        ],
    },
    Type {
        names: &["mssql"],
        keys: &[
            same("host"),
            same("port"),
            same("database"),
            same("username"),
            same("password"),
            same("trust_server_certificate"),
            same("all_databases"),
            same("args"),
            lost(
                "skip_databases",
                "is not taken over, as mssql can't be dumped",
            ),
        ],
    },
    Type {
        names: &["influxdb2"],
        keys: &[
            same("host"),
            same("token"),
            same("bucket"),
            same("org"),
            same("skip_verify"),
            same("all_databases"),
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
        keys: &[same("endpoint"), same("endpoints"), same("args")],
    },
];

const STORAGES: &[Type] = &[
    Type {
        names: &["local"],
        keys: &[],
    },
    Type {
        names: &["ftp"],
        keys: &[
            same("timeout"),
            same("host"),
            same("port"),
            same("username"),
            same("password"),
            same("tls"),
            same("explicit_tls"),
            same("no_check_certificate"),
        ],
    },
    Type {
        names: &["sftp", "scp"],
        keys: &[
            same("timeout"),
            same("host"),
            same("port"),
            same("username"),
            same("password"),
            same("private_key"),
            same("passphrase"),
        ],
    },
    Type {
        names: &["webdav"],
        keys: &[same("root"), same("username"), same("password")],
    },
    Type {
        names: &["gcs"],
        keys: &[
            same("timeout"),
            same("bucket"),
            same("credentials"),
            lost(
                "credentials_file",
                "names a file of the old host: put its content into a Secret and name it in spec.config.credentials_ref of the Storage",
            ),
        ],
    },
    Type {
        names: &["azure"],
        keys: &[
            same("timeout"),
            same("account"),
            ("bucket", Field::Named("account")),
            same("container"),
            same("tenant_id"),
            same("client_id"),
            same("client_secret"),
        ],
    },
    Type {
        names: &[
            "s3", "oss", "r2", "spaces", "b2", "cos", "us3", "kodo", "bos", "minio", "obs", "tos",
            "upyun",
        ],
        keys: &[
            same("timeout"),
            same("bucket"),
            same("region"),
            same("endpoint"),
            same("access_key_id"),
            same("secret_access_key"),
            ("access_key_secret", Field::Named("secret_access_key")),
            same("token"),
            same("max_retries"),
            same("storage_class"),
            same("force_path_style"),
            same("account_id"),
        ],
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

fn rows(types: &[Type], type_: &str, common: &[Row]) -> Option<Vec<Row>> {
    let found = types.iter().find(|t| t.names.contains(&type_))?;
    Some(found.keys.iter().chain(common).copied().collect())
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
