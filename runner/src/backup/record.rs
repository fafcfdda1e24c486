//! Names of archives, and the record beside them that says whose they are. gobackup's own state
//! file is read, so that what it stored is pruned as it would have been.

use crds::report::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use crds::run_spec::ObjectId;
use serde::{Deserialize, Serialize};

use crate::backup::target::Target;
use crate::context::Context;
use crate::database::contents::Contents;
use crate::database::server_identity::ServerIdentity;
use crate::database::spool::Member;
use crate::failure::Failure;
use crate::retention::{Records, dump_sizes};
use crate::settings::plan::BackupSettings;
use crate::store::leftovers::Place;
use crate::store::{self, Note, Store};
use crate::stream::checksum::{self, Stored};

/// Directory of state below a storage's path, as gobackup names it.
pub(crate) const STATE: &str = ".gobackup-state";
/// Letters of a run in the name of an archive that gobackup stores for it: of these no two together mean anything to Go in the
/// layout of a time.
pub(crate) const LETTERS: &[u8; 16] = b"bcdfghjklnqrstvw";
/// So many of them.
const OF_A_RUN: usize = 16;

/// True for an archive that a run had gobackup store: `2026.11.28.02.15.00.bcdfghjklnqrstvw.tar.gz`. No other run and no other
/// gobackup gives its name to anything.
pub(crate) fn is_of_one_run(name: &str) -> bool {
    let letters = name.split('.').nth(6).unwrap_or_default();
    letters.len() == OF_A_RUN && letters.bytes().all(|b| LETTERS.contains(&b))
}
/// gobackup's timestamp.
pub(crate) const FORMAT: &str = "%Y.%m.%d.%H.%M.%S";
/// Bytes of it.
pub(crate) const DATED: usize = 19;
/// Schema of a record.
pub(crate) const SCHEMA: &str = "batch.isekiro.com/archive/v1";
/// So many of the newest records are looked at for one of the same run.
const NEWEST: usize = 16;
/// Largest record that is read.
pub(crate) const LARGEST: u64 = 8 << 20;

/// What stands in `.gobackup-state/<namespace>.<name>.<uid>/<archive>.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// Version of the runner that wrote it.
    pub(crate) runner_version: String,
    /// UID of the kube-system namespace, or empty.
    pub(crate) cluster_id: String,
    /// The Backup.
    pub(crate) object: ObjectId,
    /// Name of the run.
    pub(crate) run: String,
    /// The slot, RFC 3339, for runs of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<String>,
    /// Start of the run, RFC 3339.
    pub(crate) started_at: String,
    /// Key of the archive below the storage's root.
    pub(crate) key: String,
    /// Parts of a split archive, in order; its key is what theirs begin with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<PartRecord>,
    /// Bytes stored.
    pub(crate) stored_bytes: u64,
    /// SHA-256 of them.
    pub(crate) stored_sha256: String,
    /// The storage has it in an archive class and gives it to nobody yet: only its length was compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) not_read_back: bool,
    /// Bytes of the dumps of each database, `<type>/<name>`: what retention compares stands before the
    /// files, so that these need not be read for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) dumps: BTreeMap<String, u64>,
    /// Files in the archive.
    pub(crate) files: Vec<FileRecord>,
}

/// One part of a split archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PartRecord {
    /// Key below the storage's root.
    pub(crate) key: String,
    /// Bytes.
    pub(crate) bytes: u64,
    /// SHA-256.
    pub(crate) sha256: String,
}

impl Record {
    /// True if nothing was said of the archive when it was stored: what stands here was read from it since.
    pub(crate) fn is_measured(&self) -> bool {
        self.schema.is_empty()
    }

    /// Keys of the objects that make the archive, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        if self.parts.is_empty() {
            return vec![self.key.clone()];
        }
        self.parts.iter().map(|p| p.key.clone()).collect()
    }
}

/// One file in the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FileRecord {
    /// Path in the archive.
    pub(crate) path: String,
    /// Bytes.
    pub(crate) bytes: u64,
    /// SHA-256.
    pub(crate) sha256: String,
    /// What the server calls itself, where it tells: by this a restore recognises the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<Box<ServerIdentity>>,
    /// What an SQL dump held when it was made: with it a restore of it is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holds: Option<Box<Contents>>,
}

/// One entry of gobackup's state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OldEntry {
    /// Name below the storage's path.
    pub(crate) file_key: String,
    /// Names of the parts of a split archive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) file_keys: Vec<String>,
    /// RFC 3339.
    pub(crate) created_at: String,
}

/// `path/name`, or `name` where there is no path.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}

/// Key of the run's archive. The first is gobackup's; the next ones add what tells two Backups of
/// one second apart, and the last what tells two attempts of one run apart.
pub(crate) fn key(
    context: &Context,
    backup: &BackupSettings,
    path: &str,
    attempt: usize,
) -> String {
    let at = context
        .clock
        .started
        .with_timezone(&backup.zone)
        .format(FORMAT);
    let object = &context.settings.identity.object;
    let apart = match attempt {
        0 => String::new(),
        1 => format!(".{}.{}", object.namespace, object.name),
        _ => format!(
            ".{}.{}.{}{}",
            object.namespace,
            object.name,
            context.settings.identity.suffix(context.clock.started),
            match attempt {
                2 => String::new(),
                _ => format!(".{}", crds::names::short_hash(&[&context.nonce], 8)),
            }
        ),
    };
    let extension = backup.plan.compress.codec.extension();
    let encrypted = match &backup.plan.encrypt {
        None => "",
        Some(crds::plan::Encrypt::Openssl { .. }) => ".enc",
        Some(crds::plan::Encrypt::Age { .. }) => ".age",
    };
    let name = format!("{at}{apart}{extension}{encrypted}");
    match backup.plan.split {
        None => join(path, &name),
        // As gobackup puts parts: a directory of the archive's own.
        Some(_) => join(path, &format!("{at}{apart}/{name}")),
    }
}

/// Directory of the Backup's records.
pub(crate) fn directory(context: &Context, path: &str) -> String {
    let o = &context.settings.identity.object;
    let uid = crds::names::short_hash(&[&o.uid], 8);
    join(path, &format!("{STATE}/{}.{}.{uid}", o.namespace, o.name))
}

/// True if this may be the name of a directory of records of a Backup of the run's name.
pub(crate) fn is_of_name(context: &Context, name: &str) -> bool {
    let o = &context.settings.identity.object;
    let uid = name.strip_prefix(&format!("{}.{}.", o.namespace, o.name));
    uid.is_some_and(|uid| uid.len() == 8 && !uid.contains('.'))
}

/// The records in such a directory.
pub(crate) fn records(directory: String) -> Records {
    Records {
        directory,
        schema: SCHEMA,
        fits: |at, facts| {
            let name = facts.key.rsplit('/').next().unwrap_or_default();
            at.rsplit('/').next() == Some(&format!("{name}.json"))
        },
        // One says it only where it was not.
        read_back: true,
    }
}

/// The whole record at this key.
///
/// # Errors
/// The store refuses.
pub(crate) fn whole(store: &dyn Store, at: &str) -> Result<Option<Record>, Failure> {
    let record = read::<Record>(store, at)?;
    Ok(record.filter(|r| r.schema == SCHEMA && !r.key.is_empty()))
}

/// Key of gobackup's own state file.
pub(crate) fn old_state(backup: &BackupSettings, path: &str, storage: &str) -> String {
    let known = backup.plan.storages.iter().find(|s| s.name == storage);
    let storage = known
        .and_then(|s| s.gobackup_name.as_deref())
        .unwrap_or(storage);
    join(
        path,
        &format!("{STATE}/{}_{storage}.json", backup.plan.model),
    )
}

/// Key of the record of an archive.
pub(crate) fn record_key(context: &Context, path: &str, key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    format!("{}/{name}.json", directory(context, path))
}

/// Writes the record of a published archive and reads it back; without one the archive does not count.
///
/// # Errors
/// The store refuses, or gives back something else twice; record and archive are removed then.
pub(crate) fn record(
    context: &Context,
    target: &Target,
    archive: &Archive<'_>,
) -> Result<(), Failure> {
    let identity = &context.settings.identity;
    let files: Vec<FileRecord> = archive.members.iter().filter_map(file).collect();
    let mut record = Record {
        schema: SCHEMA.to_owned(),
        runner_version: crds::VERSION.to_owned(),
        cluster_id: identity.cluster_id.clone(),
        object: identity.object.clone(),
        run: identity.run.clone(),
        slot: identity.slot.map(crds::time::rfc3339),
        started_at: crds::time::rfc3339(context.clock.started),
        key: archive.key.to_owned(),
        parts: archive.parts.to_vec(),
        stored_bytes: archive.stored.bytes,
        stored_sha256: archive.stored.sha256.clone(),
        not_read_back: !archive.read_back,
        dumps: dump_sizes(files.iter().map(|f| (f.path.as_str(), f.bytes))),
        files,
    };
    let written = |record: &Record| {
        serde_json::to_vec(record).map_err(|e| {
            Failure::new(
                Reason::ManifestFailed,
                format!("the record can't be written: {e}"),
            )
        })
    };
    let mut text = written(&record)?;
    if text.len() as u64 > LARGEST / 2 {
        // One that can't be read does not count; what the dumps hold is in them, too.
        record.files.iter_mut().for_each(|f| f.holds = None);
        text = written(&record)?;
    }
    let at = record_key(context, &target.path, archive.key);
    store::put_checked(target.store.as_ref(), &at, &text)
        .inspect_err(|_| remove(target.store.as_ref(), &at, &record))
}

/// What a record is made of.
pub(crate) struct Archive<'a> {
    /// Its key; what the keys of a split one's parts begin with.
    pub(crate) key: &'a str,
    /// Parts of a split one.
    pub(crate) parts: &'a [PartRecord],
    /// What is in it.
    pub(crate) members: &'a [Member],
    /// Its bytes.
    pub(crate) stored: &'a Stored,
    /// They were read back.
    pub(crate) read_back: bool,
}

/// Removes a record, then its archive: what is left of a half-done removal vouches for nothing.
pub(crate) fn remove(store: &dyn Store, at: &str, record: &Record) {
    let _ = store.remove(at);
    for key in record.keys() {
        let _ = store.remove(&key);
    }
}

/// Writes the record of an archive that was copied from another storage.
///
/// # Errors
/// As [`record`].
pub(crate) fn put(context: &Context, target: &Target, record: &Record) -> Result<(), Failure> {
    let text = serde_json::to_vec(record).map_err(|e| {
        Failure::new(
            Reason::ManifestFailed,
            format!("the record can't be written: {e}"),
        )
    })?;
    let at = record_key(context, &target.path, &record.key);
    store::put_checked(target.store.as_ref(), &at, &text)
        .inspect_err(|_| remove(target.store.as_ref(), &at, record))
}

/// The archive that another attempt of this run has stored below `path`, if what is there is what its
/// record says. Only the newest records are looked at: both attempts are of now.
///
/// # Errors
/// The store refuses.
pub(crate) fn of_run(
    context: &Context,
    store: &dyn Store,
    path: &str,
) -> Result<Option<Record>, Failure> {
    let identity = &context.settings.identity;
    if identity.run.is_empty() || identity.object.uid.is_empty() {
        return Ok(None);
    }
    let mut entries = store.list(&directory(context, path))?;
    entries.retain(|e| e.key.ends_with(".json"));
    for entry in entries.iter().rev().take(NEWEST) {
        let Some(record) = read::<Record>(store, &entry.key)? else {
            continue;
        };
        if record.object == identity.object
            && record.run == identity.run
            && is_whole(store, &record).unwrap_or(false)
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The stored bytes are what the record says. Of an archive in an archive class, which nobody can read,
/// that it is there has to do; that it was never read back stands in its record.
pub(crate) fn is_whole(store: &dyn Store, record: &Record) -> Result<bool, Failure> {
    let mut whole: Box<dyn Read + Send> = Box::new(std::io::empty());
    for key in record.keys() {
        match store.open(&key) {
            Ok(Some(part)) => whole = Box::new(whole.chain(part)),
            Ok(None) => return Ok(false),
            Err(e) if e.reason == store::ARCHIVED && record.not_read_back => return Ok(true),
            Err(e) => return Err(e),
        }
    }
    let stored = Stored {
        bytes: record.stored_bytes,
        sha256: record.stored_sha256.clone(),
    };
    match checksum::compare(&record.key, whole, &stored) {
        Ok(()) => Ok(true),
        Err(e) if e.reason == store::ARCHIVED && record.not_read_back => Ok(true),
        Err(_) => Ok(false),
    }
}

/// A storage as leftovers are looked for in it. Its directory may be that of several Backups, of
/// gobackup, and of anybody: only claims tell what is whose.
pub(crate) struct Archives<'a> {
    /// The run.
    pub(crate) context: &'a Context,
    /// Directory or key prefix.
    pub(crate) path: &'a str,
    /// Archives to keep; 0 means all.
    pub(crate) keep: u32,
}

impl Place for Archives<'_> {
    fn directory(&self) -> &str {
        self.path
    }

    fn beside(&self) -> Option<String> {
        Some(directory(self.context, self.path))
    }

    fn is_artefact(&self, _key: &str) -> bool {
        false
    }

    fn is_upload(&self, key: &str) -> bool {
        let below = match self.path {
            "" => Some(key),
            path => key.strip_prefix(path).and_then(|k| k.strip_prefix('/')),
        };
        below.is_some_and(|below| {
            let (directory, name) = below.rsplit_once('/').unwrap_or(("", below));
            // The parts of a split one are in a directory of its name.
            let beside = directory.is_empty() || is_dated(directory) && !directory.contains('/');
            beside && is_dated(name) && name.contains(".tar")
        })
    }

    fn is_of_run(&self, _key: &str) -> bool {
        false
    }

    fn is_own(&self, note: &Note) -> bool {
        note.object == self.context.settings.identity.object
    }

    fn prunes(&self) -> bool {
        self.keep > 0
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn manifest_of(&self, key: &str) -> String {
        record_key(self.context, self.path, key)
    }

    fn lone_manifests(&self, store: &dyn Store) -> Result<Vec<String>, Failure> {
        let records = store.list(&directory(self.context, self.path))?;
        if records.is_empty() {
            return Ok(vec![]);
        }
        let there: BTreeSet<String> = store.list(self.path)?.into_iter().map(|e| e.key).collect();
        let mut lone = vec![];
        for entry in records {
            let name = entry.key.rsplit('/').next().unwrap_or_default();
            let Some(archive) = name.strip_suffix(".json") else {
                continue;
            };
            if there.contains(&join(self.path, archive)) {
                continue;
            }
            let Some(record) = read::<Record>(store, &entry.key)? else {
                continue;
            };
            if record.object != self.context.settings.identity.object {
                continue;
            }
            let mut gone = !record.key.is_empty();
            for key in record.keys() {
                gone = gone && is_gone(store, &key)?;
            }
            if gone {
                lone.push(entry.key);
            }
        }
        Ok(lone)
    }
}

/// True if there is no such object, by the listing of its directory.
fn is_gone(store: &dyn Store, key: &str) -> Result<bool, Failure> {
    let directory = key.rsplit_once('/').map_or("", |(d, _)| d);
    Ok(!store.list(directory)?.iter().any(|e| e.key == key))
}

/// True if the name begins as gobackup dates its archives: `2025.01.15.10.30.00`.
pub(crate) fn is_dated(name: &str) -> bool {
    const FORM: &[u8] = b"dddd.dd.dd.dd.dd.dd";
    let form = |(f, c): (&u8, &u8)| match f {
        b'd' => c.is_ascii_digit(),
        other => c == other,
    };
    let bytes = name.as_bytes();
    bytes.len() >= FORM.len()
        && FORM.iter().zip(bytes).all(form)
        && bytes.get(FORM.len()).is_none_or(|c| *c == b'.')
}

fn file(member: &Member) -> Option<FileRecord> {
    match member {
        Member::Directory { .. } => None,
        Member::File {
            path,
            bytes,
            sha256,
            server,
            holds,
            ..
        } => Some(FileRecord {
            path: path.clone(),
            bytes: *bytes,
            sha256: sha256.clone(),
            server: server.clone(),
            holds: holds.clone(),
        }),
    }
}

/// Reads a small JSON object; `None` if it is not there or not what it should be.
///
/// # Errors
/// The store refuses.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    store: &dyn Store,
    key: &str,
) -> Result<Option<T>, Failure> {
    let text = store::read(store, key, LARGEST)?.unwrap_or_default();
    Ok(serde_json::from_slice(&text).ok())
}
