//! Compression and encryption as one stack of writers, and its way back: that of the dumps of a
//! MysqlBackup and that of the archives of a Backup.

use std::io::{self, Read, Write};
use std::str::FromStr;

use crds::parts::{Compression, CompressionType};
use crds::plan::{Codec, Compress};

use super::openssl;
use crate::failure::Failure;

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

/// The recipients that a spec lists, and those of the lines of a file that its Secret holds.
pub fn recipients<'a>(listed: &'a [String], file: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = file
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    listed.iter().map(String::as_str).chain(lines)
}

/// A dump's compression as a codec; what is not compressed is as a bare tar is.
pub fn codec_of(compression: Compression) -> Compress {
    let codec = match compression.type_ {
        CompressionType::Zstd => Codec::Zstd,
        CompressionType::Gzip => Codec::Gzip,
        CompressionType::None => Codec::Tar,
    };
    Compress {
        codec,
        level: compression.level,
    }
}

/// How bytes are encrypted.
pub enum Encryption<'a> {
    /// Not at all.
    None,
    /// To these age recipients.
    Age(Vec<&'a str>),
    /// As openssl does.
    Openssl(openssl::Options<'a>),
}

impl<'a> Encryption<'a> {
    /// To these age recipients; not at all if there is none.
    pub fn to(recipients: &'a [String]) -> Self {
        if recipients.is_empty() {
            return Self::None;
        }
        Self::Age(recipients.iter().map(String::as_str).collect())
    }
}

/// Compressing and encrypting writer over `W`.
pub struct Encoder<W: Write> {
    stack: Compressor<W>,
}

enum Compressor<W: Write> {
    Plain(Encryptor<W>),
    Gzip(flate2::write::GzEncoder<Encryptor<W>>),
    Zstd(zstd::Encoder<'static, Encryptor<W>>),
    Bzip2(bzip2::write::BzEncoder<Encryptor<W>>),
    Xz(liblzma::write::XzEncoder<Encryptor<W>>),
}

enum Encryptor<W: Write> {
    Plain(W),
    Openssl(Box<openssl::Encryptor<W>>),
    Age(Box<age::stream::StreamWriter<W>>),
}

impl<W: Write> Encoder<W> {
    /// The stack over `sink`.
    ///
    /// # Errors
    /// A header can't be written, or a recipient is none.
    pub fn new(sink: W, compress: Compress, encryption: &Encryption<'_>) -> io::Result<Self> {
        let encryptor = encryptor(sink, encryption)?;
        let level = |default: u32| {
            compress
                .level
                .and_then(|l| u32::try_from(l).ok())
                .unwrap_or(default)
        };
        let stack = match compress.codec {
            Codec::Gzip => Compressor::Gzip(flate2::write::GzEncoder::new(
                encryptor,
                flate2::Compression::new(level(6)),
            )),
            Codec::Zstd => {
                let mut encoder = zstd::Encoder::new(encryptor, compress.level.unwrap_or(3))?;
                encoder.include_checksum(true)?;
                Compressor::Zstd(encoder)
            }
            Codec::Bzip2 => Compressor::Bzip2(bzip2::write::BzEncoder::new(
                encryptor,
                bzip2::Compression::new(level(9)),
            )),
            Codec::Xz => Compressor::Xz(liblzma::write::XzEncoder::new(encryptor, level(6))),
            Codec::Lzma => {
                let options =
                    liblzma::stream::LzmaOptions::new_preset(level(6)).map_err(io::Error::other)?;
                let stream = liblzma::stream::Stream::new_lzma_encoder(&options)
                    .map_err(io::Error::other)?;
                Compressor::Xz(liblzma::write::XzEncoder::new_stream(encryptor, stream))
            }
            Codec::Tar | Codec::Compress | Codec::Lzip | Codec::Lzop => {
                Compressor::Plain(encryptor)
            }
        };
        Ok(Self { stack })
    }

    /// Writes what is left and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(self) -> io::Result<W> {
        let encryptor = match self.stack {
            Compressor::Plain(e) => e,
            Compressor::Gzip(e) => e.finish()?,
            Compressor::Zstd(e) => e.finish()?,
            Compressor::Bzip2(e) => e.finish()?,
            Compressor::Xz(e) => e.finish()?,
        };
        match encryptor {
            Encryptor::Plain(w) => Ok(w),
            Encryptor::Openssl(e) => e.finish(),
            Encryptor::Age(e) => e.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.stack {
            Compressor::Plain(e) => e.write(data),
            Compressor::Gzip(e) => e.write(data),
            Compressor::Zstd(e) => e.write(data),
            Compressor::Bzip2(e) => e.write(data),
            Compressor::Xz(e) => e.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(w) => w.write(data),
            Self::Openssl(e) => e.write(data),
            Self::Age(e) => e.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn encryptor<W: Write>(sink: W, encryption: &Encryption<'_>) -> io::Result<Encryptor<W>> {
    match encryption {
        Encryption::None => Ok(Encryptor::Plain(sink)),
        Encryption::Openssl(options) => Ok(Encryptor::Openssl(Box::new(openssl::Encryptor::new(
            sink, options,
        )?))),
        Encryption::Age(recipients) => {
            let keys: Vec<age::x25519::Recipient> = recipients
                .iter()
                .map(|text| parse_recipient(text).map_err(io::Error::other))
                .collect::<Result<_, _>>()?;
            let all = keys.iter().map(|k| k as &dyn age::Recipient);
            let encryptor = age::Encryptor::with_recipients(all).map_err(io::Error::other)?;
            Ok(Encryptor::Age(Box::new(encryptor.wrap_output(sink)?)))
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

/// Decrypts what was encrypted to age recipients. `identity` is the text of an age identity file.
///
/// # Errors
/// No identity fits, or the header is damaged.
pub fn decrypted(
    stored: impl Read + Send + 'static,
    identity: &str,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(opened(io::BufReader::new(stored), identity)?))
}

/// The same of what reads small pieces well; what comes of it seeks where that does.
///
/// # Errors
/// The same.
pub fn opened<R: Read>(stored: R, identity: &str) -> io::Result<age::stream::StreamReader<R>> {
    is_identity(identity).map_err(io::Error::other)?;
    // The library's words may quote what is in the Secret.
    let no_identity = "holds no identity: take the file that age-keygen wrote (AGE-SECRET-KEY-1…)";
    let none = || io::Error::other(Failure::settings(format!("the age identity {no_identity}")));
    let identities = age::IdentityFile::from_buffer(identity.as_bytes())
        .ok()
        .and_then(|file| file.into_identities().ok())
        .filter(|identities| !identities.is_empty())
        .ok_or_else(none)?;
    let decryptor = age::Decryptor::new(stored).map_err(io::Error::other)?;
    decryptor
        .decrypt(identities.iter().map(|i| i.as_ref() as &dyn age::Identity))
        .map_err(|e| match e {
            age::DecryptError::NoMatchingKeys => {
                io::Error::other("no identity matches a recipient")
            }
            // Their words are translated from files, which not every build has within.
            other => io::Error::other(format!("{other:?}")),
        })
}

/// Decompresses; `None` if no library here reads the codec.
///
/// # Errors
/// The beginning is damaged.
pub fn decompressed(
    inner: Box<dyn Read + Send>,
    codec: Codec,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    Ok(Some(match codec {
        Codec::Tar => inner,
        Codec::Gzip => Box::new(flate2::read::MultiGzDecoder::new(inner)),
        Codec::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(inner)),
        Codec::Zstd => Box::new(zstd::Decoder::new(inner)?),
        Codec::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(inner)),
        Codec::Lzma => {
            // GNU tar writes xz under this name.
            let stream = liblzma::stream::Stream::new_auto_decoder(u64::MAX, 0)?;
            Box::new(liblzma::read::XzDecoder::new_stream(inner, stream))
        }
        Codec::Compress | Codec::Lzip | Codec::Lzop => return Ok(None),
    }))
}

/// Reads an artefact back to the dump's bytes. `identity` is the text of an age identity file.
///
/// # Errors
/// The artefact is encrypted and no identity fits, or its header is damaged.
pub fn decoder(
    stored: impl Read + Send + 'static,
    compression: Compression,
    identity: Option<&str>,
) -> io::Result<Box<dyn Read + Send>> {
    let plain: Box<dyn Read + Send> = match identity {
        None => Box::new(stored),
        Some(text) => decrypted(stored, text)?,
    };
    decompressed(plain, codec_of(compression).codec)?
        .ok_or_else(|| io::Error::other("no library reads this codec"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use age::secrecy::ExposeSecret;

    fn encoder(compression: Compression, keys: &[String]) -> Encoder<Vec<u8>> {
        let encryption = Encryption::to(keys);
        Encoder::new(Vec::new(), codec_of(compression), &encryption).unwrap()
    }

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
                let mut encoder = encoder(compression, keys);
                encoder.write_all(&text).unwrap();
                let stored = encoder.finish().unwrap();
                let secret = identity.to_string();
                let key = (!keys.is_empty()).then(|| secret.expose_secret());
                let mut back = Vec::new();
                let mut reader =
                    decoder(std::io::Cursor::new(stored.clone()), compression, key).unwrap();
                reader.read_to_end(&mut back).unwrap();
                assert!(back == text, "{type_:?} with {} keys", keys.len());
                let cut = std::io::Cursor::new(stored[..stored.len() - 1].to_vec());
                let short =
                    decoder(cut, compression, key).and_then(|mut r| r.read_to_end(&mut Vec::new()));
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
        let mut encoder = encoder(compression, &recipients);
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
            let Err(e) = decoder(stored, compression, Some(key)) else {
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
            let failure = decrypted(io::empty(), text).err().unwrap();
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
