//! Snapshots of etcd: restored into the data directory of a new member, as one would to start it.
//! The restore checks the snapshot's own hash; what came of it has to be of the same revision.

use crds::report::Reason;
use serde_json::Value;

use crate::database::restore_check::{RestoreCheck, find};
use crate::database::scratch::Home;
use crate::failure::Failure;
use crate::process::Program;

pub(crate) fn run(check: &RestoreCheck<'_>) -> Result<String, Failure> {
    // etcdctl has it before 3.6, etcdutl since 3.5.
    let program = find(check.context, &["etcdutl", "etcdctl"])
        .ok_or_else(|| check.lacks("etcdutl or etcdctl", "etcd"))?;
    let home = Home::new(check.area, "etcd", false)?;
    let (snapshot, data) = (check.dump.file.display(), home.path.join("data"));
    let call = |words: &[&str]| {
        let mut program = Program::new(program.clone(), words.iter().copied());
        program.env = vec![("ETCDCTL_API".to_owned(), "3".to_owned())];
        program.run(check.context, "")
    };
    let directory = format!("--data-dir={}", data.display());
    let (_, ended) = call(&["snapshot", "restore", &snapshot.to_string(), &directory])?;
    let said = ended.messages.last().map_or("nothing", String::as_str);
    if !ended.good() {
        let text = format!(
            "{} ended with {} and said: {said}",
            file_name(&program),
            ended.status_text()
        );
        return Err(
            if said.contains("no space left") || said.contains("unknown command") {
                check.unproven(&text, "give spec.job.verify.volume more space, or set spec.job.clientImage to an image with etcdutl")
            } else {
                check.bad(&text)
            },
        );
    }
    let status = |path: &str| {
        let (text, ended) = call(&["snapshot", "status", path, "--write-out=json"])?;
        let read = ended.good().then(|| parse(&text)).flatten();
        read.ok_or_else(|| {
            Failure::new(
                Reason::ScratchFailed,
                format!("{} tells no status of {path}", file_name(&program)),
            )
        })
    };
    let (revision, keys) = status(&snapshot.to_string())?;
    let (restored, _) = status(&data.join("member/snap/db").display().to_string())?;
    if restored != revision {
        return Err(Failure::new(
            Reason::RestoreDiffers,
            format!(
                "a restore of {} differs: it is of revision {restored} instead of {revision}",
                check.what()
            ),
        ));
    }
    Ok(format!("revision {revision}, {keys} entries"))
}

fn file_name(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Revision and number of entries.
fn parse(text: &[u8]) -> Option<(u64, u64)> {
    let value: Value = serde_json::from_slice(text).ok()?;
    Some((
        value.get("revision")?.as_u64()?,
        value.get("totalKey")?.as_u64()?,
    ))
}
