//! The manifest beside each artefact, `<key>.json`: whose it is, what it holds, and by what it is
//! recognised. An artefact counts only with its manifest.

use crds::report::Reason;
use std::ops::Range;

use crds::parts::{Compression, CompressionType, Engine};
use crds::run_spec::ObjectId;
use serde::{Deserialize, Serialize};

use crate::database::contents::Table;
use crate::database::mysql::native;
use crate::database::mysql::source::Flavour;
use crate::database::server_identity::ServerIdentity;
use crate::failure::Failure;
use crate::retention::{self, Owner};
use crate::settings::Identity;
use crate::store::{self, Store};

/// Schema of the manifest.
pub const SCHEMA: &str = "batch.isekiro.com/manifest/v1";
/// Largest manifest that is read; some 400,000 tables fit.
const LARGEST: u64 = 64 << 20;

/// What stands beside an artefact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the runner that wrote it.
    pub runner_version: String,
    /// UID of the kube-system namespace, or empty.
    pub cluster_id: String,
    /// The object it belongs to.
    pub object: ObjectId,
    /// Name of the run.
    pub run: String,
    /// The slot, RFC 3339, for runs of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Why the run was started.
    pub trigger: String,
    /// Start of the run, RFC 3339: the dump holds nothing older than committed then.
    pub started_at: String,
    /// End of the read back, RFC 3339.
    pub ended_at: String,
    /// Key of the artefact below the destination's root.
    pub key: String,
    /// Codec.
    pub compression: CompressionType,
    /// "age" or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub encryption: String,
    /// Public keys that can open it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Bytes of the dump.
    pub raw_bytes: u64,
    /// SHA-256 of the dump.
    pub raw_sha256: String,
    /// Bytes stored.
    pub stored_bytes: u64,
    /// SHA-256 of the stored bytes.
    pub stored_sha256: String,
    /// The stored bytes were read back equal. False where the store gives them to nobody yet.
    pub read_back: bool,
    /// Version of the server.
    pub server: String,
    /// What the server calls itself: by this a restore recognises the source.
    pub server_identity: ServerIdentity,
    /// Version of the client, or of the runner where that read the server itself.
    pub client: String,
    /// Who made the dump; none in manifests of runners that knew clients alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Why it was the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine_reason: String,
    /// How the sessions of the native engine came to see the same.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot: String,
    /// What stands where in an artefact of the native engine ([`dump::Frames`]).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub frames: String,
    /// Its arguments after the option file: the same make the same text of the same rows.
    pub arguments: Vec<String>,
    /// Binlog position or GTID set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub position: String,
    /// Databases, in the order of the dump.
    pub databases: Vec<String>,
    /// Tables with rows and hashes.
    pub tables: Vec<Table>,
    /// Views.
    pub views: u64,
    /// Triggers.
    pub triggers: u64,
    /// Procedures and functions.
    pub routines: u64,
    /// Events.
    pub events: u64,
    /// Sequences; 0 in manifests of runners that did not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub sequences: u64,
    /// What the user's own arguments left out of the dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// What was warned about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Manifest {
    /// The family of its server.
    pub(crate) fn flavour(&self) -> Flavour {
        if self.server.contains("MariaDB") {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        }
    }

    /// Key of the manifest of an artefact.
    pub fn key_of(artefact: &str) -> String {
        format!("{artefact}.json")
    }

    /// Key of the artefact whose manifest this key names; `None` for other keys.
    pub fn artefact_of(key: &str) -> Option<&str> {
        key.strip_suffix(".json").filter(|k| k.contains(".sql"))
    }

    /// What stands where in it; `None` of an artefact that no native engine made.
    ///
    /// # Errors
    /// The list of its frames is damaged.
    pub fn frames(&self) -> Result<Option<dump::Frames>, Failure> {
        if self.frames.is_empty() {
            return Ok(None);
        }
        dump::Frames::from_text(&self.frames)
            .map(Some)
            .map_err(|e| {
                Failure::new(
                    Reason::Damaged,
                    format!("the manifest of {}: {e}", self.key),
                )
            })
    }

    /// Where in the dump its users, roles and grants stand.
    ///
    /// # Errors
    /// The list of its frames is damaged.
    pub fn accounts(&self) -> Result<Vec<Range<u64>>, Failure> {
        let Some(frames) = self.frames()? else {
            return Ok(vec![]);
        };
        let of_accounts = |f: &dump::Frame<'_>| {
            matches!(f.section, dump::Section::Accounts | dump::Section::Grants)
        };
        let found = frames.iter().filter(of_accounts);
        Ok(found.map(|f| f.raw_at..f.raw_at + f.raw).collect())
    }

    /// How the frames of its dump are compressed.
    pub(crate) fn compress(&self) -> dump::Compress {
        native::compress(Compression {
            type_: self.compression,
            level: None,
        })
    }

    /// True if it may belong to the object of `identity`, so that it can be read for it. What may be
    /// removed for it is told by [`crate::retention::owner`] alone.
    pub fn belongs_to(&self, identity: &Identity) -> bool {
        retention::owner(&self.cluster_id, &self.object, identity) != Owner::Other
    }

    /// True if it is the artefact of this very run.
    pub fn is_of_run(&self, identity: &Identity) -> bool {
        self.belongs_to(identity)
            && !identity.run.is_empty()
            && self.run == identity.run
            && self.object.uid == identity.object.uid
    }
}

/// Writes the manifest of an artefact that is there, where none stands yet, and reads it back.
///
/// # Errors
/// One stands already, the store refuses, or gives back something else twice.
pub fn write(store: &dyn Store, manifest: &Manifest) -> Result<(), Failure> {
    let text = serde_json::to_vec(manifest).map_err(|e| {
        Failure::new(
            Reason::ManifestFailed,
            format!("the manifest can't be written: {e}"),
        )
    })?;
    let key = Manifest::key_of(&manifest.key);
    if store::create_checked(store, &key, &text)? {
        return Ok(());
    }
    Err(Failure::new(
        Reason::AlreadyExists,
        format!("{key} exists and is another run's: it is left alone; run again"),
    ))
}

/// Reads the manifest of this key. `None` if there is none, or it is not one of ours.
///
/// # Errors
/// The store refuses.
pub fn read(store: &dyn Store, key: &str) -> Result<Option<Manifest>, Failure> {
    let text = store::read(store, key, LARGEST)?.unwrap_or_default();
    Ok(serde_json::from_slice::<Manifest>(&text)
        .ok()
        .filter(|m| m.schema == SCHEMA))
}
