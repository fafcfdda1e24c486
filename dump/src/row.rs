//! Values as INSERT writes them.

use std::io::Write;
use std::rc::Rc;

use crate::sql::ESCAPED;

/// How the values of a column are written.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// As they are.
    Number,
    /// A FLOAT that the server shows as a DOUBLE, in as few digits as give it back.
    Float,
    /// A DOUBLE; its zero may have a sign.
    Double,
    /// `0x…`.
    Bytes,
    /// Quoted where they are UTF-8, of at most so many bytes a character, else `0x…`.
    Utf8(u8),
    /// Quoted where they are ASCII, else `0x…`.
    Ascii,
    /// Of a character set of single bytes.
    Single(Rc<Single>),
    /// Of a character set whose characters are of two or four bytes.
    Wide(Wide),
}

/// Characters of two or four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    /// utf16.
    Utf16,
    /// ucs2, which has no pairs.
    Ucs2,
    /// utf16le.
    Utf16Le,
    /// utf32.
    Utf32,
}

/// The characters of a set of single bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Single {
    /// Of each byte; `None` where the character would come back as another byte.
    pub(crate) characters: Vec<Option<char>>,
    /// The first 128 are ASCII.
    pub(crate) ascii: bool,
}

/// A value is not of its column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Odd;

impl How {
    /// Appends a value.
    #[inline]
    pub(crate) fn write(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
        match self {
            Self::Number => number(value, out),
            Self::Utf8(longest) => {
                if value.is_ascii() || is_utf8(value, *longest) {
                    quoted(value, out);
                } else {
                    hex(value, out);
                }
                Ok(())
            }
            Self::Bytes => {
                hex(value, out);
                Ok(())
            }
            Self::Ascii => {
                if value.is_ascii() {
                    quoted(value, out);
                } else {
                    hex(value, out);
                }
                Ok(())
            }
            Self::Float => float(value, out),
            Self::Double => double(value, out),
            Self::Single(single) => {
                single.write(value, out);
                Ok(())
            }
            Self::Wide(wide) => {
                match wide.text(value) {
                    Some(text) => quoted(text.as_bytes(), out),
                    None => hex(value, out),
                }
                Ok(())
            }
        }
    }
}

impl Single {
    fn write(&self, value: &[u8], out: &mut Vec<u8>) {
        if self.ascii && value.is_ascii() {
            return quoted(value, out);
        }
        let start = out.len();
        out.push(b'\'');
        for byte in value {
            let Some(Some(character)) = self.characters.get(usize::from(*byte)) else {
                out.truncate(start);
                return hex(value, out);
            };
            let mut bytes = [0; 4];
            escape(character.encode_utf8(&mut bytes).as_bytes(), out);
        }
        out.push(b'\'');
    }
}

impl Wide {
    /// The text, where it is one.
    fn text(self, value: &[u8]) -> Option<String> {
        if self == Self::Utf32 {
            let (fours, rest) = value.as_chunks::<4>();
            let characters = fours
                .iter()
                .map(|four| char::from_u32(u32::from_be_bytes(*four)));
            return characters
                .collect::<Option<String>>()
                .filter(|_| rest.is_empty());
        }
        let (pairs, rest) = value.as_chunks::<2>();
        let units = pairs.iter().map(|pair| match self {
            Self::Utf16Le => u16::from_le_bytes(*pair),
            _ => u16::from_be_bytes(*pair),
        });
        let characters = char::decode_utf16(units).collect::<Result<String, _>>();
        let kept = |text: &String| self != Self::Ucs2 || text.chars().all(|c| c <= '\u{ffff}');
        characters.ok().filter(|text| rest.is_empty() && kept(text))
    }
}

/// MySQL's three-byte UTF-8 has no characters of four.
fn is_utf8(value: &[u8], longest: u8) -> bool {
    std::str::from_utf8(value).is_ok() && (longest > 3 || value.iter().all(|byte| *byte < 0xf0))
}

/// Bytes of a number.
static DIGITS: [bool; 256] = {
    let mut table = [false; 256];
    let mut digit = b'0';
    while digit <= b'9' {
        table[digit as usize] = true;
        digit += 1;
    }
    table[b'-' as usize] = true;
    table[b'+' as usize] = true;
    table[b'.' as usize] = true;
    table[b'e' as usize] = true;
    table[b'E' as usize] = true;
    table
};

#[inline]
fn number(value: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
    if value.is_empty() || !value.iter().all(|byte| DIGITS[usize::from(*byte)]) {
        return Err(Odd);
    }
    out.extend_from_slice(value);
    Ok(())
}

fn parsed(value: &[u8]) -> Result<f64, Odd> {
    let text = std::str::from_utf8(value).map_err(|_| Odd)?;
    text.parse()
        .map_err(|_| Odd)
        .and_then(|n: f64| if n.is_finite() { Ok(n) } else { Err(Odd) })
}

/// `-0` would be the negative of the integer 0, which has no sign.
const NEGATIVE_ZERO: &[u8] = b"-0e0";

fn double(value: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
    if value.first() == Some(&b'-') && parsed(value)? == 0.0 {
        out.extend_from_slice(NEGATIVE_ZERO);
        return Ok(());
    }
    number(value, out)
}

/// The server reads a number as a DOUBLE before it makes a FLOAT of it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is compared with what it came from"
)]
fn float(value: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
    let exact = parsed(value)?;
    let short = exact as f32;
    if f64::from(short) != exact || exact == 0.0 {
        return double(value, out);
    }
    let start = out.len();
    let size = short.abs();
    let written = if (1e-5..1e15).contains(&size) {
        write!(out, "{short}")
    } else {
        write!(out, "{short:e}")
    };
    let text = out.get(start..).unwrap_or_default();
    if written.is_err() || parsed(text)? as f32 != short {
        out.truncate(start);
        return number(value, out);
    }
    Ok(())
}

fn quoted(value: &[u8], out: &mut Vec<u8>) {
    out.reserve(value.len() + 2);
    out.push(b'\'');
    escape(value, out);
    out.push(b'\'');
}

/// Bytes that are looked at together.
const BLOCK: usize = 16;

/// True if a byte of the block stands behind a backslash. No branch: the compiler makes wide comparisons of it.
#[inline]
fn has_escaped(block: &[u8; BLOCK]) -> bool {
    let mut found = 0_u8;
    for byte in block {
        found |= u8::from(*byte == 0)
            | u8::from(*byte == b'\n')
            | u8::from(*byte == b'\r')
            | u8::from(*byte == 0x1a)
            | u8::from(*byte == b'\'')
            | u8::from(*byte == b'"')
            | u8::from(*byte == b'\\');
    }
    found != 0
}

/// Appends text with a backslash before what needs one.
#[inline]
fn escape(value: &[u8], out: &mut Vec<u8>) {
    let (blocks, rest) = value.as_chunks::<BLOCK>();
    // What is not yet copied begins here.
    let mut from = 0;
    let each = |part: &[u8], at: usize, from: &mut usize, out: &mut Vec<u8>| {
        for (i, byte) in part.iter().enumerate() {
            let escaped = ESCAPED[usize::from(*byte)];
            if escaped != 0 {
                out.extend_from_slice(&value[*from..at + i]);
                out.extend_from_slice(&[b'\\', escaped]);
                *from = at + i + 1;
            }
        }
    };
    for (n, block) in blocks.iter().enumerate() {
        if has_escaped(block) {
            each(block, n * BLOCK, &mut from, out);
        }
    }
    each(rest, blocks.len() * BLOCK, &mut from, out);
    out.extend_from_slice(&value[from..]);
}

/// Appends `0x…`; nothing is `''`.
fn hex(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if value.is_empty() {
        return out.extend_from_slice(b"''");
    }
    out.extend_from_slice(b"0x");
    let start = out.len();
    out.resize(start + 2 * value.len(), 0);
    let (pairs, _) = out[start..].as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(value) {
        *pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
    }
}

/// The values of a row that is written, at these places of it.
pub(crate) fn values(row: &[u8], wanted: &[usize]) -> String {
    let inner = row
        .strip_prefix(b"(")
        .and_then(|row| row.strip_suffix(b")"));
    let mut all: Vec<&[u8]> = vec![];
    let (mut rest, mut at, mut in_text) = (inner.unwrap_or_default(), 0, false);
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' if in_text => at += 1,
            b'\'' => in_text = !in_text,
            b',' if !in_text => {
                all.push(&rest[..at]);
                (rest, at) = (&rest[at + 1..], 0);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    all.push(rest);
    let texts = wanted.iter().map(|n| {
        let value = all.get(*n).copied().unwrap_or_default();
        String::from_utf8_lossy(value)
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(how: &How, value: &[u8]) -> String {
        let mut out = vec![];
        how.write(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_clients_write_them() {
        for (how, value, text) in [
            (How::Number, &b"-12.50"[..], "-12.50"),
            (How::Bytes, b"", "''"),
            (How::Bytes, b"\0\xff\x1a", "0x00FF1A"),
            (How::Utf8(4), b"", "''"),
            (
                How::Utf8(4),
                b"it's \"a\\b\"\r\n\t\0\x1a",
                r#"'it\'s \"a\\b\"\r\n	\0\Z'"#,
            ),
            (How::Utf8(4), "€😀".as_bytes(), "'€😀'"),
            (How::Utf8(3), "€".as_bytes(), "'€'"),
            (How::Utf8(3), "😀".as_bytes(), "0xF09F9880"),
            (How::Utf8(4), b"a\xff", "0x61FF"),
            (How::Ascii, "é".as_bytes(), "0xC3A9"),
            (
                How::Wide(Wide::Utf16),
                b"\0'\x20\xac\xd8\x3d\xde\x00",
                r"'\'€😀'",
            ),
            (How::Wide(Wide::Utf16), b"\xd8\x3d", "0xD83D"),
            (How::Wide(Wide::Ucs2), b"\x20\xac", "'€'"),
            (How::Wide(Wide::Ucs2), b"\xd8\x3d\xde\x00", "0xD83DDE00"),
            (How::Wide(Wide::Utf16), b"\0a\0", "0x006100"),
            (How::Wide(Wide::Utf16Le), b"a\0\xac\x20", "'a€'"),
            (How::Wide(Wide::Utf32), b"\0\0\0a\0\x01\xf6\0", "'a😀'"),
            (How::Wide(Wide::Utf32), b"\0\0\xd8\0", "0x0000D800"),
            (How::Double, b"-0", "-0e0"),
            (How::Double, b"0", "0"),
            (
                How::Double,
                b"-1.7976931348623157e308",
                "-1.7976931348623157e308",
            ),
            (How::Float, b"-0", "-0e0"),
            (How::Float, b"0.10000000149011612", "0.1"),
            (How::Float, b"16777216", "16777216"),
            (How::Float, b"3.4028234663852886e38", "3.4028235e38"),
            // Not what a FLOAT holds: as the server has it.
            (How::Float, b"0.1", "0.1"),
            (How::Float, b"0.12345678901", "0.12345678901"),
        ] {
            assert_eq!(written(&how, value), text);
        }
        for (how, value) in [
            (How::Number, &b"1,2"[..]),
            (How::Number, b""),
            (How::Number, b"0)"),
            (How::Double, b"nan"),
            (How::Float, b"inf"),
            (How::Float, b"1e999"),
        ] {
            assert_eq!(how.write(value, &mut vec![]), Err(Odd), "{value:?}");
        }
    }

    #[test]
    fn single_bytes_that_would_come_back_as_others_are_bytes() {
        let mut characters: Vec<_> = (0..=255_u8).map(|byte| Some(char::from(byte))).collect();
        characters[0x80] = Some('€');
        characters[0x81] = None;
        let single = How::Single(Rc::new(Single {
            characters,
            ascii: true,
        }));
        assert_eq!(written(&single, b"a'\x80\xe9"), "'a\\'€é'");
        assert_eq!(written(&single, b"a\x81"), "0x6181");
    }

    #[test]
    fn values_of_a_row_are_found_again() {
        let row = r"(1,'a,\'b\\',NULL,0x00,'c''d')".as_bytes();
        assert_eq!(values(row, &[1, 0]), r"'a,\'b\\',1");
        assert_eq!(values(row, &[4, 9]), "'c''d',");
        assert_eq!(values(row, &[]), "");
    }

    proptest! {
        /// The escapes of MySQL's manual, "String Literals", taken back.
        #[test]
        fn what_is_escaped_comes_back(value in proptest::collection::vec(prop_oneof![
            3 => any::<u8>(), 2 => prop::sample::select(&b"\0\n\r\x1a'\"\\"[..])], 0..200)) {
            let mut out = vec![];
            escape(&value, &mut out);
            let (mut back, mut bytes) = (vec![], out.iter());
            while let Some(byte) = bytes.next() {
                prop_assert!(!b"\0\n\r\x1a'\"".contains(byte));
                back.push(if *byte != b'\\' { *byte } else {
                    match bytes.next().unwrap() { b'0' => 0, b'n' => b'\n', b'r' => b'\r', b'Z' => 0x1a, other => *other }
                });
            }
            prop_assert_eq!(back, value);
        }

        #[test]
        fn a_float_comes_back_through_a_double(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = written(&How::Float, format!("{}", f64::from(value)).as_bytes());
            // As the server does: a number with a sign is the negative of one without.
            let (sign, digits) = text.strip_prefix('-').map_or((1.0, &text[..]), |rest| (-1.0, rest));
            let read: f64 = digits.parse().unwrap();
            prop_assert_eq!(((sign * read) as f32).to_bits(), bits, "{}", text);
        }
    }
}
