//! The few facts of a manifest or record that retention needs. They stand before the long lists of
//! tables: of a dump of 20,000 tables a few kilobytes are read, and no list is ever kept.

use crds::report::Reason;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};

use crds::run_spec::ObjectId;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::retention::plan::Size;
use crate::store::Store;

/// Largest manifest that is looked into.
const LARGEST: u64 = 64 << 20;
/// Bytes of one read of the store.
const BUFFER: usize = 8 * 1024;

/// Facts of one artefact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// Schema of the manifest or record.
    pub schema: String,
    /// UID of the kube-system namespace, or empty.
    pub cluster_id: String,
    /// The object it belongs to.
    pub object: ObjectId,
    /// Name of the run.
    pub run: String,
    /// The slot, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// Key of the artefact.
    pub key: String,
    /// Parts of a split archive, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Bytes of its dumps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_bytes: Option<u64>,
    /// Bytes of the dumps of each database of an archive.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dumps: BTreeMap<String, u64>,
    /// Bytes stored.
    pub stored_bytes: u64,
    /// SHA-256 of them.
    pub stored_sha256: String,
    /// Whether they were read back; a record is only written of what was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_back: Option<bool>,
}

/// A part of a split archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Its key.
    pub key: String,
    /// Its bytes.
    pub bytes: u64,
}

/// One file of a record.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileSize {
    path: String,
    bytes: u64,
}

impl Facts {
    /// Keys and bytes of the objects that make the artefact.
    pub fn objects(&self) -> Vec<(&str, u64)> {
        if self.parts.is_empty() {
            return vec![(self.key.as_str(), self.stored_bytes)];
        }
        let parts = self.parts.iter();
        parts.map(|p| (p.key.as_str(), p.bytes)).collect()
    }

    /// How much it holds.
    pub fn size(&self) -> Size {
        Size {
            stored: self.stored_bytes,
            raw: self.raw_bytes,
            dumps: self.dumps.clone(),
        }
    }

    /// Notes what the files of an archive hold.
    fn add_files(&mut self, files: &[FileSize]) {
        if files.is_empty() {
            return;
        }
        self.dumps = dumps(files.iter().map(|f| (f.path.as_str(), f.bytes)));
        self.raw_bytes = Some(total(&self.dumps));
    }
}

/// Bytes of the dumps of each database, `<type>/<name>`, by the files of an archive.
pub fn dumps<'a>(files: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    let mut dumps = BTreeMap::<String, u64>::new();
    for (path, bytes) in files {
        // `<model>/<type>/<name>/…`
        let database: Vec<&str> = path.split('/').skip(1).take(2).collect();
        let sum = dumps.entry(database.join("/")).or_default();
        *sum = sum.saturating_add(bytes);
    }
    dumps
}

fn total(dumps: &BTreeMap<String, u64>) -> u64 {
    dumps.values().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Reads the facts from the manifest or record of this key. `None` if there is none, or it is not one of
/// `schema`.
///
/// # Errors
/// The store refuses.
pub(super) fn read(store: &dyn Store, key: &str, schema: &str) -> Result<Option<Facts>, Failure> {
    let Some(reader) = store.open(key)? else {
        return Ok(None);
    };
    let reader = BufReader::with_capacity(BUFFER, reader.take(LARGEST));
    let mut head = Head::default();
    let mut json = serde_json::Deserializer::from_reader(reader);
    match (&mut head).deserialize(&mut json) {
        Err(e) if e.is_io() => {
            let error = std::io::Error::from(e);
            let text = format!("reading {key} failed: {error}");
            return Err(error
                .downcast::<Failure>()
                .unwrap_or_else(|_| Failure::new(Reason::StoreFailed, text)));
        }
        Err(_) if !head.complete => return Ok(None),
        _ => {}
    }
    let mut facts = head.facts;
    if facts.raw_bytes.is_none() && !facts.dumps.is_empty() {
        facts.raw_bytes = Some(total(&facts.dumps));
    }
    Ok((facts.schema == schema && !facts.key.is_empty()).then_some(facts))
}

/// Facts as far as they were read.
#[derive(Default)]
struct Head {
    facts: Facts,
    /// Names of fields that were read.
    seen: Vec<String>,
    /// What follows was not read: it is not needed.
    complete: bool,
}

impl Head {
    /// True if what is left can only be lists of what the dump holds.
    fn is_enough(&self, next: &str) -> bool {
        let has = |name: &&str| self.seen.iter().any(|seen| seen == name);
        let common = [
            "schema",
            "object",
            "startedAt",
            "key",
            "storedBytes",
            "storedSha256",
        ];
        match next {
            // A slot is written before the trigger, and may be absent.
            "server" | "databases" | "tables" => {
                common.iter().all(has) && has(&"rawBytes") && has(&"readBack") && has(&"trigger")
            }
            "files" => common.iter().all(has) && has(&"dumps"),
            _ => false,
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Head {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if self.is_enough(&name) {
                self.complete = true;
                return Ok(());
            }
            let facts = &mut self.facts;
            match name.as_str() {
                "schema" => facts.schema = map.next_value()?,
                "clusterId" => facts.cluster_id = map.next_value()?,
                "object" => facts.object = map.next_value()?,
                "run" => facts.run = map.next_value()?,
                "slot" => facts.slot = map.next_value()?,
                "startedAt" => facts.started_at = map.next_value()?,
                "key" => facts.key = map.next_value()?,
                "parts" => facts.parts = map.next_value()?,
                "rawBytes" => facts.raw_bytes = Some(map.next_value()?),
                "dumps" => facts.dumps = map.next_value()?,
                "storedBytes" => facts.stored_bytes = map.next_value()?,
                "storedSha256" => facts.stored_sha256 = map.next_value()?,
                "readBack" => facts.read_back = Some(map.next_value()?),
                "notReadBack" => facts.read_back = Some(!map.next_value::<bool>()?),
                "files" => facts.add_files(&map.next_value::<Vec<FileSize>>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            self.seen.push(name);
        }
        Ok(())
    }
}
