//! CRC-64 of Redis.

/// CRC-64 of Redis (Jones, reflected), of one byte each.
const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut c = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 {
                (c >> 1) ^ 0x95ac_9329_ac4b_c9b5
            } else {
                c >> 1
            };
            bit += 1;
        }
        table[byte] = c;
        byte += 1;
    }
    table
};

/// CRC-64 of Redis of what had `crc` and goes on with `bytes`.
pub(crate) fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, byte| {
        TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8)
    })
}

/// CRC-64 of Redis over all but the last eight bytes.
pub(crate) struct Crc64 {
    crc: u64,
    held: Vec<u8>,
}

impl Crc64 {
    /// Of nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            crc: 0,
            held: vec![],
        }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
        let ready = self.held.len().saturating_sub(8);
        self.crc = crc64(self.crc, &self.held[..ready]);
        self.held.drain(..ready);
    }

    /// The sum.
    pub(crate) fn value(&self) -> u64 {
        self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        // src/crc64.c of Redis: "123456789" gives e9c6d914c4b8d9ca.
        let mut crc = Crc64::new();
        for part in [&b"1234"[..], b"56789", b"xxxxxxxx"] {
            crc.feed(part);
        }
        assert_eq!(crc.value(), 0xe9c6_d914_c4b8_d9ca);
    }
}
