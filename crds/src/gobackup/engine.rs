//! gobackup as the engine of a run: what of a plan it can't do, does otherwise than it is said, or
//! does so that it can't be checked afterwards. Everything here is known before a run starts. PURE.

use crate::backup::{BackupBody, JobOptions, RunEngine};
use crate::validate::Problem;

use super::words::problem;
use crate::plan::{Codec, Credential, Database, DatabaseType, Encrypt, Place, Plan, Storage};

/// What mends every problem found here.
const REMEDY: &str = "set spec.job.engine: native";

/// The engine a body asks for; unset means native.
pub fn asked(body: &BackupBody) -> RunEngine {
    options(body).and_then(|o| o.engine).unwrap_or_default()
}

/// `body` with `engine` where it names none.
pub fn with_default(body: &mut BackupBody, engine: RunEngine) {
    if engine == RunEngine::Native {
        return;
    }
    let spec = body.spec.get_or_insert_default();
    spec.job
        .get_or_insert_default()
        .engine
        .get_or_insert(engine);
}

fn options(body: &BackupBody) -> Option<&JobOptions> {
    body.spec.as_ref()?.job.as_ref()
}

/// What keeps gobackup from carrying out this plan, and what of it has another effect than it says.
pub(super) fn check(
    body: &BackupBody,
    plan: &Plan<Credential>,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) {
    if asked(body) != RunEngine::Gobackup {
        return;
    }
    // Its image has the clients.
    warnings.retain(|w| !w.contains("the runner's image has no"));
    archive(plan, problems);
    for database in &plan.databases {
        let at = format!("Database {}: spec", database.name);
        for (field, why) in database_faults(database) {
            problems.push(problem(format!("{at}.{field}"), format!("{why}; {REMEDY}")));
        }
        if database.database_type == DatabaseType::Mariadb {
            warnings.push(format!(
                "Database {}: gobackup dumps mariadb only from the server's data directory, so this server is dumped as mysql, and the archive has the dump below {}/mysql",
                database.name, plan.model
            ));
        }
    }
    for storage in &plan.storages {
        let at = format!("Storage {}: spec.config", storage.name);
        for (field, why) in storage_faults(&storage.place) {
            problems.push(problem(format!("{at}.{field}"), format!("{why}; {REMEDY}")));
        }
        warnings.extend(unchecked_host_key(storage));
        warnings.extend(no_directory(storage));
    }
}

fn archive(plan: &Plan<Credential>, problems: &mut Vec<Problem>) {
    if matches!(
        plan.compress.codec,
        Codec::Compress | Codec::Lzip | Codec::Lzop
    ) {
        problems.push(problem(
            "spec.compressWith.type",
            format!(
                "can't be checked once gobackup has stored it, and its exit status alone is not trusted; use tgz, zst, xz, bz2, lzma or tar, or {REMEDY}"
            ),
        ));
    }
    if let Some(Encrypt::Age { .. }) = &plan.encrypt {
        problems.push(problem(
            "spec.encodeWith.type",
            format!("is age, which gobackup does not know; use openssl, or {REMEDY}"),
        ));
    }
    if plan.split.is_some() {
        problems.push(problem(
            "spec.splitWith",
            format!(
                "has parts that can't be checked one by one once gobackup has stored them; remove it, or {REMEDY}"
            ),
        ));
    }
}

/// gobackup joins a client's command line to one text and splits it at blanks.
fn has_blank(text: &str) -> bool {
    text.is_empty() || text.contains(char::is_whitespace)
}

fn database_faults(database: &Database<Credential>) -> Vec<(&'static str, String)> {
    let mut found = vec![];
    let name = database.database_type.as_str();
    if database.database_type == DatabaseType::Mssql {
        found.push((
            "type",
            "is mssql: gobackup hands the password to sqlpackage on the command line, where every process of the node can read it".to_owned(),
        ));
    }
    if database.database_type == DatabaseType::Influxdb2 && !database.args.is_empty() {
        found.push((
            "config.args",
            format!("can't be given to {name} by gobackup"),
        ));
    }
    let endpoint = database.host.as_deref().unwrap_or_default();
    if database.database_type == DatabaseType::Etcd && endpoint.starts_with("https://") {
        found.push((
            "config.endpoints",
            "names a scheme, which gobackup would put into the name of its file; write host:port, and the client's TLS options into args".to_owned(),
        ));
    }
    for (field, values) in [
        ("config.host", database.host.as_slice()),
        ("config.socket", database.socket.as_slice()),
        ("config.database", database.database.as_slice()),
        ("config.auth_db", database.auth_db.as_slice()),
        ("config.tables", &database.tables),
        ("config.exclude_tables", &database.exclude_tables),
        ("config.args", &database.args),
    ] {
        // The client of influxdb gets its arguments one by one.
        if values.iter().any(|v| has_blank(v)) && database.database_type != DatabaseType::Influxdb2
        {
            found.push((
                field,
                "is empty or holds a space, and gobackup splits a client's arguments at spaces"
                    .to_owned(),
            ));
        }
    }
    found
}

fn storage_faults(place: &Place<Credential>) -> Vec<(&'static str, String)> {
    let mut found = vec![];
    let mut fault = |field, why: &str| found.push((field, why.to_owned()));
    match place {
        Place::S3(s3) if s3.access_key_id.is_none() => fault(
            "access_key_id_ref",
            "is not set, and gobackup does not use the pod's own identity",
        ),
        Place::Gcs {
            endpoint: Some(_), ..
        } => fault("endpoint", "is not known to gobackup"),
        Place::Azure {
            endpoint,
            client_secret,
            ..
        } => {
            if endpoint.is_some() {
                fault("endpoint", "is not known to gobackup");
            }
            if client_secret.is_none() {
                fault(
                    "client_secret_ref",
                    "is not set, and gobackup does not use the pod's own identity",
                );
            }
        }
        Place::Ftp {
            username, password, ..
        } if username.is_none() || password.is_none() => fault(
            "username",
            "and password are not both set, and gobackup has no anonymous login",
        ),
        Place::Sftp {
            host_key: Some(_), ..
        } => fault(
            "host_key",
            "is set, but gobackup does not check it and would send the archive to a server with any other key",
        ),
        _ => {}
    }
    found
}

/// gobackup makes a directory on FTP only for one answer that servers hardly ever give.
fn no_directory(storage: &Storage<Credential>) -> Option<String> {
    let directory = storage.path.trim_matches('/');
    let is_ftp = matches!(storage.place, Place::Ftp { .. });
    (is_ftp && !directory.is_empty()).then(|| {
        format!(
            "Storage {}: gobackup makes no directory on FTP, and a run fails where {} is not there: make it before the first run, or {REMEDY}",
            storage.name, storage.path
        )
    })
}

fn unchecked_host_key(storage: &Storage<Credential>) -> Option<String> {
    matches!(storage.place, Place::Sftp { .. }).then(|| {
        format!(
            "Storage {}: gobackup does not check the host key, so anyone in between could take the archive; set host_key and {REMEDY}",
            storage.name
        )
    })
}
