//! The seek table of zstd's seekable format: a skippable frame after the frames of a file, which tells their lengths. What
//! reads zstd passes over it.

/// First number of the skippable frame.
const SKIPPABLE: u32 = 0x184D_2A5E;
/// Last number of the table.
const SEEKABLE: u32 = 0x8F92_EAB1;
/// Set in the descriptor if each entry has a checksum.
const WITH_CHECKSUMS: u8 = 1 << 7;
/// Most frames that the format allows.
const MOST: usize = 0x800_0000;
/// Bytes of an entry, and of what stands after them.
const ENTRY: usize = 12;
/// See [`ENTRY`].
const FOOT: usize = 9;

/// The lengths of the frames so far.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<u8>,
    /// A frame was there whose lengths the format can't hold.
    beyond: bool,
}

impl Table {
    /// Adds a zstd frame with a checksum, of `raw` bytes of text. Its last four bytes are the lower half of the XXH64 of the
    /// text, which is what the table wants to know too.
    pub(crate) fn add(&mut self, raw: u64, stored: &[u8]) {
        let lengths = u32::try_from(stored.len())
            .ok()
            .zip(u32::try_from(raw).ok());
        let (Some((stored_length, raw)), Some(checksum)) = (lengths, stored.last_chunk::<4>())
        else {
            self.beyond = true;
            return;
        };
        self.entries.extend_from_slice(&stored_length.to_le_bytes());
        self.entries.extend_from_slice(&raw.to_le_bytes());
        self.entries.extend_from_slice(checksum);
    }

    /// The frame that closes the file; none if a frame or their number is beyond what the format can tell, which costs a
    /// stranger's reader its seeking and nothing else.
    pub(crate) fn frame(self) -> Option<Vec<u8>> {
        let count = self.entries.len() / ENTRY;
        let length = u32::try_from(self.entries.len() + FOOT).ok()?;
        if self.beyond || count > MOST {
            return None;
        }
        let mut frame = Vec::with_capacity(8 + self.entries.len() + FOOT);
        frame.extend_from_slice(&SKIPPABLE.to_le_bytes());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&self.entries);
        frame.extend_from_slice(&u32::try_from(count).ok()?.to_le_bytes());
        frame.push(WITH_CHECKSUMS);
        frame.extend_from_slice(&SEEKABLE.to_le_bytes());
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_table_is_laid_out_as_the_format_says() {
        let mut table = Table::default();
        table.add(0x0102_0304, &[9, 8, 7, 6, 5]);
        #[rustfmt::skip]
        let wanted = [
            0x5e, 0x2a, 0x4d, 0x18, 21, 0, 0, 0,
            5, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5,
            1, 0, 0, 0, 0x80, 0xb1, 0xea, 0x92, 0x8f,
        ];
        assert_eq!(table.frame().unwrap(), wanted);
    }

    #[test]
    fn a_frame_that_the_format_cannot_hold_leaves_no_wrong_table() {
        let mut table = Table::default();
        table.add(1, &[0; 9]);
        table.add(1 << 32, &[0; 9]);
        assert!(table.frame().is_none());
    }
}
