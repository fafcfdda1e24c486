//! Objects as compact text. Ten thousand of them are kept, and most say nearly the same: their JSON
//! is compressed against that of a usual one.

use lz4_flex::block;

use crate::digest::Kept;

/// What a usual object looks like. It is never kept or sent, so another one changes nothing but how
/// well objects are compressed.
const DICTIONARY: &[u8] = include_bytes!("dictionary.json");

/// An object. The length of its JSON stands before the compressed bytes.
#[derive(Clone, Debug)]
pub(super) struct CompressedObject(Box<[u8]>);

/// Room to write in, so that each text is kept in a piece of its exact size.
#[derive(Debug, Default)]
pub(super) struct Compressor {
    json: Vec<u8>,
    packed: Vec<u8>,
}

impl Compressor {
    /// Writes an object; `None` if it can't be said in JSON.
    pub(super) fn write(&mut self, kept: &Kept) -> Option<CompressedObject> {
        self.json.clear();
        serde_json::to_writer(&mut self.json, kept).ok()?;
        let length = u32::try_from(self.json.len()).ok()?.to_le_bytes();
        let most = length.len() + block::get_maximum_output_size(self.json.len());
        self.packed.resize(self.packed.len().max(most), 0);
        let (head, room) = self.packed.split_at_mut(length.len());
        head.copy_from_slice(&length);
        let packed = block::compress_into_with_dict(&self.json, room, DICTIONARY).ok()?;
        Some(CompressedObject(
            self.packed.get(..length.len() + packed)?.into(),
        ))
    }
}

impl CompressedObject {
    /// Bytes that are kept.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of its JSON.
    pub(super) fn json_len(&self) -> usize {
        let length = self.0.first_chunk().copied().map(u32::from_le_bytes);
        length
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or_default()
    }

    /// The object.
    pub(super) fn read(&self) -> Option<Kept> {
        let (length, packed) = self.0.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let json = block::decompress_with_dict(packed, length, DICTIONARY).ok()?;
        serde_json::from_slice(&json).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn kept(spec: Value, status: Value) -> Kept {
        serde_json::from_value(json!({
            "o": {"s": "shops", "n": "shop-4711", "u": "0b8e1f6a-5a55-4c0e-8a6e-d5c3f4f0a9d1", "c": "2025-03-30T01:59:59Z"},
            "v": "8291734", "s": spec, "t": status,
        }))
        .unwrap()
    }

    /// An object with two runs as `kubectl get` shows it.
    fn common() -> Kept {
        let condition = |type_: &str, reason: &str| {
            json!({"lastTransitionTime": "2025-03-30T01:59:59Z", "message": "", "observedGeneration": 3,
                   "reason": reason, "status": "True", "type": type_})
        };
        let run = |slot: &str, uid: &str| {
            json!({"completionTime": slot, "jobUid": uid, "name": "shop-4711-29056200", "result": "Succeeded",
                   "slot": slot, "startTime": slot, "trigger": "Schedule"})
        };
        kept(
            json!({"schedule": "17 3 * * 1-5", "timeZone": "Asia/Tokyo", "source": {"host": "db-4711", "databases": ["a"]}}),
            json!({
                "accountedUntil": "2025-03-31T03:17:00Z",
                "conditions": [condition("Accepted", "Valid"), condition("Scheduled", "NextSlotSet"), condition("Ready", "AsScheduled")],
                "runs": [run("2025-03-31T03:17:00Z", "9d2c"), run("2025-03-28T03:17:00Z", "1e77")],
                "totals": {"due": 2, "failed": 0, "manual": 0, "missed": 0, "skipped": 0, "succeeded": 2},
            }),
        )
    }

    #[test]
    fn a_common_object_takes_less_than_half_its_json() {
        let mut compressor = Compressor::default();
        let text = compressor.write(&common()).unwrap();
        let json = serde_json::to_vec(&common()).unwrap();
        assert!(
            text.0.len() * 2 < json.len(),
            "{} of {}",
            text.0.len(),
            json.len()
        );
        assert_eq!(text.read(), Some(common()));
    }

    #[test]
    fn the_dictionary_is_an_object() {
        assert!(serde_json::from_slice::<Kept>(DICTIONARY).is_ok());
    }

    proptest! {
        /// Whatever was compressed before.
        #[test]
        fn an_object_is_read_as_it_was_written(
            texts in prop::collection::vec(prop_oneof![".{0,40}", "[a-f0-9]{0,9000}"], 1..8),
        ) {
            let mut compressor = Compressor::default();
            for text in texts {
                let kept = kept(json!({"schedule": text}), json!({"runs": [text, text]}));
                let written = compressor.write(&kept).unwrap();
                prop_assert_eq!(written.read(), Some(kept));
            }
        }
    }
}
