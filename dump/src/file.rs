//! The file: frames one after the other, and for zstd the seek table after them.

use std::io::{self, Write};

use crate::Compress;
use crate::frames::{Frames, Meta};
use crate::seek::Table;

/// Writes frames into `W`, and keeps where they stand.
pub struct File<W: Write> {
    sink: W,
    frames: Frames,
    /// None if it is not zstd.
    seek: Option<Table>,
}

impl<W: Write> File<W> {
    /// A file of frames that an [`crate::Encoder`] of the same compression makes.
    pub fn new(sink: W, compress: Compress) -> Self {
        Self {
            sink,
            frames: Frames::default(),
            seek: matches!(compress, Compress::Zstd(_)).then(Table::default),
        }
    }

    /// Writes the frame that `raw` bytes of text became.
    ///
    /// # Errors
    /// The sink's.
    pub fn write(&mut self, meta: Meta, raw: u64, stored: &[u8]) -> io::Result<()> {
        self.sink.write_all(stored)?;
        if let Some(seek) = &mut self.seek {
            seek.add(raw, stored);
        }
        self.frames.add(meta, raw, stored.len() as u64)
    }

    /// Closes the file: gives the sink back, and where everything stands.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<(W, Frames)> {
        if let Some(frame) = self.seek.and_then(Table::frame) {
            self.sink.write_all(&frame)?;
        }
        Ok((self.sink, self.frames))
    }
}
