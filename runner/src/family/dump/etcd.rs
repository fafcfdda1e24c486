//! etcd by `etcdctl snapshot save`. A snapshot ends with the SHA-256 of what is before it.

use std::fs::File;
use std::io::Read;

use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::pipeline::hex;

use super::super::process::{Program, explain};
use super::super::spool::Member;
use super::Dump;

/// Bytes of the hash at the end.
const HASH: u64 = 32;

pub(super) fn dump(job: &Dump<'_>) -> Result<Vec<Member>, Failure> {
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
    let mut program = Program::new(Program::find(job.context, "etcdctl")?, args);
    program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
    let (_, ended) = program.ask(job.context, "", Some(&path))?;
    if !ended.good() {
        return Err(explain("etcdctl", &ended));
    }
    let (bytes, sha256) = check(&path)?;
    // gobackup puts the file beside a directory of the Database's name.
    let name = endpoint
        .split_once("://")
        .map_or(endpoint.as_str(), |(_, rest)| rest)
        .replace('/', "_");
    Ok(vec![
        Member::Directory {
            path: job.at.clone(),
        },
        Member::File {
            path: format!("{}-{name}", job.at),
            spool: path,
            compressed: false,
            bytes,
            sha256,
            mode: 0o600,
            server: None,
            holds: None,
        },
    ])
}

/// Asks the member for its state.
pub(super) fn probe(job: &Dump<'_>) -> Result<(), Failure> {
    let d = job.database;
    let mut args = vec!["endpoint".to_owned(), "status".to_owned()];
    args.push(format!(
        "--endpoints={}",
        d.host.as_deref().unwrap_or_default()
    ));
    args.extend(d.args.iter().cloned());
    let mut program = Program::new(Program::find(job.context, "etcdctl")?, args);
    program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
    let (_, ended) = program.ask(job.context, "", None)?;
    if ended.good() {
        return Ok(());
    }
    Err(explain("etcdctl", &ended))
}

/// Length and SHA-256 of the file, if its own hash is right.
fn check(path: &std::path::Path) -> Result<(u64, String), Failure> {
    let broken = |what: String| {
        Failure::source(
            "IncompleteDump",
            format!("the snapshot {what}: it is not kept; run again"),
        )
    };
    let mut file = File::open(path).map_err(|e| broken(format!("is not there ({e})")))?;
    let bytes = file
        .metadata()
        .map_err(|e| broken(format!("can't be read ({e})")))?
        .len();
    if bytes <= HASH || bytes % 512 != HASH {
        return Err(broken(format!(
            "of {bytes} bytes has no checksum at its end"
        )));
    }
    let (mut own, mut whole) = (Sha256::new(), Sha256::new());
    let mut left = bytes - HASH;
    let mut buffer = vec![0; 256 * 1024];
    let mut end = vec![];
    loop {
        let n = file
            .read(&mut buffer)
            .map_err(|e| broken(format!("can't be read ({e})")))?;
        if n == 0 {
            break;
        }
        whole.update(&buffer[..n]);
        let body = usize::try_from(left).map_or(n, |l| l.min(n));
        own.update(&buffer[..body]);
        left -= body as u64;
        end.extend_from_slice(&buffer[body..n]);
    }
    if own.finalize().as_slice() != end.as_slice() {
        return Err(broken("has another checksum than it says".to_owned()));
    }
    Ok((bytes, hex(&whole.finalize())))
}
