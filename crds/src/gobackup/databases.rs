//! A `Database`, normalised: what gobackup misread is said here as what it meant.

use crate::database::{DatabaseConfig, DatabaseSpec};
use crate::validate::{self, Problem};

use super::words::{credential, gobackup_name, problem, split, text};
use crate::plan::{Credential, Database, DatabaseType};

/// Options that would send the dump elsewhere, hide a failure or carry a password.
fn refused_options(database_type: DatabaseType) -> &'static [&'static str] {
    match database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb => &[
            "--result-file",
            "-r",
            "--tab",
            "-T",
            "--force",
            "-f",
            "--password",
            "-p",
            "--defaults-file",
            "--defaults-extra-file",
            "--login-path",
            "--plugin-dir",
            "--init-command",
        ],
        DatabaseType::Postgresql => &["--file", "-f", "--password", "-W"],
        DatabaseType::Redis => &["--rdb", "-a", "--pass", "--pipe", "--eval", "-x"],
        DatabaseType::Mongodb => &[
            "--out",
            "-o",
            "--archive",
            "--password",
            "-p",
            "--uri",
            "--config",
        ],
        DatabaseType::Mssql | DatabaseType::Influxdb2 | DatabaseType::Etcd => {
            &["--token", "-t", "--password"]
        }
    }
}

/// The refused option that a word is. Clients take any unambiguous beginning of a long option,
/// and a value (perhaps a password, never quoted here) glued to a short one.
fn refused(database_type: DatabaseType, word: &str) -> Option<&'static str> {
    let option = word.split('=').next().unwrap_or_default();
    refused_options(database_type)
        .iter()
        .copied()
        .find(|refused| {
            if refused.starts_with("--") {
                *refused == option || (option.len() > 4 && refused.starts_with(option))
            } else {
                !option.starts_with("--") && option.starts_with(refused)
            }
        })
}

/// What became of a Database.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Mistakes that keep it from being dumped.
    pub problems: Vec<Problem>,
    /// What does not do what it seems to say.
    pub warnings: Vec<String>,
}

impl Outcome {
    /// All in one list, mistakes first: they keep runs from starting.
    pub fn said(self) -> Vec<String> {
        let problems = self.problems.iter().map(ToString::to_string);
        problems.chain(self.warnings).collect()
    }

    /// The same in other words.
    pub(super) fn map(self, word: impl Fn(&str) -> String) -> Self {
        let problems = self.problems.into_iter().map(|p| {
            let (path, message) = (word(&p.path), word(&p.message));
            Problem { path, message }
        });
        Self {
            problems: problems.collect(),
            warnings: self.warnings.iter().map(|w| word(w)).collect(),
        }
    }
}

/// The plan of one Database; `None` if problems keep it from being dumped. `mounted` tells
/// whether a path lies on a volume of the pod.
pub fn plan(
    name: &str,
    spec: &DatabaseSpec,
    mounted: &dyn Fn(&str) -> bool,
) -> (Option<Database<Credential>>, Outcome) {
    let mut out = Outcome::default();
    let at = format!("Database {name}: spec");
    let Some(database_type) = DatabaseType::parse(&spec.type_) else {
        out.problems.push(problem(
            format!("{at}.type"),
            format!("unknown database type {:?}; use postgresql, mysql, mariadb, mongodb, redis, mssql, influxdb or etcd", spec.type_),
        ));
        return (None, out);
    };
    let config = &spec.config;
    let mut database = basic(name, database_type, config, &at, &mut out);
    database.gobackup_name = gobackup_name(
        &format!("{at}.gobackupName"),
        spec.gobackup_name.as_deref(),
        &mut out.problems,
    );
    check_host(database_type, config, &at, &mut out);
    match database_type {
        DatabaseType::Postgresql
        | DatabaseType::Mysql
        | DatabaseType::Mariadb
        | DatabaseType::Mssql => {
            sql(config, &at, &mut database, &mut out);
        }
        DatabaseType::Mongodb => mongodb(config, &at, &mut database, &mut out),
        DatabaseType::Redis => redis(config, &at, mounted, &mut database, &mut out),
        DatabaseType::Influxdb2 => influxdb(config, &at, &mut database, &mut out),
        DatabaseType::Etcd => etcd(config, &at, &mut database, &mut out),
    }
    ignored(database_type, config, &at, &mut out);
    let field = match database_type {
        DatabaseType::Etcd => "endpoints",
        _ => "host",
    };
    if database.socket.is_none() {
        let at = format!("{at}.config.{field}");
        out.warnings.extend(own_pod(&at, database.host.as_deref()));
    }
    for (field, literal, reference) in [
        ("password", &config.password, &config.password_ref),
        ("token", &config.token, &config.token_ref),
        ("uri", &config.uri, &config.uri_ref),
    ] {
        if text(literal.as_deref()).is_some() && reference.is_none() {
            out.warnings.push(format!(
                "{at}.config.{field} is plain text that anyone who can read this object sees; use {field}_ref"
            ));
        }
    }
    (out.problems.is_empty().then_some(database), out)
}

fn basic(
    name: &str,
    database_type: DatabaseType,
    config: &DatabaseConfig,
    at: &str,
    out: &mut Outcome,
) -> Database<Credential> {
    let port = config.port.filter(|p| *p != 0).and_then(|p| {
        let port = u16::try_from(p).ok();
        if port.is_none() {
            out.problems.push(problem(
                format!("{at}.config.port"),
                format!("must be 1 to 65535, is {p}"),
            ));
        }
        port
    });
    let mut args = arguments(
        database_type,
        &format!("{at}.config.args"),
        config.args.as_deref(),
        out,
    );
    if database_type == DatabaseType::Redis {
        let more = arguments(
            database_type,
            &format!("{at}.config.args_redis"),
            config.args_redis.as_deref(),
            out,
        );
        args.extend(more);
    }
    Database {
        name: name.to_lowercase(),
        gobackup_name: None,
        database_type,
        host: text(config.host.as_deref()),
        port: port.or(default_port(database_type)),
        socket: text(config.socket.as_deref()),
        username: credential(config.username_ref.as_ref(), config.username.as_deref())
            .or(default_user(database_type).map(|u| Credential::Literal(u.to_owned()))),
        password: credential(config.password_ref.as_ref(), config.password.as_deref()),
        uri: None,
        database: text(config.database.as_deref())
            .filter(|_| !config.all_databases.unwrap_or(false)),
        org: None,
        auth_db: None,
        tables: vec![],
        exclude_tables: vec![],
        exclude_prefixes: vec![],
        args,
        oplog: false,
        skip_verify: false,
        copy_from: None,
        before_script: text(config.before_script.as_deref()),
        after_script: text(config.after_script.as_deref()),
    }
}

fn default_port(database_type: DatabaseType) -> Option<u16> {
    match database_type {
        DatabaseType::Postgresql => Some(5432),
        DatabaseType::Mysql | DatabaseType::Mariadb => Some(3306),
        DatabaseType::Mongodb => Some(27017),
        DatabaseType::Redis => Some(6379),
        DatabaseType::Mssql => Some(1433),
        DatabaseType::Influxdb2 | DatabaseType::Etcd => None,
    }
}

fn default_user(database_type: DatabaseType) -> Option<&'static str> {
    match database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb => Some("root"),
        DatabaseType::Mssql => Some("sa"),
        _ => None,
    }
}

fn arguments(
    database_type: DatabaseType,
    path: &str,
    line: Option<&str>,
    out: &mut Outcome,
) -> Vec<String> {
    let words = match split(line.unwrap_or_default()) {
        Ok(words) => words,
        Err(e) => {
            out.problems.push(problem(path, e));
            return vec![];
        }
    };
    for option in words.iter().filter_map(|w| refused(database_type, w)) {
        out.problems.push(problem(
            path,
            format!("{option} is not allowed: where the dump goes and how it logs in is set by the fields of this object"),
        ));
    }
    words
}

/// True if an address, with or without scheme and port, is the pod's own.
pub fn is_own_pod(address: &str) -> bool {
    let rest = address.trim().rsplit("://").next().unwrap_or_default();
    let rest = rest.split('/').next().unwrap_or_default();
    let host = match rest.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None if rest.matches(':').count() > 1 => rest,
        None => rest.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// The warning of an address that is the pod's own.
pub(super) fn own_pod(path: &str, address: Option<&str>) -> Option<String> {
    let address = text(address).filter(|a| is_own_pod(a))?;
    Some(format!(
        "{path}: {address} is the backup's own pod, where no server listens; name the server's Service or address"
    ))
}

/// A server's name that no client of the type could look up. Clients of PostgreSQL take directories
/// of sockets and lists; those of MongoDB and SQL Server have forms of their own.
fn check_host(database_type: DatabaseType, config: &DatabaseConfig, at: &str, out: &mut Outcome) {
    let host = text(config.host.as_deref());
    let judged = match database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb | DatabaseType::Redis => true,
        DatabaseType::Postgresql => !host
            .as_deref()
            .is_some_and(|h| h.starts_with('/') || h.contains(',')),
        _ => false,
    };
    let fault = validate::host(format!("{at}.config.host"), host.as_deref());
    out.problems.extend(fault.filter(|_| judged));
}

fn need_host(config: &DatabaseConfig, at: &str, out: &mut Outcome) {
    if text(config.host.as_deref()).is_none() && text(config.socket.as_deref()).is_none() {
        out.problems.push(problem(
            format!("{at}.config.host"),
            "is not set; name the server's host (localhost is the backup's own pod)",
        ));
    }
}

fn sql(config: &DatabaseConfig, at: &str, database: &mut Database<Credential>, out: &mut Outcome) {
    need_host(config, at, out);
    if database.database.is_none() && !config.all_databases.unwrap_or(false) {
        out.problems.push(problem(
            format!("{at}.config.database"),
            "is not set; name a database, or set all_databases: true",
        ));
    }
    database.skip_verify = config.trust_server_certificate.unwrap_or(false);
    let (tables, excluded) = (
        config.tables.clone().unwrap_or_default(),
        config.exclude_tables.clone().unwrap_or_default(),
    );
    if database.database_type == DatabaseType::Mssql {
        out.warnings.push(format!(
            "{at}.type: mssql can't be dumped, and a run with it fails: sqlpackage takes the password only on its command line, where every process of the node can read it; remove this Database from the Backup, or dump it by a script of spec.beforeScript"
        ));
        if !tables.is_empty() || !excluded.is_empty() {
            out.warnings.push(format!(
                "{at}.config: tables and exclude_tables have no effect on mssql, whose export is always whole"
            ));
        }
        return;
    }
    database.tables = tables;
    database.exclude_tables = excluded;
}

fn mongodb(
    config: &DatabaseConfig,
    at: &str,
    database: &mut Database<Credential>,
    out: &mut Outcome,
) {
    database.uri = credential(config.uri_ref.as_ref(), config.uri.as_deref());
    if database.uri.is_none() {
        need_host(config, at, out);
    }
    database.auth_db = text(config.auth_db.as_deref());
    database.exclude_tables = config.exclude_tables.clone().unwrap_or_default();
    database.exclude_prefixes = config.exclude_tables_prefix.clone().unwrap_or_default();
    database.oplog = config.oplog.unwrap_or(false);
    if database.oplog && database.database.is_some() {
        database.oplog = false;
        out.warnings.push(format!(
            "{at}.config.oplog has no effect together with database: mongodump dumps the oplog of whole servers only; remove database to include it"
        ));
    }
}

fn redis(
    config: &DatabaseConfig,
    at: &str,
    mounted: &dyn Fn(&str) -> bool,
    database: &mut Database<Credential>,
    out: &mut Outcome,
) {
    let copy = config
        .mode
        .as_deref()
        .is_some_and(|m| m.eq_ignore_ascii_case("copy"));
    let file = text(config.rdb_path.as_deref()).unwrap_or("/var/db/redis/dump.rdb".to_owned());
    if copy && mounted(&file) {
        database.copy_from = Some(file);
        return;
    }
    if copy {
        out.warnings.push(format!(
            "{at}.config.mode: copy needs {file} on a volume of spec.job.volumeMounts; it is dumped over the network instead"
        ));
    }
    need_host(config, at, out);
}

fn influxdb(
    config: &DatabaseConfig,
    at: &str,
    database: &mut Database<Credential>,
    out: &mut Outcome,
) {
    need_host(config, at, out);
    database.host = database
        .host
        .take()
        .map(|host| url(&host, config.port, 8086));
    database.port = None;
    database.password = credential(config.token_ref.as_ref(), config.token.as_deref());
    if database.password.is_none() {
        out.problems.push(problem(
            format!("{at}.config.token_ref"),
            "is not set; name the Secret with the API token",
        ));
    }
    database.database = text(config.bucket.as_deref());
    database.org = text(config.org.as_deref());
    database.skip_verify = config.skip_verify.unwrap_or(false);
}

/// A host with or without scheme and port as URL.
fn url(host: &str, port: Option<i64>, default: u16) -> String {
    if let Some((_, rest)) = host.split_once("://") {
        return match port.filter(|_| !rest.contains(':')) {
            Some(port) => format!("{}:{port}", host.trim_end_matches('/')),
            None => host.trim_end_matches('/').to_owned(),
        };
    }
    if host.contains(':') {
        return format!("http://{host}");
    }
    format!("http://{host}:{}", port.unwrap_or(default.into()))
}

fn etcd(config: &DatabaseConfig, at: &str, database: &mut Database<Credential>, out: &mut Outcome) {
    let first = config
        .endpoints
        .iter()
        .flatten()
        .find_map(|e| text(Some(e)));
    let endpoint = text(config.endpoint.as_deref()).or(first).or_else(|| {
        let host = text(config.host.as_deref())?;
        Some(format!("{host}:{}", config.port.unwrap_or(2379)))
    });
    if endpoint.is_none() {
        out.problems.push(problem(
            format!("{at}.config.endpoints"),
            "names no member; set one as host:2379",
        ));
    }
    if config.endpoints.as_ref().is_some_and(|e| e.len() > 1) {
        out.warnings.push(format!(
            "{at}.config.endpoints: a snapshot is taken from the first member; the others are not used"
        ));
    }
    database.host = endpoint.map(|e| e.trim_end_matches('/').to_owned());
    database.port = None;
}

/// Keys that an older schema took and that say nothing to this type.
fn ignored(database_type: DatabaseType, config: &DatabaseConfig, at: &str, out: &mut Outcome) {
    let rows: [(&str, bool, &[DatabaseType]); 9] = [
        ("mode", config.mode.is_some(), &[DatabaseType::Redis]),
        (
            "rdb_path",
            config.rdb_path.is_some(),
            &[DatabaseType::Redis],
        ),
        (
            "auth_db",
            config.auth_db.is_some(),
            &[DatabaseType::Mongodb],
        ),
        ("oplog", config.oplog.is_some(), &[DatabaseType::Mongodb]),
        (
            "trust_server_certificate",
            config.trust_server_certificate.is_some(),
            &[DatabaseType::Mssql],
        ),
        (
            "token",
            config.token.is_some() || config.token_ref.is_some(),
            &[DatabaseType::Influxdb2],
        ),
        (
            "bucket",
            config.bucket.is_some(),
            &[DatabaseType::Influxdb2],
        ),
        ("org", config.org.is_some(), &[DatabaseType::Influxdb2]),
        (
            "endpoints",
            config.endpoints.is_some(),
            &[DatabaseType::Etcd],
        ),
    ];
    for (key, set, types) in rows {
        if set && !types.contains(&database_type) {
            out.warnings.push(format!(
                "{at}.config.{key} has no effect on {}",
                database_type.as_str()
            ));
        }
    }
    let tables = config.tables.as_ref().is_some_and(|t| !t.is_empty())
        || config
            .exclude_tables
            .as_ref()
            .is_some_and(|t| !t.is_empty());
    if tables
        && matches!(
            database_type,
            DatabaseType::Redis | DatabaseType::Influxdb2 | DatabaseType::Etcd
        )
    {
        out.warnings.push(format!(
            "{at}.config: tables and exclude_tables have no effect on {}",
            database_type.as_str()
        ));
    }
}
