//! The data directory of a new member of etcd, made of a snapshot by etcd's own tool.

use crds::report::Reason;
use std::path::{Path, PathBuf};

use crate::database::restore::Job;
use crate::failure::Failure;
use crate::process::Program;

/// The program that makes a data directory: `etcdutl`, before 3.5 `etcdctl`.
pub(crate) fn tool(job: &Job<'_>) -> Result<PathBuf, Failure> {
    let found = job.context.settings.program("etcdutl");
    found.or_else(|_| job.context.settings.program("etcdctl"))
}

/// Makes the data directory of a new member; says at which revision it is.
pub(crate) fn make(
    job: &Job<'_>,
    tool: &Path,
    snapshot: &Path,
    data: &Path,
) -> Result<String, Failure> {
    let run = |args: Vec<String>| {
        let mut program = Program::new(tool.to_owned(), args);
        program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
        let (output, ended) = program.run(job.context, "")?;
        job.context.check()?;
        if ended.good() {
            return Ok(output);
        }
        Err(Failure::new(
            Reason::RestoreFailed,
            format!(
                "{} ended with {}: {}: check spec.to.etcd and the room on the volume",
                program.name(),
                ended.status_text(),
                ended.messages.join(" / ")
            ),
        ))
    };
    let text = |path: &Path| path.display().to_string();
    let words = |word: &str| vec!["snapshot".to_owned(), word.to_owned(), text(snapshot)];
    let mut args = words("restore");
    args.push(format!("--data-dir={}", text(data)));
    let etcd = &job.options.etcd;
    for (flag, value) in [
        ("name", &etcd.name),
        ("initial-cluster", &etcd.initial_cluster),
        ("initial-cluster-token", &etcd.initial_cluster_token),
        (
            "initial-advertise-peer-urls",
            &etcd.initial_advertise_peer_urls,
        ),
    ] {
        args.extend(value.as_ref().map(|value| format!("--{flag}={value}")));
    }
    run(args)?;
    for made in ["member/snap/db", "member/wal"] {
        if !data.join(made).exists() {
            return Err(Failure::new(
                Reason::RestoreIncomplete,
                format!(
                    "the tool ended well and made no {made}; what the target held is untouched"
                ),
            ));
        }
    }
    let mut args = words("status");
    args.push("--write-out=json".to_owned());
    let status: serde_json::Value = serde_json::from_slice(&run(args)?).unwrap_or_default();
    Ok(match status["revision"].as_u64() {
        Some(revision) => format!(" at revision {revision}"),
        None => String::new(),
    })
}
