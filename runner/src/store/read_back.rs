//! Reads what was stored back.

use crate::failure::Failure;
use crate::report::Reporter;
use crate::store::{ARCHIVED, Upload};
use crate::stream::checksum::{Stored, equal};
use crds::report::Reason;

/// Reads what was closed back; true if it is what was sent. Only where the store itself says that it
/// has the object in an archive class, which it gives to nobody yet, its length must do: then it is
/// false, and the run is never called read back.
///
/// # Errors
/// It differs, or can't be read for another reason.
pub fn read_back(
    reporter: &Reporter,
    upload: &mut dyn Upload,
    key: &str,
    sent: &Stored,
) -> Result<bool, Failure> {
    match equal(key, upload.measure(), sent) {
        Err(e) if e.reason == ARCHIVED && upload.stored_size() == Some(sent.bytes) => {
            reporter.warn(&format!(
                "{key} was stored with its full length but could not be read back: {e}"
            ));
            reporter.update(|r| Reason::NotReadBack.as_str().clone_into(&mut r.reason));
            Ok(false)
        }
        other => other.map(|()| true),
    }
}
