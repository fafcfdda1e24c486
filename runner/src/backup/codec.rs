//! Compression and encryption of the archive as one stack of writers. What no library writes
//! goes through its own program as a filter.

use crds::report::Reason;
use std::io::{self, Read, Write};
use std::process::ChildStdin;
use std::thread::JoinHandle;

use crds::plan::{Codec, Compress, Encrypt};
use secrecy::{ExposeSecret, SecretString};

use crate::context::Context;
use crate::database::failures::explain;
use crate::failure::Failure;
use crate::process::{Program, Running};
use crate::stream::openssl;

/// The program of a codec that no library of ours writes.
fn program(codec: Codec) -> Option<&'static str> {
    match codec {
        Codec::Compress => Some("compress"),
        Codec::Lzip => Some("lzip"),
        Codec::Lzop => Some("lzop"),
        _ => None,
    }
}

/// The codec can be had here.
///
/// # Errors
/// Its program is not in the image.
pub(crate) fn check(context: &Context, compress: Compress) -> Result<(), Failure> {
    match program(compress.codec) {
        Some(name) => context.settings.program(name).map(drop),
        None => Ok(()),
    }
}

/// Compressing and encrypting writer over `W`.
pub(crate) struct Encoder<W: Write + Send> {
    stack: Compressor<W>,
}

enum Compressor<W: Write + Send> {
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

impl<W: Write + Send> Encoder<W> {
    /// The stack over `sink`.
    ///
    /// # Errors
    /// A header can't be written, or a recipient is none.
    pub(crate) fn new(
        sink: W,
        compress: Compress,
        encrypt: Option<&Encrypt<SecretString>>,
        salt: [u8; 8],
    ) -> io::Result<Self> {
        let encryptor = encryptor(sink, encrypt, salt)?;
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
    pub(crate) fn finish(self) -> io::Result<W> {
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

impl<W: Write + Send> Write for Encoder<W> {
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

fn encryptor<W: Write>(
    sink: W,
    encrypt: Option<&Encrypt<SecretString>>,
    salt: [u8; 8],
) -> io::Result<Encryptor<W>> {
    match encrypt {
        None => Ok(Encryptor::Plain(sink)),
        Some(Encrypt::Openssl {
            password,
            bits,
            iterations,
            digest,
            base64,
        }) => {
            let options = openssl::Options {
                password: password.expose_secret(),
                bits: *bits,
                iterations: *iterations,
                digest,
                base64: *base64,
                salt,
            };
            Ok(Encryptor::Openssl(Box::new(openssl::Encryptor::new(
                sink, &options,
            )?)))
        }
        Some(Encrypt::Age {
            recipients,
            recipients_file,
        }) => {
            let file = recipients_file.as_ref().map_or("", |f| f.expose_secret());
            let lines = file
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty() && !l.starts_with('#'));
            let keys: Vec<age::x25519::Recipient> = recipients
                .iter()
                .map(String::as_str)
                .chain(lines)
                .map(|text| crate::stream::codec::parse_recipient(text).map_err(io::Error::other))
                .collect::<Result<_, _>>()?;
            let all = keys.iter().map(|k| k as &dyn age::Recipient);
            let encryptor = age::Encryptor::with_recipients(all).map_err(io::Error::other)?;
            Ok(Encryptor::Age(Box::new(encryptor.wrap_output(sink)?)))
        }
    }
}

/// A filter program: what is written to it comes out compressed at `sink`'s side.
pub(crate) struct Filter<S: Send + 'static> {
    stdin: Option<ChildStdin>,
    running: Running,
    pump: JoinHandle<io::Result<S>>,
    name: &'static str,
}

impl<S: Write + Send + 'static> Filter<S> {
    /// Starts the program of the codec; gives the sink back if the codec needs none.
    ///
    /// # Errors
    /// It can't be started.
    pub(crate) fn start(
        context: &Context,
        compress: Compress,
        mut sink: S,
    ) -> Result<Result<Self, S>, Failure> {
        let Some(name) = program(compress.codec) else {
            return Ok(Err(sink));
        };
        let level = compress.level.map(|l| format!("-{l}"));
        let args = ["-c".to_owned()]
            .into_iter()
            .chain(level.filter(|_| name != "compress"));
        let mut running =
            Program::new(context.settings.program(name)?, args).start(context, true)?;
        let stdin = running.stdin.take();
        let Some(mut stdout) = running.stdout.take() else {
            return Err(Failure::new(
                Reason::ClientNotStarted,
                format!("{name} has no output"),
            ));
        };
        let pump = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match stdout.read(&mut buffer)? {
                    0 => return Ok(sink),
                    n => sink.write_all(&buffer[..n])?,
                }
            }
        });
        Ok(Ok(Self {
            stdin,
            running,
            pump,
            name,
        }))
    }

    /// Closes its input, waits for its end and gives the sink back.
    ///
    /// # Errors
    /// The program failed, or the sink did.
    pub(crate) fn finish(mut self) -> io::Result<S> {
        drop(self.stdin.take());
        let sink = self
            .pump
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the filter's thread panicked")));
        let ended = self.running.wait().map_err(io::Error::other)?;
        if !ended.good() {
            return Err(io::Error::other(explain(self.name, &ended)));
        }
        sink
    }
}

impl<S: Write + Send + 'static> Write for Filter<S> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.stdin {
            Some(stdin) => stdin.write(data),
            None => Err(io::Error::other("closed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
