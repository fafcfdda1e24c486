//! The forms in which programs repeat a value.

use super::SHORTEST;

/// Shorter pieces of base64 may be ordinary words.
const SHORTEST_PIECE: usize = 6;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A secret with what is computed of it once.
#[derive(Clone)]
pub(super) struct Needle {
    secret: String,
    /// Pieces of base64 that any text with the secret inside has, by its offset in the text.
    base64: Vec<Vec<u8>>,
}

impl Needle {
    pub(super) fn new(secret: String) -> Self {
        let base64 = (0..3)
            .map(|offset| piece(offset, secret.as_bytes()))
            .filter(|p| p.len() >= SHORTEST_PIECE)
            .collect();
        Self { secret, base64 }
    }

    /// Where it stands in `text`, in bytes.
    pub(super) fn ranges(&self, text: &str) -> Vec<(usize, usize)> {
        let bytes = text.as_bytes();
        let mut found = vec![];
        let mut at = 0;
        while at < bytes.len() {
            let end = self.at(text, at);
            if let Some(end) = end.filter(|end| *end > at) {
                found.push((at, end));
                at = end;
            } else {
                at += 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
        for piece in &self.base64 {
            found.extend(base64_ranges(bytes, piece));
        }
        found
    }

    fn at(&self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let short = self.secret.len() < SHORTEST;
        let whole = |end: usize| !short || is_word(text, at, end);
        let written = written(bytes, at, &self.secret).filter(|end| whole(*end));
        written
            .or_else(|| {
                hex(bytes, at, self.secret.as_bytes())
                    .filter(|end| is_word(text, at, *end) || !short)
            })
            .or_else(|| {
                short
                    .then(|| exact_base64(text, at, &self.secret))
                    .flatten()
            })
    }
}

/// No letter or digit stands directly before or after.
fn is_word(text: &str, from: usize, to: usize) -> bool {
    let before = text[..from].chars().next_back();
    let after = text[to..].chars().next();
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

/// The end of `secret` at `at`, each character raw or in any of the ways of writing it. Several may
/// fit, so all ends that are possible are carried along; the farthest counts.
fn written(text: &[u8], at: usize, secret: &str) -> Option<usize> {
    let mut ends = vec![at];
    let mut next = vec![];
    for c in secret.chars() {
        for end in &ends {
            ways(text, *end, c, &mut next);
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(&mut ends, &mut next);
        next.clear();
        if ends.is_empty() {
            return None;
        }
    }
    ends.last().copied()
}

/// Adds each end of `c` at `at`.
fn ways(text: &[u8], at: usize, c: char, ends: &mut Vec<usize>) {
    let rest = &text[at..];
    let mut utf8 = [0; 4];
    let raw = c.encode_utf8(&mut utf8).as_bytes();
    if rest.starts_with(raw) {
        ends.push(at + raw.len());
        // SQL, shells and percent signs of formats double what has a meaning.
        if c.is_ascii_punctuation() && rest[raw.len()..].starts_with(raw) {
            ends.push(at + raw.len() * 2);
        }
    }
    match rest.first() {
        Some(b'%') => percent(rest, raw, at, ends),
        Some(b'+') if c == ' ' => ends.push(at + 1),
        Some(b'\\') => escaped(rest, c, at, ends),
        Some(b'&') => entity(rest, c, at, ends),
        // A single quote within single quotes of a shell.
        Some(b'\'') if c == '\'' => {
            for way in [&b"'\\''"[..], b"'\"'\"'"] {
                if rest.starts_with(way) {
                    ends.push(at + way.len());
                }
            }
        }
        _ => {}
    }
}

/// `%2F`, in either case, encoded once or twice.
fn percent(rest: &[u8], raw: &[u8], at: usize, ends: &mut Vec<usize>) {
    for lead in [&b"%"[..], b"%25"] {
        let mut i = 0;
        let fits = raw.iter().all(|byte| {
            let here = &rest[i..];
            let fits = here.starts_with(lead)
                && number(&here[lead.len()..], 2, 16) == Some(u32::from(*byte));
            i += lead.len() + 2;
            fits && i <= rest.len()
        });
        if fits {
            ends.push(at + i);
        }
    }
}

/// `\n`, `\"`, `\x41`, `\101`, `\u0041`, as often escaped as it may be.
fn escaped(rest: &[u8], c: char, at: usize, ends: &mut Vec<usize>) {
    let run = rest.iter().take_while(|b| **b == b'\\').count();
    if c == '\\' {
        ends.extend((2..=run.min(8)).map(|n| at + n));
    }
    let after = &rest[run..];
    let at = at + run;
    let mut utf8 = [0; 4];
    let raw = c.encode_utf8(&mut utf8).as_bytes();
    let letter = match c {
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '\0' => Some(b'0'),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        _ => None,
    };
    if letter.is_some() && after.first() == letter.as_ref() {
        ends.push(at + 1);
    }
    if !c.is_alphanumeric() && after.starts_with(raw) {
        ends.push(at + raw.len());
    }
    match after.first() {
        Some(b'x') if c.is_ascii() && number(&after[1..], 2, 16) == Some(c.into()) => {
            ends.push(at + 3)
        }
        Some(b'u') => {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units);
            let mut i = 0;
            let fits = units.iter().enumerate().all(|(n, unit)| {
                // The second half of a pair has its own backslashes.
                if n > 0 {
                    i += after[i..].iter().take_while(|b| **b == b'\\').count();
                }
                let here = &after[i.min(after.len())..];
                let fits = here.first() == Some(&b'u')
                    && number(&here[1..], 4, 16) == Some(u32::from(*unit));
                i += 5;
                fits
            });
            if fits {
                ends.push(at + i);
            }
        }
        Some(b'0'..=b'3') if c.is_ascii() && number(after, 3, 8) == Some(c.into()) => {
            ends.push(at + 3)
        }
        _ => {}
    }
}

/// `&quot;`, `&#34;`, `&#x22;`.
fn entity(rest: &[u8], c: char, at: usize, ends: &mut Vec<usize>) {
    let Some(length) = rest.iter().take(12).position(|b| *b == b';') else {
        return;
    };
    let Ok(name) = std::str::from_utf8(&rest[1..length]) else {
        return;
    };
    let means = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => name.strip_prefix('#').and_then(|code| {
            let hex = code.strip_prefix(['x', 'X']);
            let code = hex.map_or_else(|| code.parse(), |hex| u32::from_str_radix(hex, 16));
            code.ok().and_then(char::from_u32)
        }),
    };
    if means == Some(c) {
        ends.push(at + length + 1);
    }
}

/// The number in the first `digits` bytes.
fn number(text: &[u8], digits: usize, radix: u32) -> Option<u32> {
    let text = text.get(..digits)?;
    text.iter()
        .try_fold(0, |n, b| Some(n * radix + char::from(*b).to_digit(radix)?))
}

/// The end of the secret's bytes in hex, in either case, alone or with one sign between two bytes.
fn hex(text: &[u8], at: usize, secret: &[u8]) -> Option<usize> {
    let mut end = at;
    for (i, byte) in secret.iter().enumerate() {
        if i > 0 && matches!(text.get(end), Some(b':' | b' ' | b'-')) {
            end += 1;
        }
        if number(text.get(end..)?, 2, 16) != Some(u32::from(*byte)) {
            return None;
        }
        end += 2;
    }
    Some(end)
}

fn encode(data: &[u8]) -> Vec<u8> {
    let mut text = vec![];
    for chunk in data.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0u32, |n, (i, b)| n | u32::from(*b) << (16 - 8 * i));
        for i in 0..=chunk.len() {
            text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]);
        }
    }
    text
}

/// What is in the base64 of any text that has the secret at an offset of this rest by three.
fn piece(offset: usize, secret: &[u8]) -> Vec<u8> {
    let mut data = vec![0; offset];
    data.extend_from_slice(secret);
    let mut text = encode(&data);
    if !data.len().is_multiple_of(3) {
        // Its low bits are of what follows.
        text.pop();
    }
    // The first characters are of what stands before.
    text.drain(..text.len().min((offset * 8).div_ceil(6)));
    text
}

/// `-` and `_` are the safe alphabet's `+` and `/`.
fn standard(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

/// The whole words of base64 that have this piece.
fn base64_ranges(text: &[u8], piece: &[u8]) -> Vec<(usize, usize)> {
    let mut found = vec![];
    let mut at = 0;
    while at + piece.len() <= text.len() {
        if text[at..]
            .iter()
            .zip(piece)
            .all(|(t, p)| standard(*t) == *p)
        {
            let from = text[..at]
                .iter()
                .rposition(|b| !is_base64(*b))
                .map_or(0, |i| i + 1);
            let after = &text[at..];
            let to = after
                .iter()
                .position(|b| !is_base64(*b))
                .map_or(text.len(), |i| at + i);
            found.push((from, to));
            at = to;
        } else {
            at += 1;
        }
    }
    found
}

/// A short secret as a base64 word of its own.
fn exact_base64(text: &str, at: usize, secret: &str) -> Option<usize> {
    let plain = encode(secret.as_bytes());
    let rest = &text.as_bytes()[at..];
    let fits =
        rest.len() >= plain.len() && rest.iter().zip(&plain).all(|(t, p)| standard(*t) == *p);
    let mut end = at + plain.len();
    while fits && text.as_bytes().get(end) == Some(&b'=') {
        end += 1;
    }
    (fits && is_word(text, at, end)).then_some(end)
}
