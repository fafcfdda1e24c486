//! Redis and Valkey: a snapshot over the network by `redis-cli --rdb`, or a mounted dump.rdb. Its
//! end and its checksum are verified as the server would at start.

use crds::report::{Reason, exit};
use std::fs::File;

use crate::database::dump::{DumpJob, incomplete};
use crate::database::failures::explain;
use crate::database::flaw::Flaw;
use crate::database::partial;
use crate::database::redis::crc64::Crc64;
use crate::database::spool::{Member, Spooled, spool};
use crate::failure::Failure;
use crate::process::Program;
use crate::settings::plan::expose;

/// Name in the archive.
const NAME: &str = "dump.rdb";

pub(crate) fn dump(job: &DumpJob<'_>) -> Result<Vec<Member>, Failure> {
    let mut crc = Crc64::new();
    let spooled = match &job.database.copy_from {
        Some(path) => {
            let file = File::open(path).map_err(|e| {
                Failure::at(
                    exit::SOURCE,
                    Reason::NotFound,
                    format!("{path} can't be read: {e}; check config.rdb_path and the volume"),
                )
            })?;
            spool(job.context, job.work, &job.work_name(NAME), file, |c| {
                crc.feed(c)
            })?
        }
        None => over_the_network(job, &mut crc)?,
    };
    let summed = check(&spooled, &crc)?;
    partial::warn(job.context, job.database);
    let bytes = spooled.bytes;
    let member = spooled.into_member(format!("{}/{NAME}", job.at));
    if !summed {
        let bad = |flaw| incomplete("redis-cli", &format!("its snapshot of {bytes} bytes"), flaw);
        let mut from = member.open().map_err(|e| bad(Flaw::Io(e)))?;
        crate::database::redis::rdb::check(&mut from).map_err(bad)?;
    }
    Ok(vec![member])
}

/// Logs in, or finds the mounted file.
pub(crate) fn probe(job: &DumpJob<'_>) -> Result<(), Failure> {
    if let Some(path) = &job.database.copy_from {
        return File::open(path).map(drop).map_err(|e| {
            Failure::at(
                exit::SOURCE,
                Reason::NotFound,
                format!("{path} can't be read: {e}; check config.rdb_path and the volume"),
            )
        });
    }
    let (mut args, input) = server(job);
    args.push("PING".to_owned());
    let program = Program::new(job.context.settings.program("redis-cli")?, args);
    let (output, mut ended) = program.ask(job.context, &input, None)?;
    let said = String::from_utf8_lossy(&output).trim().to_owned();
    if ended.good() && said.ends_with("PONG") {
        return Ok(());
    }
    // The client says a refusal on its standard output and ends well.
    ended.messages.push(job.context.scrub.clean(&said));
    Err(explain("redis-cli", &ended))
}

/// Where the server is and who logs in, and what is written to the client's input for it.
fn server(job: &DumpJob<'_>) -> (Vec<String>, String) {
    let d = job.database;
    let mut args: Vec<String> = vec![];
    match &d.socket {
        Some(socket) => args.extend(["-s".to_owned(), socket.clone()]),
        None => {
            args.extend(["-h".to_owned(), d.host.clone().unwrap_or_default()]);
            args.extend(["-p".to_owned(), d.port.unwrap_or(6379).to_string()]);
        }
    }
    if let Some(user) = expose(d.username.as_ref()) {
        args.extend(["--user".to_owned(), user.to_owned()]);
    }
    let password = expose(d.password.as_ref());
    // Read from standard input: neither argv nor environment holds it.
    args.extend(password.map(|_| "--askpass".to_owned()));
    args.extend(d.args.iter().cloned());
    let input = password.map(|p| format!("{p}\n")).unwrap_or_default();
    (args, input)
}

fn over_the_network(job: &DumpJob<'_>, crc: &mut Crc64) -> Result<Spooled, Failure> {
    let (mut args, input) = server(job);
    let fifo = job.work.join(job.work_name("rdb"));
    args.extend(["--rdb".to_owned(), fifo.display().to_string()]);
    let program = Program::new(job.context.settings.program("redis-cli")?, args);
    // The server writes its snapshot before it sends the first byte.
    let idle = job.context.cancel.idle().map(|idle| idle * 6);
    let (_, ended) = program.run_within(job.context, &input, idle, Some(&fifo))?;
    job.ended("redis-cli", &ended)?;
    let opened = File::open(&fifo).map_err(|e| {
        let said = ended.messages.join(" / ");
        Failure::new(
            Reason::IncompleteDump,
            format!("redis-cli ended well but left no file ({e}): {said}"),
        )
    })?;
    let spooled = spool(job.context, job.work, &job.work_name(NAME), opened, |c| {
        crc.feed(c)
    });
    let _ = std::fs::remove_file(&fifo);
    spooled
}

/// `REDIS`, a version, …, 0xFF, and eight bytes of CRC-64. They are all zero if the server makes none,
/// and not there before version 5: then `false` is given, and only reading it through tells.
///
/// # Errors
/// It is no snapshot, or not a whole one.
pub(crate) fn check(spooled: &Spooled, crc: &Crc64) -> Result<bool, Failure> {
    let incomplete = |what: &str| {
        Err(Failure::new(
            Reason::IncompleteDump,
            format!(
                "the snapshot of {} bytes {what}: it is not kept; run again",
                spooled.bytes
            ),
        ))
    };
    if !spooled.head.starts_with(b"REDIS") && !spooled.head.starts_with(b"VALKEY") {
        return incomplete("does not begin like one");
    }
    let version = spooled
        .head
        .get(5..9)
        .and_then(|d| std::str::from_utf8(d).ok());
    if version
        .and_then(|v| v.parse::<u32>().ok())
        .is_some_and(|v| v < 5)
    {
        return Ok(false);
    }
    let Some((body, sum)) = spooled.tail.split_last_chunk::<8>() else {
        return incomplete("is too short");
    };
    if body.last() != Some(&0xff) {
        return incomplete("has no end mark");
    }
    let sum = u64::from_le_bytes(*sum);
    if sum != 0 && sum != crc.value() {
        return incomplete("has another checksum than it says");
    }
    Ok(sum != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_cut_snapshot_is_seen() {
        let body = b"REDIS0009\xff";
        let mut crc = Crc64::new();
        crc.feed(body);
        crc.feed(&[0; 8]);
        let whole: Vec<u8> = body
            .iter()
            .copied()
            .chain(crc.value().to_le_bytes())
            .collect();
        let spooled = |data: &[u8]| Spooled {
            bytes: data.len() as u64,
            head: data.to_vec(),
            tail: data.to_vec(),
            ..Spooled::default()
        };
        assert_eq!(check(&spooled(&whole), &crc), Ok(true));
        let failure = check(&spooled(&whole[..whole.len() - 1]), &crc).unwrap_err();
        assert_eq!(
            (failure.exit_code, failure.reason.as_str()),
            (3, "IncompleteDump")
        );
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(check(&spooled(&flipped), &crc).is_err());
    }
}
