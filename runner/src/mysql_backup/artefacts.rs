//! The bytes of an artefact: as they are stored, and the dump in them.

use crds::report::Reason;
use std::io::Read;

use crds::parts::{Compression, CompressionType};

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
    decoded(context, manifest, stored, manifest.compression)
}

/// The bytes in which frames stand: decrypted, and compressed as they are.
///
/// # Errors
/// The same.
pub(crate) fn decrypted(
    context: &Context,
    manifest: &Manifest,
    stored: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>, Failure> {
    decoded(context, manifest, stored, CompressionType::None)
}

/// What is within an encrypted artefact, read by seeking; `None` of one that is not encrypted.
///
/// # Errors
/// The key is missing or wrong, or the beginning is damaged.
pub(crate) fn seekable<R: Read>(
    context: &Context,
    manifest: &Manifest,
    stored: R,
) -> Result<Option<age::stream::StreamReader<R>>, Failure> {
    let Some(identity) = identity(context, &manifest.key, &manifest.encryption)? else {
        return Ok(None);
    };
    let opened = codec::opened(stored, &identity);
    opened.map(Some).map_err(|e| not_opened(&manifest.key, e))
}

fn decoded(
    context: &Context,
    manifest: &Manifest,
    stored: Box<dyn Read + Send>,
    type_: CompressionType,
) -> Result<Box<dyn Read + Send>, Failure> {
    plain(
        context,
        (&manifest.key, &manifest.encryption),
        stored,
        type_,
    )
}

/// The bytes that are stored at this key, encrypted or not, as they were before.
///
/// # Errors
/// The key is missing or wrong, or what is stored is damaged.
pub(crate) fn plain(
    context: &Context,
    (key, encryption): (&str, &str),
    stored: Box<dyn Read + Send>,
    type_: CompressionType,
) -> Result<Box<dyn Read + Send>, Failure> {
    let identity = identity(context, key, encryption)?;
    let compression = Compression { type_, level: None };
    codec::decoder(stored, compression, identity.as_deref()).map_err(|e| not_opened(key, e))
}

/// The text of the identity that opens what is stored at this key; `None` if it is not encrypted.
fn identity(context: &Context, key: &str, encryption: &str) -> Result<Option<String>, Failure> {
    match (&context.settings.identity_file, encryption) {
        (_, "") => Ok(None),
        (Some(path), _) => std::fs::read_to_string(path).map(Some).map_err(|e| {
            Failure::settings(format!(
                "the age identity {} can't be read: {e}",
                path.display()
            ))
        }),
        (None, _) => Err(Failure::settings(format!(
            "{key} is encrypted and no identity is given: set spec.decryption.age.identitySecretKeyRef"
        ))),
    }
}

fn not_opened(key: &str, e: std::io::Error) -> Failure {
    e.downcast::<Failure>().unwrap_or_else(|e| {
        Failure::new(
            Reason::NotDecryptable,
            format!(
                "{key} can't be opened: {e}; check that the identity belongs to its recipients"
            ),
        )
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
