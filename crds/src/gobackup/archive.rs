//! `compressWith` and `encodeWith`: what the archive is.

use crate::backup::{CompressWith, EncodeWith, SplitWith};
use crate::validate::Problem;

use super::words::{problem, secret_key, split, text};
use crate::plan::{Codec, Compress, Credential, Encrypt, Split};

/// PBKDF2 iterations of `openssl enc -pbkdf2` without `-iter`.
pub const DEFAULT_ITERATIONS: u32 = 10_000;

/// The codec of a type name; `None` if there is no such type. Names are gobackup's, and the
/// words people write (`gzip`, which its own samples use, is none of them).
pub fn codec(name: &str) -> Option<Codec> {
    Some(match name.trim() {
        "Z" | "taZ" | "tar.Z" => return Some(Codec::Compress),
        name => match name.to_lowercase().as_str() {
            "" | "tar" | "none" => Codec::Tar,
            "gz" | "tgz" | "taz" | "tar.gz" | "gzip" => Codec::Gzip,
            "bz2" | "tbz" | "tbz2" | "tar.bz2" | "bzip2" => Codec::Bzip2,
            "lz" | "tar.lz" | "lzip" => Codec::Lzip,
            "lzma" | "tlz" | "tar.lzma" => Codec::Lzma,
            "lzo" | "tar.lzo" | "lzop" => Codec::Lzop,
            "xz" | "txz" | "tar.xz" => Codec::Xz,
            "zst" | "tzst" | "tar.zst" | "zstd" => Codec::Zstd,
            _ => return None,
        },
    })
}

/// Compression of the archive.
pub(super) fn compress(
    path: &str,
    with: Option<&CompressWith>,
    found: &mut Vec<Problem>,
) -> Compress {
    let Some(with) = with else {
        return Compress::default();
    };
    let name = with.type_.as_deref().unwrap_or_default();
    let Some(codec) = codec(name) else {
        found.push(problem(
            format!("{path}.type"),
            format!("unknown compression {name:?}; use tgz, zst, xz, bz2 or another of gobackup's types, or tar for none"),
        ));
        return Compress::default();
    };
    let level = with.level.map(|l| {
        let (low, high) = match codec {
            Codec::Zstd => (1, 19),
            _ => (1, 9),
        };
        if !(low..=high).contains(&l) {
            found.push(problem(
                format!("{path}.level"),
                format!("must be {low} to {high}, is {l}"),
            ));
        }
        i32::try_from(l).unwrap_or(high as i32)
    });
    Compress { codec, level }
}

/// Smallest part: smaller ones make more files than they are worth.
const SMALLEST_PART: u64 = 1 << 20;

/// Parts of the archive.
pub(super) fn split_with(path: &str, with: &SplitWith, found: &mut Vec<Problem>) -> Option<Split> {
    let Some(size) = text(with.chunk_size.as_deref()) else {
        found.push(problem(
            format!("{path}.chunkSize"),
            "is not set; set the size of a part, for example 1G, or remove splitWith",
        ));
        return None;
    };
    let bytes = bytes(&size).filter(|b| *b >= SMALLEST_PART);
    if bytes.is_none() {
        found.push(problem(
            format!("{path}.chunkSize"),
            format!("{size:?} is not a size of 1M or more; write 100M, 1G or a number of bytes"),
        ));
    }
    let length = with.suffix_length.unwrap_or(3);
    let suffix_length = u8::try_from(length).ok().filter(|l| (1..=8).contains(l));
    if suffix_length.is_none() {
        found.push(problem(
            format!("{path}.suffixLength"),
            format!("must be 1 to 8, is {length}"),
        ));
    }
    Some(Split {
        bytes: bytes?,
        suffix_length: suffix_length?,
        numeric: with.numeric_suffixes.unwrap_or(true),
    })
}

/// A size as `split -b` reads it.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (base, unit) = match text[digits.len()..].to_uppercase().as_str() {
        "" | "B" => (1, 0),
        unit => {
            let base: u64 = if unit.len() == 2 && unit.ends_with('B') {
                1000
            } else {
                1024
            };
            let power = match unit.trim_end_matches("IB").trim_end_matches('B') {
                "K" => 1,
                "M" => 2,
                "G" => 3,
                "T" => 4,
                _ => return None,
            };
            (base, power)
        }
    };
    digits
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(base.checked_pow(unit)?)
}

/// Encryption of the archive. An `encodeWith` that asks for encryption without a key is a
/// mistake, never a plain-text archive.
pub(super) fn encrypt(
    path: &str,
    with: Option<&EncodeWith>,
    found: &mut Vec<Problem>,
) -> Option<Encrypt<Credential>> {
    let with = with?;
    let type_ = text(with.type_.as_deref())
        .map(|t| t.to_lowercase())
        .or_else(|| with.openssl.unwrap_or(false).then(|| "openssl".to_owned()));
    match type_.as_deref() {
        None => {
            if password(with).is_some() || !with.recipients.is_empty() {
                found.push(problem(
                    format!("{path}.type"),
                    "is not set although there is a key; set openssl or age",
                ));
            }
            None
        }
        Some("openssl") => openssl(path, with, found),
        Some("age") => age(path, with, found),
        Some(other) => {
            found.push(problem(
                format!("{path}.type"),
                format!("unknown encryption {other:?}; use openssl or age, or remove encodeWith"),
            ));
            None
        }
    }
}

fn password(with: &EncodeWith) -> Option<Credential> {
    match &with.password_secret_key_ref {
        Some(reference) => Some(secret_key(reference)),
        None => with
            .password
            .as_deref()
            .filter(|p| !p.is_empty())
            .map(|p| Credential::Literal(p.to_owned())),
    }
}

fn age(path: &str, with: &EncodeWith, found: &mut Vec<Problem>) -> Option<Encrypt<Credential>> {
    if with.recipients.is_empty() && with.recipients_secret_key_ref.is_none() {
        found.push(problem(
            path,
            "names no recipient; set recipients or recipientsSecretKeyRef, or remove encodeWith",
        ));
        return None;
    }
    Some(Encrypt::Age {
        recipients: with.recipients.clone(),
        recipients_file: with.recipients_secret_key_ref.as_ref().map(secret_key),
    })
}

fn openssl(path: &str, with: &EncodeWith, found: &mut Vec<Problem>) -> Option<Encrypt<Credential>> {
    let Some(password) = password(with) else {
        found.push(problem(
            path,
            "asks for encryption but names no key; set passwordSecretKeyRef {name, key}, or remove encodeWith",
        ));
        return None;
    };
    let mut bits = None;
    if let Some(cipher) = text(with.cipher.as_deref()) {
        bits = cipher_bits(&cipher);
        if bits.is_none() {
            found.push(unknown_cipher(format!("{path}.cipher"), &cipher));
        }
    }
    let (mut iterations, mut digest, mut base64) = (
        DEFAULT_ITERATIONS,
        "sha256".to_owned(),
        with.base64.unwrap_or(false),
    );
    let mut iterated = false;
    let args_path = format!("{path}.args");
    let words = split(with.args.as_deref().unwrap_or_default()).unwrap_or_else(|e| {
        found.push(problem(&args_path, e));
        vec![]
    });
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-pbkdf2" => iterated = true,
            "-salt" | "-e" => {}
            "-a" | "-base64" => base64 = true,
            "-iter" => match words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0) {
                Some(n) => (iterations, iterated) = (n, true),
                None => found.push(problem(&args_path, "-iter needs a number above 0")),
            },
            "-md" => match words.next().map(str::to_lowercase) {
                Some(name) if matches!(name.as_str(), "sha1" | "sha256" | "sha512") => {
                    digest = name;
                }
                _ => found.push(problem(&args_path, "-md needs sha256, sha512 or sha1")),
            },
            "-k" | "-pass" | "-K" | "-iv" | "-S" | "-kfile" => {
                words.next();
                found.push(problem(
                    &args_path,
                    format!("{word} puts the key where everyone can read it; use passwordSecretKeyRef {{name, key}}"),
                ));
            }
            cipher => match cipher_bits(cipher) {
                Some(b) => bits = bits.or(Some(b)),
                None if cipher.starts_with('-') => {
                    found.push(unknown_cipher(args_path.clone(), cipher));
                }
                // It may belong to an option that takes a key.
                None => found.push(problem(
                    &args_path,
                    "holds a word that is not an option; remove it",
                )),
            },
        }
    }
    if with.pbkdf2 == Some(false) {
        if iterated {
            found.push(problem(
                format!("{path}.pbkdf2"),
                "is false, and args ask for -pbkdf2 or -iter; remove one of them",
            ));
        }
        iterations = 0;
    }
    Some(Encrypt::Openssl {
        password,
        bits: bits.unwrap_or(256),
        iterations,
        digest,
        base64,
    })
}

fn cipher_bits(name: &str) -> Option<u16> {
    match name.trim_start_matches('-').to_lowercase().as_str() {
        "aes-256-cbc" | "aes256" => Some(256),
        "aes-192-cbc" | "aes192" => Some(192),
        "aes-128-cbc" | "aes128" => Some(128),
        _ => None,
    }
}

fn unknown_cipher(path: String, name: &str) -> Problem {
    problem(
        path,
        format!(
            "{name:?} is not supported; use -aes-256-cbc, -aes-192-cbc or -aes-128-cbc, -pbkdf2, -iter N, -md sha256, -base64"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_split() {
        for (text, expected) in [
            ("1G", Some(1 << 30)),
            ("100M", Some(100 << 20)),
            ("5MB", Some(5_000_000)),
            ("5MiB", Some(5 << 20)),
            ("1048576", Some(1 << 20)),
            ("3k", Some(3072)),
            ("1X", None),
            ("G", None),
            ("99999999999999T", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn suffixes_count_and_end() {
        let split = |suffix_length, numeric| Split {
            bytes: 1,
            suffix_length,
            numeric,
        };
        assert_eq!(split(3, true).suffix(7).as_deref(), Some("007"));
        assert_eq!(split(2, false).suffix(27).as_deref(), Some("bb"));
        assert_eq!(split(1, true).suffix(10), None);
    }
}
