//! An archive's bytes back to its files: decrypted, decompressed, and read as the tar it is.

use crds::report::Reason;
use std::io::{self, Read};

use aes::cipher::{BlockDecryptMut, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};
use crds::plan::{Codec, Encrypt};
use secrecy::{ExposeSecret, SecretString};

use crate::failure::Failure;
use crate::stream::openssl::{self, Options};

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
    let unreadable = |e: &dyn std::fmt::Display| {
        Failure::new(
            Reason::NotDecryptable,
            format!("{name} can't be opened: {e}; check the key it was encrypted with"),
        )
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
        let options = Options {
            password: password.expose_secret(),
            bits: *bits,
            iterations: *iterations,
            digest,
            base64: *base64,
            salt: [0; 8],
        };
        inner = Box::new(Decryptor::new(inner, &options).map_err(|e| unreadable(&e))?);
    }
    if age {
        let Some(identity) = identity else {
            return Ok(Err(Closed::NoIdentity));
        };
        inner = crate::stream::codec::decoder(
            inner,
            crds::parts::CompressionType::None,
            Some(identity),
        )
        .map_err(|e| unreadable(&e))?;
    }
    Ok(Ok(match codec {
        Codec::Tar => inner,
        Codec::Gzip => Box::new(flate2::read::MultiGzDecoder::new(inner)),
        Codec::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(inner)),
        Codec::Zstd => Box::new(zstd::Decoder::new(inner).map_err(|e| unreadable(&e))?),
        Codec::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(inner)),
        Codec::Lzma => {
            // GNU tar writes xz under this name.
            let stream = liblzma::stream::Stream::new_auto_decoder(u64::MAX, 0)
                .map_err(|e| unreadable(&e))?;
            Box::new(liblzma::read::XzDecoder::new_stream(inner, stream))
        }
        Codec::Compress | Codec::Lzip | Codec::Lzop => return Ok(Err(Closed::NoDecoder)),
    }))
}

enum Cipher {
    Aes128(cbc::Decryptor<Aes128>),
    Aes192(cbc::Decryptor<Aes192>),
    Aes256(cbc::Decryptor<Aes256>),
}

/// Reads what `openssl enc -pbkdf2` and [`openssl::Encryptor`] write.
struct Decryptor {
    source: Box<dyn Read + Send>,
    cipher: Cipher,
    /// Decrypted and not yet given.
    ready: Vec<u8>,
    given: usize,
    /// Read and not yet decrypted: always a block at least, until the end is known.
    pending: Vec<u8>,
    ended: bool,
}

impl Decryptor {
    fn new(source: Box<dyn Read + Send>, options: &Options<'_>) -> io::Result<Self> {
        let mut source: Box<dyn Read + Send> = if options.base64 {
            Box::new(Lines::new(source))
        } else {
            source
        };
        let mut header = [0; 16];
        source.read_exact(&mut header)?;
        let Some(salt) = header.strip_prefix(b"Salted__") else {
            return Err(io::Error::other(
                "it does not begin as openssl's output does",
            ));
        };
        let mut own = Options {
            salt: [0; 8],
            ..*options
        };
        own.salt.copy_from_slice(salt);
        let derived = openssl::derive(&own);
        let (key, iv) = derived.split_at(usize::from(options.bits / 8));
        let wrong = |_| io::Error::other("a key of this size is none");
        let cipher = match options.bits {
            128 => Cipher::Aes128(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
            192 => Cipher::Aes192(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
            _ => Cipher::Aes256(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
        };
        Ok(Self {
            source,
            cipher,
            ready: vec![],
            given: 0,
            pending: vec![],
            ended: false,
        })
    }

    fn blocks(&mut self, count: usize) {
        let rest = self.pending.split_off(count);
        let mut data = std::mem::replace(&mut self.pending, rest);
        macro_rules! each {
            ($cipher:expr) => {
                for block in data.chunks_exact_mut(openssl::BLOCK) {
                    $cipher.decrypt_block_mut(block.into());
                }
            };
        }
        match &mut self.cipher {
            Cipher::Aes128(c) => each!(c),
            Cipher::Aes192(c) => each!(c),
            Cipher::Aes256(c) => each!(c),
        }
        self.ready = data;
        self.given = 0;
    }

    /// Decrypts more; the last block waits until it is known to be the last, for its padding.
    fn more(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        let n = self.source.read(&mut buffer)?;
        self.pending.extend_from_slice(&buffer[..n]);
        if n > 0 {
            let whole = self.pending.len().saturating_sub(1) / openssl::BLOCK * openssl::BLOCK;
            self.blocks(whole);
            return Ok(());
        }
        self.ended = true;
        if self.pending.len() != openssl::BLOCK {
            return Err(io::Error::other("it is cut off"));
        }
        self.blocks(openssl::BLOCK);
        let fill = usize::from(self.ready.last().copied().unwrap_or(0));
        let padding = self
            .ready
            .len()
            .checked_sub(fill)
            .filter(|_| (1..=openssl::BLOCK).contains(&fill))
            .filter(|at| self.ready[*at..].iter().all(|b| usize::from(*b) == fill));
        let Some(at) = padding else {
            return Err(io::Error::other("the password is wrong, or it is damaged"));
        };
        self.ready.truncate(at);
        Ok(())
    }
}

impl Read for Decryptor {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            if self.ended {
                return Ok(0);
            }
            self.more()?;
        }
        let n = target.len().min(self.ready.len() - self.given);
        target[..n].copy_from_slice(&self.ready[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

/// Lines of base64 as the bytes they stand for.
struct Lines {
    source: io::BufReader<Box<dyn Read + Send>>,
    ready: Vec<u8>,
    given: usize,
}

impl Lines {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source: io::BufReader::with_capacity(64 * 1024, source),
            ready: vec![],
            given: 0,
        }
    }
}

impl Read for Lines {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        use base64::Engine as _;
        use std::io::BufRead as _;
        while self.given == self.ready.len() {
            let mut line = vec![];
            // openssl's lines are short; a longer one is none of its.
            if (&mut self.source).take(4096).read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            let text = line.trim_ascii();
            self.ready = base64::engine::general_purpose::STANDARD
                .decode(text)
                .map_err(|e| io::Error::other(format!("it is no base64: {e}")))?;
            self.given = 0;
        }
        let n = target.len().min(self.ready.len() - self.given);
        target[..n].copy_from_slice(&self.ready[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::io::Write;

    fn options(password: &str, base64: bool) -> Options<'_> {
        Options {
            password,
            bits: 256,
            iterations: 10,
            digest: "sha256",
            base64,
            salt: *b"saltsalt",
        }
    }

    fn sealed(data: &[u8], base64: bool) -> Vec<u8> {
        let mut encryptor = openssl::Encryptor::new(vec![], &options("p $x", base64)).unwrap();
        encryptor.write_all(data).unwrap();
        encryptor.finish().unwrap()
    }

    #[test]
    fn what_was_sealed_opens_at_every_length() {
        for base64 in [false, true] {
            for length in [0, 1, 15, 16, 17, 47, 48, 49, 65_535, 65_536, 200_000] {
                let data: Vec<u8> = (0..length).map(|n: u32| n.to_le_bytes()[0]).collect();
                let sealed = sealed(&data, base64);
                let mut opened = vec![];
                Decryptor::new(Box::new(io::Cursor::new(sealed)), &options("p $x", base64))
                    .unwrap()
                    .read_to_end(&mut opened)
                    .unwrap();
                assert!(opened == data, "{length} bytes, base64 {base64}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_has_another_password_does_not() {
        let mut data = sealed(&[7; 100], false);
        let open = |data: Vec<u8>, password: &str| {
            let mut opened = vec![];
            Decryptor::new(Box::new(io::Cursor::new(data)), &options(password, false))
                .and_then(|mut d| d.read_to_end(&mut opened))
                .map(|_| opened)
        };
        assert_ne!(
            open(data.clone(), "wrong").unwrap_or_default(),
            vec![7; 100]
        );
        data.truncate(data.len() - 3);
        assert!(open(data, "p $x").is_err());
        assert!(open(b"plain text of some length".to_vec(), "p $x").is_err());
    }

    #[test]
    fn names_tell_what_an_archive_is() {
        assert_eq!(codec_of("a/b.tar.gz"), Some((Codec::Gzip, false, false)));
        assert_eq!(codec_of("b.tar.zst.enc"), Some((Codec::Zstd, true, false)));
        assert_eq!(codec_of("b.tar.age"), Some((Codec::Tar, false, true)));
        assert_eq!(codec_of("b.sql"), None);
    }
}
