//! What stands beside a stored segment: the segment's own manifest, which the chain is made of, and how its bytes are stored.

use binlog::{MANIFEST, Segment};
use crds::parts::CompressionType;
use crds::report::{Gap, Reason};
use crds::run_spec::ObjectId;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Schema of the manifest of a segment: no other kind of manifest is one.
pub const SCHEMA: &str = "batch.isekiro.com/segment/v1";

/// A segment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSegment {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the runner that stored it.
    pub runner_version: String,
    /// UID of the kube-system namespace, or empty.
    #[serde(default)]
    pub cluster_id: String,
    /// The object it belongs to.
    pub object: ObjectId,
    /// Name of the run.
    pub run: String,
    /// When it was stored, RFC 3339.
    pub stored_at: String,
    /// Key of its bytes below the destination's root.
    pub key: String,
    /// Codec.
    pub compression: CompressionType,
    /// "age" or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encryption: String,
    /// Bytes stored.
    pub stored_bytes: u64,
    /// SHA-256 of the stored bytes.
    pub stored_sha256: String,
    /// They were read back equal. False where the store gives them to nobody yet.
    pub read_back: bool,
    /// What is in them.
    pub segment: Segment,
}

impl StoredSegment {
    /// The manifest's text.
    ///
    /// # Errors
    /// It is larger than is read again.
    pub fn text(&self) -> Result<Vec<u8>, Failure> {
        let failed = |why: String| Failure::new(Reason::ManifestFailed, why);
        let text = serde_json::to_vec(self).map_err(|e| {
            failed(format!(
                "the manifest of {} can't be written: {e}",
                self.key
            ))
        })?;
        if text.len() > MANIFEST {
            return Err(failed(format!(
                "the manifest of {} would have {} bytes, more than {MANIFEST}: the server's set of GTIDs is too large",
                self.key,
                text.len()
            )));
        }
        Ok(text)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// It is none.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let stored: Self = serde_json::from_slice(text)
            .map_err(|e| format!("not the manifest of a segment: {e}"))?;
        if stored.schema != SCHEMA {
            return Err(format!("a manifest of schema {:?}", stored.schema));
        }
        // The rules of the segment's own.
        Segment::read(&stored.segment.manifest())?;
        Ok(stored)
    }
}

/// What was seen last of a server's log: until then nothing came behind the last segment. Written anew by each run, so that it
/// stands beside the segments, which are never written again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Seen {
    /// Hash of the last segment.
    pub last: String,
    /// The moment, in seconds since 1970 by the server's clock.
    pub moment: u32,
    /// Gaps that the next run tells once more: one that dies leaves no report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Seen {
    /// True if anything was seen: it is written before the first segment, too.
    pub fn is_some(&self) -> bool {
        !self.last.is_empty()
    }
}
