//! What gobackup stored, read back: it is the archive that was packed, it opens to its end, and it
//! holds a complete dump of every Database.

use crds::report::Reason;
use std::collections::BTreeMap;
use std::io::{self, Read};

use crds::plan::{Database, DatabaseType};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::backup::open::{self, Closed};
use crate::backup::record;
use crate::backup::target::Target;
use crate::database::complete;
use crate::database::flaw::Flaw;
use crate::database::influxdb::manifest;
use crate::database::mysql::dump_reader::{DumpReader, Summary};
use crate::database::spool::{Member, Spooled};
use crate::failure::Failure;
use crate::gobackup::config::{endpoint, type_of};
use crate::gobackup::shims::Made;
use crate::settings::plan::BackupSettings;
use crate::stream::checksum::{Stored, hex};
use crate::stream::measured::Measured;

/// Zeros that end a tar.
const END: usize = 1024;
/// Ends the name of the manifest of InfluxDB's backup.
const MANIFEST: &str = ".manifest";
/// Largest of them that is read.
const LARGEST: usize = 256 << 20;

/// What an archive holds.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Its files.
    pub(crate) members: Vec<Member>,
    /// Tables in dumps of MySQL and MariaDB.
    pub(crate) tables: u64,
    /// Rows in them.
    pub(crate) rows: u64,
}

/// Reads the run's archive back from a storage; `None` if it is not there.
///
/// # Errors
/// It is not what was packed, is damaged, lacks a dump, or can't be read.
pub(crate) fn read_back(
    backup: &BackupSettings,
    target: &Target,
    made: &Made,
) -> Result<Option<(String, Content)>, Failure> {
    let key = record::join(&target.path, &made.name);
    let Some(stored) = target.store.open(&key)? else {
        return Ok(None);
    };
    let stored = Measured::new(stored);
    let packed = Stored {
        bytes: made.bytes,
        sha256: made.sha256.clone(),
    };
    // The whole is compared first: of what differs, nothing else is worth saying.
    let content = content(backup, &key, &stored);
    compare(&key, &stored.whole(&key)?, &packed)?;
    let content = content?;
    Ok(Some((key, content)))
}

/// What is stored is what was packed.
fn compare(key: &str, stored: &Stored, packed: &Stored) -> Result<(), Failure> {
    if stored == packed {
        return Ok(());
    }
    Err(Failure::new(
        Reason::ReadBackDiffers,
        format!(
            "{key}: gobackup packed {} bytes with SHA-256 {} and said that it stored them, {} with {} read back; it is not kept: check the store's health, then run again",
            packed.bytes, packed.sha256, stored.bytes, stored.sha256
        ),
    ))
}

/// Every file of the archive, and that each Database's are complete.
fn content(backup: &BackupSettings, key: &str, stored: &Measured) -> Result<Content, Failure> {
    let encrypt = backup.plan.encrypt.as_ref();
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
        Failure::new(
            Reason::ArchiveDamaged,
            format!("{key} can't be unpacked: {e}"),
        )
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
    if !tar.ends_in_zeros(END) {
        return Err(damaged(&"it has no end"));
    }
    let mut content = Content::default();
    for database in &backup.plan.databases {
        dumped(&backup.plan.model, database, &files)?;
    }
    for (path, file) in files {
        content.tables += file.sql.as_ref().map_or(0, |s| s.tables.len() as u64);
        content.rows += file.sql.as_ref().map_or(0, Summary::rows);
        content.members.push(file.into_member(path));
    }
    Ok(content)
}

/// The Database's files are there and end as they should.
fn dumped(
    model: &str,
    database: &Database<SecretString>,
    files: &BTreeMap<String, File>,
) -> Result<(), Failure> {
    let at = format!(
        "{model}/{}/{}",
        type_of(database.database_type),
        database.directory()
    );
    let of = |name: &str| files.get(&format!("{at}/{name}"));
    let missing = || {
        Failure::new(
            Reason::IncompleteDump,
            format!(
                "Database {}: gobackup ended well, but its archive holds no dump below {at}: it is not kept; look at gobackup's log above, and set spec.job.image to a gobackup that knows the type",
                database.name
            ),
        )
    };
    let cut = |what: &str| {
        Failure::new(
            Reason::IncompleteDump,
            format!(
                "Database {}: gobackup ended well, but its dump below {at} {what}: it is not kept; run again",
                database.name
            ),
        )
    };
    let name = database.database.as_deref();
    let below = format!("{at}/");
    let own = || files.iter().filter(|(path, _)| path.starts_with(&below));
    let single = match database.database_type {
        DatabaseType::Mysql | DatabaseType::Mariadb => {
            of(&format!("{}.sql", name.unwrap_or("all-databases")))
        }
        DatabaseType::Postgresql => of(&format!("{}.sql", name.unwrap_or("all_databases"))),
        DatabaseType::Redis => of("dump.rdb"),
        DatabaseType::Etcd => {
            let host = database.host.as_deref().unwrap_or_default();
            files.get(&format!("{at}-{}", endpoint(host)))
        }
        DatabaseType::Mongodb | DatabaseType::Influxdb2 | DatabaseType::Mssql => {
            own().map(|(_, file)| file).find(|f| f.spooled.bytes > 0)
        }
    };
    let single = single.ok_or_else(missing)?;
    let flawed = own().find_map(|(path, file)| Some((path, file.flaw.as_ref()?)));
    if let Some((path, flaw)) = flawed {
        let file = path.strip_prefix(&below).unwrap_or(path);
        return Err(cut(&format!("{flaw} ({file})")));
    }
    if let Some(flaw) = &single.flaw {
        return Err(cut(flaw));
    }
    if database.database_type == DatabaseType::Influxdb2 {
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let sizes = own()
            .map(|(path, f)| (base(path), f.spooled.bytes))
            .collect();
        let manifest = own().find(|(path, _)| path.ends_with(MANIFEST));
        let (_, manifest) = manifest.ok_or_else(|| cut("has no manifest"))?;
        if let Some(flaw) = manifest::flaw(&manifest.text, &sizes, name) {
            return Err(cut(&flaw));
        }
    }
    Ok(())
}

/// One file of an archive.
#[derive(Default)]
struct File {
    spooled: Spooled,
    sql: Option<Summary>,
    /// Why it is not whole.
    flaw: Option<String>,
    /// Its text, of a manifest.
    text: Vec<u8>,
}

impl File {
    fn read(path: &str, from: impl Read) -> io::Result<Self> {
        let database_type = path.split('/').nth(1).and_then(DatabaseType::parse);
        let mysql = path.split('/').nth(1) == Some(type_of(DatabaseType::Mysql));
        let mut seen = Seen {
            from,
            hash: Sha256::new(),
            spooled: Spooled::default(),
            text: path.ends_with(MANIFEST).then(Vec::new),
            sql: mysql.then(DumpReader::default),
        };
        let database_type = database_type.filter(|_| !mysql);
        let checked =
            database_type.map(|database_type| complete::check(database_type, path, &mut seen));
        let flaw = match checked {
            Some(Err(Flaw::Io(e))) => return Err(e),
            Some(Err(Flaw::Broken(flaw))) => Some(flaw),
            Some(Ok(())) | None => None,
        };
        io::copy(&mut seen, &mut io::sink())?;
        let sql = seen.sql.map(DumpReader::finish);
        let of_sql = sql.as_ref().filter(|s| !s.whole).map(|s| s.flaw.to_owned());
        seen.spooled.sha256 = hex(&seen.hash.finalize());
        Ok(Self {
            spooled: seen.spooled,
            flaw: flaw.or(of_sql),
            sql,
            text: seen.text.unwrap_or_default(),
        })
    }

    fn into_member(self, path: String) -> Member {
        self.spooled.into_member(path)
    }
}

/// A file as it is read by who checks it.
struct Seen<R> {
    from: R,
    hash: Sha256,
    spooled: Spooled,
    text: Option<Vec<u8>>,
    sql: Option<DumpReader>,
}

impl<R: Read> Read for Seen<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        let chunk = &buffer[..n];
        self.hash.update(chunk);
        self.spooled.bytes += n as u64;
        if let Some(sql) = &mut self.sql {
            sql.feed(chunk);
        }
        if let Some(text) = self.text.as_mut().filter(|t| t.len() <= LARGEST) {
            text.extend_from_slice(chunk);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn t4_a_file_that_is_cut_is_known_whatever_it_is_of() {
        let sql = include_bytes!("../../tests/fixtures/closing-mariadb-10.11.sql");
        let rdb = include_bytes!("../../tests/fixtures/redis-7.rdb");
        let custom = include_bytes!("../../tests/fixtures/closing-postgresql.custom");
        let bson: &[u8] = b"\x05\0\0\0\0";
        let all: [(&str, &[u8]); 4] = [
            ("m/mysql/a/a.sql", sql),
            ("m/redis/r/dump.rdb", rdb),
            ("m/postgresql/p/p.sql", custom),
            ("m/mongodb/d/app/t.bson", bson),
        ];
        for (path, bytes) in all {
            let whole = File::read(path, bytes).unwrap();
            assert_eq!(
                (whole.flaw, whole.spooled.bytes),
                (None, bytes.len() as u64),
                "{path}"
            );
            let cut = File::read(path, &bytes[..bytes.len() - 1]).unwrap();
            assert!(cut.flaw.is_some(), "{path}");
            // What stands after a flaw is read all the same: its sum is that of the whole file.
            assert_eq!(cut.spooled.bytes + 1, bytes.len() as u64, "{path}");
        }
    }
}
