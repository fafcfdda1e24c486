//! Compression and encryption as one stack of writers, and its way back.

use std::io::{self, Read, Write};
use std::str::FromStr;

use crds::parts::{Compression, CompressionType};

use crate::failure::Failure;

/// zstd's level where none is given.
const ZSTD_LEVEL: i32 = 3;
/// gzip's level where none is given.
const GZIP_LEVEL: i32 = 6;

/// Reads a public key.
///
/// # Errors
/// It is none.
pub fn parse_recipient(text: &str) -> Result<age::x25519::Recipient, String> {
    age::x25519::Recipient::from_str(text).map_err(|e| {
        if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
            return "encryption: a private key stands where public recipients (age1…) are expected: name the public key that age-keygen -y prints".to_owned();
        }
        // What it is instead may be a secret.
        format!("encryption: a recipient is not an age public key (age1…): {e}")
    })
}

/// Compressing and encrypting writer.
pub struct Encoder<W: Write> {
    stack: Compressor<Encryptor<W>>,
}

enum Compressor<W: Write> {
    Zstd(zstd::Encoder<'static, W>),
    Gzip(flate2::write::GzEncoder<W>),
    Plain(W),
}

enum Encryptor<W: Write> {
    Age(Box<age::stream::StreamWriter<W>>),
    Plain(W),
}

impl<W: Write> Encoder<W> {
    /// The stack over `sink`.
    ///
    /// # Errors
    /// A header can't be written, or a recipient is none.
    pub fn new(sink: W, compression: Compression, recipients: &[String]) -> io::Result<Self> {
        let encryptor = encryptor(sink, recipients)?;
        let stack = match compression.type_ {
            CompressionType::Zstd => {
                let level = compression.level.unwrap_or(ZSTD_LEVEL);
                let mut encoder = zstd::Encoder::new(encryptor, level)?;
                encoder.include_checksum(true)?;
                Compressor::Zstd(encoder)
            }
            CompressionType::Gzip => {
                let level = compression.level.unwrap_or(GZIP_LEVEL);
                let level = flate2::Compression::new(u32::try_from(level).unwrap_or(6));
                Compressor::Gzip(flate2::write::GzEncoder::new(encryptor, level))
            }
            CompressionType::None => Compressor::Plain(encryptor),
        };
        Ok(Self { stack })
    }

    /// Writes every trailer and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(self) -> io::Result<W> {
        let encryptor = match self.stack {
            Compressor::Zstd(encoder) => encoder.finish()?,
            Compressor::Gzip(encoder) => encoder.finish()?,
            Compressor::Plain(encryptor) => encryptor,
        };
        match encryptor {
            Encryptor::Age(writer) => writer.finish(),
            Encryptor::Plain(sink) => Ok(sink),
        }
    }
}

fn encryptor<W: Write>(sink: W, recipients: &[String]) -> io::Result<Encryptor<W>> {
    if recipients.is_empty() {
        return Ok(Encryptor::Plain(sink));
    }
    let keys = recipients
        .iter()
        .map(|r| parse_recipient(r))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let encryptor = age::Encryptor::with_recipients(keys.iter().map(|k| k as &dyn age::Recipient))
        .map_err(io::Error::other)?;
    Ok(Encryptor::Age(Box::new(encryptor.wrap_output(sink)?)))
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.stack {
            Compressor::Zstd(w) => w.write(data),
            Compressor::Gzip(w) => w.write(data),
            Compressor::Plain(w) => w.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stack {
            Compressor::Zstd(w) => w.flush(),
            Compressor::Gzip(w) => w.flush(),
            Compressor::Plain(w) => w.flush(),
        }
    }
}

impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Age(w) => w.write(data),
            Self::Plain(w) => w.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Age(w) => w.flush(),
            Self::Plain(w) => w.flush(),
        }
    }
}

/// The text may be an age identity; what else people put in its place is named.
///
/// # Errors
/// What it is, and what to do.
fn is_identity(text: &str) -> Result<(), Failure> {
    let text = text.trim_start();
    let what = if text.is_empty() {
        "is empty: fill the Secret's key with the identity that age-keygen wrote"
    } else if text.starts_with("age-encryption.org/v1")
        || text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----")
    {
        "is itself encrypted with a passphrase, which nobody can type here: put it into the Secret decrypted (age -d FILE)"
    } else if text.starts_with("-----BEGIN ") {
        "is an SSH or PEM key: artefacts are encrypted to age's own keys; take the file that age-keygen wrote (AGE-SECRET-KEY-1…)"
    } else if !text.contains("AGE-SECRET-KEY-") && text.contains("age1") {
        "is a public key: take the private one, the file that age-keygen wrote (AGE-SECRET-KEY-1…)"
    } else {
        return Ok(());
    };
    Err(Failure::settings(format!("the age identity {what}")))
}

/// Reads an artefact back to the dump's bytes. `identity` is the text of an age identity file.
///
/// # Errors
/// The artefact is encrypted and no identity fits, or its header is damaged.
pub fn decoder(
    stored: impl Read + Send + 'static,
    compression: CompressionType,
    identity: Option<&str>,
) -> io::Result<Box<dyn Read + Send>> {
    let plain: Box<dyn Read + Send> = match identity {
        None => Box::new(stored),
        Some(text) => {
            is_identity(text).map_err(io::Error::other)?;
            let identities = age::IdentityFile::from_buffer(text.as_bytes())?
                .into_identities()
                .map_err(io::Error::other)?;
            let decryptor = age::Decryptor::new_buffered(io::BufReader::new(stored))
                .map_err(io::Error::other)?;
            Box::new(
                decryptor
                    .decrypt(identities.iter().map(|i| i.as_ref() as &dyn age::Identity))
                    .map_err(|e| match e {
                        age::DecryptError::NoMatchingKeys => {
                            io::Error::other("no identity matches a recipient")
                        }
                        // Their words are translated from files, which not every build has within.
                        other => io::Error::other(format!("{other:?}")),
                    })?,
            )
        }
    };
    Ok(match compression {
        CompressionType::Zstd => Box::new(zstd::Decoder::new(plain)?),
        CompressionType::Gzip => Box::new(flate2::read::MultiGzDecoder::new(plain)),
        CompressionType::None => plain,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use age::secrecy::ExposeSecret;

    #[test]
    fn every_stack_gives_back_what_went_in() {
        let identity = age::x25519::Identity::generate();
        let recipients = [identity.to_public().to_string()];
        let text: Vec<u8> = (0..400_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        for type_ in [
            CompressionType::Zstd,
            CompressionType::Gzip,
            CompressionType::None,
        ] {
            for keys in [&[][..], &recipients[..]] {
                let compression = Compression { type_, level: None };
                let mut encoder = Encoder::new(Vec::new(), compression, keys).unwrap();
                encoder.write_all(&text).unwrap();
                let stored = encoder.finish().unwrap();
                let secret = identity.to_string();
                let key = (!keys.is_empty()).then(|| secret.expose_secret());
                let mut back = Vec::new();
                let mut reader = decoder(std::io::Cursor::new(stored.clone()), type_, key).unwrap();
                reader.read_to_end(&mut back).unwrap();
                assert!(back == text, "{type_:?} with {} keys", keys.len());
                let cut = std::io::Cursor::new(stored[..stored.len() - 1].to_vec());
                let short =
                    decoder(cut, type_, key).and_then(|mut r| r.read_to_end(&mut Vec::new()));
                if type_ != CompressionType::None || !keys.is_empty() {
                    assert!(short.is_err(), "a cut artefact was read: {type_:?}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_key_and_no_key_are_errors_in_words() {
        let recipients = [age::x25519::Identity::generate().to_public().to_string()];
        let compression = Compression::default();
        let mut encoder = Encoder::new(Vec::new(), compression, &recipients).unwrap();
        encoder.write_all(b"text").unwrap();
        let stored = encoder.finish().unwrap();
        let another = age::x25519::Identity::generate().to_string();
        for key in [
            another.expose_secret(),
            "AGE-SECRET-KEY-1QQ",
            "nonsense",
            "",
        ] {
            let stored = std::io::Cursor::new(stored.clone());
            let Err(e) = decoder(stored, compression.type_, Some(key)) else {
                panic!("{key} opened it");
            };
            assert!(!e.to_string().is_empty(), "{key}");
        }
    }

    #[test]
    fn p6_what_is_no_identity_is_named() {
        for (text, word) in [
            (
                "age-encryption.org/v1\n-> scrypt x 18\n",
                "encrypted with a passphrase",
            ),
            (
                "-----BEGIN AGE ENCRYPTED FILE-----\nx\n",
                "encrypted with a passphrase",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nS3cr3t\n",
                "SSH or PEM key",
            ),
            (
                "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n",
                "public key",
            ),
            ("\n", "is empty"),
        ] {
            let failure = decoder(io::empty(), CompressionType::None, Some(text))
                .err()
                .unwrap();
            let failure = failure.downcast::<Failure>().unwrap();
            assert_eq!(failure.exit_code, crds::report::exit::SETTINGS);
            assert!(
                failure.message.contains(word) && !failure.message.contains("S3cr3t"),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_private_key_is_no_recipient() {
        assert!(parse_recipient("AGE-SECRET-KEY-1QQ").is_err());
        assert!(parse_recipient("age1x").is_err());
    }
}
