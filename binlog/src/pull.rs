//! Pulls a server's log from what was stored last to its end.

use std::time::Duration;

use sha2::{Digest, Sha256};
use wire::{Connection, From};

use crate::check::{Check, Start};
use crate::cut::{Count, Cut, Join, Limits, Sink, Stop};
use crate::error::Error;
use crate::fault::{Break, Fault};
use crate::gtid::{Gtids, Set};
use crate::observe::observe;
use crate::plan::{First, Met, Plan, plan};
use crate::segment::{Cause, Link, Segment};

/// What is wanted.
#[derive(Debug)]
pub struct Request<'a> {
    /// What was stored last.
    pub last: Option<&'a Segment>,
    /// Where to begin if nothing was stored.
    pub first: First<'a>,
    /// As which replica the server is asked: no other may bear the number ([`replica`]).
    pub server_id: u32,
    /// When segments are closed.
    pub limits: Limits,
}

/// What was pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// What was cut.
    pub count: Count,
    /// The last segment that was stored now.
    pub last: Option<Segment>,
    /// The moment, by the server's clock, up to which all that was committed is stored now; `None` where that can't be said.
    pub seen: Option<u32>,
    /// Gaps that were found, in order. The first segment behind each says so too; where none has come yet, the gap is found
    /// again the next time.
    pub gaps: Vec<Cause>,
    /// Logs of others that were joined.
    pub joins: u64,
    /// Where the log was found not to be whole.
    pub broken: Option<Break>,
}

/// The number of a replica, made of what no two pullers share, such as an object's UID: in the upper half, where few
/// administrators number their servers.
#[must_use]
pub fn replica(of: &[u8]) -> u32 {
    let hash = Sha256::digest(of);
    let [a, b, c, d] = [hash[0], hash[1], hash[2], hash[3]];
    u32::from_be_bytes([a, b, c, d]) | 1 << 31
}

/// How often a log that changes meanwhile is looked at anew.
const ROUNDS: usize = 8;
/// The server can't send what was asked for (ER_MASTER_FATAL_ERROR_READING_BINLOG).
const REFUSED: u16 = 1236;

/// How reading a file ended.
enum End {
    /// At the end of the log; true if a transaction had begun.
    Whole(bool),
    Broken(Break),
    /// In the server's own words.
    Refused(String),
}

/// Pulls all that was not stored yet. `open` logs in; `clock` is the caller's, from any moment on. Whole transactions that came
/// before an error are stored: the sink has them.
///
/// # Errors
/// The server can't be reached or refuses, its log is off or encrypted, a segment can't be stored.
pub fn pull(
    open: &mut dyn FnMut() -> Result<Connection, wire::Error>,
    request: &Request<'_>,
    clock: &mut dyn FnMut() -> Duration,
    sink: &mut dyn Sink,
) -> Result<Pulled, Error> {
    let mut pulled = Pulled::default();
    let mut stored = request.last.cloned();
    let mut met: Option<Met> = None;
    let (mut refused, mut broken): (Option<String>, Option<Break>) = (None, None);
    for _ in 0..ROUNDS {
        let mut connection = open().map_err(|e| Error::wire("logging in", e))?;
        let (server, now) = observe(&mut connection)?;
        let previous = || stored.as_ref().map(Segment::digest).unwrap_or_default();
        let mut join = None;
        let (start, link) = match plan(stored.as_ref(), request.first, met.as_ref(), &server) {
            Plan::Off => return Err(Error::Off),
            Plan::Encrypted(file) => return Err(Error::Encrypted(file)),
            Plan::Wait => {
                pulled.broken = broken;
                return Ok(pulled);
            }
            Plan::Begin(file) => (beginning(file), Link::First),
            Plan::Continue(start) => {
                let previous = previous();
                (start, Link::Follows { previous })
            }
            Plan::Gap { cause, file } => {
                if pulled.gaps.last() != Some(&cause) {
                    pulled.gaps.push(cause);
                }
                let previous = previous();
                (beginning(file), Link::Gap { previous, cause })
            }
            Plan::Join(files) => {
                let Some(at) = stored.as_ref().map(|stored| stored.after.clone()) else {
                    return Err(Error::Off);
                };
                let Some(file) = holds(open, request.server_id, &files, &at, &server.purged)?
                else {
                    met = Some(Met::NotJoined);
                    continue;
                };
                join = Some(Join {
                    at,
                    ended: stored.as_ref().and_then(|stored| stored.ended),
                    beside: server.purged.clone(),
                });
                let previous = previous();
                (beginning(file), Link::Joins { previous })
            }
        };
        let joins = join.is_some();
        let mut cut = Cut::new(
            start.clone(),
            join,
            server.identity.clone(),
            link,
            request.limits,
        );
        let end = read(
            &mut connection,
            request.server_id,
            &start,
            &mut cut,
            clock,
            sink,
        )?;
        let came = cut.count();
        pulled.count.segments += came.segments;
        pulled.count.bytes += came.bytes;
        pulled.count.transactions += came.transactions;
        if let Some(last) = cut.last() {
            pulled.last = Some(last.clone());
            stored = pulled.last.clone();
            pulled.joins += u64::from(joins);
            (met, refused) = (None, None);
        }
        let lost = if joins { Met::NotJoined } else { Met::Replaced };
        match end {
            End::Whole(_) if !cut.is_joined() => met = Some(lost),
            End::Whole(begun) => {
                pulled.seen = (!begun).then_some(now);
                pulled.broken = broken;
                return Ok(pulled);
            }
            End::Broken(at) => match at.fault {
                Fault::Replaced => met = Some(Met::Replaced),
                Fault::NotJoined => met = Some(Met::NotJoined),
                Fault::Encrypted => return Err(Error::Encrypted(at.file)),
                Fault::NoChecksum => return Err(Error::Broken(at)),
                // Read twice, a log is believed to be broken.
                _ if broken.as_ref() == Some(&at) => met = Some(Met::Broken(at)),
                _ => broken = Some(at),
            },
            // Of two readers with one number the server ends the first: that says nothing of the log.
            End::Refused(words) if words.contains("same server_uuid") => {
                return Err(Error::Unsteady(words));
            }
            End::Refused(words) => {
                // Files may have been removed since they were listed. What is refused twice is not there.
                if refused.replace(words).is_some() && start.stored.is_some() {
                    met = Some(lost);
                }
            }
        }
    }
    match (broken, refused) {
        (Some(at), _) => Err(Error::Broken(at)),
        (None, words) => Err(Error::Unsteady(words.unwrap_or_default())),
    }
}

fn beginning(file: String) -> Start {
    Start {
        file,
        stored: None,
        gtids: None,
        ended: None,
    }
}

/// Says which checksums are understood, and which events. A server's own words are used by each family alone.
fn prepare(connection: &mut Connection) -> Result<(), wire::Error> {
    connection.execute(
        "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4",
    )?;
    Ok(())
}

/// Reads on until the end of the log.
fn read(
    connection: &mut Connection,
    server_id: u32,
    start: &Start,
    cut: &mut Cut,
    clock: &mut dyn FnMut() -> Duration,
    sink: &mut dyn Sink,
) -> Result<End, Error> {
    let outcome = take(connection, server_id, start, &mut |bytes, last| {
        cut.part(bytes, last, clock(), sink).map(|()| true)
    });
    if let Err(Halt::Stop(Stop::Sink(cause))) = outcome {
        return Err(Error::Sink(cause));
    }
    let begun = match cut.finish(sink) {
        Err(Stop::Sink(cause)) => return Err(Error::Sink(cause)),
        Err(Stop::Broken(at)) => return Ok(End::Broken(at)),
        Ok(begun) => begun,
    };
    match outcome {
        Ok(()) => Ok(End::Whole(begun)),
        Err(Halt::Stop(Stop::Broken(at))) => Ok(End::Broken(at)),
        Err(Halt::Stop(Stop::Sink(cause))) => Err(Error::Sink(cause)),
        Err(Halt::Wire(wire::Error::Server(e))) if e.number == REFUSED => Ok(End::Refused(e.text)),
        Err(Halt::Wire(cause)) => {
            let doing = format!("reading binary log {}", start.file);
            Err(Error::wire(doing, cause))
        }
    }
}

enum Halt {
    Wire(wire::Error),
    Stop(Stop),
}

/// Takes a part of an event, the last of it or not; false ends reading.
type Take<'a> = dyn FnMut(&[u8], bool) -> Result<bool, Stop> + 'a;

/// Gives each part of each event until the end of the log, or until `take` says false.
fn take(
    connection: &mut Connection,
    server_id: u32,
    start: &Start,
    take: &mut Take<'_>,
) -> Result<(), Halt> {
    prepare(connection).map_err(Halt::Wire)?;
    // The plan asks for no place beyond.
    let position = u32::try_from(start.position()).unwrap_or(u32::MAX);
    let from = From::Position(start.file.clone(), position);
    let mut events = connection
        .binlog(&from, server_id, false)
        .map_err(Halt::Wire)?;
    while let Some(part) = events.part().map_err(Halt::Wire)? {
        if !take(part.bytes, part.last).map_err(Halt::Stop)? {
            break;
        }
    }
    Ok(())
}

/// Of the files, the newest first, the one in which a log may come to where the stored one ended: the newest that begins
/// earlier.
fn holds(
    open: &mut dyn FnMut() -> Result<Connection, wire::Error>,
    server_id: u32,
    files: &[String],
    at: &Gtids,
    beside: &Set,
) -> Result<Option<String>, Error> {
    // What files begin with grows with their age: the first that is covered is searched by halves.
    let (mut from, mut to) = (0, files.len());
    while from < to {
        let middle = from + (to - from) / 2;
        let mut connection = open().map_err(|e| Error::wire("logging in", e))?;
        let start = beginning(files[middle].clone());
        let mut check = Check::new(start.clone());
        let outcome = take(&mut connection, server_id, &start, &mut |bytes, last| {
            check.part(bytes, last)?;
            Ok(check.gtids().is_none())
        });
        match outcome {
            Ok(()) => {}
            Err(Halt::Wire(cause)) => {
                let doing = format!("reading binary log {}", start.file);
                return Err(Error::wire(doing, cause));
            }
            Err(Halt::Stop(Stop::Broken(at))) if at.fault == Fault::Encrypted => {
                return Err(Error::Encrypted(at.file));
            }
            // Nothing is known of it: it is not taken.
            Err(Halt::Stop(_)) => return Ok(None),
        }
        // In it is the last of these transactions, not only what comes behind it.
        let earlier = |begins: &Gtids| at.covers(begins) && !begins.beside(beside).is_at(at);
        if check.gtids().is_some_and(earlier) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    Ok(files.get(from).cloned())
}
