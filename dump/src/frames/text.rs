//! The small form: numbers as what they differ by from the ones before, column after column, compressed, as base64.
//!
//! Before compression: a version; the runs, each with section, names and the number of its frames; then for all frames the
//! rows, the lengths stored, the lengths of text, of each key how much it shares with the one before, the length of the
//! rest, and the rests. Numbers are LEB128.

use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Frames, KEY, Meta};
use crate::Section;

/// The form described above.
const VERSION: u8 = 1;
/// Most frames: 2 TiB of text in frames of 2 MiB, or a million tables.
const MOST: usize = 1 << 20;
/// Largest form before compression, in bytes.
const LARGEST: usize = 64 << 20;
/// Largest form as text.
const LARGEST_TEXT: usize = 16 << 20;
/// The rests of keys may take this many bytes; beyond it, keys are kept of every second frame, every fourth, and so on.
const KEYS: usize = 1 << 20;
/// A decoder needs this much memory, as a power of two, in bytes.
const WINDOW: u32 = 23;
const LEVEL: i32 = 9;

/// In the order of their numbers.
const SECTIONS: [Section; 7] = [
    Section::Head,
    Section::Accounts,
    Section::Schema,
    Section::Data,
    Section::Programs,
    Section::Foot,
    Section::Grants,
];

fn damaged(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the list of frames is damaged: {what}"),
    )
}

fn too_many() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "the list of frames is too long for a manifest: {MOST} frames and {LARGEST} bytes of names and numbers are the most"
        ),
    )
}

impl Frames {
    /// The small form, for a manifest. Keys are thinned out where they would take too much of it.
    ///
    /// # Errors
    /// There are too many frames.
    pub fn to_text(&self) -> io::Result<String> {
        if self.len() > MOST {
            return Err(too_many());
        }
        let plain = self.packed();
        if plain.len() > LARGEST {
            return Err(too_many());
        }
        let mut packed = zstd::bulk::Compressor::new(LEVEL)?;
        packed.include_checksum(true)?;
        packed.set_parameter(zstd::zstd_safe::CParameter::WindowLog(WINDOW))?;
        let text = STANDARD.encode(packed.compress(&plain)?);
        if text.len() > LARGEST_TEXT {
            return Err(too_many());
        }
        Ok(text)
    }

    /// Reads the small form.
    ///
    /// # Errors
    /// It is damaged, or a later version's.
    pub fn from_text(text: &str) -> io::Result<Self> {
        if text.len() > LARGEST_TEXT {
            return Err(too_many());
        }
        let packed = STANDARD
            .decode(text)
            .map_err(|_| damaged("it is not base64"))?;
        let mut plain = vec![];
        let mut decoder = zstd::Decoder::new(packed.as_slice())?;
        decoder.window_log_max(WINDOW)?;
        decoder
            .take(LARGEST as u64 + 1)
            .read_to_end(&mut plain)
            .map_err(|e| damaged(&format!("it can't be decompressed: {e}")))?;
        if plain.len() > LARGEST {
            return Err(too_many());
        }
        unpacked(&plain)
    }

    fn packed(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        number(&mut out, self.runs.len() as u64);
        for (n, run) in self.runs.iter().enumerate() {
            let section = SECTIONS.iter().position(|s| *s == run.section);
            number(&mut out, section.unwrap_or_default() as u64);
            for name in [&run.database, &run.table] {
                number(&mut out, name.len() as u64);
                out.extend_from_slice(name.as_bytes());
            }
            number(&mut out, self.numbers(n).len() as u64);
        }
        differences(&mut out, self.iter().map(|f| f.rows));
        differences(&mut out, self.iter().map(|f| f.stored));
        differences(&mut out, self.iter().map(|f| f.raw));
        self.keys(&mut out);
        out
    }

    fn keys(&self, out: &mut Vec<u8>) {
        let mut every = 1;
        loop {
            let kept = |n: usize| {
                let entry = self.entries.get(n).filter(|_| n.is_multiple_of(every));
                entry.map_or("", |e| &*e.first_key)
            };
            let mut last = "";
            let (mut shared_lengths, mut rest_lengths, mut rests) = (vec![], vec![], vec![]);
            for key in (0..self.len()).map(kept) {
                // A key that is not kept does not come between two that are.
                let same = last.bytes().zip(key.bytes()).take_while(|(a, b)| a == b);
                let shared = same.count();
                let rest = key.as_bytes().get(shared..).unwrap_or_default();
                number(&mut shared_lengths, shared as u64);
                number(&mut rest_lengths, rest.len() as u64);
                rests.extend_from_slice(rest);
                if !key.is_empty() {
                    last = key;
                }
            }
            if rests.len() <= KEYS {
                for column in [shared_lengths, rest_lengths, rests] {
                    out.extend_from_slice(&column);
                }
                return;
            }
            every *= 2;
        }
    }
}

fn unpacked(plain: &[u8]) -> io::Result<Frames> {
    let mut rest = Rest(plain);
    match rest.bytes(1)? {
        [VERSION] => {}
        _ => {
            return Err(damaged("it has another version's form: use a newer runner"));
        }
    }
    // Each run takes four bytes and more, each frame five: no count is believed beyond what is there.
    let count = rest.count(4)?;
    let mut runs = Vec::with_capacity(count);
    let mut frames = 0usize;
    for _ in 0..count {
        let section = usize::try_from(rest.number()?)
            .ok()
            .and_then(|n| SECTIONS.get(n))
            .ok_or_else(|| damaged("it has a section that is none"))?;
        let (database, table) = (rest.string()?, rest.string()?);
        let of_run = rest.count(5)?;
        frames = frames.saturating_add(of_run);
        if of_run == 0 || frames > MOST {
            return Err(damaged("the number of its frames is impossible"));
        }
        runs.push((*section, database, table, of_run));
    }
    if frames > rest.0.len() / 5 {
        return Err(damaged("it ends early"));
    }
    let rows = rest.differences(frames)?;
    let stored = rest.differences(frames)?;
    let raw = rest.differences(frames)?;
    let keys = rest.keys(frames)?;
    if !rest.0.is_empty() {
        return Err(damaged("something follows it"));
    }
    let mut all = Frames::default();
    let names = runs.iter().flat_map(|(section, database, table, n)| {
        std::iter::repeat_n((section, database, table), *n)
    });
    let numbers = rows.into_iter().zip(stored).zip(raw).zip(keys);
    for ((section, database, table), (((rows, stored), raw), first_key)) in names.zip(numbers) {
        let meta = Meta {
            section: *section,
            database: (*database).to_owned(),
            table: (*table).to_owned(),
            rows,
            first_key,
        };
        all.add(meta, raw, stored)?;
    }
    Ok(all)
}

/// LEB128.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What each number differs by from the one before, small either way.
fn differences(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    let mut last = 0u64;
    for value in values {
        let difference = value.wrapping_sub(last).cast_signed();
        number(
            out,
            ((difference << 1) ^ (difference >> 63)).cast_unsigned(),
        );
        last = value;
    }
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| damaged("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self
                .bytes(1)?
                .first()
                .ok_or_else(|| damaged("it ends early"))?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged("a number is too large"))
    }

    /// A number of things that take `least` bytes each.
    fn count(&mut self, least: usize) -> io::Result<usize> {
        let value = self.number()?;
        usize::try_from(value)
            .ok()
            .filter(|n| *n <= self.0.len() / least)
            .ok_or_else(|| damaged("it ends early"))
    }

    fn string(&mut self) -> io::Result<&'a str> {
        let length = self.count(1)?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| damaged("a name is not UTF-8"))
    }

    fn differences(&mut self, count: usize) -> io::Result<Vec<u64>> {
        let mut last = 0u64;
        let one = |_| {
            let value = self.number()?;
            let difference = (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
            last = last.wrapping_add(difference.cast_unsigned());
            Ok(last)
        };
        (0..count).map(one).collect()
    }

    fn lengths(&mut self, count: usize) -> io::Result<Vec<usize>> {
        let one = |_| {
            usize::try_from(self.number()?)
                .ok()
                .filter(|n| *n <= KEY)
                .ok_or_else(|| damaged("a key is too long"))
        };
        (0..count).map(one).collect()
    }

    fn keys(&mut self, count: usize) -> io::Result<Vec<String>> {
        let (shared, own) = (self.lengths(count)?, self.lengths(count)?);
        let mut last: Vec<u8> = vec![];
        let one = |(shared, own): (usize, usize)| {
            let mut key = last
                .get(..shared)
                .ok_or_else(|| damaged("a key shares more than there is"))?
                .to_vec();
            key.extend_from_slice(self.bytes(own)?);
            if key.len() > KEY {
                return Err(damaged("a key is too long"));
            }
            if !key.is_empty() {
                last.clone_from(&key);
            }
            String::from_utf8(key).map_err(|_| damaged("a key is not UTF-8"))
        };
        shared.into_iter().zip(own).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn a_meta() -> impl Strategy<Value = Meta> {
        let section = (0usize..6).prop_map(|n| SECTIONS[n]);
        (
            section,
            "[a-c]{0,2}|😀.{0,3}",
            "[a-c]?",
            any::<u64>(),
            ".{0,40}",
        )
            .prop_map(|(section, database, table, rows, first_key)| Meta {
                section,
                database,
                table,
                rows,
                first_key,
            })
    }

    fn some_frames() -> impl Strategy<Value = Frames> {
        let lengths = (any::<u64>().prop_map(|n| n >> 8), any::<u32>());
        proptest::collection::vec((a_meta(), lengths), 0..60).prop_map(|all| {
            let mut frames = Frames::default();
            for (meta, (raw, stored)) in all {
                frames.add(meta, raw, stored.into()).unwrap();
            }
            frames
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(frames in some_frames()) {
            prop_assert_eq!(Frames::from_text(&frames.to_text().unwrap()).unwrap(), frames);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error_in_words(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            version in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if version && let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            if let Err(e) = unpacked(&bytes) {
                prop_assert!(e.to_string().starts_with("the "), "{}", e);
            }
        }

        #[test]
        fn damaged_frames_are_frames_or_an_error_in_words(
            frames in some_frames(),
            at in any::<prop::sample::Index>(),
            with in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let mut plain = frames.packed();
            let at = at.index(plain.len());
            if cut {
                plain.truncate(at);
                prop_assert!(unpacked(&plain).is_err());
            } else {
                plain[at] = with;
                let _ = unpacked(&plain);
            }
        }

        #[test]
        fn a_damaged_text_is_an_error(
            frames in some_frames(),
            at in any::<prop::sample::Index>(),
            with in "[A-Za-z0-9 =]",
        ) {
            let text = frames.to_text().unwrap();
            let at = at.index(text.len());
            let mut damaged = text.clone();
            damaged.replace_range(at..=at, &with);
            // Its checksum finds what its form does not show; some bits of the header say nothing.
            if let Ok(read) = Frames::from_text(&damaged) {
                prop_assert_eq!(read, frames);
            }
        }
    }

    /// Keys, rows and lengths as a table of a hundred thousand frames has them.
    fn large(key: impl Fn(u64) -> String) -> Frames {
        let mut frames = Frames::default();
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut first = 0;
        for _ in 0..100_000 {
            let rows = 20_000 + random(400);
            let meta = Meta {
                section: Section::Data,
                database: "shop".into(),
                table: "orders".into(),
                rows,
                first_key: key(first),
            };
            let (raw, stored) = ((4 << 20) + random(210), 900_000 + random(100_000));
            frames.add(meta, raw, stored).unwrap();
            first += rows + random(3);
        }
        frames
    }

    #[test]
    fn a_hundred_thousand_frames_are_well_below_two_mebibytes() {
        let frames = large(|n| n.to_string());
        let text = frames.to_text().unwrap();
        assert!(text.len() < 3 << 19, "{} bytes", text.len());
        assert_eq!(Frames::from_text(&text).unwrap(), frames);
        // Of keys without any order, some are left out.
        let frames = large(|n| {
            let hash = xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes());
            format!("'{hash:032x}'")
        });
        let text = frames.to_text().unwrap();
        assert!(text.len() < 2 << 20, "{} bytes", text.len());
        let read = Frames::from_text(&text).unwrap();
        let kept: Vec<_> = read.iter().filter(|f| !f.first_key.is_empty()).collect();
        assert_eq!(kept.len(), 25_000);
        for (read, frame) in read.iter().zip(frames.iter()) {
            assert!(read.first_key.is_empty() || read == frame);
            assert_eq!(
                (read.at, read.raw, read.rows),
                (frame.at, frame.raw, frame.rows)
            );
        }
    }

    #[test]
    fn sizes_are_not_believed() {
        let huge = |bytes: &[u8]| {
            let mut plain = vec![VERSION];
            plain.extend_from_slice(bytes);
            unpacked(&plain).unwrap_err().to_string()
        };
        // 2^63 runs; a name of 2^35 bytes; 2^40 frames.
        assert!(huge(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).contains("early"));
        assert!(huge(&[1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0]).contains("early"));
        assert!(huge(&[1, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]).contains("early"));
        // A text that becomes a thousand times as long.
        let bomb = zstd::bulk::compress(&vec![0; LARGEST + 1], 3).unwrap();
        assert!(bomb.len() < 1 << 20);
        let text = STANDARD.encode(bomb);
        assert!(Frames::from_text(&text).is_err());
        assert!(Frames::from_text(&"A".repeat(LARGEST_TEXT + 4)).is_err());
    }

    #[test]
    fn a_later_version_is_named() {
        let e = unpacked(&[2]).unwrap_err();
        assert!(e.to_string().contains("newer runner"), "{e}");
    }
}
