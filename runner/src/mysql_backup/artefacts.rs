//! The bytes of an artefact: as they are stored, and the dump in them.

use crds::report::Reason;
use std::io::Read;

use crds::parts::Compression;

use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::manifest::Manifest;
use crate::store::Store;
use crate::stream::checksum::{self, Stored};
use crate::stream::codec;

/// The stored bytes still have the length and SHA-256 of the manifest.
///
/// # Errors
/// They differ, or can't be read.
pub fn check(store: &dyn Store, manifest: &Manifest) -> Result<(), Failure> {
    let sent = Stored {
        bytes: manifest.stored_bytes,
        sha256: manifest.stored_sha256.clone(),
    };
    checksum::compare(&manifest.key, stored(store, manifest)?, &sent)
}

/// The dump's own bytes: decrypted and decompressed.
///
/// # Errors
/// The key is missing or wrong, or the artefact is damaged.
pub fn open(
    context: &Context,
    store: &dyn Store,
    manifest: &Manifest,
) -> Result<Box<dyn Read + Send>, Failure> {
    opened(context, manifest, stored(store, manifest)?)
}

/// The same of stored bytes that are read already.
///
/// # Errors
/// The same.
pub(crate) fn opened(
    context: &Context,
    manifest: &Manifest,
    stored: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>, Failure> {
    let identity = match (
        &context.settings.identity_file,
        manifest.encryption.as_str(),
    ) {
        (_, "") => None,
        (Some(path), _) => Some(std::fs::read_to_string(path).map_err(|e| {
            Failure::settings(format!(
                "the age identity {} can't be read: {e}",
                path.display()
            ))
        })?),
        (None, _) => {
            return Err(Failure::settings(format!(
                "{} is encrypted and no identity is given: set spec.decryption.age.identitySecretKeyRef",
                manifest.key
            )));
        }
    };
    let compression = Compression {
        type_: manifest.compression,
        level: None,
    };
    codec::decoder(stored, compression, identity.as_deref()).map_err(|e| {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            Failure::new(
                Reason::NotDecryptable,
                format!(
                    "{} can't be opened: {e}; check that the identity belongs to its recipients",
                    manifest.key
                ),
            )
        })
    })
}

/// The stored bytes.
///
/// # Errors
/// They are gone, or the store refuses.
pub(crate) fn stored(
    store: &dyn Store,
    manifest: &Manifest,
) -> Result<Box<dyn Read + Send>, Failure> {
    store.open(&manifest.key)?.ok_or_else(|| {
        Failure::new(
            Reason::ArtefactGone,
            format!(
                "{} has a manifest but is not there: something else removed it",
                manifest.key
            ),
        )
    })
}
