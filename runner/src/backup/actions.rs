//! The archives of a Backup on one storage, as they are listed, verified and pruned; and Probe.

use std::collections::BTreeMap;
use std::io::Read;

use crds::parts::Retention;
use crds::report::{EndpointKind, Reason};

use crate::artefact::{self, Artefacts, KnownArtefact, Listed, on_storage};
use crate::backup::found::{Found, identity, whole_reader};
use crate::backup::open::{self, Closed};
use crate::backup::record::{self, Record};
use crate::backup::target::StoredArchives;
use crate::backup::{others, restore_check, retention, storages};
use crate::context::Context;
use crate::database::restore_check::not_verified;
use crate::failure::Failure;
use crate::retention::{Candidates, Records};
use crate::settings::plan::BackupSettings;
use crate::store::Store;
use crate::stream::checksum::{self, Stored};

impl Artefacts for StoredArchives<'_> {
    type Artefact = Found;

    fn context(&self) -> &Context {
        self.context
    }

    fn store(&self) -> &dyn Store {
        self.target.store.as_ref()
    }

    fn storage(&self) -> Option<&str> {
        Some(&self.target.name)
    }

    fn records(&self) -> Records {
        record::records(record::directory(self.context, &self.target.path))
    }

    fn others(&self) -> Result<Vec<KnownArtefact>, Failure> {
        others::list(self)
    }

    fn read(&self, known: &KnownArtefact) -> Result<Option<Found>, Failure> {
        let record = others::record(self.store(), known)?;
        Ok(record.map(|record| Found {
            on: self.target.clone(),
            record,
        }))
    }

    fn details(&self, found: &Found) -> Listed {
        let record = &found.record;
        let encryption = match open::codec_of(&record.key) {
            Some((_, true, _)) => "openssl",
            Some((_, _, true)) => "age",
            _ => "",
        };
        Listed {
            encryption: encryption.to_owned(),
            files: (!record.is_measured()).then_some(record.files.len() as u64),
            ..Listed::default()
        }
    }

    /// Where the key is at hand, every file in it is compared too.
    fn check(&self, found: &Found) -> Result<String, Failure> {
        let (record, read) = (&found.record, || whole_reader(found));
        if record.is_measured() {
            return Err(not_verified(format!(
                "no record says what was stored as {}: it can be downloaded and restored by its key, but there is nothing to compare it with",
                record.key
            )));
        }
        let stored = Stored {
            bytes: record.stored_bytes,
            sha256: record.stored_sha256.clone(),
        };
        checksum::compare(&record.key, read()?, &stored)?;
        let bytes = format!(
            "{} bytes of {} have their SHA-256",
            record.stored_bytes, record.key
        );
        let identity = identity(self.context)?;
        let encrypt = self.backup.plan.encrypt.as_ref();
        match open::tar(read()?, &record.key, encrypt, identity.as_deref())? {
            Ok(tar) => {
                let count = contents(record, tar)?;
                Ok(format!("{bytes}, and so have the {count} files in it"))
            }
            Err(Closed::NoIdentity) => Ok(format!(
                "{bytes}; its files were not looked at, the age identity is not here"
            )),
            Err(Closed::NoDecoder) => Ok(format!(
                "{bytes}; its files were not looked at, the runner writes this codec but does not read it"
            )),
        }
    }

    fn restore(&self, found: &Found) -> Result<String, Failure> {
        restore_check::verify(self.context, self.backup, found)
    }

    fn rules(&self) -> Option<Retention> {
        let keep = self.target.keep;
        Some(Retention {
            keep_last: (keep > 0).then(|| i32::try_from(keep).unwrap_or(i32::MAX)),
            ..Retention::default()
        })
    }

    fn candidates(&self) -> Box<dyn Candidates + '_> {
        Box::new(retention::ArchiveCandidates::new(self))
    }

    fn forget(&self) -> Result<(), Failure> {
        storages::clean(self.context, &self.target, true).map(drop)
    }
}

/// Every file of the record is in the tar with its length and SHA-256, and no other; their number.
fn contents(record: &Record, tar: Box<dyn Read + Send>) -> Result<usize, Failure> {
    let key = &record.key;
    let broken = |e: &dyn std::fmt::Display| {
        Failure::new(
            Reason::ArchiveDamaged,
            format!("{key} can't be unpacked: {e}"),
        )
    };
    let mut expected: BTreeMap<&str, (u64, &str)> = record
        .files
        .iter()
        .map(|f| (f.path.as_str(), (f.bytes, f.sha256.as_str())))
        .collect();
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().map_err(|e| broken(&e))? {
        let mut entry = entry.map_err(|e| broken(&e))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().map_err(|e| broken(&e))?.display().to_string();
        let measured = checksum::measure(&mut entry).map_err(|e| broken(&e))?;
        let Some((bytes, sha256)) = expected.remove(path.as_str()) else {
            return Err(broken(&format!(
                "it holds {path}, which its record does not name"
            )));
        };
        if measured.bytes != bytes || measured.sha256 != sha256 {
            return Err(broken(&format!(
                "{path} in it is not the file that was dumped"
            )));
        }
    }
    // Readers of compressed bytes may not have met the end that holds their checksum.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(|e| broken(&e))?;
    match expected.keys().next() {
        Some(path) => Err(broken(&format!("{path} is missing"))),
        None => Ok(record.files.len()),
    }
}

/// Logs in to every database, and writes, reads and removes a small object on every storage.
///
/// # Errors
/// What can't be used; all of it, not the first alone.
pub(crate) fn probe(context: &Context, backup: &BackupSettings) -> Result<(), Failure> {
    context.settings.check()?;
    context.reporter.phase("Connecting");
    let mut wrong = vec![];
    let mut words = vec![];
    for storage in &backup.plan.storages {
        let outcome = storages::one(context, storage)
            .and_then(|t| artefact::probe(context, t.store.as_ref(), &t.path));
        context.reporter.endpoint(
            EndpointKind::Storage,
            &storage.name,
            outcome.as_ref().map(|&()| ()),
        );
        match outcome {
            Ok(()) => words.push(format!("Storage {}", storage.name)),
            Err(e) => wrong.push(on_storage(Some(&storage.name), e)),
        }
    }
    for database in &backup.plan.databases {
        let outcome = crate::database::probe(context, database);
        context.reporter.endpoint(
            EndpointKind::Database,
            &database.name,
            outcome.as_ref().map(|&()| ()),
        );
        match outcome {
            Ok(()) => words.push(format!("Database {}", database.name)),
            Err(e) => wrong.push(Failure {
                message: format!("Database {}: {}", database.name, e.message),
                ..e
            }),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::all(wrong));
    }
    let message = format!("reached: {}", words.join(", "));
    context.reporter.update(|r| r.message = message);
    Ok(())
}
