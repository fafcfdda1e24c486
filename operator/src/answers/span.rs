//! Where the parts of a JSON text stand, without reading them: an answer of megabytes is never made
//! into a tree. PURE.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The text is not the JSON that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not the JSON that was expected")]
pub(crate) struct Malformed;

/// A member of an object: its key, and where its value stands.
pub(super) type Member<'a> = (Cow<'a, str>, &'a [u8]);

/// The members of the object that `text` is, in order.
///
/// # Errors
/// It is no object.
pub(super) fn members(text: &[u8]) -> Result<Vec<Member<'_>>, Malformed> {
    let mut found = vec![];
    let mut at = open(text, b'{')?;
    let mut first = true;
    while let Some(next) = item(text, at, b'}', first)? {
        let (key, after) = key(text, next)?;
        let after = blanks(text, after);
        if text.get(after) != Some(&b':') {
            return Err(Malformed);
        }
        let value = value(text, blanks(text, after + 1))?;
        at = value.end;
        found.push((key, part(text, value)?));
        first = false;
    }
    Ok(found)
}

/// The elements of the array that `text` is, in order.
///
/// # Errors
/// It is no array.
pub(super) fn elements(text: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut found = vec![];
    let mut at = open(text, b'[')?;
    let mut first = true;
    while let Some(next) = item(text, at, b']', first)? {
        let value = value(text, next)?;
        at = value.end;
        found.push(part(text, value)?);
        first = false;
    }
    Ok(found)
}

fn part(text: &[u8], range: Range<usize>) -> Result<&[u8], Malformed> {
    text.get(range).ok_or(Malformed)
}

/// The place after the opening bracket.
fn open(text: &[u8], bracket: u8) -> Result<usize, Malformed> {
    let at = blanks(text, 0);
    if text.get(at) == Some(&bracket) {
        Ok(at + 1)
    } else {
        Err(Malformed)
    }
}

/// The start of the next item after `at`, or `None` at the closing bracket.
fn item(text: &[u8], at: usize, close: u8, first: bool) -> Result<Option<usize>, Malformed> {
    let at = blanks(text, at);
    match text.get(at) {
        Some(c) if *c == close => Ok(None),
        Some(_) if first => Ok(Some(at)),
        Some(b',') => Ok(Some(blanks(text, at + 1))),
        _ => Err(Malformed),
    }
}

fn blanks(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

fn key(text: &[u8], at: usize) -> Result<(Cow<'_, str>, usize), Malformed> {
    #[derive(Deserialize)]
    struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
    let rest = text.get(at..).ok_or(Malformed)?;
    let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Key<'_>>();
    match stream.next() {
        Some(Ok(Key(key))) => Ok((key, at + stream.byte_offset())),
        _ => Err(Malformed),
    }
}

/// The value at `at`, read past without being kept.
fn value(text: &[u8], at: usize) -> Result<Range<usize>, Malformed> {
    let rest = text.get(at..).ok_or(Malformed)?;
    let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    match stream.next() {
        Some(Ok(_)) => Ok(at..at + stream.byte_offset()),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            arbitrary::<bool>().prop_map(Value::from),
            arbitrary::<i64>().prop_map(Value::from),
            "\\PC{0,8}|[\"\\\\\n{}\\[\\],:]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\ ]{0,4}", inner, 0..5)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    use proptest::arbitrary::any as arbitrary;

    proptest! {
        /// The parts are those that a reader of JSON finds, pretty or not.
        #[test]
        fn parts_are_what_a_reader_finds(value in tree(), pretty in arbitrary::<bool>()) {
            let text = if pretty { format!(" {value:#}\n") } else { value.to_string() };
            match &value {
                Value::Object(map) => {
                    let found = members(text.as_bytes()).unwrap();
                    let found: Value = found
                        .into_iter()
                        .map(|(k, v)| (k.into_owned(), serde_json::from_slice::<Value>(v).unwrap()))
                        .collect::<serde_json::Map<_, _>>()
                        .into();
                    prop_assert_eq!(found, Value::Object(map.clone()));
                }
                Value::Array(items) => {
                    let found: Vec<Value> = elements(text.as_bytes())
                        .unwrap()
                        .into_iter()
                        .map(|v| serde_json::from_slice(v).unwrap())
                        .collect();
                    prop_assert_eq!(&found, items);
                }
                _ => {
                    prop_assert!(members(text.as_bytes()).is_err());
                    prop_assert!(elements(text.as_bytes()).is_err());
                }
            }
        }

        #[test]
        fn nothing_panics(text in prop::collection::vec(arbitrary::<u8>(), 0..40), cut in 0_usize..60) {
            let _ = (members(&text), elements(&text));
            let whole = json!({"a": [1, {"b": "\u{e9}\""}], "c": null}).to_string();
            let part = &whole.as_bytes()[..cut.min(whole.len())];
            let _ = (members(part), elements(part));
        }
    }
}
