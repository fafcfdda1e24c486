//! LZF, in which Redis packs long strings (`lzf_d.c`).

/// Unpacks to `whole` bytes; `None` if it is not that.
pub(crate) fn unpack(packed: &[u8], whole: u64) -> Option<Vec<u8>> {
    let whole = usize::try_from(whole).ok()?;
    let mut out: Vec<u8> = vec![];
    let mut rest = packed;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        if control < 32 {
            let (literal, after) = rest.split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(literal);
            rest = after;
        } else {
            let mut length = usize::from(control >> 5);
            if length == 7 {
                let (&more, after) = rest.split_first()?;
                length += usize::from(more);
                rest = after;
            }
            let (&low, after) = rest.split_first()?;
            rest = after;
            let back = (usize::from(control & 0x1f) << 8 | usize::from(low)) + 1;
            let start = out.len().checked_sub(back)?;
            // It may overlap with what it makes.
            for from in start..start + length + 2 {
                let byte = *out.get(from)?;
                out.push(byte);
            }
        }
        if out.len() > whole {
            return None;
        }
    }
    (out.len() == whole).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_liblzf_packed_comes_out_and_what_it_did_not_is_refused() {
        // As DUMP of redis-server 7.0 gave it.
        let packed = b"\x01aa\xe0\x1d\x00\x02bcd\xe0\x03\x02\x08the end, \x60\x08\x01nd";
        let whole = format!("{}{}the end, the end", "a".repeat(40), "bcd".repeat(5));
        assert_eq!(unpack(packed, 71), Some(whole.into_bytes()));
        assert_eq!(unpack(packed, 70), None);
        assert_eq!(unpack(packed, 72), None);
        assert_eq!(unpack(&[32, 9], 3), None);
        assert_eq!(unpack(&[4, 1], 5), None);
    }
}
