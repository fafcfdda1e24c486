//! Names of archives, and the record beside them that says whose they are. gobackup's own state
//! file is read, so that what it stored is pruned as it would have been.

use std::io::Read;

use crds::run::ObjectId;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::manifest::ServerIdentity;
use crate::pipeline::Stored;
use crate::run::Context;
use crate::store::Store;

use super::holds::Holds;
use super::settings::Family;
use super::spool::Member;
use super::storages::Target;

/// Directory of state below a storage's path, as gobackup names it.
const STATE: &str = ".gobackup-state";
/// gobackup's timestamp.
const FORMAT: &str = "%Y.%m.%d.%H.%M.%S";
/// Schema of a record.
const SCHEMA: &str = "batch.isekiro.com/archive/v1";
/// Largest record that is read.
const LARGEST: u64 = 8 << 20;

/// What stands in `.gobackup-state/<namespace>.<name>.<uid>/<archive>.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    /// [`SCHEMA`].
    pub(super) schema: String,
    /// Version of the runner that wrote it.
    pub(super) runner_version: String,
    /// UID of the kube-system namespace, or empty.
    pub(super) cluster_id: String,
    /// The Backup.
    pub(super) object: ObjectId,
    /// Name of the run.
    pub(super) run: String,
    /// Start of the run, RFC 3339.
    pub(super) started_at: String,
    /// Key of the archive below the storage's root.
    pub(super) key: String,
    /// Parts of a split archive, in order; its key is what theirs begin with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<PartRecord>,
    /// Bytes stored.
    pub(super) stored_bytes: u64,
    /// SHA-256 of them.
    pub(super) stored_sha256: String,
    /// Files in the archive.
    pub(super) files: Vec<FileRecord>,
}

/// One part of a split archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PartRecord {
    /// Key below the storage's root.
    pub(super) key: String,
    /// Bytes.
    pub(super) bytes: u64,
    /// SHA-256.
    pub(super) sha256: String,
}

impl Record {
    /// Keys of the objects that make the archive, in order.
    pub(super) fn keys(&self) -> Vec<String> {
        if self.parts.is_empty() {
            return vec![self.key.clone()];
        }
        self.parts.iter().map(|p| p.key.clone()).collect()
    }
}

/// One file in the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FileRecord {
    /// Path in the archive.
    pub(super) path: String,
    /// Bytes.
    pub(super) bytes: u64,
    /// SHA-256.
    pub(super) sha256: String,
    /// What the server calls itself, where it tells: by this a restore recognises the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<Box<ServerIdentity>>,
    /// What an SQL dump held when it was made: with it a restore of it is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holds: Option<Box<Holds>>,
}

/// One entry of gobackup's state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OldEntry {
    /// Name below the storage's path.
    pub(super) file_key: String,
    /// Names of the parts of a split archive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) file_keys: Vec<String>,
    /// RFC 3339.
    pub(super) created_at: String,
}

/// `path/name`, or `name` where there is no path.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}

/// Key of the run's archive. The first is gobackup's; the next ones add what tells two Backups of
/// one second apart.
pub(super) fn key(context: &Context, family: &Family, path: &str, attempt: usize) -> String {
    let at = context
        .clock
        .started
        .with_timezone(&family.zone)
        .format(FORMAT);
    let object = &context.settings.identity.object;
    let apart = match attempt {
        0 => String::new(),
        1 => format!(".{}.{}", object.namespace, object.name),
        _ => format!(
            ".{}.{}.{}",
            object.namespace,
            object.name,
            context.settings.identity.suffix(context.clock.started)
        ),
    };
    let extension = family.plan.compress.codec.extension();
    let encrypted = match &family.plan.encrypt {
        None => "",
        Some(crds::gobackup::plan::Encrypt::Openssl { .. }) => ".enc",
        Some(crds::gobackup::plan::Encrypt::Age { .. }) => ".age",
    };
    let name = format!("{at}{apart}{extension}{encrypted}");
    match family.plan.split {
        None => join(path, &name),
        // As gobackup puts parts: a directory of the archive's own.
        Some(_) => join(path, &format!("{at}{apart}/{name}")),
    }
}

/// Directory of the Backup's records.
pub(super) fn directory(context: &Context, path: &str) -> String {
    let o = &context.settings.identity.object;
    let uid = crds::names::short_hash(&[&o.uid], 8);
    join(path, &format!("{STATE}/{}.{}.{uid}", o.namespace, o.name))
}

/// Key of gobackup's own state file.
pub(super) fn old_state(family: &Family, path: &str, storage: &str) -> String {
    join(
        path,
        &format!("{STATE}/{}_{storage}.json", family.plan.model),
    )
}

/// Writes the record of a published archive; without one the archive does not count.
///
/// # Errors
/// The store refuses; the archive is removed then.
pub(super) fn record(
    context: &Context,
    target: &Target,
    key: &str,
    parts: &[PartRecord],
    members: &[Member],
    stored: &Stored,
) -> Result<(), Failure> {
    let identity = &context.settings.identity;
    let mut record = Record {
        schema: SCHEMA.to_owned(),
        runner_version: crds::VERSION.to_owned(),
        cluster_id: identity.cluster_id.clone(),
        object: identity.object.clone(),
        run: identity.run.clone(),
        started_at: crds::time::rfc3339(context.clock.started),
        key: key.to_owned(),
        parts: parts.to_vec(),
        stored_bytes: stored.bytes,
        stored_sha256: stored.sha256.clone(),
        files: members.iter().filter_map(file).collect(),
    };
    let written = |record: &Record| {
        serde_json::to_vec(record).map_err(|e| {
            Failure::other(
                "ManifestFailed",
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
    let name = key.rsplit('/').next().unwrap_or(key);
    let at = format!("{}/{name}.json", directory(context, &target.path));
    target.store.put(&at, &text).inspect_err(|_| {
        for key in record.keys() {
            let _ = target.store.remove(&key);
        }
    })
}

/// Records of this Backup's archives below `path`, oldest first, each with its own key.
///
/// # Errors
/// The store refuses.
pub(super) fn records(
    context: &Context,
    store: &dyn Store,
    path: &str,
) -> Result<Vec<(String, Record)>, Failure> {
    let mut found = vec![];
    for entry in store.list(&directory(context, path))? {
        let Some(record) = read::<Record>(store, &entry.key)? else {
            continue;
        };
        if record.object == context.settings.identity.object && !record.key.is_empty() {
            found.push((entry.key, record));
        }
    }
    found.sort_by(|a, b| (&a.1.started_at, &a.1.key).cmp(&(&b.1.started_at, &b.1.key)));
    Ok(found)
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
pub(super) fn read<T: serde::de::DeserializeOwned>(
    store: &dyn Store,
    key: &str,
) -> Result<Option<T>, Failure> {
    let Some(reader) = store.open(key)? else {
        return Ok(None);
    };
    let mut text = vec![];
    reader
        .take(LARGEST)
        .read_to_end(&mut text)
        .map_err(|e| Failure::store("NotReadBack", format!("{key} can't be read: {e}")))?;
    Ok(serde_json::from_slice(&text).ok())
}
