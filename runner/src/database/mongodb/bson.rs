//! What mongodump writes: collections as documents one after the other, each with its length before
//! it, and what is known of a collection as JSON.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use crate::database::flaw::{Flaw, array, broken, each, pass};

/// Shortest document: its length and its end.
const LEAST: u32 = 5;
/// Longest that a server keeps, with room for what it adds.
const MOST: u32 = 16 * 1024 * 1024 + 16 * 1024;
/// Longest text that is read.
const TEXT: usize = 64 << 20;

pub(crate) fn check(path: &str, from: &mut dyn Read) -> Result<(), Flaw> {
    if let Some(inner) = path.strip_suffix(".gz") {
        let mut open = MultiGzDecoder::new(from);
        let found = plain(inner, &mut open);
        // To its end: there stands the checksum of what was packed.
        io::copy(&mut open, &mut io::sink())?;
        return found;
    }
    plain(path, from)
}

fn plain(path: &str, from: &mut dyn Read) -> Result<(), Flaw> {
    if path.ends_with(".bson") {
        documents(from)
    } else if path.ends_with(".json") {
        text(from)
    } else {
        Ok(())
    }
}

fn documents(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut from = io::BufReader::with_capacity(crate::database::flaw::BUFFER, from);
    loop {
        let mut first = [0];
        if from.read(&mut first)? == 0 {
            return Ok(());
        }
        let [second, third, fourth] = array(&mut from)?;
        let length = u32::from_le_bytes([first[0], second, third, fourth]);
        if !(LEAST..=MOST).contains(&length) {
            return Err(broken(format!("holds a document of {length} bytes")));
        }
        pass(&mut from, u64::from(length - LEAST))?;
        if array(&mut from)? != [0] {
            return Err(broken("holds a document without an end"));
        }
    }
}

fn text(from: &mut dyn Read) -> Result<(), Flaw> {
    let mut all = vec![];
    each(from, |chunk| {
        if all.len() <= TEXT {
            all.extend_from_slice(chunk);
        }
    })?;
    if all.len() > TEXT {
        return Err(broken("holds a description of more than 64 MiB"));
    }
    serde_json::from_slice::<serde::de::IgnoredAny>(&all)
        .map(drop)
        .map_err(|e| broken(format!("holds a description that is no JSON ({e})")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::Write as _;

    use super::*;

    /// `{"a": 1}` and `{}`, by bsonspec.org.
    const TWO: &[u8] = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0\x05\0\0\0\0";

    fn good(path: &str, bytes: &[u8]) -> bool {
        check(path, &mut &bytes[..]).is_ok()
    }

    #[test]
    fn t4_a_collection_is_whole_documents() {
        for cut in 0..=TWO.len() {
            let expected = [0, 12, TWO.len()].contains(&cut);
            assert_eq!(good("app/t.bson", &TWO[..cut]), expected, "{cut}");
        }
        assert!(!good("app/t.bson", b"\x05\0\0\0\x01"));
        assert!(!good("app/t.bson", &[0xff; 20]));
        let mut packed = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        packed.write_all(TWO).unwrap();
        let packed = packed.finish().unwrap();
        assert!(good("app/t.bson.gz", &packed));
        for cut in 0..packed.len() {
            assert!(!good("app/t.bson.gz", &packed[..cut]), "{cut}");
        }
    }

    #[test]
    fn t4_a_description_is_whole_json() {
        let whole = br#"{"indexes":[{"v":{"$numberInt":"2"}}],"uuid":"x"}"#;
        assert!(good("t.metadata.json", whole));
        for cut in 0..whole.len() {
            assert!(!good("t.metadata.json", &whole[..cut]), "{cut}");
        }
    }
}
