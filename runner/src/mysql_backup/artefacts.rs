//! Finding artefacts by what people say: a key, a run, a moment, or the newest.

use crds::report::Reason;
use std::io::Read;

use crds::parts::Compression;

use crate::artefact::{Meant, Verdicts, tell_failed};
use crate::context::Context;
use crate::failure::Failure;
use crate::mysql_backup::dumps;
use crate::mysql_backup::manifest::{self, Manifest};
use crate::settings::options::Choice;
use crate::store::Store;
use crate::stream::checksum::{self, Stored};
use crate::stream::codec;

/// The manifest of the chosen artefact. One that is named by its key may be another object's.
///
/// # Errors
/// There is none, or the store refuses.
pub fn choose(
    context: &Context,
    store: &dyn Store,
    choice: &Choice,
    verdicts: Verdicts,
) -> Result<Manifest, Failure> {
    let identity = &context.settings.identity;
    if let Some(key) = &choice.key {
        if key.split('/').any(|part| part == "..") || key.starts_with('/') {
            return Err(Failure::settings(format!(
                "{key:?} is not a key below the destination"
            )));
        }
        return manifest::read(store, &Manifest::key_of(key))?
            .filter(|m| m.key == *key)
            .ok_or_else(|| missing(store, &format!("no artefact {key} with a manifest")));
    }
    let meant = Meant::new(choice)?;
    let all = dumps::list(store, identity, context.clock.now().into())?;
    let chosen = meant.among(&all, verdicts);
    let found = match &chosen {
        Some(chosen) => manifest::read(store, &chosen.stored.manifest)?,
        None => None,
    };
    if let (Some(chosen), Verdicts::Heed) = (&chosen, verdicts) {
        chosen.tell(&context.reporter, "");
        if chosen.stored.failed {
            tell_failed(&context.reporter, &chosen.stored.facts.key);
        }
    }
    found.ok_or_else(|| {
        let what = match (&choice.run, &choice.at) {
            (Some(run), _) => format!("no artefact of run {run}"),
            (None, Some(at)) => format!("no artefact of {at} or earlier"),
            (None, None) => "no artefact".to_owned(),
        };
        missing(store, &format!("{what} in {}", identity.directory()))
    })
}

fn missing(store: &dyn Store, what: &str) -> Failure {
    Failure::new(
        Reason::ArtefactNotFound,
        format!(
            "{what} in {}: list what is stored, or correct the destination",
            store.describe()
        ),
    )
}

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
            Reason::ArtefactNotFound,
            format!("{} is gone from the store", manifest.key),
        )
    })
}
