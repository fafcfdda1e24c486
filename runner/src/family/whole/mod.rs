//! Whether a file that a client wrote is whole, by its structure: one rule for each type of
//! database, for dumps that are made here, for those that gobackup made, and for what is verified.
//! Every check reads the file once, from its beginning to its end, in little memory.

mod bolt;
mod bson;
pub(super) mod influx;
mod pg_archive;

use std::io::{self, Read};

use crds::plan::Engine;

use super::dump::postgresql::is_text;
use super::rdb;
use super::script::Script;
use crate::dump_reader::DumpReader;

/// Bytes of a read.
const BUFFER: usize = 64 * 1024;
/// So much of a dump of PostgreSQL tells its format.
const HEAD: usize = 512;

/// Why a file is not what it has to be.
#[derive(Debug)]
pub(super) enum Flaw {
    /// It is not whole: what follows "the dump".
    Broken(String),
    /// It can't be read.
    Io(io::Error),
}

impl From<io::Error> for Flaw {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("ends too early".to_owned()),
            _ => Self::Io(e),
        }
    }
}

fn broken(what: impl Into<String>) -> Flaw {
    Flaw::Broken(what.into())
}

/// Reads a file of a dump of this type. `path` is its path in the dump: of MongoDB its ending says
/// what it is.
///
/// # Errors
/// It is not whole, or can't be read.
pub(super) fn check(engine: Engine, path: &str, from: &mut dyn Read) -> Result<(), Flaw> {
    match engine {
        Engine::Mysql | Engine::Mariadb => {
            let mut reader = DumpReader::default();
            each(from, |chunk| reader.feed(chunk))?;
            let summary = reader.finish();
            if summary.whole {
                Ok(())
            } else {
                Err(broken(summary.flaw))
            }
        }
        Engine::Postgresql => postgresql(from),
        Engine::Redis => redis(from),
        Engine::Etcd => bolt::check(from),
        Engine::Mongodb => bson::check(path, from),
        // What InfluxDB wrote is judged by its manifest, once all files are known.
        Engine::Influxdb2 | Engine::Mssql => Ok(()),
    }
}

/// Reads to the end.
fn each(from: &mut dyn Read, mut f: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => f(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// SQL, or one of pg_dump's own formats.
fn postgresql(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut head = vec![];
    from.take(HEAD as u64).read_to_end(&mut head)?;
    let mut all = head.as_slice().chain(from);
    if head.starts_with(b"PGDMP") {
        return pg_archive::custom(&mut all);
    }
    if !is_text(&head) {
        return pg_archive::tar(&mut all);
    }
    let mut script = Script::default();
    each(&mut all, |chunk| script.feed(chunk))?;
    script.flaw().map_or(Ok(()), |flaw| Err(broken(flaw)))
}

/// A snapshot of Redis or Valkey, read through to its end mark and checksum.
pub(super) fn redis(from: &mut dyn Read) -> Result<(), Flaw> {
    let of = |e: rdb::Error| match e {
        rdb::Error::Io(e) => Flaw::from(e),
        other => broken(format!("can't be read through: {other}")),
    };
    let mut reader = rdb::Reader::new(from, false).map_err(of)?;
    loop {
        match reader.next() {
            Ok(Some(_)) | Err(rdb::Error::TooLarge(_)) => {}
            Ok(None) => return Ok(()),
            Err(e) => return Err(of(e)),
        }
    }
}

/// Reads exactly so many bytes.
fn array<const N: usize>(from: &mut dyn Read) -> Result<[u8; N], Flaw> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Passes over exactly so many bytes.
fn pass(from: &mut dyn Read, bytes: u64) -> Result<(), Flaw> {
    let passed = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if passed == bytes {
        Ok(())
    } else {
        Err(broken("ends too early"))
    }
}

/// Nothing follows.
fn end(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut more = [0];
    match from.read(&mut more)? {
        0 => Ok(()),
        _ => Err(broken("goes on after its end")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    fn good(engine: Engine, path: &str, bytes: &[u8]) -> bool {
        check(engine, path, &mut &bytes[..]).is_ok()
    }

    /// Every beginning of a real file, and the file with half of itself after it.
    fn only_the_whole_is(engine: Engine, path: &str, bytes: &[u8]) {
        assert!(
            good(engine, path, bytes),
            "{path}: {:?}",
            check(engine, path, &mut &bytes[..])
        );
        // Near both ends at each byte, between them at so many that it stays quick.
        let step = bytes.len() / 500 + 1;
        let near = |at: &usize| *at < 700 || *at + 700 > bytes.len() || at.is_multiple_of(step);
        for cut in (0..bytes.len()).filter(near) {
            assert!(!good(engine, path, &bytes[..cut]), "{path} cut at {cut}");
        }
        let twice = [bytes, &bytes[..bytes.len() / 2]].concat();
        assert!(!good(engine, path, &twice), "{path} and half of it");
        let twice = [bytes, bytes].concat();
        assert!(
            !good(engine, path, &twice) || engine == Engine::Mongodb,
            "{path} twice"
        );
    }

    #[test]
    fn t4_formats_of_pg_dump_are_whole_to_their_last_byte_or_not_at_all() {
        let custom = include_bytes!("../../../tests/fixtures/closing-postgresql.custom");
        only_the_whole_is(Engine::Postgresql, "a.sql", custom);
        let tar = include_bytes!("../../../tests/fixtures/closing-postgresql.tar");
        only_the_whole_is(Engine::Postgresql, "a.sql", tar);
    }

    #[test]
    fn t4_a_snapshot_of_redis_without_checksum_is_read_through() {
        let whole = include_bytes!("../../../tests/fixtures/redis-7.rdb");
        only_the_whole_is(Engine::Redis, "dump.rdb", whole);
        let at = whole.len() - 8;
        let mut plain = whole.to_vec();
        plain[at..].fill(0);
        only_the_whole_is(Engine::Redis, "dump.rdb", &plain);
        // The end mark and eight zeros in the middle of a value close nothing.
        let mut cut = whole[..at / 2].to_vec();
        cut.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(!good(Engine::Redis, "dump.rdb", &cut));
    }
}
