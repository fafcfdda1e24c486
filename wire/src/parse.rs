//! Reads the fields of a packet; none reads beyond its end.

use crate::error::Error;

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

const SHORT: Error = Error::Malformed("a packet is too short");

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let Some((taken, rest)) = self.0.split_at_checked(n) else {
            return Err(SHORT);
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((taken, rest)) = self.0.split_first_chunk() else {
            return Err(SHORT);
        };
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Until a zero byte, which is taken too.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Error> {
        let end = memchr::memchr(0, self.0).ok_or(SHORT)?;
        let (text, rest) = (&self.0[..end], &self.0[end + 1..]);
        self.0 = rest;
        Ok(text)
    }

    /// A length-encoded integer; `None` for the byte that means NULL.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<Option<u64>, Error> {
        Ok(Some(match self.u8()? {
            n @ 0..=250 => n.into(),
            251 => return Ok(None),
            252 => self.u16()?.into(),
            253 => {
                let [a, b, c] = self.array()?;
                u32::from_le_bytes([a, b, c, 0]).into()
            }
            254 => u64::from_le_bytes(self.array()?),
            255 => return Err(Error::Malformed("a length begins with 0xff")),
        }))
    }

    /// A length-encoded integer that is there.
    pub(crate) fn integer(&mut self) -> Result<u64, Error> {
        self.length()?
            .ok_or(Error::Malformed("NULL in place of a number"))
    }

    /// Length-encoded bytes; `None` is NULL.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>, Error> {
        // Most values are short: rows have no other work than this.
        if let [length @ 0..=250, rest @ ..] = self.0
            && let Some((value, rest)) = rest.split_at_checked(usize::from(*length))
        {
            self.0 = rest;
            return Ok(Some(value));
        }
        self.long()
    }

    fn long(&mut self) -> Result<Option<&'a [u8]>, Error> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        let length = usize::try_from(length).map_err(|_| SHORT)?;
        self.take(length).map(Some)
    }

    /// Length-encoded bytes that are there.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        self.value()?
            .ok_or(Error::Malformed("NULL in place of bytes"))
    }
}

/// Appends a length-encoded integer.
pub(crate) fn put_length(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=250 => out.push(n.to_le_bytes()[0]),
        251..=0xffff => {
            out.push(252);
            out.extend_from_slice(&n.to_le_bytes()[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(253);
            out.extend_from_slice(&n.to_le_bytes()[..3]);
        }
        _ => {
            out.push(254);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Appends length-encoded bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        // Bytes of the protocol's documentation, "Protocol::LengthEncodedInteger".
        for (n, bytes) in [
            (0, &[0][..]),
            (250, &[250]),
            (251, &[252, 251, 0]),
            (0xffff, &[252, 0xff, 0xff]),
            (0x1_0000, &[253, 0, 0, 1]),
            (0xff_ffff, &[253, 0xff, 0xff, 0xff]),
            (0x100_0000, &[254, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[254, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            let mut written = Vec::new();
            put_length(&mut written, n);
            assert_eq!(written, bytes);
            let mut fields = Fields(bytes);
            assert_eq!(fields.length().unwrap(), Some(n));
            assert!(fields.0.is_empty());
            for short in 0..bytes.len() {
                assert!(Fields(&bytes[..short]).length().is_err());
            }
        }
        assert_eq!(Fields(&[251]).length().unwrap(), None);
        assert!(Fields(&[255, 1, 2, 3]).length().is_err());
    }

    #[test]
    fn a_length_beyond_the_packet_is_an_error() {
        assert!(Fields(&[5, 1, 2]).value().is_err());
        assert!(
            Fields(&[254, 255, 255, 255, 255, 255, 255, 255, 255, 0])
                .value()
                .is_err()
        );
    }
}
