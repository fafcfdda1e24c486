//! InfluxDB 2 by `influx backup`. The token is in a config file on memory.

use crate::failure::Failure;

use super::super::process::{Program, explain};
use super::super::settings::expose;
use super::super::spool::Member;
use super::{Dump, tree};

pub(super) fn dump(job: &Dump<'_>) -> Result<Vec<Member>, Failure> {
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
    let program = Program::new(Program::find(job.context, "influx")?, args);
    let (_, ended) = program.ask(job.context, "", Some(&out))?;
    if !ended.good() {
        return Err(explain("influx", &ended));
    }
    let members = if out.is_dir() {
        tree(&out, &job.at)?
    } else {
        vec![]
    };
    if !members.iter().any(|m| m.path().ends_with(".manifest")) {
        return Err(Failure::source(
            "IncompleteDump",
            "influx ended well but its backup has no manifest: it is not kept; run again",
        ));
    }
    Ok(members)
}
