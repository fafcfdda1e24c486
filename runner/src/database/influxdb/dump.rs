//! InfluxDB 2 by `influx backup`. The token is in a config file on memory.

use crate::database::dump::{DumpJob, incomplete, tree};
use crate::database::flaw::Flaw;
use crate::database::partial;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::process::Program;
use crate::settings::plan::expose;

use std::io::Read as _;

/// Largest manifest that is read.
const LARGEST: u64 = 256 << 20;

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let d = job.database;
    let out = job.work.join(job.work_name("out"));
    let text = |s: &str| serde_json::Value::from(s).to_string();
    let config = format!(
        "[default]\n  url = {}\n  token = {}\n  org = {}\n  active = true\n",
        text(d.host.as_deref().unwrap_or_default()),
        text(expose(d.password.as_ref()).unwrap_or_default()),
        text(d.org.as_deref().unwrap_or_default()),
    );
    let config = job.private_file("configs", &config)?;
    let mut args = vec![
        "backup".to_owned(),
        format!("--configs-path={}", config.text()),
    ];
    args.extend(d.database.iter().map(|b| format!("--bucket={b}")));
    if d.skip_verify {
        args.push("--skip-verify".to_owned());
    }
    args.extend(d.args.iter().cloned());
    args.push(out.display().to_string());
    let program = Program::new(job.context.settings.program("influx")?, args);
    let (_, ended) = program.ask(job.context, "", Some(&out))?;
    job.ended("influx", &ended)?;
    partial::warn(job.context, job.database);
    let members = if out.is_dir() {
        // What it wrote is judged by its manifest, once all files are known.
        tree(job, &out, &job.at, |_, _| Ok(()))?
    } else {
        vec![]
    };
    let bad = |flaw: String| incomplete("influx", "its backup", Flaw::Broken(flaw));
    let mut manifest = vec![];
    let of_manifest = members.iter().find(|m| m.path().ends_with(".manifest"));
    let from = of_manifest
        .ok_or_else(|| bad("has no manifest".to_owned()))?
        .open();
    from.and_then(|from| from.take(LARGEST).read_to_end(&mut manifest))
        .map_err(|e| incomplete("influx", "its manifest", Flaw::Io(e)))?;
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let files = members
        .iter()
        .map(|m| (name(m.path()), m.bytes()))
        .collect();
    match crate::database::influxdb::manifest::flaw(&manifest, &files, d.database.as_deref()) {
        None => Ok(members),
        Some(flaw) => Err(bad(flaw)),
    }
}
