//! Encryption that `openssl enc -d -aes-256-cbc -pbkdf2` opens (or without `-pbkdf2`, where that is asked), and its way back: `Salted__`, eight bytes of salt,
//! then AES-CBC with PKCS#7 padding under key and vector from PBKDF2.

use std::io::{self, Read, Write};

use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};

/// AES block.
pub const BLOCK: usize = 16;
/// Characters of a base64 line, as openssl writes them.
const LINE: usize = 64;
/// Bytes of such a line.
const LINE_BYTES: usize = LINE / 4 * 3;

enum Cipher {
    Aes128(cbc::Encryptor<Aes128>),
    Aes192(cbc::Encryptor<Aes192>),
    Aes256(cbc::Encryptor<Aes256>),
}

impl Cipher {
    /// Encrypts whole blocks in place.
    fn blocks(&mut self, data: &mut [u8]) -> io::Result<()> {
        let n = data.len();
        // Each call continues the chain: the encryptor's state is the last block.
        macro_rules! each {
            ($cipher:expr) => {
                for block in data.chunks_exact_mut(BLOCK) {
                    $cipher.encrypt_block_mut(block.into());
                }
            };
        }
        if !n.is_multiple_of(BLOCK) {
            return Err(io::Error::other("not whole blocks"));
        }
        match self {
            Self::Aes128(c) => each!(c),
            Self::Aes192(c) => each!(c),
            Self::Aes256(c) => each!(c),
        }
        Ok(())
    }
}

/// How to encrypt.
pub struct Options<'a> {
    /// Password.
    pub password: &'a str,
    /// 128, 192 or 256.
    pub bits: u16,
    /// PBKDF2 iterations; 0 means one round of the digest, as openssl does it without -pbkdf2.
    pub iterations: u32,
    /// sha1, sha256 or sha512.
    pub digest: &'a str,
    /// Lines of base64 instead of bytes.
    pub base64: bool,
    /// Random.
    pub salt: [u8; 8],
}

/// Key and initial vector.
pub fn derive(options: &Options<'_>) -> Vec<u8> {
    let mut derived = vec![0; usize::from(options.bits / 8) + BLOCK];
    let (password, salt, rounds) = (
        options.password.as_bytes(),
        &options.salt,
        options.iterations,
    );
    if rounds == 0 {
        match options.digest {
            "sha1" => one_round::<sha1::Sha1>(password, salt, &mut derived),
            "sha512" => one_round::<sha2::Sha512>(password, salt, &mut derived),
            _ => one_round::<sha2::Sha256>(password, salt, &mut derived),
        }
        return derived;
    }
    match options.digest {
        "sha1" => pbkdf2::pbkdf2_hmac::<sha1::Sha1>(password, salt, rounds, &mut derived),
        "sha512" => pbkdf2::pbkdf2_hmac::<sha2::Sha512>(password, salt, rounds, &mut derived),
        _ => pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password, salt, rounds, &mut derived),
    }
    derived
}

/// `EVP_BytesToKey` of OpenSSL with a count of 1: each block is the digest of the block before it,
/// the password and the salt.
fn one_round<D: sha2::Digest>(password: &[u8], salt: &[u8], derived: &mut [u8]) {
    let mut block: Vec<u8> = vec![];
    for part in derived.chunks_mut(<D as sha2::Digest>::output_size()) {
        let digest = D::new()
            .chain_update(&block)
            .chain_update(password)
            .chain_update(salt);
        block = digest.finalize().to_vec();
        part.copy_from_slice(&block[..part.len()]);
    }
}

/// Encrypting writer.
pub struct Encryptor<W: Write> {
    sink: Base64<W>,
    cipher: Cipher,
    pending: Vec<u8>,
}

impl<W: Write> Encryptor<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The sink's, or an option that is none.
    pub fn new(sink: W, options: &Options<'_>) -> io::Result<Self> {
        let size = usize::from(options.bits / 8);
        let derived = derive(options);
        let (key, iv) = derived.split_at(size);
        let wrong = |_| io::Error::other("a key of this size is none");
        let cipher = match options.bits {
            128 => Cipher::Aes128(cbc::Encryptor::new_from_slices(key, iv).map_err(wrong)?),
            192 => Cipher::Aes192(cbc::Encryptor::new_from_slices(key, iv).map_err(wrong)?),
            _ => Cipher::Aes256(cbc::Encryptor::new_from_slices(key, iv).map_err(wrong)?),
        };
        let mut sink = Base64 {
            sink,
            encode: options.base64,
            pending: vec![],
        };
        sink.write_all(b"Salted__")?;
        sink.write_all(&options.salt)?;
        Ok(Self {
            sink,
            cipher,
            pending: Vec::with_capacity(64 * 1024 + BLOCK),
        })
    }

    /// Writes the padding and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<W> {
        let fill = BLOCK - self.pending.len() % BLOCK;
        let byte = u8::try_from(fill).unwrap_or(16);
        self.pending.extend(std::iter::repeat_n(byte, fill));
        self.cipher.blocks(&mut self.pending)?;
        self.sink.write_all(&self.pending)?;
        self.sink.finish()
    }
}

impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = data.len().min(64 * 1024);
        self.pending.extend_from_slice(&data[..taken]);
        let whole = self.pending.len() / BLOCK * BLOCK;
        self.cipher.blocks(&mut self.pending[..whole])?;
        self.sink.write_all(&self.pending[..whole])?;
        self.pending.drain(..whole);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Base64<W: Write> {
    sink: W,
    encode: bool,
    pending: Vec<u8>,
}

impl<W: Write> Base64<W> {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        if !self.encode {
            return self.sink.write_all(data);
        }
        self.pending.extend_from_slice(data);
        let whole = self.pending.len() / LINE_BYTES * LINE_BYTES;
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        lines
            .chunks(LINE_BYTES)
            .try_for_each(|line| self.line(line))
    }

    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        use base64::Engine as _;
        let mut text = base64::engine::general_purpose::STANDARD.encode(bytes);
        text.push('\n');
        self.sink.write_all(text.as_bytes())
    }

    fn finish(mut self) -> io::Result<W> {
        if !self.pending.is_empty() {
            let rest = std::mem::take(&mut self.pending);
            self.line(&rest)?;
        }
        Ok(self.sink)
    }
}

enum Decipher {
    Aes128(cbc::Decryptor<Aes128>),
    Aes192(cbc::Decryptor<Aes192>),
    Aes256(cbc::Decryptor<Aes256>),
}

/// Reads what `openssl enc -pbkdf2` and [`Encryptor`] write.
pub struct Decryptor {
    source: Box<dyn Read + Send>,
    cipher: Decipher,
    /// Decrypted and not yet given.
    ready: Vec<u8>,
    given: usize,
    /// Read and not yet decrypted: always a block at least, until the end is known.
    pending: Vec<u8>,
    ended: bool,
}

impl Decryptor {
    /// Reads the header.
    ///
    /// # Errors
    /// It is none, or an option is none.
    pub fn new(source: Box<dyn Read + Send>, options: &Options<'_>) -> io::Result<Self> {
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
        let derived = derive(&own);
        let (key, iv) = derived.split_at(usize::from(options.bits / 8));
        let wrong = |_| io::Error::other("a key of this size is none");
        let cipher = match options.bits {
            128 => Decipher::Aes128(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
            192 => Decipher::Aes192(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
            _ => Decipher::Aes256(cbc::Decryptor::new_from_slices(key, iv).map_err(wrong)?),
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
                for block in data.chunks_exact_mut(BLOCK) {
                    $cipher.decrypt_block_mut(block.into());
                }
            };
        }
        match &mut self.cipher {
            Decipher::Aes128(c) => each!(c),
            Decipher::Aes192(c) => each!(c),
            Decipher::Aes256(c) => each!(c),
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
            let whole = self.pending.len().saturating_sub(1) / BLOCK * BLOCK;
            self.blocks(whole);
            return Ok(());
        }
        self.ended = true;
        if self.pending.len() != BLOCK {
            return Err(io::Error::other("it is cut off"));
        }
        self.blocks(BLOCK);
        let fill = usize::from(self.ready.last().copied().unwrap_or(0));
        let padding = self
            .ready
            .len()
            .checked_sub(fill)
            .filter(|_| (1..=BLOCK).contains(&fill))
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
        let mut encryptor = Encryptor::new(vec![], &options("p $x", base64)).unwrap();
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
}
