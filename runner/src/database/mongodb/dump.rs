//! MongoDB by `mongodump`. Password and connection string are in a config file on memory.

use crate::database::dump::{DumpJob, tree};
use crate::database::partial;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::process::Program;
use crate::settings::plan::expose;
use crds::report::Reason;

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
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
    let program = Program::new(job.context.settings.program("mongodump")?, args);
    let (_, ended) = program.ask(job.context, "", Some(&out))?;
    job.ended("mongodump", &ended)?;
    partial::warn(job.context, job.database);
    if !out.is_dir() {
        return Err(Failure::new(
            Reason::IncompleteDump,
            "mongodump ended well but wrote nothing: check config.database and what the user may see",
        ));
    }
    let members = tree(job, &out, &job.at, crate::database::mongodb::bson::check)?;
    if members
        .iter()
        .all(|m| m.bytes() == 0 && !m.path().ends_with(".bson"))
    {
        return Err(Failure::new(
            Reason::IncompleteDump,
            "the dump holds no collection: check config.database and what the user may see",
        ));
    }
    if let Some(path) = alone(&members) {
        return Err(Failure::new(
            Reason::IncompleteDump,
            format!("the dump describes {path} but lacks its documents: it is not kept; run again"),
        ));
    }
    Ok(members)
}

/// A collection that is described, and whose documents are not there. Views have none.
fn alone(members: &[Member]) -> Option<&str> {
    let there = |path: String| members.iter().any(|m| m.path() == path);
    let mut described = members.iter().filter_map(|member| {
        let (plain, packed) = match member.path().strip_suffix(".gz") {
            Some(plain) => (plain, ".gz"),
            None => (member.path(), ""),
        };
        let collection = plain.strip_suffix(".metadata.json")?;
        let lacking = !there(format!("{collection}.bson{packed}")) && !is_view(member, packed);
        lacking.then_some(collection)
    });
    described.next()
}

fn is_view(member: &Member, packed: &str) -> bool {
    let Ok(mut from) = member.open() else {
        return false;
    };
    let value: serde_json::Result<serde_json::Value> = match packed {
        "" => serde_json::from_reader(&mut from),
        _ => serde_json::from_reader(flate2::read::MultiGzDecoder::new(from)),
    };
    value.is_ok_and(|v| v["options"]["viewOn"].is_string() || v["type"] == "view")
}

/// A YAML string in double quotes: JSON is one.
fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
