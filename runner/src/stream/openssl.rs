//! Encryption that `openssl enc -d -aes-256-cbc -pbkdf2` opens: `Salted__`, eight bytes of salt,
//! then AES-CBC with PKCS#7 padding under key and vector from PBKDF2.

use std::io::{self, Write};

use aes::cipher::{BlockEncryptMut, KeyIvInit};
use aes::{Aes128, Aes192, Aes256};

/// AES block.
pub(crate) const BLOCK: usize = 16;
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
pub(crate) struct Options<'a> {
    /// Password.
    pub(crate) password: &'a str,
    /// 128, 192 or 256.
    pub(crate) bits: u16,
    /// PBKDF2 iterations.
    pub(crate) iterations: u32,
    /// sha1, sha256 or sha512.
    pub(crate) digest: &'a str,
    /// Lines of base64 instead of bytes.
    pub(crate) base64: bool,
    /// Random.
    pub(crate) salt: [u8; 8],
}

/// Key and initial vector.
pub(crate) fn derive(options: &Options<'_>) -> Vec<u8> {
    let mut derived = vec![0; usize::from(options.bits / 8) + BLOCK];
    let (password, salt, rounds) = (
        options.password.as_bytes(),
        &options.salt,
        options.iterations,
    );
    match options.digest {
        "sha1" => pbkdf2::pbkdf2_hmac::<sha1::Sha1>(password, salt, rounds, &mut derived),
        "sha512" => pbkdf2::pbkdf2_hmac::<sha2::Sha512>(password, salt, rounds, &mut derived),
        _ => pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password, salt, rounds, &mut derived),
    }
    derived
}

/// Encrypting writer.
pub(crate) struct Encryptor<W: Write> {
    sink: Base64<W>,
    cipher: Cipher,
    pending: Vec<u8>,
}

impl<W: Write> Encryptor<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The sink's, or an option that is none.
    pub(crate) fn new(sink: W, options: &Options<'_>) -> io::Result<Self> {
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
    pub(crate) fn finish(mut self) -> io::Result<W> {
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
