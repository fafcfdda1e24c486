//! Text as a frame that can be read alone.

use std::io;

use flate2::{Compress as Deflate, Compression, FlushCompress, Status};

use crate::Compress;

/// Memory for output that is kept from one frame to the next, in bytes.
const KEPT: usize = 4 * crate::FRAME;

/// Makes frames. Each thread has its own; what the codec needs is used again from frame to frame.
pub struct Encoder {
    codec: Codec,
    space: Vec<u8>,
}

enum Codec {
    Zstd(zstd::bulk::Compressor<'static>),
    Gzip(Deflate),
    Plain,
}

impl Encoder {
    /// Of this compression.
    ///
    /// # Errors
    /// There is no such level, or no memory.
    pub fn new(compress: Compress) -> io::Result<Self> {
        let codec = match compress {
            Compress::Zstd(level) => {
                let mut compressor = zstd::bulk::Compressor::new(level)?;
                compressor.include_checksum(true)?;
                compressor.include_contentsize(true)?;
                Codec::Zstd(compressor)
            }
            Compress::Gzip(level) if level > 9 => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("gzip has no level {level}: 0 to 9"),
                ));
            }
            Compress::Gzip(level) => {
                Codec::Gzip(Deflate::new_gzip(Compression::new(level), GZIP_WINDOW))
            }
            Compress::None => Codec::Plain,
        };
        Ok(Self {
            codec,
            space: vec![],
        })
    }

    /// Makes one frame of `text`: a zstd frame with the length of its content and a checksum, a gzip member, or the text
    /// itself. It takes the place of what is in `out`.
    ///
    /// # Errors
    /// The codec's own, such as no memory.
    pub fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        match &mut self.codec {
            Codec::Plain => out.extend_from_slice(text),
            Codec::Zstd(compressor) => {
                self.space.clear();
                self.space
                    .reserve(zstd::zstd_safe::compress_bound(text.len()));
                compressor.compress_to_buffer(text, &mut self.space)?;
                out.extend_from_slice(&self.space);
            }
            Codec::Gzip(deflate) => {
                self.space.clear();
                member(deflate, text, &mut self.space)?;
                out.extend_from_slice(&self.space);
            }
        }
        if self.space.capacity() > KEPT {
            self.space = vec![];
        }
        Ok(())
    }
}

/// The window of gzip, as a power of two.
const GZIP_WINDOW: u8 = 15;

fn member(deflate: &mut Deflate, text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    deflate.reset();
    loop {
        out.reserve(64 << 10);
        let taken = usize::try_from(deflate.total_in()).map_err(io::Error::other)?;
        let rest = text.get(taken..).unwrap_or_default();
        if deflate.compress_vec(rest, out, FlushCompress::Finish)? == Status::StreamEnd {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;
    use std::io::Read;

    fn encoded(encoder: &mut Encoder, text: &[u8]) -> Vec<u8> {
        let mut out = b"what was there before".to_vec();
        encoder.encode(text, &mut out).unwrap();
        out
    }

    #[test]
    fn each_frame_opens_alone_and_tells_that_it_is_damaged() {
        let texts: Vec<Vec<u8>> = [0, 1, 70_000, 5 << 20]
            .iter()
            .map(|n| (0..*n).map(|i: u32| (i / 5 * 7) as u8).collect())
            .collect();
        for compress in [Compress::Zstd(1), Compress::Zstd(19), Compress::Gzip(6)] {
            let mut encoder = Encoder::new(compress).unwrap();
            // In both directions: nothing of a frame is left for the next.
            for text in texts.iter().chain(texts.iter().rev()) {
                let stored = encoded(&mut encoder, text);
                let open = |stored: &[u8]| {
                    let mut back = vec![];
                    match compress {
                        Compress::Gzip(_) => flate2::read::GzDecoder::new(stored)
                            .read_to_end(&mut back)
                            .map(|_| back),
                        _ => zstd::stream::decode_all(stored),
                    }
                };
                assert!(open(&stored).unwrap() == *text);
                if let Compress::Zstd(_) = compress {
                    let size = zstd::zstd_safe::get_frame_content_size(&stored).unwrap();
                    assert_eq!(size, Some(text.len() as u64));
                }
                // The last byte is the checksum's, or of the length after it.
                let mut damaged = stored;
                *damaged.last_mut().unwrap() ^= 1;
                assert!(open(&damaged).is_err());
            }
        }
    }

    #[test]
    fn plain_text_stays_what_it_is() {
        let mut encoder = Encoder::new(Compress::None).unwrap();
        assert_eq!(encoded(&mut encoder, b"SELECT 1;\n"), b"SELECT 1;\n");
        assert!(encoded(&mut encoder, b"").is_empty());
    }

    #[test]
    fn a_level_that_is_none_is_an_error() {
        assert!(Encoder::new(Compress::Gzip(10)).is_err());
    }
}
