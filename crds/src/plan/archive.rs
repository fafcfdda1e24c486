//! Compression and encryption of the archive.

use serde::{Deserialize, Serialize};

use super::none;

/// Compression of the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compress {
    /// Codec.
    pub codec: Codec,
    /// Level; none means the codec's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<i32>,
}

/// Codecs of the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// None.
    #[default]
    Tar,
    /// gzip.
    Gzip,
    /// compress, the .Z of old.
    Compress,
    /// bzip2.
    Bzip2,
    /// lzip.
    Lzip,
    /// LZMA alone.
    Lzma,
    /// lzop.
    Lzop,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// End of the archive's name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Tar => ".tar",
            Self::Gzip => ".tar.gz",
            Self::Compress => ".tar.Z",
            Self::Bzip2 => ".tar.bz2",
            Self::Lzip => ".tar.lz",
            Self::Lzma => ".tar.lzma",
            Self::Lzop => ".tar.lzo",
            Self::Xz => ".tar.xz",
            Self::Zstd => ".tar.zst",
        }
    }
}

/// Parts of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Split {
    /// Bytes of a part.
    pub bytes: u64,
    /// Characters of a part's suffix.
    pub suffix_length: u8,
    /// Numbers instead of letters.
    pub numeric: bool,
}

impl Split {
    /// The suffix of a part, counted from 0; `None` if there are no more of this length.
    pub fn suffix(self, part: u64) -> Option<String> {
        let base = if self.numeric { 10 } else { 26 };
        let first = if self.numeric { b'0' } else { b'a' };
        let mut left = part;
        let mut text = vec![];
        for _ in 0..self.suffix_length {
            let digit = u8::try_from(left % base).unwrap_or(0);
            text.push(char::from(first + digit));
            left /= base;
        }
        (left == 0).then(|| text.into_iter().rev().collect())
    }
}

/// Encryption of the archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Encrypt<C> {
    /// What `openssl enc -d -CIPHER -pbkdf2 -iter N -md MD` opens.
    #[serde(rename_all = "camelCase")]
    Openssl {
        /// Password.
        password: C,
        /// Key size in bits: 128, 192 or 256, CBC.
        bits: u16,
        /// PBKDF2 iterations; 0 means the derivation of `openssl enc` without -pbkdf2.
        iterations: u32,
        /// Digest of PBKDF2: sha256, sha512 or sha1.
        digest: String,
        /// base64 lines instead of bytes.
        base64: bool,
    },
    /// What `age -d` opens.
    #[serde(rename_all = "camelCase")]
    Age {
        /// Public keys.
        recipients: Vec<String>,
        /// Public keys, one a line.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        recipients_file: Option<C>,
    },
}

impl<C> Encrypt<C> {
    /// The same encryption with every secret replaced.
    pub(super) fn map<D>(self, f: &mut impl FnMut(&str, C) -> D) -> Encrypt<D> {
        match self {
            Self::Openssl {
                password,
                bits,
                iterations,
                digest,
                base64,
            } => Encrypt::Openssl {
                password: f("encrypt/password", password),
                bits,
                iterations,
                digest,
                base64,
            },
            Self::Age {
                recipients,
                recipients_file,
            } => Encrypt::Age {
                recipients,
                recipients_file: recipients_file.map(|r| f("encrypt/recipients", r)),
            },
        }
    }
}
