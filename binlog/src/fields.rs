//! Reads the fields of an event; none reads beyond its end.

use crate::fault::Fault;

/// What is left of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(Fault::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Fault::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Fault> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// An integer of mysql::serialization: ones at the low end of the first byte say how many bytes follow it.
    pub(crate) fn integer(&mut self) -> Result<u64, Fault> {
        let first = self.u8()?;
        let more = first.trailing_ones() as usize;
        let mut bytes = [0; 8];
        let rest = self.take(more)?;
        if more == 8 {
            bytes.copy_from_slice(rest);
            return Ok(u64::from_le_bytes(bytes));
        }
        bytes[0] = first;
        bytes[1..=more].copy_from_slice(rest);
        Ok(u64::from_le_bytes(bytes) >> (more + 1))
    }
}

/// Appends such an integer of less than 128.
pub(crate) fn put_small(out: &mut Vec<u8>, n: u8) {
    out.push(n << 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length() {
        // By the table of libs/mysql/serialization/readme.md: value, bytes.
        for (bytes, value) in [
            (&[0][..], 0),
            (&[0b1111_1110], 127),
            (&[0b0000_0001, 0b0000_0010], 128),
            (&[0b1111_1101, 0xff], 0x3fff),
            (&[0b0000_0011, 0, 2], 0x4000),
            (&[0xff, 1, 2, 3, 4, 5, 6, 7, 8], 0x0807_0605_0403_0201),
            (
                &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                (1 << 56) - 1,
            ),
        ] {
            let mut fields = Fields(bytes);
            assert_eq!(fields.integer().unwrap(), value, "{bytes:x?}");
            assert!(fields.0.is_empty());
            assert!(Fields(&bytes[..bytes.len() - 1]).integer().is_err());
        }
    }
}
