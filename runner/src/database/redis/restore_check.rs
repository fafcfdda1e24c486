//! Snapshots of Redis and Valkey: a server is started on the very file.

use crds::report::Reason;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use crate::database::restore_check::{RestoreCheck, find};
use crate::database::scratch::{Answer, Home, Server, Started, no_room};
use crate::failure::Failure;
use crate::process::Program;

/// More databases than any server is set to: one that is beyond stops the load.
const DATABASES: &str = "16384";

pub(crate) fn run(check: &RestoreCheck<'_>) -> Result<String, Failure> {
    let program = |names: &[&str]| {
        find(check.context, names).ok_or_else(|| check.lacks(names[0], "Redis or Valkey"))
    };
    let server = program(&["redis-server", "valkey-server"])?;
    let client = program(&["redis-cli", "valkey-cli"])?;
    let checker = program(&["redis-check-rdb", "valkey-check-rdb"])?;
    let home = Home::new(check.area, "redis", false)?;
    let file = home.path.join("dump.rdb");
    std::fs::rename(&check.dump.file, &file).map_err(|e| no_room(home.volume, &file, &e))?;
    let readable = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&file, readable).map_err(|e| no_room(home.volume, &file, &e))?;
    let socket = home.path.join("s");
    let mut command = home.command(&server);
    command
        .args(["--port", "0", "--unixsocketperm", "700", "--unixsocket"])
        .arg(&socket)
        .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        .args([
            "--databases",
            DATABASES,
            "--dbfilename",
            "dump.rdb",
            "--dir",
        ])
        .arg(&home.path);
    let mut running = Server::start(command, &home, Signal::KILL)?;
    let ask = |words: &[&str]| {
        let mut args = vec!["-s".to_owned(), socket.display().to_string()];
        args.extend(words.iter().map(|w| (*w).to_owned()));
        let (text, _) = Program::new(client.clone(), args).run(check.context, "")?;
        Ok::<_, Failure>(String::from_utf8_lossy(&text).into_owned())
    };
    let started = running.wait(check.context, &socket, || {
        Ok(match ask(&["PING"])?.trim() {
            "PONG" => Answer::Yes,
            text if text.starts_with("LOADING") => Answer::Busy,
            _ => Answer::No,
        })
    })?;
    if started == Started::Ended {
        // What it warns of, among all it says of its start.
        return Err(refused(check, &running.said_of(check.context, " # ")));
    }
    let there = keys(&ask(&["INFO", "keyspace"])?);
    let (read, expired) = counted(check, &checker, &file)?;
    // Keys whose time is up are no more loaded.
    if there > read || there + expired < read {
        return Err(Failure::new(
            Reason::RestoreDiffers,
            format!(
                "a restore of {} differs: {there} keys are there instead of {read}, {expired} of which have expired",
                check.what()
            ),
        ));
    }
    Ok(match read - there {
        0 => format!("{there} keys"),
        gone => format!("{there} keys, and {gone} that have expired"),
    })
}

/// Why the server ended: by what the snapshot is, or by what the server is.
fn refused(check: &RestoreCheck<'_>, said: &str) -> Failure {
    // Each of the two makers begins snapshots with its own name, which the other does not know.
    const OF_THE_SERVER: [&str; 4] = [
        "RDB format version",
        "no matching module",
        "Wrong signature",
        "Unknown RDB encoding type",
    ];
    if OF_THE_SERVER.iter().any(|words| said.contains(words)) {
        return check.unproven(
            &format!("the scratch server does not take this snapshot: {said}"),
            "set spec.job.clientImage to an image with the server of that version and its modules, or spec.job.verify.mode Checksum",
        );
    }
    // What it advises of the machine is no reason, and longer than one.
    let lines = said.split(" / ").filter(|line| !line.contains("WARNING"));
    let said = lines.collect::<Vec<_>>().join(" / ");
    check.bad(&format!("the server ended and said: {said}"))
}

/// `db0:keys=2,expires=1,avg_ttl=0`, a line for each database that has keys.
fn keys(text: &str) -> u64 {
    let count = |line: &str| {
        let (_, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
        rest.split(',').next()?.trim().parse::<u64>().ok()
    };
    text.lines().filter_map(count).sum()
}

/// Keys in the snapshot, and those whose time is up, as the checker reads it.
fn counted(check: &RestoreCheck<'_>, checker: &Path, file: &Path) -> Result<(u64, u64), Failure> {
    let program = Program::new(checker.to_owned(), [file.display().to_string()]);
    let (text, ended) = program.run(check.context, "")?;
    let text = String::from_utf8_lossy(&text);
    let number = |what: &str| {
        let line = text.lines().find(|l| l.ends_with(what))?;
        line.strip_prefix("[info] ")?
            .split(' ')
            .next()?
            .parse::<u64>()
            .ok()
    };
    match (
        ended.good(),
        number(" keys read"),
        number(" already expired"),
    ) {
        (true, Some(read), Some(expired)) => Ok((read, expired)),
        _ => Err(Failure::new(
            Reason::ScratchFailed,
            format!(
                "{} gave no number of keys: {}",
                program.name(),
                crate::database::scratch::last(check.context, text.as_bytes())
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_databases_are_counted() {
        let text =
            "# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=5\r\ndb30:keys=40,expires=0,avg_ttl=0\r\n";
        assert_eq!((keys(text), keys("# Keyspace\r\n")), (42, 0));
    }
}
