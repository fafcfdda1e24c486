//! etcd by `etcdctl snapshot save`.

use crate::database::dump::{DumpJob, file};
use crate::database::failures::explain;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::process::Program;

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let d = job.database;
    // A snapshot of a member that is away waits for it without end; this question does not.
    probe(job)?;
    let endpoint = d.host.clone().unwrap_or_default();
    let path = job.work.join(job.work_name("snapshot"));
    let mut args = vec![
        "snapshot".to_owned(),
        "save".to_owned(),
        path.display().to_string(),
    ];
    args.push(format!("--endpoints={endpoint}"));
    args.extend(d.args.iter().cloned());
    let mut program = Program::new(job.context.settings.program("etcdctl")?, args);
    program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
    let (_, ended) = program.ask(job.context, "", Some(&path))?;
    job.ended("etcdctl", &ended)?;
    // gobackup puts the file beside a directory of the Database's name.
    let name = endpoint
        .split_once("://")
        .map_or(endpoint.as_str(), |(_, rest)| rest)
        .replace('/', "_");
    Ok(vec![
        Member::Directory {
            path: job.at.clone(),
        },
        file(&path, (format!("{}-{name}", job.at), 0o600), |_, from| {
            crate::database::etcd::bolt::check(from)
        })?,
    ])
}

/// Asks the member for its state.
pub(crate) fn probe(job: &DumpJob<'_>) -> Result<(), Failure> {
    let d = job.database;
    let mut args = vec!["endpoint".to_owned(), "status".to_owned()];
    args.push(format!(
        "--endpoints={}",
        d.host.as_deref().unwrap_or_default()
    ));
    args.extend(d.args.iter().cloned());
    let mut program = Program::new(job.context.settings.program("etcdctl")?, args);
    program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
    let (_, ended) = program.ask(job.context, "", None)?;
    if ended.good() {
        return Ok(());
    }
    Err(explain("etcdctl", &ended))
}
