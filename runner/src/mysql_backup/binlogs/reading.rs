//! The bytes of a stored segment, as the server had them.

use std::io::{self, Read};

use crds::report::Reason;

use super::stored::StoredSegment;
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::artefacts;
use crate::store::Store;

/// Opens them.
///
/// # Errors
/// They are gone, the key is missing or wrong, or the store refuses.
pub(crate) fn open(
    context: &Context,
    store: &dyn Store,
    stored: &StoredSegment,
) -> Result<Box<dyn Read + Send>, Failure> {
    let key = &stored.key;
    let bytes = store.open(key)?.ok_or_else(|| {
        Failure::new(
            Reason::ArtefactGone,
            format!("segment {key} has a manifest but is not there: something else removed it"),
        )
    })?;
    artefacts::plain(
        context,
        (key, &stored.encryption),
        bytes,
        stored.compression,
    )
}

/// The next of them; 0 at their end.
///
/// # Errors
/// They can't be read.
pub(crate) fn next(bytes: &mut dyn Read, buffer: &mut [u8], key: &str) -> Result<usize, Failure> {
    loop {
        match bytes.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => {
                return other.map_err(|e| {
                    e.downcast::<Failure>().unwrap_or_else(|e| {
                        Failure::new(
                            Reason::Damaged,
                            format!("segment {key} can't be read to its end: {e}"),
                        )
                    })
                });
            }
        }
    }
}
