//! MongoDB by `mongodump`. Password and connection string are in a config file on memory.

use crate::failure::Failure;

use super::super::process::{Program, explain};
use super::super::settings::expose;
use super::super::spool::Member;
use super::{Dump, tree};

pub(super) fn dump(job: &Dump<'_>) -> Result<Vec<Member>, Failure> {
    let d = job.database;
    let out = job.work.join(job.work_name("out"));
    let mut args = vec![format!("--out={}", out.display())];
    let mut secrets = String::new();
    if let Some(uri) = expose(d.uri.as_ref()) {
        secrets.push_str(&format!("uri: {}\n", yaml(uri)));
    } else {
        args.extend(d.host.iter().map(|h| format!("--host={h}")));
        args.extend(d.port.map(|p| format!("--port={p}")));
        args.extend(expose(d.username.as_ref()).map(|u| format!("--username={u}")));
        args.extend(
            d.auth_db
                .iter()
                .map(|a| format!("--authenticationDatabase={a}")),
        );
        if let Some(password) = expose(d.password.as_ref()) {
            secrets.push_str(&format!("password: {}\n", yaml(password)));
        }
        args.extend(d.database.iter().map(|n| format!("--db={n}")));
    }
    if d.oplog {
        args.push("--oplog".to_owned());
    }
    args.extend(
        d.exclude_tables
            .iter()
            .map(|t| format!("--excludeCollection={t}")),
    );
    args.extend(
        d.exclude_prefixes
            .iter()
            .map(|t| format!("--excludeCollectionsWithPrefix={t}")),
    );
    args.extend(d.args.iter().cloned());
    let config = job.private_file("config", &secrets)?;
    args.push(format!("--config={}", config.text()));
    let program = Program::new(Program::find(job.context, "mongodump")?, args);
    let (_, ended) = program.ask(job.context, "", Some(&out))?;
    if !ended.good() {
        return Err(explain("mongodump", &ended));
    }
    if !out.is_dir() {
        return Err(Failure::source(
            "IncompleteDump",
            "mongodump ended well but wrote nothing: check config.database and what the user may see",
        ));
    }
    let members = tree(&out, &job.at)?;
    if members
        .iter()
        .all(|m| m.bytes() == 0 && !m.path().ends_with(".bson"))
    {
        return Err(Failure::source(
            "IncompleteDump",
            "the dump holds no collection: check config.database and what the user may see",
        ));
    }
    Ok(members)
}

/// A YAML string in double quotes: JSON is one.
fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
