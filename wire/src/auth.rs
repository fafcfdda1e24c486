//! How a password is shown to be known, a plugin each.

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use rsa::pkcs1::DecodeRsaPublicKey;
use rsa::pkcs8::DecodePublicKey;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::error::Error;

/// An authentication plugin that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// SHA-1; gone in MySQL 9.
    Native,
    /// SHA-256; the server knows the hash by heart, or asks for the password.
    CachingSha2,
    /// MariaDB's Ed25519, keys by SHA-512.
    Ed25519,
    /// MariaDB's Ed25519, keys by PBKDF2.
    Parsec,
    /// SHA-256 without a memory: the password, or it under the server's key.
    Sha256,
    /// The password as it is, for a directory or PAM behind the server.
    Clear,
}

impl Plugin {
    const ALL: [Self; 6] = [
        Self::Native,
        Self::CachingSha2,
        Self::Ed25519,
        Self::Parsec,
        Self::Sha256,
        Self::Clear,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Ed25519 => "client_ed25519",
            Self::Parsec => "parsec",
            Self::Sha256 => "sha256_password",
            Self::Clear => "mysql_clear_password",
        }
    }

    pub(crate) fn of(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| Error::Plugin(name.chars().take(64).collect()))
    }

    /// What is sent first, for this scramble of the server's. Nobody on a `secure` way can read it.
    pub(crate) fn begin(
        self,
        password: &[u8],
        scramble: &[u8],
        secure: bool,
    ) -> Result<Vec<u8>, Error> {
        match self {
            Self::Native | Self::CachingSha2 if password.is_empty() => Ok(Vec::new()),
            Self::Native => Ok(native(password, scramble_of::<20>(scramble)?).to_vec()),
            Self::CachingSha2 => Ok(caching_sha2(password, scramble_of::<20>(scramble)?).to_vec()),
            Self::Ed25519 => Ok(ed25519(password, scramble_of::<32>(scramble)?).to_vec()),
            // The salt is asked for by sending nothing.
            Self::Parsec => Ok(Vec::new()),
            // The server's key is asked for.
            Self::Sha256 if !secure && !password.is_empty() => Ok(vec![1]),
            Self::Sha256 | Self::Clear => plain(password, secure),
        }
    }
}

/// The password as it is, where nobody can read it.
pub(crate) fn plain(password: &[u8], secure: bool) -> Result<Vec<u8>, Error> {
    if !secure {
        return Err(Error::PasswordKept(
            "the user's authentication plugin wants it as it is, and the connection has no TLS",
        ));
    }
    Ok([password, &[0]].concat())
}

/// The first bytes of what a server wants scrambled.
pub(crate) fn scramble_of<const N: usize>(scramble: &[u8]) -> Result<&[u8; N], Error> {
    scramble
        .first_chunk()
        .ok_or(Error::Malformed("what is to be scrambled is too short"))
}

fn xor<const N: usize>(a: &[u8], b: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = a ^ b;
    }
    out
}

/// SHA1(password) ⊕ SHA1(scramble, SHA1(SHA1(password))).
fn native(password: &[u8], scramble: &[u8; 20]) -> [u8; 20] {
    use sha1::Digest as _;
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    xor(
        &once,
        &Sha1::new()
            .chain_update(scramble)
            .chain_update(twice)
            .finalize(),
    )
}

/// SHA256(password) ⊕ SHA256(SHA256(SHA256(password)), scramble).
fn caching_sha2(password: &[u8], scramble: &[u8; 20]) -> [u8; 32] {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    xor(
        &once,
        &Sha256::new()
            .chain_update(twice)
            .chain_update(scramble)
            .finalize(),
    )
}

/// Signs the scramble; SHA512(password) takes the place of the hashed seed of RFC 8032.
fn ed25519(password: &[u8], scramble: &[u8; 32]) -> [u8; 64] {
    let secret = ExpandedSecretKey::from_bytes(&Sha512::digest(password).into());
    let public = VerifyingKey::from(&secret);
    raw_sign::<Sha512>(&secret, scramble, &public).to_bytes()
}

/// More rounds than 2^(10 + this) would only keep this side busy.
const PARSEC_FACTOR: u8 = 10;

/// The answer to a salt: a scramble of our own, and both scrambles signed.
pub(crate) fn parsec(password: &[u8], scramble: &[u8; 32], salt: &[u8]) -> Result<Vec<u8>, Error> {
    let mut own = [0; 32];
    getrandom::fill(&mut own)
        .map_err(|_| Error::PasswordKept("this machine has no random numbers"))?;
    parsec_with(password, scramble, salt, &own)
}

fn parsec_with(
    password: &[u8],
    scramble: &[u8; 32],
    salt: &[u8],
    own: &[u8; 32],
) -> Result<Vec<u8>, Error> {
    let [b'P', factor @ 0..=PARSEC_FACTOR, salt @ ..] = salt else {
        return Err(Error::Malformed("the salt of parsec is of another form"));
    };
    if salt.is_empty() || salt.len() > 64 {
        return Err(Error::Malformed("the salt of parsec is of another length"));
    }
    let mut seed = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, 1024 << factor, &mut seed);
    let signature = SigningKey::from_bytes(&seed).sign(&[&scramble[..], own].concat());
    Ok([&own[..], &signature.to_bytes()].concat())
}

/// The password under the server's RSA key, as caching_sha2_password wants it without TLS.
pub(crate) fn sealed(password: &[u8], scramble: &[u8; 20], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let bad = || Error::Malformed("the server's RSA key can't be read");
    if pem.len() > 16 << 10 {
        return Err(bad());
    }
    let pem = std::str::from_utf8(pem)
        .map_err(|_| bad())?
        .trim_matches(['\0', '\n']);
    let key = rsa::RsaPublicKey::from_public_key_pem(pem)
        .or_else(|_| rsa::RsaPublicKey::from_pkcs1_pem(pem))
        .map_err(|_| bad())?;
    let mut plain: Vec<u8> = password.iter().copied().chain([0]).collect();
    for (byte, key) in plain.iter_mut().zip(scramble.iter().cycle()) {
        *byte ^= key;
    }
    key.encrypt(&mut rsa::rand_core::OsRng, rsa::Oaep::new::<Sha1>(), &plain)
        .map_err(|_| Error::PasswordKept("it does not fit under the server's RSA key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Computed with Python's hashlib by the formulas of the servers' documentation.
    #[test]
    fn scrambles_are_those_of_the_documentation() {
        let scramble = *b"abcdefghijklmnopqrst";
        assert_eq!(
            hex(&native(b"password", &scramble)),
            "bfdd49584b917d42c758edd2a7a541f721843041"
        );
        assert_eq!(
            hex(&caching_sha2(b"password", &scramble)),
            "6584c404bc44a3d014cacc4fc823edc02991a53d5ae825ea0f91c7a0f1f26653"
        );
    }

    #[test]
    fn a_password_goes_as_it_is_only_where_nobody_reads_it() {
        let refused = Plugin::Clear.begin(b"secret", b"", false).unwrap_err();
        assert!(matches!(refused, Error::PasswordKept(_)), "{refused}");
        assert_eq!(
            Plugin::Clear.begin(b"secret", b"", true).unwrap(),
            b"secret\0"
        );
        assert_eq!(
            Plugin::Sha256.begin(b"secret", b"", true).unwrap(),
            b"secret\0"
        );
        assert_eq!(Plugin::Sha256.begin(b"secret", b"", false).unwrap(), [1]);
    }

    /// Without a password nothing is scrambled; the servers take anything else for a wrong one.
    #[test]
    fn no_password_is_no_answer() {
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            assert_eq!(plugin.begin(b"", &[0; 20], false).unwrap(), b"");
        }
    }
}
