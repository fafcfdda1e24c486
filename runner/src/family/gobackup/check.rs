//! What gobackup stored, read back: it is the archive that was packed, it opens to its end, and it
//! holds a complete dump of every Database.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crds::gobackup::plan::{Database, Engine};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use super::super::dump::{postgresql, redis};
use super::super::open::{self, Closed};
use super::super::settings::Family;
use super::super::spool::{Member, Spooled, keep_head, keep_tail};
use super::super::state;
use super::super::storages::Target;
use super::client::Made;
use super::config::{endpoint, type_of};
use crate::dump_reader::{DumpReader, Summary};
use crate::failure::Failure;
use crate::pipeline::{Stored, hex};

/// Zeros that end a tar.
const END: usize = 1024;
/// Bytes of the hash at the end of a snapshot of etcd.
const ETCD_HASH: usize = 32;

/// What an archive holds.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Its files.
    pub(super) members: Vec<Member>,
    /// Tables in dumps of MySQL and MariaDB.
    pub(super) tables: u64,
    /// Rows in them.
    pub(super) rows: u64,
}

/// Reads the run's archive back from a storage; `None` if it is not there.
///
/// # Errors
/// It is not what was packed, is damaged, lacks a dump, or can't be read.
pub(super) fn read_back(
    family: &Family,
    target: &Target,
    made: &Made,
) -> Result<Option<(String, Content)>, Failure> {
    let key = state::join(&target.path, &made.name);
    let Some(stored) = target.store.open(&key)? else {
        return Ok(None);
    };
    let stored = Measured::new(stored);
    let packed = Stored {
        bytes: made.bytes,
        sha256: made.sha256.clone(),
    };
    // The whole is compared first: of what differs, nothing else is worth saying.
    let content = content(family, &key, &stored);
    stored.compare(&key, &packed)?;
    let content = content?;
    Ok(Some((key, content)))
}

/// Every file of the archive, and that each Database's are complete.
fn content(family: &Family, key: &str, stored: &Measured) -> Result<Content, Failure> {
    let encrypt = family.plan.encrypt.as_ref();
    let tar = match open::tar(Box::new(stored.clone()), key, encrypt, None)? {
        Ok(tar) => tar,
        Err(Closed::NoIdentity | Closed::NoDecoder) => {
            return Err(Failure::settings(format!(
                "{key} can't be looked into: set spec.job.engine: native"
            )));
        }
    };
    let tar = Measured::new(tar);
    let damaged = |e: &dyn std::fmt::Display| {
        Failure::verification("ArchiveDamaged", format!("{key} can't be unpacked: {e}"))
    };
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(tar.clone());
    for entry in archive.entries().map_err(|e| damaged(&e))? {
        let mut entry = entry.map_err(|e| damaged(&e))?;
        let path = entry.path().map_err(|e| damaged(&e))?.display().to_string();
        if entry.header().entry_type().is_file() {
            let file = File::read(&path, &mut entry).map_err(|e| damaged(&e))?;
            files.insert(path.trim_start_matches("./").to_owned(), file);
        }
    }
    // Readers of compressed bytes may not have met the end that holds their checksum.
    io::copy(&mut tar.clone(), &mut io::sink()).map_err(|e| damaged(&e))?;
    if !tar.ends_in_zeros() {
        return Err(damaged(&"it has no end"));
    }
    let mut content = Content::default();
    for database in &family.plan.databases {
        complete(&family.plan.model, database, &files)?;
    }
    for (path, file) in files {
        content.tables += file.sql.as_ref().map_or(0, |s| s.tables.len() as u64);
        content.rows += file.sql.as_ref().map_or(0, Summary::rows);
        content.members.push(file.into_member(path));
    }
    Ok(content)
}

/// The Database's files are there and end as they should.
fn complete(
    model: &str,
    database: &Database<SecretString>,
    files: &BTreeMap<String, File>,
) -> Result<(), Failure> {
    let at = format!("{model}/{}/{}", type_of(database.engine), database.name);
    let of = |name: &str| files.get(&format!("{at}/{name}"));
    let missing = || {
        Failure::source(
            "IncompleteDump",
            format!(
                "Database {}: gobackup ended well, but its archive holds no dump below {at}: it is not kept; look at gobackup's log above, and set spec.job.image to a gobackup that knows the type",
                database.name
            ),
        )
    };
    let cut = |what: &str| {
        Failure::source(
            "IncompleteDump",
            format!(
                "Database {}: gobackup ended well, but its dump below {at} {what}: it is not kept; run again",
                database.name
            ),
        )
    };
    let name = database.database.as_deref();
    match database.engine {
        Engine::Mysql | Engine::Mariadb => {
            let file = of(&format!("{}.sql", name.unwrap_or("all-databases")));
            let sql = file.ok_or_else(missing)?.sql.as_ref();
            if !sql.is_some_and(|s| s.footer) {
                return Err(cut("has no closing line"));
            }
        }
        Engine::Postgresql => {
            let file = of(&format!("{}.sql", name.unwrap_or("all_databases")));
            if !postgresql::complete(&file.ok_or_else(missing)?.spooled) {
                return Err(cut("has no closing line"));
            }
        }
        Engine::Redis => {
            let file = of("dump.rdb").ok_or_else(missing)?;
            redis::check(&file.spooled, &file.crc).map_err(|e| Failure {
                message: format!("Database {}: {}", database.name, e.message),
                ..e
            })?;
        }
        Engine::Etcd => {
            let host = database.host.as_deref().unwrap_or_default();
            let file = files.get(&format!("{at}-{}", endpoint(host)));
            if !file.ok_or_else(missing)?.etcd.good() {
                return Err(cut("has another checksum than it says"));
            }
        }
        Engine::Mongodb | Engine::Influxdb2 | Engine::Mssql => {
            let below = format!("{at}/");
            let mut own = files.iter().filter(|(path, _)| path.starts_with(&below));
            if !own.any(|(_, file)| file.spooled.bytes > 0) {
                return Err(missing());
            }
        }
    }
    Ok(())
}

/// One file of an archive.
struct File {
    spooled: Spooled,
    sql: Option<Summary>,
    crc: redis::Crc64,
    etcd: EtcdSum,
}

impl File {
    fn read(path: &str, mut from: impl Read) -> io::Result<Self> {
        let mut file = Self {
            spooled: Spooled::default(),
            sql: None,
            crc: redis::Crc64::new(),
            etcd: EtcdSum::default(),
        };
        let mysql = path.split('/').nth(1) == Some(type_of(Engine::Mysql));
        let mut sql = mysql.then(DumpReader::default);
        let rdb = path.ends_with(".rdb");
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let chunk = &buffer[..n];
            hash.update(chunk);
            if let Some(sql) = &mut sql {
                sql.feed(chunk);
            } else if rdb {
                file.crc.feed(chunk);
            } else {
                file.etcd.feed(chunk);
            }
            keep_head(&mut file.spooled.head, chunk);
            keep_tail(&mut file.spooled.tail, chunk);
            file.spooled.bytes += n as u64;
        }
        file.spooled.sha256 = hex(&hash.finalize());
        file.sql = sql.map(DumpReader::finish);
        Ok(file)
    }

    fn into_member(self, path: String) -> Member {
        self.spooled.into_member(path)
    }
}

/// The SHA-256 that a snapshot of etcd ends with is that of what is before it.
#[derive(Default)]
struct EtcdSum {
    hash: Sha256,
    held: Vec<u8>,
}

impl EtcdSum {
    fn feed(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
        let ready = self.held.len().saturating_sub(ETCD_HASH);
        self.hash.update(&self.held[..ready]);
        self.held.drain(..ready);
    }

    fn good(&self) -> bool {
        self.held.as_slice() == self.hash.clone().finalize().as_slice()
    }
}

/// A reader that measures what it gives, shared by who reads and who asks.
#[derive(Clone)]
struct Measured(Arc<Mutex<Measuring>>);

struct Measuring {
    source: Box<dyn Read + Send>,
    hash: Sha256,
    bytes: u64,
    tail: Vec<u8>,
    failed: Option<Failure>,
}

impl Measured {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self(Arc::new(Mutex::new(Measuring {
            source,
            hash: Sha256::new(),
            bytes: 0,
            tail: vec![],
            failed: None,
        })))
    }

    /// All of it, what nobody read yet included, is what was packed.
    fn compare(&self, key: &str, packed: &Stored) -> Result<(), Failure> {
        let read = io::copy(&mut self.clone(), &mut io::sink());
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &inner.failed {
            return Err(failure.clone());
        }
        if let Err(e) = read {
            return Err(Failure::store(
                "NotReadBack",
                format!("{key} could not be read back: {e}"),
            ));
        }
        let sha256 = hex(&inner.hash.clone().finalize());
        if (inner.bytes, &sha256) == (packed.bytes, &packed.sha256) {
            return Ok(());
        }
        Err(Failure::verification(
            "ReadBackDiffers",
            format!(
                "{key}: gobackup packed {} bytes with SHA-256 {} and said that it stored them, {} with {sha256} read back; it is not kept: check the store's health, then run again",
                packed.bytes, packed.sha256, inner.bytes
            ),
        ))
    }

    fn ends_in_zeros(&self) -> bool {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = &inner.tail;
        tail.len() >= END && tail[tail.len() - END..].iter().all(|b| *b == 0)
    }
}

impl Read for Measured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let n = match inner.source.read(buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                let text = e.to_string();
                // What a store says of itself is kept, whatever the layers above make of it.
                inner.failed = e.downcast::<Failure>().ok();
                return Err(io::Error::other(text));
            }
        };
        inner.hash.update(&buffer[..n]);
        inner.bytes += n as u64;
        keep_tail(&mut inner.tail, &buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_snapshot_of_etcd_carries_its_checksum() {
        let mut whole = vec![7; 1000];
        whole.extend(Sha256::digest(&whole));
        let sum = |data: &[u8]| {
            let mut sum = EtcdSum::default();
            data.chunks(13).for_each(|chunk| sum.feed(chunk));
            sum.good()
        };
        assert!(sum(&whole));
        assert!(!sum(&whole[..whole.len() - 1]));
        whole[5] ^= 1;
        assert!(!sum(&whole));
    }
}
