//! A snapshot of etcd: a bbolt file of as many pages as it says, and the SHA-256 of it after it.
//!
//! Source of the format: `page.go`, `meta.go` of go.etcd.io/bbolt.

use std::io::Read;

use sha2::{Digest as _, Sha256};

use crate::database::flaw::{Flaw, broken, each};

/// Bytes of the hash at the end.
const HASH: usize = 32;
/// Bytes from the beginning that hold both heads, whatever the size of a page.
const HEADS: usize = 128 * 1024;
/// Begins a head.
const MAGIC: u32 = 0xed0c_daed;
/// Bytes of a page before what it holds.
const PAGE_HEAD: usize = 16;
/// Bytes of a head that its checksum is of, and its whole length.
const SUMMED: usize = 56;
const HEAD: usize = SUMMED + 8;

pub(crate) fn check(from: &mut dyn Read) -> Result<(), Flaw> {
    let (mut hash, mut held, mut heads) = (Sha256::new(), vec![], vec![]);
    let mut bytes = 0u64;
    each(from, |chunk| {
        let room = HEADS.saturating_sub(heads.len()).min(chunk.len());
        heads.extend_from_slice(&chunk[..room]);
        held.extend_from_slice(chunk);
        let ready = held.len().saturating_sub(HASH);
        hash.update(&held[..ready]);
        held.drain(..ready);
        bytes += ready as u64;
    })?;
    if bytes == 0 || held.as_slice() != hash.finalize().as_slice() {
        return Err(broken("has another checksum than it says"));
    }
    let said = size(&heads).ok_or_else(|| broken("does not begin like one of etcd"))?;
    if said != bytes {
        return Err(broken(format!("has {bytes} bytes instead of {said}")));
    }
    Ok(())
}

/// Bytes of the file by its newest head.
fn size(file: &[u8]) -> Option<u64> {
    let first = head(file, 0);
    // Where the first one is damaged, the second stands at the next page, of whatever size.
    let pages = (9..=16).map(|n| 1usize << n);
    let second = match first {
        Some((page, ..)) => head(file, usize::try_from(page).ok()?),
        None => pages.into_iter().find_map(|page| head(file, page)),
    };
    let newest = first.into_iter().chain(second).max_by_key(|(.., id)| *id)?;
    newest.0.checked_mul(newest.1)
}

/// Size of a page, number of pages and transaction of the head at the page that begins here.
fn head(file: &[u8], at: usize) -> Option<(u64, u64, u64)> {
    let from = at.checked_add(PAGE_HEAD)?;
    let bytes = file.get(from..from.checked_add(HEAD)?)?;
    let four = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let eight = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    // FNV-1a of 64 bits.
    let sum = bytes[..SUMMED]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    if four(0)? != MAGIC || eight(SUMMED)? != sum {
        return None;
    }
    Some((u64::from(four(8)?), eight(40)?, eight(48)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t4_a_hash_alone_makes_no_snapshot() {
        let good = |body: &[u8]| {
            let mut file = body.to_vec();
            file.extend(Sha256::digest(body));
            check(&mut file.as_slice()).is_ok()
        };
        assert!(!good(b"") && !good(&[7; 1024]));
        // One head, of 4 pages of 512 bytes.
        let mut body = vec![0; 2048];
        let mut words = MAGIC.to_le_bytes().to_vec();
        for word in [2u32, 512, 0] {
            words.extend(word.to_le_bytes());
        }
        for word in [3u64, 0, 2, 4, 9] {
            words.extend(word.to_le_bytes());
        }
        let sum = words.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        words.extend(sum.to_le_bytes());
        body[16..16 + words.len()].copy_from_slice(&words);
        assert!(good(&body));
        assert!(!good(&body[..1536]));
        body.extend([0; 512]);
        assert!(!good(&body));
    }
}
