//! An archive's bytes back to its files: decrypted, decompressed, and read as the tar it is.

use crds::report::Reason;
use std::io::{self, Read};

use crds::plan::{Codec, Encrypt};
use secrecy::{ExposeSecret, SecretString};

use crate::failure::Failure;
use crate::stream::codec;
use crate::stream::openssl::{Decryptor, Options};

/// What stands in the way of opening an archive without being a fault of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It is encrypted to recipients, and their identity is not here.
    NoIdentity,
    /// No library of the runner reads the codec.
    NoDecoder,
}

/// Codec and encryption by the name's end, as [`crate::backup::record::key`] puts it.
pub(crate) fn codec_of(name: &str) -> Option<(Codec, bool, bool)> {
    let (rest, openssl) = match name.strip_suffix(".enc") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let (rest, age) = match rest.strip_suffix(".age") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let all = [
        Codec::Gzip,
        Codec::Compress,
        Codec::Bzip2,
        Codec::Lzma,
        Codec::Lzop,
        Codec::Lzip,
        Codec::Xz,
        Codec::Zstd,
        Codec::Tar,
    ];
    all.into_iter()
        .find(|c| rest.ends_with(c.extension()))
        .map(|codec| (codec, openssl, age))
}

/// The tar's bytes.
///
/// # Errors
/// The password is wrong or missing, or the archive is damaged at its beginning.
pub(crate) fn tar(
    stored: Box<dyn Read + Send>,
    name: &str,
    encrypt: Option<&Encrypt<SecretString>>,
    identity: Option<&str>,
) -> Result<Result<Box<dyn Read + Send>, Closed>, Failure> {
    let Some((codec, encrypted, age)) = codec_of(name) else {
        return Err(Failure::settings(format!(
            "{name} does not end as an archive does"
        )));
    };
    // What says by itself what is wrong, as an identity that is none, keeps its reason.
    let unreadable = |e: io::Error| {
        e.downcast::<Failure>().unwrap_or_else(|e| {
            Failure::new(
                Reason::NotDecryptable,
                format!("{name} can't be opened: {e}; check the key it was encrypted with"),
            )
        })
    };
    let mut inner = stored;
    if encrypted {
        let Some(Encrypt::Openssl {
            password,
            bits,
            iterations,
            digest,
            base64,
        }) = encrypt
        else {
            return Err(Failure::settings(format!(
                "{name} is encrypted by openssl and the Backup names no password: set encodeWith as it was when the archive was made"
            )));
        };
        if password.expose_secret().is_empty() {
            return Err(Failure::settings(format!(
                "{name} is encrypted by openssl and the password of encodeWith is empty or its Secret's key is not there: fill it"
            )));
        }
        // Its salt stands in it.
        let options = Options {
            password: password.expose_secret(),
            bits: *bits,
            iterations: *iterations,
            digest,
            base64: *base64,
            salt: [0; 8],
        };
        inner = Box::new(Decryptor::new(inner, &options).map_err(unreadable)?);
    }
    if age {
        let Some(identity) = identity else {
            return Ok(Err(Closed::NoIdentity));
        };
        inner = codec::decrypted(inner, identity).map_err(unreadable)?;
    }
    let plain = codec::decompressed(inner, codec).map_err(unreadable)?;
    Ok(plain.ok_or(Closed::NoDecoder))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_identity_that_is_none_is_a_wrong_setting() {
        for identity in [
            "",
            "age1xyz",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "hunter2",
        ] {
            let stored: Box<dyn Read + Send> = Box::new(&b"age-encryption.org/v1\n"[..]);
            let failure = tar(stored, "b.tar.age", None, Some(identity))
                .err()
                .unwrap();
            assert_eq!(
                failure.reason, "InvalidSettings",
                "{identity}: {}",
                failure.message
            );
            assert!(!failure.message.contains("hunter2"), "{}", failure.message);
        }
        let key = age::x25519::Identity::generate().to_string();
        let key = age::secrecy::ExposeSecret::expose_secret(&key);
        let failure = tar(Box::new(&b"no age"[..]), "b.tar.age", None, Some(key))
            .err()
            .unwrap();
        assert_eq!(failure.reason, "NotDecryptable", "{}", failure.message);
    }

    #[test]
    fn names_tell_what_an_archive_is() {
        assert_eq!(codec_of("a/b.tar.gz"), Some((Codec::Gzip, false, false)));
        assert_eq!(codec_of("b.tar.zst.enc"), Some((Codec::Zstd, true, false)));
        assert_eq!(codec_of("b.tar.age"), Some((Codec::Tar, false, true)));
        assert_eq!(codec_of("b.sql"), None);
    }
}
